"""The barriers where a call names several banks: all of them judge, whatever their order, and refusing wins."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from astrocyte.api.requests import BatchRecall, CreateBank, Recall, Reflect, Retain
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.core import count_tokens
from astrocyte.errors import PiiRejected
from astrocyte.model import Caller, MemoryHit, RecallQuery, ReflectQuery, RetainItem
from astrocyte.policy.gate import Gate
from astrocyte.policy.privacy.pii_detectors import Span
from astrocyte.policy.privacy.pii_policy import redacted

ME = Caller()
MAIL = "write to ana@example.org, please"
REDACTED = "write to [EMAIL_REDACTED], please"
Open = Callable[..., Gate]


@pytest.fixture
async def opened() -> AsyncIterator[Open]:
    """Makes gates whose banks have these blocks, closed at the end."""
    apps: list[App] = []

    def make(**banks: dict[str, Any]) -> Gate:
        apps.append(App(Settings.from_mapping({"vector_store": "in_memory", "banks": banks})))
        return apps[-1].gate

    yield make
    for app in apps:
        await app.close()


def incoming(action: str) -> dict[str, Any]:
    return {"barriers": {"pii": {"mode": "regex", "action": action}}}


def outgoing(action: str | None, *, reflect: bool = False) -> dict[str, Any]:
    """A bank that takes everything, and does this with what leaves; None looks at nothing."""
    dlp = {"scan_recall_output": True, "scan_reflect_output": reflect, "output_pii_action": action}
    return {"barriers": {"pii": {"mode": "disabled"}}, "dlp": dlp if action is not None else {}}


@pytest.mark.parametrize("banks", [("softly", "strict"), ("strict", "softly"), ("plain", "softly", "strict")])
async def test_a_query_that_one_bank_refuses_is_refused_in_any_order(opened: Open, banks: tuple[str, ...]) -> None:
    gate = opened(softly=incoming("redact"), strict=incoming("reject"), plain=incoming("warn"))
    for bank in banks:
        await gate.call(ME, CreateBank(bank))
    with capture_logs() as logs:
        for work in (
            gate.call(ME, Recall(RecallQuery(MAIL, banks=banks))),
            gate.call(ME, BatchRecall([RecallQuery(MAIL, banks=banks)])),
            gate.call(ME, Reflect(ReflectQuery(MAIL, banks=banks))),
        ):
            with pytest.raises(PiiRejected):
                await work
    events = [(entry["event"].rpartition(".")[2], entry["bank_id"]) for entry in logs if "pii" in entry["event"]]
    assert events == [("pii_rejected", "strict")] * 3


async def test_what_one_bank_redacts_is_redacted_for_all_and_told_once(opened: Open) -> None:
    gate = opened(softly=incoming("redact"), other=incoming("redact"), plain=incoming("warn"))
    for bank in ("softly", "other", "plain"):
        await gate.call(ME, CreateBank(bank))
    query, warnings = await gate._policies.barriers.query("Recall", RecallQuery(MAIL), ("plain", "softly", "other"))
    assert query.query == REDACTED
    assert warnings == ("pii: found email (1)", "pii: redacted email (1)")


@pytest.mark.parametrize("claimed", ["open", "strict", "elsewhere", None])
async def test_what_the_caller_brings_is_judged_by_every_bank_whatever_it_says(
    opened: Open, claimed: str | None
) -> None:
    gate = opened(strict=outgoing("reject"), soft=outgoing("redact"), open=outgoing(None))
    for bank in ("strict", "soft", "open"):
        await gate.call(ME, Retain(bank, RetainItem(f"letters of {bank}")))
    brought = (MemoryHit(MAIL, 1.0, bank_id=claimed, also_in=("strict",), bank_rank=7),)

    async def ask(*banks: str) -> list[MemoryHit]:
        query = RecallQuery("letters", banks=banks, external_context=brought)
        return [hit for hit in (await gate.call(ME, Recall(query))).hits if "write" in hit.text]

    assert await ask("open", "strict") == await ask("strict", "open") == await ask("soft", "strict") == []
    for banks in (("open", "soft"), ("soft", "open")):
        (hit,) = await ask(*banks)
        assert hit.text == REDACTED
        assert (hit.bank_id, hit.also_in, hit.bank_rank) == (None, (), 0)
    (hit,) = await ask("open")
    assert hit.text == MAIL
    alone = await gate.call(ME, Recall(RecallQuery("letters", "soft", external_context=brought)))
    assert [(hit.text, hit.bank_id) for hit in alone.hits if "write" in hit.text] == [(REDACTED, "soft")]


async def test_counts_tell_of_what_left(opened: Open) -> None:
    gate = opened(strict=outgoing("reject"), soft=outgoing("redact"))
    for bank in ("strict", "soft"):
        await gate.call(ME, Retain(bank, RetainItem(f"{MAIL}: {bank}", fact_type=bank)))
        await gate.call(ME, Retain(bank, RetainItem(f"a letter of {bank}")))
    result = await gate.call(ME, Recall(RecallQuery("write a letter", banks=("strict", "soft"))))
    assert result.trace is not None
    assert sum((result.trace.layer_distribution or {}).values()) == len(result.hits) == 3
    for hit in result.hits:
        assert hit.token_count == count_tokens(hit.text)
    for told in result.trace.banks:
        own = [hit.token_count for hit in result.hits if hit.bank_id == told.bank_id]
        assert (told.found, told.kept, told.tokens) == (2, len(own), sum(own))
    alone = await gate.call(ME, Recall(RecallQuery("write a letter", "strict")))
    assert alone.trace is not None
    assert sum((alone.trace.layer_distribution or {}).values()) == len(alone.hits) == 1


@pytest.mark.parametrize("banks", [("strict", "open"), ("open", "strict")])
async def test_of_equal_contents_one_is_shown_that_its_bank_lets_leave(opened: Open, banks: tuple[str, ...]) -> None:
    gate = opened(strict=outgoing("reject", reflect=True), open=outgoing(None))
    for bank in banks:
        await gate.call(ME, Retain(bank, RetainItem(MAIL)))
    result = await gate.call(ME, Recall(RecallQuery("write to whom?", banks=banks)))
    assert [(hit.text, hit.bank_id) for hit in result.hits] == [(MAIL, "open")]
    assert result.warnings == ()
    answer = await gate.call(ME, Reflect(ReflectQuery("write to whom?", banks=banks, include_sources=True)))
    assert [hit.bank_id for hit in answer.sources or ()] == ["open"]


@given(
    st.text("abcdef", min_size=12, max_size=12),
    st.lists(st.tuples(st.integers(0, 11), st.integers(1, 6), st.sampled_from("XYZ")), max_size=6),
)
def test_nothing_of_any_finding_is_left(text: str, found: list[tuple[int, int, str]]) -> None:
    spans = [(Span(0, start, min(start + length, 12), name), name) for start, length, name in found]
    covered = {place for span, _ in spans for place in range(span.start, span.end)}
    left = "".join(letter for letter in redacted(text, spans) if letter.islower())
    assert left == "".join(letter for place, letter in enumerate(text) if place not in covered)


async def test_a_batch_is_judged_as_each_of_its_queries_alone(opened: Open) -> None:
    gate = opened(softly=incoming("redact"), plain=incoming("warn"), off={"barriers": {"pii": {"mode": "disabled"}}})
    sets = [("softly",), ("off",), ("plain", "softly"), ("plain",)]
    texts = [MAIL, "tea", "", f"{MAIL} tea", "call me", "ana@", "example.org"]
    queries = [RecallQuery(text) for text in texts for _ in sets]
    places = [place for _ in texts for place in range(len(sets))]
    with capture_logs() as together:
        judged = await gate._policies.barriers.queries("BatchRecall", queries, sets, places)
    with capture_logs() as apart:
        alone = [
            await gate._policies.barriers.query("BatchRecall", query, sets[place], f"queries[{index}].")
            for index, (query, place) in enumerate(zip(queries, places, strict=True))
        ]
    assert judged == alone
    # Two texts have an address, and three of the four sets look.
    assert [query is not own for (query, _), own in zip(judged, queries, strict=True)].count(True) == 2 * 2
    assert [warnings != () for _, warnings in judged].count(True) == 2 * 3
    assert [entry["event"] for entry in together] == [entry["event"] for entry in apart]
