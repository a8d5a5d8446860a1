"""Statements that name a memory find it by its id: none of them reads its whole bank."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from astrocyte.api.requests import (
    Forget,
    GetMemory,
    Recall,
    Retain,
    UndeleteMemory,
    UpdateMemory,
)
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.model import ForgetSelector, MemoryUpdate, RecallQuery, RetainItem
from doubles.stages import ME

BANK = "b"
NAMED = re.compile(r"\bmemory_id (=|IN) (\?|\(SELECT value FROM json_each\(\?)")
# A search by the key of the bank alone, of the table of versions.
WHOLE_BANK = re.compile(r"^(SEARCH|SCAN) (m|memories)\b(?!.*(memory_id|row_key|rowid|content_hash)[=<>])")
Statements = dict[str, Any]


@pytest.fixture
def statements() -> Iterator[Statements]:
    """The statements of every connection that is opened from here on, with the values that each had last."""
    seen: Statements = {}

    def trace(_: object, sql: str, bindings: Any) -> bool:
        seen[sql] = bindings
        return True

    def hook(connection: apsw.Connection) -> None:
        connection.exec_trace = trace

    apsw.connection_hooks.append(hook)
    yield seen
    apsw.connection_hooks.remove(hook)


async def test_no_statement_about_a_memory_reads_its_bank(statements: Statements, tmp_path: Path) -> None:
    app = App(Settings.from_mapping({"data_dir": str(tmp_path)}))
    call = app.gate.call
    items = [RetainItem(f"Room {number} is painted blue.") for number in range(6)]
    ids = [(await call(ME, Retain(BANK, item))).memory_id or "" for item in items]
    # A near duplicate, and an exact one.
    await call(ME, Retain(BANK, RetainItem("The room 3 is painted blue.")))
    await call(ME, Retain(BANK, RetainItem("Room 4 is painted blue.")))
    await call(ME, UpdateMemory(BANK, MemoryUpdate(ids[0], frozenset({"tags"}), tags=("home",))))
    await call(ME, GetMemory(BANK, ids[0]))
    await call(ME, Recall(RecallQuery("Which room is blue?", BANK)))
    await call(ME, Forget(BANK, ForgetSelector(memory_ids=(ids[2],))))
    await call(ME, UndeleteMemory(BANK, ids[2]))
    await call(ME, Forget(BANK, ForgetSelector(memory_ids=(ids[3],)), compliance=True))
    about = {sql: given for sql, given in statements.items() if NAMED.search(sql) and not sql.startswith("EXPLAIN")}
    assert len(about) > 10
    whole = {}
    for sql, given in about.items():
        plan = [row[-1] for row in app.storage.store._connections.query(f"EXPLAIN QUERY PLAN {sql}", given or ())]
        if found := [step for step in plan if WHOLE_BANK.search(step)]:
            whole[sql] = found
    await app.close()
    assert whole == {}
