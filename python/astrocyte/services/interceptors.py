"""The steps of every call: identity, request id, admission, deadline, parsing, and errors as statuses.

One wrapper around each method does it all. grpc's own interceptors would build a handler object and await one more
coroutine per concern and call, and would see a message that could not be parsed only as an unknown failure; here the
handlers get the bytes, so that the wrapper parses them itself.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

import grpc
import structlog
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessageClass

from astrocyte.deadlines import check_time, ends_in, seconds_left, within
from astrocyte.errors import (
    AstrocyteError,
    CapabilityNotSupported,
    MessageTooLarge,
    ValidationError,
    frames,
)
from astrocyte.model import Caller
from astrocyte.services.admission import Admission
from astrocyte.services.authentication import Authenticate, Metadata
from astrocyte.services.draining import Draining
from astrocyte.services.status import clip, code_of, to_status, trailers
from astrocyte.services.tracing import traced
from astrocyte.services.transport import Context

if TYPE_CHECKING:
    # It comes with an extra.
    from astrocyte.policy.observability.tracing import Tracing

REQUEST_ID_KEY = "x-request-id"
# Ids from callers are echoed and logged, so they must be short and plain.
REQUEST_ID = re.compile(r"[!-~]{1,128}")
# Of the path of a method that does not exist; a caller can make it as long as its metadata may be.
SHOWN_PATH_BYTES = 128
# Codes that mean a fault on our side, which the log has to explain.
OUR_FAULTS = frozenset({grpc.StatusCode.INTERNAL, grpc.StatusCode.UNKNOWN, grpc.StatusCode.DATA_LOSS})

Parse = Callable[[bytes], Message]
# Bytes are a message that was serialised already.
UnaryBehaviour = Callable[[Any, Caller], Awaitable[Message | bytes]]
StreamBehaviour = Callable[[Any, Caller], AsyncIterator[Message]]

log = structlog.get_logger("astrocyte.calls")


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules for a kind of call. ``deadline_seconds`` applies to calls without a deadline; None sets none."""

    admission: Admission
    deadline_seconds: float | None = None


class Calls:
    """Turns servicer methods into grpc handlers.

    Args:
        authenticate: Who calls.
        draining: Refuses calls and ends server streams when the server stops.
        max_message_bytes: Largest request; parsing a larger one would hold up everybody.
        tracing: Makes a span for each call; None makes none.
    """

    def __init__(
        self, authenticate: Authenticate, draining: Draining, max_message_bytes: int, tracing: Tracing | None = None
    ) -> None:
        self._authenticate = authenticate
        self._draining = draining
        self._max_message_bytes = max_message_bytes
        self._tracing = tracing
        # Unique per process, and a counter: ten times cheaper than a random id for each call.
        self.prefix = os.urandom(6).hex()
        self._count = itertools.count(1)

    def handler(
        self, method: MethodDescriptor, behaviour: Callable[..., Any], rules: Rules
    ) -> grpc.RpcMethodHandler[Any, Any]:
        """The handler of one method, of any of the four kinds."""
        parse = _parser(method, self._max_message_bytes)
        if method.server_streaming:
            serve = self._streaming(method, parse, behaviour, rules)
            make = (
                grpc.stream_stream_rpc_method_handler
                if method.client_streaming
                else grpc.unary_stream_rpc_method_handler
            )
        else:
            serve = self._unary(method, parse, behaviour, rules)
            make = (
                grpc.stream_unary_rpc_method_handler if method.client_streaming else grpc.unary_unary_rpc_method_handler
            )
        return make(serve if self._tracing is None else traced(self._tracing, method, serve))

    async def identify(self, context: Context) -> str:
        """Check the credentials of a call whose request did not arrive with its headers; a failure ends the call.

        Returns:
            A name for the tenant and principal, for limits.
        """
        metadata = context.invocation_metadata()
        try:
            self._draining.check()
            caller = await self._caller(metadata, context)
        except Exception as error:  # noqa: BLE001 - every failure becomes a status
            await _fail(error, context.path, _given_id(metadata) or self._new_id(), context)
        return repr((caller.tenant, caller.principal))

    def refusal(self, path: str) -> grpc.RpcMethodHandler[Any, Any]:
        """The handler of a method that does not exist."""
        name = clip(path, SHOWN_PATH_BYTES)

        async def serve(_: AsyncIterator[bytes], context: Context) -> None:
            request_id = _given_id(context.invocation_metadata()) or self._new_id()
            error = CapabilityNotSupported(f"this server has no method {name}", metadata={"method": name})
            await _fail(error, name, request_id, context)

        return grpc.stream_stream_rpc_method_handler(serve)

    def _unary(
        self, method: MethodDescriptor, parse: Parse, behaviour: UnaryBehaviour, rules: Rules
    ) -> Callable[..., Any]:
        decode = _decoder(parse, streaming=method.client_streaming)
        admission, deadline = rules.admission, rules.deadline_seconds

        async def run(raw: Any, caller: Caller) -> bytes:  # noqa: ANN401 - bytes, or an iterator of them
            request = decode(raw)
            waits = not admission.try_enter()
            if waits:
                await admission.enter()
            try:
                if waits:
                    check_time(seconds_left())
                response = await behaviour(request, caller)
            finally:
                admission.leave()
            return response if isinstance(response, bytes) else response.SerializeToString()

        async def serve(raw: Any, context: Context) -> bytes:  # noqa: ANN401 - as above
            metadata = context.invocation_metadata()
            given = _given_id(metadata)
            try:
                if self._draining.begun:
                    self._draining.check()
                left = context.time_remaining()
                check_time(left)
                caller = self._authenticate(metadata, context)
                if not isinstance(caller, Caller):
                    caller = await caller
                ends_in(deadline if left is None else left)
                if deadline is not None and left is None:
                    payload = await within(deadline, run(raw, caller))
                else:
                    payload = await run(raw, caller)
            except Exception as error:  # noqa: BLE001 - every failure becomes a status
                await _fail(error, method.full_name, given or self._new_id(), context)
            if given is not None:
                context.set_trailing_metadata(((REQUEST_ID_KEY, given),))
            return payload

        return serve

    def _streaming(
        self, method: MethodDescriptor, parse: Parse, behaviour: StreamBehaviour, rules: Rules
    ) -> Callable[..., Any]:
        decode = _decoder(parse, streaming=method.client_streaming)
        admission, deadline = rules.admission, rules.deadline_seconds

        async def run(raw: Any, caller: Caller, metadata: Metadata, context: Context) -> None:  # noqa: ANN401 - as below
            await admission.enter()
            try:
                # The caller learns at once that the stream is on, and need not wait for the first message.
                context.begin()
                async with aclosing(behaviour(decode(raw), caller)) as responses:  # type: ignore[type-var]  # a generator
                    async for response in responses:
                        # A stream may outlive its credential; what comes then is for nobody.
                        await self._caller(metadata, context)
                        await context.write(response.SerializeToString())
            finally:
                admission.leave()

        async def serve(raw: Any, context: Context) -> None:  # noqa: ANN401 - as above
            metadata = context.invocation_metadata()
            given = _given_id(metadata)
            try:
                self._draining.check()
                caller = await self._caller(metadata, context)
                if method.client_streaming:
                    # It ends when its caller's requests do: the servicer stops reading when the server drains.
                    await run(raw, caller, metadata, context)
                elif deadline is not None:
                    # It has an end of its own, so that draining waits for it as for other calls.
                    if context.time_remaining() is None:
                        await within(deadline, run(raw, caller, metadata, context))
                    else:
                        await run(raw, caller, metadata, context)
                else:
                    with self._draining.interrupting():
                        await run(raw, caller, metadata, context)
            except Exception as error:  # noqa: BLE001 - every failure becomes a status
                await _fail(error, method.full_name, given or self._new_id(), context)
            if given is not None:
                context.set_trailing_metadata(((REQUEST_ID_KEY, given),))

        return serve

    async def _caller(self, metadata: Metadata, context: Context) -> Caller:
        caller = self._authenticate(metadata, context)
        return caller if isinstance(caller, Caller) else await caller

    def _new_id(self) -> str:
        return f"{self.prefix}-{next(self._count):x}"


