"""Command for coverage: the topics that a bank should cover and does not."""

from __future__ import annotations

from typing import TextIO

import click
from rich.text import Text

from astrocyte.api.requests import AuditCoverage
from astrocyte.cli.connection import Session, operation
from astrocyte.cli.output import OUT, grid, print_json


@click.command()
@click.argument("bank")
@click.argument("scope", default="")
@click.option("--question", "questions", multiple=True, help="Question that the bank should answer; may be repeated.")
@click.option("--file", "file", type=click.File("r", encoding="utf-8"), help="File with a question on each line.")
@click.option("--tag", "tags", multiple=True, help="Only memories with this tag; may be repeated.")
@click.option("--max-memories", type=click.IntRange(1), default=50, show_default=True, help="Memories that are read.")
@operation
async def coverage(
    session: Session,
    /,
    bank: str,
    scope: str,
    questions: tuple[str, ...],
    file: TextIO | None,
    tags: tuple[str, ...],
    max_memories: int,
) -> None:
    """Print what BANK covers of SCOPE, a description of what it is about, and of questions; and the gaps.

    \b
    astrocyte coverage support "customer support tickets, refunds and escalation paths"
    astrocyte coverage support --question "How are refunds approved?"
    """
    lines = [line.strip() for line in file or () if line.strip()]
    request = AuditCoverage(bank, scope, (*questions, *lines), max_memories, tags=tags)
    found = await session.backend.call(session.caller, request)
    if session.as_json:
        print_json(found)
        return
    click.echo(f"Coverage {found.coverage_score:.0%} of {found.memories_scanned} memories, by {found.method}.")
    if found.error:
        click.echo(found.error)
    if found.gaps:
        table = grid(("severity", "gap", "reason"))
        for gap in found.gaps:
            table.add_row(str(gap.severity), Text(gap.topic), Text(gap.reason))
        OUT.print(table)
    for one in found.topics:
        if one.is_covered:
            click.echo(f"covered  {one.topic}: {', '.join(one.memory_ids)}")
