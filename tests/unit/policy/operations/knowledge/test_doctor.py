"""The doctor: each check finds a planted fault, and nothing in a bank without it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from astrocyte.api.requests import (
    CompileBank,
    CreateBank,
    CreateObservation,
    DiagnoseBank,
    Forget,
    GetMemory,
    GetPage,
    LintPages,
    ListAuditEvents,
    ListEntities,
    ListMemories,
    PlaceHold,
    Recall,
    ReleaseHold,
    RepairBank,
    Retain,
    UpdateMemory,
)
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.errors import BankNotFound, ValidationError
from astrocyte.model import (
    AuditEventKind,
    Bank,
    Caller,
    Check,
    Diagnosis,
    ForgetSelector,
    MemoryUpdate,
    RecallQuery,
    RepairResult,
    RetainItem,
    Severity,
)
from astrocyte.policy.operations.knowledge import search_checks
from astrocyte.stores.sqlite import archiving
from astrocyte.stores.sqlite.engine.transaction import Transaction

ME, BANK = Caller(), "family"
NOW = datetime.now(UTC)
HEALTHY = (
    "Mara lives in Oslo.",
    "The cat sleeps on the stove.",
    "Jonas plays the cello in an orchestra.",
    "The orchestra meets on Thursdays.",
)


@pytest.fixture
async def app() -> AsyncIterator[App]:
    # Redaction would remove what the check of personal data is to find.
    app = App(Settings.from_mapping({"vector_store": "in_memory", "barriers": {"pii": {"action": "warn"}}}))
    yield app
    await app.close()


async def kept(app: App, *texts: str, **fields: Any) -> list[str]:
    return [(await app.gate.call(ME, Retain(BANK, RetainItem(text, **fields)))).memory_id or "" for text in texts]


async def diagnosed(app: App, *checks: Check, **fields: Any) -> Diagnosis:
    return await app.gate.call(ME, DiagnoseBank(BANK, checks, **fields))


async def damage(app: App, statement: str, *bindings: Any) -> None:
    """Change rows behind the store's back."""

    def run(transaction: Transaction) -> None:
        transaction.connection.execute(statement, bindings)

    await app.storage.store._writer.submit(run)


async def test_a_healthy_bank_has_no_findings_and_every_check_says_what_it_looked_at(app: App) -> None:
    await kept(app, *HEALTHY)
    result = await diagnosed(app)
    assert result.findings == ()
    assert [(one.check, one.found) for one in result.checks] == [(check, 0) for check in Check]
    told = {one.check: (one.examined, one.total) for one in result.checks}
    assert told[Check.DUPLICATES] == (4, 4)
    assert told[Check.UNREACHABLE] == (4, 4)


async def plant_duplicates(app: App) -> Sequence[str]:
    return await kept(app, "The dentist is on Monday.") + await kept(app, "the dentist is on monday", session_id="s")


async def plant_contradictions(app: App) -> Sequence[str]:
    first = await kept(app, "I live in Brno.", speaker="Ben", occurred_at=NOW - timedelta(days=9))
    return first + await kept(app, "I live in Rome.", speaker="Ben", occurred_at=NOW - timedelta(days=2))


async def plant_expired(app: App) -> Sequence[str]:
    return await kept(app, "The ticket is valid in May.", valid_until=NOW - timedelta(days=3))


async def plant_stale_knowledge(app: App) -> Sequence[str]:
    (one,) = await kept(app, "Mara drinks green tea.")
    made = await app.gate.call(ME, CreateObservation(BANK, "Mara likes tea.", [one]))
    update = MemoryUpdate(one, frozenset({"content"}), content="Mara drinks black tea.")
    await app.gate.call(ME, UpdateMemory(BANK, update))
    return [made.observation_id]


async def plant_orphaned_rows(app: App) -> Sequence[str]:
    await damage(app, "INSERT INTO tags SELECT bank_key, 'lost', 999999 FROM banks WHERE bank_id = ?", BANK)
    return []


async def plant_missing_embeddings(app: App) -> Sequence[str]:
    (one,) = await kept(app, "The boiler was repaired last week.")
    await damage(
        app,
        "DELETE FROM embeddings WHERE passage_key / 65536 = (SELECT row_key FROM memories WHERE memory_id = ?)",
        one,
    )
    return [one]


