"""Explain says what an independent re-run of every step says, and what it advises works."""

import random
from collections import Counter
from dataclasses import replace

import pytest

from astrocyte.api.requests import Explain, Recall
from astrocyte.model import ExplainQuery, ExplainStage
from oracles.explain_oracle import BANK, ME, MOST_TOKENS, Oracle, make_world, random_query
from oracles.explain_several_oracle import SeveralOracle, make_worlds, random_several

# Memories of one call, and so pairs of one query.
IDS = 20
NEVER = (ExplainStage.RETURNED, ExplainStage.NOT_FOUND)


async def compare(seed: int, pairs: int) -> tuple[Counter[ExplainStage], Counter[int]]:
    """Hold so many random (query, id) pairs to the oracle; counts stages, and changes of each advice (0: none)."""
    chance = random.Random(seed)
    world = await make_world(seed)
    gate = world.app.gate
    stages: Counter[ExplainStage] = Counter()
    changes: Counter[int] = Counter()
    try:
        for _ in range(pairs // IDS):
            query = random_query(chance)
            plan = await gate._pipelines.explain.plan(world.bank, query, MOST_TOKENS)
            oracle = Oracle(world, plan, query)
            answer = await gate.call(ME, Recall(query))
            assert [hit.memory_id for hit in answer.hits] == oracle.hits, query
            # Half of them near the answer, where steps differ.
            near = [one for one in world.ids if oracle.stages[one] not in {ExplainStage.FILTER, ExplainStage.NOT_FOUND}]
            chosen = set(chance.sample(near, min(IDS // 2, len(near))))
            rest = [one for one in world.ids if one not in chosen]
            ids = (*chosen, *chance.sample(rest, IDS - len(chosen)))
            result = await gate.call(ME, Explain(ExplainQuery(query, ids)))
            for one in result.explanations:
                assert one.stage is oracle.stages[one.memory_id], (query, one)
                stages[one.stage] += 1
                if one.rank:
                    assert oracle.hits[one.rank - 1] == one.memory_id
                if one.stage in NEVER:
                    assert one.counterfactual is None
                    continue
                advice = one.counterfactual
                changes[0 if advice is None else len(advice.fields)] += 1
                if advice is not None:
                    again = await gate.call(ME, Recall(advice.query))
                    assert one.memory_id in {hit.memory_id for hit in again.hits}, (query, one)
                    assert advice.query.bank_id == BANK
    finally:
        await world.app.close()
    return stages, changes


ALL = {
    ExplainStage.RETURNED,
    ExplainStage.NOT_FOUND,
    ExplainStage.FILTER,
    ExplainStage.NO_ARM,
    ExplainStage.ARM_CUT,
    ExplainStage.DUPLICATE,
    ExplainStage.TOKEN_BUDGET,
    ExplainStage.MAX_RESULTS,
}


@pytest.mark.timeout(240)
async def test_stages_are_those_of_a_re_run_and_advice_works() -> None:
    stages, changes = await compare(seed=3, pairs=300)
    assert set(stages) == ALL
    # Nearly always something helps, and mostly one change.
    assert changes[0] <= 0.02 * changes.total()
    assert changes[1] >= 0.6 * changes.total()


@pytest.mark.slow
@pytest.mark.timeout(1_200)
@pytest.mark.parametrize("seed", range(2, 12))
async def test_ten_thousand_pairs(seed: int) -> None:
    stages, changes = await compare(seed=seed, pairs=1_000)
    print(seed, dict(stages), dict(changes))  # noqa: T201 - the counts are what is wanted
    assert stages.total() == 1_000


async def compare_several(seed: int, pairs: int) -> tuple[Counter[ExplainStage], Counter[int]]:
    """As `compare`, of recalls over several banks by random strategies."""
    chance = random.Random(seed)
    worlds = await make_worlds(seed)
    app = worlds[0].app
    gate = app.gate
    stages: Counter[ExplainStage] = Counter()
    changes: Counter[int] = Counter()
    try:
        for _ in range(pairs // IDS):
            query = random_several(chance)
            asked = gate._administration._bank_sets.resolve(ME, query)
            assert asked.strategy is not None
            order = sorted(worlds, key=lambda world, asked=asked: asked.bank_ids.index(world.bank.bank_id))  # type: ignore[misc]
            alone = replace(query, banks=(), strategy=None)
            plans = {
                world.bank.bank_id: await gate._pipelines.explain.plan(world.bank, alone, MOST_TOKENS)
                for world in worlds
            }
            oracle = SeveralOracle(order, plans, query, asked.strategy)
            answer = await gate.call(ME, Recall(query))
            assert [hit.memory_id for hit in answer.hits] == oracle.hits, query
            far = {ExplainStage.FILTER, ExplainStage.NOT_FOUND, ExplainStage.BANK_NOT_ASKED}
            ids = [one for world in worlds for one in world.ids]
            near = [one for one in ids if oracle.stages[one] not in far]
            chosen = set(chance.sample(near, min(IDS // 2, len(near))))
            rest = [one for one in ids if one not in chosen]
            named = (*chosen, *chance.sample(rest, IDS - len(chosen)))
            for one in (await gate.call(ME, Explain(ExplainQuery(query, named)))).explanations:
                assert one.stage is oracle.stages[one.memory_id], (query, one)
                stages[one.stage] += 1
                if one.rank:
                    assert oracle.hits[one.rank - 1] == one.memory_id
                if one.stage in NEVER:
                    assert one.counterfactual is None
                    continue
                advice = one.counterfactual
                changes[0 if advice is None else len(advice.fields)] += 1
                if advice is not None:
                    again = await gate.call(ME, Recall(advice.query))
                    assert one.memory_id in {hit.memory_id for hit in again.hits}, (query, one)
    finally:
        await app.close()
    return stages, changes


@pytest.mark.timeout(240)
async def test_stages_over_several_banks_are_those_of_a_re_run_and_advice_works() -> None:
    stages, changes = await compare_several(seed=1, pairs=200)
    assert {ExplainStage.BANK_NOT_ASKED, ExplainStage.BANK_FUSION, ExplainStage.RETURNED} <= set(stages)
    assert changes[0] <= 0.1 * changes.total()


@pytest.mark.slow
@pytest.mark.timeout(1_200)
@pytest.mark.parametrize("seed", range(2, 8))
async def test_thousands_of_pairs_over_several_banks(seed: int) -> None:
    stages, changes = await compare_several(seed=seed, pairs=600)
    print(seed, dict(stages), dict(changes))  # noqa: T201 - the counts are what is wanted
    assert stages.total() == 600
    assert set(stages) >= {ExplainStage.BANK_NOT_ASKED, ExplainStage.BANK_FUSION}
