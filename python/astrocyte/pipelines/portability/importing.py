"""Import: memories of a verified archive into a bank, a group in each transaction."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from astrocyte.model import Bank
from astrocyte.pipelines.index.embedding_spaces import EmbeddingSpaces
from astrocyte.pipelines.portability.reading import ArchivedVersion
from astrocyte.pipelines.portability.staging import History, Staging
from astrocyte.pipelines.retain.draft_builder import DraftBuilder
from astrocyte.pipelines.retain.drafts import Kept
from astrocyte.stores.outbox import CopyOrder
from astrocyte.stores.protocols import MemoryStore
from astrocyte.stores.records import NewMemory, PastVersion, Replace, Restore, VersionRecord, Write, WriteOutcome

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Stored:
    """The outcome of a group: numbers of memories."""

    imported: int
    overwritten: int
    skipped: int


class ImportPipeline:
    """Stores memories of archives.

    Args:
        store: The truth.
        builder: Makes drafts of versions.
        spaces: The embedders.
        folder: Where archives are kept while they are received; None for the folder of temporary files.
    """

    def __init__(self, store: MemoryStore, builder: DraftBuilder, spaces: EmbeddingSpaces, folder: Path | None) -> None:
        self._store = store
        self._builder = builder
        self._spaces = spaces
        self._folder = folder

    def staging(self, most_bytes: int) -> Staging:
        """A file for an archive of at most so many bytes."""
        return Staging(self._folder, most_bytes)

    async def run(
        self,
        bank: Bank,
        histories: Sequence[History],
        principal: str,
        *,
        known: int,
        overwrite: bool,
        copies: CopyOrder | None,
    ) -> Stored:
        """Store a group of memories in one transaction, or none of them.

        Args:
            bank: The bank.
            histories: Their versions.
            principal: Who stored what names nobody.
            known: Position of the bank at the begin of the import: content of memories from before is not doubled.
            overwrite: Whether a memory of the bank becomes what the archive has.
            copies: The engine that is to have copies.

        Raises:
            Conflict, MemoryNotFound: Other writes came in between; try again.
            LegalHoldActive: A hold covers what would be overwritten.
            RateLimited: Too much waits.
            StoreError: The commit failed.
        """
        bank = self._spaces.fresh(bank)
        held = await self.held(bank, [history[0].memory_id for history in histories])
        fresh = [history for history in histories if history[0].memory_id not in held]
        old = [history[-1] for history in histories if held.get(history[0].memory_id) is False] if overwrite else []
        versions = [version for history in fresh for version in history] + old
        memories = iter(await self._memories(bank, versions, principal))
        writes: list[Write] = []
        for history in fresh:
            past = [_past(version, next(memories)) for version in history]
            writes.append(Restore(tuple(past), known))
        current = await self._run(lambda: self.current(bank, [version.memory_id for version in old])) if old else {}
        for version in old:
            memory, now = next(memories), current.get(version.memory_id)
            if now is not None and differs(now.memory, memory):
                writes.append(Replace(memory, now.etag))
        outcomes: list[WriteOutcome] = []
        if writes:
            outcomes, _ = await self._store.commit(bank, writes, copies=copies)
        stored = sum(one.duplicate_of is None for one in outcomes)
        overwritten = sum(isinstance(write, Replace) for write in writes)
        return Stored(stored - overwritten, overwritten, len(histories) - stored)

    async def held(self, bank: Bank, memory_ids: Sequence[str]) -> dict[str, bool]:
        """See `MemoryStore.held`."""
        return await self._run(lambda: self._store.held(bank, memory_ids)) if memory_ids else {}

    async def _run(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._builder.executor, work)

    def current(self, bank: Bank, memory_ids: Sequence[str]) -> dict[str, VersionRecord]:
        """The current versions of memories, by id."""
        if not memory_ids:
            return {}
        records = self._store.version_records(bank, memory_ids, at_position=1 << 62)
        return {record.memory.memory_id: record for record in records if record.known_until is None}

    async def _memories(self, bank: Bank, versions: Sequence[ArchivedVersion], principal: str) -> list[NewMemory]:
        kept = [Kept(one.item, one.memory_layer, one.entities, one.model, one.vector, one.chunks) for one in versions]
        drafts = await self._builder.restored(bank, kept)
        return [
            draft.memory(one.principal or principal, one.memory_id) for one, draft in zip(versions, drafts, strict=True)
        ]


def differs(own: NewMemory, other: NewMemory) -> bool:
    """True if two versions of a memory say different things."""
    return any(
        getattr(own, name) != getattr(other, name)
        for name in ("content", "tags", "metadata", "source", "occurred_at", "valid_from", "valid_until")
    )


def _past(version: ArchivedVersion, memory: NewMemory) -> PastVersion:
    archived = (version.archived_at, version.archive_reason, version.merged_into)
    return PastVersion(version.version, memory, version.retained_at, version.known_from, version.known_until, *archived)
