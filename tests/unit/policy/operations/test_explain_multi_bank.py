"""Explain of answers of several sides: banks asked together or in turn, relevant memories, engines beside them."""

from dataclasses import replace
from typing import Any

import pytest

from astrocyte.api.requests import BatchRetain, Explain, Recall, Retain
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.errors import BankNotFound, ValidationError
from astrocyte.model import (
    BankOutcome,
    Caller,
    DetailLevel,
    ExplainQuery,
    ExplainStage,
    Explanation,
    FusionMethod,
    MemoryHit,
    MultiBankMode,
    MultiBankStrategy,
    RecallQuery,
    RetainItem,
)
from astrocyte.policy.gate import Gate
from harness.engines import Shelf, hybrid_app

ANN = Caller(principal="user:ann")
BOB = Caller(principal="user:bob")
FERRY = "The ferry to Naxos leaves at seven."


def app_of(**settings: Any) -> App:
    return App(Settings.from_mapping({"vector_store": "in_memory", **settings}))


async def keep(gate: Gate, bank_id: str, *contents: str, **fields: Any) -> list[str]:
    results = await gate.call(ANN, BatchRetain(bank_id, [RetainItem(content, **fields) for content in contents]))
    return [result.memory_id or "" for result in results]


async def tell(gate: Gate, query: RecallQuery, memory_id: str) -> Explanation:
    """The explanation of a memory, checked: following its advice returns the memory."""
    (told,) = (await gate.call(ANN, Explain(ExplainQuery(query, (memory_id,))))).explanations
    found = {hit.memory_id for hit in (await gate.call(ANN, Recall(query))).hits}
    assert (memory_id in found) is (told.stage is ExplainStage.RETURNED)
    advice = told.counterfactual
    if advice is not None:
        answer = await gate.call(ANN, Recall(advice.query))
        assert memory_id in {hit.memory_id for hit in answer.hits}
    return told


def both(question: str = "when does the ferry leave?", **values: Any) -> RecallQuery:
    strategy = MultiBankStrategy(**values.pop("strategy", {}))
    return RecallQuery(question, **{"banks": ("a", "b"), "strategy": strategy, "max_results": 3, **values})


@pytest.fixture
async def app() -> Any:
    app = app_of(signal_quality={"dedup": {"similarity_threshold": 1.0}})
    yield app
    await app.close()


async def test_a_hit_has_its_place_and_its_bank(app: App) -> None:
    (ferry,) = await keep(app.gate, "a", FERRY)
    await keep(app.gate, "b", "Bread and salt.")
    told = await tell(app.gate, both(), ferry)
    assert (told.stage, told.rank, told.bank_id, told.counterfactual) == (ExplainStage.RETURNED, 1, "a", None)
    assert {arm.arm for arm in told.arms} == {"semantic", "keyword"}


async def test_within_its_bank_it_is_explained_as_there(app: App) -> None:
    (ferry,) = await keep(app.gate, "a", FERRY, tags=("sea",))
    await keep(app.gate, "b", "Bread and salt.", tags=("food",))
    told = await tell(app.gate, both(tags=("food",)), ferry)
    assert (told.stage, told.conditions, told.bank_id) == (ExplainStage.FILTER, ("tags",), "a")
    assert told.counterfactual is not None
    assert told.counterfactual.query.banks == ("a", "b")


