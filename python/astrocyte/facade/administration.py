"""The half of the Python API that administers: banks, grants, keys, holds, the audit trail."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from astrocyte.api import Backend, requests
from astrocyte.facade import keywords
from astrocyte.facade.keywords import Texts
from astrocyte.model import (
    AccessCheck,
    AstrocyteContext,
    AuditPage,
    Bank,
    BankGroup,
    BankPage,
    BankStats,
    BankTemplate,
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
    SourceInfo,
)
from astrocyte.policy.governance.audit_verification import Verification, verify

# `Administration` has methods that hide `list` in a class body.
Keys = list[KeyInfo]
Templates = list[BankTemplate]
Groups = list[BankGroup]
Engines = list[EngineInfo]
Sources = list[SourceInfo]


class Administration:
    """The administrative calls of `Astrocyte`. ``context`` names the caller, the local user by default."""

    _backend: Backend

    async def create_bank(  # noqa: PLR0913 - what a bank is made of, and the request's key
        self,
        bank_id: str,
        *,
        display_name: str = "",
        description: str = "",
        embedding_model: str | None = None,
        dimensions: int | None = None,
        request_id: str | None = None,
        context: AstrocyteContext | None = None,
    ) -> Bank:
        """Create a bank. One with an embedding model of your own takes your vectors only."""
        return await self._backend.call(
            keywords.caller_of(context),
            requests.CreateBank(bank_id, display_name, description, embedding_model, dimensions, request_id),
        )

    async def get_bank(self, bank_id: str, *, context: AstrocyteContext | None = None) -> Bank:
        """One bank."""
        return await self._backend.call(keywords.caller_of(context), requests.GetBank(bank_id))

    async def list_banks(
        self, *, prefix: str = "", page_size: int = 0, page_token: str = "", context: AstrocyteContext | None = None
    ) -> BankPage:
        """A page of banks by id."""
        return await self._backend.call(keywords.caller_of(context), requests.ListBanks(prefix, page_size, page_token))

    async def update_bank(
        self,
        bank_id: str,
        *,
        display_name: str | None = None,
        description: str | None = None,
        etag: str | None = None,
        request_id: str | None = None,
        context: AstrocyteContext | None = None,
    ) -> Bank:
        """Change the fields that are not None."""
        return await self._backend.call(
            keywords.caller_of(context), requests.UpdateBank(bank_id, display_name, description, etag, request_id)
        )

    async def delete_bank(
        self,
        bank_id: str,
        *,
        etag: str | None = None,
        request_id: str | None = None,
        context: AstrocyteContext | None = None,
    ) -> int:
        """Delete a bank and everything in it; returns how many memories it showed."""
        return await self._backend.call(keywords.caller_of(context), requests.DeleteBank(bank_id, etag, request_id))

    async def bank_stats(self, bank_id: str, *, context: AstrocyteContext | None = None) -> BankStats:
        """Counts of a bank."""
        return await self._backend.call(keywords.caller_of(context), requests.GetBankStats(bank_id))

    async def grant_access(
        self,
        bank_id: str,
        principal: str,
        permissions: Sequence[str],
        *,
        request_id: str | None = None,
        context: AstrocyteContext | None = None,
    ) -> Grant:
        """Give a principal permissions on a bank: any of read, write, forget, admin, or ``*`` for all four.

        Both names may be patterns, in which ``*`` stands for any characters and ``?`` for one.
        """
        return await self._backend.call(
            keywords.caller_of(context),
            requests.Grant(bank_id, principal, keywords.texts(permissions, "permissions"), request_id),
        )

    async def revoke_access(
        self,
        bank_id: str,
        principal: str,
        permissions: Sequence[str] | None = None,
        *,
        request_id: str | None = None,
        context: AstrocyteContext | None = None,
    ) -> frozenset[Permission]:
        """Take permissions (None: all) of a grant for these two names; returns those that it gave."""
        return await self._backend.call(
            keywords.caller_of(context),
            requests.Revoke(bank_id, principal, keywords.texts(permissions, "permissions"), request_id),
        )

    async def list_grants(
        self,
        *,
        bank_id: str = "",
        principal: str = "",
        include_revoked: bool = False,
        page_size: int = 0,
        page_token: str = "",
        context: AstrocyteContext | None = None,
    ) -> GrantPage:
        """A page of grants: those that mean the bank and the principal where they are named, else all."""
        return await self._backend.call(
            keywords.caller_of(context), requests.ListGrants(bank_id, principal, include_revoked, page_size, page_token)
        )

    async def check_access(
        self,
        bank_id: str,
        *,
        principal: str | None = None,
        permission: str | None = None,
        context: AstrocyteContext | None = None,
    ) -> AccessCheck:
        """The permissions of a principal (None: the caller) in a bank; ``allowed`` is about the permission, or any."""
        return await self._backend.call(
            keywords.caller_of(context), requests.CheckAccess(bank_id, principal, permission)
        )

    async def create_api_key(
        self,
        name: str,
        principal: str,
        *,
        expires_at: datetime | None = None,
        request_id: str | None = None,
        context: AstrocyteContext | None = None,
    ) -> tuple[KeyInfo, str]:
        """Make an API key for a principal; the second part of the answer is the key, which is never shown again."""
        return await self._backend.call(
            keywords.caller_of(context), requests.CreateApiKey(name, principal, expires_at, request_id)
        )

    async def list_bank_templates(self, *, context: AstrocyteContext | None = None) -> Templates:
        """The bank templates of the configuration: what holds for all banks whose names have one form."""
        return await self._backend.call(keywords.caller_of(context), requests.ListBankTemplates())

    async def list_bank_groups(self, *, context: AstrocyteContext | None = None) -> Groups:
        """The bank groups of the configuration: sets of banks that a recall can name."""
        return await self._backend.call(keywords.caller_of(context), requests.ListBankGroups())

    async def list_engines(self, *, context: AstrocyteContext | None = None) -> Engines:
        """The engines that stand beside banks, each asked how it is."""
        return await self._backend.call(keywords.caller_of(context), requests.ListEngines())

    async def list_sources(self, *, context: AstrocyteContext | None = None) -> Sources:
        """The ingest sources with their health and counts."""
        return await self._backend.call(keywords.caller_of(context), requests.ListSources())

    async def list_api_keys(self, *, context: AstrocyteContext | None = None) -> Keys:
        """All API keys of the tenant that were made by call, by age."""
        return await self._backend.call(keywords.caller_of(context), requests.ListApiKeys())

    async def revoke_api_key(
        self, key_id: str, *, request_id: str | None = None, context: AstrocyteContext | None = None
    ) -> KeyInfo:
        """End an API key from the next call on."""
        return await self._backend.call(keywords.caller_of(context), requests.RevokeApiKey(key_id, request_id))

    async def place_hold(  # noqa: PLR0913 - the parts of a hold, and the request's key
        self,
        bank_id: str,
        *,
        reason: str,
        memory_ids: Texts | None = None,
        tags: Texts | None = None,
        hold_id: str | None = None,
        request_id: str | None = None,
        expires_at: datetime | None = None,
        context: AstrocyteContext | None = None,
    ) -> Hold:
        """Keep memories from being forgotten, erased or given other content, and their bank from being deleted.

        Args:
            bank_id: Where.
            reason: Why.
            memory_ids: Memories to hold, forgotten ones too.
            tags: Memories that have, or had, any of these tags are held, also those that come later. Without ids and
                tags it is the whole bank.
            hold_id: Its name, such as a case number; one is made where it is None.
            request_id: The same id with the same request answers the same hold.
            expires_at: When a diagnosis of the bank begins to report the hold; it stands until it is released.
            context: Who calls; needs admin.
        """
        return await self._backend.call(
            keywords.caller_of(context),
            requests.PlaceHold(
                bank_id,
                reason,
                keywords.texts(memory_ids, "memory_ids"),
                keywords.texts(tags, "tags"),
                hold_id,
                request_id,
                expires_at,
            ),
        )

    async def release_hold(
        self, bank_id: str, hold_id: str, *, request_id: str | None = None, context: AstrocyteContext | None = None
    ) -> Hold:
        """End a hold; one that was released before stays as it is."""
        return await self._backend.call(keywords.caller_of(context), requests.ReleaseHold(bank_id, hold_id, request_id))

    async def list_holds(
        self,
        *,
        bank_id: str = "",
        include_released: bool = False,
        page_size: int = 0,
        page_token: str = "",
        context: AstrocyteContext | None = None,
    ) -> HoldPage:
        """A page of the holds that stand, of one bank or all, by age."""
        return await self._backend.call(
            keywords.caller_of(context), requests.ListHolds(bank_id, include_released, page_size, page_token)
        )

    async def list_audit_events(
        self,
        *,
        bank_id: str = "",
        page_size: int = 0,
        page_token: str = "",
        newest_first: bool = False,
        context: AstrocyteContext | None = None,
    ) -> AuditPage:
        """A page of the trail, of one bank or all, oldest first unless ``newest_first``."""
        return await self._backend.call(
            keywords.caller_of(context), requests.ListAuditEvents(bank_id, page_size, page_token, newest_first)
        )

    async def run_lifecycle(
        self,
        bank_id: str,
        *,
        dry_run: bool = False,
        merge_duplicates: bool = False,
        similarity_threshold: float | None = None,
        request_id: str | None = None,
        context: AstrocyteContext | None = None,
    ) -> Operation:
        """Archive, expire and forget memories by the bank's settings, in the background; `wait_operation` waits for it.

        Args:
            bank_id: The bank.
            dry_run: Count what would be changed, and change nothing.
            merge_duplicates: Merge near duplicates too.
            similarity_threshold: The least cosine of two duplicates, from .5 to 1. None takes the setting.
            request_id: The same id with the same request answers the same operation.
            context: Who calls.
        """
        request = requests.RunLifecycle(bank_id, dry_run, merge_duplicates, similarity_threshold, request_id)
        return await self._backend.call(keywords.caller_of(context), request)

    async def start_reindex(  # noqa: PLR0913 - the parts of a reindex, and the request's key
        self,
        bank_id: str,
        *,
        embedding_model: str | None = None,
        rollback: bool = False,
        min_overlap: float | None = None,
        sample: int | None = None,
        request_id: str | None = None,
        context: AstrocyteContext | None = None,
    ) -> Operation:
        """Move a bank to another embedding model, in the background, while it answers.

        Args:
            bank_id: The bank.
            embedding_model: One of the models of `server_info`; None with ``rollback``.
            rollback: Go back to the model before, whose vectors are kept for a time.
            min_overlap: Mean share of the first ten memories that the answers of both models must hold, from 0 to 1,
                or the bank stays as it is. None takes the setting.
            sample: Memories whose words both models are asked before the move, at most 1,000. None takes the setting.
            request_id: The same id with the same request answers the same operation.
            context: Who calls; needs admin on the bank.

        Raises:
            FailedPrecondition: Another operation on the bank is not done, it has the model already, or there is nothing
                to go back to.
        """
        return await self._backend.call(
            keywords.caller_of(context),
            requests.StartReindex(bank_id, embedding_model, rollback, min_overlap, sample, request_id),
        )

    async def get_operation(
        self, bank_id: str, operation_id: str, *, context: AstrocyteContext | None = None
    ) -> Operation:
        """An operation on a bank as it is now."""
        return await self._backend.call(keywords.caller_of(context), requests.GetOperation(bank_id, operation_id))

    async def list_operations(
        self,
        *,
        bank_id: str = "",
        page_size: int = 0,
        page_token: str = "",
        newest_first: bool = False,
        context: AstrocyteContext | None = None,
    ) -> OperationPage:
        """A page of operations on one bank or all, oldest first unless ``newest_first``; those that are done too."""
        return await self._backend.call(
            keywords.caller_of(context), requests.ListOperations(bank_id, page_size, page_token, newest_first)
        )

    async def wait_operation(
        self,
        bank_id: str,
        operation_id: str,
        *,
        timeout_seconds: float | None = None,
        context: AstrocyteContext | None = None,
    ) -> Operation:
        """An operation as soon as it is done, or as it is when the time is up: 30 s for None, and at most 300 s."""
        return await self._backend.call(
            keywords.caller_of(context), requests.WaitOperation(bank_id, operation_id, timeout_seconds)
        )

    async def cancel_operation(
        self,
        bank_id: str,
        operation_id: str,
        *,
        request_id: str | None = None,
        context: AstrocyteContext | None = None,
    ) -> Operation:
        """End an operation that is not done; the bank stays as it was."""
        return await self._backend.call(
            keywords.caller_of(context), requests.CancelOperation(bank_id, operation_id, request_id)
        )

    async def verify_audit(
        self, *, noted: tuple[int, bytes] | None = None, context: AstrocyteContext | None = None
    ) -> Verification:
        """Compute every hash of the trail anew and say what the first wrong row is, if any.

        Args:
            noted: Sequence and hash of a row from an earlier check; only with one is it seen that the end was cut off
                by somebody who could write to the database.
            context: Who calls; needs admin in all banks.
        """
        return await verify(self._backend, keywords.caller_of(context), noted=noted)

    async def server_info(self, *, context: AstrocyteContext | None = None) -> ServerInfo:
        """The version, settings and state of the server."""
        return await self._backend.call(keywords.caller_of(context), requests.GetServerInfo())
