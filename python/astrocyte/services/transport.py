"""The gRPC server under the services: what arrives on the network's thread is answered on the event loop's.

It serves handlers as grpcio has them, and gives them what of grpcio's context they use, so that health and reflection
are grpcio's own. HTTP/2, TLS and gRPC's framing are done in the core (`GrpcServer`), on a thread that never takes the
interpreter's lock: a call costs the loop a look at a queue, a task, and the handler. The answer of the only call
is sent on the loop's thread, with that lock released, since to wake the other one would take longer.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import aclosing
from contextvars import copy_context
from inspect import isasyncgen
from typing import Any, NamedTuple, NoReturn

import grpc
import structlog

from astrocyte.core import GrpcCall, GrpcServer
from astrocyte.errors import DeadlineExceeded, frames
from astrocyte.services.company import Company

# How long answers that are on their way may take once the last call has ended.
FLUSH_SECONDS = 0.5
# How often it is looked whether they are gone.
POLL_SECONDS = 0.005

Metadatum = tuple[str, str | bytes]
# Code, message and trailers.
Refusal = tuple[int, str, Sequence[Metadatum]]

log = structlog.get_logger("astrocyte.transport")


class CallDetails(NamedTuple):
    """What a handler is looked up by."""

    method: str
    invocation_metadata: tuple[Metadatum, ...] = ()


class AbortError(Exception):
    """Ends a handler whose call was ended by `Context.abort`."""


class Context:
    """One call, for its handler: the part of grpcio's context of the same name that handlers use."""

    __slots__ = ("_call", "_code", "_loop", "_only", "_readable", "_serialise", "_trailers", "_writable", "task")

    def __init__(self, call: GrpcCall, loop: asyncio.AbstractEventLoop, only: Callable[[], bool]) -> None:
        self._call = call
        self._loop = loop
        # Whether no other call that gives one answer has to do with the loop.
        self._only = only
        self._code: grpc.StatusCode | None = None
        self._trailers: tuple[Metadatum, ...] = ()
        self._serialise: Callable[[Any], bytes] | None = None
        self._readable: asyncio.Future[None] | None = None
        self._writable: asyncio.Future[None] | None = None
        # What handles the call.
        self.task: asyncio.Task[None] | None = None

    def invocation_metadata(self) -> tuple[Metadatum, ...]:
        """What the caller sent beside its requests; names may repeat."""
        return self._call.metadata()

    def time_remaining(self) -> float | None:
        """Seconds until the caller's deadline, at least 0; None without one."""
        return self._call.seconds_left()

    def auth_context(self) -> dict[str, list[bytes]]:
        """What the client's verified certificate says, under gRPC's names; empty without one."""
        found = {
            "x509_subject_alternative_name": self._call.alternative_names(),
            "x509_common_name": self._call.common_names(),
        }
        return {name: [value.encode() for value in values] for name, values in found.items() if values}

    def set_trailing_metadata(self, trailers: Sequence[Metadatum]) -> None:
        """What the answer ends with."""
        self._trailers = tuple(trailers)

    def code(self) -> grpc.StatusCode | None:
        """What the call was ended with, if it was; None of a good end."""
        return self._code

    async def abort(self, code: grpc.StatusCode, details: str = "", trailers: Sequence[Metadatum] = ()) -> NoReturn:
        """End the call with an error.

        Raises:
            AbortError: Always.
        """
        self.fail(code, details, trailers)
        raise AbortError

    def begin(self) -> None:
        """Tell the caller that the call is on, before there is a response."""
        self._call.begin()

    async def write(self, response: Any) -> None:  # noqa: ANN401 - bytes, or what the handler's serialiser takes
        """Send a response of a stream, and wait until there is room for more."""
        if not self._call.write(response if self._serialise is None else self._serialise(response)):
            self._writable = self._loop.create_future()
            await self._in_time(self._writable)

    async def read(self) -> bytes | None:
        """The next request, None at their end."""
        while (request := self._call.read()) is False:
            self._readable = self._loop.create_future()
            await self._in_time(self._readable)
        return request

    async def _in_time(self, waiting: asyncio.Future[None]) -> None:
        """Wait, but not beyond the call's deadline: the network does not tell of it while the caller takes nothing.

        Raises:
            DeadlineExceeded: It has passed.
        """
        left = self.time_remaining()
        try:
            async with asyncio.timeout(left):
                await waiting
        except TimeoutError:
            raise DeadlineExceeded("the deadline of the call has passed") from None

    def fail(self, code: grpc.StatusCode, details: str, trailers: Sequence[Metadatum] = ()) -> None:
        """End the call with an error."""
        self._code = code
        self._call.end(code.value[0], details, [*self._trailers, *trailers])

    def finish(self, response: bytes) -> None:
        """Send the only response."""
        if self._trailers:
            self._call.write(response)
            self.end()
        else:
            self._call.finish(response, self._only())

    def end(self) -> None:
        """End the call well."""
        self._call.end(0, "", list(self._trailers))

    def hear(self, event: str) -> None:
        """Go on after what happened: to the handler's task, or to what it waits for."""
        if event == "cancelled":
            if self.task is not None:
                self.task.cancel()
            return
        waiting = self._readable if event == "readable" else self._writable
        if waiting is not None and not waiting.done():
            waiting.set_result(None)

    async def serve(self, handler: grpc.RpcMethodHandler[Any, Any]) -> None:
        """Answer the call by its handler; every end of that is one of the call."""
        try:
            self._serialise = handler.response_serializer
            request = self._requests(handler) if handler.request_streaming else await self._request(handler)
            # grpcio's types know neither this context nor that the fitting one is there.
            behave: Any
            if handler.response_streaming:
                behave = handler.stream_stream if handler.request_streaming else handler.unary_stream
                await self._stream(behave(request, self))
                self.end()
            else:
                behave = handler.stream_unary if handler.request_streaming else handler.unary_unary
                response = await behave(request, self)
                self.finish(response if self._serialise is None else self._serialise(response))
        except AbortError:
            pass
        except asyncio.CancelledError:
            # Its caller is gone, or the server.
            self.fail(grpc.StatusCode.UNAVAILABLE, "the call was cancelled")
        except Exception as error:  # noqa: BLE001 - nobody else would end the call
            self._fault(error)

    def _fault(self, error: Exception) -> None:
        log.error("call failed", method=self._call.path, error=type(error).__name__, frames=frames(error))
        self.fail(grpc.StatusCode.INTERNAL, "internal error")

    async def _stream(self, responses: Any) -> None:  # noqa: ANN401 - a generator, or a coroutine that writes
        if not isasyncgen(responses):
            await responses
            return
        async with aclosing(responses):
            async for response in responses:
                await self.write(response)

    async def _request(self, handler: grpc.RpcMethodHandler[Any, Any]) -> Any:  # noqa: ANN401 - bytes or a message
        request = await self.read()
        if request is None:
            await self.abort(grpc.StatusCode.UNIMPLEMENTED, "the method takes one request, none came")
        return request if handler.request_deserializer is None else handler.request_deserializer(request)

    async def _requests(self, handler: grpc.RpcMethodHandler[Any, Any]) -> AsyncIterator[Any]:
        while (request := await self.read()) is not None:
            yield request if handler.request_deserializer is None else handler.request_deserializer(request)


