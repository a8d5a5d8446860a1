"""MemoryService: decode, call the gate, encode."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing

from astrocyte.model import Caller
from astrocyte.policy.backend import Backend
from astrocyte.services import convert
from astrocyte.services.draining import Draining
from astrocyte.services.retain_stream import Requests, retain_stream
from astrocyte.v1 import memory_pb2


class MemoryServicer:
    """One method for each RPC of the service, by its name.

    Args:
        gate: Does the work.
        draining: Tells streams that the server stops.
    """

    def __init__(self, gate: Backend, draining: Draining) -> None:
        self._gate = gate
        self._draining = draining

    async def Retain(self, request: memory_pb2.RetainRequest, caller: Caller) -> memory_pb2.RetainResponse:
        """Store one memory."""
        result = await self._gate.retain(
            caller,
            request.bank_id,
            convert.decode_item(request),
            request_id=request.request_id or None,
            validate_only=request.validate_only,
        )
        return convert.encode_retain_result(result)

    async def BatchRetain(
        self, request: memory_pb2.BatchRetainRequest, caller: Caller
    ) -> memory_pb2.BatchRetainResponse:
        """Store all items or none."""
        items = [convert.decode_item(item, f"items[{index}].") for index, item in enumerate(request.items)]
        results = await self._gate.retain_batch(
            caller,
            request.bank_id,
            items,
            request_id=request.request_id or None,
            validate_only=request.validate_only,
        )
        return memory_pb2.BatchRetainResponse(results=[convert.encode_retain_result(result) for result in results])

    def StreamRetain(self, requests: Requests, caller: Caller) -> AsyncIterator[memory_pb2.StreamRetainResponse]:
        """Store items as they come."""
        return retain_stream(self._gate, caller, requests, self._draining)

    async def GetMemory(self, request: memory_pb2.GetMemoryRequest, caller: Caller) -> memory_pb2.GetMemoryResponse:
        """Read one memory."""
        memory = await self._gate.get_memory(caller, request.bank_id, request.memory_id)
        return memory_pb2.GetMemoryResponse(memory=convert.encode_memory(memory))

    async def ListMemories(
        self, request: memory_pb2.ListMemoriesRequest, caller: Caller
    ) -> memory_pb2.ListMemoriesResponse:
        """Read a page of memories."""
        page = await self._gate.list_memories(
            caller,
            request.bank_id,
            tags=tuple(request.tags),
            session_id=request.session_id or None,
            page_size=request.page_size,
            page_token=request.page_token,
        )
        return memory_pb2.ListMemoriesResponse(
            memories=[convert.encode_memory(memory) for memory in page.memories],
            next_page_token=page.next_page_token,
            position=page.position,
            total_size=page.total_size,
        )

    async def UpdateMemory(
        self, request: memory_pb2.UpdateMemoryRequest, caller: Caller
    ) -> memory_pb2.UpdateMemoryResponse:
        """Make a new version."""
        memory = await self._gate.update_memory(
            caller,
            request.bank_id,
            convert.decode_update(request),
            request_id=request.request_id or None,
            validate_only=request.validate_only,
        )
        return memory_pb2.UpdateMemoryResponse(memory=convert.encode_memory(memory))

    async def Recall(self, request: memory_pb2.RecallRequest, caller: Caller) -> bytes:
        """Answer a question with a RecallResponse."""
        return convert.encode_recall_result(await self._gate.recall(caller, convert.decode_query(request)))

    async def BatchRecall(self, request: memory_pb2.BatchRecallRequest, caller: Caller) -> bytes:
        """Answer several questions with a BatchRecallResponse."""
        queries = [convert.decode_query(query, f"queries[{index}].") for index, query in enumerate(request.queries)]
        return convert.encode_recall_results(await self._gate.recall_batch(caller, queries))

    async def History(self, request: memory_pb2.HistoryRequest, caller: Caller) -> bytes:
        """Answer a question about the past with a HistoryResponse."""
        return convert.encode_history_result(await self._gate.history(caller, convert.decode_history_query(request)))

    async def Explain(self, request: memory_pb2.ExplainRequest, caller: Caller) -> memory_pb2.ExplainResponse:
        """Tell what became of memories in a recall."""
        return convert.encode_explain_result(await self._gate.explain(caller, convert.decode_explain_request(request)))

    async def Reflect(self, request: memory_pb2.ReflectRequest, caller: Caller) -> memory_pb2.ReflectResponse:
        """Answer a question from memory."""
        return convert.encode_reflect_result(await self._gate.reflect(caller, convert.decode_reflect_query(request)))

    async def StreamReflect(
        self, request: memory_pb2.StreamReflectRequest, caller: Caller
    ) -> AsyncIterator[memory_pb2.StreamReflectResponse]:
        """Answer a question from memory, in pieces."""
        query = convert.decode_reflect_query(request.reflect)
        async with aclosing(self._gate.reflect_stream(caller, query)) as pieces:  # type: ignore[type-var]  # a generator
            async for piece in pieces:
                if isinstance(piece, str):
                    yield memory_pb2.StreamReflectResponse(text=piece)
                else:
                    yield memory_pb2.StreamReflectResponse(result=convert.encode_reflect_result(piece))

    async def Forget(self, request: memory_pb2.ForgetRequest, caller: Caller) -> memory_pb2.ForgetResponse:
        """Forget what a selector meets."""
        result = await self._gate.forget(
            caller,
            request.bank_id,
            convert.decode_selector(request),
            compliance=request.compliance,
            reason=request.reason or None,
            dry_run=request.dry_run,
            request_id=request.request_id or None,
        )
        return convert.encode_forget_result(result)

    async def UndeleteMemory(
        self, request: memory_pb2.UndeleteMemoryRequest, caller: Caller
    ) -> memory_pb2.UndeleteMemoryResponse:
        """Bring a memory back."""
        memory = await self._gate.undelete(
            caller, request.bank_id, request.memory_id, request_id=request.request_id or None
        )
        return memory_pb2.UndeleteMemoryResponse(memory=convert.encode_memory(memory))

    async def Watch(self, request: memory_pb2.WatchRequest, caller: Caller) -> AsyncIterator[memory_pb2.WatchResponse]:
        """Send changes as they are committed."""
        after = request.after_position if request.HasField("after_position") else None
        async for change in self._gate.watch(caller, request.bank_id, after=after):
            yield memory_pb2.WatchResponse(change=convert.encode_change(change))
