"""Commands for the server: serve, info."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from astrocyte.api.requests import GetServerInfo
from astrocyte.cli.connection import Session, failures, operation, settings
from astrocyte.cli.logs import to_standard_error
from astrocyte.cli.output import OUT, facts, megabytes, print_json, stamp
from astrocyte.errors import FailedPrecondition
from astrocyte.model import IndexMemory

if TYPE_CHECKING:
    from astrocyte.app import App

# Between two looks whether a server still has its place among those of one database.
WATCH_SECONDS = 1.0

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command()
@click.option("--host", help="Address to listen on.  [default: 127.0.0.1]")
@click.option("--port", type=click.IntRange(0, 65_535), help="Port; 0 selects a free port.  [default: 50051]")
@click.option("--http", metavar="[HOST:]PORT", help="Serve REST, the console and /docs over HTTP on this address.")
@click.option("--tls-cert-file", type=_FILE, help="PEM certificate chain; enables TLS.")
@click.option("--tls-key-file", type=_FILE, help="PEM private key of the certificate.")
@click.option("--workers", type=click.IntRange(1, 64), help="Server processes on the same port.  [default: 1]")
@click.option("--read-only", is_flag=True, default=None, help="Write nothing; the data directory may be read-only.")
@click.option("--insecure", is_flag=True, default=None, help="Allow non-loopback addresses without TLS and API keys.")
@click.pass_context
def serve(context: click.Context, /, **flags: Any) -> None:
    """Run the server until SIGTERM or Ctrl-C, then drain.

    \b
    astrocyte serve
    astrocyte --data-dir /var/lib/astrocyte serve --port 50052
    astrocyte serve --http 8080
    astrocyte serve --workers 4
    astrocyte --config astrocyte.yaml serve

    Prints "Listening on ADDRESS" when ready, for gRPC first. Without TLS and API keys, only loopback addresses are
    allowed; --insecure removes this restriction. Other settings are in the file that --config names
    (docs/configuration.md).

    --workers starts several processes on the data directory (docs/scaling.md); a worker that dies is started again.
    """
    to_standard_error(logging.INFO)
    read_only = flags.pop("read_only")
    http = flags.pop("http")
    overrides: dict[str, Any] = {"server": {name: value for name, value in flags.items() if value is not None}}
    if read_only is not None:
        overrides["read_only"] = read_only
    if http is not None:
        overrides["gateway"] = _address(http)
    with failures():
        asyncio.run(_serve(context, overrides))


def _address(text: str) -> dict[str, Any]:
    """Host and port of an address; without a host, that of the settings.

    Raises:
        BadParameter: There is no port.
    """
    host, _, port = text.rpartition(":")
    if not port.isdecimal() or not port.isascii():
        raise click.BadParameter(f"{text!r} has no port; write 8080 or 127.0.0.1:8080", param_hint="--http")
    return {"port": int(port), **({"host": host.strip("[]")} if host else {})}


async def _serve(context: click.Context, overrides: dict[str, Any]) -> None:
    from astrocyte.app import App
    from astrocyte.server import check_exposure
    from astrocyte.server import serve as serve_app

    chosen = settings(context, **overrides)
    to_standard_error(logging.getLevelNamesMapping()[chosen.observability.log_level.upper()])
    # Fail before the store is opened.
    check_exposure(chosen)
    if chosen.server.workers > 1:
        from astrocyte.workers.supervisor import supervise

        await supervise(chosen, lambda address: click.echo(f"Listening on {address}"))
        return
    app = App(chosen)
    app.start_purging()
    stopped = asyncio.Event()
    watching = None if app.follower is None else asyncio.create_task(_watch(app, stopped))
    await serve_app(app, announce=lambda address: click.echo(f"Listening on {address}"), stopped=stopped)
    if watching is not None and watching.done():
        raise FailedPrecondition("another server took over the work of this one, which was cut off; start it again")
    if watching is not None:
        watching.cancel()


async def _watch(app: App, stopped: asyncio.Event) -> None:
    """End the server when another one took its background work, or it missed what others wrote."""
    while app.healthy and not (app.follower is not None and app.follower.lost.is_set()):  # noqa: ASYNC110 - of two
        await asyncio.sleep(WATCH_SECONDS)
    stopped.set()


@click.command()
@operation
async def info(session: Session, /) -> None:
    """Show versions, build, embedder and store of the server.

    \b
    astrocyte info
    astrocyte --server localhost:50051 info
    """
    found = await session.backend.call(session.caller, GetServerInfo())
    if session.as_json:
        print_json(found)
        return
    rows: list[tuple[str, object]] = [
        ("astrocyte", found.version),
        ("core", f"{found.core_version} ({found.core_profile}, {found.simd})"),
        ("embedder", f"{found.embedding_model}, {found.dimensions} dimensions"),
        ("tokens", found.token_table),
        ("store", f"{found.store}, SQLite {found.sqlite_version}, schema {found.schema_version}"),
        ("indexes", _indexes(found.index_memory)),
        ("started", stamp(found.started_at)),
    ]
    OUT.print(facts(rows))


def _indexes(memory: IndexMemory) -> str:
    bound = f" of {megabytes(memory.budget_bytes)}" if memory.budget_bytes else ""
    banks = "bank" if memory.loaded_banks == 1 else "banks"
    return f"{memory.loaded_banks:,} {banks} in memory, {megabytes(memory.bytes)}{bound}"
