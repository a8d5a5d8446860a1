"""Banks as a whole, and the configuration of the server."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from astrocyte.api.requests import (
    DeleteBank,
    GetBankStats,
    GetServerInfo,
    ListBankGroups,
    ListBankTemplates,
    ListEngines,
)
from astrocyte.model import BankGroup, BankStats, BankTemplate, Caller, EngineInfo, ServerInfo
from astrocyte.policy.glob_patterns import ANY
from astrocyte.policy.operations.parts import GateParts, OperationParts


class BankAdministration:
    """Handlers of DeleteBank, GetBankStats, GetServerInfo, ListBankTemplates, ListBankGroups and ListEngines.

    Args:
        parts: The parts of the gate.
        shared: The parts that the operations share.
    """

    def __init__(self, parts: GateParts, shared: OperationParts) -> None:
        self._store = parts.store
        self._registry = parts.registry
        self._banks = shared.banks
        self._bank_sets = shared.bank_sets
        self._access = shared.access
        self._engines = shared.engine_writes
        self._info = parts.info
        self._executor = parts.executor

    async def delete_bank(self, caller: Caller, request: DeleteBank) -> int:
        """Delete the bank and everything in it, also at its engines."""
        if caller.hops:
            self._banks.require(caller, "DeleteBank", request.bank_id)
            self._engines.check_forget(caller, request.bank_id)
        async with self._engines.turn(caller, request.bank_id):
            count = await self._banks.delete(caller, request)
            await self._engines.forget_bank(caller, request.bank_id)
        return count

    async def get_bank_stats(self, caller: Caller, request: GetBankStats) -> BankStats:
        """Counts of the bank."""
        run = asyncio.get_running_loop().run_in_executor
        bank = self._banks.current(caller, "GetBankStats", request.bank_id)
        stats = await run(self._executor, self._store.bank_stats, bank)
        index = self._registry.peek(bank)
        if index is None:
            return stats
        held = await run(self._executor, index.stats)
        return replace(stats, indexed_position=index.core.position, index_bytes=index.core.stats()["bytes"], index=held)

    async def get_server_info(self, caller: Caller, request: GetServerInfo) -> ServerInfo:
        """The server, and the memory of the indexes of all banks; the same for every caller."""
        del request
        self._access.require_name(caller, "GetServerInfo")
        damaged = len(self._store.quarantine)
        store = f"{self._info.store}, {damaged} damaged rows (see astrocyte verify)" if damaged else self._info.store
        return replace(self._info, store=store, index_memory=self._registry.memory)

    async def list_bank_templates(self, caller: Caller, request: ListBankTemplates) -> list[BankTemplate]:
        """The templates of the configuration."""
        del request
        return self._access.templates(caller)

    async def list_bank_groups(self, caller: Caller, request: ListBankGroups) -> list[BankGroup]:
        """The groups of the configuration."""
        del request
        self._access.require_pattern(caller, "ListBankGroups", ANY)
        return self._bank_sets.groups()

    async def list_engines(self, caller: Caller, request: ListEngines) -> list[EngineInfo]:
        """The engines of the configuration."""
        del request
        self._access.require_pattern(caller, "ListEngines", ANY)
        return await self._engines.describe(caller)
