"""The doctor: each check finds a planted fault, and nothing in a bank without it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from astrocyte.api.requests import (
    CompileBank,
    CreateBank,
    CreateObservation,
    DiagnoseBank,
    Forget,
    LintPages,
    ListAuditEvents,
    ListEntities,
    PlaceHold,
    ReleaseHold,
    RepairBank,
    Retain,
    UpdateMemory,
)
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.errors import BankNotFound, ValidationError
from astrocyte.model import AuditEventKind, Caller, Check, Diagnosis, ForgetSelector, MemoryUpdate, RetainItem, Severity
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