async def test_hits_of_another_bank_may_be_better(app: App) -> None:
    fillers = ["Bread and salt.", "Green tea in winter.", "A letter from the doctor.", "The cat is asleep."]
    await keep(app.gate, "a", FERRY, "The ferry to Paros leaves at nine.", *fillers)
    await keep(app.gate, "b", "A book of music.", "The school is closed.", "Paper and stones.")
    # The best of its bank.
    late = (await app.gate.call(ANN, Recall(both(banks=("b",), max_results=1)))).hits[0].memory_id or ""
    # By ranks the best hits of both banks would be equal.
    by_scores = {"fusion_method": FusionMethod.DBSF}
    told = await tell(app.gate, both(max_results=2, strategy=by_scores), late)
    assert (told.stage, told.bank_id) == (ExplainStage.BANK_FUSION, "b")
    assert told.detail.startswith("rank ")
    assert told.counterfactual is not None
    assert told.counterfactual.fields == ("max_results",)
    advised = told.counterfactual.query
    less = replace(advised, max_results=advised.max_results - 1)
    assert late not in {hit.memory_id for hit in (await app.gate.call(ANN, Recall(less))).hits}


async def test_a_bank_without_weight_has_no_hits(app: App) -> None:
    await keep(app.gate, "a", "Bread and salt.")
    (ferry,) = await keep(app.gate, "b", FERRY)
    told = await tell(app.gate, both(strategy={"bank_weights": {"b": 0.0}}), ferry)
    assert (told.stage, told.detail) == (ExplainStage.BANK_FUSION, "its bank has weight 0")
    assert told.counterfactual is not None
    assert told.counterfactual.query.strategy == MultiBankStrategy(bank_weights={"b": 1.0})
    assert told.counterfactual.summary == "strategy=bank_weights {'b': 1.0}"


async def test_what_two_banks_hold_is_one_hit(app: App) -> None:
    (first,) = await keep(app.gate, "a", FERRY)
    (second,) = await keep(app.gate, "b", FERRY)
    told = {one: await tell(app.gate, both(), one) for one in (first, second)}
    (kept,) = [one for one in told if told[one].stage is ExplainStage.RETURNED]
    (folded,) = [one for one in told if one != kept]
    assert (told[folded].stage, told[folded].repeats) == (ExplainStage.DUPLICATE, kept)
    advice = told[folded].counterfactual
    assert advice is not None
    assert (advice.fields, advice.summary) == (("strategy",), "strategy=dedup_across_banks False")


@pytest.mark.parametrize(
    ("mode", "reason"), [(MultiBankMode.CASCADE, "enough_results"), (MultiBankMode.FIRST_MATCH, "first_match")]
)
async def test_a_bank_that_was_not_asked(app: App, mode: MultiBankMode, reason: str) -> None:
    await keep(app.gate, "a", "The ferry to Paros leaves at nine.", "Bread and salt.")
    (ferry,) = await keep(app.gate, "b", FERRY)
    told = await tell(app.gate, both(strategy={"mode": mode, "min_results_to_stop": 1}), ferry)
    assert (told.stage, told.detail) == (ExplainStage.BANK_NOT_ASKED, f"its bank was not asked: {reason}")
    assert (told.arms, told.bank_id) == ((), "b")
    assert told.counterfactual is not None
    assert told.counterfactual.query.strategy is not None
    assert told.counterfactual.query.strategy.mode is MultiBankMode.PARALLEL


async def test_a_bank_whose_hits_are_not_good_enough_does_not_count(app: App) -> None:
    (weak,) = await keep(app.gate, "a", "Bread and salt.")
    await keep(app.gate, "b", FERRY, "Something else of no use.")
    plain = await app.gate.call(ANN, Recall(RecallQuery("when does the ferry leave?", "b")))
    strategy = {"mode": MultiBankMode.FIRST_MATCH, "min_score_to_stop": plain.hits[0].score}
    told = await tell(app.gate, both(strategy=strategy), weak)
    assert (told.stage, told.detail) == (ExplainStage.BANK_NOT_ASKED, "another bank's hits count alone")


