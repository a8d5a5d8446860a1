"""From what several banks answered to the hits that leave.

1. where stages after the core are on, they order each bank's hits, which are read back for all banks at once;
2. they are fused, and share the token budget (`bank_fusion`);
3. what is left is read back, in one read for all banks, each hit from its own bank. Where another bank holds the same
   content as a hit that the database does not know, or that its bank keeps out of answers, 2 and 3 come once more
   without it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from astrocyte.config import Settings
from astrocyte.core import count_tokens
from astrocyte.model import DetailLevel, MemoryHit, RecallQuery
from astrocyte.pipelines import detail
from astrocyte.pipelines.bank_fusion import BankList, Candidate, Spread, fuse, split_budget
from astrocyte.pipelines.bank_parts import Part, Question, Summary, groups_of, summary_of
from astrocyte.pipelines.external import blend, passing
from astrocyte.pipelines.recall import RecallPipeline
from astrocyte.pipelines.rescoring import boosted
from astrocyte.pipelines.shaping import Standing, hit_of, text_of
from astrocyte.stores.protocols import HydratedRow

# Outside lists have no spread over all memories: their best score of 1 stands out as much as in the core's fusion.
OUTSIDE_SPREAD = Spread(1, 0.0, 1.0 / 3.0)

# A hit among all banks: the place of its bank, its row key and ordinal.
Place = tuple[int, int, int]
# A candidate with its row, and what it shows with its tokens.
Shown = tuple[Candidate, HydratedRow, tuple[str, int]]


class Joined(NamedTuple):
    """What leaves, how many of the caller's items passed the filter, and what the banks' answers say together."""

    hits: tuple[MemoryHit, ...]
    truncated: bool
    brought: int
    told: Summary


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
        self._rescore([part for part in parts if part.searched.pool])
        lists, told = self._lists(parts), summary_of(parts)
        gone: set[Place] = set()
        hits, truncated, missing = self._fused(question, parts, lists, gone)
        while missing:
            # Another bank holds what one of these says.
            gone |= missing
            hits, truncated, missing = self._fused(question, parts, lists, gone)
        external = passing(query) if query.external_context else []
        if external:
            weight = self._external_weight
            hits, dropped = blend(query, hits, external, weight=weight, budget=question.budget)
            truncated = truncated or dropped
        return Joined(hits, truncated or told.truncated, len(external), told)

    def _fused(
        self, question: Question, banks: Sequence[Part], lists: Sequence[BankList], gone: Collection[Place]
    ) -> tuple[tuple[MemoryHit, ...], bool, set[Place]]:
        """The hits of the banks but for those that are gone, within the budget; whether one was cut or left out for it.

        And which of them cannot be shown, though another bank holds the same: the answer is to be made without them.
        """
        query, strategy, budget = question.query, question.strategy, question.budget
        titles = query.detail_level is DetailLevel.TITLES
        fused = fuse(
            [_without(number, one, gone) for number, one in enumerate(lists)] if gone else lists,
            strategy.fusion_method,
            query.rank_constant or self._rank_constant,
            dedup=strategy.dedup_across_banks,
        )
        # Titles are counted when they are made, so that only those are made that may be wanted.
        chosen = fused[: query.max_results] if titles else []
        shown = self._shown(query, banks, chosen)
        sizes = (
            [(lists[one.bank].group, tokens) for one, _, (_, tokens) in shown]
            if titles
            else [(lists[one.bank].group, one.hit.tokens) for one in fused]
        )
        share = split_budget(sizes, [one.weight for one in lists], budget, query.max_results)
        if titles:
            found = {_place(one) for one, _, _ in shown}
            shown = [shown[place] for place in share.places]
        else:
            chosen = [fused[place] for place in share.places]
            shown = self._shown(query, banks, chosen)
            found = {_place(one) for one, _, _ in shown}
        missing = {_place(one) for one in chosen if one.others} - found
        if share.cut and shown:
            one, row, (text, _) = shown[0]
            text = detail.cut(text, budget)
            shown = [(one, row, (text, count_tokens(text)))]
        for part, tokens in zip(banks, share.parts, strict=True):
            part.token_budget = tokens
        hits = tuple(_hit(banks, one) for one in shown)
        refused = [one for (one, _, _), hit in zip(shown, hits, strict=True) if one.others and question.refuses(hit)]
        missing.update(map(_place, refused))
        return hits, share.truncated, missing

    def _lists(self, parts: Sequence[Part]) -> list[BankList]:
        """What the banks answered."""
        if not parts:
            return []
        # The query is the same for all, and so are the weights.
        weights = self._recall.arm_weights(parts[0].searched)
        by_arm = dict(zip(("semantic", "keyword", "temporal"), weights, strict=True))
        return [self._list(part, group, by_arm) for part, group in zip(parts, groups_of(parts), strict=True)]

    def _list(self, part: Part, group: int, by_arm: Mapping[str, float]) -> BankList:
        response, names = part.answer, part.answer.arm_names
        spreads = [Spread(response.allowed, mean, deviation) for mean, deviation in response.arm_spreads]
        outside = part.searched.outside
        if outside:
            by_arm = {**by_arm, **{name: weight for name, weight, _ in outside}}
            proposers = {name for name, _, _ in outside}
            spreads = [
                OUTSIDE_SPREAD if name in proposers else spread for name, spread in zip(names, spreads, strict=True)
            ]
        lifts: list[float] = []
        if part.ranked is not None:
            unit = self._recall.unit(part.searched)
            lifts = [(part.boosted[hit.key].score - hit.score) / unit for hit in part.ranked]
        return BankList(
            part.weight,
            response.hits if part.ranked is None else part.ranked,
            names,
            [by_arm.get(name, 1.0) for name in names],
            spreads,
            part.searched.index.model,
            lifts,
            group,
        )

    def _rescore(self, parts: Sequence[Part]) -> None:
        """Put the banks' hits into the order of the stages after the core, which have something to do for them."""
        read = self._recall.rows_each([(part.searched, part.answer.passages) for part in parts])
        for part, rows in zip(parts, read, strict=True):
            candidates = self._recall.rescored(part.searched, part.answer, rows)
            kept = candidates[: part.query.max_results]
            part.ranked = [one.hit for one in kept]
            part.boosted = {one.hit.key: one for one in kept}

    def _shown(self, query: RecallQuery, parts: Sequence[Part], chosen: Sequence[Candidate]) -> list[Shown]:
        """The candidates that the database knows, in their order, each read from its own bank."""
        passages: dict[int, list[tuple[int, int]]] = {}
        for one in chosen:
            passages.setdefault(one.bank, []).append((one.hit.key, one.hit.ordinal))
        read = self._recall.rows_each([(parts[number].searched, wanted) for number, wanted in passages.items()])
        rows = {(number, *row[:2]): row for number, own in zip(passages, read, strict=True) for row in own}
        found = [(one, rows.get(_place(one))) for one in chosen]
        level = query.detail_level
        return [(one, row, text_of(level, one.hit, row)) for one, row in found if row is not None]


def _place(one: Candidate) -> Place:
    return one.bank, one.hit.key, one.hit.ordinal


def _without(number: int, one: BankList, gone: Collection[Place]) -> BankList:
    """A bank's list without the hits that are gone."""
    left = [place for place, hit in enumerate(one.hits) if (number, hit.key, hit.ordinal) not in gone]
    lifts = [one.lifts[place] for place in left] if one.lifts else []
    return replace(one, hits=[one.hits[place] for place in left], lifts=lifts)


def _hit(parts: Sequence[Part], shown: Shown) -> MemoryHit:
    """The hit that leaves, with its place in its own bank and the other banks that hold it."""
    one, row, text = shown
    part = parts[one.bank]
    also_in = tuple([parts[other].bank.bank_id for other in one.others])
    standing = Standing(part.bank.bank_id, one.score, one.rank, also_in)
    hit = hit_of(part.query, one.hit, row, part.answer.arm_names, text, standing)
    candidate = part.boosted.get(one.hit.key)
    return hit if candidate is None else boosted(hit, candidate, one.score)
