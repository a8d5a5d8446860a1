"""The examples of the API reference, for the part that exists, as a reader would paste them."""

import inspect
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import astrocyte
from astrocyte import ActorIdentity, Astrocyte, AstrocyteContext, HistoryResult, RecallResult, RetainResult
from astrocyte.errors import CapabilityNotSupported, ValidationError


@pytest.fixture
async def ast() -> AsyncIterator[Astrocyte]:
    ast = Astrocyte.from_config_dict({"provider_tier": "storage", "vector_store": "in_memory", "llm_provider": "mock"})
    yield ast
    await ast.close()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("astrocyte.yaml").write_text("provider_tier: storage\nvector_store: sqlite\n", encoding="utf-8")


@pytest.mark.usefixtures("folder")
async def test_from_a_configuration_file() -> None:
    ast = Astrocyte.from_config("astrocyte.yaml")
    result = await ast.retain("It survives a restart.", bank_id="notes")
    await ast.close()
    ast = Astrocyte.from_config("astrocyte.yaml")
    recalled = await ast.recall("what survives?", bank_id="notes")
    assert [hit.memory_id for hit in recalled.hits] == [result.memory_id]
    await ast.close()


async def test_retain(ast: Astrocyte) -> None:
    result = await ast.retain(
        content="Customer prefers dark-mode UI and weekly email digests.",
        bank_id="user-prefs",
        tags=["ui", "notifications"],
        metadata={"customer_id": "cust_8291"},
        source="support-ticket",
    )
    assert result.memory_id is not None
    assert result.memory_id.startswith("mem_")
    assert result.stored
    assert not result.deduplicated
    assert result.error is None
    assert result.retention_action == "created"
    assert not result.curated
    assert result.memory_layer == "semantic"


async def test_recall_a_single_bank(ast: Astrocyte, capsys: pytest.CaptureFixture[str]) -> None:
    await ast.retain("Customer prefers dark-mode UI and weekly email digests.", bank_id="user-prefs")
    result = await ast.recall("What UI theme does the customer prefer?", bank_id="user-prefs")
    for hit in result.hits:
        print(f"[{hit.score:.2f}] {hit.text}")  # noqa: T201 - as the reference does
    assert "dark-mode" in capsys.readouterr().out
    trace = result.trace
    assert trace is not None
    assert trace.strategies_used == ("semantic", "keyword")
    assert trace.total_candidates == 2
    assert trace.fusion_method == "relative_score"
    assert trace.latency_ms is not None
    assert trace.latency_ms > 0
    assert trace.strategy_timings_ms is not None
    assert set(trace.strategy_timings_ms) >= {"semantic", "keyword"}
    assert trace.strategy_candidate_counts is not None
    assert trace.strategy_candidate_counts["keyword"] == 1
    assert trace.tier_used == 3
    assert trace.layer_distribution == {"semantic": 1}
    assert trace.cache_hit is False
    assert trace.wiki_tier_used is False


async def test_recall_many_banks(ast: Astrocyte) -> None:
    for bank_id in ("incidents", "runbooks", "team-notes", "policies", "general"):
        await ast.retain(f"The API rate limit policy and the deployment issues in {bank_id}.", bank_id=bank_id)
    result = await ast.recall(
        "deployment issues last week",
        banks=["incidents", "runbooks", "team-notes"],
        strategy="parallel",
        max_results=20,
    )
    assert {hit.bank_id for hit in result.hits} == {"incidents", "runbooks", "team-notes"}
    result = await ast.recall(
        "API rate limit policy",
        banks=["policies", "runbooks", "general"],
        strategy="cascade",
    )
    assert result.trace is not None
    assert [bank.bank_id for bank in result.trace.banks] == ["policies", "runbooks", "general"]
    with pytest.raises(ValidationError) as caught:
        await ast.recall("x", bank_id="a", strategy="cascade")
    assert caught.value.field == "strategy"


async def test_recall_without_a_bank_is_refused(ast: Astrocyte) -> None:
    with pytest.raises(ValidationError) as caught:
        await ast.recall("x")
    assert caught.value.field == "bank_id"


async def test_recall_by_tags(ast: Astrocyte) -> None:
    await ast.retain("Onboarding steps: sign up, verify, invite.", bank_id="docs", tags=["onboarding"])
    await ast.retain("Onboarding steps of the old product.", bank_id="docs", tags=["archive"])
    await ast.retain("Onboarding steps without a label.", bank_id="docs")
    result = await ast.recall("onboarding steps", bank_id="docs", tags=["onboarding", "getting-started"])
    assert [hit.tags for hit in result.hits] == [("onboarding",)]


async def test_recall_in_a_time_range(ast: Astrocyte) -> None:
    now = datetime.now(UTC)
    await ast.retain("customer complaints about shipping", bank_id="support", occurred_at=now - timedelta(days=3))
    await ast.retain("customer complaints about billing", bank_id="support", occurred_at=now - timedelta(days=30))
    week_ago = now - timedelta(days=7)
    result = await ast.recall("customer complaints", bank_id="support", time_range=(week_ago, datetime.now(UTC)))
    assert [hit.text for hit in result.hits] == ["customer complaints about shipping"]
    # The reference's example takes datetime.now(), which says no zone; that is refused by name, not read as some zone.
    with pytest.raises(ValidationError, match="no time zone") as caught:
        await ast.recall("complaints", bank_id="support", time_range=(datetime.now(), datetime.now()))  # noqa: DTZ005
    assert caught.value.field == "time_range.start"


