"""The words that a process keeps of a bank for prefixes: equal to its texts, in both tiers, and gone when they are."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from astrocyte.api.requests import (
    BatchRecall,
    BatchRetain,
    CreateBank,
    Forget,
    GetBank,
    Recall,
)
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.errors import StoreError
from astrocyte.model import (
    ForgetSelector,
    RecallQuery,
    RetainItem,
)
from astrocyte.pipelines.search import prefix_search
from astrocyte.stores.records import VersionRecord
from astrocyte.wiring.storage import prepare_directory
from harness.prefix_recalls import (
    DOOR,
    KEYWORDS_ALONE,
    KILN,
    KILO,
    ME,
    Clock,
    asked,
    found,
    index_of,
    opened,
    retained,
    words,
)

# As many rows as lie in a file together, and some more.
ROWS = 4_200


def _files_with(folder: Path, text: bytes) -> list[str]:
    files = [file for file in folder.rglob("*") if file.is_file()]
    return [file.name for file in files if text in file.read_bytes().lower()]


@pytest.mark.parametrize("options", [{}, {"include_archived": True}, {"as_of": datetime(2099, 1, 1, tzinfo=UTC)}])
async def test_a_trace_names_no_word_of_a_forgotten_memory(options: dict[str, Any]) -> None:
    async with opened() as app:
        (memory, _) = await retained(app, "Kilimanjaro is far.", KILN)
        await app.gate.call(ME, Forget("b", ForgetSelector(memory_ids=(memory,))))
        query = RecallQuery("kil*", "b", expand_prefixes=True, include_trace=True, **options)
        result = await app.gate.call(ME, Recall(query))
        assert result.trace is not None
        assert [(one.words, one.total) for one in result.trace.prefixes] == [(("kiln",), 1)]


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
