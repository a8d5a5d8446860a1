"""Messages as memories: fields, mappings, banks, and what is refused with its field."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from astrocyte.config import Settings
from astrocyte.config.sources.common import SourceSettings
from astrocyte.config.sources.kinds import storing
from astrocyte.errors import ConfigError, ValidationError
from astrocyte.ingest.messages import message_of, parse_json
from external.webhooks import PLAIN_AUTH


def source(**values: Any) -> SourceSettings:
    values = {"type": "webhook", "auth": PLAIN_AUTH, "target_bank": "tickets", **values}
    values = {key: value for key, value in values.items() if value is not None}
    return storing(Settings.from_mapping({"sources": {"desk": values}}).sources)["desk"]


MAPPING = {
    "content": "$.issue.body",
    "principal": "$.issue.user.login",
    "occurred_at": "$.issue.created",
    "tags": ["github", "$.issue.labels", "$.issue.state", "$.issue.none"],
    "metadata": {"number": "$.issue.number", "kind": "issue", "none": "$.none"},
}


def test_a_message_has_the_fields_of_a_retain() -> None:
    message = message_of(
        source(tags=["desk"], metadata={"from": "desk", "level": 1}, extraction_profile="builtin_text"),
        {
            "text": "The printer is on fire.",
            "tags": ["fire", "desk"],
            "metadata": {"level": 2},
            "occurred_at": "2026-05-01T10:00:00+02:00",
            "session_id": "t-1",
            "speaker": "Mara",
            "content_type": "email",
        },
    )
    item = message.item
    assert (message.bank_id, message.caller.principal, item.content) == ("tickets", "local", "The printer is on fire.")
    assert (item.tags, item.metadata) == (("desk", "fire"), {"from": "desk", "level": 2})
    assert (item.session_id, item.speaker, item.content_type) == ("t-1", "Mara", "email")
    assert item.extraction_profile == "builtin_text"
    assert item.occurred_at == datetime(2026, 5, 1, 8, tzinfo=UTC)


def test_a_mapping_reads_a_message_of_another_form() -> None:
    document = {
        "issue": {
            "body": "It burns.",
            "user": {"login": "ann"},
            "created": 1_700_000_000,
            "labels": ["hot", "red"],
            "state": "open",
            "number": 7,
        },
        "content": "not read",
    }
    configured = source(target_bank=None, target_bank_template="user-{principal}", principal="svc", mapping=MAPPING)
    message = message_of(configured, document)
    assert (message.bank_id, message.caller.principal) == ("user-ann", "svc")
    assert message.item.content == "It burns."
    assert message.item.tags == ("github", "hot", "red", "open")
    assert message.item.metadata == {"number": 7, "kind": "issue", "principal": "ann"}
    assert message.item.occurred_at == datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)


def test_a_template_takes_the_principal_of_the_source_where_the_message_names_none() -> None:
    template = {"target_bank": None, "target_bank_template": "user-{principal}"}
    assert message_of(source(principal="svc", **template), {"text": "a"}).bank_id == "user-svc"
    with pytest.raises(ValidationError, match="principal: is missing"):
        message_of(source(**template), {"text": "a"})


@pytest.mark.parametrize(
    ("document", "field"),
    [
        ({}, "content"),
        ({"content": "a", "text": "b"}, "content"),
        ({"content": 1}, "content"),
        ({"content": " "}, "content"),
        ({"content": "a", "tag": ["b"]}, "tag"),
        ({"content": "a", "tags": "b"}, "tags"),
        ({"content": "a", "tags": [1]}, "tags"),
        ({"content": "a", "metadata": []}, "metadata"),
        ({"content": "a", "metadata": {"b": {}}}, "metadata.b"),
        ({"content": "a", "occurred_at": "2026-05-01T10:00:00"}, "occurred_at"),
        ({"content": "a", "occurred_at": "yesterday"}, "occurred_at"),
        ({"content": "a", "occurred_at": 1e300}, "occurred_at"),
        ({"content": "a", "occurred_at": True}, "occurred_at"),
        ({"content": "a", "speaker": ""}, "speaker"),
        ({"content": "a", "principal": "p" * 257}, "principal"),
    ],
)
def test_a_wrong_field_is_named(document: dict[str, Any], field: str) -> None:
    with pytest.raises(ValidationError) as caught:
        message_of(source(), document)
    assert caught.value.field == field


@pytest.mark.parametrize("body", [b"", b"[]", b"1", b"{", b"\xff", b"[" * 100_000, json.dumps("x").encode()])
def test_a_body_that_is_no_object_is_refused(body: bytes) -> None:
    with pytest.raises(ValidationError, match="body: expected a JSON object"):
        parse_json(body)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"type": "proxy"}, "sources.desk"),
        ({"auth": None}, "sources.desk.*[Ff]ield required"),
        ({"auth": {"type": "hmac", "secret": "short"}}, "sources.desk.auth.secret.*16"),
        ({"auth": {"type": "standard_webhooks", "secret": "whsec_AAAA"}}, "sources.desk.auth.secret.*24 to 64"),
        ({"auth": {"type": "hmac", "secert": "short"}}, "did you mean sources.desk.auth.secret"),
        ({"target_bank_template": "user-{principal}"}, "exactly one of"),
        ({"target_bank": None, "target_bank_template": "user"}, "needs {principal} once"),
        ({"target_bank": None, "target_bank_template": "{x}-{principal}"}, "no other placeholder"),
        ({"extraction_profile": "none"}, "unknown profile 'none'"),
        ({"mapping": {"content": "issue.body"}}, "sources.desk.mapping.content"),
        ({"mapping": {"content": "$.a", "tags": ["$.a..b"]}}, "expected a path"),
        ({"targt_bank": "x"}, "did you mean sources.desk.target_bank"),
    ],
)
def test_settings_that_cannot_be_used_are_named(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        source(**values)
    assert "short" not in str(caught.value)
