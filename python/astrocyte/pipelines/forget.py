"""Forget: soft deletion or erasure of the selected memories.

1. a dry run counts and stops here;
2. plain: tombstones in one transaction; undelete is possible until ``purge_after``;
   compliance: the bank's checkpoints are removed, the rows and every byte of them are erased, in the files of the
   index too, a receipt is made, and the other processes on the data directory and external stores have confirmed;
3. the store's commit takes the rows out of the index before this returns; and recall reads every hit back from the
   database, so that even a stale index could not return one.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from astrocyte.config import ForgetSettings
from astrocyte.model import Bank, ErasureReceipt, ForgetResult, ForgetSelector, Memory
from astrocyte.pipelines.external_stores.stores import ExternalStores
from astrocyte.pipelines.index.checkpoints import without_checkpoints
from astrocyte.pipelines.index.registry import IndexRegistry
from astrocyte.pipelines.query.time_windows import DAY_MS
from astrocyte.pipelines.reindex.pipeline import Reindexer
from astrocyte.stores.outbox import CopyOrder
from astrocyte.stores.protocols import MemoryStore
from astrocyte.stores.records import RequestKey


class ForgetPipeline:
    """Forgets, erases and undeletes memories."""

    def __init__(  # noqa: PLR0913, PLR0917 - what an erasure has to reach
        self,
        store: MemoryStore,
        registry: IndexRegistry,
        settings: ForgetSettings,
        clock: Callable[[], int],
        external: ExternalStores | None = None,
        reindexer: Reindexer | None = None,
        confirm: Callable[[int], Awaitable[None]] | None = None,
    ) -> None:
        self._confirm = confirm
        self._reindexer = reindexer
        self._store = store
        self._registry = registry
        self._external = external
        self._clock = clock
        self._keep_ms = round(settings.purge_after_days * DAY_MS)

    def preview(self, bank: Bank, selector: ForgetSelector, *, compliance: bool) -> ForgetResult:
        """The preview of a forget; an erasure takes forgotten memories too."""
        count, memory_ids = self._store.select(bank, selector, include_forgotten=compliance)
        archived = self._store.archived_among(bank, selector, include_forgotten=compliance)
        return ForgetResult(count, archived, tuple(memory_ids), dry_run=True)

    async def forget(
        self,
        bank: Bank,
        selector: ForgetSelector,
        *,
        reason: str,
        principal: str,
        request: RequestKey | None,
        copies: CopyOrder | None = None,
    ) -> ForgetResult:
        """Forget until undelete or purge; ``copies`` is the outbox order for the engine's copies."""
        purge_after = self._clock() + self._keep_ms
        count, memory_ids, position, archived = await self._store.forget(
            bank, selector, reason=reason, principal=principal, purge_after=purge_after, request=request, copies=copies
        )
        return ForgetResult(count, archived, tuple(memory_ids), position=position if count else 0)

    async def erase(
        self,
        bank: Bank,
        selector: ForgetSelector,
        *,
        reason: str,
        principal: str,
        request: RequestKey | None,
        copies: CopyOrder | None = None,
    ) -> ForgetResult:
        """Erase, forgotten memories included; ``copies`` as in `forget`.

        Raises:
            ProviderUnavailable: It is done here; an external store has not confirmed yet that it is done there.
            Unavailable: It is done here; another process on the data directory has not confirmed yet.
        """

        async def erase() -> tuple[list[str], int, ErasureReceipt]:
            erased = await self._store.erase(
                bank, selector, reason=reason, principal=principal, request=request, copies=copies
            )
            await self._registry.scrub(bank)
            return erased

        checkpoints = self._registry.checkpoints
        if checkpoints is None:
            memory_ids, position, receipt = await erase()
        else:
            memory_ids, position, receipt = await without_checkpoints(checkpoints, bank, erase)
        if self._confirm is not None:
            await self._confirm(bank.key)
        if self._external is not None:
            await self._external.confirm(bank, position)
        # What waited to be stored had no rows that a salted id could stand for.
        count = len(receipt.salted_ids) + receipt.counts.get("queued", 0)
        return ForgetResult(
            deleted_count=count,
            archived_count=receipt.counts.get("archived", 0),
            memory_ids=tuple(memory_ids),
            position=position if count else 0,
            receipt=receipt,
        )

    async def undelete(
        self, bank: Bank, memory_id: str, principal: str, request: RequestKey | None, copies: CopyOrder | None = None
    ) -> Memory:
        """Undelete a forgotten memory, here and at the engine of ``copies``.

        Raises:
            MemoryNotFound: There is none, or it was purged.
            RateLimited: Too much waits for the engine.
            ProviderUnavailable: The bank moved to another embedding model meanwhile, and the embedder failed.
        """
        if self._reindexer is not None:
            await self._reindexer.complete(bank, memory_id)
        return await self._store.undelete(bank, memory_id, principal=principal, request=request, copies=copies)
