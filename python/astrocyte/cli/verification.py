"""Command that verifies a store."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from astrocyte.cli.connection import failures, settings
from astrocyte.cli.output import OUT, grid, print_json, progress_bar
from astrocyte.config import Settings
from astrocyte.errors import SchemaTooNew, StoreError

if TYPE_CHECKING:
    from astrocyte.stores.sqlite.agent_verification import AgentVerification

# As `audit verify` has it.
DAMAGED = 4
# Enough for a terminal; --json lists all.
MOST_SHOWN = 20


@click.command()
@click.pass_context
def verify(context: click.Context, /) -> None:
    """Verify every row, content hash and vector of a store; exit code 4 if something is damaged.

    \b
    astrocyte verify
    astrocyte --data-dir /var/lib/astrocyte verify

    Of a data directory, every page and the private memories of agents are verified as well. Nothing is written, and the
    directory gets a shared lock: stop a server that writes first; read-only servers may keep running.

    Where store.backend is postgres, servers may keep running and write. The database checks its pages itself (data
    checksums, pg_amcheck).

    A damaged memory is left out of answers: restore it from a backup, or forget it with --erase.
    """
    with failures():
        from astrocyte.wiring.storage import store_of

        chosen = settings(context, read_only=True)
        in_files = chosen.store.backend == "sqlite"
        if not in_files:
            chosen = settings(context)
        store = store_of(chosen, chosen.data_dir.expanduser() if in_files else None)
        try:
            with progress_bar() as bar:
                task = bar.add_task("versions", total=None)
                found = store.verify(lambda done, total: bar.update(task, completed=done, total=total))
            agents = _agents(chosen) if in_files else None
        finally:
            store.close()
        if context.find_root().obj["as_json"]:
            print_json({**asdict(found), "agent_memory": None if agents is None else asdict(agents)})
        else:
            table = grid(("tenant", "bank", "memory", "row", "problem"), right=("row",))
            for one in found.damaged:
                table.add_row(one.tenant, one.bank_id, one.memory_id or "?", str(one.row_key), one.problem)
            if found.damaged:
                OUT.print(table)
            for problem in found.database:
                click.echo(problem)
            damaged = f"{len(found.damaged):,} damaged" if found.damaged else "none damaged"
            click.echo(f"{found.versions:,} versions in {found.banks:,} banks, {damaged}")
            if agents is not None:
                _tell(agents)
        if not found.intact or (agents is not None and not agents.intact):
            raise click.exceptions.Exit(DAMAGED)


def _agents(chosen: Settings) -> AgentVerification | None:
    """Verify the private memories of agents; None where the directory has no file of them."""
    from astrocyte.stores.sqlite.agent_memory import SqliteAgentMemory
    from astrocyte.stores.sqlite.agent_verification import AgentVerification
    from astrocyte.stores.sqlite.engine.data_directory import AGENT_MEMORY

    path = chosen.data_dir.expanduser() / AGENT_MEMORY
    if not path.exists():
        return None
    try:
        memory = SqliteAgentMemory(path, clock=lambda: 0, settings=chosen.store, read_only=True)
    except SchemaTooNew:
        raise
    except StoreError as error:
        # Its first page is damaged.
        return AgentVerification(0, (), (error.message,))
    try:
        return memory.verify()
    finally:
        memory.close()


def _tell(agents: AgentVerification) -> None:
    for problem in agents.database:
        click.echo(problem)
    if agents.damaged:
        click.echo(f"damaged rows of agent memories: {', '.join(map(str, agents.damaged[:MOST_SHOWN]))}")
    damaged = f"{len(agents.damaged):,} damaged" if agents.damaged else "none damaged"
    click.echo(f"{agents.memories:,} agent memories, {damaged}")
