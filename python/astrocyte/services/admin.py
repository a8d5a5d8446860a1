"""AdminService: decode, call the gate, encode."""

from __future__ import annotations

from astrocyte.errors import ValidationError
from astrocyte.model import Caller
from astrocyte.policy.backend import Backend
from astrocyte.services import convert
from astrocyte.services.draining import Draining
from astrocyte.v1 import admin_pb2

# What UpdateBank can change.
BANK_FIELDS = frozenset({"display_name", "description"})


class AdminServicer:
    """One method for each RPC of the service, by its name.

    Args:
        gate: Does the work.
        draining: Tells calls that wait that the server stops.
    """

    def __init__(self, gate: Backend, draining: Draining) -> None:
        self._gate = gate
        self._draining = draining

    async def CreateBank(self, request: admin_pb2.CreateBankRequest, caller: Caller) -> admin_pb2.CreateBankResponse:
        """Make a bank."""
        bank = await self._gate.create_bank(
            caller,
            request.bank_id,
            display_name=request.display_name,
            description=request.description,
            embedding_model=request.embedding_model or None,
            dimensions=request.dimensions or None,
            request_id=request.request_id or None,
        )
        return admin_pb2.CreateBankResponse(bank=convert.encode_bank(bank))

    async def GetBank(self, request: admin_pb2.GetBankRequest, caller: Caller) -> admin_pb2.GetBankResponse:
        """Read one bank."""
        return admin_pb2.GetBankResponse(bank=convert.encode_bank(await self._gate.get_bank(caller, request.bank_id)))

    async def ListBanks(self, request: admin_pb2.ListBanksRequest, caller: Caller) -> admin_pb2.ListBanksResponse:
        """Read a page of banks."""
        page = await self._gate.list_banks(
            caller, prefix=request.prefix, page_size=request.page_size, page_token=request.page_token
        )
        return admin_pb2.ListBanksResponse(
            banks=[convert.encode_bank(bank) for bank in page.banks], next_page_token=page.next_page_token
        )

    async def UpdateBank(self, request: admin_pb2.UpdateBankRequest, caller: Caller) -> admin_pb2.UpdateBankResponse:
        """Change how a bank presents itself."""
        named = set(request.update_mask.paths)
        if not named or named - BANK_FIELDS:
            raise ValidationError(
                f"must name one or more of {', '.join(sorted(BANK_FIELDS))}, got {sorted(named)!r:.200}",
                field="update_mask",
            )
        bank = await self._gate.update_bank(
            caller,
            request.bank_id,
            display_name=request.display_name if "display_name" in named else None,
            description=request.description if "description" in named else None,
            etag=request.etag or None,
            request_id=request.request_id or None,
        )
        return admin_pb2.UpdateBankResponse(bank=convert.encode_bank(bank))

    async def DeleteBank(self, request: admin_pb2.DeleteBankRequest, caller: Caller) -> admin_pb2.DeleteBankResponse:
        """Remove a bank."""
        count = await self._gate.delete_bank(
            caller, request.bank_id, etag=request.etag or None, request_id=request.request_id or None
        )
        return admin_pb2.DeleteBankResponse(deleted_count=count)

    async def GetBankStats(
        self, request: admin_pb2.GetBankStatsRequest, caller: Caller
    ) -> admin_pb2.GetBankStatsResponse:
        """Count what a bank holds."""
        stats = await self._gate.bank_stats(caller, request.bank_id)
        return admin_pb2.GetBankStatsResponse(stats=convert.encode_bank_stats(stats))

    async def GetServerInfo(
        self, request: admin_pb2.GetServerInfoRequest, caller: Caller
    ) -> admin_pb2.GetServerInfoResponse:
        """Tell what runs."""
        del request
        info = await self._gate.server_info(caller)
        return admin_pb2.GetServerInfoResponse(server_info=convert.encode_server_info(info))

    async def Grant(self, request: admin_pb2.GrantRequest, caller: Caller) -> admin_pb2.GrantResponse:
        """Give permissions."""
        grant = await self._gate.grant(
            caller,
            request.bank_id,
            request.principal,
            convert.decode_permissions(request.permissions),
            request_id=request.request_id or None,
        )
        return admin_pb2.GrantResponse(grant=convert.encode_grant(grant))

    async def Revoke(self, request: admin_pb2.RevokeRequest, caller: Caller) -> admin_pb2.RevokeResponse:
        """Take permissions."""
        taken = await self._gate.revoke(
            caller,
            request.bank_id,
            request.principal,
            convert.decode_permissions(request.permissions),
            request_id=request.request_id or None,
        )
        return admin_pb2.RevokeResponse(permissions=convert.encode_permissions(taken))

    async def ListGrants(self, request: admin_pb2.ListGrantsRequest, caller: Caller) -> admin_pb2.ListGrantsResponse:
        """Read a page of grants."""
        page = await self._gate.list_grants(
            caller,
            bank_id=request.bank_id,
            principal=request.principal,
            revoked=request.include_revoked,
            page_size=request.page_size,
            page_token=request.page_token,
        )
        grants = [convert.encode_grant(grant) for grant in page.grants]
        return admin_pb2.ListGrantsResponse(grants=grants, next_page_token=page.next_page_token)

    async def CheckAccess(self, request: admin_pb2.CheckAccessRequest, caller: Caller) -> admin_pb2.CheckAccessResponse:
        """Tell what somebody may do."""
        check = await self._gate.check_access(
            caller,
            request.bank_id,
            principal=request.principal or None,
            permission=convert.decode_permission(request.permission),
        )
        return convert.encode_access_check(check)

    async def PlaceHold(self, request: admin_pb2.PlaceHoldRequest, caller: Caller) -> admin_pb2.PlaceHoldResponse:
        """Keep memories from going."""
        hold = await self._gate.place_hold(
            caller,
            request.bank_id,
            reason=request.reason,
            memory_ids=list(request.memory_ids),
            tags=list(request.tags),
            hold_id=request.hold_id or None,
            request_id=request.request_id or None,
        )
        return admin_pb2.PlaceHoldResponse(hold=convert.encode_hold(hold))

    async def ReleaseHold(self, request: admin_pb2.ReleaseHoldRequest, caller: Caller) -> admin_pb2.ReleaseHoldResponse:
        """End a hold."""
        hold = await self._gate.release_hold(
            caller, request.bank_id, request.hold_id, request_id=request.request_id or None
        )
        return admin_pb2.ReleaseHoldResponse(hold=convert.encode_hold(hold))

    async def ListHolds(self, request: admin_pb2.ListHoldsRequest, caller: Caller) -> admin_pb2.ListHoldsResponse:
        """Read a page of holds."""
        page = await self._gate.list_holds(
            caller,
            bank_id=request.bank_id,
            released=request.include_released,
            page_size=request.page_size,
            page_token=request.page_token,
        )
        holds = [convert.encode_hold(hold) for hold in page.holds]
        return admin_pb2.ListHoldsResponse(holds=holds, next_page_token=page.next_page_token)

    async def ListAuditEvents(
        self, request: admin_pb2.ListAuditEventsRequest, caller: Caller
    ) -> admin_pb2.ListAuditEventsResponse:
        """Read a page of the trail."""
        page = await self._gate.list_audit_events(
            caller, bank_id=request.bank_id, page_size=request.page_size, page_token=request.page_token
        )
        return convert.encode_audit_page(page)

    async def StartReindex(
        self, request: admin_pb2.StartReindexRequest, caller: Caller
    ) -> admin_pb2.StartReindexResponse:
        """Move a bank to another embedding model."""
        operation = await self._gate.start_reindex(
            caller,
            request.bank_id,
            embedding_model=request.embedding_model or None,
            rollback=request.rollback,
            min_overlap=request.min_overlap if request.HasField("min_overlap") else None,
            sample=request.sample_size if request.HasField("sample_size") else None,
            request_id=request.request_id or None,
        )
        return admin_pb2.StartReindexResponse(operation=convert.encode_operation(operation))

    async def GetOperation(
        self, request: admin_pb2.GetOperationRequest, caller: Caller
    ) -> admin_pb2.GetOperationResponse:
        """Read one operation."""
        operation = await self._gate.get_operation(caller, request.bank_id, request.operation_id)
        return admin_pb2.GetOperationResponse(operation=convert.encode_operation(operation))

    async def ListOperations(
        self, request: admin_pb2.ListOperationsRequest, caller: Caller
    ) -> admin_pb2.ListOperationsResponse:
        """Read a page of operations."""
        page = await self._gate.list_operations(
            caller, bank_id=request.bank_id, page_size=request.page_size, page_token=request.page_token
        )
        operations = [convert.encode_operation(operation) for operation in page.operations]
        return admin_pb2.ListOperationsResponse(operations=operations, next_page_token=page.next_page_token)

    async def WaitOperation(
        self, request: admin_pb2.WaitOperationRequest, caller: Caller
    ) -> admin_pb2.WaitOperationResponse:
        """Wait for an operation."""
        with self._draining.interrupting():
            operation = await self._gate.wait_operation(
                caller, request.bank_id, request.operation_id, timeout_seconds=convert.decode_timeout(request)
            )
        return admin_pb2.WaitOperationResponse(operation=convert.encode_operation(operation))

    async def CancelOperation(
        self, request: admin_pb2.CancelOperationRequest, caller: Caller
    ) -> admin_pb2.CancelOperationResponse:
        """End an operation."""
        operation = await self._gate.cancel_operation(
            caller, request.bank_id, request.operation_id, request_id=request.request_id or None
        )
        return admin_pb2.CancelOperationResponse(operation=convert.encode_operation(operation))

    async def CreateApiKey(
        self, request: admin_pb2.CreateApiKeyRequest, caller: Caller
    ) -> admin_pb2.CreateApiKeyResponse:
        """Make a key."""
        made, secret = await self._gate.create_api_key(
            caller,
            request.name,
            request.principal,
            expires_at=convert.decode_create_api_key(request),
            request_id=request.request_id or None,
        )
        return admin_pb2.CreateApiKeyResponse(api_key=convert.encode_api_key(made), secret=secret)

    async def ListBankTemplates(
        self, request: admin_pb2.ListBankTemplatesRequest, caller: Caller
    ) -> admin_pb2.ListBankTemplatesResponse:
        """Read the templates."""
        del request
        templates = await self._gate.list_bank_templates(caller)
        return admin_pb2.ListBankTemplatesResponse(bank_templates=map(convert.encode_bank_template, templates))

    async def ListBankGroups(
        self, request: admin_pb2.ListBankGroupsRequest, caller: Caller
    ) -> admin_pb2.ListBankGroupsResponse:
        """Read the groups."""
        del request
        groups = await self._gate.list_bank_groups(caller)
        return admin_pb2.ListBankGroupsResponse(bank_groups=map(convert.encode_bank_group, groups))

    async def ListEngines(self, request: admin_pb2.ListEnginesRequest, caller: Caller) -> admin_pb2.ListEnginesResponse:
        """Read the engines."""
        del request
        return admin_pb2.ListEnginesResponse(engines=map(convert.encode_engine, await self._gate.list_engines(caller)))

    async def ListApiKeys(self, request: admin_pb2.ListApiKeysRequest, caller: Caller) -> admin_pb2.ListApiKeysResponse:
        """List keys."""
        del request
        keys = await self._gate.list_api_keys(caller)
        return admin_pb2.ListApiKeysResponse(api_keys=[convert.encode_api_key(key) for key in keys])

    async def RevokeApiKey(
        self, request: admin_pb2.RevokeApiKeyRequest, caller: Caller
    ) -> admin_pb2.RevokeApiKeyResponse:
        """End a key."""
        ended = await self._gate.revoke_api_key(caller, request.key_id, request_id=request.request_id or None)
        return admin_pb2.RevokeApiKeyResponse(api_key=convert.encode_api_key(ended))
