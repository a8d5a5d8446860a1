"""Recall over several banks, through the gate."""

from __future__ import annotations

import threading
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from astrocyte.api.requests import BatchRecall, BatchRetain, CreateBank, History, Recall, Reflect, Retain
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.errors import (
    AccessDenied,
    CircuitOpen,
    DeadlineExceeded,
    DimensionMismatch,
    LimitReached,
    ProviderUnavailable,
    StoreError,
    ValidationError,
)
from astrocyte.model import (
    BankOutcome,
    Caller,
    DetailLevel,
    Embedding,
    MemoryHit,
    MultiBankStrategy,
    RecallQuery,
    RecallResult,
    ReflectQuery,
    RetainItem,
)
from doubles.remote_embedders import DIMENSIONS, RemoteEmbedder, remote_app, vector

ANN = Caller(principal="user:ann")
BANKS = {
    "personal": ["Ann drinks oat milk in her coffee.", "Ann's bicycle is green."],
    "team": ["The team meets on Tuesday at ten.", "Coffee is in the kitchen on the second floor."],
    "org": ["Expenses are paid at the end of the month.", "Ann's bicycle is green."],
}


async def filled(folder: Path, **settings: Any) -> App:
    app = App(Settings.from_mapping({"data_dir": str(folder), **settings}))
    for bank_id, contents in BANKS.items():
        await app.gate.call(ANN, BatchRetain(bank_id, [RetainItem(content=content) for content in contents]))
    return app


def ask(question: str = "where is the coffee?", **values: Any) -> RecallQuery:
    return RecallQuery(question, **{"banks": tuple(BANKS), **values})


def outcomes(result: RecallResult) -> dict[str, str]:
    assert result.trace is not None
    return {bank.bank_id: bank.outcome for bank in result.trace.banks}


async def test_parallel_takes_the_best_of_all_and_says_where_from(tmp_path: Path) -> None:
    app = await filled(tmp_path)
    try:
        result = await app.gate.call(ANN, Recall(ask()))
        assert result.trace is not None
        assert (result.hits[0].bank_id, result.hits[0].bank_rank) == ("team", 1)
        assert [hit.score for hit in result.hits] == sorted((hit.score for hit in result.hits), reverse=True)
        # Six memories, two of which say the same.
        assert len(result.hits) == 5
        repeated = next(hit for hit in result.hits if "bicycle" in hit.text)
        assert {repeated.bank_id, *repeated.also_in} == {"personal", "org"}
        for bank in result.trace.banks:
            own = [hit for hit in result.hits if hit.bank_id == bank.bank_id]
            assert (bank.outcome, bank.found, bank.kept) == (BankOutcome.SEARCHED, 2, len(own))
            assert bank.tokens == sum(hit.token_count for hit in own)
            assert bank.position == 2
    finally:
        await app.close()


async def test_repeats_stay_where_they_are_wanted(tmp_path: Path) -> None:
    app = await filled(tmp_path)
    try:
        result = await app.gate.call(ANN, Recall(ask(strategy=MultiBankStrategy(dedup_across_banks=False))))
        assert len(result.hits) == 6
        assert not any(hit.also_in for hit in result.hits)
    finally:
        await app.close()


async def test_one_bank_among_several_answers_as_it_does_alone(tmp_path: Path) -> None:
    app = await filled(tmp_path)
    try:
        alone = await app.gate.call(ANN, Recall(ask(banks=(), bank_id="team")))
        among = await app.gate.call(
            ANN, Recall(ask(strategy=MultiBankStrategy(bank_weights={"personal": 0, "org": 0})))
        )
        assert [hit.memory_id for hit in among.hits] == [hit.memory_id for hit in alone.hits]
    finally:
        await app.close()


async def test_a_heavier_bank_comes_first(tmp_path: Path) -> None:
    app = await filled(tmp_path)
    try:
        strategy = MultiBankStrategy(bank_weights={"personal": 100.0}, fusion_method="rrf")
        result = await app.gate.call(ANN, Recall(ask(strategy=strategy)))
        assert [hit.bank_id for hit in result.hits[:2]] == ["personal", "personal"]
    finally:
        await app.close()


