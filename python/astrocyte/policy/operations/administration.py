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
    ListSources,
    RunLifecycle,
)
from astrocyte.errors import ValidationError
from astrocyte.model import BankGroup, BankStats, BankTemplate, Caller, EngineInfo, Operation, ServerInfo, SourceInfo
from astrocyte.policy.glob_patterns import ANY
from astrocyte.policy.operations.parts import GateParts, OperationParts
from astrocyte.policy.quality.bank_health import assess
from astrocyte.policy.requests import field_checks
from astrocyte.policy.requests.request_keys import key_of

# Memories below this cosine are never duplicates, and comparing them takes long.
LEAST_SIMILARITY = 0.5


class BankAdministration:
    """Handlers of RPCs on banks as a whole, and on the server.

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
        self._activity = parts.policies.activity
        self._clock = parts.clock
        self._sources = parts.sources
        self._lifecycle = shared.pipelines.lifecycle
        self._check = shared.check

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
        """Counts and health of the bank."""
        run = asyncio.get_running_loop().run_in_executor
        bank = self._banks.current(caller, "GetBankStats", request.bank_id)
        stats = await run(self._executor, self._store.bank_stats, bank)
        days = await run(self._executor, self._activity.days, bank.tenant, bank.bank_id)
        health = assess(days, self._clock())
        stats = replace(stats, health=health)
        index = await self._registry.refreshed(bank)
        if index is None:
            return stats
        held = await run(self._executor, index.stats)
        return replace(stats, indexed_position=index.core.position, index_bytes=index.core.stats()["bytes"], index=held)

    async def run_lifecycle(self, caller: Caller, request: RunLifecycle) -> Operation:
        """Archive, expire and forget memories by the bank's settings, in the background."""
        self._banks.require(caller, "RunLifecycle", request.bank_id)
        merge, threshold = request.merge_duplicates, request.similarity_threshold
        for name, given in (("dry_run", request.dry_run), ("merge_duplicates", merge)):
            if not isinstance(given, bool):
                raise ValidationError(f"expected true or false, got {given!r:.40}", field=name)
        if threshold is not None:
            field_checks.number(threshold, "similarity_threshold", LEAST_SIMILARITY, 1.0)
            if not merge:
                raise ValidationError(
                    "has no effect without merge_duplicates; set it, or leave this out", field="similarity_threshold"
                )
        self._check.request_id(request.request_id)
        bank = self._banks.current(caller, "RunLifecycle", request.bank_id)
        key = key_of(request.request_id, "run_lifecycle", request.bank_id, request.dry_run, merge, threshold)
        by = self._access.name(caller)
        return await self._lifecycle.request(
            bank, by, dry_run=request.dry_run, merge=merge, threshold=threshold, key=key
        )

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

    async def list_sources(self, caller: Caller, request: ListSources) -> list[SourceInfo]:
        """The ingest sources of the configuration that store in banks of the caller's tenant."""
        del request
        self._access.require_pattern(caller, "ListSources", ANY)
        return self._sources(caller.tenant)
