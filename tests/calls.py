"""Every RPC as a call of a backend: for tests that say something about all of them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

from astrocyte.model import Caller, ExplainQuery, ForgetSelector, MemoryUpdate, RecallQuery, ReflectQuery, RetainItem
from astrocyte.policy.backend import Backend

Call = Callable[[Backend, Caller, str], Awaitable[Any]]
# An id that no store makes, for calls about one memory.
NO_MEMORY = "mem_" + "0" * 32
NOW = datetime(2026, 1, 1, tzinfo=UTC)


async def _watch(backend: Backend, caller: Caller, bank: str) -> object:
    async for change in backend.watch(caller, bank, after=0):
        return change
    return None


async def _reflect(backend: Backend, caller: Caller, bank: str) -> object:
    return [piece async for piece in backend.reflect_stream(caller, ReflectQuery("canary", bank))][-1]


async def _each(backend: Backend, caller: Caller, bank: str) -> object:
    (result,) = await backend.retain_many(caller, bank, [RetainItem("streamed")])
    if isinstance(result, Exception):
        raise result
    return result


# By the names of the RPCs. Those about one memory take the one that `bank` was filled with by `memory`.
def calls(memory: str = NO_MEMORY) -> dict[str, Call]:
    return {
        "Retain": lambda backend, caller, bank: backend.retain(caller, bank, RetainItem("retained")),
        "BatchRetain": lambda backend, caller, bank: backend.retain_batch(caller, bank, [RetainItem("batched")]),
        "StreamRetain": _each,
        "GetMemory": lambda backend, caller, bank: backend.get_memory(caller, bank, memory),
        "ListMemories": lambda backend, caller, bank: backend.list_memories(caller, bank),
        "UpdateMemory": lambda backend, caller, bank: backend.update_memory(
            caller, bank, MemoryUpdate(memory, frozenset({"tags"}), tags=("t",))
        ),
        "Recall": lambda backend, caller, bank: backend.recall(caller, RecallQuery("canary", bank)),
        "BatchRecall": lambda backend, caller, bank: backend.recall_batch(caller, [RecallQuery("canary", bank)]),
        "Explain": lambda backend, caller, bank: backend.explain(
            caller, ExplainQuery(RecallQuery("canary", bank), (memory,))
        ),
        "History": lambda backend, caller, bank: backend.history(caller, RecallQuery("canary", bank, as_of=NOW)),
        "Reflect": lambda backend, caller, bank: backend.reflect(caller, ReflectQuery("canary", bank)),
        "StreamReflect": _reflect,
        "Forget": lambda backend, caller, bank: backend.forget(caller, bank, ForgetSelector(memory_ids=(memory,))),
        "UndeleteMemory": lambda backend, caller, bank: backend.undelete(caller, bank, memory),
        "Watch": _watch,
        "CreateBank": lambda backend, caller, bank: backend.create_bank(caller, bank),
        "GetBank": lambda backend, caller, bank: backend.get_bank(caller, bank),
        "ListBanks": lambda backend, caller, bank: backend.list_banks(caller, prefix=bank),
        "UpdateBank": lambda backend, caller, bank: backend.update_bank(caller, bank, display_name="renamed"),
        "DeleteBank": lambda backend, caller, bank: backend.delete_bank(caller, bank),
        "GetBankStats": lambda backend, caller, bank: backend.bank_stats(caller, bank),
        "Grant": lambda backend, caller, bank: backend.grant(caller, bank, "user:guest", ["read"]),
        "Revoke": lambda backend, caller, bank: backend.revoke(caller, bank, "user:guest"),
        "ListGrants": lambda backend, caller, bank: backend.list_grants(caller, bank_id=bank),
        "CheckAccess": lambda backend, caller, bank: backend.check_access(caller, bank),
        "CreateApiKey": lambda backend, caller, bank: backend.create_api_key(caller, bank, "user:guest"),
        "ListBankTemplates": lambda backend, caller, bank: backend.list_bank_templates(caller),
        "ListBankGroups": lambda backend, caller, bank: backend.list_bank_groups(caller),
        "ListEngines": lambda backend, caller, bank: backend.list_engines(caller),
        "ListApiKeys": lambda backend, caller, bank: backend.list_api_keys(caller),
        "RevokeApiKey": lambda backend, caller, bank: backend.revoke_api_key(caller, NO_MEMORY),
        "PlaceHold": lambda backend, caller, bank: backend.place_hold(caller, bank, reason="a case"),
        "ReleaseHold": lambda backend, caller, bank: backend.release_hold(caller, bank, "case-1"),
        "ListHolds": lambda backend, caller, bank: backend.list_holds(caller, bank_id=bank),
        "StartReindex": lambda backend, caller, bank: backend.start_reindex(caller, bank, rollback=True),
        "GetOperation": lambda backend, caller, bank: backend.get_operation(caller, bank, "op-1"),
        "ListOperations": lambda backend, caller, bank: backend.list_operations(caller, bank_id=bank),
        "WaitOperation": lambda backend, caller, bank: backend.wait_operation(caller, bank, "op-1"),
        "CancelOperation": lambda backend, caller, bank: backend.cancel_operation(caller, bank, "op-1"),
        "ListAuditEvents": lambda backend, caller, bank: backend.list_audit_events(caller, bank_id=bank),
        "GetServerInfo": lambda backend, caller, bank: backend.server_info(caller),
    }
