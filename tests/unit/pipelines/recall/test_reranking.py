"""Reranking: by a third party's entry point, by a language model, by a cross-encoder; and what happens without."""

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from astrocyte.api.requests import BatchRecall, BatchRetain, Explain, ListMemories, Recall
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.deadlines import ends_in
from astrocyte.errors import ConfigError
from astrocyte.model import Caller, DetailLevel, ExplainQuery, ExplainStage, MemoryHit, RecallQuery, RetainItem
from astrocyte.pipelines.text.snippets import passage
from astrocyte.policy import events
from doubles import rerankers
from doubles.language_models import Reply, openai_answer, serve

ME = Caller()
TEXTS = [f"The ferry number {number} leaves at {number}." for number in range(1, 9)]
GOLD = "Boats go from the old harbour: gold."
QUERY = RecallQuery("which ferry leaves first?", "b", max_results=3)


@pytest.fixture(autouse=True)
def third_party(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rerankers.install(tmp_path / "site", monkeypatch)
    # Each importlib mode of pytest has its own module; the entry point shall find this one.
    monkeypatch.setitem(sys.modules, "rerankers", rerankers)
    rerankers.LAST.clear()


def app_of(mode: str = "words", options: dict[str, Any] | None = None, **reranking: Any) -> App:
    block = {"mode": mode, "options": options or {}, **reranking}
    return App(Settings.from_mapping({"vector_store": "in_memory", "pipeline": {"reranking": block}}))


async def filled(app: App) -> App:
    await app.gate.call(ME, BatchRetain("b", [RetainItem(text) for text in [*TEXTS, GOLD]]))
    return app


async def plain_answer(query: RecallQuery = QUERY) -> tuple[MemoryHit, ...]:
    app = await filled(App(Settings.from_mapping({"vector_store": "in_memory"})))
    try:
        return tuple((await app.gate.call(ME, Recall(query))).hits)
    finally:
        await app.close()


def texts(hits: Any) -> list[str]:
    return [hit.text for hit in hits]


async def test_a_third_partys_reranker_works_through_settings_alone() -> None:
    app = await filled(app_of(options={"word": "gold"}, weight=1.0))
    result = await app.gate.call(ME, Recall(QUERY))
    assert result.hits[0].text == GOLD
    assert len(result.hits) == 3
    assert "reranking" in {boost.name for boost in result.hits[0].boosts}
    assert result.trace is not None
    assert result.trace.degraded == ""
    assert "reranking" in (result.trace.stage_timings_ms or {})
    scores = [hit.score for hit in result.hits]
    assert scores == sorted(scores, reverse=True)
    ((asked, read),) = rerankers.LAST[0].read
    assert asked == QUERY.query
    assert len(read) == len(TEXTS) + 1
    fused = texts(await plain_answer())
    assert fused[0] != GOLD
    # What it grades alike keeps its order.
    assert texts(result.hits)[1:] == fused[:2]
    (batch,) = await app.gate.call(ME, BatchRecall([QUERY]))
    assert texts(batch.hits) == texts(result.hits)
    await app.close()
    assert rerankers.LAST[0].closed


async def test_the_weight_blends_and_top_n_bounds_what_is_read() -> None:
    app = await filled(app_of(options={"word": "gold"}, weight=0.01, top_n=4))
    result = await app.gate.call(ME, Recall(QUERY))
    assert texts(result.hits) == texts(await plain_answer())
    assert len(rerankers.LAST[0].read[0][1]) == 4
    await app.close()


@pytest.mark.parametrize("level", DetailLevel)
async def test_count_budget_and_what_the_caller_brings_hold_after_it(level: DetailLevel) -> None:
    app = await filled(app_of(options={"word": "gold"}, weight=1.0))
    outside = (MemoryHit("A page about ferries.", 1.0),)
    query = replace(QUERY, max_tokens=24, detail_level=level, external_context=outside, max_results=5)
    result = await app.gate.call(ME, Recall(query))
    assert sum(hit.token_count for hit in result.hits) <= 24
    assert len(result.hits) <= 5
    assert GOLD.partition(":")[0] in " ".join(texts(result.hits))
    assert {"external_context"} <= {arm.arm for hit in result.hits for arm in hit.arms}
    await app.close()


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("hangs", "timeout"),
        ("raises", "RuntimeError"),
        ("away", "provider_unavailable"),
        ("few", "invalid_scores"),
        ("nan", "invalid_scores"),
        ("none", "invalid_scores"),
    ],
)
async def test_without_it_the_fused_order_stands_and_it_is_told_and_counted(fault: str, reason: str) -> None:
    heard: list[tuple[str, dict[str, Any]]] = []

    def listener(event: str, fields: Any) -> None:
        heard.append((event, dict(fields)))

    events.subscribe(listener)
    try:
        app = await filled(app_of(options={"fault": fault}, timeout_seconds=0.05, least_seconds=0.01))
        result = await app.gate.call(ME, Recall(QUERY))
        await app.close()
    finally:
        events.unsubscribe(listener)
    assert texts(result.hits) == texts(await plain_answer())
    assert result.trace is not None
    assert result.trace.degraded == f"reranking ({reason})"
    told = [fields for event, fields in heard if event == "degraded"]
    assert [(one["provider"], one["mode"], one["bank_id"]) for one in told] == [("words", f"reranking: {reason}", "b")]
    assert "secret" not in repr(heard)


