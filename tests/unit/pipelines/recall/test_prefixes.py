"""Prefixes of a query: what they find in both tiers, at any time and in several processes, and what is refused."""

import asyncio
import random
import threading
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from astrocyte import Astrocyte
from astrocyte.api.requests import (
    BatchRecall,
    BatchRetain,
    CreateBank,
    Explain,
    Forget,
    GetBank,
    Recall,
    Retain,
    UpdateMemory,
)
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.errors import StoreError, ValidationError
from astrocyte.model import (
    Caller,
    ExplainQuery,
    ExplainStage,
    ForgetSelector,
    MemoryUpdate,
    PrefixExpansion,
    RecallQuery,
    RecallResult,
    RetainItem,
    TimeRange,
)
from astrocyte.pipelines.index.bank_index import BankIndex
from astrocyte.pipelines.query.prefixes import check_prefixes, prefixes_of, without_prefixes
from astrocyte.pipelines.search import prefix_search
from astrocyte.stores.records import VersionRecord
from astrocyte.wiring.storage import prepare_directory

ME = Caller()
KILN, KILNS, KILO, DOOR = "The kiln is hot.", "Two kilns, old ones.", "A kilo of clay.", "The blue door."
# As many rows as lie in a file together, and some more.
ROWS = 4_200
KEYWORDS_ALONE = {"semantic": 0.0, "keyword": 1.0, "temporal": 0.0}


class Clock:
    """A clock that tests set, in milliseconds since the epoch."""

    now = 1_750_000_000_000

    def __call__(self) -> int:
        return self.now


@asynccontextmanager
async def opened(clock: Clock | None = None, **settings: Any) -> AsyncIterator[App]:
    kept = {} if "data_dir" in settings else {"vector_store": "in_memory"}
    values = {**kept, "signal_quality": {"dedup": {"enabled": False}}, **settings}
    app = App(Settings.from_mapping(values), clock=clock or Clock())
    try:
        yield app
    finally:
        await app.close()


async def asked(app: App, text: str, bank: str = "b", **fields: Any) -> RecallResult:
    fields = {"expand_prefixes": True, "weights": KEYWORDS_ALONE, **fields}
    result: RecallResult = await app.gate.call(ME, Recall(RecallQuery(text, bank, **fields)))
    return result


async def found(app: App, text: str, bank: str = "b", **fields: Any) -> set[str]:
    return {hit.text for hit in (await asked(app, text, bank, **fields)).hits}


async def retained(app: App, *texts: str, bank: str = "b", **fields: Any) -> list[str]:
    return [(await app.gate.call(ME, Retain(bank, RetainItem(text, **fields)))).memory_id or "" for text in texts]


async def index_of(app: App, bank: str = "b") -> BankIndex:
    index = app.storage.registry.peek(await app.gate.call(ME, GetBank(bank)))
    assert index is not None
    return index


def _files_with(folder: Path, text: bytes) -> list[str]:
    files = [file for file in folder.rglob("*") if file.is_file()]
    return [file.name for file in files if text in file.read_bytes().lower()]


def words(index: BankIndex, prefix: str) -> list[str] | None:
    """The words that the process keeps of a bank, those that no current memory holds included."""
    expanded = index.core.expand(prefix, 1_000, past=True)
    return None if expanded is None else expanded[0]


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


@pytest.mark.parametrize("options", [{}, {"include_archived": True}, {"as_of": datetime(2099, 1, 1, tzinfo=UTC)}])
async def test_a_trace_names_no_word_of_a_forgotten_memory(options: dict[str, Any]) -> None:
    async with opened() as app:
        (memory, _) = await retained(app, "Kilimanjaro is far.", KILN)
        await app.gate.call(ME, Forget("b", ForgetSelector(memory_ids=(memory,))))
        query = RecallQuery("kil*", "b", expand_prefixes=True, include_trace=True, **options)
        result = await app.gate.call(ME, Recall(query))
        assert result.trace is not None
        assert [(one.words, one.total) for one in result.trace.prefixes] == [(("kiln",), 1)]


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


async def test_forgotten_memories_and_other_banks_are_not_found() -> None:
    async with opened() as app:
        gone, _ = await retained(app, KILN, KILO)
        await retained(app, "My kilt.", bank="other")
        assert await found(app, "kil*") == {KILN, KILO}
        await app.gate.call(ME, Forget("b", ForgetSelector(memory_ids=(gone,))))
        assert await found(app, "kil*") == {KILO}
        assert await found(app, "kil*", bank="", banks=("b", "other")) == {KILO, "My kilt."}
        queries = [RecallQuery("kil*", bank, expand_prefixes=True, weights=KEYWORDS_ALONE) for bank in ("other", "b")]
        results = await app.gate.call(ME, BatchRecall(queries))
        assert [[hit.text for hit in result.hits] for result in results] == [["My kilt."], [KILO]]


