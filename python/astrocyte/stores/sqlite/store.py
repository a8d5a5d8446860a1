"""The store over SQLite: a data directory, or memory alone, behind `MemoryStore`."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path

import apsw

from astrocyte.config import StoreSettings
from astrocyte.errors import MemoryNotFound, StoreError
from astrocyte.model import (
    DEFAULT_PRINCIPAL,
    Bank,
    ErasureReceipt,
    ForgetSelector,
    Memory,
)
from astrocyte.stores.outbox import CopyOrder
from astrocyte.stores.protocols import BatchFlag, IndexListener
from astrocyte.stores.quarantine import HashFits, Quarantine
from astrocyte.stores.queue import QueuedItem
from astrocyte.stores.records import HydratedRow, IndexBatch, RequestKey, Visibility, Write, WriteOutcome
from astrocyte.stores.sharing import ToldListener
from astrocyte.stores.sqlite import commits
from astrocyte.stores.sqlite.deletion import soft_delete
from astrocyte.stores.sqlite.deletion.erasure import Eraser
from astrocyte.stores.sqlite.deletion.scrubbing import Scrubber
from astrocyte.stores.sqlite.deletion.vacuum import Cleaner
from astrocyte.stores.sqlite.diagnosis import SqliteDiagnosis
from astrocyte.stores.sqlite.engine.connections import Connections, check_sqlite_version
from astrocyte.stores.sqlite.engine.data_directory import (
    BALLAST,
    DATABASE,
    Ballast,
    DirectoryLock,
    create_private,
    sync_directory,
)
from astrocyte.stores.sqlite.engine.migrations import load_migrations, migrate
from astrocyte.stores.sqlite.engine.sharing import Sharing, forget_others
from astrocyte.stores.sqlite.engine.transaction import Clock, Transaction
from astrocyte.stores.sqlite.engine.writer import Writer
from astrocyte.stores.sqlite.graph.feed import SqliteGraphFeed
from astrocyte.stores.sqlite.graph.readings import SqliteGraphReadings
from astrocyte.stores.sqlite.graph.store import SqliteEntityGraph
from astrocyte.stores.sqlite.hydration import Hydration
from astrocyte.stores.sqlite.lifecycle import SqliteLifecycle
from astrocyte.stores.sqlite.reads import Reads
from astrocyte.stores.sqlite.tables import banks, idempotency, ingest, retry_queue
from astrocyte.stores.sqlite.tables.activity import SqliteActivity
from astrocyte.stores.sqlite.tables.api_keys import SqliteKeys
from astrocyte.stores.sqlite.tables.audit import SqliteAudit
from astrocyte.stores.sqlite.tables.change_feed import SqliteFollowing
from astrocyte.stores.sqlite.tables.grants import SqliteAccess
from astrocyte.stores.sqlite.tables.ingest import SqliteIngest
from astrocyte.stores.sqlite.tables.knowledge.consolidation import SqliteConsolidation
from astrocyte.stores.sqlite.tables.knowledge.rows import purge_deleted
from astrocyte.stores.sqlite.tables.knowledge.store import SqliteKnowledge
from astrocyte.stores.sqlite.tables.knowledge.wiki import SqliteWiki
from astrocyte.stores.sqlite.tables.leases import SqliteLeases
from astrocyte.stores.sqlite.tables.legal_holds import SqliteHolds
from astrocyte.stores.sqlite.tables.operations import SqliteOperations
from astrocyte.stores.sqlite.tables.outbox import SqliteOutbox
from astrocyte.stores.sqlite.tables.terms import SqliteTerms
from astrocyte.stores.sqlite.verification import Progress, Verification, verify

DEFAULTS = StoreSettings()
# Responses that one purge job removes.
EXPIRED_AT_ONCE = 10_000
# Hidden items of knowledge that one purge job removes; each has several rows.
ITEMS_AT_ONCE = 256
HOUR_MILLISECONDS = 3_600_000


def system_clock() -> int:
    """Milliseconds since the epoch."""
    return time.time_ns() // 1_000_000


def open_store(  # noqa: PLR0913 - a setting each
    data_dir: Path | None,
    *,
    clock: Clock = system_clock,
    ballast_bytes: int = DEFAULTS.ballast_bytes,
    waiting_limit: int = DEFAULTS.waiting_limit,
    busy_seconds: float = DEFAULTS.busy_seconds,
    request_keep_hours: float = DEFAULTS.request_keep_hours,
    hash_fits: HashFits | None = None,
    read_only: bool = False,
    worker: int | None = None,
) -> SqliteStore:
    """Open or create the store of a data directory; None keeps all data in memory while the store is open.

    Args:
        data_dir: This process owns it until the store is closed.
        clock: Milliseconds since the epoch; where it goes back, stored times stand still.
        ballast_bytes: Space held back so that forgetting works on a full disk; 0 for none.
        waiting_limit: Writes that may wait before more are refused.
        busy_seconds: How long to wait for another process's lock on the database.
        request_keep_hours: How long answers to request ids are kept.
        hash_fits: Tells whether a content hash fits; rows whose hash does not are damaged.
        read_only: Write nothing, into the database or its directory.
        worker: Number of this process, where several share the directory; their supervisor owns it, and has made it.

    Raises:
        StoreLocked: Another process owns the directory.
        SchemaTooNew: A newer version wrote it.
        StoreError: It cannot be opened, or the SQLite library is too old.
    """
    return SqliteStore(
        data_dir,
        clock=clock,
        ballast_bytes=ballast_bytes,
        waiting_limit=waiting_limit,
        busy_seconds=busy_seconds,
        request_keep_hours=request_keep_hours,
        hash_fits=hash_fits,
        read_only=read_only,
        worker=worker,
    )


class SqliteStore(Reads):
    """Implements `astrocyte.stores.protocols.MemoryStore`; see there for what each method does and raises.

    Made by `open_store`. The underscored arguments exist for tests: each switches off a guard, or puts a faulty disk
    beneath, to show that the guard is what holds.
    """

    def __init__(  # noqa: PLR0913 - as `open_store`
        self,
        data_dir: Path | None,
        *,
        clock: Clock = system_clock,
        ballast_bytes: int = 0,
        waiting_limit: int = DEFAULTS.waiting_limit,
        busy_seconds: float = DEFAULTS.busy_seconds,
        request_keep_hours: float = DEFAULTS.request_keep_hours,
        hash_fits: HashFits | None = None,
        read_only: bool = False,
        worker: int | None = None,
        _guarded: bool = True,
        _secure_delete: bool = True,
        _scrub: bool = True,
        _vfs: str = "",
    ) -> None:
        check_sqlite_version()
        self._clock = clock
        self._keep_requests = round(request_keep_hours * HOUR_MILLISECONDS)
        self._closed = False
        self._lock: DirectoryLock | None = None
        self._scrubber: Scrubber | None = None
        self._sharing: Sharing | None = None
        connections: Connections | None = None
        path = None if data_dir is None else data_dir / DATABASE
        try:
            if data_dir is not None and path is not None:
                self._own(data_dir, read_only=read_only, worker=worker)
            connections = Connections(
                path, busy_seconds=busy_seconds, secure_delete=_secure_delete, vfs=_vfs, read_only=read_only
            )
            self.schema_version = migrate(connections.writer, load_migrations(), clock(), read_only=read_only)
            if worker is None and not read_only:
                forget_others(connections.writer)
            if worker is not None and data_dir is not None:
                self._sharing = Sharing(data_dir, worker, connections)
            if data_dir is not None and path is not None and not read_only:
                sync_directory(data_dir)
                if _scrub:
                    self._scrubber = Scrubber(path, connections.writer.pragma("page_size"))
        except BaseException as error:
            if connections is not None:
                connections.close(checkpoint=False)
            self._release()
            if isinstance(error, (apsw.Error, OSError)):
                raise StoreError(
                    f"the data directory {str(data_dir)!r} cannot be opened ({error})",
                    metadata={"data_dir": str(data_dir)},
                ) from error
            raise
        ballast = Ballast(data_dir / BALLAST if data_dir is not None and not read_only else None, ballast_bytes)
        ballast.build()
        writer = Writer(
            connections,
            ballast,
            clock=clock,
            waiting_limit=waiting_limit,
            read_only=read_only,
            sharing=self._sharing,
        )
        cleaner = Cleaner(writer, self._scrubber, round(busy_seconds * 1_000))
        leases = None if self._sharing is None else SqliteLeases(writer, connections, self._sharing)
        self._assemble(connections, writer, cleaner, leases, hash_fits, guarded=_guarded)

    def _assemble(
        self,
        connections: Connections,
        writer: Writer,
        cleaner: Cleaner,
        leases: SqliteLeases | None,
        hash_fits: HashFits | None,
        *,
        guarded: bool,
    ) -> None:
        """Build the tables over the connections of an open database."""
        self.quarantine = Quarantine()
        super().__init__(connections, self.quarantine, hash_fits)
        self._writer = writer
        self._writer.subscribe(self._forget_damaged, "erased")
        self._eraser = Eraser(writer, cleaner, self._shred)
        self.leases = leases
        self.access = SqliteAccess(self._writer, self._connections)
        self.holds = SqliteHolds(self._writer, self._connections)
        self.audit = SqliteAudit(self._writer, self._connections)
        self.keys = SqliteKeys(self._writer, self._connections)
        self.outbox = SqliteOutbox(self._writer, self._connections)
        self.following = SqliteFollowing(self._connections)
        self.operations = SqliteOperations(self._writer, self._connections)
        self.graph_feed = SqliteGraphFeed(self._connections)
        self.graph = SqliteEntityGraph(self._writer, self._connections, self.graph_feed.announce)
        self.graph_readings = SqliteGraphReadings(self._writer, self._connections, self.graph_feed.announce)
        self.terms = SqliteTerms(self._writer, self._connections)
        self.ingest = SqliteIngest(self._writer, self._connections)
        self.knowledge = SqliteKnowledge(self._writer, self._connections)
        self.lifecycle = SqliteLifecycle(self._writer, self._connections)
        self.activity = SqliteActivity(self._writer, self._connections)
        self.consolidation = SqliteConsolidation(self._writer, self._connections, self.knowledge)
        self.wiki = SqliteWiki(self._writer, self._connections, self.knowledge)
        # The hot ones, without a frame of their own in between.
        hydration = Hydration(self._connections, self.quarantine, hash_fits, guarded=guarded)
        self.hydrate: Callable[[Bank, Sequence[tuple[int, int]], Visibility], list[HydratedRow]] = hydration.hydrate
        self.hydrate_each: Callable[
            [Sequence[tuple[Bank, Sequence[tuple[int, int]]]], Visibility], list[list[HydratedRow]]
        ] = hydration.hydrate_each

    def _own(self, data_dir: Path, *, read_only: bool, worker: int | None) -> None:
        """Make the data directory and lock it; that of several processes belongs to their supervisor."""
        if not read_only:
            data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        if worker is None:
            self._lock = DirectoryLock(data_dir, shared=read_only)
        if not read_only:
            create_private(data_dir / DATABASE)

    def _forget_damaged(self, batch: IndexBatch) -> None:
        for row_key in batch.removed if len(self.quarantine) else ():
            self.quarantine.discard(row_key)

    def _shred(self, _bank_key: int) -> bool:
        """Destroy the key of a bank that was deleted, on the writer's thread. No bank of this store has one."""
        return False

    @cached_property
    def diagnosis(self) -> SqliteDiagnosis:
        """The reads of diagnoses."""
        return SqliteDiagnosis(self._writer, self._connections)

    @property
    def healthy(self) -> bool:
        """True if the store accepts writes: a disk that failed once is not used again."""
        missed = self._sharing is not None and self._sharing.missed
        return self._writer.fault is None and not self._closed and not missed

    @property
    def outlasts_outages(self) -> bool:
        """False: what fails once in the files of this process is not used again by it."""
        return False

    @property
    def waiting_writes(self) -> int:
        """The number of queued writes."""
        return self._writer.waiting

    def verify(self, progress: Progress | None = None) -> Verification:
        """Read every row, and check the database file."""
        return verify(self._connections, self._hash_fits, progress)

    @property
    def shared(self) -> bool:
        """True if other processes write into the store."""
        return self._sharing is not None

    @property
    def heard(self) -> int:
        """The place up to which this process was told what others committed."""
        return 0 if self._sharing is None else self._sharing.heard

    def refresh(self) -> None:
        """Tell the followers all that other processes committed before this call."""
        if self._sharing is not None:
            self._sharing.refresh()

    async def wait_for_others(self) -> None:
        """Return when another process may have committed."""
        if self._sharing is not None:
            await self._sharing.wait()

    def follow(self, listener: ToldListener) -> None:
        """Call the listener for each change that another process committed."""
        if self._sharing is not None:
            self._sharing.follow(listener)

    def subscribe(self, listener: IndexListener, flag: BatchFlag | None = None) -> None:
        """Call the listener after every commit, or after those whose batch has a flag set."""
        self._writer.subscribe(listener, flag)

    async def create_bank(  # noqa: PLR0913 - the signature of MemoryStore
        self,
        tenant: str,
        bank_id: str,
        *,
        display_name: str,
        description: str,
        embedding_model: str,
        dimensions: int,
        created_by: str = DEFAULT_PRINCIPAL,
        request: RequestKey | None = None,
    ) -> Bank:
        """Create a bank."""
        new = banks.NewBank(tenant, bank_id, display_name, description, embedding_model, dimensions, created_by)
        return await self._writer.submit(lambda transaction: banks.create(transaction, new, request))

    async def update_bank(
        self,
        bank: Bank,
        *,
        display_name: str | None,
        description: str | None,
        expected_etag: str | None,
        request: RequestKey | None = None,
    ) -> Bank:
        """Change the fields that are not None."""
        change = banks.BankChange(display_name, description, expected_etag)
        return await self._writer.submit(lambda transaction: banks.update(transaction, bank, change, request))

    async def delete_bank(
        self,
        bank: Bank,
        *,
        expected_etag: str | None,
        principal: str = DEFAULT_PRINCIPAL,
        request: RequestKey | None = None,
    ) -> int:
        """Delete the bank with all its rows."""

        def revoke(transaction: Transaction) -> None:
            self.access.revoke_bank(transaction, bank.tenant, bank.bank_id, principal)

        return await self._writer.submit_sliced(
            lambda: self._eraser.delete_bank(bank, expected_etag, request, principal, revoke)
        )

    async def finish_deletions(self) -> None:
        """Delete what is left of banks whose deletion failed."""
        await self._writer.submit_sliced(self._eraser.finish_deletions)

    async def commit(  # noqa: PLR0913 - the parts of one transaction
        self,
        bank: Bank,
        writes: Sequence[Write],
        *,
        request: RequestKey | None = None,
        respond: Callable[[Sequence[WriteOutcome]], bytes] | None = None,
        settle: Callable[[Sequence[WriteOutcome]], Sequence[tuple[RequestKey, bytes]]] | None = None,
        dequeue: Sequence[int] = (),
        copies: CopyOrder | None = None,
    ) -> tuple[list[WriteOutcome], bytes | None]:
        """Commit all writes in one transaction, or none."""
        return await self._writer.submit(
            lambda transaction: commits.commit(
                transaction, bank, writes, request, respond, settle, dequeue, copies, self.quarantine
            ),
            weight=max(1, len(writes)),
        )

    async def enqueue(
        self, bank: Bank, items: Sequence[QueuedItem], *, limit: int, responses: Sequence[tuple[RequestKey, bytes]] = ()
    ) -> None:
        """Put items at the end of their bank's retry queue."""
        await self._writer.submit(
            lambda transaction: retry_queue.enqueue(transaction, bank, items, limit, responses), weight=len(items)
        )

    async def forget(  # noqa: PLR0913 - the parts of one transaction
        self,
        bank: Bank,
        selector: ForgetSelector,
        *,
        reason: str,
        principal: str,
        purge_after: int,
        request: RequestKey | None = None,
        copies: CopyOrder | None = None,
    ) -> tuple[int, list[str], int, int]:
        """Forget what the selector meets at commit time."""
        return await self._writer.submit(
            lambda transaction: soft_delete.forget(
                transaction, bank, selector, soft_delete.Tombstone(reason, principal, purge_after), request, copies
            ),
            frees=True,
        )

    async def erase(
        self,
        bank: Bank,
        selector: ForgetSelector,
        *,
        reason: str,
        principal: str,
        request: RequestKey | None = None,
        copies: CopyOrder | None = None,
    ) -> tuple[list[str], int, ErasureReceipt]:
        """Erase rows, forgotten ones included."""
        # Due at once and at any time, so that purge takes up what a crash leaves.
        tombstone = soft_delete.Tombstone(reason, principal, purge_after=0, erasing=True)
        return await self._writer.submit_sliced(lambda: self._eraser.erase(bank, selector, tombstone, request, copies))

    async def undelete(
        self,
        bank: Bank,
        memory_id: str,
        *,
        principal: str = DEFAULT_PRINCIPAL,
        request: RequestKey | None = None,
        copies: CopyOrder | None = None,
    ) -> Memory:
        """Bring a forgotten memory back."""
        version = await self._writer.submit(
            lambda transaction: soft_delete.undelete(transaction, bank, memory_id, principal, request, copies)
        )
        memory = self.memory(bank, memory_id, version=version)
        if memory is None:
            raise MemoryNotFound(memory_id, bank.bank_id)
        return memory

    async def purge(self, now: int) -> int:
        """Erase the rows that are due."""
        total = await self._writer.submit_sliced(lambda: self._eraser.purge(now))
        hidden = ITEMS_AT_ONCE
        while hidden == ITEMS_AT_ONCE:
            hidden = await self._writer.submit(
                lambda transaction: purge_deleted(transaction.connection, now, ITEMS_AT_ONCE), frees=True
            )
        before = now - self._keep_requests
        expired = EXPIRED_AT_ONCE
        while expired == EXPIRED_AT_ONCE:
            expired = await self._writer.submit(
                lambda transaction: idempotency.expire(transaction.connection, before, EXPIRED_AT_ONCE), frees=True
            )
        expired = EXPIRED_AT_ONCE
        while expired == EXPIRED_AT_ONCE:
            expired = await self._writer.submit(
                lambda transaction: ingest.expire(transaction.connection, now, EXPIRED_AT_ONCE), frees=True
            )
        return total

    def close(self) -> None:
        """Finish the queued writes, then release the files."""
        if self._closed:
            return
        self._closed = True
        self._writer.close()
        self._connections.close(checkpoint=self._writer.fault is None)
        self._release()

    def _release(self) -> None:
        if self._scrubber is not None:
            self._scrubber.close()
        if self._sharing is not None:
            self._sharing.close()
        if self._lock is not None:
            self._lock.release()
