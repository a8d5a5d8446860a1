"""The protocol of a memory store. The SQLite store implements it; the contract suite holds for every one.

Reads are synchronous, safe from any thread, and see one committed state each. Writes are coroutines: they return after
the commit is durable, and a cancelled caller does not cancel a write that has begun. Times are integer milliseconds
since the epoch, UTC; ``None`` is open. A store stamps times itself, never going back within a bank, so that the order
of times agrees with the order of commits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Literal, Protocol

from astrocyte.model import (
    DEFAULT_PRINCIPAL,
    Bank,
    BankStats,
    Change,
    ErasureReceipt,
    ForgetSelector,
    Memory,
    Reference,
)
from astrocyte.stores.outbox import CopyOrder
from astrocyte.stores.quarantine import Quarantine
from astrocyte.stores.records import (
    HydratedRow,
    IndexBatch,
    RequestKey,
    VersionRecord,
    Visibility,
    Write,
    WriteOutcome,
)
from astrocyte.stores.sharing import ToldListener

# A field of `IndexBatch`; a listener may ask for the commits alone in which it is set.
BatchFlag = Literal["erased", "moved", "refers"]


class IndexListener(Protocol):
    """A listener that updates an index from the commits."""

    def __call__(self, batch: IndexBatch, /) -> None:
        """Take what was committed.

        Called on the writer's thread, one batch at a time, in commit order, after the commit and before its callers are
        answered; every write of the store waits for it, so it is short and waits for nothing. Keys in ``ended`` and
        ``removed`` that the index does not hold are of no concern. The commit stands whatever happens here: an
        exception is logged and the batch is not given again, so a listener that cannot take one must drop the bank's
        index and build it anew from `MemoryStore.iter_versions`.
        """


class MemoryStore(Protocol):
    """The primary store: banks, memories with their versions, the change log and the request table."""

    @property
    def healthy(self) -> bool:
        """True if the store accepts writes. False is final: the disk failed, and the server must be restarted."""

    @property
    def quarantine(self) -> Quarantine:
        """Damaged rows, which answers leave out."""

    @property
    def waiting_writes(self) -> int:
        """The number of queued writes."""

    @property
    def schema_version(self) -> int:
        """Number of the newest migration that was applied."""

    def subscribe(self, listener: IndexListener, flag: BatchFlag | None = None) -> None:
        """Call ``listener`` after every commit, or after those whose batch has a flag set."""

    @property
    def shared(self) -> bool:
        """True if other processes write into the store."""

    @property
    def outlasts_outages(self) -> bool:
        """True if the store works again after a failure, without a new process."""

    @property
    def heard(self) -> int:
        """The place up to which this process was told what others committed."""

    def refresh(self) -> None:
        """Tell the followers all that other processes committed before this call; a process alone is told nothing."""

    async def wait_for_others(self) -> None:
        """Return when another process may have committed, or some time has passed; of a process alone, at once."""

    def follow(self, listener: ToldListener) -> None:
        """Call ``listener`` for each change that another process committed, in order."""

    async def create_bank(  # noqa: PLR0913 - what a bank is made of
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
        """Create a bank; an equal earlier request gets the bank as it was then.

        Raises:
            AlreadyExists: The tenant has a bank of that id.
        """

    def get_bank(self, tenant: str, bank_id: str) -> Bank | None:
        """The bank, or None."""

    def bank_of_key(self, bank_key: int) -> Bank | None:
        """The bank with this key, of any tenant, or None if it was deleted. For internal use: it checks no tenant."""

    def list_banks(self, tenant: str, *, prefix: str, after: str, limit: int) -> list[Bank]:
        """Banks whose id starts with ``prefix`` and sorts after ``after``, by id."""

    async def update_bank(
        self,
        bank: Bank,
        *,
        display_name: str | None,
        description: str | None,
        expected_etag: str | None,
        request: RequestKey | None = None,
    ) -> Bank:
        """Change the fields that are not None; an equal earlier request gets the bank as it was then.

        Raises:
            Conflict: ``expected_etag`` is not the bank's.
            BankNotFound: It was deleted meanwhile.
        """

    async def delete_bank(
        self,
        bank: Bank,
        *,
        expected_etag: str | None,
        principal: str = DEFAULT_PRINCIPAL,
        request: RequestKey | None = None,
    ) -> int:
        """Delete the bank with all its rows, and revoke, as the principal, the grants that name it without wildcards.

        Returns how many memories were visible.

        The answer to a ``request`` is kept with the commit that hides the bank, so that `find_response` has it, in
        decimal digits, when the bank is gone. Answers to requests about what was in the bank go with it. Others write
        while the rows go; where a full disk or a crash stops that, `purge` finishes it.
        """

    def bank_stats(self, bank: Bank) -> BankStats:
        """Counts from the rows; the index part is left at its not-loaded values."""

    def references(self) -> list[Reference]:
        """The references of all current memories of all banks to other banks."""

    def content_bytes(self, bank: Bank) -> tuple[int, int]:
        """UTF-8 bytes of the contents of the bank's memories as they are now, and the position that this is as of."""

    def find_response(self, tenant: str, request: RequestKey) -> bytes | None:
        """The stored response of an earlier, equal request, or None.

        Raises:
            RequestIdReused: The id was used by another request.
        """

    async def finish_deletions(self) -> None:
        """Delete what is left of banks whose deletion failed after they were hidden.

        Raises:
            StoreError, Unavailable: Something is still there.
        """

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
        """Commit all writes in one transaction, or none.

        With a ``request``, ``respond`` turns the outcomes into the response that is stored beside them; an equal
        request that came before gets that response and no outcomes. ``respond`` runs within the transaction, so it is
        short, and its response holds no content, metadata or vector, because it outlives an erasure.

        ``settle`` is for a commit that serves several requests, or none: it too runs within the transaction, on the
        outcomes, and returns the responses to be stored beside them; what it raises undoes the writes.

        ``dequeue`` names items of the retry queue that these writes are: they leave it in the same transaction.

        ``copies`` names the engine for which what is stored waits from this transaction on (`astrocyte.stores.outbox`),
        as the argument of that name does below for what is forgotten, erased or brought back.

        Raises:
            MemoryNotFound, Conflict: A replaced memory is gone, its etag differs, or one of several requests has been
                answered before.
            RequestIdReused: The request id was used by another request.
            NotFound: An item to dequeue is no longer there.
            RateLimited: Too much waits for the engine that ``copies`` names.
            DiskFull: Nothing was committed.
        """

    def memory(
        self, bank: Bank, memory_id: str, *, version: int | None = None, include_forgotten: bool = False
    ) -> Memory | None:
        """The current version, or the one of that number, or None."""

    def version(self, bank: Bank, memory_id: str) -> VersionRecord | None:
        """The current version with its chunks and vectors, or None; an update keeps what it does not change."""

    def current_versions(self, bank: Bank, memory_ids: Sequence[str]) -> list[VersionRecord]:
        """As `version`, of several memories, by row key; those that are gone are left out."""

    def versions(self, bank: Bank, memory_id: str) -> list[Memory]:
        """All versions, oldest first; none when the memory is forgotten."""

    def list_memories(  # noqa: PLR0913 - a filter and the bounds of a page
        self,
        bank: Bank,
        *,
        tags: Sequence[str],
        session_id: str | None,
        at_position: int,
        after: int,
        limit: int,
        content_chars: int | None = None,
        archived: bool = False,
    ) -> tuple[list[tuple[int, Memory]], int]:
        """Visible memories as they were at a position, with their row keys, in ascending row key; and the total count.

        A memory has any of the ``tags``. What was forgotten since that position is left out, and not counted, unless it
        was brought back. With ``archived``, the archived memories are listed instead. Reading ends at ``limit``
        memories, or with the first one after more than ``content_chars`` characters of content.
        """

    def turns_before(self, bank: Bank, memory_ids: Sequence[str]) -> dict[str, str]:
        """Ids of the current memories before these ones in their sessions, by id; those without one are left out."""

    def hydrate(self, bank: Bank, passages: Sequence[tuple[int, int]], visibility: Visibility) -> list[HydratedRow]:
        """The rows of this bank among ``passages`` that are visible, in their order; others are left out.

        Passages may be plain pairs, as `Passage` names them. One that is asked for twice comes twice.
        """

    def hydrate_each(
        self, asked: Sequence[tuple[Bank, Sequence[tuple[int, int]]]], visibility: Visibility
    ) -> list[list[HydratedRow]]:
        """As `hydrate` of each bank, which comes once, with its passages; in the order of the banks, by one read.

        The rows of each bank are in the order of its passages. One that is asked for twice may come once.
        """

    def select(self, bank: Bank, selector: ForgetSelector, *, include_forgotten: bool = False) -> tuple[int, list[str]]:
        """The number of memories that the selector meets, and the first 1,000 ids, without changing anything.

        The latest version decides; of several ids or tags any will do. ``include_forgotten`` counts what `erase` would.
        """

    def archived_among(self, bank: Bank, selector: ForgetSelector, *, include_forgotten: bool = False) -> int:
        """The number of the memories of `select` that are archived."""

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
        """Forget what the selector meets at commit time.

        Returns the count, the first 1,000 ids, the position, and the number of those that were archived.

        An equal request that came before gets its answer again.
        """

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
        """Erase rows, forgotten ones included, so that no byte of them is left in the files when it returns.

        What the selector meets when it begins will go, whatever happens: `purge` finishes what was cut short. Others
        write meanwhile. Earlier requests in the bank are recognised by id and operation alone from then on, because a
        digest of a request would let a guess of its content be checked.

        Returns the first 1,000 ids, the position and the receipt; an equal request that came before gets them again.

        Raises:
            BankNotFound: It was deleted meanwhile, and the rows with it.
            DiskFull, StoreError: It is not finished; it will be, or may be asked for again.
        """

    async def undelete(
        self,
        bank: Bank,
        memory_id: str,
        *,
        principal: str = DEFAULT_PRINCIPAL,
        request: RequestKey | None = None,
        copies: CopyOrder | None = None,
    ) -> Memory:
        """Bring a forgotten memory back, in the name of the principal.

        An equal request that came before gets the version that came back then.

        Raises:
            MemoryNotFound: There is none, its ``purge_after`` is past, an erasure took it, or it was forgotten again
                meanwhile.
        """

    async def purge(self, now: int) -> int:
        """Erase forgotten memories whose ``purge_after`` is past, and requests beyond their keeping time."""

    def changes(self, bank: Bank, *, after: int, limit: int) -> list[Change]:
        """The change log from the position after ``after``, ascending."""

    def iter_versions(self, bank: Bank, *, batch_size: int = 1_000) -> Iterator[list[VersionRecord]]:
        """Every version that recall may ever see, by row key, as of the position at the first batch.

        No transaction stays open between two batches: what is forgotten while they are read is left out of the later
        ones, which the batches given to the listeners meanwhile would remove anyway.
        """

    def version_records(self, bank: Bank, memory_ids: Sequence[str], *, at_position: int) -> list[VersionRecord]:
        """As `iter_versions`, of these memories alone and as of a position; those that are gone are left out."""

    def memory_ids(self, bank: Bank, *, after: str, limit: int, at_position: int) -> list[str]:
        """Ids of visible memories that were there at a position, in ascending order, after an id."""

    def tombstones(self, bank: Bank, *, after: str, limit: int) -> list[tuple[str, int]]:
        """Forgotten memories and the times of that, by id, after an id; without those that are being erased."""

    def held(self, bank: Bank, memory_ids: Sequence[str]) -> dict[str, bool]:
        """Those of the memories that the bank has, or had; True for the forgotten ones."""

    def same_content(self, bank: Bank, content_hashes: Sequence[bytes]) -> set[bytes]:
        """Those of the content hashes that current memories of the bank have."""

    def close(self) -> None:
        """Finish the queued writes, then release the files."""
