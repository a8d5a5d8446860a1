"""Exceptions to google.rpc.Status and back: the one table of codes, used by server and client alike."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import DecodeError, Message
from google.rpc import error_details_pb2
from google.rpc.status_pb2 import Status
from grpc import StatusCode

from astrocyte.errors import (
    AccessDenied,
    AlreadyExists,
    AstrocyteError,
    AuthorizationError,
    BankNotFound,
    CapabilityNotSupported,
    CircuitOpen,
    ConfigError,
    Conflict,
    DeadlineExceeded,
    DimensionMismatch,
    DiskFull,
    FailedPrecondition,
    LegalHoldActive,
    LimitReached,
    MemoryNotFound,
    MessageTooLarge,
    NotFound,
    PiiRejected,
    ProviderUnavailable,
    QuotaExceeded,
    RateLimited,
    RequestIdReused,
    SchemaTooNew,
    StoreError,
    StoreLocked,
    Unavailable,
    ValidationError,
)

DOMAIN = "astrocyte.dev"
DETAILS_KEY = "grpc-status-details-bin"
# What grpc's own retry policy reads; RetryInfo is for applications.
PUSHBACK_KEY = "grpc-retry-pushback-ms"

CODES: Mapping[type[AstrocyteError], StatusCode] = {
    AstrocyteError: StatusCode.INTERNAL,
    ConfigError: StatusCode.FAILED_PRECONDITION,
    ValidationError: StatusCode.INVALID_ARGUMENT,
    DimensionMismatch: StatusCode.INVALID_ARGUMENT,
    AuthorizationError: StatusCode.UNAUTHENTICATED,
    AccessDenied: StatusCode.PERMISSION_DENIED,
    NotFound: StatusCode.NOT_FOUND,
    BankNotFound: StatusCode.NOT_FOUND,
    MemoryNotFound: StatusCode.NOT_FOUND,
    AlreadyExists: StatusCode.ALREADY_EXISTS,
    Conflict: StatusCode.ABORTED,
    RequestIdReused: StatusCode.ABORTED,
    FailedPrecondition: StatusCode.FAILED_PRECONDITION,
    LegalHoldActive: StatusCode.FAILED_PRECONDITION,
    PiiRejected: StatusCode.FAILED_PRECONDITION,
    RateLimited: StatusCode.RESOURCE_EXHAUSTED,
    LimitReached: StatusCode.RESOURCE_EXHAUSTED,
    QuotaExceeded: StatusCode.RESOURCE_EXHAUSTED,
    MessageTooLarge: StatusCode.RESOURCE_EXHAUSTED,
    CapabilityNotSupported: StatusCode.UNIMPLEMENTED,
    ProviderUnavailable: StatusCode.UNAVAILABLE,
    CircuitOpen: StatusCode.UNAVAILABLE,
    DeadlineExceeded: StatusCode.DEADLINE_EXCEEDED,
    Unavailable: StatusCode.UNAVAILABLE,
    StoreError: StatusCode.INTERNAL,
    DiskFull: StatusCode.RESOURCE_EXHAUSTED,
    SchemaTooNew: StatusCode.FAILED_PRECONDITION,
    StoreLocked: StatusCode.FAILED_PRECONDITION,
}
# Exceptions by their reason on the wire.
REASONS: Mapping[str, type[AstrocyteError]] = {kind.reason: kind for kind in CODES}
# What a status without our details means: it comes from grpc itself, a proxy, or another server.
BARE_CODES: Mapping[int, type[AstrocyteError]] = {
    StatusCode.DEADLINE_EXCEEDED.value[0]: DeadlineExceeded,
    StatusCode.UNAVAILABLE.value[0]: Unavailable,
    StatusCode.UNIMPLEMENTED.value[0]: CapabilityNotSupported,
    StatusCode.UNAUTHENTICATED.value[0]: AuthorizationError,
    StatusCode.FAILED_PRECONDITION.value[0]: FailedPrecondition,
}
# The longest delay for a retry policy: during a longer one, callers would see their deadline instead of the reason.
MAX_PUSHBACK_SECONDS = 5.0
# Tells a retry policy not to try again.
NO_RETRY = "-1"
# How grpc itself begins to refuse a message, under the same code as a full queue.
GRPC_TOO_LARGE = re.compile(r"(?:CLIENT: |SERVER: )?Received message larger than max")
# A client waits this long after a refusal that does not say; about the time that a full queue takes to drain.
DEFAULT_RETRY_SECONDS = 1.0

# A client refuses trailers of 8 KiB and more. Percent-encoding can triple the message, and it stands in the details
# again (base64), so these leave room for the worst case.
MESSAGE_BYTES = 768
METADATA_BYTES = 1_024
METADATA_VALUE_BYTES = 256


def code_of(error: AstrocyteError) -> StatusCode:
    """The gRPC code of an exception: that of the nearest class in the table."""
    return next(CODES[kind] for kind in type(error).__mro__ if kind in CODES)


def to_status(error: AstrocyteError) -> Status:
    """Code, message, exactly one ErrorInfo, and the further details of its kind."""
    message = clip(str(error), MESSAGE_BYTES)
    status = Status(code=code_of(error).value[0], message=message)
    info = error_details_pb2.ErrorInfo(reason=error.reason, domain=DOMAIN, metadata=_clip_metadata(error.metadata))
    status.details.add().Pack(info)
    detail = _detail(error, message)
    if detail is not None:
        status.details.add().Pack(detail)
    return status


def trailers(error: AstrocyteError, status: Status) -> tuple[tuple[str, str | bytes], ...]:
    """The trailing metadata beside code and message at the end of a failed call."""
    details = (DETAILS_KEY, status.SerializeToString())
    if isinstance(error, RateLimited) and error.retry_after <= MAX_PUSHBACK_SECONDS:
        return details, (PUSHBACK_KEY, str(max(1, round(error.retry_after * 1_000))))
    # Others of this code last: a full disk, a full bank, a message that is too large, a spent quota.
    if code_of(error) is StatusCode.RESOURCE_EXHAUSTED:
        return details, (PUSHBACK_KEY, NO_RETRY)
    return (details,)


def _detail(error: AstrocyteError, message: str) -> Any:  # noqa: ANN401 - googleapis-common-protos has no types
    """The detail that the kind of error calls for besides ErrorInfo."""
    if isinstance(error, ValidationError):
        violation = error_details_pb2.BadRequest.FieldViolation(
            field=clip(error.field, METADATA_VALUE_BYTES), description=clip(error.description, MESSAGE_BYTES)
        )
        return error_details_pb2.BadRequest(field_violations=[violation])
    if isinstance(error, RateLimited):
        delay = Duration()
        delay.FromMilliseconds(round(error.retry_after * 1_000))
        return error_details_pb2.RetryInfo(retry_delay=delay)
    if isinstance(error, (NotFound, AlreadyExists)):
        kind, name = _resource(error.metadata)
        return error_details_pb2.ResourceInfo(resource_type=kind, resource_name=name, description=message)
    if isinstance(error, LegalHoldActive):
        return error_details_pb2.PreconditionFailure(
            violations=[
                error_details_pb2.PreconditionFailure.Violation(type=error.reason, subject=hold_id)
                for hold_id in error.hold_ids
            ]
        )
    if code_of(error) is StatusCode.FAILED_PRECONDITION:
        condition = error_details_pb2.PreconditionFailure.Violation(
            type=error.reason, subject=_resource(error.metadata)[1], description=message
        )
        return error_details_pb2.PreconditionFailure(violations=[condition])
    return None


def _resource(metadata: Mapping[str, str]) -> tuple[str, str]:
    """Type and name of the resource that an error's metadata names."""
    for key, kind in (("memory_id", "Memory"), ("bank_id", "Bank")):
        if key in metadata:
            return f"{DOMAIN}/{kind}", clip(metadata[key], METADATA_VALUE_BYTES)
    return "", ""


