"""The steps of a call over HTTP: identity, request id, admission, deadline, reading, and errors as answers.

They are those of a call over gRPC (`astrocyte.services.interceptors`), with the same places, so that both doors share
one limit.
"""

from __future__ import annotations

import asyncio
import itertools
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from astrocyte.api import Concurrency
from astrocyte.deadlines import ends_in, within
from astrocyte.errors import AstrocyteError, AuthorizationError, ValidationError
from astrocyte.gateway.exchange import IDLE_SECONDS, JSON, LINES, ClientGoneError, Exchange
from astrocyte.gateway.failures import body_of, headers_of, status_of
from astrocyte.gateway.reading import read_message
from astrocyte.gateway.requests import message_of, parse
from astrocyte.gateway.routes import Binding
from astrocyte.gateway.writing import writer
from astrocyte.ingest import SourceRegistry
from astrocyte.model import Caller
from astrocyte.services.authentication import CLAIMS, HEADER, Authenticate
from astrocyte.services.draining import Draining
from astrocyte.services.interceptors import OUR_FAULTS, REQUEST_ID, REQUEST_ID_KEY, Rules, log_fault
from astrocyte.services.servicer import Servicer
from astrocyte.services.status import code_of
from astrocyte.services.transport import too_large

if TYPE_CHECKING:
    # It comes with an extra.
    from astrocyte.policy.observability.tracing import Tracing

T = TypeVar("T")
Handle = Callable[[Exchange, Mapping[str, str]], Coroutine[Any, Any, None]]

# A stream that fails within this time fails with a status of its own, because its head has not been sent.
FIRST_SECONDS = 0.25
# Between signs of life in a stream without events; proxies cut connections that are quiet for a minute.
BEAT_SECONDS = 15.0
# Calls that may take long, and are given up when their caller leaves. Others end before it would matter.
GIVEN_UP = frozenset({Concurrency.REFLECT, Concurrency.WAIT})


@dataclass(frozen=True)
class Shared:
    """The parts of the server that both doors use.

    Attributes:
        servicer: Makes the behaviour of each RPC.
        authenticate: Who calls.
        draining: Refuses calls and ends streams when the server stops.
        rules: Places and deadlines by kind of call.
        serving: Whether calls are answered; False also while the server stops.
        tracing: Makes a span for each call; None makes none.
        sources: The ingest sources; None has none.
    """

    servicer: Servicer
    authenticate: Authenticate
    draining: Draining
    rules: Mapping[Concurrency, Rules]
    serving: Callable[[], bool]
    tracing: Tracing | None = None
    sources: SourceRegistry | None = None


