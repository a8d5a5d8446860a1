"""Messages to JSON."""

from __future__ import annotations

import json
from typing import Any

from google.protobuf import json_format
from google.protobuf.descriptor import FieldDescriptor
from google.rpc.status_pb2 import Status
from hypothesis import given
from hypothesis import strategies as st

from astrocyte.errors import BankNotFound
from astrocyte.gateway.reading import read_message
from astrocyte.gateway.writing import writer
from astrocyte.services.status import to_status
from astrocyte.v1 import memory_pb2, types_pb2


def write(message: Any) -> Any:
    return json.loads(json.dumps(writer(message.DESCRIPTOR)(message)))


def test_an_empty_message_has_its_fields() -> None:
    assert write(memory_pb2.ForgetResponse()) == {
        "deleted_count": 0,
        "archived_count": 0,
        "memory_ids": [],
        "dry_run": False,
        "position": 0,
        "engines": [],
    }


def test_what_is_unset_is_left_out() -> None:
    assert "confidence" not in write(memory_pb2.ReflectResponse())
    assert "mode" not in write(memory_pb2.ReflectResponse())
    assert write(memory_pb2.ReflectResponse(confidence=0.0, mode=1))["confidence"] == 0.0  # type: ignore[arg-type]  # a number
    assert write(memory_pb2.ReflectResponse(mode=1))["mode"] == "extractive"  # type: ignore[arg-type]  # as above


def test_values_have_the_types_of_json() -> None:
    hit = types_pb2.MemoryHit(memory_id="m", score=0.5)
    hit.retained_at.FromJsonString("2025-01-31T09:30:00.1239Z")
    hit.metadata["n"].int_value = 2**53 + 1
    hit.metadata["none"].null_value = 0  # type: ignore[assignment]  # NULL_VALUE
    found = write(hit)
    assert found["metadata"] == {"n": 2**53 + 1, "none": None}
    assert found["retained_at"] == "2025-01-31T09:30:00.123Z"
    assert write(memory_pb2.ErasureReceipt(counts={"memories": 2}))["counts"] == {"memories": 2}


def test_a_failed_item_has_the_error_of_a_failed_call() -> None:
    message = memory_pb2.StreamRetainResponse(sequence=3, error=to_status(BankNotFound("family")))
    assert write(message)["error"]["code"] == "bank_not_found"
    assert write(memory_pb2.StreamRetainResponse(error=Status(code=8, message="x")))["error"]["code"] == "overloaded"


NAMES = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8)
REQUESTS = st.builds(
    memory_pb2.RecallRequest,
    bank_id=NAMES,
    max_results=st.integers(-(2**31), 2**31 - 1),
    min_position=st.integers(-(2**63), 2**63 - 1),
    tags=st.lists(NAMES, max_size=3),
    include_trace=st.one_of(st.none(), st.booleans()),
    rank_constant=st.one_of(st.none(), st.floats(allow_nan=False, allow_infinity=False)),
    weights=st.dictionaries(NAMES, st.floats(allow_nan=False, allow_infinity=False), max_size=3),
    fusion_method=st.sampled_from([0, 1, 2]),
    strategy=st.one_of(st.none(), st.builds(memory_pb2.MultiBankStrategy, mode=st.sampled_from([0, 1, 2, 3]))),
)


@given(REQUESTS)
def test_what_is_written_is_read_back(message: Any) -> None:
    assert read_message(message.DESCRIPTOR, write(message)) == message


@given(REQUESTS)
def test_it_is_protobufs_mapping_but_for_enums_and_64_bits(message: Any) -> None:
    theirs = json.loads(json_format.MessageToJson(message, preserving_proto_field_name=True))
    ours = write(message)
    for name, value in theirs.items():
        field = message.DESCRIPTOR.fields_by_name[name]
        if field.enum_type is None and name != "strategy":
            assert ours[name] == (int(value) if field.type == FieldDescriptor.TYPE_INT64 else value), name
