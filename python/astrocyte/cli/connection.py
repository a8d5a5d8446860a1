"""Backend of a command: a data directory in this process, or a server."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, NamedTuple, ParamSpec

import click
from click.core import ParameterSource

from astrocyte.api import Backend
from astrocyte.cli.failures import exit_code, explain
from astrocyte.config import Settings, load_settings
from astrocyte.model import DEFAULT_TENANT, Caller

if TYPE_CHECKING:
    # Loaded late, as below.
    from astrocyte.app import App

P = ParamSpec("P")


@dataclass(frozen=True)
class Session:
    """Backend, caller and output format for the body of a command."""

    backend: Backend
    caller: Caller
    as_json: bool
    remote: bool


class Source(NamedTuple):
    """Backend of a command, and the application behind it; None for a server's."""

    backend: Backend
    app: App | None


def operation(body: Callable[Concatenate[Session, P], Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """Run a command's body on an open backend; report a failure as one line and an exit code."""

    @functools.wraps(body)
    def command(*args: P.args, **kwargs: P.kwargs) -> None:
        context = click.get_current_context().find_root()

        async def run() -> None:
            # Access to the data directory needs no grant; a server authenticates the caller by the credential.
            caller = Caller(context.obj["tenant"] or DEFAULT_TENANT, operator=not is_remote(context))
            async with _backend(context) as backend:
                await body(
                    Session(backend, caller, as_json=bool(context.obj["as_json"]), remote=is_remote(context)),
                    *args,
                    **kwargs,
                )

        with failures():
            asyncio.run(run())

    return command


@contextmanager
def failures() -> Iterator[None]:
    """Report an error as one line on stderr and an exit code; with --debug, as a traceback."""
    try:
        yield
    except (click.ClickException, click.exceptions.Exit, click.Abort):
        raise
    except Exception as error:
        if click.get_current_context().find_root().obj["debug"]:
            raise
        click.echo(f"astrocyte: {explain(error)}", err=True)
        raise click.exceptions.Exit(exit_code(error)) from error


def settings(context: click.Context, **overrides: Any) -> Settings:
    """Settings from --config, the environment, --data-dir and ``overrides``; later sources win.

    Raises:
        ConfigError: A key is unknown or a value out of range.
    """
    options = context.find_root().obj
    if options["data_dir"]:
        overrides["data_dir"] = Path(options["data_dir"])
    return load_settings(options["config"], overrides=overrides)


@asynccontextmanager
async def _backend(context: click.Context) -> AsyncIterator[Backend]:
    async with opened(context, None if is_remote(context) else settings(context)) as source:
        yield source.backend


@asynccontextmanager
async def opened(context: click.Context, chosen: Settings | None) -> AsyncIterator[Source]:
    """Open the server, or the application on the data directory of the settings; close it at the end.

    Args:
        context: Root context of the command line.
        chosen: Settings of the application; not used for a server.
    """
    options = context.obj
    # Late imports: `--help` and remote calls do not load the store.
    if is_remote(context):
        from astrocyte.client import RemoteBackend

        remote = RemoteBackend(
            options["server"],
            api_key=options["token"],
            ca=options["ca"],
            certificate=options["cert"],
            key=options["key"],
        )
        try:
            yield Source(remote, None)
        finally:
            await remote.close()
        return
    for name in ("ca", "cert", "key"):
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise click.UsageError(f"--{name} is for a connection to a server; pass --server, or leave it out")
    from astrocyte.app import App

    app = App(chosen or settings(context))
    try:
        yield Source(app.backend, app)
    finally:
        await app.close()


def is_remote(context: click.Context) -> bool:
    """True for a server. A directory on the command line overrides an address in the environment."""
    named = context.obj["server"] is not None
    if named and context.obj["data_dir"]:
        if context.get_parameter_source("server") is ParameterSource.COMMANDLINE:
            raise click.UsageError("--server and --data-dir exclude each other")
        return False
    return named
