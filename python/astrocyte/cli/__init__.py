"""The command ``astrocyte``: a server to start, and every operation by hand.

One file per group of commands; `connection` says where a command works, `output` how it answers, `failures` how it
ends.
"""

from __future__ import annotations

import click

from astrocyte.cli.access import access
from astrocyte.cli.audit import audit
from astrocyte.cli.banks import banks
from astrocyte.cli.engines import engines
from astrocyte.cli.explaining import explain
from astrocyte.cli.failures import ExitCode
from astrocyte.cli.holds import holds
from astrocyte.cli.importing import import_file
from astrocyte.cli.keys import keys
from astrocyte.cli.logs import to_standard_error
from astrocyte.cli.memories import forget, history, recall, retain, undelete
from astrocyte.cli.operations import operations, reindex
from astrocyte.cli.reflecting import reflect
from astrocyte.cli.server import info, serve

__all__ = ["cli", "main"]

# Exit codes as --help lists them, one line each; \b keeps click from joining the lines.
_CODES = "\n".join(f"  {code.value:>3}  {code.meaning}" for code in ExitCode)

_HELP = f"""Agent memory: retain what matters, recall it in a millisecond, look back, and forget for good.

A command works on a data directory in this process, or on a running server:

\b
  astrocyte retain family "Mara is allergic to sesame."        in ./astrocyte-data
  astrocyte recall family "what can Mara not eat?"
  astrocyte --server localhost:50051 recall family "what can Mara not eat?"

One process owns a data directory. While a server runs on it, reach it with --server; set ASTROCYTE_ADDRESS to make
that the default. A server that wants a key reads it from ASTROCYTE_TOKEN, and --config or ASTROCYTE_CONFIG names the
settings file (docs/configuration.md).

\b
Exit codes:
{_CODES}
"""


@click.group(help=_HELP, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="astrocyte-grpc", prog_name="astrocyte")
@click.option("--server", metavar="ADDRESS", envvar="ASTROCYTE_ADDRESS", help="Work on the server at host:port.")
@click.option(
    "--ca-file",
    type=click.Path(exists=True, dir_okay=False),
    envvar="ASTROCYTE_CA_FILE",
    help="Speak TLS to the server, which these PEM roots vouch for.",
)
@click.option(
    "--token",
    metavar="KEY",
    envvar="ASTROCYTE_TOKEN",
    help="API key for the server; better set ASTROCYTE_TOKEN, which no process list shows.",
)
@click.option("--data-dir", type=click.Path(file_okay=False), help="Work in this process, on this directory.")
@click.option(
    "--config",
    type=click.Path(exists=True, dir_okay=False),
    envvar="ASTROCYTE_CONFIG",
    help="Settings in YAML, for work in this process and for serve.",
)
@click.option("--tenant", help="Work on the banks and keys of this tenant; a server knows yours by the credential.")
@click.option("--json", "as_json", is_flag=True, help="Answer in JSON, for programs.")
@click.option("--debug", is_flag=True, help="Show where a failure comes from.")
@click.pass_context
def cli(context: click.Context, /, **options: object) -> None:
    """Keep the options that all commands share."""
    context.obj = options
    to_standard_error()


COMMANDS = (
    serve, retain, recall, explain, reflect, history, forget, undelete, import_file, banks, access, holds, audit, keys,
    reindex, operations, engines, info,
)  # fmt: skip
for command in COMMANDS:
    cli.add_command(command)


def main() -> None:
    """Run the command line of this process."""
    cli(prog_name="astrocyte")
