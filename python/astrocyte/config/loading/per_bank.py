"""Values that follow from a bank's id, each found at its first use and then kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

# Banks of which a value is kept: callers can invent bank ids without end.
KEPT_BANKS = 4_096


class PerBank(dict[str, T]):
    """Maps bank ids to values; a look-up of a bank that was asked for before runs no Python code.

    Args:
        find: The value of a bank, which never changes.
    """

    def __init__(self, find: Callable[[str], T]) -> None:
        super().__init__()
        self._find = find

    def __missing__(self, bank_id: str) -> T:
        if len(self) >= KEPT_BANKS:
            self.clear()
        found = self[bank_id] = self._find(bank_id)
        return found
