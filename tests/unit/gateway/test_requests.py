"""The message of a request, from its path, its parameters and its body."""

from __future__ import annotations

from typing import Any

import pytest

from astrocyte.api import RPCS
from astrocyte.errors import ValidationError
from astrocyte.gateway.requests import MOST_PARAMETERS, message_of
from astrocyte.gateway.routes import bindings

FOUND = {binding.rpc.name: binding for binding in bindings(RPCS.values())}


def made(name: str, query: str = "", body: bytes = b"", **path: str) -> Any:
    return message_of(FOUND[name], path, query.encode(), body)


def test_parameters_are_fields() -> None:
    found = made("ListMemories", "page_size=7&tags=a&tags=%C3%A4%2F%26&sessionId=s", bank_id="b")
    assert (found.bank_id, found.page_size, list(found.tags), found.session_id) == ("b", 7, ["a", "ä/&"], "s")
    assert made("ListGrants", "include_revoked=true").include_revoked is True
    assert made("CheckAccess", "permission=read", bank_id="b").permission == 1
    assert made("Watch", "after_position=0", bank_id="b").HasField("after_position")


def test_an_update_changes_the_fields_that_it_has() -> None:
    found = made("UpdateMemory", body=b'{"content": "x", "validFrom": null, "etag": "1"}', bank_id="b", memory_id="m")
    assert list(found.update_mask.paths) == ["content", "valid_from"]
    named = made("UpdateMemory", body=b'{"content": "x", "update_mask": "content,tags"}', bank_id="b", memory_id="m")
    assert list(named.update_mask.paths) == ["content", "tags"]
    assert list(made("UpdateBank", body=b'{"update_mask": ["description"]}', bank_id="b").update_mask.paths) == [
        "description"
    ]


@pytest.mark.parametrize(
    ("name", "query", "body", "path", "field"),
    [
        ("ListMemories", "size=7", b"", {"bank_id": "b"}, "size"),
        ("ListMemories", "page_size=x", b"", {"bank_id": "b"}, "page_size"),
        ("ListMemories", "page_size=1&page_size=2", b"", {"bank_id": "b"}, "page_size"),
        ("ListMemories", "bank_id=other", b"", {"bank_id": "b"}, "bank_id"),
        ("ListMemories", "tags.x=1", b"", {"bank_id": "b"}, "tags.x"),
        ("ListMemories", "tags=%ff", b"", {"bank_id": "b"}, "query"),
        ("ListMemories", "&".join(["tags=x"] * (MOST_PARAMETERS + 1)), b"", {"bank_id": "b"}, "query"),
        ("Recall", "bank_id=b", b"{}", {}, "query"),
        ("Recall", "", b"{", {}, "request"),
        ("Recall", "", b"[]", {}, "request"),
        ("Recall", "", b'{"query": "\xff"}', {}, "request"),
        ("Recall", "", b'{"query": "\\ud800"}', {}, "request"),
        ("Recall", "", b"[" * 5_000, {}, "request"),
        ("Recall", "", b'{"max_results": NaN}', {}, "request"),
        ("UpdateMemory", "", b'{"bank_id": "other"}', {"bank_id": "b", "memory_id": "m"}, "bank_id"),
    ],
)
def test_refusals(name: str, query: str, body: bytes, path: dict[str, str], field: str) -> None:
    with pytest.raises(ValidationError) as refusal:
        made(name, query, body, **path)
    assert refusal.value.field == field