@pytest.mark.parametrize(("enough", "asked"), [(2, ["personal"]), (3, ["personal", "team"]), (99, list(BANKS))])
async def test_a_cascade_widens_until_it_has_enough(tmp_path: Path, enough: int, asked: list[str]) -> None:
    app = await filled(tmp_path)
    try:
        result = await app.gate.call(
            ANN, Recall(ask(strategy=MultiBankStrategy("cascade", min_results_to_stop=enough)))
        )
        assert result.trace is not None
        assert [bank for bank, outcome in outcomes(result).items() if outcome == "searched"] == asked
        assert {hit.bank_id for hit in result.hits} <= set(asked)
        # What the first banks had is still there.
        assert {bank.bank_id: bank.kept > 0 for bank in result.trace.banks} == {bank: bank in asked for bank in BANKS}
        assert {bank.reason for bank in result.trace.banks if bank.outcome == "not_needed"} <= {"enough_results"}
    finally:
        await app.close()


async def test_a_cascade_goes_on_past_hits_that_are_too_poor(tmp_path: Path) -> None:
    app = await filled(tmp_path)
    try:
        strategy = MultiBankStrategy("cascade", min_results_to_stop=1, min_score_to_stop=1e6)
        assert set(outcomes(await app.gate.call(ANN, Recall(ask(strategy=strategy)))).values()) == {"searched"}
    finally:
        await app.close()


async def test_a_first_match_is_one_banks_answer(tmp_path: Path) -> None:
    app = await filled(tmp_path)
    try:
        query = ask("coffee", tags=("drinks",), strategy=MultiBankStrategy("first_match"))
        await app.gate.call(ANN, Retain("team", RetainItem(content="Tea is upstairs.", tags=("drinks",))))
        result = await app.gate.call(ANN, Recall(query))
        assert [hit.text for hit in result.hits] == ["Tea is upstairs."]
        assert outcomes(result) == {"personal": "searched", "team": "searched", "org": "not_needed"}
        nothing = await app.gate.call(ANN, Recall(ask(tags=("x",), strategy=MultiBankStrategy("first_match"))))
        assert nothing.hits == ()
    finally:
        await app.close()


@pytest.mark.parametrize("level", DetailLevel)
async def test_the_budget_holds_over_all_banks(tmp_path: Path, level: DetailLevel) -> None:
    app = await filled(tmp_path)
    try:
        result = await app.gate.call(ANN, Recall(ask(max_tokens=25, detail_level=level)))
        assert result.truncated
        assert sum(hit.token_count for hit in result.hits) <= 25
        assert len(result.hits) > 1
        cut = await app.gate.call(ANN, Recall(ask(max_tokens=2, detail_level=level)))
        assert [hit.token_count for hit in cut.hits] == [2]
    finally:
        await app.close()


async def test_a_bank_that_fails_is_named_and_the_others_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = await filled(tmp_path)
    try:
        recall: Any = app.gate._pipelines.recall
        search = recall.search

        def failing(plans: Any) -> Any:
            if any(plan.bank.bank_id == "team" for plan in plans):
                raise StoreError("no")
            return search(plans)

        monkeypatch.setattr(recall, "search", failing)
        result = await app.gate.call(ANN, Recall(ask()))
        assert outcomes(result) == {"personal": "searched", "team": "failed", "org": "searched"}
        assert result.trace is not None
        assert result.trace.banks[1].reason == StoreError.reason
        assert {hit.bank_id for hit in result.hits} == {"personal", "org"}
        with pytest.raises(StoreError):
            await app.gate.call(ANN, Recall(ask(strategy=MultiBankStrategy(require_all=True))))
        with pytest.raises(StoreError):
            await app.gate.call(ANN, Recall(ask(banks=("team",))))
    finally:
        await app.close()


async def test_an_embedder_that_fails_takes_only_the_banks_that_need_it(monkeypatch: pytest.MonkeyPatch) -> None:
    embedder = RemoteEmbedder()
    app = remote_app(monkeypatch, embedder, escalation={"circuit_breaker": {"failure_threshold": 2}})
    try:
        await app.gate.call(ANN, Retain("own", RetainItem("coffee at home")))
        await app.gate.call(ANN, CreateBank("brought", embedding_model="theirs", dimensions=DIMENSIONS))
        item = RetainItem("coffee in the kitchen", embedding=Embedding("theirs", DIMENSIONS, vector("coffee")))
        await app.gate.call(ANN, Retain("brought", item))
        embedder.down = True
        # Until the circuit opens, and while it is open.
        for expected in (ProviderUnavailable, ProviderUnavailable, CircuitOpen):
            result = await app.gate.call(ANN, Recall(ask("coffee", banks=("own", "brought"))))
            assert outcomes(result) == {"own": "failed", "brought": "searched"}
            assert result.trace is not None
            assert result.trace.banks[0].reason == expected.reason
            assert [hit.bank_id for hit in result.hits] == ["brought"]
        alone = await app.gate.call(ANN, Recall(ask("coffee", banks=("own",))))
        assert alone.trace is not None
        assert (alone.hits, alone.trace.degraded) == ((), "empty_recall")
    finally:
        await app.close()


