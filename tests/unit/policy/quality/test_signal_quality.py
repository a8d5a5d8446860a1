"""Scores of contents, noisy banks, and what the gate does with either."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from astrocyte.api.requests import BatchRetain, CreateBank, DeleteBank, ListMemories, Recall, Retain, StreamRetain
from astrocyte.app import App
from astrocyte.config import NoisyBankSettings, Settings
from astrocyte.errors import ConfigError, DimensionMismatch, LimitReached
from astrocyte.model import Caller, Embedding, RecallQuery, RetainItem, RetainResult
from astrocyte.policy.quality.content_scoring import score
from astrocyte.policy.quality.noisy_banks import KEPT_BANKS, RECENT, Noise

ME = Caller()
WORTH = [
    "Mara is allergic to peanuts.",
    "Deploy with `make release`; it needs the staging key.",
    "Der Termin ist am 3. Mai um zehn Uhr.",
    "彼女は明日の朝に東京へ行く予定です。",
    "def area(r): return 3.14159 * r ** 2",
    "| host | port |\n|---|---|\n| db-1 | 5432 |",
    " ".join(f"On day {n} we met person{n} in town{n} and ate at place{n} by the river." for n in range(90)),
]
WORTHLESS = [
    "",
    "ok",
    "Thanks, bye!",
    "!!!???!!!",
    "ha ha ha ha ha ha ha ha ha",
    "-----------",
    "test test",
    "aaaaaaaaa",
]


@pytest.mark.parametrize("content", WORTH)
def test_statements_are_worth_something(content: str) -> None:
    assert score(content) >= 0.3


@pytest.mark.parametrize("content", WORTHLESS)
def test_fillers_are_worth_nothing(content: str) -> None:
    assert score(content) < 0.3


@given(st.text(max_size=300))
def test_a_score_is_between_0_and_1(content: str) -> None:
    assert 0.0 <= score(content) <= 1.0


def app(**signal_quality: Any) -> App:
    return App(Settings.from_mapping({"vector_store": "in_memory", "signal_quality": signal_quality}))


async def test_low_quality_is_rejected_alone() -> None:
    built = app(scoring={"enabled": True})
    gate = built.gate
    refused = await gate.call(ME, Retain("b", RetainItem("ok"), request_id="one"))
    assert refused == RetainResult(
        stored=False, error="its quality is 0.00, the bank takes 0.30 and more", retention_action="rejected"
    )
    items = [RetainItem(content) for content in ("ok", WORTH[0], "bye", WORTH[1])]
    batch = await gate.call(ME, BatchRetain("b", items, request_id="two"))
    assert [result.retention_action for result in batch] == ["rejected", "created", "rejected", "created"]
    assert await gate.call(ME, BatchRetain("b", items, request_id="two")) == batch
    many = await gate.call(ME, StreamRetain("b", [*items[:1], RetainItem(WORTH[4])], request_ids=["three", "four"]))
    assert [result.retention_action for result in many if isinstance(result, RetainResult)] == ["rejected", "created"]
    # Each item of a stream keeps the answer to its own request.
    assert await gate.call(ME, Retain("b", RetainItem(WORTH[4]), request_id="four")) == many[1]
    assert {memory.content for memory in (await gate.call(ME, ListMemories("b"))).memories} == {
        WORTH[0],
        WORTH[1],
        WORTH[4],
    }
    await built.close()


async def test_low_quality_is_marked_or_told_of() -> None:
    for action in ("tag", "warn"):
        built = app(scoring={"enabled": True, "action": action})
        with capture_logs() as logs:
            await built.gate.call(ME, Retain("b", RetainItem("ok then", metadata={"a": 1})))
        await built.gate.call(ME, Retain("b", RetainItem(WORTH[0])))
        (event,) = [entry for entry in logs if entry["event"] == "astrocyte.policy.low_quality"]
        assert event["action"] == action
        assert "then" not in str(event)
        marked = await built.gate.call(ME, Recall(RecallQuery("ok then", "b", metadata={"_quality": "low"})))
        assert [hit.metadata for hit in marked.hits] == ([{"a": 1, "_quality": "low"}] if action == "tag" else [])
        await built.close()


async def test_the_threshold_is_the_settings() -> None:
    built = app(scoring={"enabled": True, "min_score": 0.5})
    assert (await built.gate.call(ME, Retain("b", RetainItem("green tea")))).retention_action == "rejected"
    await built.close()
    built = app(scoring={"enabled": True, "min_score": 0.4})
    assert (await built.gate.call(ME, Retain("b", RetainItem("green tea")))).stored
    await built.close()


class Clock:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


def noisy(**settings: Any) -> tuple[Noise, Clock, NoisyBankSettings]:
    clock = Clock()
    return Noise(clock), clock, NoisyBankSettings(**settings)


def feed(noise: Noise, clock: Clock, count: int, every: float, *, length: int = 100, duplicate: bool = False) -> None:
    for _ in range(count):
        noise.note("t", "b", length, duplicate=duplicate)
        clock.now += every


def test_a_spike_is_measured_against_the_hour_before() -> None:
    noise, clock, settings = noisy(retain_spike_multiplier=5.0)
    feed(noise, clock, 60, 10.0)
    assert noise.flags("t", "b", settings) == ()
    feed(noise, clock, 25, 0.1)
    assert noise.flags("t", "b", settings) == ()
    feed(noise, clock, 20, 0.1)
    assert noise.flags("t", "b", settings) == ("retain_spike",)
    assert noise.flags("t", "other", settings) == noise.flags("u", "b", settings) == ()
    clock.now += 61
    assert noise.flags("t", "b", settings) == ()


def test_a_young_bank_and_a_quiet_one_have_no_spikes() -> None:
    noise, clock, settings = noisy()
    feed(noise, clock, 2_000, 0.1)
    assert noise.flags("t", "b", settings) == ()
    noise, clock, settings = noisy()
    feed(noise, clock, 1, 400.0)
    feed(noise, clock, 9, 1.0)
    assert noise.flags("t", "b", settings) == ()
    feed(noise, clock, 1, 1.0)
    assert noise.flags("t", "b", settings) == ("retain_spike",)


def test_short_contents_and_duplicates_need_twenty_and_end_with_better_ones() -> None:
    noise, clock, settings = noisy(min_avg_content_length=20, max_dedup_rate=0.8)
    feed(noise, clock, 19, 1.0, length=19, duplicate=True)
    assert noise.flags("t", "b", settings) == ()
    feed(noise, clock, 1, 1.0, length=19, duplicate=True)
    assert noise.flags("t", "b", settings) == ("short_content", "high_dedup")
    feed(noise, clock, 5, 1.0, length=23)
    assert noise.flags("t", "b", settings) == ("short_content",)
    feed(noise, clock, 2, 1.0, length=40)
    assert noise.flags("t", "b", settings) == ()
    feed(noise, clock, RECENT, 1.0, length=1)
    assert noise.flags("t", "b", settings) == ("short_content",)
    clock.now += 3_600
    assert noise.flags("t", "b", settings) == ()


def test_memory_is_bounded() -> None:
    noise, clock, _ = noisy()
    for number in range(KEPT_BANKS + 100):
        noise.note("t", str(number), 10, duplicate=False)
    assert len(noise) == KEPT_BANKS
    dice = random.Random(1)
    for _ in range(20_000):
        clock.now += dice.choice([0.1, 5.0, 30.0])
        noise.note("t", "b", 10, duplicate=False)
    pattern = noise._patterns["t", "b"]
    assert len(pattern._slots) <= 360
    assert len(pattern._recent) == RECENT


async def flooded(action: str) -> tuple[App, list[Any]]:
    built = app(noisy_bank={"action": action})
    with capture_logs() as logs:
        for number in range(25):
            await built.gate.call(ME, Retain("b", RetainItem(f"n{number}")))
            if number == 19:
                assert not [entry for entry in logs if entry["event"].endswith("noisy_bank")]
            if action != "warn" and number == 19:
                break
    return built, logs


async def test_a_noisy_bank_is_told_of_once() -> None:
    built, logs = await flooded("warn")
    events = [entry for entry in logs if entry["event"] == "astrocyte.policy.noisy_bank"]
    assert [(event["flags"], event["action"]) for event in events] == [("short_content", "warn")]
    assert (await built.gate.call(ME, Retain("b", RetainItem("x")))).stored
    await built.close()


async def test_a_noisy_bank_is_slowed_down() -> None:
    built, _ = await flooded("throttle")
    with pytest.raises(LimitReached, match="noisy") as caught:
        await built.gate.call(ME, Retain("b", RetainItem("x")))
    assert caught.value.retry_after == 60.0
    assert (await built.gate.call(ME, Retain("quiet", RetainItem("x")))).stored
    assert (await built.gate.call(replace(ME, tenant="u"), Retain("b", RetainItem("x")))).stored
    await built.close()


async def test_a_noisy_bank_is_refused_until_it_sends_something_better() -> None:
    built, _ = await flooded("reject")
    gate = built.gate
    refused = await gate.call(ME, Retain("b", RetainItem("x")))
    assert (refused.retention_action, refused.error) == ("rejected", "bank 'b' is noisy (short_content)")
    long = RetainItem("this is a statement that says what happened and when it did so, at length " * 4)
    assert (await gate.call(ME, Retain("b", long))).retention_action == "rejected"
    results = [await gate.call(ME, Retain("b", long)) for _ in range(3)]
    assert [result.retention_action for result in results] == ["rejected", "created", "skipped"]
    await built.close()


async def test_recovery_forgets_the_noise() -> None:
    built, _ = await flooded("throttle")
    for listener in built.gate._policies.escalation._at_recovery:
        listener()
    assert (await built.gate.call(ME, Retain("b", RetainItem("x")))).stored
    await built.close()


async def test_a_bank_that_is_not_watched_is_not_counted() -> None:
    built = app(noisy_bank={"enabled": False, "action": "throttle"})
    for number in range(30):
        await built.gate.call(ME, Retain("b", RetainItem(f"n{number}")))
    await built.close()


def scored(*replies: str) -> App:
    values = {
        "vector_store": "in_memory",
        "llm_provider": "mock",
        "llm_provider_config": {"replies": list(replies)},
        "signal_quality": {"scoring": {"enabled": True, "scorer": "llm"}},
    }
    return App(Settings.from_mapping(values))


async def test_a_model_may_score() -> None:
    built = scored('{"score": 0.9}', '{"score": 0.1}')
    assert (await built.gate.call(ME, Retain("b", RetainItem("ok")))).stored
    refused = await built.gate.call(ME, Retain("b", RetainItem(WORTH[0])))
    assert refused.error == "its quality is 0.10, the bank takes 0.30 and more"
    await built.close()


@pytest.mark.parametrize("reply", ["no", "7", '{"score": 7}', '{"score": true}', '{"score": "1"}', "{}"])
async def test_rules_score_where_the_model_fails(reply: str) -> None:
    built = scored(reply)
    with capture_logs() as logs:
        assert not (await built.gate.call(ME, Retain("b", RetainItem("ok")))).stored
        assert (await built.gate.call(ME, Retain("b", RetainItem(WORTH[0])))).stored
    assert "astrocyte.policy.scored_by_rules" in {entry["event"] for entry in logs}
    await built.close()


def test_a_model_must_be_there_to_score() -> None:
    with pytest.raises(ConfigError, match="set llm_provider"):
        app(scoring={"enabled": True, "scorer": "llm"})


async def test_what_is_stored_again_for_itself_is_judged_and_counted_once() -> None:
    built = app(scoring={"enabled": True, "action": "warn"}, noisy_bank={"enabled": True})
    gate = built.gate
    await gate.call(ME, CreateBank("b"))
    wrong = RetainItem(WORTH[0], embedding=Embedding("theirs", 2, bytes(4) + b"\x00\x00\x80?"))
    items = [RetainItem("mail ana@example.org"), RetainItem("ok"), wrong]
    with capture_logs() as logs:
        results = await gate.call(ME, StreamRetain("b", items, request_ids=["one", "two", "three"]))
    assert [isinstance(result, RetainResult) and result.stored for result in results] == [True, True, False]
    assert isinstance(results[2], DimensionMismatch)
    events = [entry["event"].rpartition(".")[2] for entry in logs]
    assert (events.count("pii_redacted"), events.count("low_quality")) == (1, 1)
    noise = gate._policies.signal_quality._noise
    assert [(one.length, one.duplicate) for one in noise._patterns["default", "b"]._recent] == [(21, False), (2, False)]
    # Each keeps its answer, with what was said of it.
    again = await gate.call(ME, StreamRetain("b", items[:2], request_ids=["one", "two"]))
    assert again == results[:2]
    assert isinstance(again[0], RetainResult)
    assert again[0].warnings == ("pii: redacted email (1)",)
    await built.close()


async def test_one_refused_item_of_a_stream_spoils_no_other() -> None:
    settings = {"vector_store": "in_memory", "barriers": {"pii": {"action": "reject"}}}
    built = App(Settings.from_mapping(settings))
    with capture_logs() as logs:
        results = await built.gate.call(
            ME, StreamRetain("b", [RetainItem("tea at noon"), RetainItem("ana@example.org"), RetainItem("jam at four")])
        )
    assert [isinstance(result, RetainResult) for result in results] == [True, False, True]
    assert [entry["event"].rpartition(".")[2] for entry in logs].count("pii_rejected") == 1
    await built.close()


async def test_a_bank_that_is_made_anew_is_not_held_to_the_one_before() -> None:
    built = app(noisy_bank={"enabled": True, "action": "reject"})
    gate = built.gate
    for number in range(20):
        await gate.call(ME, Retain("b", RetainItem(f"{number}")))
    assert not (await gate.call(ME, Retain("b", RetainItem(WORTH[0])))).stored
    await gate.call(ME, DeleteBank("b"))
    assert (await gate.call(ME, Retain("b", RetainItem(WORTH[0])))).stored
    assert not gate._policies.signal_quality._told
    await built.close()
