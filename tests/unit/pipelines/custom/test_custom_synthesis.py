"""Answers by a synthesiser of others: its citations, its budget, its faults."""

from dataclasses import replace
from typing import Any

import pytest

from astrocyte.api.requests import Reflect, Retain, StreamReflect
from astrocyte.errors import CapabilityNotSupported, ConfigError, DeadlineExceeded, ProviderUnavailable
from astrocyte.model import Citation, ReflectMode, ReflectQuery, ReflectResult, RetainItem
from doubles.stages import ME, app_of, heard, last
from doubles.third_party import FAULTS, REASONS, QuotingSynthesiser

OBOE = "Mara plays the oboe in the town band."
QUERY = ReflectQuery("what does Mara play?", "b")


def block(mode: str = "custom", **reflect: Any) -> dict[str, Any]:
    return {"reflect": {"mode": mode, "custom_synthesiser": "quoting", **reflect}}


async def filled(app: Any) -> Any:
    await app.gate.call(ME, Retain("b", RetainItem(OBOE, speaker="Ann")))
    await app.gate.call(ME, Retain("b", RetainItem("The bus to the harbour leaves at nine.")))
    return app


async def test_it_answers_out_of_what_the_caller_may_see() -> None:
    app = await filled(app_of(block()))
    result = await app.gate.call(ME, Reflect(QUERY))
    ((question, memories, most),) = last(QuotingSynthesiser).calls
    assert (question, most) == (QUERY.query, 2_048)
    assert (memories[0].number, memories[0].text, memories[0].speaker) == (1, OBOE, "Ann")
    assert (result.answer, result.mode, result.confidence) == (OBOE, ReflectMode.CUSTOM, 0.75)
    # What lies outside of the text, or names no memory, is dropped.
    assert result.citations == (Citation(0, len(OBOE), memories[0].memory_id),)
    assert [hit.memory_id for hit in result.sources] == [memories[0].memory_id]
    assert result.trace.stage_timings_ms["synthesis"] > 0.0
    pieces = [piece async for piece in app.gate.stream(ME, StreamReflect(QUERY))]
    assert pieces[0] == OBOE
    assert isinstance(pieces[-1], ReflectResult)
    await app.close()


async def test_a_caller_may_ask_for_it() -> None:
    app = await filled(app_of(block("extractive")))
    assert (await app.gate.call(ME, Reflect(QUERY))).mode is ReflectMode.EXTRACTIVE
    assert (await app.gate.call(ME, Reflect(replace(QUERY, mode=ReflectMode.CUSTOM)))).mode is ReflectMode.CUSTOM
    await app.close()
    app = await filled(app_of())
    with pytest.raises(CapabilityNotSupported, match="custom_synthesiser"):
        await app.gate.call(ME, Reflect(replace(QUERY, mode=ReflectMode.CUSTOM)))
    await app.close()


async def test_the_budget_cuts_and_silence_abstains() -> None:
    app = await filled(app_of(block(options={"text": f"{OBOE} " * 40})))
    result = await app.gate.call(ME, Reflect(replace(QUERY, max_tokens=20)))
    assert result.truncated
    assert result.answer.startswith(OBOE)
    assert len(result.answer) < 3 * len(OBOE)
    assert all(0 <= one.start < one.end <= len(result.answer) for one in result.citations)
    await app.close()
    app = await filled(app_of(block(options={"silent": True})))
    result = await app.gate.call(ME, Reflect(QUERY))
    assert (result.abstained, result.sources) == (True, ())
    await app.close()


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("fallback", ["error", "extractive", "degrade"])
async def test_where_it_fails_the_fallback_says(fault: str, fallback: str) -> None:
    pipeline = block(options={"fault": fault}, deadline_seconds=0.1)
    kind = DeadlineExceeded if REASONS[fault] == "timeout" else ProviderUnavailable
    with heard() as told:
        app = await filled(app_of(pipeline, fallback_strategy=fallback))
        if fallback == "error":
            with pytest.raises(kind, match=REASONS[fault]) as failure:
                await app.gate.call(ME, Reflect(QUERY))
            assert "secret" not in repr(failure.value)
        else:
            result = await app.gate.call(ME, Reflect(QUERY))
            assert result.fallback_used
            assert OBOE[:-1] in result.answer
            assert result.trace.degraded == f"synthesis ({kind.reason.lower()})"
            assert result.observations[-1] == "The synthesiser could not answer; this is what memory says."
        await app.close()
    assert told == [("reflect", "b", "synthesis", f"synthesis: {REASONS[fault]}")]


@pytest.mark.parametrize(
    ("pipeline", "problem"),
    [
        ({"reflect": {"mode": "custom"}}, "mode custom needs custom_synthesiser"),
        ({"reflect": {"options": {"a": 1}}}, "options have no effect"),
        (block(custom_synthesiser="quote"), "did you mean 'quoting'"),
    ],
)
def test_what_would_do_nothing_is_refused(pipeline: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        app_of(pipeline)