def clip(text: str, limit: int) -> str:
    """``text`` as valid Unicode of at most ``limit`` bytes."""
    encoded = text.encode("utf-8", "backslashreplace")
    if len(encoded) <= limit:
        return encoded.decode()
    return encoded[: limit - len("…".encode())].decode("utf-8", "ignore") + "…"


def _clip_metadata(metadata: Mapping[str, str]) -> dict[str, str]:
    """As many entries as fit, in order."""
    kept: dict[str, str] = {}
    room = METADATA_BYTES
    for key, value in metadata.items():
        text = clip(value, METADATA_VALUE_BYTES)
        room -= len(key.encode("utf-8", "replace")) + len(text.encode())
        if room < 0:
            break
        kept[clip(key, METADATA_VALUE_BYTES)] = text
    return kept


def from_details(code: int, message: str, details: bytes | None) -> AstrocyteError:
    """The exception of a failed call.

    Args:
        code: gRPC code of the call.
        message: Message of the call.
        details: Value of the trailer `DETAILS_KEY`, or None.
    """
    try:
        status = Status.FromString(details) if details else Status()
    except DecodeError:
        status = Status()
    return from_status(Status(code=code, message=message, details=status.details))


def from_status(status: Status) -> AstrocyteError:
    """The exception that a status stands for: by the reason of its ErrorInfo, else by its code."""
    info = error_details_pb2.ErrorInfo()
    ours = _unpack(status, info) and info.domain == DOMAIN
    kind = REASONS.get(info.reason) if ours else None
    build = _BUILDERS.get(kind) if kind else None
    if build is not None:
        return build(status, info.metadata)
    if kind is not None:
        return kind(status.message, metadata=dict(info.metadata))
    if status.code == StatusCode.INVALID_ARGUMENT.value[0]:
        return ValidationError(status.message, field="request")
    if status.code == StatusCode.RESOURCE_EXHAUSTED.value[0]:
        if GRPC_TOO_LARGE.match(status.message):
            return MessageTooLarge(status.message)
        return RateLimited(status.message, retry_after=DEFAULT_RETRY_SECONDS)
    name = next((code.name for code in StatusCode if code.value[0] == status.code), str(status.code))
    bare = BARE_CODES.get(status.code, AstrocyteError)
    return bare(f"{name}: {status.message}", metadata={"grpc_code": name})


