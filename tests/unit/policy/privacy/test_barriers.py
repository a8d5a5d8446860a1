"""The barriers at the gate: what is stored, searched and answered, and what callers and operators are told."""

from __future__ import annotations

import struct
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, get_args

import pytest
from structlog.testing import capture_logs

from astrocyte.api.requests import (
    BatchRecall,
    BatchRetain,
    CreateBank,
    GetBank,
    GetServerInfo,
    ListMemories,
    Recall,
    Retain,
    StreamRetain,
    UpdateMemory,
)
from astrocyte.app import App
from astrocyte.config import Settings, load_settings
from astrocyte.config.barriers import COUNTRIES, PiiType
from astrocyte.core import pii_kinds
from astrocyte.errors import BankNotFound, ConfigError, PiiRejected, ValidationError
from astrocyte.model import Caller, Embedding, MemoryUpdate, RecallQuery, RetainItem, RetainResult
from astrocyte.policy.gate import Gate

ME = Caller()
MAIL = "write to ana@example.org, please"
Open = Callable[..., Any]


@pytest.fixture
async def opened() -> AsyncIterator[Open]:
    """Makes gates from settings, closed at the end."""
    async with AsyncExitStack() as stack:

        async def make(settings: dict[str, Any] | None = None, **pii: Any) -> Gate:
            values = settings or {"barriers": {"pii": pii}}
            return await stack.enter_async_context(running({"vector_store": "in_memory", **values}))

        yield make


@asynccontextmanager
async def running(values: dict[str, Any]) -> AsyncIterator[Gate]:
    app = App(Settings.from_mapping(values))
    yield app.gate
    await app.close()


async def stored(gate: Gate, bank_id: str = "b") -> list[str]:
    return [memory.content for memory in (await gate.call(ME, ListMemories(bank_id))).memories]


def test_the_settings_know_the_types_and_countries_of_the_core() -> None:
    kinds = pii_kinds()
    assert tuple(name for name, _ in kinds) == get_args(PiiType)
    assert {country for _, country in kinds} - {""} == set(COUNTRIES)


async def test_what_is_found_is_replaced_before_it_is_stored(opened: Open) -> None:
    gate = await opened()
    with capture_logs() as logs:
        result = await gate.call(
            ME,
            Retain(
                "b",
                RetainItem(
                    f"{MAIL} or +44 20 7946 0958",
                    metadata={"phone": 4155550123, "note": "of ana@example.org", "count": 12},
                    tags=("ana@example.org", "bo@example.org", "friend"),
                    source="mailto:ana@example.org",
                    speaker="ana@example.org",
                ),
            ),
        )
    (memory,) = (await gate.call(ME, ListMemories("b"))).memories
    assert memory.content == "write to [EMAIL_REDACTED], please or [PHONE_REDACTED]"
    assert memory.metadata == {"phone": "[PHONE_REDACTED]", "note": "of [EMAIL_REDACTED]", "count": 12}
    assert memory.tags == ("[EMAIL_REDACTED]", "friend")
    assert memory.source == "mailto:[EMAIL_REDACTED]"
    assert memory.speaker == "[EMAIL_REDACTED]"
    assert result.warnings == ("pii: redacted email (6), phone (2)",)
    told = {(log["pattern"], log["count"], log["action"], log["bank_id"], log["operation"]) for log in logs}
    assert told == {("email", 6, "redact", "b", "Retain"), ("phone", 2, "redact", "b", "Retain")}
    assert "example.org" not in repr(logs)


async def test_a_refused_item_leaves_nothing_behind(opened: Open) -> None:
    gate = await opened(action="reject")
    item = RetainItem("fine", metadata={"mail": "ana@example.org"})
    for call, field in (
        (gate.call(ME, Retain("b", item)), "item"),
        (gate.call(ME, BatchRetain("b", [RetainItem("tea"), item])), "items[1]"),
    ):
        with pytest.raises(PiiRejected) as caught:
            await call
        assert caught.value.pii_types == ("email",)
        assert caught.value.metadata["field"] == field
        assert "example.org" not in str(caught.value)
    with pytest.raises(BankNotFound):
        await gate.call(ME, GetBank("b"))
    outcomes = await gate.call(ME, StreamRetain("b", [RetainItem("tea"), item, RetainItem("ham")]))
    assert [type(outcome) for outcome in outcomes] == [RetainResult, PiiRejected, RetainResult]


