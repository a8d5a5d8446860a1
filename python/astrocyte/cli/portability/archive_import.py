"""Import of an archive by the command ``astrocyte import``."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

import click

from astrocyte.api.requests import OPTIONAL_PARTS
from astrocyte.cli.connection import Session
from astrocyte.cli.failures import ExitCode
from astrocyte.cli.output import print_json, progress_bar
from astrocyte.facade.archives import import_file
from astrocyte.model import ImportProgress, ImportResult, OnConflict

# Enough for a terminal; --json lists all that the result has.
SHOWN_FAILURES = 20
COUNTS = (
    "imported",
    "overwritten",
    "forgotten",
    "skipped",
    "errors",
    "grants",
    "entities",
    "links",
    "observations",
    "mental_models",
    "directives",
    "wiki_pages",
    "kept",
)


async def import_archive(
    session: Session,
    bank: str,
    file: Path,
    on_conflict: str | None,
    sections: Collection[str],
    refused: Mapping[str, object],
) -> None:
    """Import an archive, and report on it.

    Args:
        session: The backend and the output format.
        bank: The bank.
        file: The archive.
        on_conflict: The action on memories that the bank has; None for skip.
        sections: Sections beside the memories to store.
        refused: Options that have no meaning for archives, with their values.
    """
    given = next((name for name, value in refused.items() if value), None)
    if given is not None:
        raise click.UsageError(f"{given} has no meaning for an archive, and {file} is one; leave it out")
    action = OnConflict(on_conflict or OnConflict.SKIP)
    with progress_bar() as bar:
        task = bar.add_task(f"Importing into {bank}", total=None)

        def report(state: ImportProgress) -> None:
            bar.update(task, completed=state.memories, total=state.total_memories or None)

        result = await import_file(
            session.backend, session.caller, bank, file, on_conflict=action, sections=sections, report=report
        )
    _print(session, result)
    if result.errors:
        raise click.exceptions.Exit(ExitCode.PARTIAL)


def _print(session: Session, result: ImportResult) -> None:
    if session.as_json:
        print_json(result)
        return
    for failure in result.failures[:SHOWN_FAILURES]:
        place = f"line {failure.line}" if failure.line else "archive"
        click.echo(f"{place}: {failure.memory_id}: {failure.error}", err=True)
    counts = [f"{count} {name.replace('_', ' ')}" for name in COUNTS if (count := getattr(result, name))]
    click.echo(", ".join(counts) or "Nothing to import.")
    if result.left_out:
        options = ", ".join(f"--{part.replace('_', '-')}" for part in OPTIONAL_PARTS)
        click.echo(f"{result.left_out} rows of other sections were left out; see {options}", err=True)
