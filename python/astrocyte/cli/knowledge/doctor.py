"""Command for the diagnosis and repair of a bank."""

from __future__ import annotations

import click
from rich.text import Text

from astrocyte.api.requests import DiagnoseBank, RepairBank
from astrocyte.cli.connection import Session, operation
from astrocyte.cli.output import OUT, grid, print_json
from astrocyte.model import Check, RepairResult


@click.command()
@click.argument("bank")
@click.option(
    "--check",
    "checks",
    multiple=True,
    type=click.Choice([str(check) for check in Check]),
    help="Check; may be repeated.",
)
@click.option(
    "--max-memories", type=click.IntRange(0), default=0, help="Memories that a check reads.  [default: 10000]"
)
@click.option("--fix", is_flag=True, help="Mend what can be mended without loss.")
@click.option("--dry-run", is_flag=True, help="Say what --fix would mend, and mend nothing.")
@operation
async def doctor(
    session: Session, /, bank: str, checks: tuple[str, ...], max_memories: int, *, fix: bool, dry_run: bool
) -> None:
    """Look for problems of BANK: duplicates, contradictions, stale knowledge, missing vectors and others.

    \b
    astrocyte doctor family
    astrocyte doctor family --check duplicates --check contradictions
    astrocyte doctor family --fix --dry-run
    astrocyte doctor family --fix
    """
    if dry_run and not fix:
        raise click.UsageError("--dry-run has no effect without --fix")
    found = await session.backend.call(session.caller, DiagnoseBank(bank, tuple(map(Check, checks)), max_memories))
    repaired: RepairResult | None = None
    if fix:
        repaired = await session.backend.call(session.caller, RepairBank(bank, validate_only=dry_run))
    if session.as_json:
        print_json({"diagnosis": found, "repair": repaired})
        return
    table = grid(("severity", "check", "problem", "memories or items", "remedy"))
    for one in found.findings:
        table.add_row(str(one.severity), str(one.check), Text(one.detail), Text(", ".join(one.ids)), one.remedy)
    OUT.print(table if found.findings else "No problem was found.")
    for report in found.checks:
        click.echo(f"{report.check}: {report.found} found, {report.examined} of {report.total} examined")
    if repaired is not None:
        click.echo(_told(repaired, dry_run=dry_run))
    elif any(one.is_repairable for one in found.findings):
        click.echo(f"--fix mends {sum(one.is_repairable for one in found.findings)} of the problems.")


def _told(repaired: RepairResult, *, dry_run: bool) -> str:
    """A repair in a sentence."""
    rebuilt = " The index is built anew." if repaired.index_rebuilt else ""
    counts = f"{repaired.rows_deleted} orphaned rows and {repaired.pages_deleted} pages"
    if dry_run:
        return f"--fix would delete {counts}, and compile {repaired.pages_compiled} pages.{rebuilt}"
    return f"Deleted {counts}, and compiled {repaired.pages_compiled} pages.{rebuilt}"
