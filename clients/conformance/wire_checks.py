"""Checks of metadata, deadlines, retries and errors against a recording server."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import grpc

from conformance.calls import call
from conformance.drivers import Driver
from conformance.wire import Failure, Recorder

Check = Callable[[Driver, Mapping[str, Any], Recorder], None]
# Tries of the retry policy, the first one included.
ATTEMPTS = 4
RECALL = {"bankId": "family", "query": "q"}
# A call arrives within this time, and clients round its deadline up by less than that.
LATE_SECONDS = 5.0
ROUNDED_SECONDS = 1.0
UNAVAILABLE = Failure(grpc.StatusCode.UNAVAILABLE, "UNAVAILABLE")


def bank_header(driver: Driver, connection: Mapping[str, Any], recorder: Recorder) -> None:
    """Calls that name a bank have it in their metadata, with the API key and the caller's own headers."""
    asked = {**connection, "api_key": "key-1"}
    call(driver, asked, "Recall", RECALL, headers={"x-request-id": "id-1"})
    call(driver, asked, "Explain", {"recall": RECALL, "memoryIds": ["mem_1"]})
    call(driver, asked, "Watch", {"bankId": "family"})
    call(driver, asked, "StreamReflect", {"reflect": RECALL})
    call(driver, connection, "ListBanks", {})
    call(driver, connection, "Recall", {"bankId": "no bank\n", "query": "q"})
    banks = [seen.headers.get("x-astrocyte-bank") for seen in recorder.seen]
    assert banks == ["family", "family", "family", "family", None, None], banks
    keys = [seen.headers.get("authorization") for seen in recorder.seen]
    assert keys == ["Bearer key-1"] * 4 + [None, None], keys
    assert recorder.seen[0].headers["x-request-id"] == "id-1"


def request_id(driver: Driver, connection: Mapping[str, Any], recorder: Recorder) -> None:
    """An empty request id of a write is filled, the same for all tries; a given one is kept."""
    recorder.failures.append(UNAVAILABLE)
    call(driver, connection, "Retain", {"bankId": "family", "content": "c"})
    call(driver, connection, "Retain", {"bankId": "family", "content": "c", "requestId": "mine"})
    first, second, given = (seen.request.request_id for seen in recorder.seen)
    assert first == second, (first, second)
    assert len(first) == len("00000000-0000-0000-0000-000000000000"), first
    assert given == "mine", given


def retries(driver: Driver, connection: Mapping[str, Any], recorder: Recorder) -> None:
    """A call that the server could not take is tried again, at most four times in all."""
    recorder.failures += [UNAVAILABLE, Failure(grpc.StatusCode.RESOURCE_EXHAUSTED, "OVERLOADED")]
    assert "responses" in call(driver, connection, "Recall", RECALL)
    assert len(recorder.seen) == len([UNAVAILABLE, "overloaded", "answer"])
    recorder.seen.clear()
    recorder.failures += [UNAVAILABLE] * 9
    error = call(driver, connection, "Recall", RECALL)["error"]
    assert error["kind"] == "Unavailable", error
    assert len(recorder.seen) == ATTEMPTS, len(recorder.seen)


def pushback(driver: Driver, connection: Mapping[str, Any], recorder: Recorder) -> None:
    """The server's delay is kept; a negative one ends the tries, and the error has the delay of RetryInfo."""
    recorder.failures.append(Failure(grpc.StatusCode.RESOURCE_EXHAUSTED, "LIMIT_REACHED", pushback="700"))
    began = time.monotonic()
    assert "responses" in call(driver, connection, "Recall", RECALL)
    assert time.monotonic() - began >= 0.69, time.monotonic() - began  # noqa: PLR2004 - the delay, less a clock's tick
    recorder.seen.clear()
    refusal = Failure(grpc.StatusCode.RESOURCE_EXHAUSTED, "LIMIT_REACHED", pushback="-1", retry_after=3600.5)
    recorder.failures.append(refusal)
    error = call(driver, connection, "Recall", RECALL)["error"]
    assert (error["kind"], error["retry_after"]) == ("LimitReached", 3600.5), error
    assert len(recorder.seen) == 1, len(recorder.seen)


def no_retries(driver: Driver, connection: Mapping[str, Any], recorder: Recorder) -> None:
    """Without retries, and for other codes, there is one try."""
    recorder.failures.append(UNAVAILABLE)
    error = call(driver, {**connection, "retries": False}, "Recall", RECALL)["error"]
    assert error["reason"] == "UNAVAILABLE", error
    recorder.failures.append(Failure(grpc.StatusCode.INTERNAL, "STORE_FAILED"))
    error = call(driver, connection, "Recall", RECALL)["error"]
    assert error["kind"] == "StoreFailed", error
    assert len(recorder.seen) == len(["unavailable", "failed"]), len(recorder.seen)


def deadlines(driver: Driver, connection: Mapping[str, Any], recorder: Recorder) -> None:
    """Calls have a default deadline, longer where the server takes longer; streams have none; callers may set both."""
    call(driver, connection, "Recall", RECALL)
    call(driver, connection, "Reflect", RECALL)
    call(driver, connection, "WaitOperation", {"bankId": "family", "operationId": "op"})
    call(driver, connection, "WaitOperation", {"bankId": "family", "operationId": "op", "timeout": "100.5s"})
    call(driver, connection, "Watch", {"bankId": "family"})
    call(driver, connection, "Recall", RECALL, deadline=7.0)
    call(driver, connection, "Watch", {"bankId": "family"}, deadline=8.0)
    wanted = [30.0, 90.0, 60.0, 130.5, None, 7.0, 8.0]
    seconds = [seen.seconds for seen in recorder.seen]
    assert len(seconds) == len(wanted), seconds
    for found, most in zip(seconds, wanted, strict=True):
        if most is None or found is None:
            assert found is most, seconds
        else:
            assert most - LATE_SECONDS < found <= most + ROUNDED_SECONDS, seconds


def errors(driver: Driver, connection: Mapping[str, Any], recorder: Recorder) -> None:
    """A reason that the client does not know keeps its name; a status without details has the reason of its code."""
    recorder.failures.append(Failure(grpc.StatusCode.NOT_FOUND, "NEW_REASON"))
    error = call(driver, connection, "Recall", RECALL)["error"]
    assert (error["reason"], error["code"]) == ("NEW_REASON", 5), error
    for code, reason in (
        (grpc.StatusCode.UNIMPLEMENTED, "NOT_SUPPORTED"),
        (grpc.StatusCode.UNAUTHENTICATED, "UNAUTHENTICATED"),
        (grpc.StatusCode.INTERNAL, ""),
    ):
        recorder.failures.append(Failure(code))
        error = call(driver, connection, "Recall", RECALL)["error"]
        assert error["reason"] == reason, error


CHECKS: tuple[Check, ...] = (bank_header, request_id, retries, pushback, no_retries, deadlines, errors)
