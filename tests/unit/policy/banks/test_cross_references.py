"""Memories that are also relevant to another bank: found there by who may read both, and by nobody else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from astrocyte import Astrocyte
from astrocyte.api.requests import (
    BatchRecall,
    CreateBank,
    DeleteBank,
    Explain,
    Forget,
    Grant,
    ListMemories,
    Recall,
    Reflect,
    Retain,
    Revoke,
    UndeleteMemory,
    UpdateMemory,
)
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.errors import ValidationError
from astrocyte.model import (
    BankOutcome,
    Caller,
    ExplainQuery,
    ExplainStage,
    ForgetSelector,
    MemoryUpdate,
    MultiBankStrategy,
    RecallQuery,
    RecallResult,
    ReflectQuery,
    RetainItem,
)

ANN = Caller(principal="user:ann")
BOB = Caller(principal="user:bob")
DARK = RetainItem("Calvin prefers dark mode.", metadata={"also_relevant_to": "team-support"}, tags=("ui",))


def made(**settings: Any) -> App:
    return App(Settings.from_mapping({"vector_store": "in_memory", **settings}))


async def fill(app: App) -> str:
    kept = await app.gate.call(ANN, Retain("user-calvin", DARK))
    await app.gate.call(ANN, Retain("user-calvin", RetainItem("Calvin dislikes dark chocolate.")))
    for text in (
        "The team meets on Tuesday.",
        "Dark mode is a setting of the profile page.",
        "Ask Mara about invoices.",
    ):
        await app.gate.call(ANN, Retain("team-support", RetainItem(text)))
    return kept.memory_id or ""


async def ask(app: App, caller: Caller = ANN, **values: Any) -> RecallResult:
    query = RecallQuery("who prefers dark mode?", **{"bank_id": "team-support", **values})
    return await app.gate.call(caller, Recall(query))


def texts(result: RecallResult) -> set[str]:
    return {hit.text for hit in result.hits}


async def test_a_recall_finds_what_other_banks_have_for_it_and_nothing_else_of_theirs() -> None:
    app = made()
    try:
        await fill(app)
        result = await ask(app)
        assert (result.hits[0].text, result.hits[0].bank_id) == (DARK.content, "user-calvin")
        assert "Calvin dislikes dark chocolate." not in texts(result)
        assert len(result.hits) == 4
        assert result.trace is not None
        assert [(bank.bank_id, bank.outcome, bank.kept) for bank in result.trace.banks] == [
            ("team-support", BankOutcome.SEARCHED, 3),
            ("user-calvin", BankOutcome.SEARCHED, 1),
        ]
        # Its own bank is asked as ever.
        assert len((await ask(app, bank_id="user-calvin")).hits) == 2
        assert (await ask(app, tags=("ui",))).hits[0].text == DARK.content
        assert (await ask(app, tags=("other",))).hits == ()
        answer = await app.gate.call(ANN, Reflect(ReflectQuery("what does Calvin prefer?", "team-support")))
        assert "dark mode" in answer.answer
        (batched,) = await app.gate.call(ANN, BatchRecall([RecallQuery("who prefers dark mode?", "team-support")]))
        assert batched.hits == result.hits
    finally:
        await app.close()


async def test_a_caller_who_may_not_read_both_sees_no_trace_of_the_other() -> None:
    control = {"access_control": {"enabled": True, "default_policy": "owner_only"}}
    grant = {"bank_id": "team-support", "principal": "user:bob", "permissions": ["read"]}
    app, plain = made(**control, access_grants=[grant]), made(**control, access_grants=[grant])
    try:
        await fill(app)
        await fill(plain)
        reference = await plain.gate.call(ANN, ListMemories("user-calvin"))
        await plain.gate.call(ANN, Forget("user-calvin", ForgetSelector(scope="all")))
        await plain.gate.call(ANN, DeleteBank("user-calvin"))
        assert reference.total_size == 2
        seen, without = await ask(app, BOB), await ask(plain, BOB)
        assert [(hit.text, hit.score, hit.bank_id, hit.bank_rank) for hit in seen.hits] == [
            (hit.text, hit.score, hit.bank_id, hit.bank_rank) for hit in without.hits
        ]
        assert seen.trace is not None
        assert seen.trace.banks == ()
        assert seen.total_available == without.total_available
        await app.gate.call(ANN, Grant("user-calvin", "user:bob", ["read"]))
        assert DARK.content in texts(await ask(app, BOB))
        await app.gate.call(ANN, Revoke("user-calvin", "user:bob"))
        assert DARK.content not in texts(await ask(app, BOB))
        assert DARK.content not in texts(await ask(app, Caller(principal="user:ann", on_behalf_of="user:bob")))
    finally:
        await app.close()
        await plain.close()


async def test_it_follows_updates_forgets_undeletes_and_deletions() -> None:
    app = made()
    try:
        memory_id = await fill(app)
        update = MemoryUpdate(memory_id, frozenset({"metadata"}), metadata={"also_relevant_to": "org, team-sales"})
        await app.gate.call(ANN, UpdateMemory("user-calvin", update))
        assert DARK.content not in texts(await ask(app))
        await app.gate.call(ANN, CreateBank("org"))
        assert texts(await ask(app, bank_id="org")) == {DARK.content}
        await app.gate.call(ANN, Forget("user-calvin", ForgetSelector(memory_ids=(memory_id,))))
        assert texts(await ask(app, bank_id="org")) == set()
        await app.gate.call(ANN, UndeleteMemory("user-calvin", memory_id))
        assert texts(await ask(app, bank_id="org")) == {DARK.content}
        await app.gate.call(ANN, Forget("user-calvin", ForgetSelector(memory_ids=(memory_id,)), compliance=True))
        assert texts(await ask(app, bank_id="org")) == set()
        await app.gate.call(ANN, Retain("user-calvin", RetainItem("again", metadata={"also_relevant_to": "org"})))
        assert texts(await ask(app, bank_id="org")) == {"again"}
        await app.gate.call(ANN, DeleteBank("user-calvin"))
        assert texts(await ask(app, bank_id="org")) == set()
    finally:
        await app.close()


async def test_it_survives_a_restart(tmp_path: Path) -> None:
    settings = {"vector_store": "sqlite", "data_dir": str(tmp_path)}
    app = made(**settings)
    memory_id = await fill(app)
    forgotten = await app.gate.call(ANN, Retain("user-calvin", RetainItem("gone", metadata=DARK.metadata)))
    await app.gate.call(ANN, Forget("user-calvin", ForgetSelector(memory_ids=(forgotten.memory_id or "",))))
    await app.close()
    app = made(**settings)
    try:
        assert [hit.memory_id for hit in (await ask(app)).hits if hit.bank_id == "user-calvin"] == [memory_id]
    finally:
        await app.close()


async def test_other_tenants_banks_of_the_same_name_are_others() -> None:
    app = made()
    stranger = Caller("elsewhere", "user:ann")
    try:
        await fill(app)
        await app.gate.call(stranger, Retain("team-support", RetainItem("Theirs.")))
        assert texts(await ask(app, stranger)) == {"Theirs."}
    finally:
        await app.close()


@pytest.mark.parametrize("mode", ["parallel", "cascade", "first_match"])
async def test_several_banks_have_theirs_with_them_once(mode: str) -> None:
    app = made()
    try:
        await fill(app)
        await app.gate.call(ANN, Retain("org", RetainItem("Nothing of the kind.")))
        strategy = MultiBankStrategy(mode, min_results_to_stop=1)
        result = await ask(app, bank_id="", banks=("team-support", "org"), strategy=strategy)
        assert result.hits[0].text == DARK.content
        assert ("Nothing of the kind." in texts(result)) == (mode == "parallel")
        # A bank that the call names is asked in its own turn.
        both = await ask(app, bank_id="", banks=("team-support", "user-calvin"), strategy=MultiBankStrategy(mode))
        assert [hit.text for hit in both.hits].count(DARK.content) == (1 if mode == "parallel" else 0)
    finally:
        await app.close()


async def test_each_bank_judges_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    scan = {"dlp": {"scan_recall_output": True, "output_pii_action": "redact"}}
    off = {"barriers": {"pii": {"mode": "disabled"}}}
    app = made(**off, banks={"user-calvin": {**off, **scan}})
    try:
        item = RetainItem("Calvin is calvin@example.com", metadata={"also_relevant_to": "team-support"})
        await app.gate.call(ANN, Retain("user-calvin", item))
        await app.gate.call(ANN, CreateBank("team-support"))
        assert texts(await ask(app)) == {"Calvin is [EMAIL_REDACTED]"}
    finally:
        await app.close()


async def test_what_a_bank_has_from_others_is_explained() -> None:
    app = made()
    try:
        memory_id = await fill(app)
        for bank_id, origin in (("team-support", "user-calvin"), ("user-calvin", "")):
            told = await app.gate.call(ANN, Explain(ExplainQuery(RecallQuery("dark mode", bank_id), (memory_id,))))
            (explained,) = told.explanations
            assert (explained.memory_id, explained.bank_id) == (memory_id, origin)
            assert explained.stage is ExplainStage.RETURNED
    finally:
        await app.close()


async def test_the_budget_and_the_count_hold() -> None:
    app = made()
    try:
        await fill(app)
        result = await ask(app, max_tokens=16)
        assert result.truncated
        assert sum(hit.token_count for hit in result.hits) <= 16
        assert len((await ask(app, max_results=2)).hits) == 2
        assert result.trace is not None
        assert [bank.token_budget for bank in result.trace.banks] == [16, 0]
        memory_id = result.hits[0].memory_id or ""
        assert [hit.memory_id for hit in (await ask(app, memory_ids=(memory_id,))).hits] == [memory_id]
    finally:
        await app.close()


@pytest.mark.parametrize("value", [7, "", "no/bank", "a,,b", ",".join(f"b{number}" for number in range(33))])
async def test_what_names_no_banks_is_refused(value: Any) -> None:
    app = made()
    try:
        with pytest.raises(ValidationError) as raised:
            await app.gate.call(ANN, Retain("notes", RetainItem("x", metadata={"also_relevant_to": value})))
        assert raised.value.field == "metadata[also_relevant_to]"
    finally:
        await app.close()


async def test_the_python_api_takes_a_list() -> None:
    brain = Astrocyte.from_config_dict({"vector_store": "in_memory"})
    try:
        await brain.retain(
            "Calvin prefers dark mode", bank_id="user-calvin", metadata={"also_relevant_to": ["team-support", "org"]}
        )
        await brain.create_bank("org")
        (hit,) = (await brain.recall("what does Calvin prefer?", bank_id="org")).hits
        assert hit.metadata == {"also_relevant_to": "team-support,org"}
        await brain.update(hit.memory_id or "", "user-calvin", metadata={"also_relevant_to": ["team-support"]})
        assert (await brain.recall("what does Calvin prefer?", bank_id="org")).hits == ()
    finally:
        await brain.close()