async def test_a_bank_that_fails_is_named(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    await keep(app.gate, "a", FERRY)
    (other,) = await keep(app.gate, "b", "The ferry to Paros.")
    pipeline: Any = app.gate._pipelines.multi_bank
    plan = pipeline._plan

    def failing(question: Any, query: Any, part: Any, start: float) -> bool:
        if part.bank.bank_id == "b":
            from astrocyte.errors import StoreError

            part.failed(StoreError("away"), BankOutcome.FAILED)
            return True
        return bool(plan(question, query, part, start))

    monkeypatch.setattr(pipeline, "_plan", failing)
    told = await tell(app.gate, both(), other)
    assert (told.stage, told.counterfactual) == (ExplainStage.BANK_UNAVAILABLE, None)
    assert told.detail == "its bank did not answer: STORE_FAILED"


async def test_the_budget_is_shared(app: App) -> None:
    await keep(app.gate, "a", FERRY)
    (late,) = await keep(app.gate, "b", "A boat to another island leaves at nine in the evening, if it leaves.")
    question = "when does the ferry to Naxos leave?"
    told = await tell(app.gate, both(question, max_tokens=20), late)
    assert told.stage is ExplainStage.TOKEN_BUDGET
    assert told.counterfactual is not None
    assert told.counterfactual.fields == ("max_tokens",)
    titles = await tell(app.gate, both(question, max_tokens=9, detail_level=DetailLevel.TITLES), late)
    assert titles.stage is ExplainStage.TOKEN_BUDGET


async def test_only_what_a_call_can_show_is_found(app: App) -> None:
    await keep(app.gate, "a", "Bread and salt.")
    await keep(app.gate, "b", "Bread and butter.")
    (elsewhere,) = await keep(app.gate, "c", FERRY)
    told = await tell(app.gate, both(), elsewhere)
    assert (told.stage, told.bank_id, told.counterfactual) == (ExplainStage.NOT_FOUND, "", None)


async def test_every_bank_must_be_the_callers(app: App) -> None:
    strict = app_of(access_control={"enabled": True, "default_policy": "owner_only"})
    (ferry,) = await keep(strict.gate, "a", FERRY)
    await strict.gate.call(BOB, Retain("b", RetainItem("The ferry of Bob.")))
    with pytest.raises(Exception, match="b") as refused:
        await strict.gate.call(ANN, Explain(ExplainQuery(both(), (ferry,))))
    with pytest.raises(type(refused.value)):
        await strict.gate.call(ANN, Recall(both()))
    await strict.close()
    with pytest.raises(BankNotFound):
        await app.gate.call(ANN, Explain(ExplainQuery(both(), (ferry,))))


async def test_a_position_is_of_one_bank(app: App) -> None:
    (ferry,) = await keep(app.gate, "a", FERRY)
    await keep(app.gate, "b", "Bread and salt.")
    with pytest.raises(ValidationError) as refused:
        await app.gate.call(ANN, Explain(ExplainQuery(both(), (ferry,), 1)))
    assert refused.value.field == "position"
    result = await app.gate.call(ANN, Explain(ExplainQuery(both(), (ferry,))))
    assert (result.position, result.moved, result.returned, result.candidates) == (0, False, 2, 2)


async def test_what_may_not_leave_is_held_back_whatever_is_asked() -> None:
    app = app_of(
        barriers={"pii": {"mode": "disabled"}}, dlp={"scan_recall_output": True, "output_pii_action": "reject"}
    )
    (secret,) = await keep(app.gate, "a", "Write to mara@example.org about the ferry.")
    await keep(app.gate, "b", "Bread and salt.")
    (told,) = (await app.gate.call(ANN, Explain(ExplainQuery(both(), (secret,))))).explanations
    assert (told.stage, told.counterfactual) == (ExplainStage.POLICY, None)
    assert "mara" not in repr(told)
    await app.close()


async def test_memories_of_other_banks_that_are_relevant_are_explained() -> None:
    app = app_of()
    (shown,) = await keep(app.gate, "user-x", "The ferry is X's.", metadata={"also_relevant_to": "a"})
    (hidden,) = await keep(app.gate, "user-x", "The ferry is nobody's.")
    await keep(app.gate, "a", *[f"The ferry number {number} leaves at {number}." for number in range(9)])
    query = RecallQuery("whose is the ferry?", "a", max_results=1)
    told, out = await tell(app.gate, query, shown), await tell(app.gate, query, hidden)
    assert told.stage in {ExplainStage.RETURNED, ExplainStage.BANK_FUSION}
    assert told.bank_id == "user-x"
    assert out.stage is ExplainStage.NOT_FOUND
    narrowed = await tell(app.gate, RecallQuery("whose is the ferry?", "a", tags=("none",)), shown)
    assert (narrowed.stage, narrowed.conditions) == (ExplainStage.FILTER, ("tags",))
    await app.close()


async def test_what_an_engine_brings_may_be_better() -> None:
    shelf = Shelf()
    app = hybrid_app(shelf, engine_recall_weight=5.0)
    (mine,) = await keep(app.gate, "notes", FERRY)
    for number in range(3):
        shelf.put(f"when does the ferry {number} leave")
    query = RecallQuery("when does the ferry leave", "notes", max_results=2)
    told = await tell(app.gate, query, mine)
    assert told.stage is ExplainStage.ENGINE_FUSION
    assert told.detail == "rank 3 of all sides, behind enough others"
    assert told.arms
    assert told.counterfactual is not None
    assert told.counterfactual.query.max_results == 4
    excluded = await tell(app.gate, RecallQuery("when does the ferry leave", "notes", tags=("x",)), mine)
    assert (excluded.stage, excluded.conditions) == (ExplainStage.FILTER, ("tags",))
    await app.close()


async def test_a_pipeline_without_weight_or_voice_beside_an_engine() -> None:
    shelf = Shelf()
    app = hybrid_app(shelf, pipeline_recall_weight=0.0)
    (mine,) = await keep(app.gate, "notes", FERRY)
    shelf.put("the ferry")
    told = await tell(app.gate, RecallQuery("the ferry", "notes"), mine)
    assert (told.stage, told.counterfactual) == (ExplainStage.ENGINE_FUSION, None)
    assert told.detail == "the pipeline has weight 0 beside this engine"
    await app.close()


async def test_one_budget_holds_for_both_sides() -> None:
    shelf = Shelf()
    app = hybrid_app(shelf, engine_recall_weight=5.0)
    (mine,) = await keep(app.gate, "notes", FERRY)
    shelf.put("when does the ferry leave")
    told = await tell(app.gate, RecallQuery("when does the ferry leave", "notes", max_tokens=10), mine)
    assert told.stage is ExplainStage.TOKEN_BUDGET
    assert told.counterfactual is not None
    assert told.counterfactual.fields == ("max_tokens",)
    await app.close()


async def test_several_banks_beside_an_engine() -> None:
    shelf = Shelf()
    app = hybrid_app(shelf, engine_recall_weight=5.0)
    (mine,) = await keep(app.gate, "a", FERRY)
    (other,) = await keep(app.gate, "b", "Bread and salt.")
    for number in range(3):
        shelf.put(f"when does the ferry {number} leave")
    told = await tell(app.gate, both("when does the ferry leave", max_results=3), mine)
    assert told.stage is ExplainStage.ENGINE_FUSION
    assert (await tell(app.gate, both("when does the ferry leave", tags=("x",)), other)).stage is ExplainStage.FILTER
    await app.close()


async def test_results_from_elsewhere_may_push_a_memory_out() -> None:
    app = app_of(recall={"external_weight": 3.0})
    (mine,) = await keep(app.gate, "a", FERRY)
    await keep(app.gate, "b", "Bread and salt.")
    brought = tuple(MemoryHit(f"A page about ferries, number {number}.", 1.0) for number in range(3))
    told = await tell(app.gate, both(max_results=2, external_context=brought), mine)
    assert told.stage in {ExplainStage.BANK_FUSION, ExplainStage.RETURNED}
    await app.close()
