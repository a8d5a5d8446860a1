"""Diagnosis and repair of a bank."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Executor
from dataclasses import asdict
from functools import partial
from typing import TypeVar

from astrocyte.api.requests import DiagnoseBank, RepairBank
from astrocyte.model import (
    BANK_SCOPE,
    Bank,
    Caller,
    Check,
    CheckReport,
    Diagnosis,
    Finding,
    RepairResult,
    Severity,
)
from astrocyte.pipelines.index.registry import IndexRegistry
from astrocyte.policy.operations.knowledge.diagnosis_checks import Case, Found, RowChecks
from astrocyte.policy.operations.knowledge.search_checks import Recall, SearchChecks
from astrocyte.policy.operations.parts import OperationParts
from astrocyte.policy.requests import field_checks
from astrocyte.policy.requests.request_keys import key_of
from astrocyte.stores.knowledge.items import ItemKind

T = TypeVar("T")
# Memories that a check reads.
DEFAULT_MEMORIES = 10_000
_ORDER = tuple(Severity)


class Doctor:
    """Handlers of DiagnoseBank and RepairBank.

    Args:
        parts: What the operations share.
        registry: The indexes.
        recall: Finds memories.
        clock: Milliseconds since the epoch.
        executor: Reads.
    """

    def __init__(
        self,
        parts: OperationParts,
        registry: IndexRegistry,
        recall: Recall,
        clock: Callable[[], int],
        executor: Executor,
    ) -> None:
        self._store = parts.diagnosis
        self._wiki_store = parts.wiki
        self._wiki = parts.pipelines.wiki
        self._memories = parts.store
        self._registry = registry
        self._banks = parts.banks
        self._access = parts.access
        self._check = parts.check
        self._barriers = parts.policies.barriers
        self._executor = executor
        self._rows = RowChecks(parts.diagnosis, parts.policies.barriers, clock)
        self._searches = SearchChecks(parts, registry, recall, executor)

    async def diagnose_bank(self, caller: Caller, request: DiagnoseBank) -> Diagnosis:
        """Look for problems."""
        name = "DiagnoseBank"
        self._banks.require(caller, name, request.bank_id)
        field_checks.integer(request.max_memories, "max_memories", 0, DEFAULT_MEMORIES)
        chosen = tuple(dict.fromkeys(request.checks)) or tuple(Check)
        for place, one in enumerate(chosen):
            field_checks.choice(one, f"checks[{place}]", Check)
        bank = self._banks.handle(caller, name, request.bank_id)
        case = await self._case(caller, bank, request.max_memories or DEFAULT_MEMORIES)
        findings: list[Finding] = []
        reports = []
        for check in (one for one in Check if one in chosen):
            found = await self._found(check, case)
            findings += found.findings
            reports.append(CheckReport(check, found.examined, found.total, found.count))
        findings.sort(key=lambda one: _ORDER.index(one.severity))
        return Diagnosis(bank.bank_id, tuple(findings), tuple(reports))

    async def repair_bank(self, caller: Caller, request: RepairBank) -> RepairResult:
        """Mend what can be mended without loss."""
        bank_id, name = request.bank_id, "RepairBank"
        self._banks.require(caller, name, bank_id)
        self._check.request_id(request.request_id)
        bank = self._banks.handle(caller, name, bank_id)
        key = None if request.validate_only else key_of(request.request_id, "repair_bank", bank_id)
        earlier = None if key is None else self._memories.find_response(caller.tenant, key)
        if earlier is not None:
            return RepairResult(**json.loads(earlier))
        by, dry = self._access.name(caller), request.validate_only
        rows = await self._store.delete_orphans(bank, by=by, validate_only=dry)
        compiled, dropped = await self._compiled(bank, by, validate_only=dry)
        case = await self._case(caller, bank, DEFAULT_MEMORIES)
        rebuilt = bool((await self._searches.all[Check.INDEX_RECALL](case)).count)
        if rebuilt and not dry:
            await self._registry.rebuild(bank)
        result = RepairResult(bank_id, rows, compiled, dropped, rebuilt)
        if key is not None:
            await self._wiki_store.remember(bank, key, json.dumps(asdict(result)))
        return result

    async def _compiled(self, bank: Bank, by: str, *, validate_only: bool) -> tuple[int, int]:
        """Compile the pages of a bank if one of them is stale; returns the pages written and deleted."""
        stale, _, _ = await self._beside(lambda: self._store.stale(bank, DEFAULT_MEMORIES))
        if not any(one.kind == ItemKind.WIKI_PAGE for one in stale):
            return 0, 0

        async def screen(bank_id: str, texts: Sequence[str]) -> Sequence[str]:
            return await self._barriers.texts(bank_id, "RepairBank", texts, "page", quiet=False)

        done = await self._wiki.run(bank, BANK_SCOPE, by, screen, validate_only=validate_only)
        return done.pages_created + done.pages_updated, done.pages_deleted

    async def _case(self, caller: Caller, bank: Bank, most: int) -> Case:
        memories, total = await self._beside(lambda: self._store.newest(bank, most))
        return Case(caller, bank, memories, total)

    async def _found(self, check: Check, case: Case) -> Found:
        search: Callable[[Case], Awaitable[Found]] | None = self._searches.all.get(check)
        return await (self._beside(partial(self._rows.all[check], case)) if search is None else search(case))

    async def _beside(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._executor, work)