async def test_a_bank_that_is_late_is_named_and_the_others_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import asyncio

    app = await filled(tmp_path, multi_bank={"bank_timeout_seconds": 0.01})
    try:
        registry = app.gate._registry
        loaded = registry.loaded

        async def never(bank: Any) -> Any:
            await asyncio.Event().wait()

        monkeypatch.setattr(registry, "loaded", lambda bank: None if bank.bank_id == "org" else loaded(bank))
        monkeypatch.setattr(registry, "get", never)
        result = await app.gate.call(ANN, Recall(ask()))
        assert outcomes(result) == {"personal": "searched", "team": "searched", "org": "late"}
        with pytest.raises(DeadlineExceeded):
            await app.gate.call(ANN, Recall(ask(strategy=MultiBankStrategy(require_all=True))))
    finally:
        await app.close()


@pytest.mark.parametrize("level", DetailLevel)
async def test_of_equal_contents_one_is_shown_that_the_database_knows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, level: DetailLevel
) -> None:
    app = await filled(tmp_path)
    try:
        query = ask("the bicycle", detail_level=level)
        before = await app.gate.call(ANN, Recall(query))
        first = next(hit for hit in before.hits if "bicycle" in hit.text)
        recall: Any = app.gate._pipelines.recall
        rows_each = recall.assembly.rows_each

        def without(asked: Any) -> Any:
            return [[row for row in rows if row.memory_id != first.memory_id] for rows in rows_each(asked)]

        monkeypatch.setattr(recall.assembly, "rows_each", without)
        result = await app.gate.call(ANN, Recall(query))
        shown = [hit for hit in result.hits if "bicycle" in hit.text]
        assert [(hit.bank_id, hit.also_in) for hit in shown] == [(first.also_in[0], ())]
        assert len(result.hits) == len(before.hits)
    finally:
        await app.close()


@pytest.mark.parametrize(("inline_rows", "inline"), [(0, False), (1_000, True)])
async def test_what_is_not_small_is_read_back_beside_the_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, inline_rows: int, *, inline: bool
) -> None:
    app = await filled(tmp_path, recall={"inline_rows": inline_rows})
    try:
        recall: Any = app.gate._pipelines.recall
        rows_each = recall.assembly.rows_each
        threads: set[int] = set()

        def watched(asked: Any) -> Any:
            threads.add(threading.get_ident())
            return rows_each(asked)

        monkeypatch.setattr(recall.assembly, "rows_each", watched)
        external = (MemoryHit("Coffee costs nothing on Mondays.", 1.0),)
        result = await app.gate.call(ANN, Recall(ask(external_context=external)))
        assert len(result.hits) == 6
        assert (threads == {threading.get_ident()}) is inline
    finally:
        await app.close()


async def test_access_to_every_bank_is_decided_before_any_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = await filled(
        tmp_path,
        access_control={"enabled": True, "default_policy": "owner_only"},
        access_grants=[{"bank_id": "org", "principal": "user:bob", "permissions": ["read"]}],
    )
    try:
        bob = Caller(principal="user:bob")
        monkeypatch.setattr(app.gate._pipelines.multi_bank, "run", None)
        for others in (("org", "team"), ("org", "nowhere")):
            with pytest.raises(AccessDenied) as refused:
                await app.gate.call(bob, Recall(ask(banks=others)))
            assert refused.value.metadata["bank_id"] == others[1]
    finally:
        await app.close()


