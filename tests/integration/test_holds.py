"""Holds over the wire: the refusal names them in a form that programs read, and the client raises it again."""

import grpc
import pytest
from google.rpc import error_details_pb2

from astrocyte.api.requests import Forget, ListHolds, PlaceHold, ReleaseHold, Retain
from astrocyte.errors import LegalHoldActive
from astrocyte.model import Caller, ForgetSelector, RetainItem
from astrocyte.policy.governance.audit_verification import verify
from astrocyte.v1 import memory_pb2
from harness.serving import detail, reason, serving

ME = Caller()
ALL = ForgetSelector(scope="all")


async def test_a_refusal_names_the_holds_and_the_client_raises_it() -> None:
    async with serving() as served:
        await served.backend.call(ME, Retain("family", RetainItem("Mara plays the oboe.")))
        placed = await served.backend.call(ME, PlaceHold("family", reason="case", hold_id="case-1"))
        assert (await served.backend.call(ME, ListHolds(bank_id="family"))).holds == (placed,)
        with pytest.raises(grpc.aio.AioRpcError) as failure:
            await served.memory.Forget(memory_pb2.ForgetRequest(bank_id="family", scope=memory_pb2.FORGET_SCOPE_ALL))
        assert failure.value.code() is grpc.StatusCode.FAILED_PRECONDITION
        assert reason(failure.value) == "LEGAL_HOLD_ACTIVE"
        (violation,) = detail(failure.value, error_details_pb2.PreconditionFailure).violations
        assert (violation.type, violation.subject) == ("LEGAL_HOLD_ACTIVE", "case-1")
        with pytest.raises(LegalHoldActive) as refusal:
            await served.backend.call(ME, Forget("family", ALL))
        assert (refusal.value.bank_id, refusal.value.hold_ids) == ("family", ("case-1",))
        assert (await served.backend.call(ME, ReleaseHold("family", "case-1"))).released_by == "local"
        assert (await served.backend.call(ME, Forget("family", ALL))).deleted_count == 1
        assert (await verify(served.backend, ME)).rows == 3
