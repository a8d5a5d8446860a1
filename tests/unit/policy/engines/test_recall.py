"""Recall where an engine stands beside the pipeline: both are asked, judged, and made one answer."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest

from astrocyte.api.requests import (
    BatchRecall,
    CreateBank,
    DeleteBank,
    Forget,
    GetMemory,
    ListEngines,
    Recall,
    Reflect,
    Retain,
    StreamReflect,
    UpdateMemory,
)
from astrocyte.app import App
from astrocyte.astrocyte import Astrocyte
from astrocyte.errors import (
    AccessDenied,
    DeadlineExceeded,
    FailedPrecondition,
    LimitReached,
    ProviderUnavailable,
    StoreError,
    ValidationError,
)
from astrocyte.model import (
    Caller,
    DetailLevel,
    EngineOutcome,
    EngineTrace,
    ForgetSelector,
    MemoryHit,
    MemoryUpdate,
    MultiBankStrategy,
    RecallQuery,
    RecallResult,
    ReflectQuery,
    RetainItem,
)
from astrocyte.providers.engines import EngineAnswer, EngineCapabilities
from astrocyte.providers.hybrid import HybridEngineProvider
from harness.engines import Shelf, hybrid_app

ANN = Caller(principal="user:ann")
NOW = datetime(2026, 1, 1, tzinfo=UTC)


async def ask(app: App, question: str = "where is the coffee", caller: Caller = ANN, **values: Any) -> RecallResult:
    return await app.gate.call(caller, Recall(RecallQuery(question, **{"bank_id": "notes", **values})))


def sides(result: RecallResult) -> dict[str, EngineTrace]:
    assert result.trace is not None
    return {one.engine: one for one in result.trace.engines}


async def test_both_sides_answer_and_each_hit_says_whose_it_is() -> None:
    shelf = Shelf()
    app = hybrid_app(shelf)
    try:
        await app.gate.call(ANN, Retain("notes", RetainItem("The coffee is in the kitchen.")))
        shelf.put("The coffee machine is on the shelf.")
        result = await ask(app, include_sources=True)
        assert {(hit.text, hit.engine, hit.source, hit.bank_id) for hit in result.hits} == {
            ("The coffee is in the kitchen.", "", "tier1_pipeline", "notes"),
            ("The coffee machine is on the shelf.", "shelf", "tier2_engine", "notes"),
        }
        assert [(one.engine, one.outcome, one.found, one.kept) for one in result.trace.engines] == [  # type: ignore[union-attr]
            ("pipeline", "answered", 1, 1),
            ("shelf", "answered", 1, 1),
        ]
        assert result.total_available == 2
        assert [hit.source for hit in (await ask(app)).hits] == [None, None]
    finally:
        await app.close()
        assert shelf.closed


async def test_the_engine_is_asked_for_this_caller_and_this_bank_with_the_redacted_query() -> None:
    shelf = Shelf()
    app = hybrid_app(shelf)
    try:
        await app.gate.call(ANN, CreateBank("notes"))
        seen: list[RecallQuery] = []
        recall = shelf.recall

        async def noting(call: Any, query: RecallQuery) -> EngineAnswer:
            seen.append(query)
            return await recall(call, query)

        shelf.recall = noting  # type: ignore[method-assign]
        agent = Caller(principal="agent:a", on_behalf_of="user:ann", hops=0)
        await ask(app, "who wrote to ann@example.com?", agent)
        (_, call) = shelf.calls[0]
        assert (call.bank_id, call.principal, call.tenant, call.hops) == ("notes", "user:ann", "default", 1)
        assert "ann@example.com" not in seen[0].query
    finally:
        await app.close()


async def test_banks_that_an_engine_does_not_stand_beside_never_reach_it() -> None:
    shelf = Shelf()
    app = hybrid_app(shelf, banks=("notes", "team-*"))
    try:
        for bank in ("notes", "team-a", "other"):
            await app.gate.call(ANN, CreateBank(bank))
            await ask(app, bank_id=bank)
        await app.gate.call(Caller("elsewhere", "user:ann"), CreateBank("notes"))
        await ask(app, caller=Caller("elsewhere", "user:ann"))
        assert [call.bank_id for _, call in shelf.calls] == ["notes", "team-a"]
    finally:
        await app.close()


@pytest.mark.parametrize(
    ("broken", "outcome", "reason"),
    [
        ({"failure": RuntimeError("secret words")}, EngineOutcome.FAILED, "RuntimeError"),
        ({"failure": StoreError("secret words")}, EngineOutcome.FAILED, "STORE_FAILED"),
        ({"failure": AccessDenied("user:ann", "there", "read")}, EngineOutcome.FAILED, "ACCESS_DENIED"),
        ({"hangs": True}, EngineOutcome.LATE, "DEADLINE_EXCEEDED"),
        ({"answer": "no answer at all"}, EngineOutcome.FAILED, "not_an_answer"),
    ],
)
async def test_an_engine_that_fails_is_named_and_the_pipeline_answers(
    broken: dict[str, Any], outcome: EngineOutcome, reason: str
) -> None:
    shelf = Shelf(**broken)
    app = hybrid_app(shelf, timeout_seconds=0.05)
    strict = hybrid_app(Shelf(**broken), timeout_seconds=0.05, require_both=True)
    try:
        for one in (app, strict):
            await one.gate.call(ANN, Retain("notes", RetainItem("The coffee is in the kitchen.")))
        result = await ask(app, include_trace=False)
        assert [hit.text for hit in result.hits] == ["The coffee is in the kitchen."]
        assert (sides(result)["shelf"].outcome, sides(result)["shelf"].reason) == (outcome, reason)
        with pytest.raises((ProviderUnavailable, DeadlineExceeded, FailedPrecondition)) as raised:
            await ask(strict)
        assert "secret" not in str(raised.value)
    finally:
        await app.close()
        await strict.close()


async def test_a_pipeline_that_fails_is_named_and_the_engine_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    shelf = Shelf()
    app = hybrid_app(shelf)
    try:
        await app.gate.call(ANN, CreateBank("notes"))
        shelf.put("The coffee machine is on the shelf.")

        async def failing(*_: Any) -> Any:
            raise StoreError("no")

        monkeypatch.setattr(app.gate._recalling._recall, "run", failing)
        result = await ask(app)
        assert [hit.engine for hit in result.hits] == ["shelf"]
        assert (sides(result)["pipeline"].outcome, sides(result)["pipeline"].reason) == ("failed", "STORE_FAILED")
        shelf.failure = RuntimeError()
        with pytest.raises(StoreError):
            await ask(app)
    finally:
        await app.close()


async def test_an_engine_that_fails_again_and_again_is_left_alone() -> None:
    shelf = Shelf(failure=RuntimeError())
    app = hybrid_app(shelf, settings={"escalation": {"circuit_breaker": {"failure_threshold": 2}}})
    try:
        await app.gate.call(ANN, Retain("notes", RetainItem("The coffee is in the kitchen.")))
        reasons = [sides(await ask(app))["shelf"].reason for _ in range(4)]
        assert reasons == ["RuntimeError", "RuntimeError", "CIRCUIT_OPEN", "CIRCUIT_OPEN"]
        assert len(shelf.calls) == 2
        (described,) = await app.gate.call(ANN, ListEngines())
        assert (described.circuit, described.healthy) == ("open", False)
    finally:
        await app.close()


async def test_a_refusal_opens_no_circuit() -> None:
    shelf = Shelf(failure=AccessDenied("user:ann", "there", "read"))
    app = hybrid_app(shelf, settings={"escalation": {"circuit_breaker": {"failure_threshold": 1}}})
    try:
        await app.gate.call(ANN, CreateBank("notes"))
        assert [sides(await ask(app))["shelf"].reason for _ in range(3)] == ["ACCESS_DENIED"] * 3
    finally:
        await app.close()


async def test_access_is_decided_before_either_side_is_asked_and_rates_are_drawn_once() -> None:
    shelf = Shelf()
    app = hybrid_app(
        shelf,
        settings={
            "access_control": {"enabled": True, "default_policy": "owner_only"},
            "homeostasis": {"rate_limits": {"recall_per_minute": 2}},
        },
    )
    try:
        await app.gate.call(ANN, CreateBank("notes"))
        with pytest.raises(AccessDenied):
            await ask(app, caller=Caller(principal="user:bob"))
        assert shelf.calls == []
        await ask(app)
        await ask(app)
        with pytest.raises(LimitReached):
            await ask(app)
        assert len(shelf.calls) == 2
    finally:
        await app.close()


async def test_what_an_engine_brings_meets_the_filter_or_is_dropped() -> None:
    shelf = Shelf()
    app = hybrid_app(shelf)
    try:
        await app.gate.call(ANN, CreateBank("notes"))
        shelf.put("coffee with a label", tags=("a",), metadata={"n": 1})
        shelf.put("coffee with another", tags=("b",), metadata={"n": 2})
        shelf.put("coffee of last year", tags=("a",), occurred_at=NOW - timedelta(days=300))
        cases: list[tuple[dict[str, Any], set[str]]] = [
            ({"tags": ("a",)}, {"coffee with a label", "coffee of last year"}),
            ({"metadata": {"n": 2}}, {"coffee with another"}),
        ]
        for filters, expected in cases:
            result = await ask(app, "coffee", **filters)
            assert {hit.text for hit in result.hits} == expected
            assert sides(result)["shelf"].dropped == 3 - len(expected)
        assert [hit.text for hit in (await ask(app, "coffee", max_results=1)).hits]
    finally:
        await app.close()


@pytest.mark.parametrize(
    "wrong",
    [
        MemoryHit("", 1.0),
        MemoryHit("x" * 20_000, 1.0),
        MemoryHit("nan", float("nan")),
        MemoryHit("a nul \0", 1.0),
        MemoryHit("tags", 1.0, tags=("a\nb",)),
        MemoryHit("times", 1.0, occurred_at=datetime(2020, 1, 1)),  # noqa: DTZ001 - that is what is wrong
        "not a hit",
    ],
)
async def test_what_is_no_right_hit_is_dropped(wrong: Any) -> None:
    shelf = Shelf(answer=EngineAnswer([wrong, MemoryHit("coffee", 0.5, metadata={"api_key": "k", "n": 1})]))
    app = hybrid_app(shelf)
    try:
        await app.gate.call(ANN, CreateBank("notes"))
        result = await ask(app)
        assert [(hit.text, dict(hit.metadata or {})) for hit in result.hits] == [("coffee", {"n": 1})]
        assert (sides(result)["shelf"].found, sides(result)["shelf"].dropped) == (2, 1)
    finally:
        await app.close()


@pytest.mark.parametrize(
    ("action", "expected"),
    [("redact", ["write to [EMAIL_REDACTED]"]), ("reject", []), ("warn", ["write to ann@example.com"])],
)
async def test_what_an_engine_brings_passes_the_banks_barrier_although_answers_are_not_scanned(
    action: str, expected: list[str]
) -> None:
    shelf = Shelf()
    app = hybrid_app(shelf, settings={"barriers": {"pii": {"action": action}}})
    try:
        await app.gate.call(ANN, CreateBank("notes"))
        shelf.put("write to ann@example.com")
        result = await ask(app, "write")
        assert [hit.text for hit in result.hits] == expected
        assert any("email" in warning for warning in result.warnings)
    finally:
        await app.close()


async def test_a_copy_is_shown_as_the_database_knows_it_and_never_after_it_was_changed_or_forgotten() -> None:
    shelf = Shelf()
    app = hybrid_app(shelf, retain_target="both", pipeline_recall_weight=0.0)
    try:
        kept = await app.gate.call(ANN, Retain("notes", RetainItem("The coffee is in the kitchen.", tags=("true",))))
        assert shelf.texts == ["The coffee is in the kitchen."]
        number = next(iter(shelf.rows))
        # The engine says other things of it than the database.
        shelf.rows[number] = MemoryHit("The coffee is in the kitchen.", 0.0, memory_id=number, tags=("false",))
        (hit,) = (await ask(app)).hits
        assert (hit.memory_id, hit.tags, hit.engine) == (kept.memory_id, ("true",), "shelf")
        stale = dict(shelf.rows), dict(shelf.origins)
        await app.gate.call(
            ANN,
            UpdateMemory(
                "notes", MemoryUpdate(kept.memory_id or "", frozenset({"content"}), content="It is in the office.")
            ),
        )
        assert shelf.texts == ["It is in the office."]
        shelf.rows, shelf.origins = dict(stale[0]), dict(stale[1])
        assert (await ask(app)).hits == ()
        await app.gate.call(ANN, Forget("notes", ForgetSelector(memory_ids=(kept.memory_id or "",))))
        shelf.rows, shelf.origins = {}, {number: kept.memory_id or ""}
        shelf.rows[number] = MemoryHit("It is in the office.", 0.0, memory_id=number)
        assert (await ask(app)).hits == ()
    finally:
        await app.close()


async def test_a_call_that_has_passed_enough_servers_asks_no_further_one() -> None:
    shelf = Shelf()
    app = hybrid_app(shelf, retain_target="both")
    strict = hybrid_app(Shelf(), require_both=True)
    far = Caller(principal="user:ann", hops=1)
    try:
        await app.gate.call(ANN, Retain("notes", RetainItem("The coffee is in the kitchen.")))
        await strict.gate.call(ANN, CreateBank("notes"))
        shelf.calls.clear()
        assert sides(await ask(app, caller=far))["shelf"].reason == "hop_limit"
        kept = await app.gate.call(far, Retain("notes", RetainItem("Tea is in the cupboard.")))
        assert kept.stored
        assert any("hop_limit" in warning for warning in kept.warnings)
        with pytest.raises(FailedPrecondition, match="passed 1 servers"):
            await app.gate.call(far, Forget("notes", ForgetSelector(memory_ids=(kept.memory_id or "",))))
        assert (await app.gate.call(ANN, GetMemory("notes", kept.memory_id or ""))).content == "Tea is in the cupboard."
        with pytest.raises(FailedPrecondition):
            await app.gate.call(far, DeleteBank("notes"))
        assert shelf.calls == []
        with pytest.raises(FailedPrecondition, match="hop_limit"):
            await ask(strict, caller=far)
    finally:
        await app.close()
        await strict.close()


async def test_the_past_is_asked_only_of_engines_that_know_it() -> None:
    shelf = Shelf(able=EngineCapabilities())
    app = hybrid_app(shelf)
    try:
        await app.gate.call(ANN, Retain("notes", RetainItem("The coffee is in the kitchen.")))
        result = await ask(app, as_of=datetime.now(UTC))
        assert (len(result.hits), sides(result)["shelf"].reason, shelf.calls) == (1, "not_supported", [])
    finally:
        await app.close()


@pytest.mark.parametrize("level", DetailLevel)
async def test_one_budget_holds_for_both_sides(level: DetailLevel) -> None:
    shelf = Shelf()
    app = hybrid_app(shelf, fusion_method="relative_score")
    try:
        for number in range(4):
            await app.gate.call(ANN, Retain("notes", RetainItem(f"The coffee is in kitchen number {number}.")))
            shelf.put(f"The coffee machine is on shelf number {number}.")
        result = await ask(app, max_tokens=25, detail_level=level)
        assert result.truncated
        assert 0 < sum(hit.token_count for hit in result.hits) <= 25
        assert {hit.engine for hit in result.hits} == {"", "shelf"}
        assert len((await ask(app, max_results=3)).hits) == 3
    finally:
        await app.close()


async def test_several_banks_have_their_engines_hits_with_their_weights() -> None:
    shelf = Shelf()
    app = hybrid_app(shelf, banks=("a", "b"))
    try:
        for bank in ("a", "b", "c"):
            await app.gate.call(ANN, Retain(bank, RetainItem(f"The coffee is in {bank}.")))
        shelf.put("The coffee machine is on the shelf.")
        strategy = MultiBankStrategy(bank_weights={"a": 1.0, "b": 5.0})
        result = await ask(app, bank_id="", banks=("a", "b", "c"), strategy=strategy)
        assert result.hits[0].engine == "shelf"
        assert result.hits[0].bank_id == "b"
        assert [(one.engine, one.bank_id) for one in result.trace.engines] == [  # type: ignore[union-attr]
            ("pipeline", ""),
            ("shelf", "a"),
            ("shelf", "b"),
        ]
        assert {hit.bank_id for hit in result.hits if not hit.engine} == {"a", "b", "c"}
        assert result.trace is not None
        assert [bank.kept for bank in result.trace.banks] == [1, 1, 1]
    finally:
        await app.close()


async def test_a_cascade_asks_the_engines_of_the_banks_that_it_came_to() -> None:
    shelf = Shelf()
    app = hybrid_app(shelf)
    try:
        for bank in ("a", "b"):
            await app.gate.call(ANN, Retain(bank, RetainItem(f"The coffee is in {bank}.")))
        shelf.put("The coffee machine is on the shelf.")
        strategy = MultiBankStrategy("cascade", min_results_to_stop=1)
        result = await ask(app, bank_id="", banks=("a", "b"), strategy=strategy, include_trace=False)
        assert [call.bank_id for _, call in shelf.calls] == ["a"]
        assert result.trace is None
        assert {hit.bank_id for hit in result.hits} == {"a"}
        first = await ask(app, bank_id="", banks=("a", "b"), strategy=MultiBankStrategy("first_match"), tags=("x",))
        assert first.hits == ()
        assert [call.bank_id for _, call in shelf.calls][1:] == ["a", "b"]
        shelf.put("coffee with a label", tags=("x",))
        first = await ask(app, bank_id="", banks=("a", "b"), strategy=MultiBankStrategy("first_match"), tags=("x",))
        assert [(hit.text, hit.bank_id) for hit in first.hits] == [("coffee with a label", "a")]
    finally:
        await app.close()


async def test_a_batch_asks_as_its_single_calls_do() -> None:
    shelf = Shelf()
    app = hybrid_app(shelf, banks=("notes",))
    try:
        await app.gate.call(ANN, Retain("notes", RetainItem("The coffee is in the kitchen.")))
        await app.gate.call(ANN, Retain("plain", RetainItem("The coffee is gone.")))
        shelf.put("The coffee machine is on the shelf.")
        queries = [RecallQuery("coffee", "plain"), RecallQuery("coffee", "notes"), RecallQuery("gone", "plain")]
        together = await app.gate.call(ANN, BatchRecall(queries))
        singles = [await app.gate.call(ANN, Recall(query)) for query in queries]
        assert [[hit.text for hit in one.hits] for one in together] == [
            [hit.text for hit in one.hits] for one in singles
        ]
        assert {hit.engine for hit in together[1].hits} == {"", "shelf"}
    finally:
        await app.close()


async def test_a_caller_who_gives_up_leaves_no_call_behind() -> None:
    shelf = Shelf(hangs=True)
    app = hybrid_app(shelf)
    try:
        await app.gate.call(ANN, CreateBank("notes"))
        asking = asyncio.create_task(ask(app))
        async with asyncio.timeout(5):
            await shelf.asked.wait()
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        async with asyncio.timeout(5):
            await shelf.left.wait()
    finally:
        await app.close()


async def test_reflect_rests_on_what_both_sides_find() -> None:
    shelf = Shelf()
    app = hybrid_app(shelf)
    try:
        await app.gate.call(ANN, Retain("notes", RetainItem("Tea is drunk at five.")))
        shelf.put("Mara is allergic to sesame.")
        result = await app.gate.call(ANN, Reflect(ReflectQuery("what is Mara allergic to?", "notes")))
        assert "sesame" in result.answer
        assert result.sources is not None
        assert result.sources[0].engine == "shelf"
    finally:
        await app.close()


async def test_an_engine_may_answer_a_reflect_and_is_judged() -> None:
    shelf = Shelf(able=EngineCapabilities(reflect=True))
    app = hybrid_app(shelf, reflect_target="engine", reflect_timeout_seconds=0.05)
    strict = hybrid_app(shelf, reflect_target="engine", require_both=True)
    question = ReflectQuery("what is Mara allergic to?", "notes")
    try:
        for one in (app, strict):
            await one.gate.call(ANN, Retain("notes", RetainItem("Mara is allergic to sesame.")))
        shelf.put("Ask mara@example.com about sesame.")
        result = await app.gate.call(ANN, Reflect(question))
        assert result.answer == "The shelf says: Ask [EMAIL_REDACTED] about sesame."
        assert [source.text for source in result.sources or ()] == ["Ask [EMAIL_REDACTED] about sesame."]
        assert "answered by engine shelf" in (result.observations or ())
        pieces = [piece async for piece in app.gate.stream(ANN, StreamReflect(question))]
        assert pieces[0] == result.answer
        short = await app.gate.call(ANN, Reflect(ReflectQuery(question.query, "notes", max_tokens=4)))
        assert short.truncated
        shelf.failure = RuntimeError()
        fallen = await app.gate.call(ANN, Reflect(question))
        assert fallen.answer == "Mara is allergic to sesame."
        with pytest.raises(ProviderUnavailable):
            await strict.gate.call(ANN, Reflect(question))
    finally:
        await app.close()
        await strict.close()


@pytest.mark.parametrize("end", ["forgotten", "changed", "erased"])
async def test_an_answer_from_what_is_no_longer_so_here_is_not_shown(end: str) -> None:
    """The engine lags: its answer has what the server's memory does not say any more."""
    shelf = Shelf(able=EngineCapabilities(reflect=True))
    app = hybrid_app(shelf, reflect_target="engine")
    strict = hybrid_app(shelf, reflect_target="engine", require_both=True)
    question = ReflectQuery("where does Mara live?", "notes")
    try:
        for one in (app, strict):
            await one.gate.call(ANN, Retain("notes", RetainItem("Ivo lives in Rome.")))
            kept = await one.gate.call(ANN, Retain("notes", RetainItem("Mara lives in Oslo.")))
            memory_id = str(kept.memory_id)
            shelf.rows.clear()
            shelf.origins = {shelf.put("Mara lives in Oslo."): memory_id}
            rows = dict(shelf.rows)
            assert "Oslo" in (await one.gate.call(ANN, Reflect(question))).answer
            if end == "changed":
                update = MemoryUpdate(memory_id, frozenset({"content"}), content="Mara lives in Bergen.")
                await one.gate.call(ANN, UpdateMemory("notes", update))
            else:
                selector = ForgetSelector(memory_ids=(memory_id,))
                await one.gate.call(ANN, Forget("notes", selector, compliance=end == "erased"))
            # The engine has it still, or again.
            shelf.rows, shelf.origins = dict(rows), dict.fromkeys(rows, memory_id)
            if one is strict:
                with pytest.raises(ProviderUnavailable, match="forgotten, archived or changed here"):
                    await one.gate.call(ANN, Reflect(question))
            else:
                assert "Oslo" not in (await one.gate.call(ANN, Reflect(question))).answer
    finally:
        await app.close()
        await strict.close()


