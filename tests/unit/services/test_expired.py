"""Calls whose callers no longer wait are not executed."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import grpc
import pytest

from astrocyte.model import Caller
from astrocyte.services import interceptors
from astrocyte.services.admission import Admission
from astrocyte.services.draining import Draining
from astrocyte.services.interceptors import Calls, Rules
from astrocyte.v1 import memory_pb2
from harness.calls import METHODS

RECALL = METHODS["Recall"]


class Ended(Exception):  # noqa: N818 - what grpc's own does
    pass


class Context:
    """The context of a call that has so many seconds left."""

    def __init__(self, left: float | None) -> None:
        self.left = left
        self.code: grpc.StatusCode | None = None

    def invocation_metadata(self) -> tuple[()]:
        return ()

    def time_remaining(self) -> float | None:
        return self.left

    async def abort(self, code: grpc.StatusCode, *_: object) -> None:
        self.code = code
        raise Ended


class Served:
    def __init__(self) -> None:
        self.admission = Admission("read", 1)
        self.done = 0
        calls = Calls(lambda *_: Caller(), Draining(), 1_000_000)
        self._handler = calls.handler(RECALL, self._recall, Rules(self.admission, 5.0))

    async def _recall(self, *_: Any) -> memory_pb2.RecallResponse:
        self.done += 1
        return memory_pb2.RecallResponse()

    async def call(self, left: float | None) -> grpc.StatusCode | None:
        context = Context(left)
        serve: Any = self._handler.unary_unary
        with contextlib.suppress(Ended):
            await serve(b"", context)
        return context.code


@pytest.mark.parametrize(("left", "done"), [(None, 1), (5.0, 1), (0.0, 0)])
async def test_a_call_that_comes_too_late_is_not_begun(left: float | None, done: int) -> None:
    served = Served()
    code = await served.call(left)
    assert served.done == done
    assert code is (None if done else grpc.StatusCode.DEADLINE_EXCEEDED)
    assert served.admission.running == 0


@pytest.mark.parametrize("guarded", [True, False])
async def test_nor_is_one_that_waited_too_long(monkeypatch: pytest.MonkeyPatch, *, guarded: bool) -> None:
    if not guarded:
        monkeypatch.setattr(interceptors, "check_time", lambda _: None)
    served = Served()
    await served.admission.enter()
    late = asyncio.create_task(served.call(5.0))
    await asyncio.sleep(0)
    assert served.admission.waiting == 1
    monkeypatch.setattr(interceptors, "seconds_left", lambda: 0.0)
    served.admission.leave()
    # The control: without the check it is done for nobody.
    assert await late is (grpc.StatusCode.DEADLINE_EXCEEDED if guarded else None)
    assert served.done == (not guarded)
    assert served.admission.running == 0