async def test_a_warning_changes_nothing_but_is_told(opened: Open) -> None:
    gate = await opened(action="warn")
    with capture_logs() as logs:
        result = await gate.call(ME, Retain("b", RetainItem(MAIL)))
    assert await stored(gate) == [MAIL]
    assert result.warnings == ("pii: found email (1)",)
    assert [log["event"] for log in logs] == ["astrocyte.policy.pii_detected"]


async def test_a_switched_off_barrier_lets_all_pass_and_says_so_where_it_was_asked_for(opened: Open) -> None:
    gate = await opened(mode="disabled")
    assert (await gate.call(ME, Retain("b", RetainItem(MAIL)))).warnings == ()
    (warning,) = (await gate.call(ME, Retain("b", RetainItem("Ana", pii_detected=True)))).warnings
    assert "switched off" in warning
    assert await stored(gate) == [MAIL, "Ana"]


async def test_types_have_actions_and_replacements_of_their_own(opened: Open) -> None:
    overrides = {
        "email": {"action": "ignore"},
        "phone": {"replacement": "<phone>"},
        "credit_card": {"action": "reject"},
        "ssn": {"action": "warn"},
    }
    gate = await opened(type_overrides=overrides)
    result = await gate.call(ME, Retain("b", RetainItem("ana@example.org, +44 20 7946 0958, ssn 123-45-6789")))
    assert await stored(gate) == ["ana@example.org, <phone>, ssn 123-45-6789"]
    assert result.warnings == ("pii: found ssn (1)", "pii: redacted phone (1)")
    with pytest.raises(PiiRejected, match=r"credit_card \(1\)"):
        await gate.call(ME, Retain("b", RetainItem("4111 1111 1111 1111")))


async def test_only_the_chosen_countries_and_targets_are_looked_at(opened: Open) -> None:
    gate = await opened(countries=["uk"], scan=["metadata"])
    await gate.call(ME, Retain("b", RetainItem(MAIL, metadata={"a": "NINO AB123456C", "b": "DNI 12345678Z"})))
    (memory,) = (await gate.call(ME, ListMemories("b"))).memories
    assert memory.content == MAIL
    assert memory.metadata == {"a": "NINO [NINO_REDACTED]", "b": "DNI 12345678Z"}
    assert (await gate.call(ME, Recall(RecallQuery("ana@example.org", "b")))).warnings == ()


async def test_own_patterns_are_applied(opened: Open) -> None:
    patterns = [
        {"name": "custom_id", "pattern": r"CUST-\d{8}", "replacement": "[REDACTED_CUSTOMER_ID]"},
        {"name": "badge", "pattern": "badge [0-9]+"},
    ]
    gate = await opened(patterns=patterns, type_overrides={"badge": {"action": "reject"}})
    result = await gate.call(ME, Retain("b", RetainItem("customer CUST-12345678 called")))
    assert await stored(gate) == ["customer [REDACTED_CUSTOMER_ID] called"]
    assert result.warnings == ("pii: redacted custom_id (1)",)
    with pytest.raises(PiiRejected, match="badge"):
        await gate.call(ME, Retain("b", RetainItem("badge 17")))


@pytest.mark.parametrize(
    ("pattern", "reason"), [("(?=x)y", "look-around"), (r"(a)\\1", "backreferences"), ("x*", "empty text")]
)
def test_a_pattern_that_is_not_linear_is_refused_with_its_line(tmp_path: Path, pattern: str, reason: str) -> None:
    path = tmp_path / "astrocyte.yaml"
    path.write_text(
        f'vector_store: in_memory\nbarriers:\n  pii:\n    patterns:\n      - name: mine\n        pattern: "{pattern}"\n'
    )
    with pytest.raises(ConfigError, match=reason) as caught:
        App(load_settings(path, environ={}))
    assert caught.value.metadata["line"] == "6"
    assert str(caught.value).startswith(f"{path}, line 6: barriers.pii.patterns.0.pattern: ")


