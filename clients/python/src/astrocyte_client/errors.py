"""Errors of calls: one class for each reason of the protocol, in `astrocyte_client.reasons`."""

from __future__ import annotations

from typing import Any

import grpc
from google.protobuf.message import DecodeError, Message
from google.rpc import error_details_pb2
from google.rpc.status_pb2 import Status

DOMAIN = "astrocyte.dev"
DETAILS_KEY = "grpc-status-details-bin"
REQUEST_ID_KEY = "x-request-id"
# Reasons of statuses without details: they come from grpc, a proxy or the limits below the server's code.
BARE_REASONS = {
    grpc.StatusCode.DEADLINE_EXCEEDED: "DEADLINE_EXCEEDED",
    grpc.StatusCode.RESOURCE_EXHAUSTED: "MESSAGE_TOO_LARGE",
    grpc.StatusCode.UNAUTHENTICATED: "UNAUTHENTICATED",
    grpc.StatusCode.UNAVAILABLE: "UNAVAILABLE",
    grpc.StatusCode.UNIMPLEMENTED: "NOT_SUPPORTED",
}
_CODES = {code.value[0]: code for code in grpc.StatusCode}


class AstrocyteError(Exception):
    """A failed call. Its class is that of its reason; a reason that this version does not know has this class.

    Attributes:
        code: Code of gRPC.
        reason: Reason, such as "BANK_NOT_FOUND"; empty if there is none.
        message: Message of the server.
        metadata: Each variable part of the message.
        field: Path of the invalid field of the request; empty if it is not about a field.
        retry_after: Seconds to wait before another try; None if the server does not say.
        request_id: Id of the call in the log of the server; empty if it has none.
    """

    def __init__(  # noqa: PLR0913 - the parts of an error
        self,
        message: str,
        *,
        code: grpc.StatusCode = grpc.StatusCode.UNKNOWN,
        reason: str = "",
        metadata: dict[str, str] | None = None,
        field: str = "",
        retry_after: float | None = None,
        request_id: str = "",
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.reason = reason
        self.metadata = metadata or {}
        self.field = field
        self.retry_after = retry_after
        self.request_id = request_id

    def __str__(self) -> str:
        return f"{self.reason or self.code.name}: {self.message}"


def error_from_status(status: Status, request_id: str = "") -> AstrocyteError:
    """The error of a status, such as that of an item of a stream."""
    from astrocyte_client.reasons import BY_REASON  # noqa: PLC0415 - its classes derive from the one above

    code = _CODES.get(status.code, grpc.StatusCode.UNKNOWN)
    info, request, retry = error_details_pb2.ErrorInfo(), error_details_pb2.BadRequest(), error_details_pb2.RetryInfo()
    reason, metadata = BARE_REASONS.get(code, ""), {}
    if _unpack(status, info) and info.domain == DOMAIN:
        reason, metadata = info.reason, dict(info.metadata)
    field = request.field_violations[0].field if _unpack(status, request) and request.field_violations else ""
    retry_after = retry.retry_delay.ToMilliseconds() / 1_000 if _unpack(status, retry) else None
    return BY_REASON.get(reason, AstrocyteError)(
        status.message,
        code=code,
        reason=reason,
        metadata=metadata,
        field=field,
        retry_after=retry_after,
        request_id=request_id,
    )


def error_from_call(code: grpc.StatusCode, message: str | None, trailers: Any) -> AstrocyteError:
    """The error of a failed call; ``trailers`` are pairs of a name and a text or bytes, or None."""
    found = dict(trailers or ())
    details, request_id = found.get(DETAILS_KEY), found.get(REQUEST_ID_KEY, "")
    status = Status()
    if isinstance(details, bytes):
        try:
            status = Status.FromString(details)
        except DecodeError:
            status = Status()
    status.code, status.message = code.value[0], message or ""
    return error_from_status(status, str(request_id))


def _unpack(status: Status, detail: Message) -> bool:
    return any(packed.Unpack(detail) for packed in status.details if packed.Is(detail.DESCRIPTOR))
