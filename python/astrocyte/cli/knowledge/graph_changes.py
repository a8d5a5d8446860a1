"""Commands that change the entity graph."""

from __future__ import annotations

import asyncio
from datetime import datetime

import click

from astrocyte.api.requests import (
    CreateEntityLink,
    DeleteEntityLink,
    GetGraphStats,
    MergeEntities,
    RebuildGraph,
    SplitEntity,
    UpdateEntity,
)
from astrocyte.cli.connection import Session, operation
from astrocyte.cli.knowledge.graph_output import arrow, print_entity, print_stats
from astrocyte.cli.output import ERR, print_json
from astrocyte.cli.values import MOMENT, PAIR
from astrocyte.model import MetadataValue, NewEntityLink

# Between two looks at a rebuild.
POLL_SECONDS = 0.2


@click.command("link")
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
        click.echo(f"{made.link_id}: {arrow(made)}")


@click.command("unlink")
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


@click.command("update")
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
    print_entity(session, await session.backend.call(session.caller, request))


@click.command("merge")
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
    print_entity(session, merged)


@click.command("split")
@click.argument("bank")
@click.argument("entity_id")
@click.option("--reason", default="", help="Reason.")
@operation
async def split_entity(session: Session, /, bank: str, entity_id: str, reason: str) -> None:
    """Separate ENTITY_ID from the entities that it is merged with, and keep it apart.

    \b
    astrocyte graph split people person:alice-johnson
    """
    print_entity(session, await session.backend.call(session.caller, SplitEntity(bank, entity_id, reason)))


@click.command("rebuild")
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
    print_stats(session, stats)
