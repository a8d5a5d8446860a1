"""Retrieval arms of others: fused as any list, filtered as any hit, left out when they fail."""

from dataclasses import replace
from typing import Any

import pytest

from astrocyte.api.requests import BatchRecall, BatchRetain, Explain, Forget, Recall, Retain
from astrocyte.errors import ConfigError
from astrocyte.model import (
    Caller,
    ExplainQuery,
    ExplainStage,
    ForgetSelector,
    MultiBankStrategy,
    RecallQuery,
    RetainItem,
)
from astrocyte.pipelines.custom.bounded_call import UnusableError
from astrocyte.pipelines.custom.retrieval_arms import _memories
from doubles.stages import ME, app_of, heard, last
from doubles.third_party import FAULTS, REASONS, ListArm

QUERY = RecallQuery("who plays the oboe?", "b", max_results=10)
OTHERS = [f"Number {number} of the bus goes round the town." for number in range(8)]
OBOE = "Mara plays the oboe."
FAR = "Quarterly figures went up."


def block(ids: Any = (), *, weight: float = 2.0, **arm: Any) -> dict[str, Any]:
    options = {"ids": ids, **arm.pop("options", {})}
    return {"retrieval": {"custom_arms": {"archive": {"arm": "listed", "weight": weight, "options": options, **arm}}}}


async def filled(app: Any, bank: str = "b", tenant: str = "default", **item: Any) -> dict[str, str]:
    """Ids by content."""
    texts = [*OTHERS, OBOE, FAR]
    caller = Caller(tenant=tenant)
    results = await app.gate.call(caller, BatchRetain(bank, [RetainItem(text, **item) for text in texts]))
    return {text: result.memory_id for text, result in zip(texts, results, strict=True)}


def propose(app: Any, *ids: str) -> None:
    last(ListArm).options = {"ids": ids}


async def test_its_list_is_fused_and_told_of() -> None:
    app = app_of(block())
    ids = await filled(app)
    before = [hit.text for hit in (await app.gate.call(ME, Recall(QUERY))).hits]
    propose(app, ids[FAR])
    result = await app.gate.call(ME, Recall(QUERY))
    after = [hit.text for hit in result.hits]
    assert after.index(FAR) < before.index(FAR)
    (hit,) = [hit for hit in result.hits if hit.text == FAR]
    assert [(arm.arm, arm.rank, arm.score) for arm in hit.arms if arm.arm == "archive"] == [("archive", 1, 1.0)]
    trace = result.trace
    assert "archive" in trace.strategies_used
    assert trace.strategy_candidate_counts["archive"] == 1
    assert trace.strategy_timings_ms["archive"] > 0.0
    assert trace.stage_timings_ms["outside"] >= trace.strategy_timings_ms["archive"] * 0.5
    query = last(ListArm).calls[-1]
    assert (query.tenant, query.bank_id, query.text, query.limit) == ("default", "b", QUERY.query, 60)
    assert query.vector is not None
    assert query.filters.tags == ()
    (batch,) = await app.gate.call(ME, BatchRecall([QUERY]))
    assert [one.text for one in batch.hits] == after
    await app.close()
    assert last(ListArm).closed


async def test_what_it_proposes_is_filtered_by_rows_and_rights() -> None:
    app = app_of(block(weight=100.0))
    ids = await filled(app, tags=("seen",))
    foreign = await filled(app, "c", tags=("seen",))
    strangers = await filled(app, "b", "other", tags=("seen",))
    hidden = await app.gate.call(ME, Retain("b", RetainItem("An untagged one about figures.")))
    forgotten = await app.gate.call(ME, Retain("b", RetainItem("To be forgotten.", tags=("seen",))))
    await app.gate.call(ME, Forget("b", ForgetSelector((forgotten.memory_id,))))
    bad = (foreign[FAR], strangers[FAR], hidden.memory_id, forgotten.memory_id, "mem_", "", "x" * 40, "mem_" + "0" * 32)
    propose(app, *bad, ids[FAR])
    result = await app.gate.call(ME, Recall(replace(QUERY, tags=("seen",), max_results=20)))
    assert {hit.memory_id for hit in result.hits} == set(ids.values())
    assert result.hits[0].text == FAR
    assert all(hit.bank_id == "b" for hit in result.hits)
    await app.close()


