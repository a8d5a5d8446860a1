"""Command ``astrocyte explain``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from astrocyte.api.requests import Explain
from astrocyte.cli.bank_arguments import several_banks, with_banks
from astrocyte.cli.connection import Session, operation
from astrocyte.cli.memories import filtered, query_of, wanted
from astrocyte.cli.output import OUT, path_text, print_json
from astrocyte.model import ArmStanding, ExplainQuery, Explanation, ItemExplanation

# Arms of observations and mental models, of which no other query is tested.
ITEM_ARMS = frozenset({"observation", "mental_model"})


@click.command()
@click.argument("bank")
@click.argument("query")
@click.argument("memory_ids", nargs=-1, required=True)
@several_banks
@wanted
@filtered
@click.option("--position", type=click.IntRange(0), default=0, help="Position that the recall returned.")
@operation
async def explain(
    session: Session,
    /,
    bank: str,
    query: str,
    memory_ids: tuple[str, ...],
    also: tuple[str, ...],
    strategy: str | None,
    position: int,
    **filters: Any,
) -> None:
    """Explain why memories are, or are not, among the hits of BANK for QUERY.

    The output has the stage that dropped a memory, its rank in each arm, and the smallest change that returns it.

    \b
    astrocyte explain family "what is Mara allergic to?" mem_0198a7...
    astrocyte explain family "trips" mem_0198a7... mem_0198b2... --tag travel -k 5
    astrocyte explain me "the rate limit?" mem_0198a7... --also team --strategy cascade
    astrocyte --json explain family "trips" mem_0198a7... | jq '.explanations[0].counterfactual.summary'

    BANK may be @NAME, a bank group. Pass the options of the recall, which is run again. With --position, the command
    reports whether the bank has changed since.
    """
    asked = ExplainQuery(with_banks(query_of(bank, query, filters), also, strategy), memory_ids, position)
    result = await session.backend.call(session.caller, Explain(asked))
    if session.as_json:
        print_json(result)
        return
    for one in result.explanations:
        _print(one)
    _print_items(result.items, [one.memory_id for one in result.explanations])
    moved = "; the bank has changed since the recall" if result.moved else ""
    where = f" at position {result.position}" if result.position else ""
    OUT.print(
        f"{result.returned} hits of {result.candidates} candidates{where}{moved}",
        style="dim",
        soft_wrap=True,
    )


def _print(one: Explanation) -> None:
    where = f" in bank {one.bank_id}" if one.bank_id else ""
    click.echo(f"{one.memory_id}{where}: {one.stage.value.replace('_', ' ')}: {one.detail}")
    if one.repeats:
        cosine = "the same content" if one.similarity is None else f"cosine {one.similarity:.4f}"
        click.echo(f"  repeats {one.repeats} ({cosine})")
    for arm in one.arms:
        click.echo(f"  {_standing(arm)}")
    if one.via is not None:
        click.echo(f"  graph: by {path_text(one.via)}")
    for part in one.borrowed:
        above = ", which ranks above it" if part.lender else ""
        click.echo(f"  {part.arm}: {part.amount:+.4f} from {part.memory_id}{above}")
    for boost in one.boosts:
        click.echo(f"  {boost.name}: {boost.value:+.4f} on the score after fusion")
    if one.counterfactual is not None:
        click.echo(f"  would be returned with {one.counterfactual.summary}")
    elif one.rank == 0 and not ITEM_ARMS.intersection(arm.arm for arm in one.arms):
        click.echo("  no tested change of the query returns it")


def _print_items(items: Sequence[ItemExplanation], asked: Sequence[str]) -> None:
    """Print the scores of the considered items, and the outcome of those that were not asked about."""
    for item in items:
        if item.item_id not in asked:
            stage = item.stage.value.replace("_", " ")
            click.echo(f"{item.arm.replace('_', ' ')} {item.item_id}: {stage}: {item.detail}")
        name = f"{item.item_id}: " if item.item_id in asked else ""
        click.echo(
            f"  {name}score {item.score:.4f}: weight {item.weight:g} x (relevance {item.relevance:.4f} + "
            f"{item.proof_bonus:g} for {item.proof_count} memories)"
        )


def _standing(arm: ArmStanding) -> str:
    if arm.rank == 0:
        return f"{arm.arm}: not found"
    score = "" if arm.score is None else f", score {arm.score:.4f}"
    cut = "" if arm.cut_off is None else f", cutoff {arm.cut_off:.4f}"
    return f"{arm.arm}: rank {arm.rank}{score}{cut}"
