"""Commands for the entity graph."""

from __future__ import annotations

from datetime import datetime

import click

from astrocyte.api.requests import (
    ExportGraph,
    FindPath,
    GetEntity,
    GetGraphStats,
    ListEntities,
    Neighbors,
    SearchEntities,
)
from astrocyte.cli.connection import Session, operation
from astrocyte.cli.knowledge.graph_changes import (
    create_link,
    delete_link,
    merge_entities,
    rebuild_graph,
    split_entity,
    update_entity,
)
from astrocyte.cli.knowledge.graph_output import (
    arrow,
    dot_document,
    print_entities,
    print_entity,
    print_stats,
    shortened,
)
from astrocyte.cli.output import ERR, OUT, grid, print_json
from astrocyte.cli.values import MOMENT
from astrocyte.model import EntityLink, GraphEntity, GraphFormat

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
    print_entities(session, found)


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
    print_entity(session, await session.backend.call(session.caller, GetEntity(bank, entity_id, as_of)))


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
    print_entities(session, found)


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
        click.echo(dot_document([one.entity for one in found.entities], links), nl=False)
        return
    if session.as_json:
        print_json(found)
        return
    table = grid(("entity", "depth", "score", "via"), right=("depth", "score"))
    for one in found.entities:
        table.add_row(one.entity.id, f"{one.depth}", f"{one.score:.3f}", "" if one.via is None else arrow(one.via))
    OUT.print(table)
    memories = grid(("memory", "depth", "score", "text"), right=("depth", "score"))
    for hit in found.memories:
        memories.add_row(hit.memory_id, f"{hit.depth}", f"{hit.score:.3f}", shortened(hit.text))
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
        click.echo(dot_document(list(entities.values()), [EntityLink(*one) for one in links]), nl=False)
    elif session.as_json:
        print_json(found)
    elif not found.paths:
        OUT.print(f"There is no path of up to {max_depth} links.")
    else:
        for path in found.paths:
            OUT.print("\n".join(arrow(link) for link in path.links) or path.entities[0].id, markup=False)
            OUT.print()


@graph.command("stats")
@click.argument("bank")
@operation
async def graph_stats(session: Session, /, bank: str) -> None:
    """Show counts of the graph of BANK.

    \b
    astrocyte graph stats people
    """
    print_stats(session, await session.backend.call(session.caller, GetGraphStats(bank)))


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


for _command in (create_link, delete_link, update_entity, merge_entities, split_entity, rebuild_graph):
    graph.add_command(_command)
