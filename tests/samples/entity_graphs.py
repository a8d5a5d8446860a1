"""Entity graphs for tests: an application on a data directory, and everything that its tables say about a graph."""

from __future__ import annotations

from typing import Any

import apsw

from astrocyte.api.requests import Forget, Retain
from astrocyte.app import App
from astrocyte.model import Caller, ForgetSelector, RetainItem
from astrocyte.stores.graph.entity_graph import DerivedLink, DerivedMention, DerivedVersion, GraphView

ME = Caller()
BANK = "people"

# Names of what the derived rows of a bank say: whatever the keys, in any order.
DERIVED = {
    "entities": "SELECT entity_id, entity_type, mention_count, given_name, aliases, metadata, unresolved"
    " FROM graph_entities",
    "words": "SELECT entity_id, word FROM entity_words JOIN graph_entities USING (entity_key)",
    "mentions": "SELECT memory_id, version, entity_id, first_char, end_char, name, confidence FROM entity_mentions"
    " JOIN graph_entities USING (entity_key) JOIN memories USING (row_key)",
    "links": "SELECT s.entity_id, t.entity_id, l.link_type, l.origin, l.evidence, l.confidence, l.first_char,"
    " l.end_char, m.memory_id, m.version FROM entity_links l JOIN graph_entities s ON s.entity_key = l.source_key"
    " JOIN graph_entities t ON t.entity_key = l.target_key LEFT JOIN memories m ON m.row_key = l.row_key",
}


async def say(app: App, content: str, **fields: Any) -> str:
    """Retain a memory; returns its id."""
    result = await app.gate.call(ME, Retain(BANK, RetainItem(content, **fields)))
    assert result.memory_id is not None
    return result.memory_id


async def drop(app: App, memory_id: str, *, compliance: bool = False) -> None:
    """Forget a memory, or erase it."""
    await app.gate.call(ME, Forget(BANK, ForgetSelector(memory_ids=(memory_id,)), compliance, "asked to"))


async def settled(app: App) -> None:
    """Wait until everything that is committed is in the graph."""
    assert await app.pipelines.graph.follower.caught_up(30.0)


def derived(app: App) -> dict[str, list[tuple[Any, ...]]]:
    """All rows of all graphs, without the keys that depend on the order of events."""
    with app.storage.store._connections.snapshot() as connection:
        return {name: sorted(_rows(connection, sql), key=repr) for name, sql in DERIVED.items()}


def _rows(connection: apsw.Connection, sql: str) -> list[tuple[Any, ...]]:
    return connection.execute(sql).fetchall()


def orphans(app: App) -> list[str]:
    """Ids of the entities that have neither mentions nor links of callers, told by a statement of the tests' own."""
    sql = (
        "SELECT entity_id FROM graph_entities WHERE entity_key NOT IN (SELECT entity_key FROM entity_mentions)"
        " AND entity_key NOT IN (SELECT unnested.entity_key FROM (SELECT source_key AS entity_key, origin, link_type"
        " FROM entity_links UNION ALL SELECT target_key, origin, link_type FROM entity_links) unnested"
        " WHERE origin = 'caller' AND link_type NOT IN ('alias_of', 'distinct_from'))"
    )
    with app.storage.store._connections.snapshot() as connection:
        return [entity_id for (entity_id,) in connection.execute(sql)]


def counted(app: App) -> bool:
    """True if the mention counts are those of the rows."""
    sql = (
        "SELECT e.mention_count, (SELECT count(*) FROM entity_mentions n JOIN memories m USING (row_key)"
        " WHERE n.entity_key = e.entity_key AND m.known_until IS NULL AND m.forgotten_at IS NULL) FROM graph_entities e"
    )
    with app.storage.store._connections.snapshot() as connection:
        return all(count == real for count, real in _rows(connection, sql))


def mention(entity_id: str, *, at: int = 0, name: str = "") -> DerivedMention:
    """A mention whose words are those of its id."""
    kind, _, slug = entity_id.partition(":")
    shown = name or slug.replace("-", " ").title()
    return DerivedMention(entity_id, kind.upper(), shown, at, at + len(shown), 1.0, frozenset(slug.split("-")))


def version(row_key: int, bank_key: int, *entity_ids: str, links: tuple[DerivedLink, ...] = ()) -> DerivedVersion:
    """The graph rows of a version that mentions entities one after the other."""
    mentions = tuple(mention(entity_id, at=place * 100) for place, entity_id in enumerate(entity_ids))
    return DerivedVersion(row_key, bank_key, mentions, links)


def visible(app: App, view: GraphView) -> list[str]:
    """Ids of the entities that a view sees, each by itself."""
    with app.storage.store.graph.reader(view) as reader:
        return [entity.id for entity in reader.each("", 1_000)]
