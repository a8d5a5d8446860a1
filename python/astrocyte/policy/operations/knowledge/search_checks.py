"""Checks of a diagnosis that search: near duplicates, memories that nothing finds, and the recall of the index."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Executor
from dataclasses import replace

from astrocyte.core import RecallRequest
from astrocyte.model import (
    Bank,
    BankStrategy,
    Caller,
    Check,
    DetailLevel,
    Finding,
    Memory,
    RecallQuery,
    RecallResult,
    Severity,
)
from astrocyte.pipelines.index.bank_index import BankIndex
from astrocyte.pipelines.index.registry import IndexRegistry
from astrocyte.pipelines.index.rows import bytes_to_id, id_to_bytes
from astrocyte.pipelines.knowledge import diagnosis
from astrocyte.pipelines.lifecycle.duplicates import STEP_MEMORIES, DuplicateSearch, Scan
from astrocyte.policy.operations.knowledge.diagnosis_checks import MOST_FINDINGS, MOST_IDS, Case, Found
from astrocyte.policy.operations.parts import OperationParts
from astrocyte.stores.lifecycle import Merge
from astrocyte.stores.records import VersionRecord

# Memories that are looked for by a query of their own, and the hits among which each must be.
SAMPLED, AMONG = 50, 10
# Hits among which a memory that is not among the first ones is looked for.
MOST_RANK = 100
# Current versions are read as they are, whatever the position.
_NOW = 1 << 62
# Finds the memories of a bank for a caller by a call.
Recall = Callable[[Caller, str, BankStrategy | None, Sequence[Bank], RecallQuery], Awaitable[RecallResult]]


class SearchChecks:
    """The checks by name, in ``all``.

    Args:
        parts: What the operations share.
        registry: The indexes.
        recall: Finds memories.
        executor: Reads and searches.
    """

    def __init__(self, parts: OperationParts, registry: IndexRegistry, recall: Recall, executor: Executor) -> None:
        self._store = parts.store
        self._registry = registry
        self._duplicates = DuplicateSearch(parts.store, registry, executor)
        self._overrides = parts.policies.overrides
        self._floor = parts.settings.index.recall_floor
        self._recall = recall
        self._executor = executor
        self.all: dict[Check, Callable[[Case], Awaitable[Found]]] = {
            Check.NEAR_DUPLICATES: self._near_duplicates,
            Check.UNREACHABLE: self._unreachable,
            Check.INDEX_RECALL: self._index_recall,
        }

    async def _near_duplicates(self, case: Case) -> Found:
        """Pairs that a run of the lifecycle would merge."""
        settings = self._overrides.of[case.bank.bank_id].lifecycle
        scan, found = Scan(), list[Merge]()
        for start in range(0, len(case.memories), STEP_MEMORIES):
            records = await self._records(case.bank, case.memories[start : start + STEP_MEMORIES])
            found += await self._duplicates.merges(
                case.bank, records, settings.similarity_threshold, scan, settings.exempt_tags
            )
        findings = [
            Finding(
                Check.NEAR_DUPLICATES,
                Severity.LOW,
                f"the first memory says all that the second says; cosine {one.similarity:.3f}",
                (one.kept.memory_id, one.merged.memory_id),
                "RunLifecycle with merge_duplicates, or Forget the second",
            )
            for one in found[:MOST_FINDINGS]
        ]
        return Found(findings, len(case.memories), case.total, len(found))

    async def _unreachable(self, case: Case) -> Found:
        """Memories that a query in their own words does not find among the first hits; evenly sampled."""
        sample = _sample(case.memories)
        missed: list[tuple[str, int]] = []
        for memory in sample:
            text = diagnosis.query_of(memory)
            if not text.strip():
                continue
            query = RecallQuery(text, case.bank.bank_id, max_results=AMONG)
            rank = await self._rank(case, query, memory)
            if not rank:
                wide = replace(query, max_results=MOST_RANK, detail_level=DetailLevel.TITLES)
                missed.append((memory.memory_id, await self._rank(case, wide, memory)))
        missed.sort(key=lambda one: bool(one[1]))
        findings = [
            Finding(
                Check.UNREACHABLE,
                Severity.MEDIUM if rank else Severity.HIGH,
                f"a query in its own words finds it {f'at rank {rank}' if rank else f'not among {MOST_RANK}'}",
                (memory_id,),
                "Explain says why; UpdateMemory with a text of its own",
            )
            for memory_id, rank in missed[:MOST_FINDINGS]
        ]
        return Found(findings, len(sample), case.total, len(missed))

    async def _rank(self, case: Case, query: RecallQuery, memory: Memory) -> int:
        """The rank of a memory among the hits of a query, from 1; 0 where it is none of them."""
        found = await self._recall(case.caller, "DiagnoseBank", None, [case.bank], query)
        ranks = {hit.memory_id: rank for rank, hit in reversed(list(enumerate(found.hits, 1)))}
        return ranks.get(memory.memory_id, 0)

    async def _index_recall(self, case: Case) -> Found:
        """Compare searches by the vectors of some memories with scans of all vectors."""
        records = await self._records(case.bank, _sample(case.memories))
        index = await self._registry.get(case.bank)
        asked = [one for one in records if one.memory.vector and one.memory.model == index.model]
        run = asyncio.get_running_loop().run_in_executor
        compared = await run(self._executor, lambda: [(one, *_compared(index, one)) for one in asked])
        missing = [one.memory.memory_id for one, held, _ in compared if not held]
        shares = [share for _, held, share in compared if held]
        recall = sum(shares) / len(shares) if shares else 1.0
        findings = []
        if missing:
            detail = f"the index lacks {len(missing)} of {len(asked)} sampled memories"
            findings.append(_of_index(Severity.HIGH, detail, missing))
        if recall < self._floor:
            worst = sorted((share, one.memory.memory_id) for one, held, share in compared if held and share < 1)
            detail = f"the index finds {recall:.1%} of what a scan finds; index.recall_floor is {self._floor:.1%}"
            findings.append(_of_index(Severity.MEDIUM, detail, [memory_id for _, memory_id in worst]))
        return Found(findings, len(asked), case.total, len(findings))

    async def _records(self, bank: Bank, memories: Sequence[Memory]) -> list[VersionRecord]:
        """The current versions of memories, with their vectors."""
        ids = [memory.memory_id for memory in memories]

        def read() -> list[VersionRecord]:
            found = self._store.version_records(bank, ids, at_position=_NOW)
            return [record for record in found if record.known_until is None]

        return await asyncio.get_running_loop().run_in_executor(self._executor, read)


def _sample(memories: Sequence[Memory]) -> Sequence[Memory]:
    """Memories evenly spread over all."""
    return memories[:: max(1, len(memories) // SAMPLED)][:SAMPLED]


def _of_index(severity: Severity, detail: str, memory_ids: Sequence[str]) -> Finding:
    ids = tuple(memory_ids[:MOST_IDS])
    return Finding(Check.INDEX_RECALL, severity, detail, ids, "RepairBank", is_repairable=True)


def _compared(index: BankIndex, record: VersionRecord) -> tuple[bool, float]:
    """True if the index has a version, and the share of its nearest neighbours that a search finds."""
    identity = id_to_bytes(record.memory.memory_id)
    if identity is None or record.row_key not in index.core.keys_of([identity]):
        return False, 0.0
    request = RecallRequest(vector=record.memory.vector, k=AMONG, weights=(1.0, 0.0, 0.0), context_windows=False)
    exact = {bytes_to_id(hit.memory_id) for hit in index.core.explain(request, []).response.hits}
    found = {bytes_to_id(hit.memory_id) for hit in index.core.recall(request).hits}
    return True, len(found & exact) / len(exact) if exact else 1.0
