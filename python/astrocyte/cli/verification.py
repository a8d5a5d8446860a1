"""Command that verifies a data directory."""

from __future__ import annotations

import click

from astrocyte.cli.connection import failures, settings
from astrocyte.cli.output import OUT, grid, print_json

# As `audit verify` has it.
DAMAGED = 4


@click.command()
@click.pass_context
def verify(context: click.Context, /) -> None:
    """Verify every page, row, content hash and vector of a data directory; exit code 4 if something is damaged.

    \b
    astrocyte verify
    astrocyte --data-dir /var/lib/astrocyte verify

    Writes nothing, and takes a shared lock on the directory: stop a server that writes first; read-only servers may
    keep running. A damaged memory is left out of answers: restore it from a backup, or forget it with --compliance.
    """
    with failures():
        from astrocyte.pipelines.retain.drafts import hash_fits
        from astrocyte.stores.sqlite import open_store

        chosen = settings(context, read_only=True)
        store = open_store(chosen.data_dir.expanduser(), hash_fits=hash_fits, read_only=True)
        try:
            found = store.verify()
        finally:
            store.close()
        if context.find_root().obj["as_json"]:
            print_json(found)
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
        if not found.intact:
            raise click.exceptions.Exit(DAMAGED)
