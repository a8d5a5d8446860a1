"""Diagnosis and repair of a bank."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Executor
from dataclasses import asdict, dataclass
from functools import partial
from typing import TypeVar

from astrocyte.api.requests import DiagnoseBank, RepairBank
from astrocyte.model import (
    BANK_SCOPE,
    Bank,
    BankStrategy,
    Caller,
    Check,
    CheckReport,
    Diagnosis,
    Finding,
    Memory,
    RecallQuery,
    RecallResult,
    RepairResult,
    Severity,
)
from astrocyte.pipelines.knowledge import diagnosis
from astrocyte.policy.operations.knowledge.items import Items
from astrocyte.policy.operations.parts import OperationParts
from astrocyte.policy.requests import field_checks
from astrocyte.policy.requests.idempotency import key_of
from astrocyte.stores.knowledge import ItemKind

T = TypeVar("T")
# Memories that a check reads, findings of one check, and ids of one finding.
DEFAULT_MEMORIES, MOST_FINDINGS, MOST_IDS = 10_000, 20, 10
# Memories that are looked for by a query of their own, and the hits among which each must be.
SAMPLED, AMONG = 50, 10
# Tokens above which a memory says too many things for one vector, and takes too large a part of an answer.
MOST_TOKENS = 4_000
# Share of one source above which a bank is one-sided, if it has so many memories.
MOST_SHARE, LEAST_MEMORIES = 0.9, 20
_ORDER = tuple(Severity)
# Finds the memories of a bank for a caller by a call.
Recall = Callable[[Caller, str, BankStrategy | None, Sequence[Bank], RecallQuery], Awaitable[RecallResult]]


@dataclass(frozen=True, slots=True)
class _Found:
    """The findings of a check, with its extent; ``count`` is that of all findings."""

    findings: list[Finding]
    examined: int
    total: int
    count: int


@dataclass(frozen=True, slots=True)
class _Case:
    """A bank under examination, with its newest memories."""

    caller: Caller
    bank: Bank
    memories: list[Memory]
    total: int


class Doctor:
    """Handlers of DiagnoseBank and RepairBank.

    Args:
        parts: What the operations share.
        recall: Finds memories.
        clock: Milliseconds since the epoch.
        executor: Reads.
    """

    def __init__(self, parts: OperationParts, recall: Recall, clock: Callable[[], int], executor: Executor) -> None:
        self._items = Items(parts)
        self._store = parts.diagnosis
        self._wiki_store = parts.wiki
        self._wiki = parts.pipelines.wiki
        self._memories = parts.store
        self._banks = parts.banks
        self._access = parts.access
        self._check = parts.check
        self._barriers = parts.policies.barriers
        self._recall = recall
        self._clock = clock
        self._executor = executor
        self._checks: dict[Check, Callable[[_Case], _Found]] = {
            Check.ORPHANED_ROWS: self._orphaned_rows,
            Check.MISSING_EMBEDDINGS: self._missing_embeddings,
            Check.CONTRADICTIONS: self._contradictions,
            Check.DUPLICATES: self._duplicates,
            Check.STALE_KNOWLEDGE: self._stale_knowledge,
            Check.EXPIRED: self._expired,
            Check.PERSONAL_DATA: self._personal_data,
            Check.OVERSIZE: self._oversize,
            Check.ONE_SIDED: self._one_sided,
        }

    async def diagnose_bank(self, caller: Caller, request: DiagnoseBank) -> Diagnosis:
        """Look for problems."""
        name = "DiagnoseBank"
        self._banks.require(caller, name, request.bank_id)
        field_checks.integer(request.max_memories, "max_memories", 0, DEFAULT_MEMORIES)
        chosen = tuple(dict.fromkeys(request.checks)) or tuple(Check)
        for place, one in enumerate(chosen):
            field_checks.choice(one, f"checks[{place}]", Check)
        bank = self._banks.handle(caller, name, request.bank_id)
        most = request.max_memories or DEFAULT_MEMORIES
        memories, total = await self._beside(lambda: self._store.newest(bank, most))
        case = _Case(caller, bank, memories, total)
        findings: list[Finding] = []
        reports = []
        for check in (one for one in Check if one in chosen):
            if check is Check.UNREACHABLE:
                found = await self._unreachable(case)
            else:
                found = await self._beside(partial(self._checks[check], case))
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
        key = key_of(request.request_id, "repair_bank", bank_id)
        earlier = None if key is None else self._memories.find_response(caller.tenant, key)
        if earlier is not None:
            return RepairResult(**json.loads(earlier))
        by = self._access.name(caller)
        deleted = await self._store.delete_orphans(bank, by=by)
        compiled, dropped = 0, 0
        stale, _, _ = await self._beside(lambda: self._store.stale(bank, DEFAULT_MEMORIES))
        if any(one.kind == ItemKind.WIKI_PAGE for one in stale):

            async def screen(bank_id: str, texts: Sequence[str]) -> Sequence[str]:
                return await self._barriers.texts(bank_id, name, texts, "page", quiet=False)

            done = await self._wiki.run(bank, BANK_SCOPE, by, screen)
            compiled, dropped = done.pages_created + done.pages_updated, done.pages_deleted
        result = RepairResult(bank_id, deleted, compiled, dropped)
        if key is not None:
            await self._wiki_store.remember(bank, key, json.dumps(asdict(result)))
        return result

    def _duplicates(self, case: _Case) -> _Found:
        groups = diagnosis.copies(case.memories)
        findings = [
            Finding(
                Check.DUPLICATES,
                Severity.LOW,
                f"{len(ids)} memories have the same words",
                tuple(ids[:MOST_IDS]),
                "Forget all but one",
            )
            for ids in groups[:MOST_FINDINGS]
        ]
        return _Found(findings, len(case.memories), case.total, len(groups))

    def _contradictions(self, case: _Case) -> _Found:
        pairs = diagnosis.contradictions(case.memories)
        findings = [
            Finding(
                Check.CONTRADICTIONS,
                Severity.MEDIUM,
                "the second memory contradicts the first",
                pair,
                "UpdateMemory with valid_until, or Forget the one that is wrong",
            )
            for pair in pairs[:MOST_FINDINGS]
        ]
        return _Found(findings, len(case.memories), case.total, len(pairs))

    def _expired(self, case: _Case) -> _Found:
        ids, count = self._store.expired(case.bank, self._clock(), MOST_IDS)
        detail = f"the validity of {count} memories has ended"
        return self._one(case, Check.EXPIRED, Severity.LOW, detail, ids, count, "Forget, or UpdateMemory")

    def _oversize(self, case: _Case) -> _Found:
        ids, count = self._store.oversize(case.bank, MOST_TOKENS, MOST_IDS)
        detail = f"{count} memories have more than {MOST_TOKENS:,} tokens"
        remedy = "Retain them in parts, and Forget the whole"
        return self._one(case, Check.OVERSIZE, Severity.LOW, detail, ids, count, remedy)

    def _missing_embeddings(self, case: _Case) -> _Found:
        ids, count = self._store.without_vectors(case.bank, MOST_IDS)
        detail = f"{count} memories have no vector, and are found by their words alone"
        remedy = "UpdateMemory with the content, or StartReindex"
        return self._one(case, Check.MISSING_EMBEDDINGS, Severity.HIGH, detail, ids, count, remedy)

    def _one(  # noqa: PLR0913, PLR0917 - the parts of a finding
        self, case: _Case, check: Check, severity: Severity, detail: str, ids: Sequence[str], count: int, remedy: str
    ) -> _Found:
        """One finding about all memories of a kind, of which the whole bank was looked at."""
        findings = [Finding(check, severity, detail, tuple(ids), remedy)] if count else []
        return _Found(findings, case.total, case.total, count)

    def _stale_knowledge(self, case: _Case) -> _Found:
        stale, count, total = self._store.stale(case.bank, MOST_FINDINGS)
        remedies = {
            ItemKind.OBSERVATION: "ConsolidateBank, or UpdateObservation",
            ItemKind.MENTAL_MODEL: "RefreshMentalModel",
            ItemKind.WIKI_PAGE: "CompileBank",
        }
        findings = [
            Finding(
                Check.STALE_KNOWLEDGE,
                Severity.MEDIUM,
                f"{ItemKind(one.kind).replace('_', ' ')}: {one.changed} sources changed and {one.gone} are gone",
                (one.item_id,),
                remedies[ItemKind(one.kind)],
                is_repairable=one.kind == ItemKind.WIKI_PAGE,
            )
            for one in stale
        ]
        return _Found(findings, total, total, count)

    def _orphaned_rows(self, case: _Case) -> _Found:
        rows = {table: count for table, count in self._store.orphans(case.bank).items() if count}
        findings = [
            Finding(
                Check.ORPHANED_ROWS,
                Severity.MEDIUM,
                f"{count} rows of {table} belong to nothing",
                (),
                "RepairBank",
                is_repairable=True,
            )
            for table, count in rows.items()
        ]
        return _Found(findings, case.total, case.total, len(rows))

    def _personal_data(self, case: _Case) -> _Found:
        found = self._barriers.types_in(case.bank.bank_id, [memory.content for memory in case.memories])
        findings = [
            Finding(
                Check.PERSONAL_DATA,
                Severity.HIGH,
                ", ".join(sorted(types)),
                (case.memories[place].memory_id,),
                "Forget with compliance, or UpdateMemory",
            )
            for place, types in sorted(found.items())[:MOST_FINDINGS]
        ]
        return _Found(findings, len(case.memories), case.total, len(found))

    def _one_sided(self, case: _Case) -> _Found:
        shares = self._store.sources(case.bank)
        if case.total < LEAST_MEMORIES or not shares or shares[0][0] == "":
            return _Found([], case.total, case.total, 0)
        count = shares[0][1]
        if count < MOST_SHARE * case.total:
            return _Found([], case.total, case.total, 0)
        detail = f"{count} of {case.total} memories come from one source"
        finding = Finding(Check.ONE_SIDED, Severity.LOW, detail, (), "Retain from other sources")
        return _Found([finding], case.total, case.total, 1)

    async def _unreachable(self, case: _Case) -> _Found:
        """Memories that a query in their own words does not find; evenly sampled."""
        step = max(1, len(case.memories) // SAMPLED)
        sample = case.memories[::step][:SAMPLED]
        missed = []
        for memory in sample:
            text = diagnosis.query_of(memory)
            if not text.strip():
                continue
            query = RecallQuery(text, case.bank.bank_id, max_results=AMONG)
            found = await self._recall(case.caller, "DiagnoseBank", None, [case.bank], query)
            if memory.memory_id not in {hit.memory_id for hit in found.hits}:
                missed.append(memory.memory_id)
        findings = [
            Finding(
                Check.UNREACHABLE,
                Severity.MEDIUM,
                f"a query in its own words does not find it among {AMONG}",
                (memory_id,),
                "Explain says why; UpdateMemory with a text of its own",
            )
            for memory_id in missed[:MOST_FINDINGS]
        ]
        return _Found(findings, len(sample), case.total, len(missed))

    async def _beside(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._executor, work)