def _given_id(metadata: Metadata) -> str | None:
    """The caller's request id, where it is usable.

    It goes back with every answer, a made one with failures only: sending one costs a tenth of what a call costs.
    """
    for key, value in metadata:
        if key == REQUEST_ID_KEY and isinstance(value, str) and REQUEST_ID.fullmatch(value):
            return value
    return None


def _parser(method: MethodDescriptor, most_bytes: int) -> Parse:
    """Parse bytes as the method's request; raises ValidationError for malformed or oversized ones."""
    from_string: Parse = GetMessageClass(method.input_type).FromString
    name = method.input_type.full_name

    def parse(raw: bytes) -> Message:
        if len(raw) > most_bytes:
            raise MessageTooLarge(
                f"the message has {len(raw):,} bytes, the limit is {most_bytes:,}; send less at once",
                metadata={"size": str(len(raw)), "limit": str(most_bytes)},
            )
        try:
            return from_string(raw)
        except DecodeError:
            raise ValidationError(f"the bytes are not a message of type {name}", field="request") from None

    return parse


def _decoder(parse: Parse, *, streaming: bool) -> Callable[[Any], Any]:
    """``parse``, for one message or for each of a stream."""
    if not streaming:
        return parse

    async def decode(stream: AsyncIterator[bytes]) -> AsyncIterator[Message]:
        async for raw in stream:
            yield parse(raw)

    return decode


async def _fail(error: Exception, method: str, request_id: str, context: Context) -> NoReturn:
    """End the call with the status that ``error`` stands for; does not return."""
    known = error if isinstance(error, AstrocyteError) else None
    if known is None or code_of(known) in OUR_FAULTS:
        log_fault(error, method, request_id)
    if known is None:
        known = AstrocyteError(f"internal error; the server's log explains it under request id {request_id}")
    status = to_status(known)
    ending: Sequence[tuple[str, str | bytes]] = (*trailers(known, status), (REQUEST_ID_KEY, request_id))
    await context.abort(code_of(known), status.message, tuple(ending))


def log_fault(error: Exception, method: str, request_id: str) -> None:
    """Log an internal error: its place and class, without its message, which may hold content."""
    log.error("call failed", method=method, request_id=request_id, error=type(error).__name__, frames=frames(error))
