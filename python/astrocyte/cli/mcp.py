"""Command ``astrocyte mcp``: MCP server over standard input and output, or over HTTP."""

from __future__ import annotations

import asyncio
import logging
from contextlib import AsyncExitStack
from typing import Any, cast

import click

from astrocyte.cli.connection import Source, failures, is_remote, opened, settings
from astrocyte.cli.logs import to_standard_error
from astrocyte.config import Settings
from astrocyte.errors import ConfigError
from astrocyte.model import DEFAULT_TENANT, Caller


@click.command()
@click.option("--http", "over_http", is_flag=True, help="Serve streamable HTTP in place of standard input and output.")
@click.option("--host", help="Address of the HTTP transport.  [default: 127.0.0.1]")
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    help="Port of the HTTP transport; 0 selects a free port.  [default: 50052]",
)
@click.option("--bank", "bank_id", help="Fix the bank; tools take no bank then.")
@click.pass_context
def mcp(context: click.Context, /, over_http: bool, host: str | None, port: int | None, bank_id: str | None) -> None:
    """Run an MCP server for agents (docs/mcp.md).

    \b
    astrocyte mcp --bank family                              started by an MCP client
    astrocyte --server localhost:50051 mcp --bank family     beside a running server
    astrocyte mcp --http --port 8080                         for clients that connect

    In a data directory, the configured streams and polls are read meanwhile.

    Over standard input and output, calls act for mcp.principal, or for whoever holds the data directory; with --server,
    for the API key in ASTROCYTE_TOKEN. Over HTTP, the header "Authorization: Bearer KEY" of each request identifies the
    caller; http://HOST:PORT/mcp/BANK fixes the bank for a client. Prints "Listening on URL" when ready.

    Settings are in the sections mcp, server and auth (docs/configuration.md).
    """
    if not over_http and (host is not None or port is not None):
        raise click.UsageError("--host and --port are for --http; add it, or leave them out")
    to_standard_error(logging.INFO if over_http else logging.WARNING)
    address = {name: value for name, value in (("host", host), ("port", port)) if value is not None}
    with failures():
        _require_sdk()
        chosen = settings(context, mcp=address)
        if bank_id is not None:
            from astrocyte.policy.requests import field_checks

            field_checks.bank_id(bank_id)
        asyncio.run(_run(context, chosen, bank_id, over_http=over_http))


def _require_sdk() -> None:
    try:
        import mcp as _  # noqa: F401
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"the MCP server needs {error.name}, which is not installed; install astrocyte-grpc[mcp]",
            metadata={"package": str(error.name)},
        ) from error


async def _run(context: click.Context, chosen: Settings, bank_id: str | None, *, over_http: bool) -> None:
    remote = is_remote(context.find_root())
    if over_http:
        from astrocyte.mcp.http import check_exposure

        # Fail before the store is opened.
        check_exposure(chosen, remote=remote)
    async with AsyncExitStack() as stack:
        source = await stack.enter_async_context(opened(context.find_root(), chosen))
        if source.app is not None:
            # It has the directory for as long as it runs, so nobody else can read the sources.
            source.app.sources.start()
        if over_http:
            await _serve_http(chosen, source, bank_id)
        else:
            await _serve_stdio(context, chosen, source, bank_id)


async def _serve_http(chosen: Settings, source: Source, bank_id: str | None) -> None:
    from astrocyte.client import RemoteBackend
    from astrocyte.mcp.http import http_app, local_sessions, remote_sessions, serve
    from astrocyte.services.authentication import Bearers

    if source.app is None:
        sessions = remote_sessions(chosen, cast("RemoteBackend", source.backend))
    else:
        sessions = local_sessions(chosen, source.backend, Bearers(chosen, source.app.gate.keys.caller))
    await serve(http_app(chosen, sessions, bank_id), chosen, lambda url: click.echo(f"Listening on {url}"))


async def _serve_stdio(context: click.Context, chosen: Settings, source: Source, bank_id: str | None) -> None:
    from mcp.server.stdio import stdio_server

    from astrocyte.mcp.server import Session, mcp_server

    caller = Caller() if source.app is None else _stdio_caller(context, chosen)
    session = Session(source.backend, caller, bank_id)
    server: Any = mcp_server(chosen, lambda _: session)
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


def _stdio_caller(context: click.Context, chosen: Settings) -> Caller:
    """The configured principal, else the operator, who holds the data directory."""
    tenant = context.find_root().obj["tenant"] or DEFAULT_TENANT
    if chosen.mcp.principal is None:
        return Caller(tenant, operator=True)
    return Caller(tenant, chosen.mcp.principal)
