from __future__ import annotations

import grpc
import pytest
from google.rpc import error_details_pb2
from google.rpc.status_pb2 import Status

from astrocyte import errors
from astrocyte.errors import (
    AstrocyteError,
    DiskFull,
    LimitReached,
    MessageTooLarge,
    QuotaExceeded,
    RateLimited,
    Unavailable,
    ValidationError,
)
from astrocyte.services.status import (
    CODES,
    DETAILS_KEY,
    DOMAIN,
    MESSAGE_BYTES,
    PUSHBACK_KEY,
    clip,
    code_of,
    from_details,
    from_status,
    to_status,
    trailers,
)
from astrocyte.v1 import errors_pb2

CLASSES = sorted(
    (kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, AstrocyteError)),
    key=lambda kind: kind.__name__,
)
EXAMPLES: dict[type[AstrocyteError], AstrocyteError] = {
    errors.ValidationError: errors.ValidationError("is empty", field="items[3].content", metadata={"limit": "9"}),
    errors.DimensionMismatch: errors.DimensionMismatch("has 3 values", field="embedding", metadata={"expected": "256"}),
    errors.AccessDenied: errors.AccessDenied("ann", "diary", "read"),
    errors.LegalHoldActive: errors.LegalHoldActive("diary", ["case-1", "case-2"]),
    errors.BankNotFound: errors.BankNotFound("diary"),
    errors.MemoryNotFound: errors.MemoryNotFound("mem_1", "diary"),
    errors.RateLimited: errors.RateLimited("slow down", retry_after=1.25, metadata={"kind": "read"}),
    errors.CircuitOpen: errors.CircuitOpen("openai", 1.25),
    errors.LimitReached: errors.LimitReached("a minute", retry_after=1.25, metadata={"bank_id": "diary"}),
}


def example(kind: type[AstrocyteError]) -> AstrocyteError:
    return EXAMPLES.get(kind) or kind("what happened", metadata={"bank_id": "diary"})


def details(status: Status, kind: type) -> list[object]:
    found = []
    for packed in status.details:
        detail = kind()
        if packed.Unpack(detail):
            found.append(detail)
    return found


def test_every_class_has_a_code_and_a_reason_of_its_own() -> None:
    assert set(CODES) == set(CLASSES)
    assert len({kind.reason for kind in CLASSES}) == len(CLASSES)


def test_the_protocol_declares_exactly_these_reasons() -> None:
    declared = {name.removeprefix("ERROR_REASON_") for name in errors_pb2.ErrorReason.keys()}  # noqa: SIM118 - an enum
    assert declared - {"UNSPECIFIED"} == {kind.reason for kind in CLASSES}


@pytest.mark.parametrize("kind", CLASSES)
def test_an_exception_survives_the_wire(kind: type[AstrocyteError]) -> None:
    error = example(kind)
    status = to_status(error)
    back = from_details(status.code, status.message, status.SerializeToString())
    assert type(back) is kind
    assert str(back) == str(error)
    assert back.metadata == error.metadata
    assert {name: value for name, value in vars(back).items() if name != "metadata"} == {
        name: value for name, value in vars(error).items() if name != "metadata"
    }


@pytest.mark.parametrize("kind", CLASSES)
def test_a_status_has_exactly_one_error_info(kind: type[AstrocyteError]) -> None:
    infos = details(to_status(example(kind)), error_details_pb2.ErrorInfo)
    assert [(info.reason, info.domain) for info in infos] == [(kind.reason, DOMAIN)]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("error", "detail"),
    [
        (EXAMPLES[errors.ValidationError], error_details_pb2.BadRequest),
        (EXAMPLES[errors.DimensionMismatch], error_details_pb2.BadRequest),
        (EXAMPLES[errors.RateLimited], error_details_pb2.RetryInfo),
        (EXAMPLES[errors.LimitReached], error_details_pb2.RetryInfo),
        (EXAMPLES[errors.BankNotFound], error_details_pb2.ResourceInfo),
        (EXAMPLES[errors.MemoryNotFound], error_details_pb2.ResourceInfo),
        (errors.AlreadyExists("bank 'b' exists", metadata={"bank_id": "b"}), error_details_pb2.ResourceInfo),
        (errors.FailedPrecondition("held"), error_details_pb2.PreconditionFailure),
        (errors.SchemaTooNew("newer"), error_details_pb2.PreconditionFailure),
    ],
)
def test_a_status_has_the_detail_of_its_kind(error: AstrocyteError, detail: type) -> None:
    assert len(details(to_status(error), detail)) == 1