async def test_history(ast: Astrocyte) -> None:
    await ast.retain("Alice works at Initech.", bank_id="user-alice", tags=["employment"])
    snapshot = await ast.history(
        "What did we know about Alice's employer?",
        bank_id="user-alice",
        as_of=datetime(2025, 1, 1, tzinfo=UTC),
    )
    assert snapshot.as_of == datetime(2025, 1, 1, tzinfo=UTC)
    assert snapshot.bank_id == "user-alice"
    assert not snapshot.hits
    after = await ast.history("Alice employment", bank_id="user-alice", as_of=datetime.now(UTC), tags=["employment"])
    added = {h.memory_id for h in after.hits} - {h.memory_id for h in snapshot.hits}
    assert len(added) == 1
    assert all(f"{hit.retained_at:%Y-%m-%d}" for hit in after.hits)
    with pytest.raises(ValidationError, match="no time zone"):
        await ast.history("x", "user-alice", datetime(2025, 1, 1))  # noqa: DTZ001 - the point


async def test_forget(ast: Astrocyte) -> None:
    ids = [
        (await ast.retain(text, bank_id="user-prefs", tags=tags)).memory_id or ""
        for text, tags in [("likes tea", []), ("likes rain", []), ("likes fax", ["deprecated"]), ("likes jazz", [])]
    ]
    result = await ast.forget("user-prefs", memory_ids=ids[:2])
    assert result.deleted_count == 2
    assert result.archived_count == 0
    assert (await ast.forget("user-prefs", memory_ids=["mem_3f8a", "mem_91cb"])).deleted_count == 0
    assert (await ast.forget("user-prefs", tags=["deprecated"])).deleted_count == 1
    assert (await ast.forget("user-prefs", scope="all")).deleted_count == 1
    assert (await ast.recall("likes", bank_id="user-prefs")).hits == ()


async def test_forget_for_compliance(ast: Astrocyte) -> None:
    kept = await ast.retain("a secret", bank_id="user-prefs")
    result = await ast.forget(
        "user-prefs", memory_ids=[kept.memory_id or ""], compliance=True, reason="GDPR erasure request #4821"
    )
    assert result.deleted_count == 1
    assert result.receipt is not None


async def test_forget_before_a_date(ast: Astrocyte) -> None:
    await ast.retain("an old line", bank_id="logs", occurred_at=datetime(2024, 12, 31, tzinfo=UTC))
    await ast.retain("a new line", bank_id="logs", occurred_at=datetime(2025, 1, 1, tzinfo=UTC))
    result = await ast.forget(
        "logs",
        before_date=datetime(2025, 1, 1),  # noqa: DTZ001 - as the reference writes it; read as UTC
        reason="Retention policy: remove data older than 1 year",
    )
    assert result.deleted_count == 1
    assert [hit.text for hit in (await ast.recall("line", bank_id="logs")).hits] == ["a new line"]


async def test_context(ast: Astrocyte) -> None:
    ctx = AstrocyteContext(
        principal="user:user_42",
        actor=ActorIdentity(type="user", id="user_42"),
        tenant_id="tenant_acme",
    )
    result = await ast.retain(content="hers alone", bank_id="notes", context=ctx)
    assert (await ast.get(result.memory_id or "", "notes", context=ctx)).principal == "user:user_42"
    with pytest.raises(astrocyte.BankNotFound):
        await ast.recall("hers", bank_id="notes")
    agent = AstrocyteContext("agent:a", on_behalf_of=ActorIdentity("user", "user_42"), tenant_id="tenant_acme")
    assert len((await ast.recall("hers", bank_id="notes", context=agent)).hits) == 1
    with pytest.raises(ValidationError, match=r"context\.on_behalf_of\.type: expected one of user, agent"):
        await ast.recall("x", bank_id="notes", context=AstrocyteContext("p", on_behalf_of=ActorIdentity("god", "x")))
    with pytest.raises(ValidationError, match=r"context\.principal: is empty"):
        await ast.recall("x", bank_id="notes", context=AstrocyteContext(""))
    bare = AstrocyteContext("user_42", actor=ActorIdentity("user", "user_42"), tenant_id="tenant_acme")
    assert len((await ast.recall("hers", bank_id="notes", context=bare)).hits) == 1
    for actor in (ActorIdentity("agent", "user_42"), ActorIdentity("user", "user_43")):
        with pytest.raises(CapabilityNotSupported, match="is not the principal"):
            await ast.retain("x", bank_id="notes", context=AstrocyteContext("user:user_42", actor=actor))
    claims = ActorIdentity("user", "user_42", {"role": "admin"})
    with pytest.raises(CapabilityNotSupported, match="claims"):
        await ast.retain("x", bank_id="notes", context=AstrocyteContext("user:user_42", actor=claims))


