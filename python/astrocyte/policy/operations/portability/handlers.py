"""Export and import of banks at the gate."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import Executor
from contextlib import aclosing
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import TypeVar

from astrocyte.api import LimitKind
from astrocyte.api.requests import ExportBank, ImportBank
from astrocyte.errors import CapabilityNotSupported, ValidationError
from astrocyte.model import (
    AuditEventKind,
    Bank,
    Caller,
    Grant,
    ImportProgress,
    MemoryHit,
    OnConflict,
    RecallResult,
)
from astrocyte.pipelines.portability.archive import NO_DIGEST, parts_of
from astrocyte.pipelines.portability.export import Screening
from astrocyte.pipelines.portability.staging import Staging
from astrocyte.policy.limits.rate_limits import Demand
from astrocyte.policy.operations.parts import OperationParts
from astrocyte.policy.operations.portability.archive_import import ArchiveImport, RelatedCalls
from astrocyte.policy.requests import field_checks
from astrocyte.stores.access import AccessStore
from astrocyte.stores.audit import AuditStore
from astrocyte.stores.records import VersionRecord

# Received bytes between two reports.
REPORT_BYTES = 1 << 20
# Grants read at once.
LISTED_AT_ONCE = 1_000
LARGEST_COUNT = 1 << 62
# Counts of rows beside the memories, which are in the audit log where they are not 0.
OTHER_COUNTS = ("grants", "observations", "mental_models", "directives", "wiki_pages", "entities", "links", "left_out")

T = TypeVar("T")


class Portability:
    """Handlers of ExportBank and ImportBank.

    Args:
        parts: What the operations share.
        grants: Where grants are.
        audit: Where exports and imports are recorded.
        executor: Runs reading, encoding and verification.
        related: Handlers for the tombstones and grants of an archive.
    """

    def __init__(
        self, parts: OperationParts, grants: AccessStore, audit: AuditStore, executor: Executor, related: RelatedCalls
    ) -> None:
        self._parts = parts
        self._grants = grants
        self._audit = audit
        self._executor = executor
        self._related = related
        self._exports = parts.pipelines.exports
        self._imports = parts.pipelines.imports
        self._banks = parts.banks
        self._access = parts.access
        self._barriers = parts.policies.barriers
        self._limits = parts.settings.limits

    async def export_bank(self, caller: Caller, request: ExportBank) -> AsyncIterator[bytes]:
        """The bank as an archive."""
        bank_id, after = request.bank_id, request.resume_after
        self._banks.require(caller, "ExportBank", bank_id)
        bank = self._banks.current(caller, "ExportBank", bank_id)
        self._check_cursor(bank, request)
        self._refuse_engine(caller, bank_id)
        grants = self._grants_of(caller, bank_id) if request.include_grants else []
        parts = parts_of(request)
        # Before anything leaves: an export that cannot be recorded is refused.
        details = {
            "position": bank.position if after is None else after.position,
            "resumed_after": 0 if after is None else after.memories,
            "embeddings": int(parts.embeddings),
        }
        await self._record(caller, bank, AuditEventKind.BANK_EXPORTED, details)
        if parts.graph:
            await self._parts.pipelines.graph.caught_up()
        screening = Screening(partial(self._screened, bank_id), partial(self._barriers.told, bank_id))
        archive = self._exports.run(bank, parts, grants, after, datetime.now(UTC), screening)
        async with aclosing(archive) as pieces:  # type: ignore[type-var]  # a generator
            async for piece in pieces:
                # The caller may take its time, and lose the right meanwhile.
                self._access.require(caller, "ExportBank", bank_id, bank)
                yield piece

    async def import_bank(self, caller: Caller, request: ImportBank) -> AsyncIterator[ImportProgress]:
        """Store an archive."""
        bank_id = request.bank_id
        self._banks.require(caller, "ImportBank", bank_id)
        if LimitKind.RETAIN in self._parts.policies.limits.limited:
            # For the first memory: an import that begins at a limit is refused, one that meets it later waits.
            await self._parts.policies.limits.admit((Demand(caller.tenant, bank_id, LimitKind.RETAIN),))
        field_checks.choice(request.on_conflict, "on_conflict", OnConflict)
        if request.include_directives:
            self._related.trust(caller, bank_id)
        self._banks.expected(caller, "ImportBank", bank_id)
        self._refuse_engine(caller, bank_id)
        staging = await self._run(partial(self._imports.staging, self._limits.archive_bytes))
        try:
            reported = 0
            async for data in request.archive:
                await self._run(partial(staging.add, data))
                if staging.size - reported >= REPORT_BYTES:
                    reported = staging.size
                    yield ImportProgress(received_bytes=reported)
            async with aclosing(self._store(caller, request, staging)) as states:  # type: ignore[type-var]  # a generator
                async for state in states:
                    yield state
        finally:
            staging.close()

    async def _store(self, caller: Caller, request: ImportBank, staging: Staging) -> AsyncIterator[ImportProgress]:
        """Store a received archive, once it is verified and nothing stands in the way."""
        verified = await self._run(staging.verify)
        bank = self._banks.expected(caller, "ImportBank", request.bank_id)
        if bank.key:
            bank = self._banks.current(caller, "ImportBank", request.bank_id)
        work = ArchiveImport(self._parts, self._related, caller, bank, request)
        if bank.key:
            await self._run(partial(work.check, staging))
        quota = self._parts.policies.overrides.of[bank.bank_id].homeostasis.quotas.storage_bytes_per_bank
        size = 0 if quota is None else verified.content_bytes
        async with self._parts.policies.storage.room(bank, size, quota):
            work.bank = bank = await self._banks.ready(caller, "ImportBank", bank)
            begun: dict[str, str | int] = {
                "memories": verified.memories,
                "bytes": staging.size,
                "on_conflict": str(request.on_conflict),
            }
            await self._record(caller, bank, AuditEventKind.IMPORT_BEGUN, begun)
            yield work.progress(staging.size, verified.memories)
            records = staging.records()
            while group := await self._run(partial(work.next_group, records)):
                await work.store(group)
                yield work.progress(staging.size, verified.memories)
            await work.finish()
            result = work.result
            counts = {
                "imported": result.imported,
                "overwritten": result.overwritten,
                "forgotten": result.forgotten,
                "skipped": result.skipped,
                "errors": result.errors,
                **{name: count for name in OTHER_COUNTS if (count := getattr(result, name))},
            }
            await self._record(caller, bank, AuditEventKind.IMPORT_COMPLETED, counts)
        yield replace(work.progress(staging.size, verified.memories), result=result)

    async def _record(
        self, caller: Caller, bank: Bank, event: AuditEventKind, details: Mapping[str, str | int]
    ) -> None:
        await self._audit.append(bank.tenant, event, self._access.name(caller), bank_key=bank.key, details=details)

    async def _run(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._executor, work)

    @staticmethod
    def _check_cursor(bank: Bank, request: ExportBank) -> None:
        after = request.resume_after
        if after is None:
            return
        field_checks.integer(after.position, "resume_after.position", 0, bank.position)
        field_checks.integer(after.lines, "resume_after.lines", 1, LARGEST_COUNT)
        field_checks.integer(after.memories, "resume_after.memories", 0, after.lines)
        if len(after.digest) != len(NO_DIGEST):
            raise ValidationError(f"has {len(after.digest)} bytes, a SHA-256 has 32", field="resume_after.digest")
        if not after.memory_id:
            raise ValidationError("is empty; leave resume_after out to begin anew", field="resume_after.memory_id")

    def _refuse_engine(self, caller: Caller, bank_id: str) -> None:
        engine = self._parts.engine_writes.only(caller, bank_id)
        if engine is not None:
            raise CapabilityNotSupported(
                f"the memories of bank {bank_id!r} are at the engine {engine.name!r} alone; use its export and import",
                metadata={"bank_id": bank_id, "engine": engine.name},
            )

    def _grants_of(self, caller: Caller, bank_id: str) -> list[Grant]:
        """The grants by call that name the bank without wildcards."""
        found: list[Grant] = []
        last = 0
        while rows := self._grants.listed(caller.tenant, revoked=False, after=last, limit=LISTED_AT_ONCE):
            found += [grant for _, grant in rows if grant.bank_id == bank_id]
            last = rows[-1][0]
        return found

    def _screened(self, bank_id: str, records: list[VersionRecord]) -> list[VersionRecord]:
        """The versions that may leave by the bank's rules for answers, without vectors where they were changed."""
        if "outgoing" not in self._barriers.lookers or not records:
            return records
        hits = {str(record.row_key): _hit(bank_id, record) for record in records}
        result = self._barriers.output((bank_id,), "ExportBank", RecallResult(tuple(hits.values()), len(hits), False))
        left = {hit.memory_id: hit for hit in result.hits}
        passed = []
        for record in records:
            hit = left.get(str(record.row_key))
            if hit is not None:
                passed.append(record if hit == hits[str(record.row_key)] else _changed(record, hit))
        return passed


def _hit(bank_id: str, record: VersionRecord) -> MemoryHit:
    memory = record.memory
    return MemoryHit(
        text=memory.content,
        score=0.0,
        memory_id=str(record.row_key),
        bank_id=bank_id,
        metadata=memory.metadata,
        tags=memory.tags,
        source=memory.source,
        speaker=memory.speaker,
    )


def _changed(record: VersionRecord, hit: MemoryHit) -> VersionRecord:
    """A version as its hit may leave."""
    memory = replace(
        record.memory,
        content=hit.text,
        metadata=hit.metadata or {},
        tags=hit.tags or (),
        source=hit.source,
        speaker=hit.speaker,
        entities=(),
        vector=None,
        chunks=(),
    )
    return replace(record, memory=memory)
