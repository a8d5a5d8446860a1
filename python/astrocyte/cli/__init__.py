"""The command ``astrocyte``: starts a server and calls every operation.

One file per group of commands. `connection` opens the backend, `output` formats results, `failures` maps errors to exit
codes.
"""

from __future__ import annotations

import click

from astrocyte.cli.access import access
from astrocyte.cli.agents.agent_memory import agent
from astrocyte.cli.agents.shared_kb import kb
from astrocyte.cli.agents.terms import terms
from astrocyte.cli.audit import audit
from astrocyte.cli.banks import banks
from astrocyte.cli.engines import engines
from astrocyte.cli.explain import explain
from astrocyte.cli.failures import ExitCode
from astrocyte.cli.holds import holds
from astrocyte.cli.keys import keys
from astrocyte.cli.knowledge.coverage import coverage
from astrocyte.cli.knowledge.directives import directives
from astrocyte.cli.knowledge.doctor import doctor
from astrocyte.cli.knowledge.graph import graph
from astrocyte.cli.knowledge.models import models
from astrocyte.cli.knowledge.observations import observations
from astrocyte.cli.knowledge.wiki import wiki
from astrocyte.cli.logs import to_standard_error
from astrocyte.cli.mcp import mcp
from astrocyte.cli.memories import forget, history, recall, retain, undelete
from astrocyte.cli.migration import migrate_store
from astrocyte.cli.operations import consolidate, lifecycle, operations, reindex
from astrocyte.cli.portability.export_file import export_bank
from astrocyte.cli.portability.import_file import import_file
from astrocyte.cli.reflect import reflect
from astrocyte.cli.server import info, serve
from astrocyte.cli.sources import sources
from astrocyte.cli.verification import verify

__all__ = ["cli", "main"]

# One line for each exit code; \b keeps click from joining the lines.
_CODES = "\n".join(f"  {code.value:>3}  {code.meaning}" for code in ExitCode)

_FILE = click.Path(exists=True, dir_okay=False)

_HELP = f"""Memory for AI agents: retain, recall, reflect, history, forget.

A command opens a data directory in this process, or connects to a running server:

\b
  astrocyte retain family "Mara is allergic to sesame."        in ./astrocyte-data
  astrocyte recall family "what can Mara not eat?"
  astrocyte --server localhost:50051 recall family "what can Mara not eat?"

Only one process can open a data directory. While a server uses it, connect with --server, or set ASTROCYTE_ADDRESS. The
environment variable ASTROCYTE_TOKEN holds the API key. --config or ASTROCYTE_CONFIG names the settings file
(docs/configuration.md).

\b
Exit codes:
{_CODES}
"""


@click.group(help=_HELP, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="astrocyte-grpc", prog_name="astrocyte")
@click.option("--server", metavar="ADDRESS", envvar="ASTROCYTE_ADDRESS", help="Connect to the server at host:port.")
@click.option(
    "--ca",
    "--ca-file",
    "ca",
    type=_FILE,
    envvar="ASTROCYTE_CA_FILE",
    help="Connect with TLS; PEM file of trusted root certificates.",
)
@click.option(
    "--cert",
    type=_FILE,
    envvar="ASTROCYTE_CERT_FILE",
    help="Connect with TLS; PEM file of the client certificate, for a server that requires one.",
)
@click.option(
    "--key", type=_FILE, envvar="ASTROCYTE_KEY_FILE", help="PEM file of the certificate's private key, not encrypted."
)
@click.option(
    "--token",
    metavar="KEY",
    envvar="ASTROCYTE_TOKEN",
    help="API key for the server. Prefer ASTROCYTE_TOKEN: process lists show options.",
)
@click.option("--data-dir", type=click.Path(file_okay=False), help="Open this data directory in this process.")
@click.option(
    "--config",
    type=click.Path(exists=True, dir_okay=False),
    envvar="ASTROCYTE_CONFIG",
    help="Settings file (YAML), for serve and for commands without a server.",
)
@click.option("--tenant", help="Tenant of the banks and keys. A server takes the tenant from the credential.")
@click.option(
    "--log-format",
    type=click.Choice(["auto", "json", "text"]),
    default="auto",
    show_default=True,
    envvar="ASTROCYTE_LOG_FORMAT",
    help="Form of the log on standard error; auto is text on a terminal, else JSON.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--debug", is_flag=True, help="Print a traceback on failure.")
@click.pass_context
def cli(context: click.Context, /, **options: object) -> None:
    """Store the options that all commands share."""
    context.obj = options
    to_standard_error()


COMMANDS = (
    serve, retain, recall, explain, reflect, history, forget, undelete, import_file, export_bank, graph, banks, access,
    holds, audit, keys, reindex, consolidate, lifecycle, operations, engines, sources, agent, terms, directives,
    observations,
    models, info, verify, mcp,
    holds, audit, keys, reindex, consolidate, operations, engines, agent, terms, directives, observations, models, wiki,
    coverage, doctor, kb, info, verify, migrate_store, mcp,
)  # fmt: skip
for command in COMMANDS:
    cli.add_command(command)


def main() -> None:
    """Run the command line of this process."""
    cli(prog_name="astrocyte")
