"""Command ``astrocyte sources``."""

from __future__ import annotations

import click

from astrocyte.api.requests import ListSources
from astrocyte.cli.connection import Session, operation
from astrocyte.cli.output import OUT, grid, print_json


@click.command()
@operation
async def sources(session: Session, /) -> None:
    """List the ingest sources of the server with their health and counts.

    \b
    astrocyte --server localhost:50051 sources
    """
    found = await session.backend.call(session.caller, ListSources())
    if session.as_json:
        print_json(found)
        return
    table = grid(("source", "type", "bank", "state", "health", "messages", "lag"))
    for one in found:
        health = "healthy" if one.healthy else f"unhealthy: {one.detail}"
        counts = {"stored": one.stored, "duplicates": one.duplicates, "refused": one.refused, "failed": one.failed}
        told = ", ".join(f"{count} {name}" for name, count in counts.items() if count or name == "stored")
        kind = f"{one.type}: {one.driver}" if one.driver else one.type
        lag = "" if one.lag is None else str(one.lag)
        table.add_row(one.source_id, kind, one.target, str(one.state), health, told, lag)
    OUT.print(table if found else "There are no sources.")
