"""The banks that agents share (`agent_memory.shared_banks`), as far as a caller may read them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from astrocyte.api.requests import Recall
from astrocyte.errors import AstrocyteError
from astrocyte.model import Caller, Permission, RecallQuery, RecallResult
from astrocyte.policy.operations.parts import OperationParts
from astrocyte.policy.operations.recall import Recalling


class SharedBanks:
    """Recalls from the shared banks.

    Args:
        parts: Shared by the operations.
        recalling: Recalls from one bank.
    """

    def __init__(self, parts: OperationParts, recalling: Recalling) -> None:
        self._names = parts.settings.agent_memory.shared_banks
        self._store = parts.store
        self._access = parts.access
        self._recalling = recalling

    def readable(self, caller: Caller) -> list[str]:
        """Those that exist and that the caller may read, in the order of the settings."""
        banks = [(bank_id, self._store.get_bank(caller.tenant, bank_id)) for bank_id in self._names]
        return [
            bank_id
            for bank_id, bank in banks
            if bank is not None and Permission.READ in self._access.permissions(caller, bank_id, bank)
        ]

    async def recall(
        self, caller: Caller, banks: Sequence[str], query: RecallQuery
    ) -> tuple[list[tuple[str, RecallResult]], tuple[str, ...]]:
        """The answer of each bank, and warnings; a bank that refuses the query is named in one.

        One bank must not keep an agent from the others, nor from its own memory.
        """
        found: list[tuple[str, RecallResult]] = []
        warnings: list[str] = []
        for bank_id in banks:
            try:
                result = await self._recalling.recall(caller, Recall(replace(query, bank_id=bank_id)))
            except AstrocyteError as error:
                warnings.append(f"shared bank {bank_id!r} was not searched: {error.reason}")
            else:
                found.append((bank_id, result))
                warnings += result.warnings
        return found, tuple(dict.fromkeys(warnings))
