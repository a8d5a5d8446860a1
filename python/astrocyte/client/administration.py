"""The half of the remote backend that administers: banks, grants, keys, holds, the audit trail."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from astrocyte.client.connection import Connection
from astrocyte.client.wire import (
    encode_permissions,
    encoding,
    message,
)
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
from astrocyte.policy.operations.long_running import USUAL_WAIT_SECONDS
from astrocyte.services import convert
from astrocyte.v1 import admin_pb2


class RemoteAdministration(Connection):
    """The AdminService as methods of `astrocyte.policy.backend.Backend`."""

    async def create_bank(  # noqa: PLR0913 - the signature of Backend
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
        request = message(
            admin_pb2.CreateBankRequest,
            bank_id=bank_id,
            display_name=display_name,
            description=description,
            embedding_model=embedding_model,
            dimensions=dimensions,
            request_id=request_id,
        )
        return convert.decode_bank((await self._call(caller, self._admin.CreateBank, request)).bank)

    async def get_bank(self, caller: Caller, bank_id: str) -> Bank:
        """The bank with its current position."""
        request = message(admin_pb2.GetBankRequest, bank_id=bank_id)
        return convert.decode_bank((await self._call(caller, self._admin.GetBank, request)).bank)

    async def list_banks(
        self, caller: Caller, *, prefix: str = "", page_size: int = 0, page_token: str = ""
    ) -> BankPage:
        """A page of the caller's banks by id."""
        request = message(admin_pb2.ListBanksRequest, prefix=prefix, page_size=page_size, page_token=page_token)
        response = await self._call(caller, self._admin.ListBanks, request)
        return BankPage(tuple(convert.decode_bank(bank) for bank in response.banks), response.next_page_token)

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
        changes = {"display_name": display_name, "description": description}
        mask = {"paths": [name for name, value in changes.items() if value is not None]}
        request = message(
            admin_pb2.UpdateBankRequest,
            bank_id=bank_id,
            update_mask=mask,
            etag=etag,
            request_id=request_id,
            **changes,
        )
        return convert.decode_bank((await self._call(caller, self._admin.UpdateBank, request)).bank)

    async def delete_bank(
        self, caller: Caller, bank_id: str, *, etag: str | None = None, request_id: str | None = None
    ) -> int:
        """Delete the bank and everything in it; returns how many memories were visible."""
        request = message(admin_pb2.DeleteBankRequest, bank_id=bank_id, etag=etag, request_id=request_id)
        count: int = (await self._call(caller, self._admin.DeleteBank, request)).deleted_count
        return count

    async def bank_stats(self, caller: Caller, bank_id: str) -> BankStats:
        """Counts of the bank."""
        request = message(admin_pb2.GetBankStatsRequest, bank_id=bank_id)
        return convert.decode_bank_stats((await self._call(caller, self._admin.GetBankStats, request)).stats)

    async def server_info(self, caller: Caller) -> ServerInfo:
        """What runs at the other end."""
        response = await self._call(caller, self._admin.GetServerInfo, admin_pb2.GetServerInfoRequest())
        return convert.decode_server_info(response.server_info)

    async def grant(
        self, caller: Caller, bank_id: str, principal: str, permissions: Sequence[str], *, request_id: str | None = None
    ) -> Grant:
        """Give permissions."""
        request = message(
            admin_pb2.GrantRequest,
            bank_id=bank_id,
            principal=principal,
            permissions=encode_permissions(permissions, "permissions"),
            request_id=request_id,
        )
        return convert.decode_grant((await self._call(caller, self._admin.Grant, request)).grant)

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
        request = message(
            admin_pb2.RevokeRequest,
            bank_id=bank_id,
            principal=principal,
            permissions=encode_permissions(permissions, "permissions"),
            request_id=request_id,
        )
        response = await self._call(caller, self._admin.Revoke, request)
        return frozenset(convert.decode_permissions(response.permissions))

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
        """A page of the tenant's grants."""
        request = message(
            admin_pb2.ListGrantsRequest,
            bank_id=bank_id,
            principal=principal,
            include_revoked=revoked,
            page_size=page_size,
            page_token=page_token,
        )
        response = await self._call(caller, self._admin.ListGrants, request)
        return GrantPage(tuple(map(convert.decode_grant, response.grants)), response.next_page_token)

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
        with encoding({"name": name, "principal": principal, "expires_at": expires_at, "request_id": request_id}):
            request = convert.encode_create_api_key(name, principal, expires_at, request_id)
        response = await self._call(caller, self._admin.CreateApiKey, request)
        return convert.decode_api_key(response.api_key), response.secret

    async def list_bank_templates(self, caller: Caller) -> list[BankTemplate]:
        """The templates of the configuration."""
        response = await self._call(caller, self._admin.ListBankTemplates, admin_pb2.ListBankTemplatesRequest())
        return [convert.decode_bank_template(template) for template in response.bank_templates]

    async def list_bank_groups(self, caller: Caller) -> list[BankGroup]:
        """The groups of the configuration."""
        response = await self._call(caller, self._admin.ListBankGroups, admin_pb2.ListBankGroupsRequest())
        return [convert.decode_bank_group(group) for group in response.bank_groups]

    async def list_engines(self, caller: Caller) -> list[EngineInfo]:
        """The engines beside banks."""
        response = await self._call(caller, self._admin.ListEngines, admin_pb2.ListEnginesRequest())
        return [convert.decode_engine(engine) for engine in response.engines]

    async def list_api_keys(self, caller: Caller) -> list[KeyInfo]:
        """All keys of the tenant."""
        response = await self._call(caller, self._admin.ListApiKeys, admin_pb2.ListApiKeysRequest())
        return [convert.decode_api_key(key) for key in response.api_keys]

    async def revoke_api_key(self, caller: Caller, key_id: str, *, request_id: str | None = None) -> KeyInfo:
        """End a key."""
        request = message(admin_pb2.RevokeApiKeyRequest, key_id=key_id, request_id=request_id)
        return convert.decode_api_key((await self._call(caller, self._admin.RevokeApiKey, request)).api_key)

    async def check_access(
        self, caller: Caller, bank_id: str, *, principal: str | None = None, permission: str | None = None
    ) -> AccessCheck:
        """What a principal may do in a bank."""
        asked = encode_permissions([permission], "permission")[0] if permission else None
        request = message(admin_pb2.CheckAccessRequest, bank_id=bank_id, principal=principal, permission=asked)
        return convert.decode_access_check(await self._call(caller, self._admin.CheckAccess, request))

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
        request = message(
            admin_pb2.PlaceHoldRequest,
            bank_id=bank_id,
            hold_id=hold_id,
            memory_ids=memory_ids,
            tags=tags,
            reason=reason,
            request_id=request_id,
        )
        return convert.decode_hold((await self._call(caller, self._admin.PlaceHold, request)).hold)

    async def release_hold(self, caller: Caller, bank_id: str, hold_id: str, *, request_id: str | None = None) -> Hold:
        """Release a hold."""
        request = message(admin_pb2.ReleaseHoldRequest, bank_id=bank_id, hold_id=hold_id, request_id=request_id)
        return convert.decode_hold((await self._call(caller, self._admin.ReleaseHold, request)).hold)

    async def list_holds(
        self, caller: Caller, *, bank_id: str = "", released: bool = False, page_size: int = 0, page_token: str = ""
    ) -> HoldPage:
        """A page of holds."""
        request = message(
            admin_pb2.ListHoldsRequest,
            bank_id=bank_id,
            include_released=released,
            page_size=page_size,
            page_token=page_token,
        )
        response = await self._call(caller, self._admin.ListHolds, request)
        return HoldPage(tuple(map(convert.decode_hold, response.holds)), response.next_page_token)

    async def list_audit_events(
        self, caller: Caller, *, bank_id: str = "", page_size: int = 0, page_token: str = ""
    ) -> AuditPage:
        """A page of the trail."""
        request = message(admin_pb2.ListAuditEventsRequest, bank_id=bank_id, page_size=page_size, page_token=page_token)
        return convert.decode_audit_page(await self._call(caller, self._admin.ListAuditEvents, request))

    async def start_reindex(  # noqa: PLR0913 - the signature of Backend
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
        request = message(
            admin_pb2.StartReindexRequest,
            bank_id=bank_id,
            embedding_model=embedding_model,
            rollback=rollback,
            min_overlap=min_overlap,
            sample_size=sample,
            request_id=request_id,
        )
        return convert.decode_operation((await self._call(caller, self._admin.StartReindex, request)).operation)

    async def get_operation(self, caller: Caller, bank_id: str, operation_id: str) -> Operation:
        """One operation."""
        request = message(admin_pb2.GetOperationRequest, bank_id=bank_id, operation_id=operation_id)
        return convert.decode_operation((await self._call(caller, self._admin.GetOperation, request)).operation)

    async def list_operations(
        self, caller: Caller, *, bank_id: str = "", page_size: int = 0, page_token: str = ""
    ) -> OperationPage:
        """A page of operations."""
        request = message(admin_pb2.ListOperationsRequest, bank_id=bank_id, page_size=page_size, page_token=page_token)
        response = await self._call(caller, self._admin.ListOperations, request)
        return OperationPage(tuple(map(convert.decode_operation, response.operations)), response.next_page_token)

    async def wait_operation(
        self, caller: Caller, bank_id: str, operation_id: str, *, timeout_seconds: float | None = None
    ) -> Operation:
        """An operation once it is done, or when the time is up."""
        with encoding({"timeout": timeout_seconds}):
            timeout = convert.encode_timeout(timeout_seconds)
        request = message(admin_pb2.WaitOperationRequest, bank_id=bank_id, operation_id=operation_id, timeout=timeout)
        wait = USUAL_WAIT_SECONDS if timeout_seconds is None else max(timeout_seconds, 0.0)
        response = await self._call(caller, self._admin.WaitOperation, request, wait)
        return convert.decode_operation(response.operation)

    async def cancel_operation(
        self, caller: Caller, bank_id: str, operation_id: str, *, request_id: str | None = None
    ) -> Operation:
        """End an operation."""
        request = message(
            admin_pb2.CancelOperationRequest, bank_id=bank_id, operation_id=operation_id, request_id=request_id
        )
        return convert.decode_operation((await self._call(caller, self._admin.CancelOperation, request)).operation)
