"""Every operation of the OpenAPI document, called with values that its schemas allow, and with others."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import hypothesis
import pytest
import schemathesis
from hypothesis.errors import Unsatisfiable
from schemathesis.checks import not_a_server_error
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from harness.browsing import gateway

# Streams that end only when their clients leave, and those whose requests are lines.
ENDLESS = {"Watch", "StreamRetain", "ImportBank"}
CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
# What is not configured, or not built, is no fault of the server.
NOT_SUPPORTED = 501


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with gateway(server={"reflect_deadline_seconds": 5}) as url:
        yield url


def call_everything(url: str, examples: int) -> set[str]:
    schema = schemathesis.openapi.from_url(f"{url}/openapi.json")
    schema.config.base_url = url
    called = set()
    for result in schema.get_all_operations():
        operation: Any = result.ok()  # type: ignore[union-attr]  # the document is valid, or the test ends here
        name = operation.definition.raw["operationId"]
        if name in ENDLESS:
            continue
        called.add(name)
        for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
            strategy = operation.as_strategy(generation_mode=mode)

            @hypothesis.given(case=strategy)
            @hypothesis.settings(
                max_examples=examples,
                deadline=None,
                derandomize=True,
                database=None,
                phases=[hypothesis.Phase.generate],
                suppress_health_check=list(hypothesis.HealthCheck),
            )
            def check(case: Any) -> None:
                response = case.call(timeout=20)
                if response.status_code != NOT_SUPPORTED:
                    case.validate_response(response, checks=CHECKS)

            # Of an operation without parameters, every request is as its schema says.
            with suppress(*[Unsatisfiable] * (mode is GenerationMode.NEGATIVE)):
                check()
    return called


@pytest.mark.timeout(240)
def test_no_operation_fails_for_a_fault_of_the_server(url: str) -> None:
    assert len(call_everything(url, 2)) > 35


@pytest.mark.slow
@pytest.mark.timeout(3_600)
def test_no_operation_fails_for_a_fault_of_the_server_in_many_calls(url: str) -> None:
    assert len(call_everything(url, 300)) > 35