def _unpack(status: Status, detail: Message) -> bool:
    return any(packed.Unpack(detail) for packed in status.details if packed.Is(detail.DESCRIPTOR))


def _validation_error(status: Status, metadata: Mapping[str, str]) -> ValidationError:
    kind = DimensionMismatch if _reason(status) == DimensionMismatch.reason else ValidationError
    request = error_details_pb2.BadRequest()
    _unpack(status, request)
    field = metadata.get("field", "request")
    description = next((violation.description for violation in request.field_violations), status.message)
    return kind(description, field=field, metadata=dict(metadata))


def _reason(status: Status) -> str:
    info = error_details_pb2.ErrorInfo()
    _unpack(status, info)
    return str(info.reason)


def _rate_limited(status: Status, metadata: Mapping[str, str]) -> RateLimited:
    retry = error_details_pb2.RetryInfo()
    seconds = retry.retry_delay.ToMilliseconds() / 1_000 if _unpack(status, retry) else DEFAULT_RETRY_SECONDS
    kind = LimitReached if _reason(status) == LimitReached.reason else RateLimited
    return kind(status.message, retry_after=seconds, metadata=dict(metadata))


def _circuit_open(_: Status, metadata: Mapping[str, str]) -> CircuitOpen:
    try:
        seconds = float(metadata.get("retry_after_seconds", ""))
    except ValueError:
        seconds = DEFAULT_RETRY_SECONDS
    return CircuitOpen(metadata.get("provider", ""), seconds)


def _access_denied(_: Status, metadata: Mapping[str, str]) -> AccessDenied:
    return AccessDenied(*(metadata.get(key, "") for key in ("principal", "bank_id", "permission")))


def _legal_hold(status: Status, metadata: Mapping[str, str]) -> LegalHoldActive:
    failure = error_details_pb2.PreconditionFailure()
    _unpack(status, failure)
    return LegalHoldActive(metadata.get("bank_id", ""), [violation.subject for violation in failure.violations])


def _bank_not_found(_: Status, metadata: Mapping[str, str]) -> BankNotFound:
    return BankNotFound(metadata.get("bank_id", ""))


def _memory_not_found(_: Status, metadata: Mapping[str, str]) -> MemoryNotFound:
    return MemoryNotFound(metadata.get("memory_id", ""), metadata.get("bank_id", ""))


# Exceptions that are not made of a message and metadata alone.
_BUILDERS: Mapping[type[AstrocyteError], Callable[[Status, Mapping[str, str]], AstrocyteError]] = {
    ValidationError: _validation_error,
    DimensionMismatch: _validation_error,
    RateLimited: _rate_limited,
    LimitReached: _rate_limited,
    CircuitOpen: _circuit_open,
    AccessDenied: _access_denied,
    BankNotFound: _bank_not_found,
    LegalHoldActive: _legal_hold,
    MemoryNotFound: _memory_not_found,
}


def details_in(metadata: Iterable[tuple[str, str | bytes]] | None) -> bytes | None:
    """The details among the trailers of a call, or None."""
    for key, value in metadata or ():
        if key == DETAILS_KEY and isinstance(value, bytes):
            return value
    return None