async def test_the_router_shifts_weights_and_says_why() -> None:
    shelf = Shelf(able=EngineCapabilities(temporal_search=True))
    app = hybrid_app(shelf, adaptive_routing=True)
    plain = hybrid_app(Shelf())
    try:
        for one in (app, plain):
            await one.gate.call(ANN, Retain("notes", RetainItem("Mara moved to Oslo in May.")))
        shelf.put("Mara moved house.")
        result = await ask(app, "when did Mara move?")
        assert (sides(result)["shelf"].signals, sides(result)["shelf"].weight) == (("temporal",), 1.4)
        assert result.hits[0].engine == "shelf"
        assert sides(await ask(app, "oslo"))["pipeline"].weight == 1.2
        assert sides(await ask(plain, "when did Mara move?"))["shelf"].weight == 1.0
    finally:
        await app.close()
        await plain.close()


async def test_what_an_engine_brings_has_no_authority_whatever_it_says() -> None:
    shelf = Shelf()
    tiers = {"enabled": True, "tiers": [{"id": "top", "label": "Believe:"}], "tier_by_bank": {"notes": "top"}}
    app = hybrid_app(shelf, settings={"recall_authority": tiers})
    try:
        await app.gate.call(ANN, Retain("notes", RetainItem("The coffee is in the kitchen.")))
        shelf.put("The coffee is nowhere.", metadata={"authority_tier": "top"})
        block = (await ask(app)).authority_context or ""
        believed, _, rest = block.partition("[UNASSIGNED]")
        assert "kitchen" in believed
        assert "nowhere" not in believed
        assert "nowhere" in rest
    finally:
        await app.close()


