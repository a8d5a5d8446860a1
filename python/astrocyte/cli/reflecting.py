"""The command that answers a question from memory."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import click
from rich.text import Text

from astrocyte.api.requests import Reflect, StreamReflect
from astrocyte.cli.connection import Session, operation
from astrocyte.cli.naming import several_banks, with_banks
from astrocyte.cli.output import OUT, print_json, stamp
from astrocyte.cli.values import MOMENT
from astrocyte.model import Dispositions, ReflectMode, ReflectQuery, ReflectResult, TimeRange

LEANING = click.IntRange(1, 5)


@click.command()
@click.argument("bank")
@click.argument("query")
@several_banks
@click.option("--mode", type=click.Choice([mode.value for mode in ReflectMode]), help="Who answers.")
@click.option("--max-tokens", type=click.IntRange(1), help="Token budget of the answer.")
@click.option("--tag", "tags", multiple=True, help="Only from memories with this label; may be repeated.")
@click.option("--session", "session_id", help="Only from memories of this conversation.")
@click.option("--since", type=MOMENT, help="Only from what happened at this time or later.")
@click.option("--until", type=MOMENT, help="Only from what happened at this time or earlier.")
@click.option("--as-of", type=MOMENT, help="From the bank as it was known at this time.")
@click.option("--skepticism", type=LEANING, default=3, show_default=True, help="5 wants more evidence, 1 less.")
@click.option("--literalism", type=LEANING, default=3, show_default=True, help="5 keeps to the words, 1 to the sense.")
@click.option("--empathy", type=LEANING, default=3, show_default=True, help="5 minds feelings, 1 does not.")
@click.option("--stream", is_flag=True, help="Show the answer as it is written.")
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
    """Answer QUERY from the memories of BANK, and say what the answer rests on. @NAME is a configured group of banks.

    \b
    astrocyte reflect family "what is Mara allergic to?"
    astrocyte reflect family "when did the wedding move?" --since 2025-01-01T00:00:00Z
    astrocyte --json reflect family "who bakes?" --mode extractive | jq -r .answer
    astrocyte reflect me "what is the rate limit?" --also team --also company

    The numbers in the answer are those of the memories below it. Without a language model the answer is made of
    sentences of the memories; where memory does not hold one, it says so.
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
        OUT.print(_marked(result), soft_wrap=True)
        _print_rest(result)


async def _streamed(session: Session, asked: ReflectQuery) -> None:
    async for piece in session.backend.stream(session.caller, StreamReflect(asked)):
        if isinstance(piece, str):
            click.echo(piece, nl=False)
        else:
            click.echo()
            _print_rest(piece)


def _marked(result: ReflectResult) -> Text:
    """The answer with the numbers of its sources in it."""
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
    """Sources, remarks, and how sure it is."""
    for number, hit in enumerate(result.sources or (), 1):
        when = stamp(hit.occurred_at or hit.retained_at)
        who = f" {hit.speaker}:" if hit.speaker else ""
        OUT.print(Text(f"[{number}] {when}{who} {hit.text}"), style="dim")
        OUT.print(Text(f"    {hit.memory_id}"), style="dim")
    for remark in result.observations or ():
        OUT.print(Text(f"Note: {remark}"))
    mode = result.mode or "the memories as they are"
    fell = ", instead of what was asked for" if result.fallback_used else ""
    cut = "; the token budget cut the answer" if result.truncated else ""
    OUT.print(Text(f"confidence {result.confidence or 0:.2f}; by {mode}{fell}{cut}"), style="dim", soft_wrap=True)
