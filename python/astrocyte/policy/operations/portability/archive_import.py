"""One import of an archive: what stands in its way, and its groups of memories through the barriers into the bank."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, replace
from typing import TypeVar

from astrocyte.api import LimitKind
from astrocyte.api.requests import Forget, ImportBank
from astrocyte.api.requests import Grant as GrantRequest
from astrocyte.errors import (
    AlreadyExists,
    AstrocyteError,
    Conflict,
    MemoryNotFound,
    PiiRejected,
    RateLimited,
    ValidationError,
)
from astrocyte.model import (
    Bank,
    Caller,
    Entity,
    ForgetResult,
    ForgetSelector,
    Grant,
    ImportFailure,
    ImportProgress,
    ImportResult,
    OnConflict,
    RetainItem,
)
from astrocyte.model.memory import MEMORY_LAYERS
from astrocyte.pipelines.portability.reading import ArchivedGrant, ArchivedVersion, Record, Tombstone
from astrocyte.pipelines.portability.staging import ArchivedItem, History, Rejected, Staging
from astrocyte.pipelines.query.time_windows import optional_ms
from astrocyte.pipelines.retain.drafts import identity_hash
from astrocyte.pipelines.retain.pipeline import persist
from astrocyte.policy.limits.rate_limits import Demand
from astrocyte.policy.operations.parts import OperationParts
from astrocyte.policy.operations.portability.archive_sections import ArchiveSections, Reporting
from astrocyte.policy.requests import field_checks

# Records that are dealt with in one transaction.
GROUP_RECORDS = 256
# Failures that the result names.
SHOWN_FAILURES = 100
# A refusal with a longer delay ends an import: it is a quota of a day.
MOST_DELAY_SECONDS = 61.0
# Memories between two turns of the event loop.
TURN_MEMORIES = 16
MOST_ENTITIES = 1_000
TOMBSTONE_REASON = "forgotten in an imported archive"

T = TypeVar("T")
Group = list[History | ArchivedItem | Record | Rejected]


@dataclass(frozen=True, slots=True)
class RelatedCalls:
    """Handlers of other calls, for what archives hold beside memories."""

    forget: Callable[[Caller, Forget], Awaitable[ForgetResult]]
    grant: Callable[[Caller, GrantRequest], Awaitable[Grant]]
    # Raises `AccessDenied` for a caller who may not write directives.
    trust: Callable[[Caller, str], None]


class ArchiveImport:
    """An import of a verified archive.

    Args:
        parts: What the operations share.
        related: Handlers for tombstones and grants.
        caller: Who imports.
        bank: Where; its position is that of the begin. Key 0 where it does not exist yet.
        request: How.
    """

    def __init__(
        self, parts: OperationParts, related: RelatedCalls, caller: Caller, bank: Bank, request: ImportBank
    ) -> None:
        self.bank = bank
        self.result = ImportResult()
        self._known = bank.position
        self._store = parts.store
        self._pipeline = parts.pipelines.imports
        self._check = parts.check
        self._access = parts.access
        self._limits = parts.policies.limits
        self._barriers = parts.policies.barriers
        self._engines = parts.engine_writes
        self._related = related
        self._caller = caller
        self._request = request
        self._most_bytes = parts.policies.overrides.of[bank.bank_id].homeostasis.retain_max_content_bytes
        self._name_chars = parts.settings.limits.name_chars
        self._tag_chars = parts.settings.limits.tag_chars
        self._done = 0
        self._prepaid = True
        report = Reporting(self._count, self._fail, self._admitted)
        self._sections = ArchiveSections(parts, parts.access.name(caller), request, report)

    def progress(self, received: int, total: int) -> ImportProgress:
        """The state of the import."""
        return ImportProgress(received, self._done, total)

    def next_group(self, records: Iterator[History | ArchivedItem | Record | Rejected]) -> Group:
        """The next records; empty at the end."""
        group: Group = []
        for record in records:
            group.append(record)
            if len(group) == GROUP_RECORDS:
                break
        return group

    def check(self, staging: Staging) -> None:
        """Look for what makes the whole import impossible.

        Raises:
            AlreadyExists: Memories or other rows are there already, and that is to be an error.
            LegalHoldActive: A hold covers what would be overwritten or forgotten.
            AccessDenied: The archive has tombstones to apply, and the caller may not forget.
        """
        action = self._request.on_conflict
        if action is OnConflict.SKIP:
            return
        records = staging.records()
        while group := self.next_group(records):
            self._sections.check(self.bank, group)
            histories = [one for one in group if isinstance(one, list)]
            held = self._store.held(self.bank, [one[0].memory_id for one in histories])
            buried = [one.memory_id for one in group if isinstance(one, Tombstone)]
            alive = [one for one, forgotten in self._store.held(self.bank, buried).items() if not forgotten]
            if action is OnConflict.ERROR:
                self._refuse_conflicts(histories, held, alive)
                continue
            if alive:
                self._access.require(self._caller, "Forget", self.bank.bank_id, self.bank)
            changed = self._changed([one[-1] for one in histories if held.get(one[0].memory_id) is False])
            if alive or changed:
                # Finds a hold that covers any of them.
                self._store.select(self.bank, ForgetSelector(memory_ids=(*alive, *changed)))

    def _refuse_conflicts(self, histories: list[History], held: dict[str, bool], alive: list[str]) -> None:
        last = [history[-1] for history in histories]
        hashes = {_hash(one): one.memory_id for one in last}
        same = {hashes[one] for one in self._store.same_content(self.bank, list(hashes))}
        conflicts = sorted({*held, *alive, *same})
        if conflicts:
            raise AlreadyExists(
                f"bank {self.bank.bank_id!r} has memories of the archive, such as {conflicts[0]!r:.80}; nothing was "
                "stored; use on_conflict skip or overwrite",
                metadata={"bank_id": self.bank.bank_id, "memory_id": conflicts[0][:80]},
            )

    def _changed(self, versions: list[ArchivedVersion]) -> list[str]:
        """Memories whose content would become another."""
        current = self._pipeline.current(self.bank, [one.memory_id for one in versions])
        return [
            one.memory_id
            for one in versions
            if one.memory_id in current and current[one.memory_id].memory.content != one.item.content
        ]

    async def store(self, group: Group) -> None:
        """Deal with a group of records.

        Raises:
            LimitReached: The quota of the day is used up.
            AstrocyteError: The store, the embedder or a hold ended the import; what was stored stays.
        """
        histories = [one for one in group if isinstance(one, list)]
        self._done += len(histories)
        for one in group:
            if isinstance(one, Rejected):
                self._done += 1
                self._fail(one.line, one.memory_id, one.error)
        await self._memories(histories)
        await self._tombstones([one.memory_id for one in group if isinstance(one, Tombstone)])
        for one in group:
            if not self._sections.wants(one):
                self._count(left_out=1)
            elif isinstance(one, ArchivedGrant):
                await self._grant(one)
        await self._sections.store(self.bank, group)

    async def finish(self) -> None:
        """Remove what the groups left and nothing came for, after the last group."""
        await self._sections.finish(self.bank)

    async def _memories(self, histories: list[History]) -> None:
        overwrite = self._request.on_conflict is OnConflict.OVERWRITE
        held = await self._pipeline.held(self.bank, [history[0].memory_id for history in histories])
        wanted: list[History] = []
        seen: set[str] = set()
        for index, history in enumerate(histories):
            if index % TURN_MEMORIES == 0:
                await asyncio.sleep(0)
            memory_id = history[0].memory_id
            if memory_id in seen or (memory_id in held and (held[memory_id] or not overwrite)):
                self._count(skipped=1)
                continue
            seen.add(memory_id)
            try:
                screened = [await self._screened(version) for version in history]
            except (ValidationError, PiiRejected) as error:
                self._fail(history[0].line, memory_id, error.message)
                continue
            await self._admitted()
            wanted.append(screened)
        if not wanted:
            return
        try:
            await self._write(wanted, overwrite=overwrite)
        except ValidationError:
            # One of them is wrong for the bank: the others are stored each for itself.
            for history in wanted:
                try:
                    await self._write([history], overwrite=overwrite)
                except ValidationError as error:
                    self._fail(history[0].line, history[0].memory_id, error.message)

    async def _write(self, histories: list[History], *, overwrite: bool) -> None:
        caller, bank_id = self._caller, self.bank.bank_id

        async def attempt() -> None:
            stored = await self._pipeline.run(
                self.bank,
                histories,
                self._access.name(caller),
                known=self._known,
                overwrite=overwrite,
                copies=self._engines.order(caller, bank_id),
            )
            self._count(imported=stored.imported, overwritten=stored.overwritten, skipped=stored.skipped)

        await _patiently(lambda: persist(attempt, changed=(Conflict, MemoryNotFound)))

    async def _screened(self, version: ArchivedVersion) -> ArchivedVersion:
        """A version as the bank takes it.

        Raises:
            ValidationError: A value is beyond a limit, or has a shape that the bank does not take.
            PiiRejected: It holds personal data that the bank does not take.
        """
        self._check.memory_id(version.memory_id)
        item = version.item
        self._check.item(item, self._most_bytes)
        if version.memory_layer not in {None, *MEMORY_LAYERS}:
            raise ValidationError(f"expected one of {', '.join(MEMORY_LAYERS)}", field="memory_layer")
        if version.principal is not None:
            field_checks.name(version.principal, "principal")
        screened, _ = await self._barriers.item(self.bank.bank_id, "ImportBank", item, "")
        if screened is item or screened == item:
            entities = await self._entities(version.entities)
            return version if entities is version.entities else replace(version, entities=entities)
        # Vectors and entities are of what was there before.
        return replace(version, item=screened, entities=None, model="", vector=None, chunks=())

    async def _entities(self, entities: tuple[Entity, ...] | None) -> tuple[Entity, ...] | None:
        """Entities that hold no personal data; None where they are to be extracted anew."""
        if not entities:
            return entities
        if len(entities) > MOST_ENTITIES:
            raise ValidationError(f"has {len(entities)} entries, at most {MOST_ENTITIES}", field="entities")
        for entity in entities:
            field_checks.label(entity.name, "entities", self._name_chars)
            field_checks.label(entity.entity_type, "entities", self._tag_chars)
        names = RetainItem("\n".join(entity.name for entity in entities))
        try:
            seen, _ = await self._barriers.item(self.bank.bank_id, "ImportBank", names, "entities.", quiet=True)
        except (PiiRejected, ValidationError):
            return None
        return entities if seen.content == names.content else None

    async def _admitted(self) -> None:
        """Count a memory for the rates and quotas; waits where a rate is reached. The first one was counted before."""
        if self._prepaid:
            self._prepaid = False
        elif LimitKind.RETAIN in self._limits.limited:
            demand = Demand(self._caller.tenant, self.bank.bank_id, LimitKind.RETAIN)
            await _patiently(lambda: self._limits.admit((demand,)))

    async def _tombstones(self, memory_ids: list[str]) -> None:
        if not memory_ids or self._request.on_conflict is not OnConflict.OVERWRITE:
            return
        held = await self._pipeline.held(self.bank, memory_ids)
        alive = tuple(one for one, gone in held.items() if not gone)
        if alive:
            request = Forget(
                self.bank.bank_id, ForgetSelector(memory_ids=alive), reason="forgotten in an imported archive"
            )
            forgotten = await _patiently(lambda: self._related.forget(self._caller, request))
            self._count(forgotten=forgotten.deleted_count)

    async def _grant(self, grant: ArchivedGrant) -> None:
        try:
            await self._related.grant(
                self._caller, GrantRequest(self.bank.bank_id, grant.principal, list(grant.permissions))
            )
        except AstrocyteError as error:
            self._fail(0, "", f"grant to {grant.principal!r:.80}: {error.message}")
        else:
            self._count(grants=1)

    def _fail(self, line: int, memory_id: str, error: str) -> None:
        result = self.result
        failures = result.failures
        if len(failures) < SHOWN_FAILURES:
            failures = (*failures, ImportFailure(line, memory_id, error))
        self.result = replace(result, errors=result.errors + 1, failures=failures)

    def _count(self, **counts: int) -> None:
        self.result = replace(self.result, **{name: getattr(self.result, name) + more for name, more in counts.items()})


def _hash(version: ArchivedVersion) -> bytes:
    item = version.item
    return identity_hash(item.content, item.speaker, item.session_id, optional_ms(item.occurred_at))


async def _patiently(work: Callable[[], Awaitable[T]]) -> T:
    """The result of work, once no rate or queue refuses it.

    Raises:
        RateLimited: The delay is longer than a minute.
    """
    while True:
        try:
            return await work()
        except RateLimited as error:
            if error.retry_after > MOST_DELAY_SECONDS:
                raise
            await asyncio.sleep(error.retry_after)