async def test_an_erasure_drops_the_words_of_the_bank() -> None:
    async with opened() as app:
        gone, _ = await retained(app, "The kilimanjaro.", KILO)
        assert await found(app, "kil*") == {"The kilimanjaro.", KILO}
        index = await index_of(app)
        assert words(index, "kil") == ["kilimanjaro", "kilo"]
        await app.gate.call(ME, Forget("b", ForgetSelector(memory_ids=(gone,)), compliance=True, reason="asked"))
        index = await index_of(app)
        assert words(index, "kil") is None
        assert await found(app, "kil*") == {KILO}
        assert words(index, "kil") == ["kilo"]


async def test_an_erased_word_is_in_no_file(tmp_path: Path) -> None:
    async with opened(data_dir=str(tmp_path), index={"checkpoint_rows": 1}) as app:
        gone, _ = await retained(app, "The kilimanjaro.", KILO)
        assert await found(app, "kilim*") == {"The kilimanjaro."}
        await app.gate.call(ME, Forget("b", ForgetSelector(memory_ids=(gone,)), compliance=True, reason="asked"))
        assert await found(app, "kil*") == {KILO}
    assert _files_with(tmp_path, b"kilo")
    assert not _files_with(tmp_path, b"kilimanjaro")


async def test_what_follows_a_purge_drops_the_words_of_all_banks() -> None:
    clock = Clock()
    async with opened(clock) as app:
        gone, _ = await retained(app, "The kilimanjaro.", KILO)
        await app.gate.call(ME, Forget("b", ForgetSelector(memory_ids=(gone,))))
        assert await found(app, "kil*") == {KILO}
        await app.storage.registry.scrub_all()
        assert words(await index_of(app), "kil") is None


async def test_texts_that_were_read_before_an_erasure_are_not_kept() -> None:
    async with opened() as app:
        await retained(app, KILO)
        assert await found(app, "kil*") == {KILO}
        core = (await index_of(app)).core
        generation = core.begin_spellings()
        assert core.add_spellings(generation, ["The kilimanjaro."])
        core.scrub()
        assert not core.add_spellings(generation, ["The kilimanjaro."])
        assert not core.finish_spellings(generation)
        assert await found(app, "kil*") == {KILO}
        assert words(await index_of(app), "kil") == ["kilo"]


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


async def test_one_thread_reads_the_texts_while_the_event_loop_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    async with opened() as app:
        await retained(app, KILN, KILO)
        readers: list[int] = []
        loop, begun = asyncio.get_running_loop(), asyncio.Event()
        read, go_on = app.storage.store.iter_versions, threading.Event()

        def slowly(*given: Any, **named: Any) -> Iterator[list[VersionRecord]]:
            readers.append(threading.get_ident())
            loop.call_soon_threadsafe(begun.set)
            in_time = go_on.wait(15.0)
            # On the event loop nothing could end the wait; then the others need not wait as long.
            go_on.set()
            assert in_time
            return read(*given, **named)

        monkeypatch.setattr(app.storage.store, "iter_versions", slowly)
        calls = [asyncio.create_task(found(app, query)) for query in ("kil*", "kilo*", "kiln*")]
        several = asyncio.create_task(found(app, "kil*", "", banks=("b",)))
        gives_up = asyncio.create_task(found(app, "kil*"))
        await begun.wait()
        # The event loop is free, and a call that gives up stops nothing.
        gives_up.cancel()
        assert await found(app, "kiln", expand_prefixes=False) == {KILN}
        go_on.set()
        assert await asyncio.gather(*calls) == [{KILN, KILO}, {KILO}, {KILN}]
        assert await several == {KILN, KILO}
        assert len(readers) == 1
        assert readers[0] != threading.get_ident()


async def test_a_reading_that_has_just_ended_is_not_waited_for() -> None:
    """Waiting for it would return at once, again and again, before its callback runs."""
    async with opened() as app:
        await retained(app, KILN)
        bank, index = await app.gate.call(ME, GetBank("b")), await index_of(app)
        search = prefix_search.PrefixSearch(app.storage.store, ThreadPoolExecutor(1), app.storage.registry.charge)
        index.core.scrub()
        ended = asyncio.get_running_loop().create_future()
        search._readings[bank.key] = ended
        ended.add_done_callback(lambda future: search._done(bank.key, future))
        ended.set_result(None)
        await search.prepare(bank, index)
        assert words(index, "kil") == ["kiln"]
        assert not search._readings


async def test_a_failure_to_read_the_texts_fails_the_calls_that_wait_and_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with opened() as app:
        await retained(app, KILN)
        with monkeypatch.context() as patch:

            def fails(*_given: Any, **_named: Any) -> Iterator[list[VersionRecord]]:
                raise StoreError("the disk is gone")

            patch.setattr(app.storage.store, "iter_versions", fails)
            told = await asyncio.gather(found(app, "kil*"), found(app, "kiln*"), return_exceptions=True)
            assert [type(one) for one in told] == [StoreError, StoreError]
            assert await found(app, "kiln", expand_prefixes=False) == {KILN}
        assert await found(app, "kil*") == {KILN}


async def test_the_memory_of_the_words_is_counted() -> None:
    async with opened() as app:
        await retained(app, *(f"Word{number} of the list." for number in range(200)))
        await found(app, "list", expand_prefixes=False)
        before = app.storage.registry.memory.bytes
        await found(app, "word1*")
        assert app.storage.registry.memory.bytes >= before + 200 * len("word100")


