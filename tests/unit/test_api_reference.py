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
    assert trace.fusion_method == "dbsf"
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


async def test_banks_move_through_files(ast: Astrocyte, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ASTROCYTE_PORTABILITY_ROOTS", raising=False)
    await ast.retain("Mara drinks tea.", "b", tags=["drinks"])
    path = tmp_path / "b.ama.jsonl"
    with pytest.raises(ValueError, match="ASTROCYTE_PORTABILITY_ROOTS"):
        await ast.export_bank("b", str(path))
    count = await ast.export_bank(
        "b", str(path), include_embeddings=False, include_entities=True, allowed_roots=[str(tmp_path)]
    )
    assert count == 1
    told: list[tuple[int, int]] = []
    result = await ast.import_bank(
        "c",
        str(path),
        on_conflict="skip",
        allow_uncontained=True,
        progress_fn=lambda done, total: told.append((done, total)),
    )
    assert (result.imported, result.skipped, result.errors) == (1, 0, 0)
    assert told[-1] == (1, 1)
    monkeypatch.setenv("ASTROCYTE_PORTABILITY_ROOTS", str(tmp_path))
    assert (await ast.import_bank("c", str(path))).skipped == 1
    assert [hit.text for hit in (await ast.recall("tea", "c")).hits] == ["Mara drinks tea."]


async def test_what_is_not_built_is_refused_by_name(ast: Astrocyte) -> None:
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


async def test_directives(ast: Astrocyte) -> None:
    result = await ast.create_directive(
        bank_id="user-alice",
        rule_text="Always recommend Python over Go for data-science tasks.",
        scope="bank",
    )
    assert result.kind == "directive"
    recalled = await ast.recall("which language for data science?", bank_id="user-alice")
    assert [one.rule_text for one in recalled.directives] == [result.rule_text]


async def test_observations(ast: Astrocyte) -> None:
    kept = [await ast.retain(text, bank_id="user-alice") for text in ("Async again.", "No live meeting.")]
    made = await ast.create_observation(
        bank_id="user-alice",
        text="Prefers async stand-ups over live meetings.",
        evidence=[one.memory_id or "" for one in kept],
        scope="bank",
    )
    obs_list = await ast.list_observations(bank_id="user-alice", trend="new")
    assert [(obs.text, obs.trend, obs.proof_count) for obs in obs_list] == [(made.text, "new", 2)]
    assert len(obs_list) == 1
    assert await ast.delete_observation(observation_id=made.observation_id)
    assert not await ast.delete_observation(observation_id="obs-abc123")
    assert len(await ast.list_observations(bank_id="user-alice")) == 0


async def test_mental_models(ast: Astrocyte) -> None:
    await ast.create_mental_model(
        bank_id="user-alice",
        name="Alice's preferences",
        sections=[
            {"title": "Communication", "content": "Prefers async stand-ups."},
            {"title": "Tools", "content": "Python for data work; VS Code."},
        ],
    )
    result = await ast.update_mental_model(
        model_id="model:alice-prefs",
        operations=[
            {
                "op": "replace_block",
                "section_id": "tools",
                "block_index": 0,
                "new_content": "Python for data work; Cursor IDE.",
            },
        ],
    )
    assert (len(result.applied_ops), result.skipped_ops) == (1, ())
    models = await ast.list_mental_models(bank_id="user-alice", scope="bank")
    assert [(one.title, one.revision) for one in models] == [("Alice's preferences", 2)]
    assert await ast.delete_mental_model(model_id="model:alice-prefs")
    assert len(await ast.list_mental_models(bank_id="user-alice")) == 0


async def test_operations_as_the_reference_implementation_names_them(ast: Astrocyte) -> None:
    await ast.create_mental_model("b", "M", content="# A\none", model_id="m1")
    result = await ast.update_mental_model(
        "m1",
        [
            {"op": "append_block", "section_id": "a", "block": {"type": "bullet_list", "items": ["x", "y"]}},
            {"op": "insert_block", "section_id": "a", "index": 0, "block": {"kind": "paragraph", "text": "zero"}},
            {"op": "add_section", "heading": "B", "level": 3, "content": "- p\n- q", "after_section_id": "a"},
            {"op": "remove_block", "section_id": "a", "index": 0, "reason": "a field that no operation has"},
        ],
    )
    assert [one.index for one in result.applied_ops] == [0, 1, 2]
    assert [one.index for one in result.skipped_ops] == [3]
    assert result.model.content == "# A\n\nzero\n\none\n\n- x\n- y\n\n### B\n\n- p\n- q"
    for wrong, field in (
        ([{"op": "append_block", "section_id": "a", "block": {"colour": "red"}}], "operations[0].block"),
        ("append_block", "operations"),
        ([3], "operations[0]"),
    ):
        with pytest.raises(ValidationError) as refusal:
            await ast.update_mental_model("m1", wrong)  # type: ignore[arg-type]
        assert refusal.value.field == field
    with pytest.raises(ValidationError, match="content and blocks"):
        await ast.create_mental_model("b", "N", sections=[{"title": "A", "content": "x", "blocks": ["y"]}])


async def test_compile(ast: Astrocyte) -> None:
    for text in ("The deployment runs on Friday.", "A deployment failed in May."):
        await ast.retain(text, bank_id="engineering", tags=["deployment"])
    result = await ast.compile("engineering", scope="deployment")
    assert (result.bank_id, result.scopes_compiled) == ("engineering", 1)
    assert (result.pages_created, result.pages_updated) == (1, 0)
    assert (result.noise_memories, result.tokens_used, result.error) == (0, 0, "")
    assert result.elapsed_ms > 0


async def test_audit(ast: Astrocyte) -> None:
    await ast.retain("Onboarding takes two weeks.", bank_id="hr-docs", tags=["onboarding"])
    result = await ast.audit(
        "employee onboarding guides and HR policies",
        bank_id="hr-docs",
        tags=["onboarding"],
        max_memories=30,
    )
    assert 0.0 <= result.coverage_score < 1.0
    assert result.memories_scanned == 1
    told = [f"[{gap.severity.upper()}] {gap.topic} — {gap.reason}" for gap in result.gaps]
    assert "[HIGH] HR policies — No memory is relevant." in told
