"""Commands for the entity graph."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from datetime import datetime

import click

from astrocyte.api.requests import (
    CreateEntityLink,
    DeleteEntityLink,
    ExportGraph,
    FindPath,
    GetEntity,
    GetGraphStats,
    ListEntities,
    MergeEntities,
    Neighbors,
    RebuildGraph,
    SearchEntities,
    SplitEntity,
    UpdateEntity,
)
from astrocyte.cli.connection import Session, operation
from astrocyte.cli.output import ERR, OUT, facts, grid, print_json, stamp
from astrocyte.cli.values import MOMENT, PAIR
from astrocyte.model import EntityLink, GraphEntity, GraphFormat, GraphStats, MetadataValue, NewEntityLink

# Between two looks at a rebuild.
POLL_SECONDS = 0.2
SHOWN_CHARS = 120
_AS_OF = click.option("--as-of", type=MOMENT, help="Only what was known at this time.")
_LINK_TYPES = click.option("--type", "link_types", multiple=True, help="Follow only this link type; may be repeated.")
_DOT = click.option("--dot", is_flag=True, help="Print a Graphviz document.")


@click.group()
def graph() -> None:
    """Search and change the entity graph: people, places and things that memories mention.

    \b
    astrocyte graph search people "Alice"
    astrocyte graph neighbors people person:alice-smith --depth 2
    astrocyte graph path people person:alice-smith org:acme
    """


@graph.command("search")
@click.argument("bank")
@click.argument("query")
@click.option("--limit", default=10, show_default=True, help="Most entities.")
@click.option("--entity-type", "entity_types", multiple=True, help="Only this type, such as PERSON; may be repeated.")
@_AS_OF
@operation
async def search_entities(
    session: Session,
    /,
    bank: str,
    query: str,
    limit: int,
    entity_types: tuple[str, ...],
    as_of: datetime | None,
) -> None:
    """Find entities of BANK by name.

    \b
    astrocyte graph search people "Alice"
    astrocyte graph search people "Alice" --entity-type PERSON
    """
    found = await session.backend.call(session.caller, SearchEntities(bank, query, limit, entity_types, as_of))
    _print_entities(session, found)


@graph.command("get")
@click.argument("bank")
@click.argument("entity_id")
@_AS_OF
@operation
async def get_entity(session: Session, /, bank: str, entity_id: str, as_of: datetime | None) -> None:
    """Show the entity ENTITY_ID.

    \b
    astrocyte graph get people person:alice-smith
    """
    _print_entity(session, await session.backend.call(session.caller, GetEntity(bank, entity_id, as_of)))


@graph.command("list")
@click.argument("bank")
@click.option("--entity-type", default="", help="Only this type, such as PERSON.")
@_AS_OF
@operation
async def list_entities(session: Session, /, bank: str, entity_type: str, as_of: datetime | None) -> None:
    """List the entities of BANK by id.

    \b
    astrocyte graph list people --entity-type ORG
    """
    found: list[GraphEntity] = []
    token = ""
    while True:
        request = ListEntities(bank, entity_type, page_token=token, as_of=as_of)
        page = await session.backend.call(session.caller, request)
        found += page.entities
        token = page.next_page_token
        if not token:
            break
    _print_entities(session, found)


@graph.command("neighbors")
@click.argument("bank")
@click.argument("entity_ids", nargs=-1, required=True)
@click.option("--depth", "max_depth", default=2, show_default=True, help="Most links from the entities.")
@click.option("--limit", default=20, show_default=True, help="Most entities and most memories.")
@_LINK_TYPES
@_AS_OF
@click.option("--valid-at", type=MOMENT, help="Only links and memories that were valid at this time.")
@_DOT
@operation
async def find_neighbors(
    session: Session,
    /,
    bank: str,
    entity_ids: tuple[str, ...],
    max_depth: int,
    limit: int,
    link_types: tuple[str, ...],
    as_of: datetime | None,
    valid_at: datetime | None,
    dot: bool,
) -> None:
    """Show entities around ENTITY_IDS, and memories that mention them.

    \b
    astrocyte graph neighbors people person:alice-smith
    astrocyte graph neighbors people person:alice-smith --type works_at
    astrocyte graph neighbors people person:alice-smith --dot | dot -Tsvg > alice.svg
    """
    request = Neighbors(bank, entity_ids, max_depth, limit, link_types, as_of, valid_at)
    found = await session.backend.call(session.caller, request)
    if dot:
        links = [one.via for one in found.entities if one.via is not None]
        click.echo(_dot([one.entity for one in found.entities], links), nl=False)
        return
    if session.as_json:
        print_json(found)
        return
    table = grid(("entity", "depth", "score", "via"), right=("depth", "score"))
    for one in found.entities:
        table.add_row(one.entity.id, f"{one.depth}", f"{one.score:.3f}", "" if one.via is None else _arrow(one.via))
    OUT.print(table)
    memories = grid(("memory", "depth", "score", "text"), right=("depth", "score"))
    for hit in found.memories:
        memories.add_row(hit.memory_id, f"{hit.depth}", f"{hit.score:.3f}", _short(hit.text))
    OUT.print(memories if found.memories else "No memory mentions them.")
    if found.truncated:
        ERR.print("There is more; raise --limit, or name link types.")


@graph.command("path")
@click.argument("bank")
@click.argument("source_id")
@click.argument("target_id")
@click.option("--depth", "max_depth", default=4, show_default=True, help="Most links of a path.")
@click.option("--paths", "max_paths", default=1, show_default=True, help="Most paths.")
@_LINK_TYPES
@_AS_OF
@_DOT
@operation
async def find_path(
    session: Session,
    /,
    bank: str,
    source_id: str,
    target_id: str,
    max_depth: int,
    max_paths: int,
    link_types: tuple[str, ...],
    as_of: datetime | None,
    dot: bool,
) -> None:
    """Show the shortest paths from SOURCE_ID to TARGET_ID.

    \b
    astrocyte graph path people person:alice-smith org:acme
    astrocyte graph path people person:alice-smith org:acme --paths 3
    """
    request = FindPath(bank, source_id, target_id, max_depth, max_paths, link_types, as_of)
    found = await session.backend.call(session.caller, request)
    if dot:
        links = dict.fromkeys((one.entity_a, one.entity_b, one.link_type) for path in found.paths for one in path.links)
        entities = {one.id: one for path in found.paths for one in path.entities}
        click.echo(_dot(list(entities.values()), [EntityLink(*one) for one in links]), nl=False)
    elif session.as_json:
        print_json(found)
    elif not found.paths:
        OUT.print(f"There is no path of up to {max_depth} links.")
    else:
        for path in found.paths:
            OUT.print("\n".join(_arrow(link) for link in path.links) or path.entities[0].id, markup=False)
            OUT.print()


@graph.command("link")
@click.argument("bank")
@click.argument("source_id")
@click.argument("link_type")
@click.argument("target_id")
@click.option("--evidence", default="", help="Passage that supports the link.")
@click.option("--confidence", default=1.0, show_default=True, help="Confidence, 0 to 1.")
@click.option("--valid-from", type=MOMENT, help="Beginning of validity.")
@click.option("--valid-until", type=MOMENT, help="End of validity.")
@operation
async def create_link(
    session: Session,
    /,
    bank: str,
    source_id: str,
    link_type: str,
    target_id: str,
    evidence: str,
    confidence: float,
    valid_from: datetime | None,
    valid_until: datetime | None,
) -> None:
    """Store a link from SOURCE_ID to TARGET_ID.

    \b
    astrocyte graph link people person:alice-smith works_at org:acme
    """
    link = NewEntityLink(source_id, target_id, link_type, evidence, confidence, {}, valid_from, valid_until)
    (made,) = await session.backend.call(session.caller, CreateEntityLink(bank, [link]))
    if session.as_json:
        print_json(made)
    else:
        click.echo(f"{made.link_id}: {_arrow(made)}")


@graph.command("unlink")
@click.argument("bank")
@click.argument("link_id")
@operation
async def delete_link(session: Session, /, bank: str, link_id: str) -> None:
    """Delete the link LINK_ID that was created with `link`.

    \b
    astrocyte graph unlink people link-2a
    """
    deleted = await session.backend.call(session.caller, DeleteEntityLink(bank, link_id))
    click.echo(f"Deleted {deleted}.")


@graph.command("update")
@click.argument("bank")
@click.argument("entity_id")
@click.option("--name", help="Name; empty for that of the first mention.")
@click.option("--alias", "aliases", multiple=True, help="Other name; may be repeated. Replaces the earlier ones.")
@click.option("--no-aliases", is_flag=True, help="Remove all aliases.")
@click.option(
    "--meta", "pairs", type=PAIR, multiple=True, help="Metadata pair; may be repeated. Replaces earlier ones."
)
@operation
async def update_entity(
    session: Session,
    /,
    bank: str,
    entity_id: str,
    name: str | None,
    aliases: tuple[str, ...],
    no_aliases: bool,
    pairs: tuple[tuple[str, MetadataValue], ...],
) -> None:
    """Change the name, aliases or metadata of ENTITY_ID.

    \b
    astrocyte graph update people person:alice-smith --name "Alice M. Smith" --alias Ally
    """
    if aliases and no_aliases:
        raise click.UsageError("--alias and --no-aliases exclude each other")
    request = UpdateEntity(
        bank,
        entity_id,
        name,
        () if no_aliases else (aliases or None),
        dict(pairs) if pairs else None,
    )
    _print_entity(session, await session.backend.call(session.caller, request))


@graph.command("merge")
@click.argument("bank")
@click.argument("entity_ids", nargs=-1, required=True)
@click.option("--into", "into_id", required=True, help="Entity that stands for all.")
@click.option("--reason", default="", help="Reason.")
@operation
async def merge_entities(
    session: Session, /, bank: str, entity_ids: tuple[str, ...], into_id: str, reason: str
) -> None:
    """Make ENTITY_IDS aliases of another entity. `split` undoes it.

    \b
    astrocyte graph merge people person:alice-johnson --into person:alice-smith
    """
    merged = await session.backend.call(session.caller, MergeEntities(bank, entity_ids, into_id, reason))
    _print_entity(session, merged)


@graph.command("split")
@click.argument("bank")
@click.argument("entity_id")
@click.option("--reason", default="", help="Reason.")
@operation
async def split_entity(session: Session, /, bank: str, entity_id: str, reason: str) -> None:
    """Separate ENTITY_ID from the entities that it is merged with, and keep it apart.

    \b
    astrocyte graph split people person:alice-johnson
    """
    _print_entity(session, await session.backend.call(session.caller, SplitEntity(bank, entity_id, reason)))


@graph.command("stats")
@click.argument("bank")
@operation
async def graph_stats(session: Session, /, bank: str) -> None:
    """Show counts of the graph of BANK.

    \b
    astrocyte graph stats people
    """
    _print_stats(session, await session.backend.call(session.caller, GetGraphStats(bank)))


@graph.command("export")
@click.argument("bank")
@click.option(
    "--format",
    "kind",
    type=click.Choice([one.value for one in GraphFormat]),
    default=GraphFormat.JSON_LINES.value,
    show_default=True,
    help="Format.",
)
@_AS_OF
@operation
async def export_graph(session: Session, /, bank: str, kind: str, as_of: datetime | None) -> None:
    """Print the graph of BANK.

    \b
    astrocyte graph export people > people.jsonl
    astrocyte graph export people --format graphml > people.graphml
    """
    async for piece in session.backend.stream(session.caller, ExportGraph(bank, GraphFormat(kind), as_of)):
        click.echo(piece, nl=False)


@graph.command("rebuild")
@click.argument("bank")
@operation
async def rebuild_graph(session: Session, /, bank: str) -> None:
    """Derive the graph of BANK again from its memories, and wait for the end.

    The graph stays readable. After an interruption, the server, or the next command on the data directory, continues.

    \b
    astrocyte graph rebuild people
    """
    stats = await session.backend.call(session.caller, RebuildGraph(bank))
    with ERR.status("rebuilding") as status:
        while stats.rebuilding:
            status.update(f"rebuilding: {stats.rebuilt_share:.0%}")
            await asyncio.sleep(POLL_SECONDS)
            stats = await session.backend.call(session.caller, GetGraphStats(bank))
    _print_stats(session, stats)


def _print_entities(session: Session, found: Sequence[GraphEntity]) -> None:
    if session.as_json:
        print_json(found)
        return
    table = grid(("entity", "name", "type", "mentions", "last seen", "aliases"), right=("mentions",))
    for one in found:
        row = (one.id, one.name, one.entity_type, f"{one.mention_count}", stamp(one.last_seen), ", ".join(one.aliases))
        table.add_row(*row)
    OUT.print(table if found else "There are no such entities.")


def _print_entity(session: Session, one: GraphEntity) -> None:
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


def _print_stats(session: Session, stats: GraphStats) -> None:
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


def _arrow(link: EntityLink) -> str:
    return f"{link.entity_a} -{link.link_type}-> {link.entity_b}"


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= SHOWN_CHARS else f"{line[: SHOWN_CHARS - 3]}..."


def _dot(entities: Iterable[GraphEntity], links: Iterable[EntityLink]) -> str:
    """A Graphviz document."""
    nodes = [f"  {_quoted(one.id)} [label={_quoted(f'{one.name} ({one.entity_type})')}];" for one in entities]
    edges = [f"  {_quoted(one.entity_a)} -> {_quoted(one.entity_b)} [label={_quoted(one.link_type)}];" for one in links]
    return "\n".join(["digraph entities {", *nodes, *edges, "}", ""])


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
