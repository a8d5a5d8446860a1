"""The remote backend: every method is one call of a server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

import grpc

from astrocyte.client.administration import RemoteAdministration
from astrocyte.client.wire import (
    claims,
    encode_item,
    encode_query,
    encoding,
    message,
    outcome,
    translate,
)
from astrocyte.errors import AstrocyteError, CapabilityNotSupported, ValidationError
from astrocyte.model import (
    Caller,
    Change,
    ExplainQuery,
    ExplainResult,
    ForgetResult,
    ForgetSelector,
    HistoryResult,
    Memory,
    MemoryPage,
    MemoryUpdate,
    RecallQuery,
    RecallResult,
    ReflectQuery,
    ReflectResult,
    RetainItem,
    RetainResult,
)
from astrocyte.services import convert
from astrocyte.v1 import memory_pb2


class RemoteBackend(RemoteAdministration):
    """Implements `astrocyte.policy.backend.Backend` by calling a server. Arguments are those of `connect`.

    Who calls is decided by the credential: a ``caller`` that says otherwise is refused by the server. Whatever fails is
    raised from the exception tree, whether this side or the server found it.
    """

    async def retain(
        self,
        caller: Caller,
        bank_id: str,
        item: RetainItem,
        *,
        request_id: str | None = None,
        validate_only: bool = False,
    ) -> RetainResult:
        """Store one memory."""
        with encoding({"bank_id": bank_id, "": item, "request_id": request_id}):
            request = convert.encode_retain_request(bank_id, item, request_id, validate_only=validate_only)
        return convert.decode_retain_result(await self._call(caller, self._memory.Retain, request))

    async def retain_batch(
        self,
        caller: Caller,
        bank_id: str,
        items: Sequence[RetainItem],
        *,
        request_id: str | None = None,
        validate_only: bool = False,
    ) -> list[RetainResult]:
        """Store all items in one transaction, or none."""
        encoded = [encode_item(item, f"items[{index}].") for index, item in enumerate(items)]
        with encoding({"bank_id": bank_id, "request_id": request_id}):
            request = memory_pb2.BatchRetainRequest(
                bank_id=bank_id, items=encoded, request_id=request_id or "", validate_only=validate_only
            )
        response = await self._call(caller, self._memory.BatchRetain, request)
        return [convert.decode_retain_result(result) for result in response.results]

    async def retain_many(
        self,
        caller: Caller,
        bank_id: str,
        items: Sequence[RetainItem],
        *,
        request_ids: Sequence[str | None] = (),
    ) -> list[RetainResult | AstrocyteError]:
        """Store what can be stored, over one stream; an item's own failure stands in its place."""
        metadata = (*self._metadata, *claims(caller))
        if request_ids and len(request_ids) != len(items):
            raise ValidationError(f"expected {len(items)} or none, got {len(request_ids)}", field="request_ids")
        outcomes: dict[int, RetainResult | AstrocyteError] = {}
        requests = []
        for index, item in enumerate(items):
            request_id = request_ids[index] if request_ids else None
            try:
                with encoding({"bank_id": bank_id, "request_id": request_id}):
                    request = memory_pb2.StreamRetainRequest(
                        sequence=index, bank_id=bank_id, item=encode_item(item, ""), request_id=request_id or ""
                    )
                requests.append(request)
            except ValidationError as error:
                outcomes[index] = error
        try:
            async for response in self._memory.StreamRetain(iter(requests), metadata=metadata):
                outcomes[response.sequence] = outcome(response)
        except grpc.aio.AioRpcError as error:
            raise translate(error) from None
        return [outcomes[index] for index in range(len(items))]

    async def recall(self, caller: Caller, query: RecallQuery) -> RecallResult:
        """Rank the bank's memories for a query."""
        request = encode_query(query, "")
        response = await self._call(caller, self._memory.Recall, request)
        return convert.decode_recall_result(response)

    async def recall_batch(self, caller: Caller, queries: Sequence[RecallQuery]) -> list[RecallResult]:
        """Answer all queries."""
        encoded = [encode_query(query, f"queries[{index}].") for index, query in enumerate(queries)]
        request = memory_pb2.BatchRecallRequest(queries=encoded)
        response = await self._call(caller, self._memory.BatchRecall, request)
        return [convert.decode_recall_result(result) for query, result in zip(queries, response.results, strict=True)]

    async def history(self, caller: Caller, query: RecallQuery) -> HistoryResult:
        """Recall on the bank as it was known at ``query.as_of``."""
        if query.as_of is None:
            raise ValidationError("is required: the instant to look from", field="as_of")
        carried = {name: getattr(query, name) for name in ("max_results", "max_tokens", "tags", "as_of")}
        if query != RecallQuery(query.query, query.bank_id, **carried):
            raise CapabilityNotSupported(
                "history takes query, as_of, limits and tags only; use recall with as_of instead"
            )
        with encoding({"": query}):
            request = convert.encode_history_request(query)
        return convert.decode_history_result(await self._call(caller, self._memory.History, request))

    async def explain(self, caller: Caller, asked: ExplainQuery) -> ExplainResult:
        """Tell what became of memories in a recall."""
        with encoding({"recall": asked.query, "": asked}):
            request = convert.encode_explain_request(asked)
        return convert.decode_explain_result(await self._call(caller, self._memory.Explain, request))

    async def reflect(self, caller: Caller, query: ReflectQuery) -> ReflectResult:
        """Answer a question from the bank's memories."""
        with encoding({"": query}):
            request = convert.encode_reflect_query(query)
        response = await self._call(caller, self._memory.Reflect, request)
        return convert.decode_reflect_result(response, include_sources=query.include_sources)

    async def reflect_stream(self, caller: Caller, query: ReflectQuery) -> AsyncIterator[str | ReflectResult]:
        """As `reflect`: the pieces of the answer, and last of all the whole result."""
        with encoding({"": query}):
            request = memory_pb2.StreamReflectRequest(reflect=convert.encode_reflect_query(query))
        call = self._memory.StreamReflect(request, metadata=(*self._metadata, *claims(caller)))
        try:
            async for response in call:
                if response.HasField("result"):
                    yield convert.decode_reflect_result(response.result, include_sources=query.include_sources)
                else:
                    yield response.text
        except grpc.aio.AioRpcError as error:
            raise translate(error) from None
        finally:
            call.cancel()

    async def forget(  # noqa: PLR0913 - the signature of Backend
        self,
        caller: Caller,
        bank_id: str,
        selector: ForgetSelector,
        *,
        compliance: bool = False,
        reason: str | None = None,
        dry_run: bool = False,
        request_id: str | None = None,
    ) -> ForgetResult:
        """Forget what the selector meets."""
        with encoding({"bank_id": bank_id, "": selector, "reason": reason, "request_id": request_id}):
            request = convert.encode_forget_request(
                bank_id, selector, compliance=compliance, reason=reason, dry_run=dry_run, request_id=request_id
            )
        return convert.decode_forget_result(await self._call(caller, self._memory.Forget, request))

    async def undelete(self, caller: Caller, bank_id: str, memory_id: str, *, request_id: str | None = None) -> Memory:
        """Bring a forgotten memory back."""
        request = message(memory_pb2.UndeleteMemoryRequest, bank_id=bank_id, memory_id=memory_id, request_id=request_id)
        response = await self._call(caller, self._memory.UndeleteMemory, request)
        return convert.decode_memory(response.memory)

    async def get_memory(self, caller: Caller, bank_id: str, memory_id: str) -> Memory:
        """The current version of a memory."""
        request = message(memory_pb2.GetMemoryRequest, bank_id=bank_id, memory_id=memory_id)
        response = await self._call(caller, self._memory.GetMemory, request)
        return convert.decode_memory(response.memory)

    async def list_memories(
        self,
        caller: Caller,
        bank_id: str,
        *,
        tags: Sequence[str] = (),
        session_id: str | None = None,
        page_size: int = 0,
        page_token: str = "",
    ) -> MemoryPage:
        """A page of the bank's memories in order of arrival."""
        request = message(
            memory_pb2.ListMemoriesRequest,
            bank_id=bank_id,
            tags=tags,
            session_id=session_id,
            page_size=page_size,
            page_token=page_token,
        )
        response = await self._call(caller, self._memory.ListMemories, request)
        return MemoryPage(
            memories=tuple(convert.decode_memory(memory) for memory in response.memories),
            next_page_token=response.next_page_token,
            position=response.position,
            total_size=response.total_size,
        )

    async def update_memory(
        self,
        caller: Caller,
        bank_id: str,
        update: MemoryUpdate,
        *,
        request_id: str | None = None,
        validate_only: bool = False,
    ) -> Memory:
        """Make a new version of a memory."""
        with encoding({"bank_id": bank_id, "": update, "request_id": request_id}):
            request = convert.encode_update_request(bank_id, update, request_id, validate_only=validate_only)
        response = await self._call(caller, self._memory.UpdateMemory, request)
        return convert.decode_memory(response.memory)

    async def watch(self, caller: Caller, bank_id: str, *, after: int | None = None) -> AsyncIterator[Change]:
        """The bank's changes after a position (None: from now on), then each as it is committed, without end."""
        request = message(memory_pb2.WatchRequest, bank_id=bank_id, after_position=after)
        call = self._memory.Watch(request, metadata=(*self._metadata, *claims(caller)))
        try:
            async for response in call:
                yield convert.decode_change(response.change)
        except grpc.aio.AioRpcError as error:
            raise translate(error) from None
        finally:
            call.cancel()
