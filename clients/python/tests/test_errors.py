"""Statuses as errors, and the parts of calls."""

from __future__ import annotations

import grpc
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.rpc import error_details_pb2
from google.rpc.status_pb2 import Status

from astrocyte_client import AstrocyteError, LimitReachedError, UnavailableError, error_from_status
from astrocyte_client.connection import UNSET, call_metadata
from astrocyte_client.errors import DETAILS_KEY, error_from_call
from astrocyte_client.methods import RPCS
from astrocyte_client.v1 import admin_pb2, memory_pb2


def status_with(code: grpc.StatusCode, *details: Message) -> Status:
    found = Status(code=code.value[0], message="told to fail")
    for detail in details:
        found.details.add().Pack(detail)
    return found


def test_details_become_attributes() -> None:
    info = error_details_pb2.ErrorInfo(domain="astrocyte.dev", reason="LIMIT_REACHED", metadata={"kind": "minute"})
    retry = error_details_pb2.RetryInfo(retry_delay=Duration(seconds=1, nanos=500_000_000))
    violation = error_details_pb2.BadRequest.FieldViolation(field="items[3].content")
    request = error_details_pb2.BadRequest(field_violations=[violation])
    error = error_from_status(status_with(grpc.StatusCode.RESOURCE_EXHAUSTED, info, retry, request))
    assert type(error) is LimitReachedError
    assert (error.metadata, error.retry_after, error.field) == ({"kind": "minute"}, 1.5, "items[3].content")


def test_another_domain_has_no_reason_here() -> None:
    info = error_details_pb2.ErrorInfo(domain="example.com", reason="BANK_NOT_FOUND")
    error = error_from_status(status_with(grpc.StatusCode.NOT_FOUND, info))
    assert (type(error), error.reason, error.retry_after) == (AstrocyteError, "", None)


def test_a_status_without_details_has_the_reason_of_its_code() -> None:
    error = error_from_call(grpc.StatusCode.UNAVAILABLE, "down", None)
    assert (type(error), error.reason, error.message) == (UnavailableError, "UNAVAILABLE", "down")


def test_details_that_are_no_status_are_left_out() -> None:
    trailers = ((DETAILS_KEY, b"\xff\xff"), ("x-request-id", "id-1"))
    error = error_from_call(grpc.StatusCode.INTERNAL, "no", trailers)
    assert (type(error), error.request_id) == (AstrocyteError, "id-1")


def test_the_bank_of_a_request_is_in_its_metadata() -> None:
    explain = memory_pb2.ExplainRequest(recall=memory_pb2.RecallRequest(bank_id="family"))
    assert RPCS["Explain"].headers(explain) == (("x-astrocyte-bank", "family"),)
    assert RPCS["Recall"].headers(memory_pb2.RecallRequest(bank_id="no bank\n")) == ()
    assert RPCS["ListBanks"].headers(admin_pb2.ListBanksRequest()) == ()
    assert call_metadata("key", (("a", "b"),), {"c": "d"}) == (("authorization", "Bearer key"), ("a", "b"), ("c", "d"))


def test_a_request_id_is_filled_in_a_copy_or_kept() -> None:
    given = memory_pb2.RetainRequest(content="c")
    filled = RPCS["Retain"].message(given, {})
    assert (len(filled.request_id), given.request_id) == (36, "")
    assert RPCS["Retain"].message(None, {"request_id": "mine"}).request_id == "mine"


def test_deadlines_follow_from_the_call() -> None:
    wait, recall = RPCS["WaitOperation"], RPCS["Recall"]
    assert recall.deadline(memory_pb2.RecallRequest(), 30.0, UNSET) == 30.0
    assert recall.deadline(memory_pb2.RecallRequest(), None, UNSET) is None
    assert recall.deadline(memory_pb2.RecallRequest(), 30.0, None) is None
    assert wait.deadline(admin_pb2.WaitOperationRequest(), 30.0, UNSET) == 60.0
    assert wait.deadline(admin_pb2.WaitOperationRequest(timeout=Duration(seconds=100)), 30.0, UNSET) == 130.0
