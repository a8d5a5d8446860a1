"""The search for near duplicates in a bank: pairs of memories of which one says all that the other says.

The index finds what is near, and so do the numbers, dates, names and negations of the texts, because the few nearest of
statements in one form ("room 4", "room 5") may all be other statements. The guard of retains decides on the texts. Both
memories must have the same speaker, session, times, metadata, type and layer; the one with more words is kept, else the
older one.
"""

from __future__ import annotations

import asyncio
import math
from array import array
from collections.abc import Collection, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from functools import partial

from astrocyte.core import Bank as CoreBank
from astrocyte.model import Bank
from astrocyte.pipelines.index.registry import IndexRegistry
from astrocyte.pipelines.index.rows import bytes_to_id
from astrocyte.pipelines.retain.statement_differences import claims, differs
from astrocyte.stores.lifecycle import Merge
from astrocyte.stores.protocols import MemoryStore
from astrocyte.stores.records import NewMemory, VersionRecord

# Memories of one call of the index, each of which is compared with the whole bank: a tenth of a second's work for
# 100,000 memories. Two calls run at a time, so that a recall finds a processor.
COMPARED_AT_ONCE = 128
CALLS_AT_ONCE = 2
STEP_MEMORIES = COMPARED_AT_ONCE * CALLS_AT_ONCE
# Memories that share all facts and circumstances; of more than these, the index alone finds the nearest.
MOST_ALIKE = 8
# Current versions are read as they are, whatever the position.
_NOW = 1 << 62


@dataclass(slots=True)
class Scan:
    """The state of a run: what was merged into what, and the memories by their facts and circumstances."""

    merged: dict[str, str] = field(default_factory=dict)
    by_facts: dict[int, list[str]] = field(default_factory=dict)

    def alike(self, record: VersionRecord) -> list[str]:
        """Earlier memories with the facts and circumstances of this one, which joins them."""
        memory = record.memory
        facts = (claims(memory.content).facts, memory.speaker, memory.session_id, memory.occurred_at)
        found = self.by_facts.setdefault(hash(facts), [])
        others = list(found) if len(found) <= MOST_ALIKE else []
        if len(found) <= MOST_ALIKE:
            found.append(memory.memory_id)
        return others

    def add(self, records: Sequence[VersionRecord]) -> None:
        """Take memories that were looked at before the run was interrupted."""
        for record in records:
            self.alike(record)

    def kept(self, memory_id: str) -> str:
        """The memory that one was merged into, over any number of merges."""
        while memory_id in self.merged:
            memory_id = self.merged[memory_id]
        return memory_id


class DuplicateSearch:
    """Finds the merges of a run, batch by batch in the order of the rows.

    Args:
        store: Reads the memories that are near.
        registry: The indexes.
        executor: Where the index works, and texts are compared.
    """

    def __init__(self, store: MemoryStore, registry: IndexRegistry, executor: Executor) -> None:
        self._store = store
        self._registry = registry
        self._executor = executor

    async def merges(
        self, bank: Bank, records: Sequence[VersionRecord], threshold: float, scan: Scan, exempt: Collection[str] = ()
    ) -> list[Merge]:
        """The merges of these memories with any of the bank.

        Args:
            bank: The bank.
            records: Current versions.
            threshold: The least cosine of two duplicates.
            scan: The state of the run; these memories and the merges found are added.
            exempt: Tags of memories that are left alone.
        """
        records = [one for one in records if _is_free(one, exempt)]
        run = asyncio.get_running_loop().run_in_executor
        index = await self._registry.get(bank)
        asked = [one for one in records if one.memory.vector is not None and index.model == one.memory.model]
        parts = [asked[start : start + COMPARED_AT_ONCE] for start in range(0, len(asked), COMPARED_AT_ONCE)]
        found = await asyncio.gather(
            *(run(self._executor, partial(_near, index.core, part, threshold)) for part in parts)
        )
        near = [pair for part in found for pair in part]
        return await run(self._executor, partial(self._decide, bank, near, threshold, scan, exempt))

    def _decide(
        self,
        bank: Bank,
        near: Sequence[tuple[VersionRecord, list[str]]],
        threshold: float,
        scan: Scan,
        exempt: Collection[str],
    ) -> list[Merge]:
        near = [(record, [*others, *scan.alike(record)]) for record, others in near]
        near = [(record, others) for record, others in near if others]
        known = {record.memory.memory_id: record for record, _ in near}
        wanted = {scan.kept(one) for _, others in near for one in others}
        for record in self._store.version_records(bank, sorted(wanted - known.keys()), at_position=_NOW):
            if record.known_until is None and _is_free(record, exempt):
                known[record.memory.memory_id] = record
        found = []
        for record, others in near:
            for other_id in dict.fromkeys(others):
                own, other = known.get(scan.kept(record.memory.memory_id)), known.get(scan.kept(other_id))
                if own is None or other is None or own is other:
                    continue
                similarity = _cosine(own.memory.vector, other.memory.vector)
                if similarity < threshold or not alike(own.memory, other.memory):
                    continue
                kept, gone = _ordered(own, other)
                scan.merged[gone.memory.memory_id] = kept.memory.memory_id
                found.append(Merge(kept.memory, gone.memory, similarity))
        return found


def alike(first: NewMemory, second: NewMemory) -> bool:
    """True if two memories are the same statement of the same circumstances; vectors are not compared."""
    if any(getattr(first, name) != getattr(second, name) for name in _SAME):
        return False
    return not differs(first.content, second.content)


# What two duplicates have in common: what is not would be lost with the merged one.
_SAME = ("speaker", "session_id", "occurred_at", "valid_from", "valid_until", "fact_type", "memory_layer", "metadata")


def _is_free(record: VersionRecord, exempt: Collection[str]) -> bool:
    return not any(tag in exempt for tag in record.memory.tags)


def _ordered(first: VersionRecord, second: VersionRecord) -> tuple[VersionRecord, VersionRecord]:
    """The record to keep and the one to merge: the longer one says more, and of two alike the older one is kept."""

    def rank(one: VersionRecord) -> tuple[int, int, str]:
        return -len(one.memory.content.split()), one.retained_at, one.memory.memory_id

    kept, gone = sorted((first, second), key=rank)
    return kept, gone


def _near(index: CoreBank, records: Sequence[VersionRecord], threshold: float) -> list[tuple[VersionRecord, list[str]]]:
    """The records with the other memories near each, nearest first."""
    found = index.near_duplicates([one.memory.vector or b"" for one in records], threshold)
    return [
        (record, [bytes_to_id(identity) for key, identity, _ in hits if key != record.row_key])
        for record, hits in zip(records, found, strict=True)
    ]


def _cosine(first: bytes | None, second: bytes | None) -> float:
    left, right = array("f", first or b""), array("f", second or b"")
    length = math.sqrt(sum(x * x for x in left)) * math.sqrt(sum(x * x for x in right))
    return sum(x * y for x, y in zip(left, right, strict=True)) / length if length else 0.0
