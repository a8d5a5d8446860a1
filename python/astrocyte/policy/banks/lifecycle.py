"""The banks of all callers: their handles, creation, deletion and changes."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from astrocyte.api.requests import CreateBank, DeleteBank, GetBank, ListBanks, UpdateBank, Watch
from astrocyte.errors import AccessDenied, AlreadyExists, BankNotFound, RequestIdReused, ValidationError
from astrocyte.model import Bank, BankPage, Caller, Change
from astrocyte.pipelines.index.embedding_spaces import EmbeddingSpaces
from astrocyte.pipelines.index.registry import IndexRegistry
from astrocyte.policy.auth.access_control import Access
from astrocyte.policy.banks.selection import BankSet
from astrocyte.policy.requests import field_checks
from astrocyte.policy.requests.page_tokens import LARGEST_POSITION, decode_token, encode_token
from astrocyte.policy.requests.pages import cut_page
from astrocyte.policy.requests.request_keys import key_of
from astrocyte.policy.requests.validation import Validator
from astrocyte.policy.settings.bank_settings import Overrides
from astrocyte.stores.protocols import MemoryStore
from astrocyte.stores.records import RequestKey
from astrocyte.stores.sharing import Told, Topic

# Banks read at once for a page: most of a tenant's may be none that the caller may read.
LISTED_AT_ONCE = 1_000
# Changes read at once for a watcher: a screenful, so that a slow one does not hold many.
WATCH_BATCH = 256


class Banks:
    """The banks of the gate; see `astrocyte.api.Backend` for what each operation does and raises.

    Args:
        store: Where they are.
        registry: Their indexes.
        spaces: The embedders; the space of the default one is that of a bank which names none.
        check: The limits of requests.
        access: Who may do what. A bank is only ever found with the name of what is to be done there.
        overrides: The template and the profile of each bank.
        at_first_use: Called once, when a bank is first asked for.
        confirm: Waits until other processes keep nothing of a deleted bank; None where there are none.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - the gate hands over what it guards
        self,
        store: MemoryStore,
        registry: IndexRegistry,
        spaces: EmbeddingSpaces,
        check: Validator,
        access: Access,
        overrides: Overrides,
        at_first_use: Callable[[], None],
        confirm: Callable[[int], Awaitable[None]] | None = None,
    ) -> None:
        self._confirm = confirm
        self._store = store
        self._registry = registry
        self._spaces = spaces
        self._embedder = spaces.default
        self._check = check
        self._access = access
        self._overrides = overrides
        self._at_first_use = at_first_use
        self._used = False
        # Handles of banks that exist; what changes with time (position, etag, names) is never read from here.
        self.handles: dict[tuple[str, str], Bank] = {}
        # Banks whose deletion runs: no handle of these is kept, since any moment may be the one that they go.
        self._leaving: Counter[tuple[str, str]] = Counter()
        self._deletions: set[asyncio.Task[int]] = set()
        self._at_deletion: list[Callable[[Bank], None]] = []
        store.follow(self._on_told)

    def at_deletion(self, listener: Callable[[Bank], None]) -> None:
        """Call the listener with each deleted bank, even if its caller has gone."""
        self._at_deletion.append(listener)

    def _on_told(self, told: Told) -> None:
        """Keep nothing of a bank that another process deleted."""
        if told.topic is Topic.DELETED:
            for bank in [bank for bank in self.handles.values() if bank.key == told.bank]:
                self.handles.pop((bank.tenant, bank.bank_id), None)
                for listener in self._at_deletion:
                    listener(bank)

    def handle(self, caller: Caller, operation: str, bank_id: str) -> Bank:
        """The cached bank, whose position may be old.

        Raises:
            AccessDenied: The caller may not do this there.
            BankNotFound: There is none.
        """
        known = self.handles.get((caller.tenant, bank_id))
        if known is None:
            return self.current(caller, operation, bank_id)
        self._access.require(caller, operation, bank_id, known)
        return self._spaces.fresh(known)

    def current(self, caller: Caller, operation: str, bank_id: str) -> Bank:
        """The bank as stored now; raises as `handle` does."""
        field_checks.bank_id(bank_id)
        self._access.require(caller, operation, bank_id)
        return self._read(caller, bank_id)

    def described(self, bank: Bank) -> Bank:
        """The bank with the template and the profile that its name has in the configuration."""
        profile = self._overrides.of[bank.bank_id].profile or ""
        return replace(bank, template=self._overrides.template(bank.bank_id), profile=profile)

    def expected(self, caller: Caller, operation: str, bank_id: str) -> Bank:
        """The bank, or its draft where the call creates it: a draft has key 0, and `ready` creates the bank.

        Raises:
            AccessDenied: The caller may not do this there.
            BankNotFound: There is none, and the call makes none.
        """
        try:
            return self.handle(caller, operation, bank_id)
        except BankNotFound:
            if not self._access.makes(caller, operation, bank_id):
                raise
        return self.draft(caller, bank_id)

    def expected_each(self, caller: Caller, operation: str, bank_ids: Sequence[str]) -> list[Bank]:
        """As `expected` for every bank; raises for the first one that is refused."""
        tenant, handles = caller.tenant, self.handles
        try:
            known = [handles[tenant, bank_id] for bank_id in bank_ids]
        except KeyError:
            return [self.expected(caller, operation, bank_id) for bank_id in bank_ids]
        self._access.require_each(caller, operation, bank_ids, handles)
        return self._spaces.fresh_each(known)

    async def ready(self, caller: Caller, operation: str, bank: Bank) -> Bank:
        """An expected bank, created if it does not exist, once nothing else can refuse the call."""
        return bank if bank.key else await self.make(caller, bank.bank_id, operation)

    async def ready_each(self, caller: Caller, operation: str, banks: Sequence[Bank]) -> Sequence[Bank]:
        """As `ready` of every bank, in order."""
        for bank in banks:
            if not bank.key:
                return [await self.ready(caller, operation, bank) for bank in banks]
        return banks

    def _read(self, caller: Caller, bank_id: str) -> Bank:
        """The bank from the store; its handle is kept."""
        if not self._used:
            # Now a loop runs for sure; when the gate was built, perhaps not.
            self._used = True
            self._at_first_use()
        bank = self._store.get_bank(caller.tenant, bank_id)
        if bank is None:
            raise BankNotFound(bank_id)
        if (caller.tenant, bank_id) not in self._leaving:
            self.handles[caller.tenant, bank_id] = bank
        return bank

    def require(self, caller: Caller, operation: str, bank_id: str, path: str = "bank_id") -> None:
        """Check the caller's permission before any other part of the call; see `Access.require`."""
        field_checks.bank_id(bank_id, path)
        self._access.require(caller, operation, bank_id, self.handles.get((caller.tenant, bank_id)))

    def require_each(self, caller: Caller, operation: str, asked: BankSet) -> None:
        """As `require` for every bank of a call, before any of them is read; checks their ids."""
        self._access.require_each(caller, operation, asked.bank_ids, self.handles)

    def known(self, caller: Caller, bank_id: str) -> Bank | None:
        """The bank, perhaps with an old position; None if it does not exist. Checks no permission."""
        return self.handles.get((caller.tenant, bank_id)) or self._store.get_bank(caller.tenant, bank_id)

    def draft(self, caller: Caller, bank_id: str) -> Bank:
        """The bank as a write would make it."""
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
            created_by=self._access.name(caller),
        )

    def gone(self, bank: Bank) -> None:
        """Remove a deleted bank from the cache."""
        self.handles.pop((bank.tenant, bank.bank_id), None)
        self._registry.drop(bank)

    async def create_bank(self, caller: Caller, request: CreateBank) -> Bank:
        """Create a bank."""
        bank_id = request.bank_id
        self.require(caller, "CreateBank", bank_id)
        self._check.bank_texts(request.display_name, request.description)
        self._check.space(request.embedding_model, request.dimensions)
        self._check.request_id(request.request_id)
        model, size = self._space(request.embedding_model, request.dimensions)
        key = key_of(
            request.request_id,
            "create_bank",
            bank_id,
            request.display_name,
            request.description,
            request.embedding_model,
            request.dimensions,
        )
        # A repeated request answers the bank of its first time, which may be gone: the next use looks it up.
        self.handles.pop((caller.tenant, bank_id), None)
        made = await self._store.create_bank(
            caller.tenant,
            bank_id,
            display_name=request.display_name,
            description=request.description,
            embedding_model=model,
            dimensions=size,
            created_by=self._access.name(caller),
            request=key,
        )
        return self.described(made)

    async def get_bank(self, caller: Caller, request: GetBank) -> Bank:
        """The bank as it is now."""
        return self.described(self.current(caller, "GetBank", request.bank_id))

    async def make(self, caller: Caller, bank_id: str, operation: str = "Retain") -> Bank:
        """The bank of an admitted retain or recall: created, unless a concurrent call created it.

        Raises:
            AccessDenied: Somebody else was faster, and the caller may not do this there.
        """
        try:
            return await self._store.create_bank(
                caller.tenant,
                bank_id,
                display_name="",
                description="",
                embedding_model=self._embedder.model_id,
                dimensions=self._embedder.dimensions,
                created_by=self._access.name(caller),
            )
        except AlreadyExists:
            return self.current(caller, operation, bank_id)

    async def list_banks(self, caller: Caller, request: ListBanks) -> BankPage:
        """A page of the banks that the caller may read, by id."""
        prefix, page_token = request.prefix, request.page_token
        self._access.require_name(caller, "ListBanks")
        if prefix:
            field_checks.bank_id(prefix, "prefix")
        limit = self._check.page_limit(request.page_size)
        scope = ("banks", caller.tenant, prefix)
        after = str(decode_token(page_token, scope, str, 1)[0]) if page_token else ""
        readable = await self._readable(caller, prefix, after, limit.entries + 1)
        banks, last = cut_page([(bank.bank_id, self.described(bank)) for bank in readable], limit)
        return BankPage(banks, "" if last is None else encode_token(scope, [last]))

    async def _readable(self, caller: Caller, prefix: str, after: str, wanted: int) -> list[Bank]:
        """The first banks after an id that the caller may read."""
        found: list[Bank] = []
        while True:
            banks = self._store.list_banks(
                caller.tenant, prefix=prefix, after=after, limit=max(wanted, LISTED_AT_ONCE) if found else wanted
            )
            found += self._access.readable(caller, banks)
            if len(found) >= wanted or not banks:
                return found[:wanted]
            after = banks[-1].bank_id
            # A tenant may have very many that this caller may not read: others get their turn between two looks.
            await asyncio.sleep(0)

    async def update_bank(self, caller: Caller, request: UpdateBank) -> Bank:
        """Change the fields that are not None."""
        bank_id, display_name, description = request.bank_id, request.display_name, request.description
        self.require(caller, "UpdateBank", bank_id)
        if display_name is None and description is None:
            raise ValidationError("is empty; change display_name, description or both", field="update_mask")
        self._check.bank_texts(display_name, description)
        self._check.request_id(request.request_id)
        bank = self.current(caller, "UpdateBank", bank_id)
        changed = await self._store.update_bank(
            bank,
            display_name=display_name,
            description=description,
            expected_etag=request.etag,
            request=key_of(request.request_id, "update_bank", bank_id, display_name, description, request.etag),
        )
        return self.described(changed)

    async def delete(self, caller: Caller, request: DeleteBank) -> int:
        """Delete the bank and everything in it."""
        bank_id, etag = request.bank_id, request.etag
        field_checks.bank_id(bank_id)
        self._check.request_id(request.request_id)
        # The principal is a part of what makes a request the same one: see below.
        key = key_of(request.request_id, "delete_bank", bank_id, etag, self._access.name(caller))
        try:
            self._access.require(caller, "DeleteBank", bank_id)
        except AccessDenied:
            # With the bank its owner's right to it is gone; the answer to this very request is still the owner's.
            if (earlier := self._deleted(caller, key)) is not None:
                await self._store.finish_deletions()
                return earlier
            raise
        # Before the bank is looked for: it is gone, or another one, when the request comes again.
        earlier_response = None if key is None else self._store.find_response(caller.tenant, key)
        if earlier_response is not None:
            # The call that hid the bank may have failed after that: this one is answered when nothing is left of it.
            await self._store.finish_deletions()
            return int(earlier_response)
        bank = self.current(caller, "DeleteBank", bank_id)
        deletion = asyncio.create_task(self._delete(bank, etag, self._access.name(caller), key))
        self._deletions.add(deletion)
        deletion.add_done_callback(self._deletions.discard)
        # The store goes on with what it began, whatever the caller does; so what is known of the bank here must go too.
        return await asyncio.shield(deletion)

    def _deleted(self, caller: Caller, request: RequestKey | None) -> int | None:
        """The answer to an equal earlier request, for a caller without permission for other answers."""
        try:
            response = None if request is None else self._store.find_response(caller.tenant, request)
        except RequestIdReused:
            return None
        return None if response is None else int(response)

    async def watch(self, caller: Caller, request: Watch) -> AsyncIterator[Change]:
        """The bank's changes, as they come, for as long as the caller may read them."""
        bank_id, after = request.bank_id, request.after_position
        self.require(caller, "Watch", bank_id)
        if after is not None:
            field_checks.integer(after, "after_position", 0, LARGEST_POSITION)
        bank = self.current(caller, "Watch", bank_id)
        position = bank.position if after is None else after
        if position > bank.position:
            raise ValidationError(
                f"is {position}, but the bank is at position {bank.position}; pass a position that this bank returned",
                field="after_position",
                metadata={"after_position": str(position), "position": str(bank.position)},
            )
        with self._registry.subscribed(bank) as changed:
            while True:
                changed.clear()
                changes = self._store.changes(bank, after=position, limit=WATCH_BATCH)
                # What another process did to the caller's rights before these changes.
                self._store.refresh()
                for change in changes:
                    # The caller may take its time, and lose the right meanwhile.
                    self._access.require(caller, "Watch", bank_id, bank)
                    yield change
                    position = change.position
                if not changes:
                    if self.current(caller, "Watch", bank_id).key != bank.key:
                        raise BankNotFound(bank_id)
                    await changed.wait()

    async def settle(self) -> None:
        """Wait for the deletions in progress."""
        await asyncio.gather(*self._deletions, return_exceptions=True)

    async def _delete(self, bank: Bank, etag: str | None, principal: str, request: RequestKey | None) -> int:
        name = (bank.tenant, bank.bank_id)
        self._leaving[name] += 1
        self.handles.pop(name, None)
        try:
            count = await self._store.delete_bank(bank, expected_etag=etag, principal=principal, request=request)
        finally:
            self._leaving -= Counter([name])
            # A deletion that failed may have hidden the bank before that.
            current = self._store.get_bank(*name)
            if current is None or current.key != bank.key:
                await self._registry.discard(bank)
                for listener in self._at_deletion:
                    listener(bank)
                if self._confirm is not None:
                    await self._confirm(bank.key)
        return count

    def _space(self, model: str | None, dimensions: int | None) -> tuple[str, int]:
        """The embedding space of a new bank."""
        own = self._embedder if model is None else self._spaces.embedder(model)
        if own is not None:
            if dimensions not in (None, own.dimensions):
                raise ValidationError(
                    f"{own.model_id!r} has {own.dimensions} dimensions, got {dimensions}; name the other model",
                    field="dimensions",
                )
            return own.model_id, own.dimensions
        if model is None or dimensions is None:
            raise ValidationError(
                f"is missing and this server has no model {model!r}; send the dimensions of the model",
                field="dimensions",
            )
        return model, dimensions
