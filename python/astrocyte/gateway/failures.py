"""Exceptions as HTTP status, headers and body."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from astrocyte.errors import (
    AccessDenied,
    AlreadyExists,
    AstrocyteError,
    AuthorizationError,
    CapabilityNotSupported,
    CircuitOpen,
    ConfigError,
    Conflict,
    DeadlineExceeded,
    DiskFull,
    FailedPrecondition,
    LegalHoldActive,
    MessageTooLarge,
    NotFound,
    PiiRejected,
    ProviderUnavailable,
    QuotaExceeded,
    RateLimited,
    Unavailable,
    ValidationError,
)
from astrocyte.services.status import MESSAGE_BYTES, METADATA_VALUE_BYTES, clip

STATUSES: Mapping[type[AstrocyteError], int] = {
    AstrocyteError: 500,
    ConfigError: 400,
    ValidationError: 400,
    AuthorizationError: 401,
    AccessDenied: 403,
    QuotaExceeded: 403,
    NotFound: 404,
    AlreadyExists: 409,
    Conflict: 409,
    FailedPrecondition: 409,
    MessageTooLarge: 413,
    PiiRejected: 422,
    RateLimited: 429,
    CapabilityNotSupported: 501,
    ProviderUnavailable: 503,
    Unavailable: 503,
    DeadlineExceeded: 504,
    DiskFull: 507,
}


class HttpError(AstrocyteError):
    """A request that HTTP itself refuses: no such path, method, media type, or a head that is too large.

    Args:
        status: HTTP status.
        code: Code in the body.
        message: What came, what was expected, what to do.
        headers: Further headers of the answer.
    """

    def __init__(self, status: int, code: str, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status, self.code, self.headers = status, code, dict(headers or {})


def status_of(error: AstrocyteError) -> int:
    """The HTTP status of an exception: that of the nearest class in the table."""
    if isinstance(error, HttpError):
        return error.status
    return next(STATUSES[kind] for kind in type(error).__mro__ if kind in STATUSES)


def headers_of(error: AstrocyteError) -> dict[str, str]:
    """The headers that an exception adds to its answer."""
    if isinstance(error, HttpError):
        return error.headers
    if isinstance(error, AuthorizationError):
        return {"www-authenticate": "Bearer"}
    if isinstance(error, (RateLimited, CircuitOpen)):
        # Whole seconds, never 0: the header has no fractions.
        return {"retry-after": str(max(1, math.ceil(error.retry_after)))}
    return {}


def body_of(error: AstrocyteError, request_id: str | None = None) -> dict[str, Any]:
    """The body of a failed call: code, message, and what is known beside them.

    ``code`` is the reason of `astrocyte.v1.ErrorReason` in lower case.
    """
    code = error.code if isinstance(error, HttpError) else error.reason.lower()
    told: dict[str, Any] = {"code": code, "message": clip(str(error), MESSAGE_BYTES)}
    if isinstance(error, ValidationError):
        told["field"] = clip(error.field, METADATA_VALUE_BYTES)
    if isinstance(error, (RateLimited, CircuitOpen)):
        told["retry_after"] = round(error.retry_after, 3)
    if isinstance(error, LegalHoldActive):
        told["hold_ids"] = list(error.hold_ids)
    if error.metadata:
        told["metadata"] = {name: clip(value, METADATA_VALUE_BYTES) for name, value in error.metadata.items()}
    if request_id is not None:
        told["request_id"] = request_id
    return {"error": told}