async def test_explain_knows_its_list() -> None:
    app = app_of(block(weight=100.0))
    ids = await filled(app)
    propose(app, *(ids[text] for text in OTHERS[:3]))
    query = replace(QUERY, max_results=3)
    asked = ExplainQuery(query, (ids[OTHERS[0]], ids[OBOE]))
    first, second = (await app.gate.call(ME, Explain(asked))).explanations
    assert first.stage is ExplainStage.RETURNED
    assert [arm.rank for arm in first.arms if arm.arm == "archive"] == [1]
    assert second.stage is ExplainStage.MAX_RESULTS
    assert second.counterfactual is not None
    found = await app.gate.call(ME, Recall(second.counterfactual.query))
    assert ids[OBOE] in {hit.memory_id for hit in found.hits}
    await app.close()


async def test_several_banks_are_asked_each() -> None:
    app = app_of(block(weight=100.0))
    await filled(app)
    foreign = await filled(app, "c")
    propose(app, foreign[FAR])
    query = RecallQuery(
        QUERY.query, banks=("b", "c"), max_results=10, strategy=MultiBankStrategy(dedup_across_banks=False)
    )
    result = await app.gate.call(ME, Recall(query))
    assert {one.bank_id for one in last(ListArm).calls} == {"b", "c"}
    assert (result.hits[0].text, result.hits[0].bank_id) == (FAR, "c")
    await app.close()


@pytest.mark.parametrize("fault", FAULTS)
async def test_without_it_the_others_decide(fault: str) -> None:
    plain = app_of()
    await filled(plain)
    expected = await plain.gate.call(ME, Recall(QUERY))
    await plain.close()
    with heard() as told:
        app = app_of(block(options={"fault": fault}, timeout_seconds=0.05))
        await filled(app)
        result = await app.gate.call(ME, Recall(QUERY))
        await app.close()
    assert [hit.text for hit in result.hits] == [hit.text for hit in expected.hits]
    assert result.trace.degraded == f"archive ({REASONS[fault]})"
    assert told == [("recall", "b", "archive", f"archive: {REASONS[fault]}")]


@pytest.mark.parametrize("hits", ["mem_1", 3, {"mem_1": 1.0}, [("mem_1", "1")], [(1, 1.0)], [("mem_1", float("inf"))]])
def test_what_is_no_list_of_memories_is_refused(hits: Any) -> None:
    with pytest.raises(UnusableError):
        _memories(hits, 10)


def test_the_best_score_of_a_memory_counts_and_more_than_asked_is_not_read() -> None:
    one, two = "mem_" + "0" * 32, "mem_" + "1" * 32
    assert _memories([(one, 1), (two, 3), (one, 9), (two, 99)], 3) == [(bytes(16), 9.0), (b"\x11" * 16, 3.0)]


@pytest.mark.parametrize(
    ("pipeline", "problem"),
    [
        ({"retrieval": {"custom_arms": {"semantic": {"arm": "listed"}}}}, "'semantic' is a reserved arm name"),
        ({"retrieval": {"custom_arms": {"Archive": {"arm": "listed"}}}}, "pattern"),
        ({"retrieval": {"custom_arms": {"archive": {"arm": "list"}}}}, "custom_arms.archive.arm: there is no 'list'"),
        ({"retrieval": {"custom_arms": {"archive": {"arm": "listed", "wait": 1}}}}, "wait is not a setting"),
    ],
)
def test_what_cannot_be_is_refused(pipeline: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        app_of(pipeline)


def test_answers_with_it_are_not_kept() -> None:
    with pytest.raises(ConfigError, match=r"cannot be used with a custom pipeline.retrieval.custom_arms"):
        app_of(block(), recall={"cache_bytes": 1_000})
