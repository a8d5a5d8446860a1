"""The single entry to the pipelines: every request is checked here, in one order, whichever interface it came through.

1. access (`access`): the caller may do this in the bank that it names, before anything tells whether there is one;
2. rates and daily quotas (`limits`);
3. shape and limits (`validation`): bad input changes nothing;
4. the bank: it exists, or a write may create it;
5. the request id: a repeated request gets its first answer;
6. the pipeline.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any, TypeVar

from astrocyte.api import Request, StreamRequest, requests
from astrocyte.model import Caller
from astrocyte.policy.auth.api_keys import Keys
from astrocyte.policy.auth.grants import Granting
from astrocyte.policy.governance.legal_holds import Holding
from astrocyte.policy.operations.administration import BankAdministration
from astrocyte.policy.operations.explain import Explaining
from astrocyte.policy.operations.long_running import Operating
from astrocyte.policy.operations.memories import Memories
from astrocyte.policy.operations.parts import GateParts, operation_parts
from astrocyte.policy.operations.recall import Recalling
from astrocyte.policy.operations.reflect import Reflecting
from astrocyte.policy.operations.retain import Retaining
from astrocyte.policy.operations.retain_group import GroupRetaining

R = TypeVar("R")


class Gate:
    """Implements `astrocyte.api.Backend` in process: a table from the class of a request to its handler."""

    def __init__(self, parts: GateParts) -> None:
        shared = operation_parts(parts)
        self._registry = parts.registry
        self._pipelines = parts.pipelines
        self._policies = parts.policies
        self._lifecycle = parts.lifecycle
        self._check = shared.check
        self._access = shared.access
        self._banks = shared.banks
        self.keys = Keys(parts.keys, shared.access, shared.check, parts.clock)
        self._granting = Granting(parts.grants, shared.access, shared.check)
        self._holding = Holding(
            parts.holds, parts.audit, shared.banks, shared.access, shared.check, parts.settings.limits
        )
        self._operating = Operating(parts.operations, shared)
        self._memories = Memories(shared, parts.executor)
        self._administration = BankAdministration(parts, shared)
        self._retaining = Retaining(shared)
        self._group_retaining = GroupRetaining(shared, self._retaining)
        self._recalling = Recalling(shared)
        self._explaining = Explaining(shared)
        self._reflecting = Reflecting(shared, self._recalling.evidence)
        self._handlers = self._table()
        self._streams: dict[type[Any], Callable[[Caller, Any], AsyncIterator[Any]]] = {
            requests.StreamReflect: self._reflecting.stream_reflect,
            requests.Watch: self._banks.watch,
        }

    def _table(self) -> dict[type[Any], Callable[[Caller, Any], Coroutine[Any, Any, Any]]]:
        """The handler of each request, by its class."""
        return {
            requests.Retain: self._retaining.retain,
            requests.BatchRetain: self._retaining.batch_retain,
            requests.StreamRetain: self._group_retaining.stream_retain,
            requests.GetMemory: self._memories.get_memory,
            requests.ListMemories: self._memories.list_memories,
            requests.UpdateMemory: self._memories.update_memory,
            requests.Recall: self._recalling.recall,
            requests.BatchRecall: self._recalling.batch_recall,
            requests.History: self._recalling.history,
            requests.Explain: self._explaining.explain,
            requests.Reflect: self._reflecting.reflect,
            requests.Forget: self._memories.forget,
            requests.UndeleteMemory: self._memories.undelete_memory,
            requests.CreateBank: self._banks.create_bank,
            requests.GetBank: self._banks.get_bank,
            requests.ListBanks: self._banks.list_banks,
            requests.UpdateBank: self._banks.update_bank,
            requests.DeleteBank: self._administration.delete_bank,
            requests.GetBankStats: self._administration.get_bank_stats,
            requests.GetServerInfo: self._administration.get_server_info,
            requests.ListBankTemplates: self._administration.list_bank_templates,
            requests.ListBankGroups: self._administration.list_bank_groups,
            requests.ListEngines: self._administration.list_engines,
            requests.Grant: self._granting.grant,
            requests.Revoke: self._granting.revoke,
            requests.ListGrants: self._granting.list_grants,
            requests.CheckAccess: self._granting.check_access,
            requests.CreateApiKey: self.keys.create_api_key,
            requests.ListApiKeys: self.keys.list_api_keys,
            requests.RevokeApiKey: self.keys.revoke_api_key,
            requests.PlaceHold: self._holding.place_hold,
            requests.ReleaseHold: self._holding.release_hold,
            requests.ListHolds: self._holding.list_holds,
            requests.ListAuditEvents: self._holding.list_audit_events,
            requests.StartReindex: self._operating.start_reindex,
            requests.GetOperation: self._operating.get_operation,
            requests.ListOperations: self._operating.list_operations,
            requests.WaitOperation: self._operating.wait_operation,
            requests.CancelOperation: self._operating.cancel_operation,
        }

    def call(self, caller: Caller, request: Request[R]) -> Coroutine[Any, Any, R]:
        """The response to a request.

        Raises:
            TypeError: The class of the request has no handler.
        """
        handler = self._handlers.get(type(request))
        if handler is None:
            raise requests.unknown(request)
        return handler(caller, request)

    def stream(self, caller: Caller, request: StreamRequest[R]) -> AsyncIterator[R]:
        """The responses to a request as they come; raises what `call` does."""
        handler = self._streams.get(type(request))
        if handler is None:
            raise requests.unknown(request)
        return handler(caller, request)

    async def close(self) -> None:
        """Release all resources of this gate, after the deletions in progress."""
        await self._banks.settle()
        await self._lifecycle.close()