async def plant_personal_data(app: App) -> Sequence[str]:
    return await kept(app, "Write to ana.silva@example.org about the garden.")


async def plant_oversize(app: App) -> Sequence[str]:
    return await kept(app, " ".join(f"word{number}" for number in range(3_000)))


async def plant_one_sided(app: App) -> Sequence[str]:
    for number in range(60):
        await kept(app, f"Entry {number} of the diary is about subject{number}.", source="diary")
    return []


async def plant_near_duplicates(app: App) -> Sequence[str]:
    ids = await kept(app, "Mara plays the oboe in the town orchestra.")
    # A retain would not store the second one.
    await kept(app, "Anders repairs old radios in his cellar.")
    (other,) = [one for one in await listed(app) if one not in ids and "radios" in (await content(app, one))]
    await damage(
        app,
        "UPDATE contents SET content = 'Mara plays the oboe in the town orchestra now.' WHERE row_key ="
        " (SELECT row_key FROM memories WHERE memory_id = ?)",
        other,
    )
    await damage(
        app,
        "UPDATE embeddings SET vector = (SELECT vector FROM embeddings JOIN memories ON passage_key = row_key * 65536"
        " WHERE memory_id = ?) WHERE passage_key = (SELECT row_key * 65536 FROM memories WHERE memory_id = ?)",
        ids[0],
        other,
    )
    return [*ids, other]


async def listed(app: App) -> list[str]:
    return [one.memory_id for one in (await app.gate.call(ME, ListMemories(BANK, page_size=100))).memories]


async def content(app: App, memory_id: str) -> str:
    return (await app.gate.call(ME, GetMemory(BANK, memory_id))).content


async def plant_index_recall(app: App) -> Sequence[str]:
    (one,) = await kept(app, "The chimney sweep comes in March.")
    index = await app.storage.registry.get(await bank_of(app))
    (key,) = index.core.keys_of([bytes.fromhex(one.removeprefix("mem_"))])
    index.core.apply(index.core.position + 1, removed=[key])
    return [one]


async def bank_of(app: App) -> Bank:
    bank = app.storage.store.get_bank("default", BANK)
    assert bank is not None
    return bank


async def plant_expired_holds(app: App) -> Sequence[str]:
    await app.gate.call(ME, PlaceHold(BANK, reason="open", hold_id="case-1", expires_at=NOW + timedelta(days=3)))
    await app.gate.call(ME, PlaceHold(BANK, reason="over", hold_id="case-2", expires_at=NOW - timedelta(days=3)))
    await app.gate.call(ME, PlaceHold(BANK, reason="released", hold_id="case-3", expires_at=NOW - timedelta(days=3)))
    await app.gate.call(ME, ReleaseHold(BANK, "case-3"))
    return ["case-2"]


async def plant_unreachable(app: App) -> Sequence[str]:
    # Each of them says what all the others do, as any query does.
    words = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta"]
    return [
        (await kept(app, " ".join(words[turn:] + words[:turn]) + ".", session_id=f"s{copy}"))[0]
        for turn in range(6)
        for copy in range(6)
    ]


PLANTS: dict[Check, tuple[Callable[[App], Awaitable[Sequence[str]]], Severity]] = {
    Check.DUPLICATES: (plant_duplicates, Severity.LOW),
    Check.CONTRADICTIONS: (plant_contradictions, Severity.MEDIUM),
    Check.EXPIRED: (plant_expired, Severity.LOW),
    Check.STALE_KNOWLEDGE: (plant_stale_knowledge, Severity.MEDIUM),
    Check.ORPHANED_ROWS: (plant_orphaned_rows, Severity.MEDIUM),
    Check.MISSING_EMBEDDINGS: (plant_missing_embeddings, Severity.HIGH),
    Check.UNREACHABLE: (plant_unreachable, Severity.MEDIUM),
    Check.PERSONAL_DATA: (plant_personal_data, Severity.HIGH),
    Check.OVERSIZE: (plant_oversize, Severity.LOW),
    Check.ONE_SIDED: (plant_one_sided, Severity.LOW),
    Check.NEAR_DUPLICATES: (plant_near_duplicates, Severity.LOW),
    Check.INDEX_RECALL: (plant_index_recall, Severity.HIGH),
    Check.EXPIRED_HOLDS: (plant_expired_holds, Severity.MEDIUM),
}


