"""One list made by another: all candidates, its scores on the scale of the server's, its faults."""

from dataclasses import replace
from typing import Any

import pytest

from astrocyte.api.requests import BatchRecall, BatchRetain, Explain, ListMemories, Recall
from astrocyte.errors import ConfigError
from astrocyte.model import DetailLevel, ExplainQuery, ExplainStage, FusionMethod, MemoryHit, RecallQuery, RetainItem
from doubles.stages import ME, app_of, heard, last
from doubles.third_party import FAULTS, REASONS, CountingFusion, ReversedFusion

TEXTS = [f"The ferry number {number} leaves {'the ferry harbour ' * number}." for number in range(12)]
QUERY = RecallQuery("which ferry leaves the harbour?", "b", max_results=4)


def block(name: str = "reversed", **fusion: Any) -> dict[str, Any]:
    return {"fusion": {"mode": "custom", "custom_fusion": name, **fusion}}


async def filled(app: Any) -> Any:
    await app.gate.call(ME, BatchRetain("b", [RetainItem(text) for text in [*TEXTS, "Nothing of that."]]))
    return app


def texts(result: Any) -> list[str]:
    return [hit.text for hit in result.hits]


async def test_its_order_is_the_answers() -> None:
    app = await filled(app_of(block()))
    result = await app.gate.call(ME, Recall(QUERY))
    asked, lists = last(ReversedFusion).calls[0]
    assert asked == QUERY.query
    by_arm = {one.arm: one for one in lists}
    assert {"semantic", "keyword"} <= set(by_arm)
    assert by_arm["semantic"].weight == 0.8
    keyword = by_arm["keyword"].entries
    assert [rank for _, rank, _ in keyword] == list(range(1, len(keyword) + 1))
    assert [hit.memory_id for hit in result.hits] == [memory_id for memory_id, _, _ in keyword][::-1][:4]
    assert len(by_arm["semantic"].entries) == 13
    scores = [hit.score for hit in result.hits]
    assert scores == sorted(scores, reverse=True)
    assert "fusion" in {boost.name for boost in result.hits[0].boosts}
    trace = result.trace
    assert (trace.fusion_method, trace.degraded) == ("reversed", "")
    assert trace.stage_timings_ms["fusion"] >= 0.0
    assert all(spent >= 0.0 for spent in trace.stage_timings_ms.values())
    (batch,) = await app.gate.call(ME, BatchRecall([QUERY]))
    assert texts(batch) == texts(result)
    await app.close()
    assert last(ReversedFusion).closed


async def test_a_query_that_names_a_method_gets_that() -> None:
    app, plain = await filled(app_of(block())), await filled(app_of())
    for method in FusionMethod:
        query = replace(QUERY, fusion_method=method)
        own, other = await app.gate.call(ME, Recall(query)), await plain.gate.call(ME, Recall(query))
        assert (texts(own), own.trace.fusion_method) == (texts(other), str(method))
    assert last(ReversedFusion).calls == []
    await app.close()
    await plain.close()


async def test_it_may_leave_out_and_adds_nothing() -> None:
    app = await filled(app_of(block("counting", options={"least": 2})))
    result = await app.gate.call(ME, Recall(replace(QUERY, max_results=50)))
    assert len(result.hits) == len(TEXTS)
    assert "Nothing of that." not in texts(result)
    assert len({hit.fused_score for hit in result.hits}) == 1
    ids = [hit.memory_id for hit in result.hits]
    assert ids == sorted(ids)
    await app.close()


async def test_boosts_and_reranking_come_after_it() -> None:
    boosts = {"quotes": {"weight": 100.0, "bound": 100.0}}
    app = await filled(app_of(block(), recall={"boosts": boosts}))
    result = await app.gate.call(ME, Recall(replace(QUERY, query='which ferry leaves? "number 0"')))
    assert result.hits[0].text == TEXTS[0]
    assert [boost.name for boost in result.hits[0].boosts] == ["fusion", "quotes"]
    await app.close()


@pytest.mark.parametrize("level", DetailLevel)
async def test_count_budget_and_what_the_caller_brings_hold_after_it(level: DetailLevel) -> None:
    app = await filled(app_of(block()))
    brought = (MemoryHit("A page about ferries.", 1.0),)
    result = await app.gate.call(
        ME, Recall(replace(QUERY, max_tokens=40, detail_level=level, external_context=brought, max_results=5))
    )
    assert sum(hit.token_count for hit in result.hits) <= 40
    assert len(result.hits) <= 5
    await app.close()


async def test_explain_says_what_it_did() -> None:
    app = await filled(app_of(block("counting", options={"least": 2})))
    query = replace(QUERY, max_results=3)
    hits = (await app.gate.call(ME, Recall(replace(query, max_results=50)))).hits
    page = await app.gate.call(ME, ListMemories("b"))
    (left_out,) = [one.memory_id for one in page.memories if one.content == "Nothing of that."]
    asked = ExplainQuery(query, (hits[0].memory_id, hits[5].memory_id, left_out))
    first, behind, out = (await app.gate.call(ME, Explain(asked))).explanations
    assert first.stage is ExplainStage.RETURNED
    assert behind.stage in {ExplainStage.MAX_RESULTS, ExplainStage.RERANKING}
    assert behind.counterfactual.query.max_results == 6
    assert out.stage is ExplainStage.RERANKING
    await app.close()


@pytest.mark.parametrize("fault", FAULTS)
async def test_without_it_the_servers_order_stands(fault: str) -> None:
    plain = await filled(app_of())
    expected = await plain.gate.call(ME, Recall(QUERY))
    await plain.close()
    with heard() as told:
        app = await filled(app_of(block("counting", options={"fault": fault}, timeout_seconds=0.05)))
        result = await app.gate.call(ME, Recall(QUERY))
        await app.close()
    assert texts(result) == texts(expected)
    assert result.trace.degraded == f"fusion ({REASONS[fault]})"
    assert result.trace.fusion_method == "dbsf"
    assert told == [("recall", "b", "fusion", f"fusion: {REASONS[fault]}")]


async def test_an_empty_bank_needs_none() -> None:
    app = await filled(app_of(block("counting")))
    result = await app.gate.call(ME, Recall(replace(QUERY, tags=("none",))))
    assert (result.hits, last(CountingFusion).calls) == ((), [])
    await app.close()


@pytest.mark.parametrize(
    ("pipeline", "problem"),
    [
        ({"fusion": {"mode": "custom"}}, "mode custom needs custom_fusion"),
        ({"fusion": {"custom_fusion": "counting"}}, "custom_fusion has no effect: mode is not custom"),
        ({"fusion": {"options": {"least": 2}}}, "options have no effect"),
        (block("counted"), "did you mean 'counting'"),
    ],
)
def test_what_would_do_nothing_is_refused(pipeline: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        app_of(pipeline)
