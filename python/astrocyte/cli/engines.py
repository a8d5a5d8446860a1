"""Command ``astrocyte engines``."""

from __future__ import annotations

import click

from astrocyte.api.requests import ListEngines
from astrocyte.cli.connection import Session, operation
from astrocyte.cli.output import OUT, grid, print_json


@click.command()
@operation
async def engines(session: Session, /) -> None:
    """List the engines of the server with their health.

    \b
    astrocyte engines
    """
    found = await session.backend.call(session.caller, ListEngines())
    if session.as_json:
        print_json(found)
        return
    table = grid(("engine", "provider", "banks", "retain", "health", "circuit", "outbox", "capabilities"))
    for one in found:
        health = "healthy" if one.healthy else "unhealthy"
        table.add_row(
            one.name,
            one.provider,
            ", ".join(one.banks),
            "read-only" if one.read_only else one.retain_target,
            f"{health}: {one.detail}" if one.detail else health,
            one.circuit,
            "" if one.outbox is None else f"{one.outbox.waiting}, {one.outbox.state}",
            ", ".join(one.capabilities),
        )
    OUT.print(table if found else "There are no engines.")
