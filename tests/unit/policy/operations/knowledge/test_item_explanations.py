"""Explain of observations and mental models: scores, reasons, and what they do to the places of memories."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from astrocyte.api.requests import CreateMentalModel, CreateObservation, Explain, Forget, Recall, Retain
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.model import (
    Caller,
    ExplainQuery,
    ExplainResult,
    ExplainStage,
    ForgetSelector,
    ItemExplanation,
    RecallQuery,
)
from astrocyte.model import RetainItem as Item
from astrocyte.policy.operations.knowledge.blending import Blending

ME, BANK = Caller(), "family"
QUESTION = "what does Mara drink in the morning?"
STATEMENT = "Mara drinks green tea in the morning."
TEXTS = ("Mara had green tea at seven.", "Mara made green tea again.", "The train to Brno was late.", "Paint is dry.")
NOW = datetime.now(UTC)


@pytest.fixture
async def apps() -> AsyncIterator[list[App]]:
    made: list[App] = []
    yield made
    for app in made:
        await app.close()


async def opened(apps: list[App], **settings: Any) -> tuple[App, list[str]]:
    app = App(Settings.from_mapping({"vector_store": "in_memory", **settings}))
    apps.append(app)
    ids = []
    for number, text in enumerate(TEXTS):
        item = Item(text, tags=("tea",) if number == 0 else ("other",), session_id=f"s{number}")
        ids.append((await app.gate.call(ME, Retain(BANK, item))).memory_id or "")
    return app, ids


async def observed(app: App, ids: list[str], text: str = STATEMENT, **values: Any) -> str:
    return (await app.gate.call(ME, CreateObservation(BANK, text, tuple(ids), **values))).observation_id


def query_of(**options: Any) -> RecallQuery:
    return RecallQuery(QUESTION, "" if "banks" in options else BANK, **options)


async def explained(app: App, *memory_ids: str, **options: Any) -> ExplainResult:
    return await app.gate.call(ME, Explain(ExplainQuery(query_of(**options), memory_ids)))


async def only(app: App, asked: str, **options: Any) -> ItemExplanation:
    (item,) = (await explained(app, asked, **options)).items
    return item


async def test_a_returned_observation_has_its_score_weight_and_bonus(apps: list[App]) -> None:
    app, ids = await opened(apps)
    made = await observed(app, ids[:3])
    item = await only(app, ids[0])
    (hit, *_) = (await app.gate.call(ME, Recall(query_of()))).hits
    assert (item.item_id, item.bank_id, item.arm) == (made, BANK, "observation")
    assert (item.stage, item.rank, hit.memory_id) == (ExplainStage.RETURNED, 1, made)
    assert (item.weight, item.proof_count, item.proof_bonus) == (1.5, 3, 0.05)
    assert item.relevance == hit.arms[0].score
    assert item.score == pytest.approx(1.5 * (item.relevance + 0.05))
    assert STATEMENT not in item.detail


@pytest.mark.parametrize(
    ("options", "stage", "detail"),
    [
        ({"tags": ("other",)}, ExplainStage.FILTER, "does not pass the filter"),
        ({"fact_types": ("world",)}, ExplainStage.FILTER, "fact_types lack observation"),
        ({"weights": {"observation": 0.0}}, ExplainStage.ARM_CUT, "weight is 0"),
        ({"layer_weights": {"observation": 0.0}}, ExplainStage.ARM_CUT, "weight is 0"),
        ({"max_results": 1, "layer_weights": {"observation": 0.1}}, ExplainStage.MAX_RESULTS, "rank"),
        ({"max_tokens": 8, "layer_weights": {"observation": 0.1}}, ExplainStage.TOKEN_BUDGET, "did not fit"),
        ({"valid_at": NOW - timedelta(days=400)}, ExplainStage.FILTER, "at the time of the query"),
    ],
)
async def test_an_observation_that_is_no_hit_has_the_reason(
    apps: list[App], options: dict[str, Any], stage: ExplainStage, detail: str
) -> None:
    app, ids = await opened(apps)
    made = await observed(app, ids[:1], valid_from=NOW - timedelta(days=9))
    result = await explained(app, made, **options)
    (item,) = result.items
    assert (item.stage, item.rank) == (stage, 0)
    assert detail in item.detail
    (own,) = result.explanations
    assert (own.memory_id, own.stage, own.detail, own.rank) == (made, stage, item.detail, 0)
    assert own.counterfactual is None
    hits = (await app.gate.call(ME, Recall(query_of(**options)))).hits
    assert made not in {hit.memory_id for hit in hits}


async def test_little_relevance_and_an_ended_validity_are_reasons(apps: list[App]) -> None:
    app, ids = await opened(apps)
    dull = await observed(app, ids[3:], "Paint is dry on the wall.")
    ended = await observed(app, ids[:1], valid_until=NOW - timedelta(days=1))
    items = {item.item_id: item for item in (await explained(app, ids[0])).items}
    assert (items[dull].stage, items[ended].stage) == (ExplainStage.ARM_CUT, ExplainStage.FILTER)
    assert f"{items[dull].relevance:.4f} is below 0.4" in items[dull].detail
    assert items[dull].relevance < 0.4 < items[ended].relevance


async def test_no_more_than_half_of_the_hits_are_items(apps: list[App]) -> None:
    app, ids = await opened(apps)
    made = [await observed(app, ids[: number + 1], f"{STATEMENT} {number}") for number in range(3)]
    items = (await explained(app, ids[0], max_results=2)).items
    assert {item.item_id for item in items} == set(made)
    assert [item.stage for item in items] == [ExplainStage.RETURNED, ExplainStage.MAX_RESULTS, ExplainStage.MAX_RESULTS]
    assert "1 others have higher scores" in items[1].detail
    scores = [item.score for item in items]
    assert scores == sorted(scores, reverse=True)


async def test_an_answer_of_the_past_has_no_items(apps: list[App]) -> None:
    app, ids = await opened(apps)
    made = await observed(app, ids[:1])
    result = await explained(app, made, "nothing", as_of=datetime.now(UTC))
    assert result.items == ()
    assert [one.stage for one in result.explanations] == [ExplainStage.FILTER, ExplainStage.NOT_FOUND]
    assert result.explanations[0].conditions == ("as_of",)


async def test_a_hidden_observation_is_not_told_of(apps: list[App]) -> None:
    app, ids = await opened(apps)
    made = await observed(app, ids[:1])
    await app.gate.call(ME, Forget(BANK, ForgetSelector(memory_ids=(ids[0],))))
    result = await explained(app, made)
    assert (result.items, result.explanations[0].stage) == ((), ExplainStage.NOT_FOUND)


async def test_an_observation_asked_about_has_its_place(apps: list[App]) -> None:
    app, ids = await opened(apps)
    made = await observed(app, ids[:2])
    (own, memory) = (await explained(app, made, ids[1])).explanations
    assert (own.stage, own.rank, own.bank_id) == (ExplainStage.RETURNED, 1, "")
    assert [(arm.arm, arm.rank, arm.cut_off) for arm in own.arms] == [("observation", 1, 0.4)]
    assert (memory.stage, memory.rank) == (ExplainStage.RETURNED, 2)


async def test_a_memory_that_lost_its_place_to_an_observation_says_so(apps: list[App]) -> None:
    app, ids = await opened(apps)
    (before,) = (await explained(app, ids[1], max_results=1)).explanations
    assert before.rank == 1
    await observed(app, ids[:2])
    result = await explained(app, ids[1], max_results=1)
    (told,) = result.explanations
    assert (told.stage, told.rank, result.returned) == (ExplainStage.MAX_RESULTS, 0, 1)
    assert "observations and mental models took the places" in told.detail
    assert told.counterfactual is not None
    assert told.counterfactual.query.max_results == 2
    hits = (await app.gate.call(ME, Recall(told.counterfactual.query))).hits
    assert ids[1] in {hit.memory_id for hit in hits}
    (tight,) = (await explained(app, ids[1], max_tokens=8)).explanations
    assert tight.stage is ExplainStage.TOKEN_BUDGET
    assert "did not fit beside" in tight.detail


OPTIONS: list[dict[str, Any]] = [
    {},
    {"max_results": 1},
    {"max_results": 3},
    {"max_tokens": 20},
    {"tags": ("tea",)},
    {"layer_weights": {"observation": 0.4, "model": 2.0}},
    {"weights": {"mental_model": 0.0}},
    {"fact_types": ("model",)},
    {"banks": (BANK, "work")},
    {"banks": (BANK, "work"), "max_results": 2},
]


async def agrees(app: App, ids: list[str], **options: Any) -> bool:
    """True if explained ranks of memories and items are those of the recall."""
    hits = (await app.gate.call(ME, Recall(query_of(**options)))).hits
    ranks = {hit.memory_id: rank for rank, hit in enumerate(hits, 1)}
    result = await explained(app, *ids, **options)
    assert result.returned == len(hits)
    told = {one.memory_id: one.rank for one in result.explanations if one.rank}
    return ranks == told | {item.item_id: item.rank for item in result.items if item.rank}


async def several(apps: list[App]) -> tuple[App, list[str]]:
    app, ids = await opened(apps)
    other = (await app.gate.call(ME, Retain("work", Item("Mara drinks tea at work in the morning.")))).memory_id or ""
    await app.gate.call(ME, CreateObservation("work", "Mara drinks black tea at work in the morning.", (other,)))
    await observed(app, ids[:2])
    await observed(app, ids[:1], "Mara likes the morning.")
    content = "# Drinks\n\nIn the morning Mara drinks green tea.\n\n# Trains\n\nThey are late."
    await app.gate.call(ME, CreateMentalModel(BANK, "Mara", content=content, source_ids=tuple(ids[:3])))
    return app, [*ids, other]


@pytest.mark.parametrize("options", OPTIONS)
async def test_explained_ranks_are_those_of_the_recall(apps: list[App], options: dict[str, Any]) -> None:
    app, ids = await several(apps)
    assert await agrees(app, ids, **options)


async def test_the_comparison_finds_items_that_are_not_considered(
    apps: list[App], monkeypatch: pytest.MonkeyPatch
) -> None:
    app, ids = await several(apps)
    monkeypatch.setattr(Blending, "considered", lambda *_: [])
    hits = (await app.gate.call(ME, Recall(query_of()))).hits
    result = await explained(app, *ids)
    assert result.returned < len(hits)


async def test_several_banks_tell_of_the_items_of_each(apps: list[App]) -> None:
    app, ids = await several(apps)
    result = await explained(app, ids[0], banks=(BANK, "work"))
    assert {item.bank_id for item in result.items} == {BANK, "work"}
    assert {item.arm for item in result.items} == {"observation", "mental_model"}


async def test_an_item_that_may_not_leave_is_no_hit(apps: list[App]) -> None:
    app, ids = await opened(
        apps,
        barriers={"pii": {"mode": "disabled"}},
        dlp={"scan_recall_output": True, "output_pii_action": "reject"},
    )
    made = await observed(app, ids[:2], "Mara drinks tea in the morning, write to mara@example.org.")
    item = await only(app, made)
    assert (item.stage, item.rank) == (ExplainStage.POLICY, 0)
    assert "example.org" not in item.detail