async def test_too_little_time_leaves_it_out() -> None:
    app = await filled(app_of(options={"word": "gold"}, least_seconds=0.5))
    ends_in(0.2)
    try:
        result = await app.gate.call(ME, Recall(QUERY))
    finally:
        ends_in(None)
    assert result.trace is not None
    assert result.trace.degraded == "reranking (too_little_time)"
    assert rerankers.LAST[0].read == []
    await app.close()


async def test_explain_names_it_and_its_advice_holds() -> None:
    app = await filled(app_of(options={"word": "gold"}, weight=1.0))
    query = replace(QUERY, max_results=2)
    before = await plain_answer(query)
    after = texts((await app.gate.call(ME, Recall(query))).hits)
    loser = next(hit.text for hit in before if hit.text not in after)
    page = await app.gate.call(ME, ListMemories("b"))
    ids = {memory.content: memory.memory_id for memory in page.memories}
    (told,) = (await app.gate.call(ME, Explain(ExplainQuery(query, (ids[loser],))))).explanations
    assert told.stage is ExplainStage.RERANKING
    assert told.counterfactual is not None
    assert told.counterfactual.query.max_results == 3
    assert loser in texts((await app.gate.call(ME, Recall(told.counterfactual.query))).hits)
    await app.close()


@pytest.mark.parametrize(
    ("block", "problem"),
    [
        ({"mode": "wrods"}, "did you mean 'words'"),
        ({"mode": "nothing"}, "no method score"),
        ({"mode": "lost"}, "cannot be loaded"),
        ({"mode": "llm"}, "set llm_provider"),
        ({"mode": "disabled", "options": {"word": "x"}}, "has no effect"),
        ({"mode": "words", "top_n": 33}, "32"),
    ],
)
def test_what_cannot_be_is_refused_at_the_start(block: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        App(Settings.from_mapping({"vector_store": "in_memory", "pipeline": {"reranking": block}}))


def scripted(answer: str) -> App:
    return App(
        Settings.from_mapping(
            {
                "vector_store": "in_memory",
                "pipeline": {"reranking": {"mode": "llm", "weight": 1.0, "top_n": 3}},
                "llm_provider": "mock",
                "llm_provider_config": {"replies": [answer]},
            }
        )
    )


async def test_a_language_model_grades() -> None:
    app = await filled(scripted('{"grades": [0, 3, 10]}'))
    fused = texts(await plain_answer())
    result = await app.gate.call(ME, Recall(QUERY))
    assert texts(result.hits)[:3] == fused[::-1]
    await app.close()


async def test_a_language_model_over_the_wire_grades_and_sees_data_behind_a_fence() -> None:
    graded = openai_answer('{"grades": [1, 2, 9]}')
    with serve(Reply(body=graded)) as server:
        settings = {
            "vector_store": "in_memory",
            "pipeline": {"reranking": {"mode": "llm", "weight": 1.0, "top_n": 3, "timeout_seconds": 5.0}},
            "llm_provider": "openai",
            "llm_provider_config": {"base_url": f"{server.url}/v1", "model": "m", "retries": 0},
        }
        app = await filled(App(Settings.from_mapping(settings)))
        result = await app.gate.call(ME, Recall(QUERY))
        await app.close()
    assert texts(result.hits)[:3] == texts(await plain_answer())[::-1]
    (request,) = server.requests
    assert "<memories" in str(request)
    assert "json_schema" in str(request)


@pytest.mark.parametrize("answer", ["{}", "no json", '{"grades": [1, 2]}', '{"grades": [1, 2, 99]}', '{"grades": 3}'])
async def test_a_language_model_that_does_not_grade_changes_nothing(answer: str) -> None:
    app = await filled(scripted(answer))
    result = await app.gate.call(ME, Recall(QUERY))
    assert texts(result.hits) == texts(await plain_answer())
    assert result.trace is not None
    assert result.trace.degraded == "reranking (provider_unavailable)"
    await app.close()


class TextCrossEncoder:
    """A stand-in for the package, whose models are too large for a test."""

    def __init__(self, name: str, **options: Any) -> None:
        if name == "none":
            raise ValueError("Model none is not supported")
        self.options = options

    def rerank(self, query: str, documents: list[str], batch_size: int = 64) -> Iterator[float]:
        assert [len(text) for text in documents] == sorted(len(text) for text in documents)
        for text in documents:
            if "boom" in query:
                raise RuntimeError("out of memory")
            yield float("gold" in text)


@pytest.fixture
def cross_encoders(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("fastembed.rerank.cross_encoder")
    module.TextCrossEncoder = TextCrossEncoder  # type: ignore[attr-defined] # a stand-in
    monkeypatch.setitem(sys.modules, "fastembed", ModuleType("fastembed"))
    monkeypatch.setitem(sys.modules, "fastembed.rerank", ModuleType("fastembed.rerank"))
    monkeypatch.setitem(sys.modules, "fastembed.rerank.cross_encoder", module)
    monkeypatch.delitem(sys.modules, "astrocyte.providers.cross_encoder", raising=False)


@pytest.mark.usefixtures("cross_encoders")
async def test_a_cross_encoder_from_a_folder(tmp_path: Path) -> None:
    app = await filled(app_of("cross_encoder", {"model_path": str(tmp_path)}, weight=1.0))
    assert (await app.gate.call(ME, Recall(QUERY))).hits[0].text == GOLD
    failed = await app.gate.call(ME, Recall(replace(QUERY, query="boom ferry")))
    assert failed.trace is not None
    assert failed.trace.degraded == "reranking (provider_unavailable)"
    await app.close()


@pytest.mark.usefixtures("cross_encoders")
@pytest.mark.parametrize(
    ("options", "problem"),
    [({}, "model_path"), ({"model_path": "/nowhere/at/all"}, "there is no folder"), ({"modle": "x"}, "did you mean")],
)
def test_a_cross_encoder_that_cannot_be_had(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        app_of("cross_encoder", options)


@pytest.mark.usefixtures("cross_encoders")
def test_nothing_is_fetched(tmp_path: Path) -> None:
    from astrocyte.providers import cross_encoder

    made: Any = cross_encoder.create({"model_path": str(tmp_path)})
    assert made._model.options["local_files_only"] is True
    assert made._model.options["specific_model_path"] == str(tmp_path)
    with pytest.raises(ConfigError, match="not supported"):
        cross_encoder.create({"model": "none", "model_path": str(tmp_path)})


def test_a_passage_is_where_the_words_are() -> None:
    filler = "nothing of that here " * 40
    text = f"{filler}The ferry to Naxos leaves at seven from the old harbour. {filler}"
    found = passage("when does the ferry to Naxos leave the harbour?", text, 200)
    assert len(found) <= 200
    assert "ferry to Naxos" in found
    assert "harbour" in found
    assert text.find(found) >= 0
    assert passage("ferry", "short", 200) == "short"
    assert text.startswith(passage("zebra", text, 200))
    assert len(passage("zebra", "x" * 1_000, 200)) == 200