@pytest.mark.parametrize("check", Check)
async def test_a_check_finds_what_was_planted_and_nothing_before(app: App, check: Check) -> None:
    await kept(app, *HEALTHY)
    assert (await diagnosed(app, check)).findings == ()
    plant, severity = PLANTS[check]
    ids = await plant(app)
    result = await diagnosed(app, check)
    assert result.findings
    assert {(one.check, one.severity) for one in result.findings} == {(check, severity)}
    found = {one for finding in result.findings for one in finding.ids}
    if check is Check.UNREACHABLE:
        assert found <= set(ids)
    else:
        assert found == set(ids)
    (report,) = result.checks
    assert len(result.findings) == min(report.found, 20)
    assert all(finding.remedy for finding in result.findings)


async def test_the_duplicates_check_says_how_many_memories_it_looked_at(app: App) -> None:
    await plant_duplicates(app)
    await kept(app, *HEALTHY)
    result = await diagnosed(app, Check.DUPLICATES, max_memories=4)
    assert (result.findings, result.checks[0].examined, result.checks[0].total) == ((), 4, 6)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("The dentist is on Monday.", "The dentist is on Tuesday."),
        ("Mara eats nuts.", "Mara never eats nuts."),
        ("It costs 30 crowns.", "It costs 31 crowns."),
        ("Ann Lee paid.", "Ann Leeson paid."),
    ],
)
async def test_memories_that_differ_in_a_word_are_no_duplicates(app: App, first: str, second: str) -> None:
    await kept(app, first, second)
    assert (await diagnosed(app, Check.DUPLICATES)).findings == ()


async def test_a_statement_whose_validity_ended_contradicts_nothing(app: App) -> None:
    ids = await plant_contradictions(app)
    assert len((await diagnosed(app, Check.CONTRADICTIONS)).findings) == 1
    update = MemoryUpdate(ids[0], frozenset({"valid_until"}), valid_until=NOW - timedelta(days=2))
    await app.gate.call(ME, UpdateMemory(BANK, update))
    assert (await diagnosed(app, Check.CONTRADICTIONS)).findings == ()


async def test_repair_deletes_orphans_and_compiles_stale_pages(app: App) -> None:
    ids = await kept(app, *HEALTHY, tags=("home",))
    await app.gate.call(ME, CompileBank(BANK))
    await app.gate.call(ME, Forget(BANK, ForgetSelector(memory_ids=(ids[0],))))
    await plant_orphaned_rows(app)
    found = (await diagnosed(app, Check.STALE_KNOWLEDGE, Check.ORPHANED_ROWS)).findings
    assert [one.is_repairable for one in found] == [True, True]
    done = await app.gate.call(ME, RepairBank(BANK, "r1"))
    assert (done.rows_deleted, done.pages_compiled, done.pages_deleted) == (1, 1, 0)
    assert await app.gate.call(ME, RepairBank(BANK, "r1")) == done
    assert (await diagnosed(app, Check.STALE_KNOWLEDGE, Check.ORPHANED_ROWS)).findings == ()
    assert len(await app.gate.call(ME, LintPages(BANK))) == 0
    events = (await app.gate.call(ME, ListAuditEvents(page_size=50))).events
    assert [one.details for one in events if one.event == AuditEventKind.BANK_REPAIRED] == [{"count": "1"}]
    again = await app.gate.call(ME, RepairBank(BANK))
    assert (again.rows_deleted, again.pages_compiled) == (0, 0)


# A row that nothing refers to, by its table, with the words that its bank has beside it.
LOST = {
    "graph_entities": "INSERT INTO graph_entities (bank_key, entity_id, entity_type) SELECT bank_key, 'person:lost',"
    " 'PERSON' FROM banks WHERE bank_id = ?",
    "entity_mentions": "INSERT INTO entity_mentions SELECT 999999, max(entity_key), 0, 4, 'Mara', 1.0 FROM"
    " graph_entities JOIN banks USING (bank_key) WHERE bank_id = ?",
    "entity_words": "INSERT INTO entity_words SELECT bank_key, 'lost', 999999 FROM banks WHERE bank_id = ?",
    "entity_links": "INSERT INTO entity_links SELECT NULL, bank_key, 999999, 999998, 'knows', 'caller', NULL, NULL,"
    " NULL, '', 1.0, 0, NULL, NULL, '{}' FROM banks WHERE bank_id = ?",
}


