"""Paths of the annotations."""

from __future__ import annotations

import re

import pytest

from astrocyte.api import RPCS
from astrocyte.api.requests import GetBank, Recall
from astrocyte.gateway.routes import Binding, Router, bindings
from astrocyte.services.convert import descriptor_of

FOUND = list(bindings(RPCS.values()))
ROUTER = Router(FOUND)


def find(verb: str, path: str) -> tuple[str | None, dict[str, str], list[str]]:
    binding, values, allowed = ROUTER.find(verb, path)
    return None if binding is None else binding.rpc.name, dict(values), allowed


@pytest.mark.parametrize(
    ("verb", "path", "name", "values"),
    [
        ("POST", "/v1/recall", "Recall", {}),
        ("POST", "/v1/recall:batch", "BatchRecall", {}),
        ("GET", "/v1/banks", "ListBanks", {}),
        ("GET", "/v1/banks/a:b@c.d", "GetBank", {"bank_id": "a:b@c.d"}),
        ("POST", "/v1/banks/a:reindex", "StartReindex", {"bank_id": "a"}),
        ("POST", "/v1/banks/a:reindex:reindex", "StartReindex", {"bank_id": "a:reindex"}),
        ("GET", "/v1/banks/a:reindex", "GetBank", {"bank_id": "a:reindex"}),
        ("PATCH", "/v1/banks/a/memories/m", "UpdateMemory", {"bank_id": "a", "memory_id": "m"}),
        ("POST", "/v1/banks/a/memories/m:undelete", "UndeleteMemory", {"bank_id": "a", "memory_id": "m"}),
        ("POST", "/v1/banks/a/operations/o:wait", "WaitOperation", {"bank_id": "a", "operation_id": "o"}),
    ],
)
def test_a_path_leads_to_its_rpc(verb: str, path: str, name: str, values: dict[str, str]) -> None:
    assert find(verb, path)[:2] == (name, values)


def test_a_path_knows_its_methods() -> None:
    assert find("PUT", "/v1/banks") == (None, {}, ["GET", "POST"])
    assert find("POST", "/v1/banks/a") == (None, {}, ["DELETE", "GET", "PATCH"])
    assert find("GET", "/v1/nothing") == (None, {}, [])
    assert find("GET", "/v1/banks/a/memories/") == (None, {}, [])


def test_every_binding_is_found_under_its_path() -> None:
    for binding in FOUND:
        path = re.sub(r"\{\w+\}", "x1", binding.template)
        assert ROUTER.find(binding.verb, path)[0] is binding


def test_rules_that_are_not_served_are_refused() -> None:
    recall = RPCS[Recall]
    for template, body in (("/v1/{query=*}", ""), ("/v1/{a.b}", ""), ("/v1/x", "query")):
        with pytest.raises(ValueError, match="serves no rule"):
            Binding(recall, descriptor_of(recall), "GET", template, body)


def test_a_path_that_is_there_twice_is_refused() -> None:
    bank = RPCS[GetBank]
    twice = [Binding(bank, descriptor_of(bank), "GET", "/v1/x", "") for _ in range(2)]
    with pytest.raises(ValueError, match="is in the protocol twice"):
        Router(twice)
