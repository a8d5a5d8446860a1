"""Statuses and bodies of errors."""

from __future__ import annotations

import pytest

from astrocyte.errors import (
    AccessDenied,
    AstrocyteError,
    BankNotFound,
    CapabilityNotSupported,
    CircuitOpen,
    LegalHoldActive,
    PiiRejected,
    RateLimited,
    ValidationError,
)
from astrocyte.gateway.failures import body_of, headers_of, status_of
from astrocyte.services.status import CODES


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (AccessDenied("user:a", "b", "read"), 403, "access_denied"),
        (RateLimited("slow down", retry_after=1.5), 429, "overloaded"),
        (BankNotFound("b"), 404, "bank_not_found"),
        (ValidationError("is empty", field="query"), 400, "invalid_argument"),
        (PiiRejected("has an address"), 422, "pii_rejected"),
        (CapabilityNotSupported("not built"), 501, "not_supported"),
        (CircuitOpen("openai", 2.0), 503, "circuit_open"),
        (LegalHoldActive("b", ["case-1"]), 409, "legal_hold_active"),
        (AstrocyteError("internal"), 500, "internal"),
    ],
)
def test_status_and_code(error: AstrocyteError, status: int, code: str) -> None:
    assert (status_of(error), body_of(error)["error"]["code"]) == (status, code)


def test_every_exception_has_a_status() -> None:
    assert {kind.__name__ for kind in CODES if not 400 <= status_of(kind.__new__(kind)) <= 507} == set()


def test_what_is_known_beside_the_message() -> None:
    limited = RateLimited("slow down", retry_after=1.2345)
    assert body_of(limited, "r-1")["error"] == {
        "code": "overloaded",
        "message": "slow down",
        "retry_after": 1.234,
        "metadata": {"retry_after_seconds": "1.234"},
        "request_id": "r-1",
    }
    assert headers_of(limited) == {"retry-after": "2"}
    assert headers_of(RateLimited("", retry_after=0.001)) == {"retry-after": "1"}
    assert body_of(ValidationError("is empty", field="items[3].content"))["error"]["field"] == "items[3].content"
    assert body_of(LegalHoldActive("b", ["case-1"]))["error"]["hold_ids"] == ["case-1"]


def test_a_long_message_is_cut() -> None:
    assert len(body_of(AstrocyteError("x" * 100_000))["error"]["message"].encode()) <= 768