def test_a_bad_request_names_the_field() -> None:
    (request,) = details(to_status(EXAMPLES[errors.ValidationError]), error_details_pb2.BadRequest)
    (violation,) = request.field_violations  # type: ignore[attr-defined]
    assert (violation.field, violation.description) == ("items[3].content", "is empty")


def test_a_resource_is_named() -> None:
    (resource,) = details(to_status(EXAMPLES[errors.MemoryNotFound]), error_details_pb2.ResourceInfo)
    assert (resource.resource_type, resource.resource_name) == ("astrocyte.dev/Memory", "mem_1")  # type: ignore[attr-defined]


def test_a_refusal_for_load_says_when_to_retry_to_applications_and_to_grpc() -> None:
    error = RateLimited("slow down", retry_after=1.25)
    status = to_status(error)
    (retry,) = details(status, error_details_pb2.RetryInfo)
    assert retry.retry_delay.ToMilliseconds() == 1_250  # type: ignore[attr-defined]
    assert dict(trailers(error, status)) == {DETAILS_KEY: status.SerializeToString(), PUSHBACK_KEY: "1250"}


@pytest.mark.parametrize(
    "error",
    [
        LimitReached("the day's quota is spent", retry_after=7_200.0),
        RateLimited("far too much", retry_after=5.001),
        QuotaExceeded("the bank is full"),
        DiskFull("no space"),
        MessageTooLarge("too large"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_grpc_is_told_not_to_retry_what_lasts(error: AstrocyteError) -> None:
    status = to_status(error)
    assert dict(trailers(error, status))[PUSHBACK_KEY] == "-1"
    retry = details(status, error_details_pb2.RetryInfo)
    assert [delay.retry_delay.ToMilliseconds() / 1_000 for delay in retry] == (  # type: ignore[attr-defined]
        [error.retry_after] if isinstance(error, RateLimited) else []
    )


def test_grpc_is_told_nothing_about_other_codes() -> None:
    error = Unavailable("stopping")
    assert PUSHBACK_KEY not in dict(trailers(error, to_status(error)))


def test_an_unknown_subclass_takes_the_code_of_its_parent() -> None:
    class StricterError(ValidationError):
        pass

    assert code_of(StricterError("no", field="x")) is grpc.StatusCode.INVALID_ARGUMENT


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (grpc.StatusCode.UNAVAILABLE, errors.Unavailable),
        (grpc.StatusCode.DEADLINE_EXCEEDED, errors.DeadlineExceeded),
        (grpc.StatusCode.UNIMPLEMENTED, errors.CapabilityNotSupported),
        (grpc.StatusCode.RESOURCE_EXHAUSTED, errors.RateLimited),
        (grpc.StatusCode.INVALID_ARGUMENT, errors.ValidationError),
        (grpc.StatusCode.UNAUTHENTICATED, errors.AuthorizationError),
        (grpc.StatusCode.UNKNOWN, AstrocyteError),
    ],
)
@pytest.mark.parametrize("trailer", [None, b"\xff\xff", Status(code=3).SerializeToString()])
def test_a_status_from_elsewhere_is_read_by_its_code(
    code: grpc.StatusCode, kind: type[AstrocyteError], trailer: bytes | None
) -> None:
    error = from_details(code.value[0], "as it was said", trailer)
    assert type(error) is kind
    assert "as it was said" in str(error)


def test_a_reason_of_another_domain_is_not_ours() -> None:
    status = Status(code=5, message="no")
    status.details.add().Pack(error_details_pb2.ErrorInfo(reason="BANK_NOT_FOUND", domain="example.com"))
    assert type(from_status(status)) is AstrocyteError


def test_long_values_are_cut_so_that_the_trailers_fit() -> None:
    error = ValidationError("é" * 5_000, field="f" * 5_000, metadata={f"key{i}": "漢" * 5_000 for i in range(50)})
    status = to_status(error)
    assert len(status.message.encode()) <= MESSAGE_BYTES
    assert status.message.endswith("…")
    # grpc sends the message percent-encoded and the details as base64; clients refuse more than 8 KiB.
    assert 3 * len(status.message.encode()) + len(status.SerializeToString()) * 4 // 3 < 8_000


def test_a_lone_surrogate_in_a_message_is_shown_not_sent() -> None:
    assert clip("a\ud800b", 100) == "a\\ud800b"
    assert to_status(AstrocyteError("\ud800", metadata={"\ud800": "\udfff"})).message == "\\ud800"