@pytest.mark.parametrize("table", LOST)
async def test_rows_of_the_graph_that_belong_to_nothing_are_found_and_deleted(app: App, table: str) -> None:
    await kept(app, *HEALTHY)
    assert await app.pipelines.graph.follower.caught_up(30.0)
    assert (await diagnosed(app, Check.ORPHANED_ROWS)).findings == ()
    before = [one.id for one in (await app.gate.call(ME, ListEntities(BANK))).entities]
    assert before
    await damage(app, LOST[table], BANK)
    (finding,) = (await diagnosed(app, Check.ORPHANED_ROWS)).findings
    assert finding.detail == f"1 rows of {table} belong to nothing"
    assert (await app.gate.call(ME, RepairBank(BANK))).rows_deleted == 1
    assert (await diagnosed(app, Check.ORPHANED_ROWS)).findings == ()
    assert [one.id for one in (await app.gate.call(ME, ListEntities(BANK))).entities] == before


@pytest.mark.parametrize(
    ("table", "statement"),
    [
        (
            "contents",
            "INSERT INTO contents (row_key, content, tags, metadata, entities) VALUES (999, 'x', '[]', '{}', '[]')",
        ),
        ("chunks", "INSERT INTO chunks VALUES (999 * 65536 + 1, 'x', 1)"),
        ("embeddings", "INSERT INTO embeddings VALUES (999 * 65536, 'm', x'00')"),
        ("second_embeddings", "INSERT INTO second_embeddings VALUES (999 * 65536 + 3, 'm', x'00')"),
    ],
)
async def test_parts_of_versions_that_are_gone_are_found_and_deleted(app: App, table: str, statement: str) -> None:
    ids = await kept(app, *HEALTHY)
    assert (await diagnosed(app, Check.ORPHANED_ROWS)).findings == ()
    await damage(app, statement)
    (finding,) = (await diagnosed(app, Check.ORPHANED_ROWS)).findings
    assert (finding.detail, finding.is_repairable) == (f"1 rows of {table} belong to nothing", True)
    assert (await app.gate.call(ME, RepairBank(BANK))).rows_deleted == 1
    assert (await diagnosed(app)).findings == ()
    assert sorted(await listed(app)) == sorted(ids)


async def test_a_dry_run_of_a_repair_says_what_the_repair_then_does(app: App) -> None:
    ids = await kept(app, *HEALTHY, tags=("home",))
    await app.gate.call(ME, CompileBank(BANK))
    await app.gate.call(ME, Forget(BANK, ForgetSelector(memory_ids=(ids[0],))))
    await plant_orphaned_rows(app)
    await plant_index_recall(app)
    found = (await diagnosed(app)).findings
    foreseen = await app.gate.call(ME, RepairBank(BANK, "r1", validate_only=True))
    assert (foreseen.rows_deleted, foreseen.pages_compiled, foreseen.index_rebuilt) == (1, 1, True)
    assert (await diagnosed(app)).findings == found
    # A request id that only validated is free.
    assert await app.gate.call(ME, RepairBank(BANK, "r1")) == foreseen
    assert (await diagnosed(app)).findings == ()
    assert await app.gate.call(ME, RepairBank(BANK, validate_only=True)) == RepairResult(BANK, 0, 0, 0)


async def test_a_repair_builds_an_index_that_lost_memories_anew(app: App) -> None:
    await kept(app, *HEALTHY)
    (lost,) = await plant_index_recall(app)

    async def found() -> set[str | None]:
        hits = (await app.gate.call(ME, Recall(RecallQuery("chimney sweep in March", BANK)))).hits
        return {hit.memory_id for hit in hits}

    assert lost not in await found()
    assert (await app.gate.call(ME, RepairBank(BANK))).index_rebuilt
    assert lost in await found()