class Calls:
    """Makes the handler of each binding.

    Args:
        shared: The parts that gRPC has as well.
        max_bytes: Largest body.
        max_answer_bytes: Largest answer, as protobuf, so that it is that of gRPC.
    """

    def __init__(self, shared: Shared, max_bytes: int, max_answer_bytes: int) -> None:
        self._shared = shared
        self._max_bytes = max_bytes
        self._max_answer_bytes = max_answer_bytes
        self._prefix = os.urandom(6).hex()
        self._count = itertools.count(1)

    def handler(self, binding: Binding) -> Handle:
        """The handler of one method and path."""
        if binding.method.client_streaming:
            serve = self._two_way(binding)
        elif binding.method.server_streaming:
            serve = self._streaming(binding)
        else:
            serve = self._unary(binding)
        rpc = {"rpc.service": binding.rpc.service, "rpc.method": binding.rpc.name}
        return self._traced(binding.verb, binding.template, serve, rpc)

    def file_handler(self, name: str, work: Callable[[Caller, bytes], Awaitable[Any]]) -> Handle:
        """The handler of a path that moves an archive: ``work`` takes the caller and the body, and returns JSON.

        It has a place of the exports and imports, and no deadline, as these.
        """
        admission = self._shared.rules[Concurrency.ARCHIVE].admission

        async def run(exchange: Exchange, caller: Caller) -> Any:  # noqa: ANN401 - a value of JSON
            exchange.check_type(JSON)
            body = await within(IDLE_SECONDS, exchange.body(self._max_bytes))
            await admission.enter()
            try:
                return await _unless_gone(exchange, _awaited(work(caller, body)))
            finally:
                admission.leave()

        async def serve(exchange: Exchange, path: Mapping[str, str]) -> None:
            del path
            try:
                self._shared.draining.check()
                caller = await self._caller(exchange)
                with self._shared.draining.interrupting():
                    value = await run(exchange, caller)
            except Exception as error:  # noqa: BLE001 - every failure becomes an answer
                await self.refuse(exchange, error, name)
                return
            await exchange.answer(200, value, self.headers(exchange))

        return self._traced("POST", name, serve, {})

    def _traced(self, verb: str, route: str, serve: Handle, rpc: Mapping[str, str]) -> Handle:
        """``serve`` with a span around each call, below the one that the headers of the request name."""
        tracing = self._shared.tracing
        if tracing is None:
            return serve
        attributes = {"http.request.method": verb, "http.route": route, **rpc}

        async def call(exchange: Exchange, path: Mapping[str, str]) -> None:
            with tracing.call(f"{verb} {route}", attributes, exchange.headers) as span:
                await serve(exchange, path)
                # Of a client that left before its answer, nothing is known.
                if exchange.status is not None:
                    span.set_attribute("http.response.status_code", exchange.status)

        return call

    async def refuse(self, exchange: Exchange, error: Exception, method: str) -> None:
        """Answer with an error; in a stream that has begun, as its last event."""
        if isinstance(error, ClientGoneError):
            return
        request_id = _given_id(exchange) or self._new_id()
        known = error if isinstance(error, AstrocyteError) else None
        if known is None or (code_of(known) in OUR_FAULTS and status_of(known) >= 500):  # noqa: PLR2004 - ours
            log_fault(error, method, request_id)
        if known is None:
            known = AstrocyteError(f"internal error; the server's log explains it under request id {request_id}")
        body = body_of(known, request_id)
        if exchange.begun:
            await exchange.event(body, "error")
            await exchange.end_events()
        else:
            headers = {**headers_of(known), REQUEST_ID_KEY: request_id}
            await exchange.answer(status_of(known), body, headers)

    def _unary(self, binding: Binding) -> Handle:
        behaviour = self._shared.servicer.behaviour(binding.rpc)
        rules = self._shared.rules[binding.rpc.concurrency]
        admission, deadline = rules.admission, rules.deadline_seconds
        write = self._writer(binding)
        given_up = binding.rpc.concurrency in GIVEN_UP

        async def call(message: Message, caller: Caller) -> Any:  # noqa: ANN401 - a value of JSON
            if not admission.try_enter():
                await admission.enter()
            try:
                response = await behaviour(message, caller)
            finally:
                admission.leave()
            return write(response)

        async def run(exchange: Exchange, path: Mapping[str, str], caller: Caller) -> Any:  # noqa: ANN401 - as above
            body = await self._body(exchange, binding, deadline)
            message = message_of(binding, path, exchange.scope["query_string"], body)
            work = call(message, caller)
            return await (_unless_gone(exchange, work) if given_up else work)

        async def serve(exchange: Exchange, path: Mapping[str, str]) -> None:
            try:
                self._shared.draining.check()
                caller = await self._caller(exchange)
                ends_in(deadline)
                work = run(exchange, path, caller)
                value = await (work if deadline is None else within(deadline, work))
            except Exception as error:  # noqa: BLE001 - every failure becomes an answer
                await self.refuse(exchange, error, binding.method.full_name)
                return
            await exchange.answer(200, value, self.headers(exchange))

        return serve

    def _streaming(self, binding: Binding) -> Handle:
        behaviour = self._shared.servicer.behaviour(binding.rpc)
        rules = self._shared.rules[binding.rpc.concurrency]
        admission, deadline = rules.admission, rules.deadline_seconds
        write = self._writer(binding)

        async def run(exchange: Exchange, path: Mapping[str, str], caller: Caller) -> None:
            body = await self._body(exchange, binding, deadline)
            message = message_of(binding, path, exchange.scope["query_string"], body)
            await admission.enter()
            try:
                async with aclosing(behaviour(message, caller)) as responses:
                    await self._events(exchange, responses, write)
            finally:
                admission.leave()

        async def serve(exchange: Exchange, path: Mapping[str, str]) -> None:
            try:
                self._shared.draining.check()
                caller = await self._caller(exchange)
                if deadline is not None:
                    await within(deadline, run(exchange, path, caller))
                else:
                    with self._shared.draining.interrupting():
                        await run(exchange, path, caller)
            except Exception as error:  # noqa: BLE001 - every failure becomes an answer
                await self.refuse(exchange, error, binding.method.full_name)

        return serve

    def _two_way(self, binding: Binding) -> Handle:
        """Requests are lines of JSON, responses are events; each goes its way as it comes."""
        behaviour = self._shared.servicer.behaviour(binding.rpc)
        admission = self._shared.rules[binding.rpc.concurrency].admission
        write = self._writer(binding)

        async def messages(exchange: Exchange) -> AsyncIterator[Message]:
            async for line in exchange.lines(self._max_bytes):
                yield read_message(binding.method.input_type, parse(line))

        async def run(exchange: Exchange, caller: Caller) -> None:
            exchange.check_type(LINES)
            await admission.enter()
            try:
                await exchange.begin_events(self.headers(exchange))
                async with aclosing(behaviour(messages(exchange), caller)) as responses:
                    async for response in responses:
                        await self._caller(exchange)
                        await exchange.event(write(response))
                await exchange.end_events()
            finally:
                admission.leave()

        async def serve(exchange: Exchange, path: Mapping[str, str]) -> None:
            del path
            try:
                self._shared.draining.check()
                caller = await self._caller(exchange)
                await run(exchange, caller)
            except Exception as error:  # noqa: BLE001 - every failure becomes an answer
                await self.refuse(exchange, error, binding.method.full_name)

        return serve

    async def _events(self, exchange: Exchange, responses: AsyncIterator[Message], write: Callable[[Any], Any]) -> None:
        """Send responses as they come, until there are none or the client leaves."""
        gone: asyncio.Future[Any] = asyncio.ensure_future(exchange.gone())
        following: asyncio.Future[Any] = asyncio.ensure_future(anext(responses))
        patience = FIRST_SECONDS
        try:
            while True:
                done, _ = await asyncio.wait({gone, following}, timeout=patience, return_when=asyncio.FIRST_COMPLETED)
                if gone in done:
                    raise ClientGoneError
                response = following.result() if done else None
                if not exchange.begun:
                    await exchange.begin_events(self.headers(exchange))
                if response is None:
                    await exchange.comment()
                else:
                    # A stream may outlive its credential.
                    await self._caller(exchange)
                    await exchange.event(write(response))
                    following = asyncio.ensure_future(anext(responses))
                patience = BEAT_SECONDS
        except StopAsyncIteration:
            if not exchange.begun:
                await exchange.begin_events(self.headers(exchange))
            await exchange.end_events()
        finally:
            await _end(gone, following)

    def _writer(self, binding: Binding) -> Callable[[Message | bytes], Any]:
        """Makes the object of a response; raises MessageTooLarge for a response beyond the limit."""
        kind = binding.method.output_type
        from_string, write = GetMessageClass(kind).FromString, writer(kind)

        def made(response: Message | bytes) -> Any:  # noqa: ANN401 - a value of JSON
            size = len(response) if isinstance(response, bytes) else response.ByteSize()
            if size > self._max_answer_bytes:
                raise too_large(size, self._max_answer_bytes)
            return write(from_string(response) if isinstance(response, bytes) else response)

        return made

    async def _body(self, exchange: Exchange, binding: Binding, deadline: float | None) -> bytes:
        """The body of a request; that of a call without a deadline has a time limit of its own."""
        if not binding.body:
            return b""
        exchange.check_type(JSON)
        body = exchange.body(self._max_bytes)
        return await (within(IDLE_SECONDS, body) if deadline is None else body)

    async def _caller(self, exchange: Exchange) -> Caller:
        headers = exchange.headers
        # Of a header that came twice, the proxies between would decide which one holds.
        if HEADER in exchange.repeated:
            raise AuthorizationError("there are two credentials; send one")
        twice = CLAIMS & exchange.repeated
        if twice:
            raise ValidationError("is in the headers more than once; send it once", field=min(twice))
        metadata = [(name, headers[name]) for name in (HEADER, *CLAIMS) if name in headers]
        caller = self._shared.authenticate(metadata, exchange)
        return caller if isinstance(caller, Caller) else await caller

    def headers(self, exchange: Exchange) -> dict[str, str]:
        """The headers of every answer: the request id, the caller's or a new one."""
        return {REQUEST_ID_KEY: _given_id(exchange) or self._new_id()}

    def _new_id(self) -> str:
        return f"{self._prefix}-{next(self._count):x}"


def _given_id(exchange: Exchange) -> str | None:
    """The caller's request id, where it is usable."""
    given = exchange.headers.get(REQUEST_ID_KEY)
    return given if given is not None and REQUEST_ID.fullmatch(given) else None


async def _unless_gone(exchange: Exchange, work: Coroutine[Any, Any, T]) -> T:
    """The result of ``work``, which is cancelled when the client leaves.

    Raises:
        ClientGoneError: The client left.
    """
    gone: asyncio.Future[Any] = asyncio.ensure_future(exchange.gone())
    running: asyncio.Future[Any] = asyncio.ensure_future(work)
    try:
        done, _ = await asyncio.wait({gone, running}, return_when=asyncio.FIRST_COMPLETED)
        if running not in done:
            raise ClientGoneError
        result: T = running.result()
        return result
    finally:
        await _end(gone, running)


async def _awaited(work: Awaitable[T]) -> T:
    return await work


async def _end(*tasks: asyncio.Future[Any]) -> None:
    """Cancel tasks, wait until they have ended, and take their errors, which nobody else does."""
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    for task in tasks:
        if not task.cancelled():
            task.exception()
