"""Questions read by another: intent, windows, faults."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from astrocyte.api.requests import BatchRecall, Recall, Retain
from astrocyte.model import Intent, RecallQuery, RetainItem, TimeRange
from astrocyte.pipelines.custom.bounded_call import UnusableError
from astrocyte.pipelines.custom.query_analysis import MOST_WINDOWS, _checked
from astrocyte.providers.stages import QueryAnalysis
from doubles.stages import ME, app_of, heard, last
from doubles.third_party import FAULTS, REASONS, PayPeriodAnalyser

TODAY = datetime(2024, 6, 20, tzinfo=UTC)
QUERY = RecallQuery("what did I buy in the last pay period?", "b", query_reference_date=TODAY)


def block(**analysis: Any) -> dict[str, Any]:
    return {"query_analysis": {"mode": "custom", "custom_analyser": "pay_periods", **analysis}}


async def filled(app: Any, bank: str = "b") -> Any:
    for days in (100, 50, 7):
        item = RetainItem(f"I bought a coat {days} days ago.", occurred_at=TODAY - timedelta(days=days))
        await app.gate.call(ME, Retain(bank, item))
    return app


async def test_its_windows_and_intent_are_those_of_the_recall() -> None:
    app = await filled(app_of(block()))
    result = await app.gate.call(ME, Recall(QUERY))
    trace = result.trace
    assert trace is not None
    assert (trace.intent, trace.intent_confidence) == (Intent.TEMPORAL, 0.9)
    assert trace.time_windows == (TimeRange(TODAY - timedelta(days=14), TODAY),)
    assert "temporal" in (trace.strategies_used or ())
    assert result.hits[0].text == "I bought a coat 7 days ago."
    assert trace.stage_timings_ms is not None
    assert trace.stage_timings_ms["query_analysis"] >= 0.0
    assert all(spent >= 0.0 for spent in trace.stage_timings_ms.values())
    assert trace.degraded == ""
    assert last(PayPeriodAnalyser).calls == [(QUERY.query, TODAY.date())]
    await app.close()
    plain = await filled(app_of())
    assert "temporal" not in ((await plain.gate.call(ME, Recall(QUERY))).trace.strategies_used or ())
    await plain.close()


async def test_what_it_leaves_open_the_rules_say() -> None:
    app, plain = await filled(app_of(block())), await filled(app_of())
    query = RecallQuery("when did I buy a coat in June 2024?", "b")
    own, rules = [(await one.gate.call(ME, Recall(query))).trace for one in (app, plain)]
    assert (own.intent, own.time_windows) == (rules.intent, rules.time_windows) == (Intent.TEMPORAL, rules.time_windows)
    await app.close()
    await plain.close()


async def test_the_callers_own_range_stays() -> None:
    app = await filled(app_of(block()))
    span = TimeRange(TODAY - timedelta(days=60), TODAY)
    query = RecallQuery(QUERY.query, "b", query_reference_date=TODAY, time_range=span)
    result = await app.gate.call(ME, Recall(query))
    assert result.trace.time_windows == (span, TimeRange(TODAY - timedelta(days=14), TODAY))
    assert {hit.text for hit in result.hits} == {"I bought a coat 7 days ago.", "I bought a coat 50 days ago."}
    await app.close()


async def test_several_banks_and_batches_ask_once_for_each_question() -> None:
    app = await filled(await filled(app_of(block())), "c")
    analyser = last(PayPeriodAnalyser)
    several = RecallQuery(QUERY.query, banks=("b", "c"), query_reference_date=TODAY, max_results=6)
    result = await app.gate.call(ME, Recall(several))
    assert len(analyser.calls) == 1
    assert result.trace.time_windows == (TimeRange(TODAY - timedelta(days=14), TODAY),)
    await app.gate.call(ME, BatchRecall([QUERY, QUERY]))
    assert len(analyser.calls) == 2
    await app.close()


@pytest.mark.parametrize("fault", FAULTS)
async def test_where_it_fails_the_rules_stand(fault: str) -> None:
    plain = await filled(app_of())
    expected = await plain.gate.call(ME, Recall(QUERY))
    await plain.close()
    with heard() as told:
        app = await filled(app_of(block(options={"fault": fault}, timeout_seconds=0.05)))
        result = await app.gate.call(ME, Recall(QUERY))
        await app.close()
    assert [hit.text for hit in result.hits] == [hit.text for hit in expected.hits]
    assert (result.trace.intent, result.trace.time_windows) == (expected.trace.intent, expected.trace.time_windows)
    assert result.trace.degraded == f"query_analysis ({REASONS[fault]})"
    assert told == [("recall", "b", "query_analysis", f"query_analysis: {REASONS[fault]}")]


async def test_a_step_that_fails_again_and_again_is_left_alone() -> None:
    app = await filled(
        app_of(block(options={"fault": "raises"}), escalation={"circuit_breaker": {"failure_threshold": 2}})
    )
    reasons = [(await app.gate.call(ME, Recall(QUERY))).trace.degraded for _ in range(3)]
    assert reasons == [f"query_analysis ({why})" for why in ("RuntimeError", "RuntimeError", "circuit_open")]
    assert len(last(PayPeriodAnalyser).calls) == 2
    await app.close()


@pytest.mark.parametrize(
    "analysis",
    [
        "temporal",
        QueryAnalysis(Intent.FACTUAL, float("nan")),
        QueryAnalysis(Intent.FACTUAL, -0.1),
        QueryAnalysis(windows=[TimeRange(datetime(2024, 1, 1), None)]),  # noqa: DTZ001 - that is what is wrong with it
        QueryAnalysis(windows=[TimeRange(TODAY, TODAY - timedelta(days=1))]),
        QueryAnalysis(windows=[TimeRange(TODAY, TODAY)] * (MOST_WINDOWS + 1)),
    ],
)
def test_what_is_no_analysis_is_refused(analysis: Any) -> None:
    with pytest.raises(UnusableError):
        _checked(analysis)
