"""Explain through the gate: who may ask, what is said, and what would have helped."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from astrocyte.api.requests import Explain, Forget, Recall, Retain
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.errors import AccessDenied, BankNotFound, RateLimited, ValidationError
from astrocyte.model import (
    Caller,
    DetailLevel,
    ExplainQuery,
    ExplainStage,
    Explanation,
    ForgetSelector,
    MemoryHit,
    RecallQuery,
    RetainItem,
    TagMatch,
    TimeRange,
)
from astrocyte.policy.gate import Gate

ANN = Caller(principal="user:ann")
BOB = Caller(principal="user:bob")
DAY = datetime(2025, 3, 4, tzinfo=UTC)
NOWHERE = "mem_" + "0" * 32


def app_of(**settings: Any) -> App:
    return App(Settings.from_mapping({"vector_store": "in_memory", **settings}))


async def keep(gate: Gate, content: str, bank_id: str = "b", **fields: Any) -> str:
    return (await gate.call(ANN, Retain(bank_id, RetainItem(content, **fields)))).memory_id or ""


async def tell(gate: Gate, query: RecallQuery, memory_id: str) -> Explanation:
    (told,) = (await gate.call(ANN, Explain(ExplainQuery(query, (memory_id,))))).explanations
    advice = told.counterfactual
    if advice is not None:
        answer = await gate.call(ANN, Recall(advice.query))
        assert memory_id in {hit.memory_id for hit in answer.hits}
    return told


async def test_a_hit_has_its_place_and_the_word_of_every_arm() -> None:
    app = app_of()
    first = await keep(app.gate, "The ferry to Naxos leaves at seven.")
    await keep(app.gate, "Bread and salt.")
    told = await tell(app.gate, RecallQuery("when does the ferry leave?", "b"), first)
    assert (told.stage, told.rank, told.fused_rank, told.counterfactual) == (ExplainStage.RETURNED, 1, 1, None)
    assert {arm.arm: arm.rank for arm in told.arms} == {"semantic": 1, "keyword": 1}
    (hit, *_) = (await app.gate.call(ANN, Recall(RecallQuery("when does the ferry leave?", "b")))).hits
    assert (told.score, told.fused_score) == (hit.score, hit.fused_score)
    await app.close()


CONDITIONS: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("tags", {"tags": ("red",)}, {"tags": ("red", "blue")}),
    ("tags", {"tags": ("red", "blue"), "tag_match": TagMatch.ALL}, {"tags": ("blue",)}),
    ("tags", {"tags": ("blue",), "tag_match": TagMatch.NONE}, {"tags": (), "tag_match": TagMatch.ANY}),
    ("fact_types", {"fact_types": ("rumour",)}, {"fact_types": ("rumour", "world")}),
    ("metadata", {"metadata": {"n": 1, "m": 1}}, {"metadata": {"n": 1}}),
    ("session_id", {"session_id": "other"}, {"session_id": None}),
    ("memory_ids", {"memory_ids": (NOWHERE,)}, {}),
    ("time_range", {"time_range": TimeRange(DAY + timedelta(1), None)}, {"time_range": TimeRange(DAY, None)}),
    ("time_range", {"time_range": TimeRange(None, DAY - timedelta(1))}, {"time_range": TimeRange(None, DAY)}),
    ("retained_range", {"retained_range": TimeRange(None, DAY)}, {}),
    ("valid_at", {"valid_at": DAY - timedelta(9)}, {"valid_at": DAY}),
    ("valid_at", {"valid_at": DAY + timedelta(9)}, {"valid_at": DAY + timedelta(2)}),
    ("as_of", {"as_of": DAY}, {}),
]


@pytest.mark.parametrize(("field", "asked", "advised"), CONDITIONS)
async def test_each_condition_is_named_and_widened_no_more_than_needed(
    field: str, asked: dict[str, Any], advised: dict[str, Any]
) -> None:
    app = app_of()
    fields: dict[str, Any] = {
        "occurred_at": DAY,
        "valid_from": DAY,
        "valid_until": DAY + timedelta(2),
        "session_id": "s",
    }
    kept = await keep(app.gate, "The ferry leaves at seven.", tags=("blue",), metadata={"n": 1}, **fields)
    query = RecallQuery("ferry", "b", **asked)
    told = await tell(app.gate, query, kept)
    assert (told.stage, told.conditions, told.arms) == (ExplainStage.FILTER, (field,), ())
    assert told.counterfactual is not None
    if advised:
        assert told.counterfactual.query == replace(query, **advised)
    await app.close()


async def test_two_conditions_take_two_changes() -> None:
    app = app_of()
    kept = await keep(app.gate, "The ferry leaves at seven.", occurred_at=DAY)
    told = await tell(app.gate, RecallQuery("ferry", "b", tags=("red",), session_id="x"), kept)
    assert told.conditions == ("tags", "session_id")
    assert told.counterfactual is not None
    assert told.counterfactual.fields == ("tags", "session_id")
    assert told.counterfactual.summary == "tags=[], session_id=none"
    await app.close()


async def test_the_budget_is_raised_by_what_is_missing() -> None:
    app = app_of()
    await keep(app.gate, "The ferry leaves at seven.")
    late = await keep(app.gate, "The ferry to the other island leaves at nine in the evening.")
    query = RecallQuery("when does the ferry leave at seven?", "b", max_tokens=8)
    told = await tell(app.gate, query, late)
    assert (told.stage, told.tokens_left) == (ExplainStage.TOKEN_BUDGET, 8 - 6)
    assert told.counterfactual is not None
    wanted = told.counterfactual.query.max_tokens
    assert wanted == 6 + told.token_count
    less = await app.gate.call(ANN, Recall(replace(query, max_tokens=wanted - 1)))
    assert late not in {hit.memory_id for hit in less.hits}
    await app.close()


async def test_titles_are_shown_within_the_budget_too() -> None:
    app = app_of()
    await keep(app.gate, "The ferry leaves at seven.")
    late = await keep(app.gate, "The ferry to the other island leaves at nine in the evening.")
    query = RecallQuery("the ferry leaves at seven", "b", max_tokens=8, detail_level=DetailLevel.TITLES)
    told = await tell(app.gate, query, late)
    assert told.stage is ExplainStage.TOKEN_BUDGET
    assert told.counterfactual is not None
    wanted = told.counterfactual.query.max_tokens or 0
    less = await app.gate.call(ANN, Recall(replace(query, max_tokens=wanted - 1)))
    assert late not in {hit.memory_id for hit in less.hits}
    await app.close()


async def test_beyond_the_ceiling_no_budget_helps_and_the_memory_is_asked_for_alone() -> None:
    app = app_of(homeostasis={"recall_max_tokens": 25})
    await keep(app.gate, "The ferry leaves at seven, and the boat to the island an hour later, if the sea allows.")
    late = await keep(app.gate, "The ferry to the other island leaves at nine in the evening, from the old harbour.")
    told = await tell(app.gate, RecallQuery("the ferry leaves at seven", "b"), late)
    assert told.stage is ExplainStage.TOKEN_BUDGET
    assert told.counterfactual is not None
    assert told.counterfactual.fields == ("memory_ids",)
    await app.close()


async def test_a_repeat_names_the_hit_that_it_repeats() -> None:
    app = app_of(signal_quality={"dedup": {"similarity_threshold": 1.0}})
    first = await keep(app.gate, "The ferry leaves at seven o'clock.")
    second = await keep(app.gate, "The ferry leaves at seven o'clock, daily.")
    query = RecallQuery("the ferry leaves at seven o'clock", "b", dedup_threshold=0.5)
    told = await tell(app.gate, query, second)
    assert (told.stage, told.repeats) == (ExplainStage.DUPLICATE, first)
    assert told.similarity is not None
    assert told.counterfactual is not None
    threshold = told.counterfactual.query.dedup_threshold or 0.0
    assert told.similarity < threshold < told.similarity + 2e-4
    await app.close()


async def test_the_least_number_of_hits_is_found() -> None:
    app = app_of()
    ids = [await keep(app.gate, f"The ferry number {number} leaves at {number} o'clock.") for number in range(60)]
    query = RecallQuery("which ferry leaves at seven?", "b", max_results=3)
    answer = await app.gate.call(ANN, Recall(replace(query, max_results=60)))
    places = {hit.memory_id: place for place, hit in enumerate(answer.hits, 1)}
    for memory_id in ids[20:24]:
        told = await tell(app.gate, query, memory_id)
        assert told.stage is ExplainStage.MAX_RESULTS
        assert told.counterfactual is not None
        wanted = told.counterfactual.query.max_results
        assert abs(wanted - places[memory_id]) <= 1
        less = await app.gate.call(ANN, Recall(replace(query, max_results=wanted - 1)))
        assert memory_id not in {hit.memory_id for hit in less.hits}
    await app.close()


async def test_results_from_elsewhere_may_push_a_memory_out() -> None:
    app = app_of(recall={"external_weight": 2.0})
    kept = await keep(app.gate, "The ferry leaves at seven.")
    outside = tuple(MemoryHit(f"A page about ferries, number {number}.", 1.0) for number in range(3))
    query = RecallQuery("ferry", "b", max_results=2, external_context=outside)
    answer = await app.gate.call(ANN, Recall(query))
    told = await tell(app.gate, query, kept)
    there = kept in {hit.memory_id for hit in answer.hits}
    assert told.stage is (ExplainStage.RETURNED if there else ExplainStage.MAX_RESULTS)
    assert not there
    await app.close()


async def test_what_may_not_leave_is_said_to_be_held_back_and_what_is_redacted_to_be_there() -> None:
    for action, stage in (("reject", ExplainStage.POLICY), ("redact", ExplainStage.RETURNED)):
        app = app_of(
            barriers={"pii": {"mode": "disabled"}}, dlp={"scan_recall_output": True, "output_pii_action": action}
        )
        kept = await keep(app.gate, "Write to mara@example.org about the ferry.")
        told = await tell(app.gate, RecallQuery("ferry", "b"), kept)
        assert (told.stage, told.counterfactual) == (stage, None)
        assert told.redacted is (action == "redact")
        assert "mara" not in repr(told)
        # Nor does another query help it out.
        excluded = await tell(app.gate, RecallQuery("ferry", "b", tags=("x",)), kept)
        assert excluded.stage is ExplainStage.FILTER
        assert (excluded.counterfactual is None) is (action == "reject")
        await app.close()


async def test_what_is_gone_elsewhere_or_was_never_there_is_told_alike() -> None:
    app = app_of()
    gone = await keep(app.gate, "The ferry leaves at seven.")
    elsewhere = await keep(app.gate, "The other ferry.", bank_id="other")
    await keep(app.gate, "Something else.")
    await app.gate.call(ANN, Forget("b", ForgetSelector((gone,))))
    asked = ExplainQuery(RecallQuery("ferry", "b"), (gone, elsewhere, NOWHERE, "no id at all"))
    told = (await app.gate.call(ANN, Explain(asked))).explanations
    assert {replace(one, memory_id="") for one in told} == {replace(told[0], memory_id="")}
    assert told[0].stage is ExplainStage.NOT_FOUND
    await app.close()


async def test_it_needs_what_a_recall_needs() -> None:
    access = {"access_control": {"enabled": True, "default_policy": "owner_only"}}
    app = app_of(**access)
    kept = await keep(app.gate, "The ferry leaves at seven.")
    asked = ExplainQuery(RecallQuery("ferry", "b"), (kept,))
    assert (await app.gate.call(ANN, Explain(asked))).explanations[0].rank == 1
    with pytest.raises((AccessDenied, BankNotFound)) as refused:
        await app.gate.call(BOB, Explain(asked))
    with pytest.raises(type(refused.value)) as missing:
        await app.gate.call(BOB, Explain(replace(asked, query=RecallQuery("ferry", "none"))))
    assert str(missing.value).replace("none", "b") == str(refused.value)
    await app.close()


async def test_it_counts_as_a_recall() -> None:
    app = app_of(homeostasis={"rate_limits": {"recall_per_minute": 1}})
    kept = await keep(app.gate, "The ferry leaves at seven.")
    asked = ExplainQuery(RecallQuery("ferry", "b"), (kept,))
    await app.gate.call(ANN, Explain(asked))
    with pytest.raises(RateLimited):
        await app.gate.call(ANN, Explain(asked))
    await app.close()


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        (ExplainQuery(RecallQuery("ferry", "b"), ()), "memory_ids"),
        (ExplainQuery(RecallQuery("ferry", "b"), (NOWHERE,) * 21), "memory_ids"),
        (ExplainQuery(RecallQuery("ferry", "b", max_results=0), (NOWHERE,)), "max_results"),
        (ExplainQuery(RecallQuery("ferry", "b"), (NOWHERE,), -1), "position"),
    ],
)
async def test_bad_input_names_its_field(asked: ExplainQuery, field: str) -> None:
    app = app_of()
    await keep(app.gate, "The ferry leaves at seven.")
    with pytest.raises(ValidationError) as refused:
        await app.gate.call(ANN, Explain(asked))
    assert refused.value.field == field
    await app.close()


async def test_a_bank_that_moved_on_is_said_to_have() -> None:
    app = app_of()
    kept = await keep(app.gate, "The ferry leaves at seven.")
    query = RecallQuery("ferry", "b")
    answer = await app.gate.call(ANN, Recall(query))
    assert answer.trace is not None
    asked = ExplainQuery(replace(query, min_position=answer.trace.position), (kept,), answer.trace.position)
    told = await app.gate.call(ANN, Explain(asked))
    assert (told.moved, told.position, told.returned) == (False, answer.trace.position, 1)
    await keep(app.gate, "Something else.")
    assert (await app.gate.call(ANN, Explain(asked))).moved
    await app.close()


async def test_the_database_decides_over_the_index() -> None:
    app = app_of()
    kept = await keep(app.gate, "The ferry leaves at seven.")
    store = app.storage.store
    store.hydrate = lambda *_: []
    told = await tell(app.gate, RecallQuery("ferry", "b"), kept)
    assert (told.stage, told.counterfactual) == (ExplainStage.INDEX, None)
    await app.close()


async def test_a_stage_after_the_core_that_leaves_a_memory_out_is_named() -> None:
    app = app_of(recall={"boosts": {"quotes": {"weight": 3.0, "bound": 3.0}}})
    for number in range(6):
        await keep(app.gate, f"The ferry number {number} leaves at seven, says the table.")
    late = await keep(app.gate, "A boat.")
    query = RecallQuery('who said "says the table" of a boat?', "b", max_results=2)
    told = await tell(app.gate, query, late)
    assert told.stage in {ExplainStage.RERANKING, ExplainStage.MAX_RESULTS}
    assert told.counterfactual is not None
    plain = await app.gate.call(ANN, Recall(replace(query, query="who said says the table of a boat?")))
    if late in {hit.memory_id for hit in plain.hits}:
        assert told.stage is ExplainStage.RERANKING
    wanted = told.counterfactual.query.max_results
    less = await app.gate.call(ANN, Recall(replace(query, max_results=wanted - 1)))
    assert late not in {hit.memory_id for hit in less.hits}
    await app.close()


async def test_where_recalls_go_by_tiers_it_says_which_one_it_looks_at() -> None:
    app = app_of(tiered_retrieval={"enabled": True})
    kept = await keep(app.gate, "The ferry leaves at seven.")
    result = await app.gate.call(ANN, Explain(ExplainQuery(RecallQuery("ferry", "b"), (kept,))))
    assert [warning.partition(":")[0] for warning in result.warnings] == ["tiers"]
    await app.close()