async def test_an_archived_memory_makes_a_page_stale_and_no_observation(app: App) -> None:
    (one, *_) = await kept(app, *HEALTHY, tags=("home",))
    await app.gate.call(ME, CreateObservation(BANK, "Mara is in Oslo.", [one]))
    await app.gate.call(ME, CompileBank(BANK, "home"))
    await damage(app, "UPDATE memories SET retained_at = 0, known_from = 0 WHERE memory_id = ?", one)
    await archived(app, one)
    (finding,) = (await diagnosed(app, Check.STALE_KNOWLEDGE)).findings
    assert (finding.ids, finding.is_repairable) == (("topic:home",), True)
    (problem,) = (await app.gate.call(ME, LintPages(BANK))).findings
    assert (problem.problem, problem.detail.startswith("0 memories changed, 1 are archived")) == ("stale", True)
    assert (await app.gate.call(ME, RepairBank(BANK))).pages_compiled == 1
    assert (await diagnosed(app, Check.STALE_KNOWLEDGE)).findings == ()
    page = await app.gate.call(ME, GetPage(BANK, "topic:home"))
    assert one not in page.source_ids


async def archived(app: App, memory_id: str) -> None:
    """Archive a memory as the lifecycle does."""
    bank = await bank_of(app)

    def run(transaction: Transaction) -> None:
        archiving.archive(transaction.connection, transaction.bank(bank), [memory_id], "unused")

    await app.storage.store._writer.submit(run)


async def test_personal_data_is_found_in_every_field_that_a_retain_looks_at(app: App) -> None:
    (one,) = await kept(app, "The garden.", metadata={"contact": "ana.silva@example.org"})
    (other,) = await kept(app, "The shed.", speaker="ben@example.org")
    found = (await diagnosed(app, Check.PERSONAL_DATA)).findings
    assert [(finding.ids, finding.detail) for finding in found] == [((one,), "email"), ((other,), "email")]


def test_recall_of_an_index_is_the_share_of_the_nearest_that_it_finds() -> None:
    class Answer:
        def __init__(self, *ids: int) -> None:
            self.hits = [SimpleNamespace(memory_id=one.to_bytes(16, "big")) for one in ids]

    core = SimpleNamespace(
        keys_of=lambda _: [7],
        recall=lambda _: Answer(1, 2, 3),
        explain=lambda _, __: SimpleNamespace(response=Answer(1, 2, 3, 4)),
    )
    memory = SimpleNamespace(memory_id="mem_" + "0" * 32, vector=b"\0\0\x80\x3f")
    index: Any = SimpleNamespace(core=core)
    record: Any = SimpleNamespace(row_key=7, memory=memory)
    assert search_checks._compared(index, record) == (True, 0.75)
    record.row_key = 8
    assert search_checks._compared(index, record) == (False, 0.0)


async def test_a_hold_on_the_bank_keeps_entities_without_mentions(app: App) -> None:
    await kept(app, *HEALTHY)
    await damage(app, LOST["graph_entities"], BANK)
    hold = await app.gate.call(ME, PlaceHold(BANK, reason="a case"))
    assert (await app.gate.call(ME, RepairBank(BANK))).rows_deleted == 0
    await app.gate.call(ME, ReleaseHold(BANK, hold.hold_id))
    assert (await app.gate.call(ME, RepairBank(BANK))).rows_deleted == 1


async def test_no_content_is_in_a_report(app: App) -> None:
    for plant, _ in PLANTS.values():
        if plant not in {plant_one_sided, plant_unreachable}:
            await plant(app)
    text = repr(await diagnosed(app))
    for word in ("dentist", "Brno", "ana.silva", "boiler", "word1", "ticket", "lost"):
        assert word not in text


@pytest.mark.parametrize(
    ("request_", "field"),
    [
        (DiagnoseBank(BANK, ("all",)), "checks[0]"),  # type: ignore[arg-type]
        (DiagnoseBank(BANK, (), -1), "max_memories"),
        (DiagnoseBank(BANK, (), 10_001), "max_memories"),
    ],
)
async def test_bad_input_is_refused_with_its_field(app: App, request_: Any, field: str) -> None:
    await app.gate.call(ME, CreateBank(BANK))
    with pytest.raises(ValidationError) as refusal:
        await app.gate.call(ME, request_)
    assert refusal.value.field == field


async def test_a_bank_that_is_not_there_is_not_found(app: App) -> None:
    for request in (DiagnoseBank(BANK), RepairBank(BANK)):
        with pytest.raises(BankNotFound):
            await app.gate.call(ME, request)
