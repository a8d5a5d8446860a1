"""Queries without an answer count into audits of coverage; they are bounded, screened, and gone with an erasure."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from astrocyte.api.requests import AuditCoverage, BatchRecall, CreateBank, DeleteBank, Forget, Recall, Retain
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.errors import DiskFull, ProviderUnavailable
from astrocyte.model import (
    AuditMethod,
    AuditResult,
    Caller,
    ForgetSelector,
    RecallQuery,
    RecallResult,
    RetainItem,
    Severity,
    TimeRange,
)
from astrocyte.stores.activity import Unanswered
from oracles.byte_scans import files_with

ME, BANK = Caller(), "family"
# A word that stands nowhere else.
SECRET = "qzxvoltairxzq"


@pytest.fixture
async def apps() -> AsyncIterator[list[App]]:
    made: list[App] = []
    yield made
    for app in made:
        await app.close()


async def opened(apps: list[App], folder: Path | None = None, **sections: Any) -> App:
    where = {"vector_store": "in_memory"} if folder is None else {"data_dir": str(folder)}
    app = App(Settings.from_mapping({**where, **sections}))
    apps.append(app)
    if folder is None:
        await app.gate.call(ME, CreateBank(BANK))
    return app


async def ask(app: App, *texts: str, **fields: Any) -> None:
    for text in texts:
        await app.gate.call(ME, Recall(RecallQuery(text, BANK, **fields)))
    await app.policies.flush()


async def audited(app: App, **fields: Any) -> AuditResult:
    return await app.gate.call(ME, AuditCoverage(BANK, "oboe lessons", **fields))


def told(result: AuditResult) -> list[tuple[str, int, bool]]:
    return [(one.query, one.count, one.is_covered) for one in result.unanswered]


async def test_queries_without_an_answer_are_gaps_until_a_memory_answers_them(apps: list[App]) -> None:
    app = await opened(apps)
    await app.gate.call(ME, Retain(BANK, RetainItem("Mara gives oboe lessons in Oslo.")))
    await app.gate.call(ME, Retain(BANK, RetainItem("The oboe lessons cost forty crowns.")))
    before = await audited(app)
    assert (before.coverage_score, before.unanswered, before.method) == (1.0, (), AuditMethod.RULES)
    await ask(app, "When is the boiler serviced?", "when  was the roof mended?", "When is the boiler serviced?")
    result = await audited(app)
    assert told(result) == [("When is the boiler serviced?", 2, False), ("when was the roof mended?", 1, False)]
    assert [(gap.topic, gap.severity) for gap in result.gaps] == [
        ("When is the boiler serviced?", Severity.HIGH),
        ("when was the roof mended?", Severity.MEDIUM),
    ]
    assert result.gaps[0].reason.startswith("2 recalls had no answer, the last on 20")
    assert result.coverage_score == pytest.approx((1 + 0 + 0.5) / 3)
    # Those queries asked for all of the bank.
    assert (await audited(app, tags=("lessons",))).unanswered == ()
    await app.gate.call(ME, Retain(BANK, RetainItem("The boiler is serviced every year in May.")))
    result = await audited(app)
    assert told(result)[0] == ("When is the boiler serviced?", 2, True)
    assert [gap.topic for gap in result.gaps] == ["when was the roof mended?"]


async def test_answered_and_narrowed_queries_do_not_count(apps: list[App]) -> None:
    app = await opened(apps)
    await app.gate.call(ME, Retain(BANK, RetainItem("Mara gives oboe lessons in Oslo.")))
    await ask(app, "Who gives oboe lessons?")
    await ask(app, "When is the boiler serviced?", tags=("house",))
    await ask(app, "When is the boiler serviced?", session_id="s")
    now = datetime.now(UTC)
    past = TimeRange(None, now)
    await ask(app, "When is the boiler serviced?", time_range=past)
    await ask(app, "When is the boiler serviced?", retained_range=past)
    await ask(app, "When is the boiler serviced?", as_of=now)
    await ask(app, "When is the boiler serviced?", valid_at=now)
    await ask(app, "boiler " * 200)
    assert told(await audited(app)) == []
    await app.gate.call(ME, BatchRecall([RecallQuery("When is the roof mended?", BANK)]))
    await app.policies.flush()
    assert told(await audited(app)) == [("When is the roof mended?", 1, False)]


async def test_a_bank_keeps_the_queries_that_were_asked_last(apps: list[App]) -> None:
    app = await opened(apps, coverage={"keep_unanswered": 3})
    # Two recalls may come within a millisecond.
    app.policies.unanswered._clock = itertools.count(1_800_000_000_000).__next__
    for number in range(5):
        await ask(app, f"Where is thing {number}?")
    assert {query for query, _, _ in told(await audited(app))} == {f"Where is thing {number}?" for number in (2, 3, 4)}


async def test_a_bank_that_keeps_none_has_none(apps: list[App]) -> None:
    app = await opened(apps, coverage={"keep_unanswered": 0})
    await ask(app, "When is the boiler serviced?")
    assert told(await audited(app)) == []


@pytest.mark.parametrize(("action", "kept"), [("redact", ["Who is [EMAIL_REDACTED]?"]), ("reject", []), ("warn", None)])
async def test_personal_data_is_kept_as_a_retain_would_keep_it(
    apps: list[App], action: str, kept: list[str] | None
) -> None:
    app = await opened(apps, barriers={"pii": {"action": action}})
    nothing = RecallResult((), 0, truncated=False)
    app.policies.unanswered.note(_bank(app), RecallQuery("Who is ana.silva@example.org?", BANK), nothing)
    await app.policies.flush()
    stored = [one.query for one in app.storage.store.activity.unanswered(_bank(app), 10)]
    assert stored == (["Who is ana.silva@example.org?"] if kept is None else kept)


def _bank(app: App) -> Any:
    return app.storage.store.get_bank("default", BANK)


async def test_queries_outlive_a_restart_and_go_with_an_erasure_and_with_their_bank(
    apps: list[App], tmp_path: Path
) -> None:
    app = await opened(apps, tmp_path / "data")
    kept = await app.gate.call(ME, Retain(BANK, RetainItem(f"The code is {SECRET}.")))
    await app.gate.call(ME, Retain(BANK, RetainItem("Mara gives oboe lessons.")))
    bank = _bank(app)
    await app.storage.store.activity.note_unanswered(
        bank, {"q": _unanswered(f"Is {SECRET} old?")}, most=10, is_fresh=lambda: True
    )
    await app.close()
    apps.clear()
    app = await opened(apps, tmp_path / "data")
    assert f"Is {SECRET} old?" in [query for query, _, _ in told(await audited(app))]
    # One is still in memory when the erasure begins.
    app.policies.unanswered._waiting[bank.key, "w"] = (bank, _unanswered(f"Does {SECRET} wait?"))
    await app.gate.call(ME, Forget(BANK, ForgetSelector(memory_ids=(kept.memory_id or "",)), compliance=True))
    await app.policies.flush()
    assert told(await audited(app)) == []
    assert files_with(tmp_path, SECRET) == []
    await ask(app, "When is the boiler serviced?")
    await app.gate.call(ME, DeleteBank(BANK))
    await app.policies.flush()
    assert files_with(tmp_path, "boiler") == []


async def test_what_was_asked_before_an_erasure_is_not_stored_after_it(apps: list[App], tmp_path: Path) -> None:
    app = await opened(apps, tmp_path / "data")
    kept = await app.gate.call(ME, Retain(BANK, RetainItem(f"The code is {SECRET}.")))
    bank = _bank(app)
    unanswered = app.policies.unanswered
    unanswered._waiting[bank.key, "w"] = (bank, _unanswered(f"Is {SECRET} old?"))
    screen = unanswered._screen

    async def slow(bank_id: str, texts: Any) -> Any:
        await app.gate.call(ME, Forget(BANK, ForgetSelector(memory_ids=(kept.memory_id or "",)), compliance=True))
        return await screen(bank_id, texts)

    unanswered._screen = slow
    await unanswered.flush()
    assert app.storage.store.activity.unanswered(bank, 10) == []
    assert files_with(tmp_path, SECRET) == []


async def test_queries_that_cannot_be_stored_are_kept_for_the_next_time(
    apps: list[App], monkeypatch: pytest.MonkeyPatch
) -> None:
    app = await opened(apps)
    bank, unanswered, store = _bank(app), app.policies.unanswered, app.storage.store.activity
    nothing = RecallResult((), 0, truncated=False)
    inner = store.note_unanswered
    asked = "When is the boiler serviced?"

    async def full(*_: Any, **__: Any) -> None:
        # It is asked once more while it is on its way.
        unanswered.note(bank, RecallQuery(asked, BANK), nothing)
        raise DiskFull("no room")

    unanswered.note(bank, RecallQuery(asked, BANK), nothing)
    monkeypatch.setattr(store, "note_unanswered", full)
    with pytest.raises(DiskFull):
        await unanswered.flush()
    monkeypatch.setattr(store, "note_unanswered", inner)
    screen = unanswered._screen

    async def away(*_: Any) -> Any:
        raise ProviderUnavailable("away")

    monkeypatch.setattr(unanswered, "_screen", away)
    await unanswered.flush()
    monkeypatch.setattr(unanswered, "_screen", screen)
    assert store.unanswered(bank, 10) == []
    await unanswered.flush()
    assert [(one.query, one.count) for one in store.unanswered(bank, 10)] == [(asked, 2)]
    # What was stored is not stored again.
    await unanswered.flush()
    assert store.unanswered(bank, 10)[0].count == 2


async def test_queries_of_a_failed_flush_go_with_an_erasure_meanwhile(
    apps: list[App], monkeypatch: pytest.MonkeyPatch
) -> None:
    app = await opened(apps)
    bank, unanswered = _bank(app), app.policies.unanswered

    async def erased(*_: Any, **__: Any) -> None:
        unanswered.forget(bank.key)
        raise DiskFull("no room")

    unanswered.note(bank, RecallQuery("When is the boiler serviced?", BANK), RecallResult((), 0, truncated=False))
    monkeypatch.setattr(app.storage.store.activity, "note_unanswered", erased)
    with pytest.raises(DiskFull):
        await unanswered.flush()
    assert not unanswered._waiting


async def test_a_close_in_the_middle_of_a_flush_stores_each_query_once(apps: list[App], tmp_path: Path) -> None:
    app = await opened(apps, tmp_path / "data")
    await app.gate.call(ME, CreateBank(BANK))
    unanswered = app.policies.unanswered
    screen, begun = unanswered._screen, asyncio.Event()

    async def slow(bank_id: str, texts: Any) -> Any:
        begun.set()
        await asyncio.sleep(0.05)
        return await screen(bank_id, texts)

    unanswered._screen = slow
    unanswered.note(_bank(app), RecallQuery("When is the boiler serviced?", BANK), RecallResult((), 0, truncated=False))
    flushing = asyncio.create_task(app.policies.flush())
    await begun.wait()
    flushing.cancel()
    await app.close()
    apps.clear()
    app = await opened(apps, tmp_path / "data")
    assert told(await audited(app)) == [("When is the boiler serviced?", 1, False)]


def _unanswered(text: str) -> Any:
    return Unanswered(text, 1, 1_800_000_000_000)
