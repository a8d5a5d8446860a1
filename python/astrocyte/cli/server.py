"""Commands for the server: serve, info."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any

import click

from astrocyte.api.requests import GetServerInfo
from astrocyte.cli.connection import Session, failures, operation, settings
from astrocyte.cli.logs import to_standard_error
from astrocyte.cli.output import OUT, facts, megabytes, print_json, stamp
from astrocyte.model import IndexMemory

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command()
@click.option("--host", help="Address to listen on.  [default: 127.0.0.1]")
@click.option("--port", type=click.IntRange(0, 65_535), help="Port; 0 selects a free port.  [default: 50051]")
@click.option("--tls-cert-file", type=_FILE, help="PEM certificate chain; enables TLS.")
@click.option("--tls-key-file", type=_FILE, help="PEM private key of the certificate.")
@click.option("--read-only", is_flag=True, default=None, help="Write nothing; the data directory may be read-only.")
@click.option("--insecure", is_flag=True, default=None, help="Allow non-loopback addresses without TLS and API keys.")
@click.pass_context
def serve(context: click.Context, /, **flags: Any) -> None:
    """Run the gRPC server until SIGTERM or Ctrl-C, then drain.

    \b
    astrocyte serve
    astrocyte --data-dir /var/lib/astrocyte serve --port 50052
    astrocyte --config astrocyte.yaml serve

    Prints "Listening on ADDRESS" when ready. Without TLS and API keys, only loopback addresses are allowed; --insecure
    removes this restriction. Other settings are in the file that --config names (docs/configuration.md).
    """
    to_standard_error(logging.INFO)
    read_only = flags.pop("read_only")
    given = {name: value for name, value in flags.items() if value is not None}
    with failures():
        asyncio.run(_serve(context, given, read_only=read_only))


async def _serve(context: click.Context, given: dict[str, Any], *, read_only: bool | None) -> None:
    from astrocyte.app import App
    from astrocyte.server import check_exposure
    from astrocyte.server import serve as serve_app

    chosen = settings(context, server=given, **({} if read_only is None else {"read_only": read_only}))
    to_standard_error(logging.getLevelNamesMapping()[chosen.observability.log_level.upper()])
    # Fail before the store is opened.
    check_exposure(chosen)
    app = App(chosen)
    app.start_purging()
    await serve_app(app, announce=lambda address: click.echo(f"Listening on {address}"))


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
