"""JSON to messages: what is accepted, what is refused, and with which path."""

from __future__ import annotations

import json
import struct
from typing import Any

import pytest
from google.protobuf.descriptor import Descriptor

from astrocyte.errors import ValidationError
from astrocyte.gateway.reading import read_message
from astrocyte.v1 import admin_pb2, memory_pb2

RETAIN = memory_pb2.RetainRequest.DESCRIPTOR
RECALL = memory_pb2.RecallRequest.DESCRIPTOR
WAIT = admin_pb2.WaitOperationRequest.DESCRIPTOR
PART = memory_pb2.RetainItem.DESCRIPTOR


def read(kind: Descriptor, **values: Any) -> Any:
    return read_message(kind, json.loads(json.dumps(values)))


def refused(kind: Descriptor, **values: Any) -> tuple[str, str]:
    with pytest.raises(ValidationError) as refusal:
        read_message(kind, values)
    return refusal.value.field, refusal.value.description


def test_names_are_those_of_the_protocol_or_of_its_json() -> None:
    assert read(RETAIN, bank_id="b") == read(RETAIN, bankId="b") == memory_pb2.RetainRequest(bank_id="b")


def test_null_is_unset() -> None:
    assert read(RETAIN, bank_id="b", tags=None, occurred_at=None, dedup_threshold=None) == read(RETAIN, bank_id="b")


@pytest.mark.parametrize("name", ["text", "CONTENT_TYPE_TEXT"])
def test_an_enum_is_read_by_either_name(name: str) -> None:
    assert read(RETAIN, content_type=name).content_type == memory_pb2.RetainRequest(content_type=1).content_type  # type: ignore[arg-type]  # a number


def test_metadata_keeps_the_types_of_json() -> None:
    found = read(RETAIN, metadata={"a": "x", "b": 1, "c": 1.5, "d": True, "e": None}).metadata
    assert {key: value.WhichOneof("kind") for key, value in found.items()} == {
        "a": "string_value",
        "b": "int_value",
        "c": "double_value",
        "d": "bool_value",
        "e": "null_value",
    }


def test_a_strategy_is_a_name_or_an_object() -> None:
    short, whole = read(RECALL, strategy="first_match"), read(RECALL, strategy={"mode": "first_match"})
    assert short == whole
    assert short.strategy.mode == 3
    assert read(RECALL, strategy={"mode": "cascade", "bank_weights": {"a": 2}}).strategy.bank_weights == {"a": 2.0}


def test_a_vector_is_a_list_of_numbers_or_bytes() -> None:
    found = read(RECALL, embedding={"model": "m", "values": [1, 0.5]}).embedding
    assert (found.dimensions, found.values) == (2, struct.pack("<2f", 1.0, 0.5))
    same = read(RECALL, embedding={"model": "m", "dimensions": 2, "values": "AACAPwAAAD8="}).embedding
    assert same == found
    assert read(RECALL, embedding={"model": "m", "dimensions": 2, "values": "AACAPwAAAD8"}).embedding == found


@pytest.mark.parametrize(
    ("text", "seconds", "nanos"),
    [
        ("2025-01-01T00:00:00Z", 1_735_689_600, 0),
        ("2025-01-01T01:00:00.25+01:00", 1_735_689_600, 250_000_000),
        ("1969-12-31T23:59:59.5Z", -1, 500_000_000),
    ],
)
def test_instants(text: str, seconds: int, nanos: int) -> None:
    found = read(RETAIN, occurred_at=text).occurred_at
    assert (found.seconds, found.nanos) == (seconds, nanos)


@pytest.mark.parametrize(
    ("text", "seconds", "nanos"), [("2.5s", 2, 500_000_000), ("-0.5s", 0, -500_000_000), ("3s", 3, 0)]
)
def test_durations(text: str, seconds: int, nanos: int) -> None:
    found = read(WAIT, timeout=text).timeout
    assert (found.seconds, found.nanos) == (seconds, nanos)


