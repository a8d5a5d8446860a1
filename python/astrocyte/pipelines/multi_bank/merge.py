"""From what several banks answered to the hits that leave.

1. where stages after the core are on, they order each bank's hits, which are read back for all banks at once;
2. the core fuses, and shares the token budget (`bank_fusion`);
3. what is left is read back, in one read for all banks, each hit from its own bank. Where another bank holds the same
   content as a hit that the database does not know, or that its bank keeps out of answers, 2 and 3 come once more
   without it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from astrocyte.config import Settings
from astrocyte.core import count_tokens
from astrocyte.model import DetailLevel, MemoryHit, RecallQuery
from astrocyte.pipelines.multi_bank.bank_answers import Part, Question, Summary, groups_of, summary_of
from astrocyte.pipelines.multi_bank.fusion import ArmWeights, BankArm, BankList, Candidate, Place, fuse, share
from astrocyte.pipelines.recall.external_context import blend, passing
from astrocyte.pipelines.recall.hits import Standing, hit_of, text_of
from astrocyte.pipelines.recall.pipeline import RecallPipeline
from astrocyte.pipelines.recall.post_ranking import boosted
from astrocyte.pipelines.recall.relevance import set_scores
from astrocyte.pipelines.text import detail_levels
from astrocyte.stores.records import HydratedRow

# Outside lists have no spread over all memories: their best score of 1 stands out as much as in the core's fusion.
EXTERNAL_SPREAD = (1, 0.0, 1.0 / 3.0)

# A candidate with its row, and what it shows with its tokens.
Shown = tuple[Candidate, HydratedRow, tuple[str, int]]


class Joined(NamedTuple):
    """The joined hits, the count of the caller's items that passed the filter, and a summary of the banks' answers.

    ``gone`` are hits that cannot be shown, and whose content another bank holds too.
    """

    hits: tuple[MemoryHit, ...]
    truncated: bool
    brought: int
    told: Summary
    gone: Collection[Place]


class _Lists(NamedTuple):
    """The banks that count, what each answered, and the weights of the arms."""

    parts: Sequence[Part]
    lists: Sequence[BankList]
    weights: ArmWeights


class Joining:
    """Makes one answer of those of several banks.

    Args:
        recall: What read the banks, and reads their rows back.
        settings: k of rrf, and the weight of what callers bring.
    """

    def __init__(self, recall: RecallPipeline, settings: Settings) -> None:
        self._recall = recall
        self._rank_constant = settings.recall.rank_constant
        self._external_weight = settings.recall.external_weight

    def join(self, question: Question, parts: Sequence[Part]) -> Joined:
        """The hits of banks that answered, and what the caller brought, within the budget."""
        query = question.query
        pooled = [part for part in parts if part.searched.pool]
        if pooled:
            self._rescore(pooled)
        lists, told = self._lists(parts), summary_of(parts)
        gone: set[Place] = set()
        hits, truncated, missing = self._fused(question, lists, gone)
        while missing:
            # Another bank holds what one of these says.
            gone |= missing
            hits, truncated, missing = self._fused(question, lists, gone)
        external = passing(query) if query.external_context else []
        if external:
            weight = self._external_weight
            hits, dropped = blend(query, hits, external, weight=weight, budget=question.budget)
            truncated = truncated or dropped
        return Joined(hits, truncated or told.truncated, len(external), told, gone)

    def order(self, question: Question, parts: Sequence[Part], gone: Collection[Place]) -> list[Candidate]:
        """All hits of banks that were joined but those that are gone, best first, whatever the budget."""
        query, strategy, lists = question.query, question.strategy, self._lists(parts)
        fusion = fuse(
            lists.lists,
            weights=lists.weights,
            method=strategy.fusion_method,
            rank_constant=query.rank_constant or self._rank_constant,
            dedup=strategy.dedup_across_banks,
            most=max(1, sum(len(part.answer.hits) for part in parts)),
            gone=gone,
        )
        return fusion.candidates

    def _fused(
        self, question: Question, lists: _Lists, gone: Collection[Place]
    ) -> tuple[tuple[MemoryHit, ...], bool, set[Place]]:
        """The hits of the banks but for those that are gone, within the budget; whether one was cut or left out for it.

        And which of them cannot be shown, though another bank holds the same: the answer is to be made without them.
        """
        query, strategy, budget = question.query, question.strategy, question.budget
        titles = query.detail_level is DetailLevel.TITLES
        fusion = fuse(
            lists.lists,
            weights=lists.weights,
            method=strategy.fusion_method,
            rank_constant=query.rank_constant or self._rank_constant,
            dedup=strategy.dedup_across_banks,
            most=query.max_results,
            # Titles are counted when they are made, so that only those are made that may be wanted.
            budget=None if titles else budget,
            gone=gone,
        )
        truncated, cut, parts = fusion.truncated, fusion.cut, fusion.parts
        shown = self._shown(query, lists.parts, fusion.candidates)
        missing = {one.place for one in fusion.candidates if one.others}
        if missing:
            missing -= {one.place for one, _, _ in shown}
        if titles:
            sizes = [(lists.lists[one.bank].group, tokens) for one, _, (_, tokens) in shown]
            shared = share(sizes, [one.weight for one in lists.lists], budget, query.max_results)
            truncated, cut, parts = shared.truncated, shared.cut, shared.parts
            shown = [shown[place] for place in shared.places]
        if cut and shown:
            one, row, (text, _) = shown[0]
            text = detail_levels.cut(text, budget)
            shown = [(one, row, (text, count_tokens(text)))]
        for part, tokens in zip(lists.parts, parts, strict=True):
            part.token_budget = tokens
        hits = tuple(_hit(lists.parts, one) for one in shown)
        set_scores(hits)
        refused = [one for (one, _, _), hit in zip(shown, hits, strict=True) if one.others and question.refuses(hit)]
        missing.update(one.place for one in refused)
        return hits, truncated, missing

    def _lists(self, parts: Sequence[Part]) -> _Lists:
        """The ranked lists of the banks."""
        if not parts:
            return _Lists((), (), (0.0, 0.0, 0.0))
        # The query is the same for all, and so are the weights.
        weights = self._recall.arm_weights(parts[0].searched)
        lists = [
            BankList(part.weight, part.answer, None, part.searched.index.model, (), group)
            if part.ranked is None and not part.searched.outside
            else self._list(part, group, weights)
            for part, group in zip(parts, groups_of(parts), strict=True)
        ]
        return _Lists(parts, lists, weights)

    def _list(self, part: Part, group: int, weights: ArmWeights) -> BankList:
        """The list of a bank with external lists in the core or stages after it."""
        plan = part.searched
        space = plan.index.model
        if part.ranked is None or part.boosted is None:
            return BankList(part.weight, part.answer, _arms(part, weights), space, (), group)
        unit = self._recall.unit(plan)
        lifts = [(part.boosted[hit.key].score - hit.score) / unit for hit in part.ranked]
        return BankList(part.weight, part.ranked, _arms(part, weights), space, lifts, group)

    def _rescore(self, parts: Sequence[Part]) -> None:
        """Put the banks' hits into the order of the stages after the core, which have something to do for them."""
        read = self._recall.assembly.rows_each([(part.searched, part.answer.passages) for part in parts])
        for part, rows in zip(parts, read, strict=True):
            candidates = self._recall.assembly.rescored(part.searched, part.answer, rows)
            kept = candidates[: part.query.max_results]
            part.ranked = [one.hit for one in kept]
            part.boosted = {one.hit.key: one for one in kept}

    def _shown(self, query: RecallQuery, parts: Sequence[Part], chosen: Sequence[Candidate]) -> list[Shown]:
        """The candidates that the database knows, in their order, each read from its own bank."""
        passages: dict[int, list[tuple[int, int]]] = {}
        for one in chosen:
            passages.setdefault(one.bank, []).append((one.hit.key, one.hit.ordinal))
        read = self._recall.assembly.rows_each(
            [(parts[number].searched, wanted) for number, wanted in passages.items()]
        )
        rows = {(number, *row[:2]): row for number, own in zip(passages, read, strict=True) for row in own}
        found = [(one, rows.get(one.place)) for one in chosen]
        level = query.detail_level
        return [(one, row, text_of(level, one.hit, row)) for one, row in found if row is not None]


def _arms(part: Part, weights: ArmWeights) -> list[BankArm]:
    """The arms of a bank's answer, those of external stores among them."""
    by_name = dict(zip(("semantic", "keyword", "temporal"), weights, strict=True))
    outside = {name: weight for name, weight, _ in part.searched.outside or ()}
    response, arms = part.answer, []
    for name, (mean, deviation) in zip(response.arm_names, response.trace.arm_spreads, strict=True):
        if name in outside:
            arms.append(BankArm(name, outside[name], *EXTERNAL_SPREAD))
        else:
            arms.append(BankArm(name, by_name.get(name, 1.0), response.allowed, mean, deviation))
    return arms


def _hit(parts: Sequence[Part], shown: Shown) -> MemoryHit:
    """The hit that leaves, with its place in its own bank and the other banks that hold it."""
    one, row, text = shown
    part = parts[one.bank]
    also_in = tuple([parts[other].bank.bank_id for other in one.others])
    standing = Standing(part.bank.bank_id, one.score, one.rank, also_in)
    hit = hit_of(part.query, one.hit, row, part.answer.arm_names, text, standing)
    return hit if part.boosted is None else boosted(hit, part.boosted[one.hit.key], one.score)
