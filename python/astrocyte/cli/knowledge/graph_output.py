"""Entities, links and statistics of an entity graph as they are printed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from astrocyte.cli.connection import Session
from astrocyte.cli.output import OUT, facts, grid, print_json, stamp
from astrocyte.model import EntityLink, GraphEntity, GraphStats

SHOWN_CHARS = 120


def print_entities(session: Session, found: Sequence[GraphEntity]) -> None:
    """Print a table of entities, or JSON."""
    if session.as_json:
        print_json(found)
        return
    table = grid(("entity", "name", "type", "mentions", "last seen", "aliases"), right=("mentions",))
    for one in found:
        row = (one.id, one.name, one.entity_type, f"{one.mention_count}", stamp(one.last_seen), ", ".join(one.aliases))
        table.add_row(*row)
    OUT.print(table if found else "There are no such entities.")


def print_entity(session: Session, one: GraphEntity) -> None:
    """Print one entity with its links, or JSON."""
    if session.as_json:
        print_json(one)
        return
    metadata = ", ".join(f"{key}={value}" for key, value in one.metadata.items())
    rows = (
        ("entity", one.id),
        ("name", one.name),
        ("type", one.entity_type),
        ("aliases", ", ".join(one.aliases)),
        ("merged", ", ".join(one.merged_ids)),
        ("mentions", one.mention_count),
        ("first seen", stamp(one.first_seen)),
        ("last seen", stamp(one.last_seen)),
        ("metadata", metadata),
        ("etag", one.etag),
    )
    OUT.print(facts([(name, value) for name, value in rows if value != ""]))


def print_stats(session: Session, stats: GraphStats) -> None:
    """Print the counts of a graph, or JSON."""
    if session.as_json:
        print_json(stats)
        return
    rows: list[tuple[str, object]] = [("entities", stats.entities), ("merged", stats.merged)]
    rows += [(f"  {kind}", count) for kind, count in stats.entities_by_type.items()]
    rows += [("mentions", stats.mentions), ("links", sum(stats.links_by_type.values()))]
    rows += [(f"  {kind}", count) for kind, count in stats.links_by_type.items()]
    rows.append(("pending memories", stats.pending_memories))
    if stats.unread_memories:
        rows.append(("unread memories", stats.unread_memories))
    if stats.rebuilding:
        rows.append(("rebuilt", f"{stats.rebuilt_share:.0%}"))
    OUT.print(facts(rows))


def arrow(link: EntityLink) -> str:
    """A link as text: one entity, its type, the other entity."""
    return f"{link.entity_a} -{link.link_type}-> {link.entity_b}"


def shortened(text: str) -> str:
    """The text in one line, cut where it is long."""
    line = " ".join(text.split())
    return line if len(line) <= SHOWN_CHARS else f"{line[: SHOWN_CHARS - 3]}..."


def dot_document(entities: Iterable[GraphEntity], links: Iterable[EntityLink]) -> str:
    """A Graphviz document."""
    nodes = [f"  {_quoted(one.id)} [label={_quoted(f'{one.name} ({one.entity_type})')}];" for one in entities]
    edges = [f"  {_quoted(one.entity_a)} -> {_quoted(one.entity_b)} [label={_quoted(one.link_type)}];" for one in links]
    return "\n".join(["digraph entities {", *nodes, *edges, "}", ""])


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