async def test_a_text_that_engines_of_two_banks_hold_is_one_hit() -> None:
    shelf = Shelf()
    app = hybrid_app(shelf, banks=("a", "b"))
    try:
        for bank in ("a", "b"):
            await app.gate.call(ANN, CreateBank(bank))
        shelf.put("The coffee machine is on the shelf.")
        result = await ask(app, bank_id="", banks=("a", "b"))
        assert [(hit.bank_id, hit.also_in) for hit in result.hits] == [("a", ("b",))]
        apart = MultiBankStrategy(dedup_across_banks=False)
        result = await ask(app, bank_id="", banks=("a", "b"), strategy=apart)
        assert [(hit.bank_id, hit.also_in) for hit in result.hits] == [("a", ()), ("b", ())]
    finally:
        await app.close()


@pytest.mark.parametrize("engine", [None, object(), "mem0"])
def test_what_is_no_engine_is_refused(engine: Any) -> None:
    with pytest.raises(ValidationError, match="expected an EngineProvider"):
        HybridEngineProvider(engine=engine)


async def test_the_answer_of_an_engine_that_can_reflect_is_asked_for() -> None:
    shelf = Shelf(able=EngineCapabilities(reflect=True))
    brain = Astrocyte.from_config_dict({"vector_store": "in_memory"})
    try:
        with pytest.raises(ValidationError, match="expected an EngineProvider"):
            brain.set_engine_provider(cast(Any, None))
        brain.set_engine_provider(HybridEngineProvider(engine=shelf, retain_target="engine"))
        await brain.create_bank("notes")
        await brain.retain("tea", bank_id="notes")
        assert (await brain.reflect("what is there?", bank_id="notes")).answer == "The shelf says: tea"
    finally:
        await brain.close()