class Transport:
    """A gRPC server on the running event loop.

    Args:
        handlers: Who knows the handler of a method; the first that does answers.
        unknown: Makes one for any other path.
        native: What listens.
    """

    def __init__(
        self,
        handlers: Iterable[grpc.GenericRpcHandler],
        unknown: Callable[[str], grpc.RpcMethodHandler[Any, Any]],
        native: GrpcServer,
    ) -> None:
        self._handlers = tuple(handlers)
        self._unknown = unknown
        # By path, of those that were asked for: there are only so many.
        self._known: dict[str, grpc.RpcMethodHandler[Any, Any]] = {}
        self._native = native
        self._open: dict[int, Context] = {}
        self._company = Company()

    def bind(self, target: str) -> int:
        """Listen at ``host:port`` or ``unix:path``; the port, which the system chooses where it is 0.

        Raises:
            OSError: The address is in use, or not one of this machine.
        """
        return self._native.bind(target)

    def start(self) -> None:
        """Take calls in."""
        self._loop = asyncio.get_running_loop()
        self._around = copy_context()
        self._loop.add_reader(self._native.fileno(), self._take)
        self._native.start()

    async def stop(self, grace_seconds: float) -> None:
        """Take no more in; cancel what still runs when the grace is over."""
        self._native.stop()
        await self._until(lambda: not self._native.busy()[0], grace_seconds)
        tasks = [context.task for context in self._open.values() if context.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._until(lambda: not any(self._native.busy()), FLUSH_SECONDS)
        self._loop.remove_reader(self._native.fileno())
        self._native.close()

    async def _until(self, done: Callable[[], bool], seconds: float) -> None:
        end = time.monotonic() + seconds
        # A stopping server has nothing else to do.
        while not done() and time.monotonic() < end:  # noqa: ASYNC110
            await asyncio.sleep(POLL_SECONDS)

    def _take(self) -> None:
        """Look at what happened, and begin what is new."""
        for number, event in self._native.take():
            if isinstance(event, str):
                if event == "readable":
                    self._company.stirred()
                if (context := self._open.get(number)) is not None:
                    context.hear(event)
            else:
                self._begin(number, event)

    def _begin(self, number: int, call: GrpcCall) -> None:
        path = call.path
        handler = self._known.get(path) or self._handler(path)
        self._open[number] = context = Context(call, self._loop, self._company.only)
        streams = handler.request_streaming or handler.response_streaming
        if streams:
            self._company.stirred()
            around = copy_context()
        else:
            self._company.came(call.seconds_waited())
            around = self._around.copy()
        context.task = task = self._loop.create_task(context.serve(handler), context=around)
        task.add_done_callback(lambda done: self._close(number, done, streams=streams))

    def _handler(self, path: str) -> grpc.RpcMethodHandler[Any, Any]:
        details: Any = CallDetails(path)
        for one in self._handlers:
            if (handler := one.service(details)) is not None:
                self._known[path] = handler
                return handler
        return self._unknown(path)

    def _close(self, number: int, done: asyncio.Task[None], *, streams: bool) -> None:
        if not streams:
            self._company.left()
        context = self._open.pop(number)
        # Else the two, and what was raised, keep each other until the garbage collector looks.
        context.task = None
        if done.cancelled():
            # Before it began: nobody else ends it, and it would keep its place.
            context.fail(grpc.StatusCode.UNAVAILABLE, "the call was cancelled")
