"""Command that moves a store between SQLite and PostgreSQL."""

from __future__ import annotations

import click

from astrocyte.cli.connection import failures, settings
from astrocyte.cli.output import OUT, grid, print_json

KINDS = click.Choice(["sqlite", "postgres"])


@click.command("migrate-store")
@click.argument("source", type=KINDS)
@click.argument("target", type=KINDS)
@click.pass_context
def migrate_store(context: click.Context, /, source: str, target: str) -> None:
    """Copy the store of data_dir into the PostgreSQL database of store.dsn, or back.

    \b
    astrocyte migrate-store sqlite postgres
    astrocyte migrate-store postgres sqlite

    Stop all servers first. The target must be empty, and is written in one transaction: ids, positions, history,
    grants, keys, holds and the audit trail are kept, and every table is read back and compared. The source stays as it
    is. Private memories of agents, quotas and checkpoints have files of their own and are not copied. Encrypted banks
    are moved by export and import. Afterwards set store.backend.
    """
    if source == target:
        raise click.UsageError("the source and the target are the same")
    with failures():
        # Imported late: the driver of PostgreSQL is an extra.
        from astrocyte.stores.transfer import postgres_side, sqlite_side, transfer
        from astrocyte.wiring.storage import postgres_dsn, postgres_store

        chosen = settings(context)
        postgres_store(chosen)
        if chosen.store.encryption.enabled:
            raise chosen.refusal(
                ("store", "encryption", "enabled"),
                "rows are copied as they are; export each bank, and import it into the encrypted store",
            )
        own, dsn = chosen.store, postgres_dsn(chosen)
        data_dir = chosen.data_dir.expanduser()
        with (
            sqlite_side(data_dir, reads=source == "sqlite") as files,
            postgres_side(dsn, own.schema_name, own.connect_seconds) as database,
        ):
            counts = transfer(files, database) if source == "sqlite" else transfer(database, files)
        if context.find_root().obj["as_json"]:
            print_json(counts)
            return
        table = grid(("table", "rows"), right=("rows",))
        for name, count in sorted(counts.items()):
            if count:
                table.add_row(name, f"{count:,}")
        OUT.print(table)
        click.echo(f"{sum(counts.values()):,} rows copied and compared; set store.backend to {target}")
