"""Commands on memories: retain, recall, history, forget, undelete."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from datetime import datetime
from mimetypes import guess_type
from pathlib import Path
from typing import Any

import click

from astrocyte.api.requests import Forget, History, Recall, Retain, UndeleteMemory
from astrocyte.cli.connection import Session, operation
from astrocyte.cli.naming import several_banks, with_banks
from astrocyte.cli.output import ERR, OUT, hits_table, milliseconds, print_json
from astrocyte.cli.values import MOMENT, PAIR
from astrocyte.model import (
    ContentPart,
    ContentType,
    DedupAction,
    DetailLevel,
    ForgetResult,
    ForgetSelector,
    FusionMethod,
    MemoryHit,
    MetadataValue,
    PartKind,
    RecallQuery,
    RecallResult,
    RecallTrace,
    RetainItem,
    RetainResult,
    TagMatch,
    TimeRange,
)

# Ids that a person reads before saying yes; --json has the first thousand.
SHOWN_IDS = 10
# What answered, by the tier that a trace names.
TIERS = {1: "cache", 2: "words", 3: "full", 4: "agentic"}

Pairs = tuple[tuple[str, MetadataValue], ...]
Body = Callable[..., object]


@click.command()
@click.argument("bank")
@click.argument("content")
@click.option(
    "--type",
    "content_type",
    type=click.Choice([kind.value for kind in ContentType]),
    default="text",
    show_default=True,
    help="Format; it chooses how long content is cut.",
)
@click.option("--tag", "tags", multiple=True, help="A label to filter by; may be repeated.")
@click.option("--meta", "metadata", type=PAIR, multiple=True, help="A pair to keep with it; may be repeated.")
@click.option("--speaker", help="Who said it.")
@click.option("--session", "session_id", help="The conversation that it belongs to.")
@click.option("--occurred-at", type=MOMENT, help="When it happened, with the time zone.")
@click.option("--source", help="Where it comes from, in your words.")
@click.option(
    "--profile", "extraction_profile", help="Extraction profile: of the server's settings, or a built-in one."
)
@click.option(
    "--image",
    "images",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    multiple=True,
    help="An image to describe after the content; may be repeated. It needs a language model.",
)
@click.option(
    "--on-duplicate",
    "dedup_action",
    type=click.Choice([kind.value for kind in DedupAction]),
    help="What to do when the bank holds nearly the same: keep that, store both, or replace it.",
)
@operation
async def retain(
    session: Session,
    /,
    bank: str,
    content: str,
    metadata: Pairs,
    images: tuple[Path, ...],
    dedup_action: str | None,
    **fields: Any,
) -> None:
    """Store CONTENT in BANK; "-" reads it from standard input.

    \b
    astrocyte retain family "Mara is allergic to sesame." --tag health --speaker Ines
    astrocyte retain trips "We land at 17:40." --occurred-at 2025-08-04T12:00:00Z
    pandoc minutes.docx -t plain | astrocyte retain work - --type document
    astrocyte retain trips "" --image pier.jpg

    The bank is made on first use. The command returns when the memory is on the disk.
    """
    text = sys.stdin.read() if content == "-" else content
    item = RetainItem(
        content=text,
        metadata=dict(metadata),
        dedup_action=DedupAction(dedup_action) if dedup_action else None,
        parts=tuple(_image(path) for path in images),
        **fields,
    )
    result = await session.backend.call(session.caller, Retain(bank, item))
    if session.as_json:
        print_json(result)
    else:
        click.echo(_retained(result))
        for warning in result.warnings:
            click.echo(warning, err=True)


def _image(path: Path) -> ContentPart:
    return ContentPart(PartKind.IMAGE, data=path.read_bytes(), media_type=guess_type(path.name)[0] or "")


def _retained(result: RetainResult) -> str:
    if result.deduplicated and not result.stored:
        return f"The bank holds this already: {result.memory_id}"
    if not result.stored:
        return f"Not stored: {result.error}"
    verb = "Updated" if result.was_update else "Stored"
    near = f"; nearly the same as {result.near_duplicate_of}" if result.near_duplicate_of else ""
    return (
        f"{verb} {result.memory_id} ({result.memory_layer}, {result.token_count} tokens in {result.chunk_count} "
        f"chunk{'s' if result.chunk_count != 1 else ''}, position {result.position}){near}"
    )


def _options(*options: Callable[[Body], Body]) -> Callable[[Body], Body]:
    """Several options as one decorator, in the order that --help lists them."""

    def decorate(body: Body) -> Body:
        for option in reversed(options):
            body = option(body)
        return body

    return decorate


wanted = _options(
    click.option("-k", "--max-results", type=click.IntRange(1), default=10, show_default=True, help="Hits."),
    click.option("--max-tokens", type=click.IntRange(1), help="Token budget of all hits together."),
    click.option("--tag", "tags", multiple=True, help="Only memories with this label; may be repeated."),
)
_common = _options(
    wanted,
    click.option("--trace", is_flag=True, help="Show how the answer came about."),
)
filtered = _options(
    click.option(
        "--tag-match",
        type=click.Choice([kind.value for kind in TagMatch]),
        default="any",
        show_default=True,
        help="How several labels have to match.",
    ),
    click.option("--fact-type", "fact_types", multiple=True, help="Only this kind of fact; may be repeated."),
    click.option("--meta", "metadata", type=PAIR, multiple=True, help="Only memories with this pair."),
    click.option("--session", "session_id", help="Only memories of this conversation."),
    click.option("--since", type=MOMENT, help="Only what happened at this time or later."),
    click.option("--until", type=MOMENT, help="Only what happened at this time or earlier."),
    click.option("--as-of", type=MOMENT, help="The bank as it was known at this time."),
    click.option("--valid-at", type=MOMENT, help="Only what was true at this time."),
    click.option(
        "--fusion",
        "fusion_method",
        type=click.Choice([kind.value for kind in FusionMethod]),
        help="How the arms' lists become one.",
    ),
    click.option(
        "--detail",
        type=click.Choice([kind.value for kind in DetailLevel]),
        default="chunk",
        show_default=True,
        help="Show titles, best chunks or whole memories.",
    ),
)


@click.command()
@click.argument("bank")
@click.argument("query")
@several_banks
@_common
@filtered
@operation
async def recall(
    session: Session, /, bank: str, query: str, also: tuple[str, ...], strategy: str | None, trace: bool, **filters: Any
) -> None:
    """Find the memories of BANK that matter to QUERY, best first. @NAME is a configured group of banks.

    \b
    astrocyte recall family "what is Mara allergic to?"
    astrocyte recall family "trips" --since 2025-08-01T00:00:00Z --tag travel -k 5
    astrocyte --json recall family "wedding date" | jq -r '.hits[0].text'
    astrocyte recall me "the rate limit?" --also team --also company --strategy cascade

    Words and meaning are both searched, and times in the query ("last May") count. The last column shows at which rank
    each arm of the search had the memory.
    """
    asked = with_banks(query_of(bank, query, filters), also, strategy)
    result = await session.backend.call(session.caller, Recall(asked))
    if session.as_json:
        print_json(result)
    else:
        _print_hits(result.hits, result.total_available, result.trace, truncated=result.truncated, trace=trace)
        _print_confidence(result, trace=trace)


@click.command()
@click.argument("bank")
@click.argument("query")
@click.option("--as-of", type=MOMENT, required=True, help="The instant to look back to, with the time zone.")
@_common
@operation
async def history(session: Session, /, bank: str, query: str, trace: bool, **filters: Any) -> None:
    """Recall on BANK as it was known at an instant.

    \b
    astrocyte history family "wedding date" --as-of 2025-05-01T00:00:00Z

    Shows memories in the version of that instant, and what has been updated since as it was. What was forgotten stays
    forgotten, at every instant. recall --as-of does the same with all filters.
    """
    result = await session.backend.call(session.caller, History(RecallQuery(query, bank, **filters)))
    if session.as_json:
        print_json(result)
    else:
        _print_hits(result.hits, result.total_available, result.trace, truncated=result.truncated, trace=trace)


def query_of(bank: str, query: str, filters: dict[str, Any]) -> RecallQuery:
    """The query that the options of `wanted` and `filtered` make."""
    since, until = filters.pop("since"), filters.pop("until")
    fusion = filters.pop("fusion_method")
    return RecallQuery(
        query=query,
        bank_id=bank,
        tag_match=TagMatch(filters.pop("tag_match")),
        metadata=dict(filters.pop("metadata")),
        time_range=TimeRange(since, until) if since or until else None,
        fusion_method=FusionMethod(fusion) if fusion else None,
        detail_level=DetailLevel(filters.pop("detail")),
        include_sources=True,
        **filters,
    )


def _print_confidence(result: RecallResult, *, trace: bool) -> None:
    """Whether memory holds it, where that is in doubt or the trace was asked for."""
    if result.confidence is None or not (result.abstain or trace):
        return
    doubt = "; memory may not hold what was asked" if result.abstain else ""
    OUT.print(f"confidence {result.confidence:.2f}{doubt}", style="dim", soft_wrap=True)


def _print_hits(
    hits: Sequence[MemoryHit], total: int, how: RecallTrace | None, *, truncated: bool, trace: bool
) -> None:
    if not hits:
        click.echo("Nothing was found.")
    else:
        OUT.print(hits_table(hits))
    if how is None:
        return
    cut = "; the token budget cut the list" if truncated else ""
    OUT.print(f"{len(hits)} of {total} candidates in {how.latency_ms or 0:.2f} ms{cut}", style="dim", soft_wrap=True)
    if trace:
        OUT.print(f"fused by {how.fusion_method}; {how.plan}; position {how.position}", style="dim", soft_wrap=True)
        why = f" ({how.tier_reason})" if how.tier_reason else ""
        OUT.print(f"answered by: {TIERS.get(how.tier_used or 0, 'nobody')}{why}", style="dim", soft_wrap=True)
        OUT.print(f"asks: {how.intent} ({how.intent_confidence:.1f})", style="dim", soft_wrap=True)
        OUT.print(f"stages in ms: {milliseconds(how.stage_timings_ms)}", style="dim", soft_wrap=True)
        OUT.print(f"arms in ms: {milliseconds(how.strategy_timings_ms)}", style="dim", soft_wrap=True)
        for bank in how.banks:
            reason = f" ({bank.reason})" if bank.reason else ""
            line = f"{bank.bank_id}: {bank.outcome}{reason}, {bank.kept} of {bank.found} hits, weight {bank.weight:g}"
            OUT.print(line, style="dim", soft_wrap=True)
        for side in how.engines:
            reason = f" ({side.reason})" if side.reason else ""
            line = f"{side.engine}: {side.outcome}{reason}, {side.kept} of {side.found} hits, weight {side.weight:g}"
            OUT.print(line, style="dim", soft_wrap=True)
        for window in how.time_windows:
            OUT.print(f"time in the query: {window.start} to {window.end}", style="dim", soft_wrap=True)


@click.command()
@click.argument("bank")
@click.option("--id", "memory_ids", multiple=True, help="This memory; may be repeated.")
@click.option("--tag", "tags", multiple=True, help="Memories with this label; may be repeated.")
@click.option("--before", "before_date", type=MOMENT, help="What happened before this time.")
@click.option("--all", "everything", is_flag=True, help="Every memory of the bank.")
@click.option(
    "--erase", "compliance", is_flag=True, help="Erase from the disk as well, with a receipt; not undeletable."
)
@click.option("--reason", help="Why; kept in the log.")
@click.option("--dry-run", is_flag=True, help="Only tell what would be forgotten.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@operation
async def forget(  # each parameter is an option
    session: Session,
    /,
    bank: str,
    memory_ids: tuple[str, ...],
    tags: tuple[str, ...],
    before_date: datetime | None,
    everything: bool,
    compliance: bool,
    reason: str | None,
    dry_run: bool,
    yes: bool,
) -> None:
    """Take memories out of every answer of BANK, history included.

    \b
    astrocyte forget family --id mem_0198a7... --reason "asked to"
    astrocyte forget family --tag travel --before 2025-06-01T00:00:00Z --dry-run
    astrocyte forget family --all --erase --yes

    Selectors combine with AND. The command asks before it forgets. What was forgotten can be brought back with undelete
    for thirty days (forget.purge_after_days); with --erase no byte of it is left when the command returns.
    """
    selector = ForgetSelector(memory_ids, tags, "all" if everything else None, before_date)
    preview = await session.backend.call(session.caller, Forget(bank, selector, reason=reason, dry_run=True))
    # An erasure also takes what was forgotten before, which a preview does not count.
    # An engine beside the bank may hold what this server does not.
    elsewhere = any(engine.reason == "dry_run" for engine in preview.engines)
    if dry_run or (preview.deleted_count == 0 and not compliance and not elsewhere):
        _print_forgotten(session, preview)
        return
    if not yes:
        _confirm(preview, compliance=compliance)
    result = await session.backend.call(session.caller, Forget(bank, selector, compliance=compliance, reason=reason))
    _print_forgotten(session, result)


def _confirm(preview: ForgetResult, *, compliance: bool) -> None:
    if not sys.stdin.isatty():
        raise click.UsageError("nobody is there to ask: add --yes, or --dry-run to see what would go")
    for memory_id in preview.memory_ids[:SHOWN_IDS]:
        ERR.print(f"  {memory_id}", style="dim")
    if preview.deleted_count > SHOWN_IDS:
        ERR.print(f"  and {preview.deleted_count - SHOWN_IDS} more", style="dim")
    verb = "Erase for good" if compliance else "Forget"
    click.confirm(f"{verb} {preview.deleted_count} memories?", abort=True, err=True)


def _print_forgotten(session: Session, result: ForgetResult) -> None:
    if session.as_json:
        print_json(result)
        return
    for engine in result.engines:
        reason = f" ({engine.reason})" if engine.reason else ""
        click.echo(f"engine {engine.engine}: {engine.outcome}{reason}, {engine.deleted_count} memories.")
    if result.deleted_count == 0 and result.receipt is None:
        click.echo("No memory matches; nothing was forgotten.")
        return
    verb = "would go" if result.dry_run else "erased" if result.receipt else "forgotten"
    click.echo(f"{result.deleted_count} memories {verb}.")
    if result.receipt:
        rows = ", ".join(f"{name} {count}" for name, count in result.receipt.counts.items())
        OUT.print(
            f"Rows erased: {rows}. Root hash after: {result.receipt.root_hash_after}", style="dim", soft_wrap=True
        )


@click.command()
@click.argument("bank")
@click.argument("memory_id")
@operation
async def undelete(session: Session, /, bank: str, memory_id: str) -> None:
    """Bring the forgotten memory MEMORY_ID of BANK back.

    \b
    astrocyte undelete family mem_0198a7...
    """
    memory = await session.backend.call(session.caller, UndeleteMemory(bank, memory_id))
    if session.as_json:
        print_json(memory)
    else:
        click.echo(f"{memory.memory_id} is back: {memory.content}")
