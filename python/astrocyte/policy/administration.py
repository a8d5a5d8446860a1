"""The half of the gate that administers: banks, grants, keys, holds, the audit trail."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from datetime import datetime
from typing import ParamSpec, TypeVar

from astrocyte.model import (
    AccessCheck,
    AuditPage,
    Bank,
    BankGroup,
    BankPage,
    BankStats,
    BankTemplate,
    Caller,
    EngineInfo,
    Grant,
    GrantPage,
    Hold,
    HoldPage,
    KeyInfo,
    Operation,
    OperationPage,
    Permission,
    ServerInfo,
)
from astrocyte.pipelines.index.registry import IndexRegistry
from astrocyte.policy.auth.access_control import Access
from astrocyte.policy.auth.api_keys import Keys
from astrocyte.policy.auth.grants import Granting
from astrocyte.policy.banks.lifecycle import Banks
from astrocyte.policy.banks.selection import BankSets
from astrocyte.policy.engines.writes import EngineWriting
from astrocyte.policy.glob_patterns import ANY
from astrocyte.policy.governance.legal_holds import Holding
from astrocyte.policy.operations.long_running import Operating
from astrocyte.policy.policies import Policies
from astrocyte.stores.protocols import MemoryStore

P = ParamSpec("P")
T = TypeVar("T")


class Administration:
    """What `Gate` does beside remembering; it sets what is named here."""

    _access: Access
    _bank_sets: BankSets
    _banks: Banks
    _engine_writing: EngineWriting
    _executor: Executor
    _granting: Granting
    _holding: Holding
    _info: ServerInfo
    _operating: Operating
    _policies: Policies
    _registry: IndexRegistry
    _store: MemoryStore
    keys: Keys

    async def create_bank(  # noqa: PLR0913 - what a bank is made of, and the request's key
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
        return await self._banks.create(
            caller,
            bank_id,
            display_name=display_name,
            description=description,
            embedding_model=embedding_model,
            dimensions=dimensions,
            request_id=request_id,
        )

    async def get_bank(self, caller: Caller, bank_id: str) -> Bank:
        """The bank as it is now."""
        return self._banks.described(self._banks.current(caller, "GetBank", bank_id))

    async def list_banks(
        self, caller: Caller, *, prefix: str = "", page_size: int = 0, page_token: str = ""
    ) -> BankPage:
        """A page of banks by id."""
        return await self._banks.page(caller, prefix=prefix, page_size=page_size, page_token=page_token)

    async def update_bank(
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
        return await self._banks.update(
            caller, bank_id, display_name=display_name, description=description, etag=etag, request_id=request_id
        )

    async def delete_bank(
        self, caller: Caller, bank_id: str, *, etag: str | None = None, request_id: str | None = None
    ) -> int:
        """Delete the bank and everything in it."""
        if caller.hops:
            self._banks.require(caller, "DeleteBank", bank_id)
            self._engine_writing.check_forget(caller, bank_id)
        async with self._engine_writing.turn(caller, bank_id):
            count = await self._banks.delete(caller, bank_id, etag=etag, request_id=request_id)
            await self._engine_writing.forget_bank(caller, bank_id)
        return count

    async def bank_stats(self, caller: Caller, bank_id: str) -> BankStats:
        """Counts of the bank."""
        bank = self._banks.current(caller, "GetBankStats", bank_id)
        stats = await self._in_executor(self._store.bank_stats, bank)
        index = self._registry.peek(bank)
        if index is None:
            return stats
        held = await self._in_executor(index.stats)
        return replace(stats, indexed_position=index.core.position, index_bytes=index.core.stats()["bytes"], index=held)

    async def server_info(self, caller: Caller) -> ServerInfo:
        """What runs, and what the indexes of all banks hold; the same for every caller."""
        self._access.require_name(caller, "GetServerInfo")
        return replace(self._info, index_memory=self._registry.memory)

    async def grant(
        self, caller: Caller, bank_id: str, principal: str, permissions: Sequence[str], *, request_id: str | None = None
    ) -> Grant:
        """Give permissions."""
        return await self._granting.grant(caller, bank_id, principal, permissions, request_id=request_id)

    async def revoke(
        self,
        caller: Caller,
        bank_id: str,
        principal: str,
        permissions: Sequence[str] = (),
        *,
        request_id: str | None = None,
    ) -> frozenset[Permission]:
        """Take permissions."""
        return await self._granting.revoke(caller, bank_id, principal, permissions, request_id=request_id)

    async def list_grants(
        self,
        caller: Caller,
        *,
        bank_id: str = "",
        principal: str = "",
        revoked: bool = False,
        page_size: int = 0,
        page_token: str = "",
    ) -> GrantPage:
        """A page of grants."""
        return await self._granting.page(
            caller,
            bank_id=bank_id,
            principal=principal,
            revoked=revoked,
            page_size=page_size,
            page_token=page_token,
        )

    async def create_api_key(
        self,
        caller: Caller,
        name: str,
        principal: str,
        *,
        expires_at: datetime | None = None,
        request_id: str | None = None,
    ) -> tuple[KeyInfo, str]:
        """Make a key."""
        return await self.keys.create(caller, name, principal, expires_at=expires_at, request_id=request_id)

    async def list_bank_templates(self, caller: Caller) -> list[BankTemplate]:
        """The templates of the configuration."""
        return self._access.templates(caller)

    async def list_bank_groups(self, caller: Caller) -> list[BankGroup]:
        """The groups of the configuration."""
        self._access.require_pattern(caller, "ListBankGroups", ANY)
        return self._bank_sets.groups()

    async def list_engines(self, caller: Caller) -> list[EngineInfo]:
        """The engines of the configuration."""
        self._access.require_pattern(caller, "ListEngines", ANY)
        return await self._engine_writing.describe(caller)

    async def list_api_keys(self, caller: Caller) -> list[KeyInfo]:
        """All keys of the tenant."""
        return self.keys.listed(caller)

    async def revoke_api_key(self, caller: Caller, key_id: str, *, request_id: str | None = None) -> KeyInfo:
        """End a key."""
        return await self.keys.revoke(caller, key_id, request_id=request_id)

    async def check_access(
        self, caller: Caller, bank_id: str, *, principal: str | None = None, permission: str | None = None
    ) -> AccessCheck:
        """What a principal may do in a bank."""
        return await self._granting.check(caller, bank_id, principal=principal, permission=permission)

    async def place_hold(  # noqa: PLR0913 - the parts of a hold, and the request's key
        self,
        caller: Caller,
        bank_id: str,
        *,
        reason: str,
        memory_ids: Sequence[str] = (),
        tags: Sequence[str] = (),
        hold_id: str | None = None,
        request_id: str | None = None,
    ) -> Hold:
        """Place a hold."""
        return await self._holding.place(
            caller,
            bank_id,
            reason=reason,
            memory_ids=memory_ids,
            tags=tags,
            hold_id=hold_id,
            request_id=request_id,
        )

    async def release_hold(self, caller: Caller, bank_id: str, hold_id: str, *, request_id: str | None = None) -> Hold:
        """Release a hold."""
        return await self._holding.release(caller, bank_id, hold_id, request_id=request_id)

    async def list_holds(
        self, caller: Caller, *, bank_id: str = "", released: bool = False, page_size: int = 0, page_token: str = ""
    ) -> HoldPage:
        """A page of holds."""
        return await self._holding.page(
            caller, bank_id=bank_id, released=released, page_size=page_size, page_token=page_token
        )

    async def list_audit_events(
        self, caller: Caller, *, bank_id: str = "", page_size: int = 0, page_token: str = ""
    ) -> AuditPage:
        """A page of the trail."""
        return await self._holding.trail(caller, bank_id=bank_id, page_size=page_size, page_token=page_token)

    async def start_reindex(  # noqa: PLR0913 - the parts of a reindex, and the request's key
        self,
        caller: Caller,
        bank_id: str,
        *,
        embedding_model: str | None = None,
        rollback: bool = False,
        min_overlap: float | None = None,
        sample: int | None = None,
        request_id: str | None = None,
    ) -> Operation:
        """Move a bank to another embedding model."""
        return await self._operating.start_reindex(
            caller,
            bank_id,
            embedding_model=embedding_model,
            rollback=rollback,
            min_overlap=min_overlap,
            sample=sample,
            request_id=request_id,
        )

    async def get_operation(self, caller: Caller, bank_id: str, operation_id: str) -> Operation:
        """One operation."""
        return await self._operating.get(caller, bank_id, operation_id)

    async def list_operations(
        self, caller: Caller, *, bank_id: str = "", page_size: int = 0, page_token: str = ""
    ) -> OperationPage:
        """A page of operations."""
        return await self._operating.page(caller, bank_id=bank_id, page_size=page_size, page_token=page_token)

    async def wait_operation(
        self, caller: Caller, bank_id: str, operation_id: str, *, timeout_seconds: float | None = None
    ) -> Operation:
        """An operation once it is done, or when the time is up."""
        return await self._operating.wait(caller, bank_id, operation_id, timeout_seconds=timeout_seconds)

    async def cancel_operation(
        self, caller: Caller, bank_id: str, operation_id: str, *, request_id: str | None = None
    ) -> Operation:
        """End an operation."""
        return await self._operating.cancel(caller, bank_id, operation_id, request_id=request_id)

    async def _in_executor(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """A read that may take longer than the loop should wait."""
        return await asyncio.get_running_loop().run_in_executor(self._executor, lambda: work(*args, **kwargs))
