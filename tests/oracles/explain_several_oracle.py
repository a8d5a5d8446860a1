"""Explain over several banks, computed another way: each bank by `explain_oracle`, the rest in plain Python.

`SeveralOracle.hits` is the answer that follows; the tests hold it to the real one, so that an oracle that is wrong is
seen.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from astrocyte.core import Answer
from astrocyte.model import (
    BankStrategy,
    ExplainStage,
    FusionMethod,
    MultiBankMode,
    MultiBankStrategy,
    RecallQuery,
)
from astrocyte.pipelines.index.rows import bytes_to_id
from astrocyte.pipelines.search.plan import Plan
from oracles.explain_oracle import MOST_TOKENS, Oracle, World, make_world, random_query
from oracles.plain_fusion import Offered, PlainArm, PlainList, fuse, split_budget

BANKS = ("left", "middle", "right")
RANK_CONSTANT = 60.0


async def make_worlds(seed: int) -> list[World]:
    """Three banks of one application, of which the second holds some of what the first does."""
    first = await make_world(seed, 90, bank_id=BANKS[0])
    held = [versions[-1].content for one in first.ids[:40] if (versions := first.memory(one))]
    return [
        first,
        await make_world(seed + 1, 50, app=first.app, bank_id=BANKS[1], repeated=held),
        await make_world(seed + 2, 60, app=first.app, bank_id=BANKS[2]),
    ]


def random_several(chance: random.Random) -> RecallQuery:
    mode = chance.choice(list(MultiBankMode))
    values: dict[str, Any] = {"mode": mode, "fusion_method": chance.choice(list(FusionMethod))}
    if mode is MultiBankMode.CASCADE:
        values["min_results_to_stop"] = chance.randint(1, 12)
    if chance.random() < 0.5:
        weights = {bank_id: chance.choice((0.0, 0.5, 1.0, 3.0)) for bank_id in BANKS}
        # All of them 0 is refused.
        values["bank_weights"] = weights if any(weights.values()) else {**weights, BANKS[0]: 1.0}
    if chance.random() < 0.3:
        values["dedup_across_banks"] = False
    query = replace(random_query(chance), bank_id="", banks=BANKS, strategy=MultiBankStrategy(**values))
    # In the order of the strategies nobody is asked who comes later.
    return replace(query, banks=tuple(chance.sample(BANKS, len(BANKS))))


class SeveralOracle:
    """The recall of one query over several banks, step by step.

    Args:
        worlds: The banks, in the order in which they are asked.
        plans: The query to each, with its vector.
        query: The query.
        strategy: How they are asked.
    """

    def __init__(
        self, worlds: Sequence[World], plans: Mapping[str, Plan], query: RecallQuery, strategy: BankStrategy
    ) -> None:
        self._query = query
        self._strategy = strategy
        alone = replace(query, banks=(), strategy=None)
        self._banks = {world.bank.bank_id: Oracle(world, plans[world.bank.bank_id], alone) for world in worlds}
        self.stages: dict[str, ExplainStage] = {}
        self.hits: list[str] = []
        counted = self._asked()
        self._join(counted)

    def _asked(self) -> list[str]:
        """The banks whose hits count; memories of those that are not asked, or do not count, get their stage."""
        asked: list[str] = []
        found: set[object] = set()
        enough = False
        for bank_id, oracle in self._banks.items():
            self.stages.update(oracle.stages)
            if enough:
                self._all(bank_id, ExplainStage.BANK_NOT_ASKED, known=True)
                continue
            asked.append(bank_id)
            if self._weight(bank_id) > 0.0:
                found.update(self._names(bank_id, one) for one in oracle.hits)
            match self._strategy.mode:
                case MultiBankMode.FIRST_MATCH:
                    enough = bool(found)
                case MultiBankMode.CASCADE:
                    enough = len(found) >= self._strategy.min_results_to_stop
                case MultiBankMode.PARALLEL:
                    enough = False
        if self._strategy.mode is not MultiBankMode.FIRST_MATCH:
            return asked
        counted = asked[-1:] if enough else []
        for bank_id in asked:
            if bank_id not in counted:
                self._all(bank_id, ExplainStage.BANK_NOT_ASKED, known=False)
        return counted

    def _join(self, counted: Sequence[str]) -> None:
        for bank_id in counted:
            if self._weight(bank_id) <= 0.0:
                self._all(bank_id, ExplainStage.BANK_FUSION, known=False)
        lists = [self._list(bank_id) for bank_id in counted]
        dedup = self._strategy.dedup_across_banks
        order = fuse(lists, self._strategy.fusion_method, RANK_CONSTANT, dedup=dedup)
        ids = [bytes_to_id(one.hit.memory_id) for one in order]
        for place, bank_id in enumerate(counted):
            for one in self._banks[bank_id].hits if self._weight(bank_id) > 0.0 else ():
                if not any(hit.bank == place and name == one for hit, name in zip(order, ids, strict=True)):
                    self.stages[one] = ExplainStage.DUPLICATE
        budget = self._query.max_tokens or MOST_TOKENS
        sizes = [(one.bank, one.hit.tokens) for one in order]
        most = self._query.max_results
        share = split_budget(sizes, [one.weight for one in lists], min(budget, MOST_TOKENS), most)
        self.hits = [ids[place] for place in share.places]
        for place, one in enumerate(ids):
            if place in share.places:
                continue
            better = len(share.places) == most and place > max(share.places)
            self.stages[one] = ExplainStage.BANK_FUSION if better else ExplainStage.TOKEN_BUDGET

    def _all(self, bank_id: str, stage: ExplainStage, *, known: bool) -> None:
        """Give that stage to what a bank would return, or to all that it knows."""
        oracle = self._banks[bank_id]
        for one in oracle._known if known else oracle.hits:
            self.stages[one] = stage

    def _names(self, bank_id: str, memory_id: str) -> object:
        if self._strategy.dedup_across_banks:
            return self._banks[bank_id]._known[memory_id][-1].content
        return memory_id

    def _weight(self, bank_id: str) -> float:
        return self._strategy.bank_weights.get(bank_id, 1.0)

    def _list(self, bank_id: str) -> PlainList:
        oracle = self._banks[bank_id]
        response = oracle._plan.index.core.recall(oracle._planner.request(oracle._plan))
        assert [bytes_to_id(hit.memory_id) for hit in response.hits] == oracle.hits
        hits = tuple(
            Offered(hit.key, hit.memory_id, hit.content_hash, tuple(hit.arms), hit.tokens) for hit in response.hits
        )
        return PlainList(self._weight(bank_id), hits, self._arms(oracle, response), oracle._plan.bank.embedding_model)

    @staticmethod
    def _arms(oracle: Oracle, response: Answer) -> tuple[PlainArm, ...]:
        weights = dict(zip(("semantic", "keyword", "temporal"), oracle._planner.arm_weights(oracle._plan), strict=True))
        return tuple(
            PlainArm(name, weights[name], response.allowed, mean, deviation)
            for name, (mean, deviation) in zip(response.arm_names, response.trace.arm_spreads, strict=True)
        )