@pytest.mark.parametrize(
    "pii",
    [
        {"patterns": [{"name": "email", "pattern": "x"}]},
        {"patterns": [{"name": "pii", "pattern": "x"}]},
        {"patterns": [{"name": "a", "pattern": "x"}, {"name": "a", "pattern": "y"}]},
        {"type_overrides": {"e_mail": {"action": "warn"}}},
        {"countries": ["XX"]},
        {"mode": "guess"},
        {"scan": ["session_id"]},
    ],
)
def test_settings_without_a_meaning_are_refused(pii: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        Settings.from_mapping({"barriers": {"pii": pii}})


async def test_a_bank_has_barriers_of_its_own(opened: Open) -> None:
    gate = await opened({"banks": {"strict": {"barriers": {"pii": {"action": "reject"}}}}})
    assert (await gate.call(ME, Retain("b", RetainItem(MAIL)))).stored
    with pytest.raises(PiiRejected):
        await gate.call(ME, Retain("strict", RetainItem(MAIL)))


@pytest.mark.parametrize("action", ["redact", "reject", "warn"])
async def test_the_callers_word_counts_where_nothing_is_found(opened: Open, action: str) -> None:
    gate = await opened(action=action)
    item = RetainItem("Ana lives in the blue house", pii_detected=True, tags=("friend",))
    if action == "reject":
        with pytest.raises(PiiRejected, match=r"pii \(1\)"):
            await gate.call(ME, Retain("b", item))
        return
    result = await gate.call(ME, Retain("b", item))
    assert result.stored
    expected = {"redact": ("[PII_REDACTED]", "redacted"), "warn": (item.content, "found")}[action]
    assert await stored(gate) == [expected[0]]
    assert result.warnings == (f"pii: {expected[1]} pii (1)",)


async def test_the_callers_word_adds_nothing_where_something_was_redacted(opened: Open) -> None:
    gate = await opened(scan=["tags"])
    await gate.call(ME, Retain("b", RetainItem(MAIL, pii_detected=True)))
    assert await stored(gate) == ["write to [EMAIL_REDACTED], please"]


async def test_a_repeated_request_says_again_what_was_done(opened: Open) -> None:
    gate = await opened()
    items = [RetainItem("tea"), RetainItem(MAIL)]
    first = await gate.call(ME, BatchRetain("b", items, request_id="r1"))
    assert first[1].warnings
    assert await gate.call(ME, BatchRetain("b", items, request_id="r1")) == first
    many = await gate.call(
        ME, StreamRetain("b", [RetainItem("ham"), RetainItem("of bo@x.org")], request_ids=["r2", "r3"])
    )
    assert await gate.call(ME, StreamRetain("b", [RetainItem("of bo@x.org")], request_ids=["r3"])) == many[1:]


async def test_checking_tells_the_caller_and_nobody_else(opened: Open) -> None:
    gate = await opened()
    with capture_logs() as logs:
        result = await gate.call(ME, Retain("b", RetainItem(MAIL, metadata={"token": "x"}), validate_only=True))
    assert result.warnings == ("pii: redacted email (1)", "metadata: left out 'token'")
    assert logs == []
    with pytest.raises(BankNotFound):
        await gate.call(ME, GetBank("b"))


async def test_an_update_passes_the_same_barrier(opened: Open) -> None:
    gate = await opened()
    made = await gate.call(ME, Retain("b", RetainItem("tea", source="a book")))
    assert made.memory_id is not None
    update = MemoryUpdate(
        made.memory_id, frozenset({"content", "tags", "metadata"}), MAIL, ("bo@x.org",), {"of": "bo@x.org"}
    )
    memory = await gate.call(ME, UpdateMemory("b", update))
    assert (memory.content, memory.tags) == ("write to [EMAIL_REDACTED], please", ("[EMAIL_REDACTED]",))
    assert memory.metadata == {"of": "[EMAIL_REDACTED]"}
    for wrong in (
        MemoryUpdate(made.memory_id, frozenset({"metadata"}), metadata={"password": "x"}),
        MemoryUpdate(made.memory_id, frozenset({"content"}), "x" * 102_401),
    ):
        with pytest.raises(ValidationError):
            await gate.call(ME, UpdateMemory("b", wrong))
    strict = await opened(action="reject")
    made = await strict.call(ME, Retain("b", RetainItem("tea")))
    with pytest.raises(PiiRejected):
        await strict.call(ME, UpdateMemory("b", MemoryUpdate(str(made.memory_id), frozenset({"content"}), MAIL)))
    assert await stored(strict) == ["tea"]


async def test_a_vector_of_what_was_redacted_is_not_kept(opened: Open) -> None:
    gate = await opened()
    foreign = Embedding("mine", 2, struct.pack("<2f", 1.0, 2.0))
    await gate.call(ME, CreateBank("b", embedding_model="mine", dimensions=2))
    with pytest.raises(ValidationError) as caught:
        await gate.call(ME, Retain("b", RetainItem(MAIL, embedding=foreign)))
    assert caught.value.field == "embedding"
    own = await gate.call(ME, GetServerInfo())
    vector = struct.pack(f"<{own.dimensions}f", 1.0, *[0.0] * (own.dimensions - 1))
    given = Embedding(own.embedding_model, own.dimensions, vector)
    await gate.call(ME, Retain("c", RetainItem(MAIL, embedding=given)))
    query = RecallQuery("", "c", embedding=given, weights={"semantic": 1.0})
    (hit,) = (await gate.call(ME, Recall(query))).hits
    assert hit.arms[0].score < 0.9


async def test_a_query_is_redacted_before_it_is_searched_for(opened: Open) -> None:
    gate = await opened()
    await gate.call(ME, Retain("b", RetainItem(MAIL)))
    await gate.call(ME, Retain("b", RetainItem("bo likes tea")))
    with capture_logs() as logs:
        result = await gate.call(ME, Recall(RecallQuery("who is ana@example.org", "b")))
    assert result.hits[0].text == "write to [EMAIL_REDACTED], please"
    assert result.warnings == ("pii: redacted email (1)",)
    assert [log["operation"] for log in logs] == ["Recall"]
    batch = await gate.call(ME, BatchRecall([RecallQuery("tea", "b"), RecallQuery("ana@example.org", "b")]))
    assert [one.warnings for one in batch] == [(), ("pii: redacted email (1)",)]


async def test_a_refused_query_is_not_searched_for(opened: Open) -> None:
    gate = await opened(action="reject")
    await gate.call(ME, Retain("b", RetainItem("tea")))
    with pytest.raises(PiiRejected):
        await gate.call(ME, Recall(RecallQuery("who is ana@example.org", "b")))
    with pytest.raises(PiiRejected) as caught:
        await gate.call(ME, BatchRecall([RecallQuery("tea", "b"), RecallQuery("ana@example.org", "b")]))
    assert caught.value.metadata["field"] == "queries[1].query"


@pytest.mark.parametrize("action", ["redact", "reject", "warn"])
async def test_what_leaves_is_looked_at_where_that_is_wanted(opened: Open, action: str) -> None:
    barriers = {"pii": {"mode": "disabled"}}
    gate = await opened({"barriers": barriers, "dlp": {"scan_recall_output": True, "output_pii_action": action}})
    await gate.call(
        ME, Retain("b", RetainItem(MAIL, metadata={"of": "bo@x.org"}, source="bo@x.org", tags=("bo@x.org",)))
    )
    await gate.call(ME, Retain("b", RetainItem("write a letter")))
    result = await gate.call(ME, Recall(RecallQuery("write", "b", include_sources=True)))
    texts = {hit.text for hit in result.hits}
    words = {"redact": "redacted", "reject": "refused", "warn": "found"}[action]
    assert result.warnings == (f"pii: {words} email (4)",)
    if action == "redact":
        assert texts == {"write to [EMAIL_REDACTED], please", "write a letter"}
        hit = next(hit for hit in result.hits if hit.metadata)
        assert (hit.metadata, hit.tags, hit.source) == (
            {"of": "[EMAIL_REDACTED]"},
            ("[EMAIL_REDACTED]",),
            "[EMAIL_REDACTED]",
        )
    else:
        assert texts == ({"write a letter"} if action == "reject" else {MAIL, "write a letter"})


async def test_what_leaves_is_left_alone_by_default(opened: Open) -> None:
    gate = await opened(mode="disabled")
    await gate.call(ME, Retain("b", RetainItem(MAIL)))
    assert (await gate.call(ME, Recall(RecallQuery("write", "b")))).hits[0].text == MAIL


@pytest.mark.parametrize(
    ("content", "field"),
    [
        ("x" * 101, "content"),
        ("%PDF-1.7 stream", "content"),
        ("\x89PNG\r\n\x1a\n", "content"),
        ("a\x01b\x02c\x03", "content"),
        ("\ufffd\ufffd\ufffdabc", "content"),
    ],
)
async def test_content_of_another_shape_is_refused(opened: Open, content: str, field: str) -> None:
    gate = await opened({"barriers": {"validation": {"max_content_length": 100}}})
    with pytest.raises(ValidationError) as caught:
        await gate.call(ME, Retain("b", RetainItem(content)))
    assert caught.value.field == field
    assert (await gate.call(ME, Retain("b", RetainItem("x" * 100)))).stored


async def test_each_check_of_content_can_be_switched(opened: Open) -> None:
    validation = {
        "reject_binary_content": False,
        "reject_empty_content": False,
        "allowed_content_types": ["text", "document"],
    }
    gate = await opened({"barriers": {"validation": validation}})
    assert (await gate.call(ME, Retain("b", RetainItem("%PDF-1.7 stream")))).stored
    with pytest.raises(ValidationError) as caught:
        await gate.call(ME, Retain("b", RetainItem("tea", content_type="email")))
    assert caught.value.field == "content_type"
    empty = await gate.call(ME, Retain("b", RetainItem(" \n")))
    assert (empty.stored, empty.retention_action) == (False, "skipped")
    items = [RetainItem(""), RetainItem("tea"), RetainItem("\ufeff")]
    for results in (
        await gate.call(ME, BatchRetain("b", items, request_id="r")),
        await gate.call(ME, StreamRetain("b", items)),
    ):
        assert results[0] == results[2] == empty
        assert isinstance(results[1], RetainResult)
        assert results[1].memory_id
    assert (await gate.call(ME, BatchRetain("b", items, request_id="r")))[0] == empty
    assert await gate.call(ME, BatchRetain("b", items[:1])) == [empty]
    assert len(await stored(gate)) == 2


async def test_empty_content_is_an_error_by_default(opened: Open) -> None:
    gate = await opened()
    with pytest.raises(ValidationError):
        await gate.call(ME, Retain("b", RetainItem(" ")))


@pytest.mark.parametrize(
    ("key", "value", "kept"),
    [
        ("password", "x", False),
        ("Password", "x", False),
        ("api-key", "x", False),
        ("apiKey", "x", False),
        ("APIKEY", "x", False),
        ("db_password", 1, False),
        ("openai.api_key", "x", False),
        ("api_key_prod", "x", False),
        ("token_count", 812, True),
        ("secretary", "Ana", True),
        ("tokens", 5, True),
    ],
)
async def test_blocked_keys_are_left_out_and_named(opened: Open, key: str, value: str | int, *, kept: bool) -> None:
    gate = await opened()
    result = await gate.call(ME, Retain("b", RetainItem("tea", metadata={key: value, "fine": 1})))
    (memory,) = (await gate.call(ME, ListMemories("b"))).memories
    assert (key in memory.metadata) is kept
    assert memory.metadata["fine"] == 1
    assert result.warnings == (() if kept else (f"metadata: left out {key!r}",))


async def test_metadata_is_refused_where_that_is_wanted(opened: Open) -> None:
    gate = await opened({"barriers": {"metadata": {"action": "reject", "max_metadata_size_bytes": 60}}})
    for metadata in ({"password": "x"}, {"note": "x" * 60}):
        with pytest.raises(ValidationError) as caught:
            await gate.call(ME, Retain("b", RetainItem("tea", metadata=metadata)))
        assert caught.value.field == "metadata"
    assert (await gate.call(ME, Retain("b", RetainItem("tea", metadata={"note": "x" * 40})))).stored
