"""The gRPC server under the services: calls arrive on the network's thread and are answered on the event loop's.

It serves handlers as grpcio has them, and gives them the part of grpcio's context that they use, so that health and
reflection are grpcio's own. HTTP/2, TLS and gRPC's framing are the extension's (`GrpcServer`), on a thread that never
takes the interpreter's lock: a call costs the loop a read of a queue, a task, and the handler. docs/transport.md says
why this is not grpc.aio.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import aclosing
from inspect import isasyncgen
from typing import Any, NamedTuple, NoReturn

import grpc
import structlog

from astrocyte.core import GrpcCall, GrpcServer
from astrocyte.errors import AstrocyteError, DeadlineExceeded, MessageTooLarge, frames
from astrocyte.services.status import code_of, to_status, trailers

# How long answers that are on their way may take once the last call has ended.
FLUSH_SECONDS = 0.5
# Between looks whether they are gone.
POLL_SECONDS = 0.005

Metadatum = tuple[str, str | bytes]
# Code, message and trailers.
Refusal = tuple[int, str, Sequence[Metadatum]]


class CallKind(NamedTuple):
    """A kind of calls for `GrpcServer`.

    Attributes:
        places: Calls that run or wait; the others are refused.
        per_connection: Calls of one connection that run or wait; the network's thread keeps more of them back until one
            of these has ended. None: a call without a place is refused at once.
        open: Its requests are read without a check of credentials.
        refusals: Statuses for refused calls, in turn.
    """

    places: int
    per_connection: int | None
    open: bool
    refusals: Sequence[Refusal]


log = structlog.get_logger("astrocyte.transport")


def too_large(size: int, limit: int) -> MessageTooLarge:
    """The error of an answer beyond the limit."""
    return MessageTooLarge(
        f"the answer has {size:,} bytes, the limit is {limit:,}; lower max_results, detail_level or the number of "
        "queries in a batch, or raise server.max_answer_bytes and the message limit of the client",
        metadata={"size": str(size), "limit": str(limit)},
    )


class CallDetails(NamedTuple):
    """The key of a handler's look-up, as grpcio has it."""

    method: str
    invocation_metadata: tuple[Metadatum, ...] = ()


class AbortError(Exception):
    """Ends a handler whose call was ended by `Context.abort`."""


class Context:
    """One call, for its handler: the part of grpcio's context of the same name that handlers use."""

    __slots__ = ("_call", "_code", "_loop", "_max_bytes", "_readable", "_serialise", "_trailers", "_writable", "task")

    def __init__(self, call: GrpcCall, loop: asyncio.AbstractEventLoop, max_bytes: int) -> None:
        self._call = call
        self._loop = loop
        self._max_bytes = max_bytes
        self._code: grpc.StatusCode | None = None
        self._trailers: tuple[Metadatum, ...] = ()
        self._serialise: Callable[[Any], bytes] | None = None
        self._readable: asyncio.Future[None] | None = None
        self._writable: asyncio.Future[None] | None = None
        # Handles the call.
        self.task: asyncio.Task[None] | None = None

    @property
    def path(self) -> str:
        """``/package.Service/Method``."""
        return self._call.path

    def invocation_metadata(self) -> tuple[Metadatum, ...]:
        """The metadata of the call; names may repeat."""
        return self._call.metadata()

    def time_remaining(self) -> float | None:
        """Seconds until the caller's deadline, at least 0; None without one."""
        return self._call.seconds_left()

    def auth_context(self) -> dict[str, list[bytes]]:
        """The names in the client's verified certificate, under gRPC's keys; empty without one."""
        found = {
            "x509_subject_alternative_name": self._call.alternative_names(),
            "x509_common_name": self._call.common_names(),
        }
        return {name: [value.encode() for value in values] for name, values in found.items() if values}

    def set_trailing_metadata(self, trailers: Sequence[Metadatum]) -> None:
        """Set the trailers of the answer."""
        self._trailers = tuple(trailers)

    def code(self) -> grpc.StatusCode | None:
        """The code that the call failed with; None if it did not."""
        return self._code

    async def abort(self, code: grpc.StatusCode, details: str = "", trailers: Sequence[Metadatum] = ()) -> NoReturn:
        """End the call with an error.

        Raises:
            AbortError: Always.
        """
        self.fail(code, details, trailers)
        raise AbortError

    def begin(self) -> None:
        """Send the initial metadata before the first response."""
        self._call.begin()

    async def write(self, response: Any) -> None:  # noqa: ANN401 - bytes, or what the handler's serialiser takes
        """Send a response of a stream, and wait until there is room for more.

        Raises:
            MessageTooLarge: It is larger than a client takes.
        """
        if not self._call.write(self._bytes(response)):
            self._writable = self._loop.create_future()
            await self._in_time(self._writable)

    async def read(self) -> bytes | None:
        """The next request, None at their end."""
        while (request := self._call.read()) is False:
            self._readable = self._loop.create_future()
            await self._in_time(self._readable)
        return request

    async def _in_time(self, waiting: asyncio.Future[None]) -> None:
        """Wait until the call's deadline: the network does not report it while the caller reads nothing.

        Raises:
            DeadlineExceeded: It has passed.
        """
        left = self.time_remaining()
        try:
            async with asyncio.timeout(left):
                await waiting
        except TimeoutError:
            raise DeadlineExceeded("the deadline of the call passed; set a longer one") from None

    def fail(self, code: grpc.StatusCode, details: str, trailers: Sequence[Metadatum] = ()) -> None:
        """End the call with an error."""
        self._code = code
        self._call.end(code.value[0], details, [*self._trailers, *trailers])

    def _bytes(self, response: Any) -> bytes:  # noqa: ANN401 - as for `write`
        message: bytes = response if self._serialise is None else self._serialise(response)
        if len(message) > self._max_bytes:
            raise too_large(len(message), self._max_bytes)
        return message

    def finish(self, response: bytes) -> None:
        """Send the only response."""
        if self._trailers:
            self._call.write(response)
            self.end()
        else:
            self._call.finish(response)

    def end(self) -> None:
        """End the call with status OK."""
        self._call.end(0, "", list(self._trailers))

    def hear(self, event: str) -> None:
        """Pass an event on to the handler's task, or to the future that it awaits."""
        if event == "cancelled":
            if self.task is not None:
                self.task.cancel()
            return
        waiting = self._readable if event == "readable" else self._writable
        if waiting is not None and not waiting.done():
            waiting.set_result(None)

    async def serve(self, handler: grpc.RpcMethodHandler[Any, Any], identify: Identify) -> None:
        """Answer the call by its handler; every end of the handler ends the call.

        The rest of a request that did not arrive with its headers is read once its caller is known.
        """
        try:
            if self._call.is_unverified():
                self._call.accept(await identify(self))
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
                self.finish(self._bytes(response))
        except AbortError:
            pass
        except asyncio.CancelledError:
            # Its caller is gone, or the server.
            self.fail(grpc.StatusCode.UNAVAILABLE, "the call was cancelled")
        except AstrocyteError as error:
            status = to_status(error)
            self.fail(code_of(error), status.message, trailers(error, status))
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


