"""Command ``astrocyte import``: retains the lines of a JSON Lines file; resumable."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any

import click
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from astrocyte.api.requests import StreamRetain
from astrocyte.cli.connection import Session, operation
from astrocyte.cli.failures import ExitCode, explain
from astrocyte.cli.output import ERR, print_json
from astrocyte.cli.values import parse_moment
from astrocyte.errors import AstrocyteError, ProviderUnavailable, RateLimited, StoreError
from astrocyte.model import DedupAction, Metadata, RetainItem, RetainResult

# Default batch limit of the server: larger requests are refused, smaller ones commit more often.
BATCH_LINES = 256
# Enough for a terminal; --json lists all.
SHOWN_FAILURES = 20
# Keys that are copied unchanged, with their types.
_COPIED = {
    "content_type": str,
    "source": str,
    "session_id": str,
    "speaker": str,
    "fact_type": str,
    "extraction_profile": str,
    "pii_detected": bool,
}
_TIMES = {"occurred_at": "occurred_at", "time": "occurred_at", "valid_from": "valid_from", "valid_until": "valid_until"}
KNOWN_KEYS = frozenset({"content", "text", "id", "tags", "metadata", *_COPIED, *_TIMES})


@dataclass
class Report:
    """Outcomes of the lines of a file."""

    lines: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    failures: list[dict[str, object]] = field(default_factory=list)

    def add(self, number: int, outcome: RetainResult | AstrocyteError) -> None:
        """Count the outcome of a line."""
        self.lines += 1
        if isinstance(outcome, AstrocyteError):
            self.fail(number, explain(outcome))
        elif outcome.stored:
            self.outcomes["updated" if outcome.was_update else "created"] += 1
        elif outcome.deduplicated:
            self.outcomes["skipped"] += 1
        else:
            self.fail(number, outcome.error or "not stored")

    def fail(self, number: int, message: str) -> None:
        """Count a line that was not stored."""
        self.outcomes["failed"] += 1
        self.failures.append({"line": number, "error": message})


@click.command("import")
@click.argument("bank")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--on-duplicate",
    "dedup_action",
    type=click.Choice([kind.value for kind in DedupAction]),
    help="Action for a near duplicate: skip the new memory, store both, or update the old one.",
)
@click.option("--check", is_flag=True, help="Check the file without storing anything.")
@operation
async def import_file(session: Session, /, bank: str, file: Path, dedup_action: str | None, check: bool) -> None:
    """Retain every line of FILE (JSON Lines) in BANK.

    \b
    astrocyte import friends examples/conversation.jsonl
    astrocyte --server localhost:50051 import friends log.jsonl

    \b
    A line is one memory:
      {"content": "We land at 17:40.", "speaker": "Ines", "session_id": "2025-07-27",
       "occurred_at": "2025-07-27T18:07:12Z", "tags": ["travel"], "metadata": {"flight": 2}}

    Keys: content (or text), content_type, occurred_at (or time), valid_from, valid_until, session_id, speaker, source,
    tags, metadata, fact_type, extraction_profile, pii_detected, and id, which is stored as metadata. Other keys are
    errors. The whole file is checked first; nothing is stored if a line is invalid.

    After an interruption, run the command again: content that the bank already has is skipped.
    """
    wrong = [(number, problem) for number, _, problem in _lines(file) if problem]
    if wrong:
        _refuse(file, wrong)
    total = sum(1 for _ in _lines(file))
    report = Report()
    if not check:
        await _store(session, bank, file, total, DedupAction(dedup_action) if dedup_action else None, report)
    _print_report(session, report, total, check=check)
    if report.failures:
        raise click.exceptions.Exit(ExitCode.PARTIAL)


async def _store(
    session: Session, bank: str, file: Path, total: int, action: DedupAction | None, report: Report
) -> None:
    numbered = ((number, item) for number, item, _ in _lines(file, action) if item is not None)
    with _progress() as progress:
        task = progress.add_task(f"Importing into {bank}", total=total)
        while batch := list(islice(numbered, BATCH_LINES)):
            items = [item for _, item in batch]
            outcomes = await session.backend.call(session.caller, StreamRetain(bank, items))
            for (number, _), outcome in zip(batch, outcomes, strict=True):
                report.add(number, outcome)
            progress.advance(task, len(batch))
            _stop_if_hopeless(outcomes)


def _stop_if_hopeless(outcomes: Sequence[RetainResult | AstrocyteError]) -> None:
    """Stop on a failure that would affect every further line; the next run skips the stored lines.

    Raises:
        AstrocyteError: All lines of a batch failed for a reason unrelated to their content.
    """
    reasons = (StoreError, ProviderUnavailable, RateLimited)
    if all(isinstance(outcome, reasons) for outcome in outcomes) and isinstance(outcomes[0], AstrocyteError):
        raise outcomes[0]


def _progress() -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=ERR,
        transient=True,
        disable=not ERR.is_terminal,
    )


def _lines(file: Path, action: DedupAction | None = None) -> Iterator[tuple[int, RetainItem | None, str]]:
    """Yield number (from 1), item and problem of every non-blank line; the item is None if there is a problem."""
    with file.open("rb") as stream:
        for number, line in enumerate(stream, start=1):
            if not line.strip():
                continue
            try:
                yield number, read_line(line, action), ""
            except ValueError as error:
                yield number, None, str(error)


def read_line(line: bytes, action: DedupAction | None = None) -> RetainItem:
    """Parse one line of the file.

    Raises:
        ValueError: The line is invalid; the message says why.
    """
    try:
        # Some editors write a byte order mark; json would read it as another encoding.
        values = json.loads(line.decode("utf-8-sig"))
    except json.JSONDecodeError as error:
        raise ValueError(f"not JSON: {error.msg} at column {error.colno}") from None
    except UnicodeDecodeError:
        raise ValueError("not UTF-8 text") from None
    if not isinstance(values, dict):
        raise ValueError(f'expected an object like {{"content": "..."}}, got {type(values).__name__}')  # noqa: TRY004 - one kind of error for a caller
    unknown = sorted(values.keys() - KNOWN_KEYS)
    if unknown:
        raise ValueError(f"unknown key {unknown[0]!r}; expected one of {', '.join(sorted(KNOWN_KEYS))}")
    given = {key: value for key, value in values.items() if value is not None}
    return RetainItem(
        content=_one_of(given, "content", "text"),
        metadata=_metadata(given),
        tags=_tags(given),
        dedup_action=action,
        **_copied(given),
        **_times(given),
    )


def _one_of(given: dict[str, object], first: str, second: str) -> str:
    if (first in given) == (second in given):
        raise ValueError(f"expected exactly one of {first} and {second}")
    value = given.get(first, given.get(second))
    if not isinstance(value, str):
        raise ValueError(f"{first}: expected text, got {value!r}")  # noqa: TRY004 - as in read_line
    return value


def _metadata(given: dict[str, object]) -> Metadata:
    metadata = given.get("metadata", {})
    if not isinstance(metadata, dict):
        raise ValueError(f"metadata: expected an object, got {metadata!r}")  # noqa: TRY004 - as in read_line
    for key, value in metadata.items():
        if isinstance(value, (list, dict)):
            raise ValueError(f"metadata.{key}: expected text, a number, true, false or null, got {value!r}")  # noqa: TRY004 - as in read_line
    if "id" not in given:
        return metadata
    if "id" in metadata:
        raise ValueError("id is given twice: as a key and in metadata")
    if not isinstance(given["id"], (str, int)):
        raise ValueError(f"id: expected text or a whole number, got {given['id']!r}")  # noqa: TRY004 - as in read_line
    return {**metadata, "id": given["id"]}


def _tags(given: dict[str, object]) -> tuple[str, ...]:
    tags = given.get("tags", [])
    if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
        raise ValueError(f"tags: expected a list of texts, got {tags!r}")
    return tuple(tags)


def _copied(given: dict[str, object]) -> dict[str, Any]:
    found = {key: given[key] for key in _COPIED if key in given}
    for key, value in found.items():
        if not isinstance(value, _COPIED[key]):
            raise ValueError(f"{key}: expected {'true or false' if _COPIED[key] is bool else 'text'}, got {value!r}")  # noqa: TRY004 - as in read_line
    return found


def _times(given: dict[str, object]) -> dict[str, Any]:
    if "occurred_at" in given and "time" in given:
        raise ValueError("expected at most one of occurred_at and time")
    times: dict[str, datetime] = {}
    for key, name in _TIMES.items():
        if key in given:
            try:
                times[name] = parse_moment(str(given[key]))
            except ValueError as error:
                raise ValueError(f"{key}: {error}") from None
    return times


def _refuse(file: Path, wrong: Sequence[tuple[int, str]]) -> None:
    for number, problem in wrong[:SHOWN_FAILURES]:
        click.echo(f"{file}, line {number}: {problem}", err=True)
    more = f" (first {SHOWN_FAILURES} shown)" if len(wrong) > SHOWN_FAILURES else ""
    raise click.UsageError(f"{len(wrong)} invalid lines{more}; nothing was stored")


def _print_report(session: Session, report: Report, total: int, *, check: bool) -> None:
    counts = {name: report.outcomes[name] for name in ("created", "updated", "skipped", "failed")}
    if session.as_json:
        print_json({"lines": total, "checked_only": check, **counts, "failures": report.failures})
        return
    if check:
        click.echo(f"{total} valid lines; nothing was stored.")
        return
    for failure in report.failures[:SHOWN_FAILURES]:
        click.echo(f"line {failure['line']}: {failure['error']}", err=True)
    click.echo(f"{total} lines: " + ", ".join(f"{count} {name}" for name, count in counts.items() if count))
