"""Command ``astrocyte import``: retains what a file or folder has; resumable."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, tzinfo
from itertools import chain, islice
from pathlib import Path

import click

from astrocyte.api.requests import StreamRetain
from astrocyte.cli.connection import Session, operation
from astrocyte.cli.failures import ExitCode, explain
from astrocyte.cli.output import print_json, progress_bar, stamp
from astrocyte.cli.portability.archive_import import import_archive
from astrocyte.cli.portability.sources.entries import Entry, SourcePath, checked, fitting
from astrocyte.cli.portability.sources.json_lines import json_lines
from astrocyte.cli.portability.sources.recognition import LINES, SOURCES, opened, recognised
from astrocyte.cli.values import ZONE
from astrocyte.errors import AstrocyteError, ProviderUnavailable, RateLimited, StoreError
from astrocyte.facade.archives import is_archive
from astrocyte.model import DedupAction, OnConflict, RetainItem, RetainResult

# Default batch limit of the server: larger requests are refused, smaller ones commit more often.
BATCH_LINES = 256
# Enough for a terminal; --json lists all.
SHOWN_FAILURES = 20
SHOWN_ITEMS = 3
SHOWN_CHARS = 70


@dataclass
class Report:
    """Outcomes of the entries of a source."""

    lines: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    failures: list[dict[str, object]] = field(default_factory=list)

    def add(self, place: str, outcome: RetainResult | AstrocyteError) -> None:
        """Count the outcome of an entry."""
        self.lines += 1
        if isinstance(outcome, AstrocyteError):
            self.fail(place, explain(outcome))
        elif outcome.stored:
            self.outcomes["updated" if outcome.was_update else "created"] += 1
        elif outcome.deduplicated:
            self.outcomes["skipped"] += 1
        else:
            self.fail(place, outcome.error or "not stored")

    def fail(self, place: str, message: str) -> None:
        """Count an entry that was not stored."""
        self.outcomes["failed"] += 1
        self.failures.append({"place": place, "error": message})


@dataclass
class Survey:
    """Contents of a source, found by reading it once."""

    format: str
    memories: int = 0
    speakers: Counter[str] = field(default_factory=Counter)
    sessions: set[str] = field(default_factory=set)
    metadata: Counter[str] = field(default_factory=Counter)
    first: datetime | None = None
    last: datetime | None = None
    samples: list[RetainItem] = field(default_factory=list)
    problems: list[dict[str, object]] = field(default_factory=list)

    def add(self, entry: Entry) -> None:
        """Count an entry."""
        item = entry.item
        if item is None:
            self.problems.append({"place": entry.place, "error": entry.problem})
            return
        self.memories += 1
        if item.speaker:
            self.speakers[item.speaker] += 1
        if item.session_id:
            self.sessions.add(item.session_id)
        self.metadata.update(item.metadata.keys())
        if item.occurred_at is not None:
            self.first = min(self.first or item.occurred_at, item.occurred_at)
            self.last = max(self.last or item.occurred_at, item.occurred_at)
        if len(self.samples) < SHOWN_ITEMS:
            self.samples.append(item)


@click.command("import")
@click.argument("bank")
@click.argument("file", type=click.Path(exists=True, path_type=Path))
@click.option(
    "--format",
    "given",
    type=click.Choice([LINES, *SOURCES]),
    help="Format of FILE.  [default: recognised by name and content]",
)
@click.option(
    "--time-zone",
    "zone",
    type=ZONE,
    help="Zone of times without one. Without it, WhatsApp times and days of notes are UTC, and others are refused.",
)
@click.option("--dry-run", "--check", "dry_run", is_flag=True, help="Show what was recognised; store nothing.")
@click.option("--skip-invalid", is_flag=True, help="Store the others if some entries are invalid.")
@click.option(
    "--on-duplicate",
    "dedup_action",
    type=click.Choice([kind.value for kind in DedupAction]),
    help="Action for a near duplicate: skip the new memory, store both, or update the old one.",
)
@click.option(
    "--on-conflict",
    type=click.Choice([action.value for action in OnConflict]),
    help="Archives: action on memories that the bank has.  [default: skip]",
)
@click.option("--grants", is_flag=True, help="Archives: give the grants of the archive.")
@click.option("--graph", is_flag=True, help="Archives: store links, merges, names and metadata of entities.")
@click.option("--observations", is_flag=True, help="Archives: store the observations.")
@click.option("--mental-models", is_flag=True, help="Archives: store the mental models.")
@click.option("--directives", is_flag=True, help="Archives: store the directives, which later answers follow.")
@click.option("--wiki-pages", is_flag=True, help="Archives: store the wiki pages.")
@operation
async def import_file(
    session: Session,
    /,
    bank: str,
    file: Path,
    given: str | None,
    zone: tzinfo | None,
    dry_run: bool,
    skip_invalid: bool,
    dedup_action: str | None,
    on_conflict: str | None,
    **sections: bool,
) -> None:
    """Retain what FILE has in BANK: JSON Lines, chats, mails, subtitles, notes, or an archive of `astrocyte export`.

    \b
    astrocyte import friends examples/conversation.jsonl
    astrocyte --server localhost:50051 import me conversations.json --dry-run
    astrocyte import family "WhatsApp Chat.txt" --time-zone Europe/Berlin
    astrocyte import copy friends.ama.jsonl --on-conflict error

    \b
    Formats: JSON Lines and arrays; ChatGPT, Claude, Slack, Discord, Telegram and WhatsApp chats; .vtt and .srt;
    Markdown files and folders; .mbox and .eml; exports of mem0 and Zep; folders and zip files of these. An archive is
    stored once all of it has been verified, with ids, history and times (docs/export-import.md).

    \b
    A line of JSON Lines is one memory:
      {"content": "We land at 17:40.", "speaker": "Ines", "session_id": "2025-07-27",
       "occurred_at": "2025-07-27T18:07:12Z", "tags": ["travel"], "metadata": {"flight": 2}}

    Keys: content, content_type, occurred_at, valid_from, valid_until, session_id, speaker, source, tags, metadata,
    fact_type, extraction_profile and pii_detected; also common names of these, such as text, from, user, role, date, ts
    and thread. Other keys, such as id and model, are stored as metadata. Times are ISO 8601 or numbers since 1970.

    The whole file is read first; nothing is stored if an entry is invalid, unless --skip-invalid is given. After an
    interruption, run the command again: what the bank already has is skipped.
    """
    wanted = [name for name, is_wanted in sections.items() if is_wanted]
    if given is None and is_archive(file):
        refused = {"--on-duplicate": dedup_action, "--dry-run": dry_run, "--skip-invalid": skip_invalid}
        await import_archive(session, bank, file, on_conflict, wanted, refused=refused)
        return
    options = [*(["on_conflict"] if on_conflict is not None else []), *wanted]
    if options:
        names = ", ".join(f"--{name.replace('_', '-')}" for name in options)
        raise click.UsageError(f"{names}: for archives only, and {file} is none; leave it out")
    report = Report()
    with _opened(file) as source:
        survey = _survey(source, given, zone)
        if not dry_run:
            if survey.problems and not skip_invalid:
                _refuse(file, survey.problems)
            report.outcomes["failed"] += len(survey.problems)
            report.failures += survey.problems
            entries = _entries(source, survey.format, zone)
            action = DedupAction(dedup_action) if dedup_action else None
            await _store(session, bank, entries, survey.memories, action, report)
    _print(session, survey, report, dry_run=dry_run)
    if report.failures:
        raise click.exceptions.Exit(ExitCode.PARTIAL)


@contextmanager
def _opened(file: Path) -> Iterator[SourcePath]:
    with ExitStack() as stack:
        try:
            source = stack.enter_context(opened(file))
        except (ValueError, OSError) as error:
            raise click.UsageError(str(error)) from None
        yield source


def _survey(file: SourcePath, given: str | None, zone: tzinfo | None) -> Survey:
    name = given or ""
    try:
        name = name or recognised(file)
        survey = Survey(name)
        for entry in _entries(file, survey.format, zone):
            survey.add(entry)
    except (ValueError, OSError) as error:
        raise click.UsageError(str(error)) from None
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        title = SOURCES[name].title if name in SOURCES else name
        raise click.UsageError(
            f"{file} is read as {title} and lacks {error}; name another format with --format"
        ) from None
    if name in SOURCES and survey.problems and not survey.memories:
        first = survey.problems[0]
        raise click.UsageError(
            f"{file} is read as {SOURCES[name].title}, and none of it can be used "
            f"({first['place']}: {first['error']}); name another format with --format"
        )
    return survey


def _entries(file: SourcePath, name: str, zone: tzinfo | None) -> Iterator[Entry]:
    found = json_lines(file, zone) if name == LINES else SOURCES[name].read(file, zone)
    return chain.from_iterable(map(fitting, map(checked, found)))


async def _store(  # the parts of an import
    session: Session, bank: str, entries: Iterator[Entry], total: int, action: DedupAction | None, report: Report
) -> None:
    wanted = ((entry.place, replace(entry.item, dedup_action=action)) for entry in entries if entry.item is not None)
    with progress_bar() as progress:
        task = progress.add_task(f"Importing into {bank}", total=total)
        while batch := list(islice(wanted, BATCH_LINES)):
            items = [item for _, item in batch]
            outcomes = await session.backend.call(session.caller, StreamRetain(bank, items))
            for (place, _), outcome in zip(batch, outcomes, strict=True):
                report.add(place, outcome)
            progress.advance(task, len(batch))
            _stop_if_hopeless(outcomes)


def _stop_if_hopeless(outcomes: Sequence[RetainResult | AstrocyteError]) -> None:
    """Stop on a failure that would affect every further entry; the next run skips the stored ones.

    Raises:
        AstrocyteError: All entries of a batch failed for a reason unrelated to their content.
    """
    reasons = (StoreError, ProviderUnavailable, RateLimited)
    if all(isinstance(outcome, reasons) for outcome in outcomes) and isinstance(outcomes[0], AstrocyteError):
        raise outcomes[0]


def _refuse(file: Path, problems: Sequence[dict[str, object]]) -> None:
    _tell(problems, f"{file}, ")
    raise click.UsageError(f"{len(problems)} invalid entries; nothing was stored (--skip-invalid stores the others)")


def _tell(problems: Sequence[dict[str, object]], prefix: str = "") -> None:
    for one in problems[:SHOWN_FAILURES]:
        click.echo(f"{prefix}{one['place']}: {one['error']}", err=True)
    if len(problems) > SHOWN_FAILURES:
        click.echo(f"and {len(problems) - SHOWN_FAILURES} more", err=True)


def _print(session: Session, survey: Survey, report: Report, *, dry_run: bool) -> None:
    counts = {name: report.outcomes[name] for name in ("created", "updated", "skipped", "failed")}
    if session.as_json:
        seen = {
            "format": survey.format,
            "memories": survey.memories,
            "speakers": dict(survey.speakers.most_common()),
            "sessions": len(survey.sessions),
            "metadata": dict(survey.metadata.most_common()),
            "first": survey.first,
            "last": survey.last,
        }
        failures = survey.problems if dry_run else report.failures
        print_json({**seen, "dry_run": dry_run, **counts, "failures": failures})
        return
    if not survey.memories and not survey.problems:
        click.echo("The file has nothing to import.", err=True)
    if dry_run:
        _describe(survey)
        return
    _tell(report.failures)
    click.echo(
        f"{survey.memories} memories: " + ", ".join(f"{count} {name}" for name, count in counts.items() if count)
    )


def _describe(survey: Survey) -> None:
    title = SOURCES[survey.format].title if survey.format in SOURCES else "JSON Lines"
    click.echo(f"{title}: {survey.memories} memories; nothing was stored.")
    if survey.first is not None:
        click.echo(f"times: {stamp(survey.first)} to {stamp(survey.last)}")
    if survey.sessions:
        click.echo(f"conversations: {len(survey.sessions)}")
    if survey.speakers:
        named = ", ".join(f"{name} ({count})" for name, count in survey.speakers.most_common(10))
        click.echo(f"speakers: {named}")
    if survey.metadata:
        named = ", ".join(f"{name} ({count})" for name, count in survey.metadata.most_common(10))
        click.echo(f"metadata: {named}")
    for item in survey.samples:
        text = " ".join(item.content.split())
        click.echo(
            f"  {f'{item.speaker}: ' if item.speaker else ''}{text[:SHOWN_CHARS]}{'…' * (len(text) > SHOWN_CHARS)}"
        )
    _tell(survey.problems)
