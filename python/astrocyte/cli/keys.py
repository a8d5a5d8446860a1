"""Commands for API keys: mint, list, revoke."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import click

from astrocyte.api.requests import CreateApiKey, ListApiKeys, RevokeApiKey
from astrocyte.cli.connection import Session, operation
from astrocyte.cli.output import ERR, OUT, grid, print_json, stamp


@click.group()
def keys() -> None:
    """Create, list and revoke API keys.

    \b
    astrocyte keys mint assistant agent:assistant --days 90
    astrocyte keys list
    astrocyte keys revoke 5f0c1d2e3a4b5c6d

    Without --server, the commands need a data directory that no server uses. With --server, they need a credential with
    the permission admin on every bank.
    """


@keys.command("mint")
@click.argument("name")
@click.argument("principal")
@click.option("--days", type=click.FloatRange(min=0, min_open=True), help="Lifetime in days.  [default: unlimited]")
@operation
async def mint(session: Session, /, name: str, principal: str, days: float | None) -> None:
    """Create a key NAME for PRINCIPAL and print it. The key cannot be shown again.

    \b
    astrocyte keys mint assistant agent:assistant
    KEY=$(astrocyte keys mint reporting service:reporting --days 30)

    To rotate a key, create a second one, deploy it, and revoke the first.
    """
    until = None if days is None else datetime.now(UTC) + timedelta(days=days)
    made, secret = await session.backend.call(session.caller, CreateApiKey(name, principal, expires_at=until))
    if session.as_json:
        print_json({"api_key": made, "secret": secret})
        return
    click.echo(secret)
    ends = f", until {stamp(made.expires_at)}" if made.expires_at else ""
    ERR.print(f"key {made.key_id} of {made.principal}, tenant {made.tenant}{ends}", style="dim", soft_wrap=True)


@keys.command("list")
@operation
async def list_keys(session: Session, /) -> None:
    """List created keys, including revoked ones, oldest first.

    \b
    astrocyte keys list
    """
    found = await session.backend.call(session.caller, ListApiKeys())
    if session.as_json:
        print_json(found)
        return
    table = grid(("key", "name", "principal", "created", "expires", "last used", "revoked"))
    for key in found:
        times = (key.created_at, key.expires_at, key.last_used_at, key.revoked_at)
        table.add_row(key.key_id, key.name, key.principal, *map(stamp, times))
    OUT.print(table if found else "There are no keys.")


@keys.command("revoke")
@click.argument("key")
@operation
async def revoke(session: Session, /, key: str) -> None:
    """Revoke the key with the id KEY (the part after astro_), effective from the next call.

    \b
    astrocyte keys revoke 5f0c1d2e3a4b5c6d
    """
    ended = await session.backend.call(session.caller, RevokeApiKey(key))
    if session.as_json:
        print_json(ended)
    else:
        click.echo(f"Revoked {ended.key_id} ({ended.name}, {ended.principal}).")
