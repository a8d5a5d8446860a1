"""The banks of all callers: their handles, how they come and go, and what happens in them."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime

from astrocyte.errors import BankNotFound, ValidationError
from astrocyte.model import Bank, BankPage, Caller, Change
from astrocyte.pipelines.registry import IndexRegistry
from astrocyte.policy import checks
from astrocyte.policy.paging import decode_token, encode_token
from astrocyte.policy.requests import key_of
from astrocyte.policy.validation import LARGEST_POSITION, Validator
from astrocyte.providers.protocols import Embedder
from astrocyte.stores.protocols import MemoryStore, RequestKey

# Changes read at once for a watcher: a screenful, so that a slow one does not hold many.
WATCH_BATCH = 256


class Banks:
    """What the gate knows of banks; see `astrocyte.policy.backend.Backend` for what each operation does and raises.

    Args:
        store: Where they are.
        registry: Their indexes.
        embedder: Its space is that of a bank which names none.
        check: The limits of requests.
        at_first_use: Called once, when a bank is first asked for.
    """

    def __init__(
        self,
        store: MemoryStore,
        registry: IndexRegistry,
        embedder: Embedder,
        check: Validator,
        at_first_use: Callable[[], None],
    ) -> None:
        self._store = store
        self._registry = registry
        self._embedder = embedder
        self._check = check
        self._at_first_use = at_first_use
        self._used = False
        # Handles of banks that exist; what changes with time (position, etag, names) is never read from here.
        self._handles: dict[tuple[str, str], Bank] = {}
        # Banks whose deletion runs: no handle of these is kept, since any moment may be the one that they go.
        self._leaving: Counter[tuple[str, str]] = Counter()
        self._deletions: set[asyncio.Task[int]] = set()

    def handle(self, caller: Caller, bank_id: str) -> Bank:
        """The bank, perhaps with an old position."""
        return self._handles.get((caller.tenant, bank_id)) or self.current(caller, bank_id)

    def current(self, caller: Caller, bank_id: str) -> Bank:
        """The bank as the store has it now."""
        if not self._used:
            # Now a loop runs for sure; when the gate was built, perhaps not.
            self._used = True
            self._at_first_use()
        bank = self._store.get_bank(caller.tenant, bank_id)
        if bank is None:
            raise BankNotFound(bank_id)
        if (caller.tenant, bank_id) not in self._leaving:
            self._handles[caller.tenant, bank_id] = bank
        return bank

    def draft(self, caller: Caller, bank_id: str) -> Bank:
        """What the bank would be if a write made it."""
        now = datetime.now(UTC)
        return Bank(
            key=0,
            tenant=caller.tenant,
            bank_id=bank_id,
            display_name="",
            description="",
            embedding_model=self._embedder.model_id,
            dimensions=self._embedder.dimensions,
            created_at=now,
            updated_at=now,
            position=0,
            etag="",
        )

    def gone(self, bank: Bank) -> None:
        """Let go of a bank that was found deleted."""
        self._handles.pop((bank.tenant, bank.bank_id), None)
        self._registry.drop(bank)

    async def create(  # noqa: PLR0913 - what a bank is made of, and the request's key
        self,
        caller: Caller,
        bank_id: str,
        *,
        display_name: str = "",
        description: str = "",
        embedding_model: str | None = None,
        dimensions: int | None = None,
        request_id: str | None = None,
    ) -> Bank:
        """Create a bank."""
        checks.bank_id(bank_id)
        self._check.bank_texts(display_name, description)
        self._check.space(embedding_model, dimensions)
        self._check.request_id(request_id)
        model, size = self._space(embedding_model, dimensions)
        # A repeated request answers the bank of its first time, which may be gone: the next use looks it up.
        self._handles.pop((caller.tenant, bank_id), None)
        return await self._store.create_bank(
            caller.tenant,
            bank_id,
            display_name=display_name,
            description=description,
            embedding_model=model,
            dimensions=size,
            request=key_of(request_id, "create_bank", bank_id, display_name, description, embedding_model, dimensions),
        )

    async def page(self, caller: Caller, *, prefix: str = "", page_size: int = 0, page_token: str = "") -> BankPage:
        """A page of banks by id."""
        if prefix:
            checks.bank_id(prefix, "prefix")
        limit = self._check.page_size(page_size)
        scope = ("banks", caller.tenant, prefix)
        after = str(decode_token(page_token, scope, str, 1)[0]) if page_token else ""
        banks = self._store.list_banks(caller.tenant, prefix=prefix, after=after, limit=limit + 1)
        token = encode_token(scope, [banks[limit - 1].bank_id]) if len(banks) > limit else ""
        return BankPage(tuple(banks[:limit]), token)

    async def update(
        self,
        caller: Caller,
        bank_id: str,
        *,
        display_name: str | None = None,
        description: str | None = None,
        etag: str | None = None,
        request_id: str | None = None,
    ) -> Bank:
        """Change what is not None."""
        checks.bank_id(bank_id)
        if display_name is None and description is None:
            raise ValidationError("is empty; change display_name, description or both", field="update_mask")
        self._check.bank_texts(display_name, description)
        self._check.request_id(request_id)
        bank = self.current(caller, bank_id)
        return await self._store.update_bank(
            bank,
            display_name=display_name,
            description=description,
            expected_etag=etag,
            request=key_of(request_id, "update_bank", bank_id, display_name, description, etag),
        )

    async def delete(
        self, caller: Caller, bank_id: str, *, etag: str | None = None, request_id: str | None = None
    ) -> int:
        """Delete the bank and everything in it."""
        checks.bank_id(bank_id)
        self._check.request_id(request_id)
        request = key_of(request_id, "delete_bank", bank_id, etag)
        # Before the bank is looked for: it is gone, or another one, when the request comes again.
        earlier = None if request is None else self._store.find_response(caller.tenant, request)
        if earlier is not None:
            return int(earlier)
        deletion = asyncio.create_task(self._delete(self.current(caller, bank_id), etag, request))
        self._deletions.add(deletion)
        deletion.add_done_callback(self._deletions.discard)
        # The store goes on with what it began, whatever the caller does; so what is known of the bank here must go too.
        return await asyncio.shield(deletion)

    async def watch(self, caller: Caller, bank_id: str, *, after: int | None = None) -> AsyncIterator[Change]:
        """The bank's changes, as they come."""
        checks.bank_id(bank_id)
        if after is not None:
            checks.integer(after, "after_position", 0, LARGEST_POSITION)
        bank = self.current(caller, bank_id)
        position = bank.position if after is None else after
        if position > bank.position:
            raise ValidationError(
                f"is {position}, but the bank is at {bank.position}: all changes up to {position} would be missed; "
                "watch from a position that this bank gave",
                field="after_position",
                metadata={"after_position": str(position), "position": str(bank.position)},
            )
        with self._registry.subscribed(bank) as changed:
            while True:
                changed.clear()
                changes = self._store.changes(bank, after=position, limit=WATCH_BATCH)
                for change in changes:
                    yield change
                    position = change.position
                if not changes:
                    if self.current(caller, bank_id).key != bank.key:
                        raise BankNotFound(bank_id)
                    await changed.wait()

    async def settle(self) -> None:
        """Wait for the deletions that were begun."""
        await asyncio.gather(*self._deletions, return_exceptions=True)

    async def _delete(self, bank: Bank, etag: str | None, request: RequestKey | None) -> int:
        name = (bank.tenant, bank.bank_id)
        self._leaving[name] += 1
        self._handles.pop(name, None)
        try:
            return await self._store.delete_bank(bank, expected_etag=etag, request=request)
        finally:
            self._leaving -= Counter([name])
            # A deletion that failed may have hidden the bank before that.
            current = self._store.get_bank(*name)
            if current is None or current.key != bank.key:
                self._registry.drop(bank)

    def _space(self, model: str | None, dimensions: int | None) -> tuple[str, int]:
        """The embedding space of a new bank."""
        own = self._embedder.model_id
        if model is None or model == own:
            if dimensions not in (None, self._embedder.dimensions):
                raise ValidationError(
                    f"{own!r} has {self._embedder.dimensions} dimensions, got {dimensions}; name the other model",
                    field="dimensions",
                )
            return own, self._embedder.dimensions
        if dimensions is None:
            raise ValidationError(f"is missing; this server does not know {model!r}", field="dimensions")
        return model, dimensions