async def test_errors(ast: Astrocyte) -> None:
    from astrocyte.exceptions import AccessDenied, BankNotFound, RateLimited
    from astrocyte.exceptions import ValidationError as SameError

    assert SameError is ValidationError
    with pytest.raises(BankNotFound, match="restricted"):
        await ast.recall("sensitive data", bank_id="restricted")
    with pytest.raises(SameError, match="empty"):
        await ast.retain("", bank_id="notes")
    assert RateLimited("busy", retry_after=1.5).retry_after == 1.5
    assert AccessDenied("p", "b", "read").bank_id == "b"


RETAIN = "content bank_id metadata tags context content_type extraction_profile occurred_at source pii_detected"
RECALL = """
    query bank_id banks strategy max_results max_tokens tags context external_context fact_types time_range
    include_sources layer_weights detail_level as_of
"""
HISTORY = "query bank_id as_of max_results max_tokens tags"
FORGET = "bank_id memory_ids tags scope context compliance reason before_date"
REFERENCE = {
    "retain": (RETAIN, RetainResult),
    "recall": (RECALL, RecallResult),
    "history": (HISTORY, HistoryResult),
    "forget": (FORGET, astrocyte.ForgetResult),
}


@pytest.mark.parametrize("name", REFERENCE)
def test_signatures_begin_as_the_reference_says(name: str) -> None:
    names, result = REFERENCE[name]
    signature = inspect.signature(getattr(Astrocyte, name), eval_str=True)
    assert list(signature.parameters)[1 : 1 + len(names.split())] == names.split()
    assert signature.return_annotation is result


def test_public_names_are_sorted_and_there() -> None:
    assert astrocyte.__all__ == sorted(astrocyte.__all__)
    assert all(getattr(astrocyte, name) for name in astrocyte.__all__)


async def test_results_equal_lists(ast: Astrocyte) -> None:
    await ast.retain("Mara likes tea.", bank_id="b")
    empty = await ast.recall("tea", bank_id="b", tags=["none"])
    assert empty.hits == ()
    hits: object = empty.hits
    assert hits == []
    assert not (hits != [])  # noqa: SIM202 - the other operator
    found = await ast.recall("tea", bank_id="b")
    assert found.hits == list(found.hits)
    assert found.hits != []
    assert (await ast.history("tea", "b", datetime.now(UTC), tags=["none"])).hits == []
    sources: object = (await ast.reflect("Who won the cup in Lisbon?", bank_id="b")).sources
    assert sources == []


async def test_lists_do_where_sequences_are_taken(ast: Astrocyte) -> None:
    now = datetime.now(UTC)
    await ast.retain("Mara likes tea.", bank_id="b", tags=["drinks"], metadata={"also_relevant_to": ["c"]})
    await ast.retain("Tea is served.", bank_id="c")
    result = await ast.recall(
        "tea",
        banks=["b", "c"],
        strategy=astrocyte.MultiBankStrategy(cascade_order=["c", "b"], bank_weights={"b": 2.0}),
        tags=["drinks"],
        time_range=[now - timedelta(days=1), now + timedelta(days=1)],  # type: ignore[arg-type]
        external_context=[],
        fact_types=[],
    )
    assert [hit.bank_id for hit in result.hits] == ["b"]


def test_a_strategy_says_what_the_reference_says() -> None:
    strategy = astrocyte.MultiBankStrategy()
    assert (strategy.mode, strategy.min_results_to_stop, strategy.cascade_order) == ("parallel", 3, None)
    assert (strategy.bank_weights, strategy.dedup_across_banks) == (None, True)


async def test_what_is_not_built_is_refused_by_name(ast: Astrocyte) -> None:
    for name, call in {
        "audit": ast.audit("support tickets", bank_id="b", max_memories=5, tags=["x"]),
        "compile": ast.compile("b", scope="deployment"),
        "consolidate": ast.consolidate("b"),
        "graph_search": ast.graph_search("Alice", bank_id="people", limit=5),
        "graph_neighbors": ast.graph_neighbors(entity_ids=["person:alice-smith"], bank_id="people", limit=20),
        "export_bank": ast.export_bank("b", "b.jsonl"),
        "import_bank": ast.import_bank("b", "b.jsonl", on_conflict="skip"),
    }.items():
        with pytest.raises(CapabilityNotSupported, match=f"Astrocyte.{name} is not available"):
            await call
    with pytest.raises(CapabilityNotSupported, match="mental models"):
        ast.set_mental_model_store(object())


def test_types_are_importable_by_the_name_of_the_reference() -> None:
    from astrocyte.types import EntityLink, MemoryEntityAssociation, MemoryHit, RecallTrace

    link = EntityLink(
        entity_a="person:alice-smith",
        entity_b="person:alice-johnson",
        link_type="alias_of",
        evidence="Alice Smith (formerly Alice Johnson)",
        confidence=0.95,
    )
    assert link.created_at is None
    assert MemoryEntityAssociation("m", "e").memory_id == "m"
    assert (MemoryHit, RecallTrace) == (astrocyte.MemoryHit, astrocyte.RecallTrace)
