"""Lines of the part of an entity graph that callers made: fields of entities, links, merges and splits.

An entity line names an entity that a caller changed, or at which a link of a caller ends. Merges are links of the type
``alias_of``, splits of the type ``distinct_from``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from astrocyte.model import Metadata
from astrocyte.pipelines.portability.archive import GRAPH_ENTITIES, GRAPH_LINKS, line_of, time_text
from astrocyte.pipelines.portability.line_values import LineValues
from astrocyte.stores.graph.entity_graph import ArchivedEntity, ArchivedLink

ENTITY_KEYS = frozenset({"section", "id", "type", "name", "aliases", "metadata"})
LINK_KEYS = frozenset(
    {
        "section", "entity_a", "entity_b", "link_type", "evidence", "confidence", "created_at", "valid_from",
        "valid_until", "metadata",
    }
)  # fmt: skip

# Texts as they may leave.
Tell = Callable[[Sequence[str]], Sequence[str]]


@dataclass(frozen=True, slots=True)
class ArchivedGraphRow:
    """An entity or a link, with the number of its line."""

    line: int
    row: ArchivedEntity | ArchivedLink

    @property
    def name(self) -> str:
        """The row as a failure names it."""
        row = self.row
        return row.entity_id if isinstance(row, ArchivedEntity) else f"{row.entity_a} {row.link_type} {row.entity_b}"


def entity_lines(entities: Sequence[ArchivedEntity], tell: Tell) -> list[bytes]:
    """The lines of entities, with names and metadata as they may leave."""
    told = iter(tell([text for one in entities for text in (one.name or "", *one.aliases, *_said(one.metadata))]))
    return [
        _entity_line(
            replace(
                one,
                name=next(told) or None,
                aliases=tuple(next(told) for _ in one.aliases),
                metadata=_with(one.metadata, told),
            )
        )
        for one in entities
    ]


def link_lines(links: Sequence[ArchivedLink], tell: Tell) -> list[bytes]:
    """The lines of links, with evidence and metadata as they may leave."""
    told = iter(tell([text for one in links for text in (one.evidence, *_said(one.metadata))]))
    return [_link_line(replace(one, evidence=next(told), metadata=_with(one.metadata, told))) for one in links]


def _said(metadata: Metadata) -> list[str]:
    """The texts among the values."""
    return [value for value in metadata.values() if isinstance(value, str)]


def _with(metadata: Metadata, told: Iterator[str]) -> Metadata:
    """The metadata with the next texts in place of its own."""
    return {key: next(told) if isinstance(value, str) else value for key, value in metadata.items()}


def entity_of(values: Mapping[str, Any], line: int) -> ArchivedGraphRow:
    """The entity of a line.

    Raises:
        ValidationError: A key is unknown, or a value has another type; ``field`` is the key.
    """
    read = LineValues(values, ENTITY_KEYS)
    entity = ArchivedEntity(
        read.text("id"),
        read.text("type"),
        read.optional("name") or None,
        read.texts("aliases"),
        read.metadata("metadata"),
    )
    return ArchivedGraphRow(line, entity)


def link_of(values: Mapping[str, Any], line: int) -> ArchivedGraphRow:
    """The link of a line.

    Raises:
        ValidationError: As `entity_of`.
    """
    read = LineValues(values, LINK_KEYS)
    link = ArchivedLink(
        entity_a=read.text("entity_a"),
        entity_b=read.text("entity_b"),
        link_type=read.text("link_type"),
        evidence=read.optional("evidence") or "",
        confidence=read.number("confidence"),
        created_at=read.moment("created_at"),
        valid_from=read.milliseconds("valid_from"),
        valid_until=read.milliseconds("valid_until"),
        metadata=read.metadata("metadata"),
    )
    return ArchivedGraphRow(line, link)


def _entity_line(entity: ArchivedEntity) -> bytes:
    optional = {"name": entity.name, "aliases": list(entity.aliases), "metadata": dict(entity.metadata)}
    given = {key: value for key, value in optional.items() if value}
    return line_of({"section": GRAPH_ENTITIES, "id": entity.entity_id, "type": entity.entity_type, **given})


def _link_line(link: ArchivedLink) -> bytes:
    values: dict[str, Any] = {
        "section": GRAPH_LINKS,
        "entity_a": link.entity_a,
        "entity_b": link.entity_b,
        "link_type": link.link_type,
        "confidence": link.confidence,
        "created_at": time_text(link.created_at),
    }
    optional = {
        "evidence": link.evidence,
        "valid_from": time_text(link.valid_from),
        "valid_until": time_text(link.valid_until),
        "metadata": dict(link.metadata),
    }
    return line_of(values | {key: value for key, value in optional.items() if value})