@pytest.mark.parametrize("value", [7, 7.0, "7"])
def test_whole_numbers(value: Any) -> None:
    assert read(RECALL, max_results=value).max_results == 7


@pytest.mark.parametrize(
    ("kind", "values", "field", "said"),
    [
        (RECALL, {"qurey": "x"}, "qurey", "did you mean query?"),
        (RECALL, {"x" * 500: 1}, "x" * 64, "is no field here"),
        (RECALL, {"query": 1}, "query", "must be text, got a number"),
        (RECALL, {"tags": "x"}, "tags", "must be a list, got text"),
        (RECALL, {"tags": ["x", 1]}, "tags[1]", "must be text"),
        (RECALL, {"max_results": 1.5}, "max_results", "must be a whole number"),
        (RECALL, {"max_results": True}, "max_results", "must be a whole number, got a boolean"),
        (RECALL, {"max_results": 2**31}, "max_results", "must be from -2147483648 to 2147483647"),
        (RECALL, {"max_results": "9" * 40}, "max_results", "must be a whole number"),
        (RECALL, {"max_results": "٣"}, "max_results", "must be a whole number"),
        (RECALL, {"include_trace": "yes"}, "include_trace", "must be true or false"),
        (RECALL, {"include_trace": []}, "include_trace", "must be true or false, got a list"),
        (RECALL, {"fusion_method": ["rrf"]}, "fusion_method", "must be one of rrf, relative_score, dbsf"),
        (RECALL, {"fusion_method": "best"}, "fusion_method", "must be one of rrf, relative_score, dbsf"),
        (RECALL, {"fusion_method": 1}, "fusion_method", "must be one of rrf, relative_score, dbsf"),
        (RECALL, {"strategy": "random"}, "strategy.mode", "must be one of parallel, cascade, first_match"),
        (RECALL, {"layer_weights": {"semantic": "much"}}, "layer_weights[semantic]", "must be a number"),
        (RECALL, {"time_range": []}, "time_range", "must be an object, got a list"),
        (RECALL, {"time_range": {"start": "2025-01-01"}}, "time_range.start", "has no offset from UTC"),
        (RECALL, {"as_of": "yesterday"}, "as_of", "must be an instant of RFC 3339"),
        (RECALL, {"as_of": 1_700_000_000}, "as_of", "must be text"),
        (RECALL, {"embedding": {"values": [1, "x"]}}, "embedding.values", "must be a number"),
        (RECALL, {"embedding": {"values": [1e300]}}, "embedding.values", "beyond the range"),
        (RECALL, {"embedding": {"values": "!!"}}, "embedding.values", "must be bytes in base64"),
        (RECALL, {"bank_id": "a", "bankId": "b"}, "bank_id", "is given twice"),
        (RETAIN, {"metadata": {"k": {"a": 1}}}, "metadata[k]", "must be text, a number, true, false or null"),
        (RETAIN, {"metadata": {"k": 2**63}}, "metadata[k]", "must be from"),
        (PART, {"parts": [{"text": "x", "image": {}}]}, "parts[0].image", "excludes text"),
        (WAIT, {"timeout": "2.5"}, "timeout", "must be seconds with the unit"),
        (WAIT, {"timeout": "999999999999s"}, "timeout", "is longer than"),
    ],
)
def test_refusals(kind: Descriptor, values: dict[str, Any], field: str, said: str) -> None:
    found, description = refused(kind, **values)
    assert found == field
    assert said in description


@pytest.mark.parametrize("value", [None, [], "x", 1])
def test_a_request_is_an_object(value: Any) -> None:
    with pytest.raises(ValidationError, match="request: must be an object"):
        read_message(RECALL, value)


def test_no_refusal_has_a_value_in_it() -> None:
    secret = "the secret of Mara"
    for values in ({"max_results": secret}, {"as_of": secret}, {"fusion_method": secret}, {"tags": secret}):
        assert secret not in " ".join(refused(RECALL, **values))
