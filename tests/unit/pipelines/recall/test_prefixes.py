"""Prefixes of a query: what they find, beside what else a query has, and what is refused."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from astrocyte import Astrocyte
from astrocyte.api.requests import (
    BatchRecall,
    BatchRetain,
    CreateBank,
    Explain,
    UpdateMemory,
)
from astrocyte.errors import ValidationError
from astrocyte.model import (
    ExplainQuery,
    ExplainStage,
    MemoryUpdate,
    PrefixExpansion,
    RecallQuery,
    RecallResult,
    RetainItem,
    TimeRange,
)
from astrocyte.pipelines.query.prefixes import check_prefixes, prefixes_of, without_prefixes
from astrocyte.pipelines.search import prefix_search
from harness.prefix_recalls import (
    DOOR,
    KEYWORDS_ALONE,
    KILN,
    KILNS,
    KILO,
    ME,
    Clock,
    asked,
    found,
    opened,
    retained,
)


def test_a_prefix_is_the_word_before_an_asterisk() -> None:
    query = RecallQuery("the KIL* and blue-doo*, Mül*** or 4 * 5 a*b", expand_prefixes=True)
    assert prefixes_of(query) == ["kil", "doo", "mul"]
    assert without_prefixes(query, query.query) == "the  and blue,  or 4 * 5 a*b"
    quoted = replace(query, query='"blue kil*" doo*', require_phrases=True)
    assert prefixes_of(quoted) == ["doo"]
    assert without_prefixes(quoted, quoted.query) == '"blue kil*" '
    check_prefixes(quoted)


async def test_a_prefix_finds_the_words_that_begin_with_it() -> None:
    async with opened() as app:
        await retained(app, KILN, KILNS, KILO, DOOR)
        assert await found(app, "kil*") == {KILN, KILNS, KILO}
        assert await found(app, "kiln*") == {KILN, KILNS}
        assert await found(app, "kilns*") == {KILNS}
        assert await found(app, "quag*") == set()
        assert await found(app, "doo* kilo*") == {KILO, DOOR}
        # Without the option an asterisk means nothing.
        assert await found(app, "kil*", expand_prefixes=False) == set()
        result = await asked(app, "kil* quag*")
        assert result.trace is not None
        assert (result.trace.plan or "").endswith("; prefixes: 3 of 3 words, 0 of 0 words")
        assert result.trace.prefixes == (
            PrefixExpansion("kil", "b", ("kiln", "kilns", "kilo"), 3),
            PrefixExpansion("quag", "b"),
        )
        assert result.warnings == ()


async def test_first_hits_add_no_words_to_a_query_with_prefixes() -> None:
    """The stem of "kilns" is "kiln", which does not begin with "kilns"."""
    async with opened(recall={"feedback": 1.0}) as app:
        others = [f"The kiln of {word}." for word in ("clay", "brick", "tile", "glass", "lime")]
        plural = [f"Two kilns of {word}." for word in ("clay", "brick", "tile", "glass", "lime")]
        await retained(app, *others, *plural, *(f"Filler {number}." for number in range(40)))
        assert await found(app, "kilns*", max_results=50) == set(plural)
        # Feedback is on: a word has it.
        assert await found(app, "brick", expand_prefixes=False, max_results=50) > {"The kiln of brick."}


async def test_a_word_that_is_its_own_stem_stands_for_its_inflections() -> None:
    """As in a search for that word; its own form has no term of its own in the index."""
    async with opened() as app:
        await retained(app, "To die.", "He is dying.", DOOR)
        assert await found(app, "die*") == {"To die.", "He is dying."}
        assert await found(app, "dyi*") == {"He is dying."}


async def test_a_prefix_counts_as_one_word() -> None:
    async with opened() as app:
        many = " ".join(f"kil{letter}x" for letter in "abcdefghijklmnop")
        await retained(app, many, "A quagga in the yard.", *(f"Filler {number}." for number in range(30)))
        await retained(app, *(f"The kil{letter}x." for letter in "abcdef"))
        hits = (await asked(app, "kil* quagga")).hits
        assert hits[0].text == "A quagga in the yard."


async def test_new_memories_and_changed_ones_are_found_at_once() -> None:
    async with opened() as app:
        (memory,) = await retained(app, KILN)
        assert await found(app, "kil*") == {KILN}
        await retained(app, KILO)
        assert await found(app, "kil*") == {KILN, KILO}
        await app.gate.call(ME, UpdateMemory("b", MemoryUpdate(memory, frozenset({"content"}), content="A kilt.")))
        assert await found(app, "kil*") == {"A kilt.", KILO}


async def test_the_versions_of_the_instant_are_searched() -> None:
    clock = Clock()
    async with opened(clock) as app:
        (memory,) = await retained(app, KILN)
        before = datetime.fromtimestamp(clock.now / 1_000, UTC)
        clock.now += 60_000
        await app.gate.call(ME, UpdateMemory("b", MemoryUpdate(memory, frozenset({"content"}), content=DOOR)))
        assert await found(app, "kil*") == set()
        assert await found(app, "kil*", as_of=before) == {KILN}


async def test_filters_and_phrases_hold_beside_prefixes() -> None:
    async with opened() as app:
        await retained(app, KILN)
        await retained(app, KILO, tags=("clay",))
        assert await found(app, "kil*", tags=("clay",)) == {KILO}
        assert await found(app, 'kil* "of clay"', require_phrases=True) == {KILO}


async def test_a_filter_that_few_pass_changes_no_score() -> None:
    """Few rows are scored by their own words, many by the lists of the words: to the bit the same."""
    chance = random.Random(11)
    kinds = ["kilnx", "kilox", "kiltx", "kilimx", "teax", "noonx", "doorx", "yardx"]
    async with opened() as app:
        await app.gate.call(ME, CreateBank("b"))
        texts = [f"{' '.join(chance.choices(kinds, k=chance.randint(1, 9)))} {number}." for number in range(180)]
        tags = [("few",) if number % 15 == 0 else () for number in range(180)]
        items = [RetainItem(text, tags=own) for text, own in zip(texts, tags, strict=True)]
        await app.gate.call(ME, BatchRetain("b", items))
        few = await asked(app, "kil* teax", tags=("few",), max_results=200, max_tokens=100_000)
        every = await asked(app, "kil* teax", max_results=200, max_tokens=100_000)
        assert len(few.hits) > 5
        assert _keyword_scores(few).items() <= _keyword_scores(every).items()


def _keyword_scores(result: RecallResult) -> dict[str, float]:
    return {hit.text: arm.score for hit in result.hits for arm in hit.arms if arm.arm == "keyword"}


async def test_explain_tells_of_a_memory_that_a_prefix_finds() -> None:
    async with opened() as app:
        kiln, _ = await retained(app, KILN, DOOR)
        query = RecallQuery("kil*", "b", expand_prefixes=True, weights=KEYWORDS_ALONE)
        told = await app.gate.call(ME, Explain(ExplainQuery(query, (kiln,))))
        assert told.explanations[0].stage is ExplainStage.RETURNED


async def test_words_are_not_told_where_the_bank_looks_for_personal_data_in_answers() -> None:
    barriers = {"barriers": {"pii": {"mode": "regex"}}, "dlp": {"scan_recall_output": True}}
    async with opened(banks={"guarded": barriers}) as app:
        await retained(app, KILN, bank="guarded")
        await retained(app, KILO, bank="open")
        trace = (await asked(app, "kil*", "", banks=("guarded", "open"), include_trace=True)).trace
        assert trace is not None
        unseen, seen = PrefixExpansion("kil", "guarded", (), 1), PrefixExpansion("kil", "open", ("kilo",), 1)
        assert trace.prefixes == (unseen, seen)
        trace = (await asked(app, "kil*", "guarded", include_trace=True)).trace
        assert trace is not None
        assert trace.prefixes == (unseen,)


async def test_time_windows_and_filters_of_time_hold_beside_prefixes() -> None:
    early, late = datetime(2024, 3, 5, tzinfo=UTC), datetime(2025, 7, 1, tzinfo=UTC)
    async with opened() as app:
        await retained(app, KILN, occurred_at=early)
        await retained(app, KILO, occurred_at=late)
        whole = TimeRange(datetime(2024, 1, 1, tzinfo=UTC), datetime(2024, 12, 31, tzinfo=UTC))
        assert await found(app, "kil*", time_range=whole) == {KILN}
        # Words of a date are words of the text, and the prefix is no part of a time window.
        result = await asked(app, "kil* in March 2024", weights={}, include_trace=True)
        assert result.hits[0].text == KILN
        assert result.trace is not None
        assert len(result.trace.time_windows) == 1
        assert await found(app, "marc*") == {KILN}


async def test_a_turn_beside_one_with_the_prefix_has_a_part_of_its_score() -> None:
    """As with a word: a conversation is ranked by what its turns say together."""
    async with opened() as app:
        for text in (KILN, "I see.", "Good night."):
            await retained(app, text, session_id="s")
        word, prefix = await asked(app, "kiln", expand_prefixes=False), await asked(app, "kiln*")
        assert prefix.hits[0].text == KILN
        assert {hit.text for hit in prefix.hits} == {hit.text for hit in word.hits}


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("the kiln", "has no prefix"),
        ("*", "an asterisk that ends no word"),
        ("kil* 4 * 5", "an asterisk that ends no word"),
        ("kil* *ing", "an asterisk that ends no word"),
        ("kil*ns", "an asterisk that ends no word"),
        ("ki*", "has 2 letters and digits before the asterisk of prefix 1"),
        ("kil* 2024*", "has 4 letters and digits before the asterisk of prefix 2"),
        ("?!*", "has 0 letters and digits"),
        ("kil* doo* cla* yar* gla*", "has 5 prefixes"),
    ],
)
async def test_wrong_prefixes_are_refused(query: str, told: str) -> None:
    async with opened() as app:
        await retained(app, KILN)
        with pytest.raises(ValidationError, match=told) as raised:
            await asked(app, query)
        assert raised.value.field == "query"
        with pytest.raises(ValidationError, match="true or false") as raised:
            await asked(app, "kil*", expand_prefixes="yes")
        assert raised.value.field == "expand_prefixes"
        right = RecallQuery("kil*", "b", expand_prefixes=True)
        with pytest.raises(ValidationError, match=told) as raised:
            await app.gate.call(ME, BatchRecall([right, replace(right, query=query)]))
        assert raised.value.field == "queries[1].query"


async def test_the_answer_says_if_words_were_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prefix_search, "MOST_WORDS", 2)
    async with opened() as app:
        await retained(app, KILN, "A kilt.", KILO, "Another kilo.", "Another kiln.")
        result = await asked(app, "kil*")
        assert {hit.text for hit in result.hits} == {KILN, KILO, "Another kilo.", "Another kiln."}
        told = "prefix 1 begins 3 words of the bank"
        assert [warning.split(";")[0] for warning in result.warnings] == [told]
        await retained(app, DOOR, bank="other")
        several = await asked(app, "kil*", "", banks=("b", "other"))
        assert [warning.split(";")[0] for warning in several.warnings] == [f"bank b: {told}"]


async def test_the_python_api_has_the_option() -> None:
    memory = Astrocyte.from_config_dict({"vector_store": "in_memory"})
    try:
        for text in (KILN, DOOR):
            await memory.retain(text, bank_id="b")
        hits = (await memory.recall("kil*", bank_id="b", expand_prefixes=True, weights=KEYWORDS_ALONE)).hits
        assert [hit.text for hit in hits] == [KILN]
    finally:
        await memory.close()
