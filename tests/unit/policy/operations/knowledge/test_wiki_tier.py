"""The wiki tier: a page that is about a query answers it before the memories are searched."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from astrocyte.api.requests import BatchRecall, CompileBank, Forget, Recall, Reflect, Retain, UpdateMemory
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.model import (
    Caller,
    DetailLevel,
    ForgetSelector,
    MemoryUpdate,
    RecallQuery,
    RecallResult,
    ReflectQuery,
    RetainItem,
)

ME, BANK = Caller(), "engineering"
TEXTS = (
    "The deployment runs every Friday.",
    "A deployment failed because of an expired certificate.",
    "Deployments need an approval from the platform team.",
)
QUESTION = "which deployment needs an approval from the platform team?"


@pytest.fixture
async def apps() -> AsyncIterator[list[App]]:
    made: list[App] = []
    yield made
    for app in made:
        await app.close()


async def opened(apps: list[App], tiers: dict[str, Any] | None = None, **sections: Any) -> tuple[App, list[str]]:
    tiered = {"enabled": True, "wiki_relevance": 0.5, **(tiers or {})}
    app = App(Settings.from_mapping({"vector_store": "in_memory", "tiered_retrieval": tiered, **sections}))
    apps.append(app)
    ids = [
        (await app.gate.call(ME, Retain(BANK, RetainItem(text, tags=("deployment",))))).memory_id or ""
        for text in TEXTS
    ]
    await app.gate.call(ME, Retain(BANK, RetainItem("The cat of the platform team sleeps.", tags=("cat",))))
    return app, ids


async def asked(app: App, text: str = QUESTION, **fields: Any) -> RecallResult:
    return await app.gate.call(ME, Recall(RecallQuery(text, BANK, **fields)))


def tier(result: RecallResult) -> bool | None:
    assert result.trace is not None
    return result.trace.wiki_tier_used


async def test_a_page_answers_with_its_memories_behind_it(apps: list[App]) -> None:
    app, ids = await opened(apps)
    assert tier(await asked(app)) is False
    await app.gate.call(ME, CompileBank(BANK))
    result = await asked(app, include_sources=True)
    trace = result.trace
    assert trace is not None
    assert (trace.wiki_tier_used, trace.tier_used, trace.tier_reason) == (True, 2, "wiki: 1 pages at 0.50 or above")
    assert trace.layer_distribution == {"wiki": 1, "semantic": len(result.hits) - 1}
    page, *memories = result.hits
    assert (page.memory_id, page.memory_layer) == ("topic:deployment", "wiki")
    assert "approval" in page.text
    assert set(str((page.metadata or {})["source_ids"]).split(",")) == set(ids)
    assert {hit.memory_id for hit in memories} <= set(ids)
    assert memories
    scores = [hit.score for hit in result.hits]
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)
    assert (result.abstain, len((await asked(app, max_results=1)).hits)) == (False, 1)
    titles = await asked(app, detail_level=DetailLevel.TITLES)
    assert titles.hits[0].text == "deployment: Overview"
    (batch,) = await app.gate.call(ME, BatchRecall([RecallQuery(QUESTION, BANK, include_sources=True)]))
    assert [hit.memory_id for hit in batch.hits] == [hit.memory_id for hit in result.hits]


@pytest.mark.parametrize(
    "fields",
    [
        {"as_of": datetime.now(UTC) + timedelta(hours=1)},
        {"tags": ("cat",)},
        {"fact_types": ("experience",)},
        {"weights": {"keyword": 1.0}},
        {"session_id": "s"},
    ],
)
async def test_a_query_that_pages_cannot_answer_is_left_to_the_memories(apps: list[App], fields: Any) -> None:
    app, _ = await opened(apps)
    await app.gate.call(ME, CompileBank(BANK))
    result = await asked(app, **fields)
    assert tier(result) in {False, None}
    assert all(hit.memory_layer != "wiki" for hit in result.hits)


async def test_a_filter_that_all_memories_of_a_page_pass_lets_it_answer(apps: list[App]) -> None:
    app, _ = await opened(apps)
    await app.gate.call(ME, CompileBank(BANK))
    assert tier(await asked(app, tags=("deployment",))) is True


async def test_a_page_of_which_a_memory_changed_does_not_answer_until_it_is_compiled(apps: list[App]) -> None:
    app, ids = await opened(apps)
    await app.gate.call(ME, CompileBank(BANK))
    change = MemoryUpdate(ids[0], frozenset({"content"}), content="The deployment runs every Monday.")
    await app.gate.call(ME, UpdateMemory(BANK, change))
    assert tier(await asked(app)) is False
    await app.gate.call(ME, CompileBank(BANK))
    assert tier(await asked(app)) is True
    await app.gate.call(ME, Forget(BANK, ForgetSelector(memory_ids=(ids[1],))))
    assert tier(await asked(app)) is False


async def test_a_page_that_is_about_something_else_does_not_answer(apps: list[App]) -> None:
    app, _ = await opened(apps)
    await app.gate.call(ME, CompileBank(BANK))
    assert tier(await asked(app, "where does the cat sleep?")) is False


@pytest.mark.parametrize("tiers", [{"wiki": False}, {"enabled": False}, {"wiki_relevance": 1.0}])
async def test_the_settings_decide(apps: list[App], tiers: dict[str, Any]) -> None:
    app, _ = await opened(apps, tiers)
    await app.gate.call(ME, CompileBank(BANK))
    assert tier(await asked(app)) is False


async def test_a_reflect_is_made_of_memories(apps: list[App]) -> None:
    app, _ = await opened(apps)
    await app.gate.call(ME, CompileBank(BANK))
    answer = await app.gate.call(ME, Reflect(ReflectQuery(QUESTION, BANK)))
    assert answer.sources
    assert all(str(source.memory_id).startswith("mem_") for source in answer.sources)


async def test_what_a_bank_redacts_is_redacted_in_pages(apps: list[App]) -> None:
    app, _ = await opened(apps, dlp={"scan_recall_output": True, "output_pii_action": "redact"})
    for text in ("Deployments are announced to ops@example.org.", "Deployments of the platform team need a plan."):
        await app.gate.call(ME, Retain(BANK, RetainItem(text, tags=("deployment",))))
    await app.gate.call(ME, CompileBank(BANK))
    result = await asked(app, "where are deployments of the platform team announced?", max_results=50)
    assert tier(result) is True
    assert all("ops@example.org" not in hit.text for hit in result.hits)
