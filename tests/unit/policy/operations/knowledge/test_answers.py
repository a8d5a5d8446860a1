"""Observations and mental models in recalls and reflects: their place, their filters, their weights."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from astrocyte.api.requests import (
    BatchRecall,
    CreateMentalModel,
    CreateObservation,
    DeleteObservation,
    Recall,
    Reflect,
    Retain,
    UpdateObservation,
)
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.model import Caller, DetailLevel, ModelBlock, ModelSection, RecallQuery, RecallResult, ReflectQuery
from astrocyte.model import RetainItem as Item

ME, BANK = Caller(), "family"
QUESTION = "what does Mara drink in the morning?"
STATEMENT = "Mara drinks green tea in the morning."
TEXTS = ("Mara had green tea at seven.", "Mara made green tea again.", "The train to Brno was late.", "Paint is dry.")


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


async def recalled(app: App, query: str = QUESTION, **options: Any) -> RecallResult:
    return await app.gate.call(ME, Recall(RecallQuery(query, BANK, **options)))


def layers(result: RecallResult) -> list[str | None]:
    return [hit.memory_layer for hit in result.hits]


async def test_a_relevant_observation_comes_first_and_an_irrelevant_one_not_at_all(apps: list[App]) -> None:
    app, ids = await opened(apps)
    before = await recalled(app)
    made = await app.gate.call(ME, CreateObservation(BANK, STATEMENT, ids[:2]))
    result = await recalled(app, include_sources=True)
    assert result.hits[0].memory_id == made.observation_id
    assert result.hits[0].text == STATEMENT
    assert result.hits[0].metadata == {
        "scope": "bank",
        "proof_count": 2,
        "confidence": 0.9,
        "source_ids": ",".join(sorted(ids[:2])),
    }
    # The memories stay in their order.
    assert [hit.memory_id for hit in result.hits[1:]] == [hit.memory_id for hit in before.hits]
    scores = [hit.score for hit in result.hits]
    assert scores == sorted(scores, reverse=True)
    assert result.trace is not None
    assert result.trace.layer_distribution == {"observation": 1, "semantic": 4}
    assert "observation" in (result.trace.strategies_used or ())
    assert (result.trace.strategy_candidate_counts or {})["observation"] == 1
    assert layers(await recalled(app, "when does the train to Brno leave?")) == ["semantic"] * 4
    assert layers(await recalled(app, max_results=1)) == ["observation"]


async def test_the_index_follows_changes(apps: list[App]) -> None:
    app, ids = await opened(apps)
    made = await app.gate.call(ME, CreateObservation(BANK, "Nothing about it.", ids[:1]))
    assert "observation" not in layers(await recalled(app))
    await app.gate.call(ME, UpdateObservation(BANK, made.observation_id, STATEMENT))
    assert layers(await recalled(app))[0] == "observation"
    await app.gate.call(ME, DeleteObservation(BANK, made.observation_id))
    assert "observation" not in layers(await recalled(app))


async def test_weights_move_and_remove_layers(apps: list[App]) -> None:
    app, ids = await opened(apps)
    await app.gate.call(ME, CreateObservation(BANK, STATEMENT, ids[:2]))
    assert layers(await recalled(app, layer_weights={"observation": 0.3}))[0] == "semantic"
    assert "observation" not in layers(await recalled(app, layer_weights={"observation": 0.0}))
    assert "observation" not in layers(await recalled(app, weights={"observation": 0.0}))
    for weights in ({"semantic": 5.0}, {"fact": 5.0}, {"fact": 0.0, "semantic": 5.0}):
        assert layers(await recalled(app, layer_weights=weights))[0] == "semantic"
    lowered = await recalled(app, layer_weights={"fact": 0.0})
    assert layers(lowered)[0] == "observation"
    off, others = await opened(apps, observations={"observation_weight": 0})
    await off.gate.call(ME, CreateObservation(BANK, STATEMENT, others[:2]))
    assert "observation" not in layers(await recalled(off))


async def test_more_sources_rank_higher(apps: list[App]) -> None:
    app, ids = await opened(apps)
    one = await app.gate.call(ME, CreateObservation(BANK, STATEMENT, ids[:1]))
    two = await app.gate.call(ME, CreateObservation(BANK, STATEMENT, ids[:3]))
    result = await recalled(app, max_results=4)
    assert [hit.memory_id for hit in result.hits[:2]] == [two.observation_id, one.observation_id]


async def test_a_filter_holds_for_what_an_observation_rests_on(apps: list[App]) -> None:
    app, ids = await opened(apps)
    await app.gate.call(ME, CreateObservation(BANK, STATEMENT, ids[:1]))
    await app.gate.call(ME, CreateObservation(BANK, STATEMENT, ids[:2]))
    for options in ({"tags": ("tea",)}, {"session_id": "s0"}, {"memory_ids": (ids[0],)}):
        found = [hit for hit in (await recalled(app, **options)).hits if hit.memory_layer == "observation"]
        assert [(hit.metadata or {})["proof_count"] for hit in found] == [1]
    assert layers(await recalled(app, fact_types=("observation",))) == ["observation", "observation"]
    assert "observation" not in layers(await recalled(app, fact_types=("world",)))
    past = datetime.now(UTC) - timedelta(days=1)
    assert "observation" not in layers(await recalled(app, as_of=datetime.now(UTC)))
    assert layers(await recalled(app, as_of=past)) == []


async def test_validity_decides_what_is_told_now(apps: list[App]) -> None:
    app, ids = await opened(apps)
    now = datetime.now(UTC)
    ended = CreateObservation(BANK, STATEMENT, ids[:1], valid_until=now - timedelta(days=10))
    await app.gate.call(ME, ended)
    assert "observation" not in layers(await recalled(app))
    assert "observation" in layers(await recalled(app, valid_at=now - timedelta(days=20)))


async def test_a_mental_model_is_found_by_its_section(apps: list[App]) -> None:
    app, ids = await opened(apps)
    sections = (
        ModelSection("", "Drinks", (ModelBlock(text="Green tea in the morning."),)),
        ModelSection("", "Trains", (ModelBlock(text="Never on time."),)),
    )
    await app.gate.call(ME, CreateMentalModel(BANK, "Mara", sections, source_ids=ids[:1]))
    (hit,) = [hit for hit in (await recalled(app)).hits if hit.memory_layer == "model"]
    assert (hit.memory_id, hit.text, (hit.metadata or {})["section"]) == (
        "model:mara",
        "Green tea in the morning.",
        "Mara: Drinks",
    )
    title = (await recalled(app, detail_level=DetailLevel.TITLES)).hits[0]
    assert title.text == "Mara: Drinks"


async def test_budgets_counts_and_batches_hold(apps: list[App]) -> None:
    app, ids = await opened(apps)
    for _ in range(6):
        await app.gate.call(ME, CreateObservation(BANK, STATEMENT, ids[:2]))
    result = await recalled(app, max_results=4)
    assert layers(result).count("observation") == 2
    assert len(result.hits) == 4
    small = await recalled(app, max_tokens=12)
    assert sum(hit.token_count for hit in small.hits) <= 12
    assert small.truncated
    query = RecallQuery(QUESTION, BANK, max_results=4)
    (batched,) = await app.gate.call(ME, BatchRecall([query]))
    assert [hit.memory_id for hit in batched.hits] == [hit.memory_id for hit in result.hits]


async def test_several_banks_bring_their_own(apps: list[App]) -> None:
    app, ids = await opened(apps)
    await app.gate.call(ME, CreateObservation(BANK, STATEMENT, ids[:1]))
    kept = await app.gate.call(ME, Retain("work", Item("Mara drinks coffee at work.")))
    await app.gate.call(ME, CreateObservation("work", "Mara drinks coffee in the office.", [kept.memory_id or ""]))
    query = RecallQuery(QUESTION, banks=(BANK, "work"))
    hits = (await app.gate.call(ME, Recall(query))).hits
    assert {hit.bank_id for hit in hits if hit.memory_layer == "observation"} == {BANK, "work"}
    alone = (await app.gate.call(ME, Recall(RecallQuery(QUESTION, "work")))).hits
    assert {hit.bank_id for hit in alone} == {"work"}


async def test_personal_data_in_observations_is_redacted_on_the_way_out(apps: list[App]) -> None:
    app, ids = await opened(
        apps,
        barriers={"pii": {"mode": "disabled"}},
        dlp={"scan_recall_output": True, "output_pii_action": "redact"},
    )
    await app.gate.call(ME, CreateObservation(BANK, "Mara drinks tea; mail mara@example.org.", ids[:1]))
    result = await recalled(app)
    assert layers(result)[0] == "observation"
    assert all("mara@example.org" not in hit.text for hit in result.hits)


async def test_reflect_reads_mental_models_first(apps: list[App]) -> None:
    app, ids = await opened(apps)
    await app.gate.call(ME, CreateMentalModel(BANK, "Mara", content=STATEMENT, source_ids=ids[:1]))
    result = await app.gate.call(ME, Reflect(ReflectQuery(QUESTION, BANK)))
    assert STATEMENT in result.answer
    assert result.sources
    assert result.sources[0].memory_layer == "model"
