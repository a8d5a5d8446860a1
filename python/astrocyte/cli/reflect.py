"""Command ``astrocyte reflect``."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import click
from rich.text import Text

from astrocyte.api.requests import Reflect, StreamReflect
from astrocyte.cli.bank_arguments import several_banks, with_banks
from astrocyte.cli.connection import Session, operation
from astrocyte.cli.memories import dated
from astrocyte.cli.output import OUT, print_directives, print_json, stamp
from astrocyte.cli.values import MOMENT
from astrocyte.model import Dispositions, ReflectMode, ReflectQuery, ReflectResult, TimeRange

LEANING = click.IntRange(1, 5)


@click.command()
@click.argument("bank")
@click.argument("query")
@several_banks
@click.option("--mode", type=click.Choice([mode.value for mode in ReflectMode]), help="Answer mode.")
@click.option("--max-tokens", type=click.IntRange(1), help="Token budget of the answer.")
@click.option("--tag", "tags", multiple=True, help="Only memories with this tag; may be repeated.")
@click.option("--session", "session_id", help="Only memories of this conversation.")
@click.option("--since", type=MOMENT, help="Only events at this time or later.")
@click.option("--until", type=MOMENT, help="Only events at this time or earlier.")
@click.option("--as-of", type=MOMENT, help="The bank as of this time.")
@dated[0]
@dated[1]
@click.option("--skepticism", type=LEANING, default=3, show_default=True, help="5 requires more evidence, 1 less.")
@click.option("--literalism", type=LEANING, default=3, show_default=True, help="5 is literal, 1 interprets.")
@click.option("--empathy", type=LEANING, default=3, show_default=True, help="5 considers feelings, 1 does not.")
@click.option("--stream", is_flag=True, help="Stream the answer.")
@operation
async def reflect(
    session: Session,
    /,
    bank: str,
    query: str,
    also: tuple[str, ...],
    strategy: str | None,
    mode: str | None,
    since: datetime | None,
    until: datetime | None,
    skepticism: int,
    literalism: int,
    empathy: int,
    stream: bool,
    **fields: Any,
) -> None:
    """Answer QUERY from the memories of BANK, with citations. BANK may be @NAME, a bank group.

    \b
    astrocyte reflect family "what is Mara allergic to?"
    astrocyte reflect family "when did the wedding move?" --since 2025-01-01T00:00:00Z
    astrocyte --json reflect family "who bakes?" --mode extractive | jq -r .answer
    astrocyte reflect me "what is the rate limit?" --also team --also company

    Numbers in the answer refer to the memories listed below it. Without a language model, the answer consists of
    sentences of the memories. Reflect abstains if the memories contain no answer. Directives that apply come first, and
    after a streamed answer.
    """
    leaning = Dispositions(skepticism, literalism, empathy)
    asked = ReflectQuery(
        query,
        bank,
        mode=ReflectMode(mode) if mode else None,
        time_range=TimeRange(since, until) if since or until else None,
        dispositions=None if leaning == Dispositions() else leaning,
        **fields,
    )
    asked = with_banks(asked, also, strategy)
    if stream and not session.as_json:
        await _streamed(session, asked)
        return
    result = await session.backend.call(session.caller, Reflect(asked))
    if session.as_json:
        print_json(result)
    else:
        print_directives(result.directives)
        OUT.print(_marked(result), soft_wrap=True)
        _print_rest(result)


async def _streamed(session: Session, asked: ReflectQuery) -> None:
    async for piece in session.backend.stream(session.caller, StreamReflect(asked)):
        if isinstance(piece, str):
            click.echo(piece, nl=False)
        else:
            click.echo()
            print_directives(piece.directives)
            _print_rest(piece)


def _marked(result: ReflectResult) -> Text:
    """Insert source numbers into the answer."""
    numbers = {hit.memory_id: number for number, hit in enumerate(result.sources or (), 1)}
    text, at = Text(), 0
    for citation in sorted(result.citations, key=lambda citation: citation.end):
        text.append(result.answer[at : citation.end])
        at = citation.end
        if citation.memory_id in numbers:
            text.append(f" [{numbers[citation.memory_id]}]", style="dim")
    text.append(result.answer[at:])
    return text


def _print_rest(result: ReflectResult) -> None:
    """Print sources, observations and confidence."""
    for number, hit in enumerate(result.sources or (), 1):
        when = stamp(hit.occurred_at or hit.retained_at)
        who = f" {hit.speaker}:" if hit.speaker else ""
        OUT.print(Text(f"[{number}] {when}{who} {hit.text}"), style="dim")
        OUT.print(Text(f"    {hit.memory_id}"), style="dim")
    for remark in result.observations or ():
        OUT.print(Text(f"Note: {remark}"))
    mode = result.mode or "none"
    fell = " (fallback)" if result.fallback_used else ""
    cut = "; truncated by the token budget" if result.truncated else ""
    OUT.print(Text(f"confidence {result.confidence or 0:.2f}; mode {mode}{fell}{cut}"), style="dim", soft_wrap=True)