@pytest.mark.parametrize("how", ["recall", "recall_batch", "reflect"])
@pytest.mark.parametrize("place", [0, 1, 2])
async def test_a_denied_call_leaves_no_trace_of_the_other_banks(tmp_path: Path, how: str, place: int) -> None:
    app = await filled(
        tmp_path,
        access_control={"enabled": True, "default_policy": "owner_only"},
        access_grants=[{"bank_id": "org", "principal": "user:bob", "permissions": ["read"]}],
        banks={"org": {"homeostasis": {"recall_per_minute": 1, "reflect_per_minute": 1}}},
        observability={"prometheus_enabled": True, "metrics_port": 0},
    )
    bob = Caller(principal="user:bob")

    async def call(*banks: str) -> object:
        if how == "reflect":
            return await app.gate.call(bob, Reflect(ReflectQuery("coffee?", banks=banks)))
        query = ask("coffee?", banks=banks)
        return await (
            app.gate.call(bob, BatchRecall([query])) if how == "recall_batch" else app.gate.call(bob, Recall(query))
        )

    try:
        answers = []
        # What is behind the name that may not be read, and how the others fare, changes nothing that can be seen.
        for forbidden in ("team", "nowhere"):
            for other in ("org", "org", "team"):
                banks = [other] * 2
                banks.insert(place, forbidden)
                named = tuple(dict.fromkeys(banks))
                with capture_logs() as logs, pytest.raises(AccessDenied) as refused:
                    await call(*named)
                assert "org" not in f"{refused.value} {refused.value.metadata}"
                assert not [entry for entry in logs if "org" in str(entry)]
                hidden = refused.value.metadata["bank_id"]
                answers.append(str(refused.value).replace(hidden, "BANK"))
        assert len(set(answers)) == 1
        assert not app.gate._policies.limits._buckets._levels
        # The bank that may be read has its minute's call still.
        await call("org")
        with pytest.raises(LimitReached):
            await call("org")
    finally:
        await app.close()


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({}, "banks"),
        ({"banks": (), "bank_group": "all"}, "bank_group"),
        ({"banks": (), "bank_id": "org", "strategy": MultiBankStrategy("cascade")}, "strategy"),
    ],
)
async def test_a_history_is_of_one_bank(tmp_path: Path, fields: dict[str, Any], field: str) -> None:
    app = await filled(tmp_path)
    try:
        with pytest.raises(ValidationError) as refused:
            await app.gate.call(ANN, History(ask(as_of=datetime(2100, 1, 1, tzinfo=UTC), **fields)))
        assert refused.value.field == field
    finally:
        await app.close()


async def test_a_batch_mixes_one_bank_and_several(tmp_path: Path) -> None:
    app = await filled(tmp_path)
    try:
        queries = [ask(), ask(banks=(), bank_id="org"), ask(strategy=MultiBankStrategy("first_match"))]
        together = await app.gate.call(ANN, BatchRecall(queries))
        for query, result in zip(queries, together, strict=True):
            single = await app.gate.call(ANN, Recall(query))
            assert [hit.memory_id for hit in result.hits] == [hit.memory_id for hit in single.hits]
    finally:
        await app.close()


async def test_in_a_batch_no_query_is_taken_for_one_about_the_same_banks(tmp_path: Path) -> None:
    app = await filled(tmp_path)
    one = ask(banks=(), bank_id="org")
    try:
        for queries, field in (
            ([ask(), replace(one, bank_id="")], "queries[1].bank_id"),
            ([one, replace(one, strategy=MultiBankStrategy("first_match"))], "queries[1].strategy"),
            ([one, ask(bank_id="org")], "queries[1].bank_id"),
        ):
            with pytest.raises(ValidationError) as refused:
                await app.gate.call(ANN, BatchRecall(queries))
            assert refused.value.field == field
    finally:
        await app.close()


async def test_in_a_batch_a_wrong_field_is_named_with_its_query(tmp_path: Path) -> None:
    app = await filled(tmp_path)
    try:
        wrong = ask(embedding=Embedding("theirs", DIMENSIONS, vector("coffee")))
        with pytest.raises(DimensionMismatch) as raised:
            await app.gate.call(ANN, BatchRecall([ask(), wrong]))
        assert raised.value.metadata["field"] == "queries[1].embedding.model"
        alone = ask(banks=(), bank_id="org", embedding=wrong.embedding)
        with pytest.raises(DimensionMismatch) as raised:
            await app.gate.call(ANN, BatchRecall([ask(), alone]))
        assert raised.value.metadata["field"] == "queries[1].embedding.model"
        with pytest.raises(DimensionMismatch) as raised:
            await app.gate.call(ANN, Recall(wrong))
        assert raised.value.metadata["field"] == "embedding.model"
    finally:
        await app.close()
