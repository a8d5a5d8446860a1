"""Conditions on rows of the entity graph: what a view sees. ``m`` is memories, ``e`` entities, ``l`` links."""

from __future__ import annotations

from typing import Any

from astrocyte.stores.graph.entity_graph import ALIAS_OF, DISTINCT_FROM, GraphView
from astrocyte.stores.sqlite.graph.filters import conditions

_VALID = (
    " AND (m.valid_from IS NULL OR m.valid_from <= :valid_at) AND (m.valid_until IS NULL OR m.valid_until >= :valid_at)"
)
_LINK_VALID = (
    " AND (coalesce(l.valid_from, m.valid_from) IS NULL OR coalesce(l.valid_from, m.valid_from) <= :valid_at)"
    " AND (coalesce(l.valid_until, m.valid_until) IS NULL OR coalesce(l.valid_until, m.valid_until) >= :valid_at)"
)
# Links of callers that keep an entity which no memory mentions.
KEEPING = f"k.origin = 'caller' AND k.link_type NOT IN ('{ALIAS_OF}', '{DISTINCT_FROM}')"


class Conditions:
    """The conditions of a view, as SQL over named bindings.

    Attributes:
        bindings: Values of ``:bank``, ``:as_of``, ``:valid_at`` and the names of the filter.
        memory: The condition on which the version ``m`` is visible.
        link: The condition on which the link ``l`` is visible, with its version ``m`` if a memory states it.
        together: The condition on which no caller keeps the two ends of the link ``l`` apart.
    """

    def __init__(self, view: GraphView) -> None:
        only, given = conditions(view.only)
        self.bindings: dict[str, Any] = {"bank": view.bank.key, **given}
        memory = "m.forgotten_at IS NULL"
        made = ""
        if view.as_of is None:
            memory += " AND m.known_until IS NULL"
        else:
            self.bindings["as_of"] = view.as_of
            memory += " AND m.known_from <= :as_of AND (m.known_until IS NULL OR m.known_until > :as_of)"
            made = " AND {0}.created_at <= :as_of"
        stated, known = memory + only, memory
        memory = stated
        if view.valid_at is not None:
            self.bindings["valid_at"] = view.valid_at
            memory += _VALID
        self.memory = memory
        # Validity and filters are no matter of existence: an entity is there as long as a memory of it is known.
        mentioned = (
            "{0}.mention_count > 0"
            if view.as_of is None
            else "EXISTS (SELECT 1 FROM entity_mentions n CROSS JOIN memories m ON m.row_key = n.row_key"
            f" WHERE n.entity_key = {{0}}.entity_key AND {known})"
        )
        kept = " OR ".join(
            f"EXISTS (SELECT 1 FROM entity_links k WHERE k.{end} = {{0}}.entity_key AND {KEEPING}{made.format('k')})"
            for end in ("source_key", "target_key")
        )
        self._entity = f"({mentioned} OR {kept})"
        caller = f"l.origin <> 'caller' OR (true{made.format('l')})" if made else "true"
        self.link = f"CASE WHEN l.row_key IS NULL THEN ({caller}) ELSE ({stated}) END"
        if view.valid_at is not None:
            self.link += _LINK_VALID
        # Aliases are cut where a caller said that the two are different.
        apart = " OR ".join(
            f"EXISTS (SELECT 1 FROM entity_links d WHERE d.source_key = {one} AND d.target_key = {other}"
            f" AND d.link_type = '{DISTINCT_FROM}'{made.format('d')})"
            for one, other in (("l.source_key", "l.target_key"), ("l.target_key", "l.source_key"))
        )
        self.together = f"NOT ({apart})"

    def entity(self, name: str = "e") -> str:
        """The condition on which the entity of this name in the statement is visible."""
        return self._entity.format(name)
