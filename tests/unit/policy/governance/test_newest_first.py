"""The audit trail and operations in both orders, in pages."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from astrocyte import Astrocyte
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.errors import ValidationError

BANKS = ("a", "b")


@pytest.fixture
async def brain() -> AsyncIterator[Astrocyte]:
    app = App(Settings.from_mapping({"vector_store": "in_memory"}))
    brain = Astrocyte(app.backend)
    for number in range(4):
        bank = BANKS[number % 2]
        await brain.retain(f"Statement {number}.", bank_id=bank)
        await brain.place_hold(bank, reason="a case", hold_id=f"case-{number}")
        operation = await brain.run_lifecycle(bank, dry_run=True)
        await brain.wait_operation(bank, operation.operation_id)
    yield brain
    await app.close()


async def walked(read: Callable[..., Any], rows: str, **arguments: Any) -> list[Any]:
    """All rows, by pages of two."""
    found: list[Any] = []
    token = ""
    while True:
        page = await read(page_size=2, page_token=token, **arguments)
        assert len(getattr(page, rows)) <= 2
        found += getattr(page, rows)
        token = page.next_page_token
        if not token:
            return found


@pytest.mark.parametrize("bank", ["", *BANKS])
@pytest.mark.parametrize(("name", "rows"), [("list_audit_events", "events"), ("list_operations", "operations")])
async def test_both_orders_have_the_same_rows(brain: Astrocyte, name: str, rows: str, bank: str) -> None:
    read = getattr(brain, name)
    oldest = await walked(read, rows, bank_id=bank)
    newest = await walked(read, rows, bank_id=bank, newest_first=True)
    assert newest == oldest[::-1]
    assert len(newest) >= (4 if not bank else 2)


async def test_a_token_belongs_to_its_order(brain: Astrocyte) -> None:
    for read in (brain.list_audit_events, brain.list_operations):
        token = (await read(page_size=1, newest_first=True)).next_page_token
        assert token
        with pytest.raises(ValidationError, match="page_token"):
            await read(page_size=1, page_token=token)
