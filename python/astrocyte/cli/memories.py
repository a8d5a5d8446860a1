"""Commands for memories: retain, recall, history, forget, undelete."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from datetime import datetime
from mimetypes import guess_type
from pathlib import Path
from typing import Any

import click
from rich.text import Text

from astrocyte.api.requests import Forget, History, Recall, Retain, UndeleteMemory
from astrocyte.cli.bank_arguments import several_banks, with_banks
from astrocyte.cli.connection import Session, operation
from astrocyte.cli.output import (
    ERR,
    OUT,
    hits_table,
    milliseconds,
    path_text,
    prefix_text,
    print_directives,
    print_json,
)
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

# Ids shown before the confirmation; --json has the first thousand.
SHOWN_IDS = 10
# Names of the tiers in a trace.
TIERS = {1: "cache", 2: "keyword", 3: "full", 4: "agentic"}

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
    help="Content type; selects the chunking of long content.",
)
@click.option("--tag", "tags", multiple=True, help="Tag for filters; may be repeated.")
@click.option("--meta", "metadata", type=PAIR, multiple=True, help="Metadata pair; may be repeated.")
@click.option("--speaker", help="Speaker.")
@click.option("--session", "session_id", help="Conversation (session id).")
@click.option("--occurred-at", type=MOMENT, help="Time of the event, with time zone.")
@click.option("--source", help="Source, free text.")
@click.option("--profile", "extraction_profile", help="Extraction profile, from the settings or built in.")
@click.option(
    "--image",
    "images",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    multiple=True,
    help="Image to describe; may be repeated. Requires a language model.",
)
@click.option(
    "--on-duplicate",
    "dedup_action",
    type=click.Choice([kind.value for kind in DedupAction]),
    help="Action for a near duplicate: skip the new memory, store both, or update the old one.",
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

    A missing bank is created. The command returns after the commit.
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
        return f"Duplicate of {result.memory_id}; not stored"
    if not result.stored:
        return f"Not stored: {result.error}"
    verb = "Updated" if result.was_update else "Stored"
    near = f"; near duplicate of {result.near_duplicate_of}" if result.near_duplicate_of else ""
    return (
        f"{verb} {result.memory_id} ({result.memory_layer}, {result.token_count} tokens in {result.chunk_count} "
        f"chunk{'s' if result.chunk_count != 1 else ''}, position {result.position}){near}"
    )


def _options(*options: Callable[[Body], Body]) -> Callable[[Body], Body]:
    """Combine options into one decorator, in the order of --help."""

    def decorate(body: Body) -> Body:
        for option in reversed(options):
            body = option(body)
        return body

    return decorate


wanted = _options(
    click.option(
        "-k", "--max-results", type=click.IntRange(1), default=10, show_default=True, help="Maximum number of hits."
    ),
    click.option("--max-tokens", type=click.IntRange(1), help="Token budget for all hits."),
    click.option("--tag", "tags", multiple=True, help="Only memories with this tag; may be repeated."),
)
_common = _options(
    wanted,
    click.option("--trace", is_flag=True, help="Print the trace."),
)
dated = (
    click.option(
        "--reference-date", "query_reference_date", type=MOMENT, help="Reference time of relative dates in the query."
    ),
    click.option("--time-zone", help="Time zone of dates in the query, such as Europe/Berlin or +02:00."),
)
filtered = _options(
    click.option(
        "--tag-match",
        type=click.Choice([kind.value for kind in TagMatch]),
        default="any",
        show_default=True,
        help="Match of several tags.",
    ),
    click.option("--fact-type", "fact_types", multiple=True, help="Only this fact type; may be repeated."),
    click.option("--meta", "metadata", type=PAIR, multiple=True, help="Only memories with this metadata pair."),
    click.option("--session", "session_id", help="Only memories of this conversation."),
    click.option("--since", type=MOMENT, help="Only events at this time or later."),
    click.option("--until", type=MOMENT, help="Only events at this time or earlier."),
    click.option("--as-of", type=MOMENT, help="The bank as of this time."),
    click.option("--valid-at", type=MOMENT, help="Only memories valid at this time."),
    click.option("--archived", "include_archived", is_flag=True, help="Find archived memories besides."),
    click.option(
        "--phrases",
        "require_phrases",
        is_flag=True,
        help="Only memories that hold each phrase of the query in double quotation marks.",
    ),
    click.option(
        "--prefixes",
        "expand_prefixes",
        is_flag=True,
        help='A word of the query that ends with "*" stands for the words of the bank that begin with it.',
    ),
    *dated,
    click.option(
        "--fusion",
        "fusion_method",
        type=click.Choice([kind.value for kind in FusionMethod]),
        help="Fusion method.",
    ),
    click.option(
        "--detail",
        type=click.Choice([kind.value for kind in DetailLevel]),
        default="chunk",
        show_default=True,
        help="Text of a hit: title, best chunk or full memory.",
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
    """Search BANK for memories relevant to QUERY, best first. BANK may be @NAME, a bank group.

    \b
    astrocyte recall family "what is Mara allergic to?"
    astrocyte recall family "trips" --since 2025-08-01T00:00:00Z --tag travel -k 5
    astrocyte --json recall family "wedding date" | jq -r '.hits[0].text'
    astrocyte recall me "the rate limit?" --also team --also company --strategy cascade

    Recall combines vector search, full-text search and dates in the query ("last May"). The last column is the rank of
    the memory in each arm. Directives that apply come first.
    """
    asked = with_banks(query_of(bank, query, filters), also, strategy)
    result = await session.backend.call(session.caller, Recall(asked))
    if session.as_json:
        print_json(result)
    else:
        print_directives(result.directives)
        _print_hits(result.hits, result.total_available, result.trace, truncated=result.truncated, trace=trace)
        _print_confidence(result, trace=trace)


@click.command()
@click.argument("bank")
@click.argument("query")
@click.option("--as-of", type=MOMENT, required=True, help="Instant, with time zone.")
@_common
@operation
async def history(session: Session, /, bank: str, query: str, trace: bool, **filters: Any) -> None:
    """Recall from BANK as of an instant.

    \b
    astrocyte history family "wedding date" --as-of 2025-05-01T00:00:00Z

    Returns each memory in its version of that instant. Forgotten memories are never returned. recall --as-of does the
    same and accepts all filters.
    """
    result = await session.backend.call(session.caller, History(RecallQuery(query, bank, **filters)))
    if session.as_json:
        print_json(result)
    else:
        _print_hits(result.hits, result.total_available, result.trace, truncated=result.truncated, trace=trace)


def query_of(bank: str, query: str, filters: dict[str, Any]) -> RecallQuery:
    """Build the query from the options of `wanted` and `filtered`."""
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
    """Print the confidence if recall abstains or a trace was requested."""
    if result.confidence is None or not (result.abstain or trace):
        return
    doubt = "; the bank may not contain the answer" if result.abstain else ""
    OUT.print(f"confidence {result.confidence:.2f}{doubt}", style="dim", soft_wrap=True)


def _print_hits(
    hits: Sequence[MemoryHit], total: int, how: RecallTrace | None, *, truncated: bool, trace: bool
) -> None:
    if not hits:
        click.echo("No hits.")
    else:
        OUT.print(hits_table(hits))
    if how is None:
        return
    cut = "; truncated by the token budget" if truncated else ""
    OUT.print(f"{len(hits)} of {total} candidates in {how.latency_ms or 0:.2f} ms{cut}", style="dim", soft_wrap=True)
    if trace:
        OUT.print(f"fused by {how.fusion_method}; {how.plan}; position {how.position}", style="dim", soft_wrap=True)
        why = f" ({how.tier_reason})" if how.tier_reason else ""
        OUT.print(f"tier: {TIERS.get(how.tier_used or 0, 'none')}{why}", style="dim", soft_wrap=True)
        OUT.print(f"intent: {how.intent} ({how.intent_confidence:.1f})", style="dim", soft_wrap=True)
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
            OUT.print(f"time window: {window.start} to {window.end}", style="dim", soft_wrap=True)
        for warning in how.date_warnings:
            OUT.print(f"date: {warning}", style="dim", soft_wrap=True)
        for one in how.prefixes:
            OUT.print(Text(f"prefix: {prefix_text(one)}"), style="dim", soft_wrap=True)
        for path in how.via:
            OUT.print(Text(f"graph: {path.memory_id} by {path_text(path)}"), style="dim", soft_wrap=True)


@click.command()
@click.argument("bank")
@click.option("--id", "memory_ids", multiple=True, help="Memory id; may be repeated.")
@click.option("--tag", "tags", multiple=True, help="Memories with this tag; may be repeated.")
@click.option("--before", "before_date", type=MOMENT, help="Events before this time.")
@click.option("--all", "everything", is_flag=True, help="All memories of the bank.")
@click.option("--erase", "compliance", is_flag=True, help="Erase permanently, with a receipt; cannot be undeleted.")
@click.option("--reason", help="Reason; stored in the log.")
@click.option("--dry-run", is_flag=True, help="Report the matching memories without forgetting them.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
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
    """Forget memories of BANK: no recall or history returns them.

    \b
    astrocyte forget family --id mem_0198a7... --reason "user request"
    astrocyte forget family --tag travel --before 2025-06-01T00:00:00Z --dry-run
    astrocyte forget family --all --erase --yes

    Selectors are combined with AND. The command asks for confirmation. Forgotten memories can be undeleted for thirty
    days (forget.purge_after_days). With --erase, no byte of them remains when the command returns.
    """
    selector = ForgetSelector(memory_ids, tags, "all" if everything else None, before_date)
    preview = await session.backend.call(session.caller, Forget(bank, selector, reason=reason, dry_run=True))
    # An erasure includes memories forgotten earlier, which a dry run does not count.
    # An engine may have memories that this server does not have.
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
        raise click.UsageError("standard input is not a terminal: confirm with --yes, or use --dry-run")
    for memory_id in preview.memory_ids[:SHOWN_IDS]:
        ERR.print(f"  {memory_id}", style="dim")
    if preview.deleted_count > SHOWN_IDS:
        ERR.print(f"  and {preview.deleted_count - SHOWN_IDS} more", style="dim")
    verb = "Permanently erase" if compliance else "Forget"
    click.confirm(f"{verb} {preview.deleted_count} memories?", abort=True, err=True)


def _print_forgotten(session: Session, result: ForgetResult) -> None:
    if session.as_json:
        print_json(result)
        return
    for engine in result.engines:
        reason = f" ({engine.reason})" if engine.reason else ""
        click.echo(f"engine {engine.engine}: {engine.outcome}{reason}, {engine.deleted_count} memories.")
    if result.deleted_count == 0 and result.receipt is None:
        click.echo("No matching memories.")
        return
    verb = "would be forgotten" if result.dry_run else "erased" if result.receipt else "forgotten"
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
    """Restore the forgotten memory MEMORY_ID of BANK.

    \b
    astrocyte undelete family mem_0198a7...
    """
    memory = await session.backend.call(session.caller, UndeleteMemory(bank, memory_id))
    if session.as_json:
        print_json(memory)
    else:
        click.echo(f"Restored {memory.memory_id}: {memory.content}")
