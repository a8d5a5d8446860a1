"""The protocol keeps its own rules: generated code, lint, annotations, and the fields that twins share."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from google.api import annotations_pb2
from google.protobuf.descriptor import Descriptor

from astrocyte.v1 import memory_pb2
from calls import METHODS

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("program", [["generate.py", "--check"], ["lint.py"]])
def test_the_committed_code_and_the_rules(program: list[str]) -> None:
    command = [sys.executable, str(ROOT / "proto" / program[0]), *program[1:]]
    finished = subprocess.run(command, check=False, capture_output=True, text=True)
    assert finished.returncode == 0, finished.stdout + finished.stderr


@pytest.mark.parametrize("method", METHODS.values(), ids=lambda method: method.name)
def test_every_rpc_has_a_path_of_its_own(method: object) -> None:
    rules = {
        other.name: (rule.WhichOneof("pattern"), getattr(rule, rule.WhichOneof("pattern")))
        for other in METHODS.values()
        for rule in [other.GetOptions().Extensions[annotations_pb2.http]]
    }
    verb, path = rules[method.name]  # type: ignore[attr-defined]
    assert path.startswith("/v1/")
    assert list(rules.values()).count((verb, path)) == 1


def shape(message: Descriptor) -> dict[str, tuple[int, str | None, bool]]:
    return {
        field.name: (field.type, field.message_type.name if field.message_type else None, field.is_repeated)
        for field in message.fields
    }


def test_an_item_has_the_fields_of_the_request_that_holds_one() -> None:
    request = shape(memory_pb2.RetainRequest.DESCRIPTOR)
    for own in ("bank_id", "request_id", "validate_only"):
        del request[own]
    assert shape(memory_pb2.RetainItem.DESCRIPTOR) == request


def test_history_asks_with_fields_of_recall() -> None:
    recall = shape(memory_pb2.RecallRequest.DESCRIPTOR)
    history = shape(memory_pb2.HistoryRequest.DESCRIPTOR)
    assert history == {name: recall[name] for name in history}