async def test_the_words_follow_what_another_process_commits_and_erases(tmp_path: Path) -> None:
    settings = Settings.from_mapping({"data_dir": str(tmp_path / "data"), "store": {"ballast_bytes": 0}})
    lock = prepare_directory(settings)
    apps = App(settings, worker=1), App(settings, worker=2)
    here, there = apps
    try:
        gone, _ = await retained(here, "The kilimanjaro.", KILO)
        for app in apps:
            assert await found(app, "kil*") == {"The kilimanjaro.", KILO}
        await retained(there, KILN)
        assert await found(here, "kil*") == {"The kilimanjaro.", KILO, KILN}
        erase = Forget("b", ForgetSelector(memory_ids=(gone,)), compliance=True, reason="asked")
        await here.gate.call(ME, erase)
        # Before the erasure was acknowledged the other process has dropped them too.
        for app in apps:
            assert words(await index_of(app), "kil") is None
        for app in apps:
            assert await found(app, "kil*") == {KILN, KILO}
            assert words(await index_of(app), "kil") == ["kiln", "kilo"]
    finally:
        for app in apps:
            await app.gate.close()
        lock.release()


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


async def test_random_changes_leave_what_a_look_through_all_texts_finds() -> None:
    chance = random.Random(7)
    syllables = ("kil", "ba", "nor", "tex", "um")
    async with opened() as app:
        kept: dict[str, str] = {}
        erased: set[str] = set()
        await retained(app, DOOR)
        for step in range(60):
            kind = chance.random()
            if kind < 0.6 or not kept:
                own = ["".join(chance.choices(syllables, k=chance.randint(2, 4))) for _ in range(4)]
                text = f"{' '.join(own)} {step}."
                (memory,) = await retained(app, text)
                kept[memory] = text
                # A memory that is forgotten later keeps its words.
                erased.difference_update(own)
            else:
                memory = chance.choice(sorted(kept))
                erases = kind > 0.85
                selector = ForgetSelector(memory_ids=(memory,))
                await app.gate.call(ME, Forget("b", selector, compliance=erases, reason="asked"))
                text = kept.pop(memory)
                if erases:
                    erased.update(text.split())
            prefix = "".join(chance.choices(syllables, k=2))
            expected = {text for text in kept.values() if any(word.startswith(prefix) for word in text.split())}
            assert await found(app, f"{prefix}*", max_results=200) == expected, (step, prefix)
            left = {word for text in kept.values() for word in text.split()}
            index = await index_of(app)
            for word in erased - left:
                # Longer ones of others may begin with it.
                assert word not in (words(index, word) or ())


@pytest.mark.timeout(300)
async def test_both_tiers_find_what_a_look_through_all_texts_finds(tmp_path: Path) -> None:
    chance = random.Random(5)
    # Without "aa", which is a spelling of "a", and without endings that a stem loses.
    vocabulary = ["".join(chance.choices("bcd", k=chance.randint(3, 6))) + "x" for _ in range(300)]
    texts = [" ".join(chance.choices(vocabulary, k=chance.randint(2, 6))) for _ in range(ROWS)]
    prefixes = sorted({"".join(chance.choices("bcd", k=4)) for _ in range(20)})
    answers: dict[str, list[list[float]]] = {}
    for tier in ("memory", "disk"):
        index = {"tier": tier, "graph_rows": 1_000, "sampling": 0.0, "build_share": 1.0, "checkpoint_rows": 1}
        async with opened(data_dir=str(tmp_path / tier), index=index) as app:
            await app.gate.call(ME, CreateBank("b"))
            for first in range(0, ROWS, 256):
                items = [RetainItem(text) for text in texts[first : first + 256]]
                await app.gate.call(ME, BatchRetain("b", items))
            if tier == "disk":
                await _fold(app)
            for prefix in prefixes:
                wanted = {text for text in texts if any(word.startswith(prefix) for word in text.split())}
                result = await asked(app, f"{prefix}*", max_results=200)
                held = [hit.text for hit in result.hits]
                assert set(held) <= wanted, (tier, prefix)
                # Equal texts are one memory.
                assert len(held) == min(len(wanted), 200), (tier, prefix)
                scores = [arm.score for hit in result.hits for arm in hit.arms if arm.arm == "keyword"]
                answers.setdefault(prefix, []).append(sorted(scores))
    # Keyword scores of the tiers are equal to the bit.
    assert all(one == other for one, other in answers.values())
    assert any(one for one, _ in answers.values())


async def _fold(app: App) -> None:
    """Wait until rows lie in files."""
    await asked(app, "bcd*")
    index = await index_of(app)
    loop = asyncio.get_running_loop()
    for _ in range(200):
        await loop.run_in_executor(None, index.core.fold)
        trace = (await asked(app, "bcd*")).trace
        assert trace is not None
        if "disk tier" in (trace.plan or ""):
            return
    pytest.fail("no row came into a file")