# Checks the credentials of a call; returns a name for its principal, or ends the call and raises `AbortError`.
Identify = Callable[[Context], Awaitable[str]]


class Transport:
    """A gRPC server on the running event loop.

    Args:
        handlers: Look up the handler of a method; the first that has one answers.
        unknown: Makes a handler for any other path.
        identify: Checks the credentials of a call before the rest of its request is read.
        native: The listening server.
        max_answer_bytes: Largest response.
    """

    def __init__(
        self,
        handlers: Iterable[grpc.GenericRpcHandler],
        unknown: Callable[[str], grpc.RpcMethodHandler[Any, Any]],
        identify: Identify,
        native: GrpcServer,
        max_answer_bytes: int,
    ) -> None:
        self._handlers = tuple(handlers)
        self._unknown = unknown
        self._identify = identify
        # By path, of those that were asked for: there are only so many.
        self._known: dict[str, grpc.RpcMethodHandler[Any, Any]] = {}
        self._native = native
        self._max_answer_bytes = max_answer_bytes
        self._open: dict[int, Context] = {}

    def bind(self, target: str, *, shared: bool = False) -> int:
        """Bind ``host:port`` or ``unix:path``; return the port, which the system chooses where it is 0.

        With ``shared``, other processes may listen at the same port, and the system divides the connections over them.

        Raises:
            OSError: The address is in use, or not one of this machine.
        """
        return self._native.bind(target, shared=shared)

    def start(self) -> None:
        """Accept calls."""
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._native.fileno(), self._take)
        self._native.start()

    def refuse_connections(self) -> None:
        """Close the listening sockets and send GOAWAY on every connection; calls go on."""
        self._native.stop()

    async def stop(self, grace_seconds: float) -> None:
        """Wait for running calls; cancel the rest after the grace period; then close."""
        self.refuse_connections()
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
        """Take the events from the queue: begin new calls, and pass the others on."""
        for number, event in self._native.take():
            if isinstance(event, str):
                if (context := self._open.get(number)) is not None:
                    context.hear(event)
            else:
                self._begin(number, event)

    def _begin(self, number: int, call: GrpcCall) -> None:
        path = call.path
        handler = self._known.get(path) or self._handler(path)
        self._open[number] = context = Context(call, self._loop, self._max_answer_bytes)
        context.task = task = self._loop.create_task(context.serve(handler, self._identify))
        task.add_done_callback(lambda done: self._close(number, done))

    def _handler(self, path: str) -> grpc.RpcMethodHandler[Any, Any]:
        details: Any = CallDetails(path)
        for one in self._handlers:
            if (handler := one.service(details)) is not None:
                self._known[path] = handler
                return handler
        return self._unknown(path)

    def _close(self, number: int, done: asyncio.Task[None]) -> None:
        context = self._open.pop(number)
        # Else the two, and a raised exception, keep each other until the garbage collector runs.
        context.task = None
        if done.cancelled():
            # Before it began: nobody else ends it, and it would keep its place.
            context.fail(grpc.StatusCode.UNAVAILABLE, "the call was cancelled")
