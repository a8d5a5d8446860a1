"""Merging near duplicates of a bank: what is merged, what is kept of it, and what is never merged."""

import random
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import pytest

from astrocyte.api.requests import (
    BatchRetain,
    CreateBank,
    CreateObservation,
    GetMemory,
    GetObservation,
    ListMemories,
    PlaceHold,
    Recall,
    Retain,
    RunLifecycle,
    UndeleteMemory,
    WaitOperation,
)
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.errors import ValidationError
from astrocyte.model import (
    ArchiveReason,
    Caller,
    Embedding,
    LifecycleRun,
    MemoryState,
    OperationState,
    RecallQuery,
    RetainItem,
)
from astrocyte.pipelines.lifecycle import duplicates
from astrocyte.pipelines.lifecycle.duplicates import alike
from astrocyte.stores.records import NewMemory

CALLER = Caller()
BANK = "family"
SHORT, LONG = "Mara plays the oboe.", "Mara plays the oboe well."
# Every text has this vector: the words alone decide.
SAME = Embedding("tests-2", 2, struct.pack("<2f", 1.0, 0.0))
APART = Embedding("tests-2", 2, struct.pack("<2f", 0.0, 1.0))


@asynccontextmanager
async def opened(**lifecycle: Any) -> AsyncIterator[Any]:
    # Retains store what is alike.
    stored = {"signal_quality": {"dedup": {"enabled": False}}}
    app = App(Settings.from_mapping({"vector_store": "in_memory", "lifecycle": lifecycle, **stored}))

    async def call(request: Any) -> Any:
        return await app.backend.call(CALLER, request)

    try:
        yield call
    finally:
        await app.close()


async def retained(call: Any, *texts: str, vector: Embedding = SAME, **fields: Any) -> list[str]:
    """Store texts, all with one vector unless another one is given."""
    return [(await call(Retain(BANK, RetainItem(text, embedding=vector, **fields)))).memory_id for text in texts]


async def merged(call: Any, *, dry_run: bool = False) -> LifecycleRun:
    started = await call(RunLifecycle(BANK, dry_run, merge_duplicates=True))
    done = await call(WaitOperation(BANK, started.operation_id, timeout=60.0))
    assert done.state is OperationState.SUCCEEDED
    run: LifecycleRun = done.lifecycle
    return run


async def current(call: Any) -> set[str]:
    return {one.memory_id for one in (await call(ListMemories(BANK))).memories}


async def test_the_memory_that_says_more_is_kept_and_gets_the_tags() -> None:
    async with opened() as call:
        await call_bank(call)
        (short,) = await retained(call, SHORT, tags=("music", "old"))
        (long,) = await retained(call, LONG, tags=("music", "new"))
        (other,) = await retained(call, LONG.replace("Mara", "Anders"))
        observation = await call(CreateObservation(BANK, "Mara is a musician.", [short, long]))
        dry = await merged(call, dry_run=True)
        assert (dry.merged, dry.seen, dry.total) == (1, 6, 6)
        assert [(one.kept_id, one.merged_id) for one in dry.pairs] == [(long, short)]
        assert await current(call) == {short, long, other}
        run = await merged(call)
        assert (run.merged, run.pairs) == (1, dry.pairs)
        assert run.pairs[0].similarity == pytest.approx(1.0)
        assert await current(call) == {long, other}
        gone = await call(GetMemory(BANK, short))
        assert (gone.state, gone.archive_reason, gone.merged_into) == (MemoryState.ARCHIVED, ArchiveReason.MERGED, long)
        assert (await call(GetMemory(BANK, long))).tags == ("music", "new", "old")
        # The evidence counts as before.
        kept = await call(GetObservation(BANK, observation.observation_id))
        assert (kept.proof_count, kept.is_stale) == (2, False)
        hits = (await call(Recall(RecallQuery("oboe", BANK, tags=("old",), embedding=SAME)))).hits
        assert [hit.memory_id for hit in hits] == [long]
        assert (await merged(call)).merged == 0
        assert (await call(UndeleteMemory(BANK, short))).content == SHORT


@pytest.mark.parametrize("pinned", [SHORT, LONG])
async def test_an_exempt_memory_is_neither_merged_nor_merged_into(pinned: str) -> None:
    async with opened(exempt_tags=["pinned"]) as call:
        await call_bank(call)
        ids = [
            (await retained(call, text, tags=("pinned", "a") if text == pinned else ("b",)))[0]
            for text in (SHORT, LONG, "Mara plays the oboe very well.")
        ]
        assert [one.kept_id for one in (await merged(call, dry_run=True)).pairs] == [ids[2]]
        assert (await merged(call)).merged == 1
        left = ids[0] if pinned == SHORT else ids[1]
        assert await current(call) == {left, ids[2]}
        assert (await call(GetMemory(BANK, left))).tags == ("pinned", "a")
        assert (await call(GetMemory(BANK, ids[2]))).tags == ("b",)


async def call_bank(call: Any) -> None:
    await call(CreateBank(BANK, embedding_model=SAME.model, dimensions=2))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"speaker": "Mara"}, {"speaker": "Anders"}),
        ({"session_id": "one"}, {"session_id": "two"}),
        ({"occurred_at": datetime(2026, 1, 1, tzinfo=UTC)}, {"occurred_at": datetime(2026, 1, 2, tzinfo=UTC)}),
        ({"metadata": {"project": "a"}}, {"metadata": {"project": "b"}}),
        ({"fact_type": "world"}, {"fact_type": "experience"}),
        ({"vector": SAME}, {"vector": APART}),
    ],
)
async def test_memories_of_other_circumstances_are_not_merged(first: dict[str, Any], second: dict[str, Any]) -> None:
    async with opened() as call:
        await call_bank(call)
        await retained(call, SHORT, **first)
        await retained(call, LONG, **second)
        assert (await merged(call)).merged == 0


async def test_held_memories_are_neither_merged_nor_changed() -> None:
    async with opened() as call:
        await call_bank(call)
        short, long = await retained(call, SHORT, LONG)
        await call(PlaceHold(BANK, "case", memory_ids=[long]))
        run = await merged(call)
        assert (run.merged, run.held) == (0, 1)
        assert await current(call) == {short, long}


async def test_a_cluster_larger_than_the_search_shows_becomes_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(duplicates, "COMPARED_AT_ONCE", 3)
    async with opened() as call:
        await call_bank(call)
        # Of the same words, in letters of other cases, which are other contents.
        word = "oboe"
        texts = [f"Mara plays the {word[:n].upper()}{word[n:]}." for n in range(1, 2)]
        texts += [f"Mara plays {'the ' * n}oboe." for n in range(12)]
        stored = await retained(call, *texts)
        run = await merged(call)
        left = await current(call)
        assert len(left) == len(stored) - run.merged
        assert len(left) <= 2


async def test_a_threshold_needs_the_switch_and_a_range() -> None:
    async with opened() as call:
        await call_bank(call)
        with pytest.raises(ValidationError, match="merge_duplicates"):
            await call(RunLifecycle(BANK, similarity_threshold=0.9))
        for wrong in (0.4, 1.1, float("nan"), "0.9"):
            with pytest.raises(ValidationError, match="similarity_threshold"):
                await call(RunLifecycle(BANK, merge_duplicates=True, similarity_threshold=wrong))  # type: ignore[arg-type]


NAMES = ("Mara", "Anders", "Freya", "Jonas", "Lena", "Paul")
VERBS = ("likes", "visits", "paints", "repairs", "sells", "keeps")
THINGS = ("the boat", "the old bridge", "the red lamp", "the garden", "the piano")
PLACES = ("in Oslo", "in Lisbon", "near the harbour", "at home")
DAYS = ("on Monday", "on 3 May 2024", "in 2019", "in March")


def statement(source: random.Random) -> dict[str, str]:
    return {
        "name": source.choice(NAMES),
        "negation": source.choice(("", "not ")),
        "verb": source.choice(VERBS),
        "count": str(source.randrange(2, 60)),
        "thing": source.choice(THINGS),
        "place": source.choice(PLACES),
        "date": source.choice(DAYS),
    }


def text_of(parts: dict[str, str]) -> str:
    denied = "does not " if parts["negation"] else ""
    done = f"{parts['name']} {denied}{parts['verb']} {parts['thing']}"
    return f"{done} {parts['count']} times {parts['place']} {parts['date']}."


def memory(text: str) -> NewMemory:
    return NewMemory("m", text, b"", "text", "world", "episodic", 1, None)


def test_no_pair_that_differs_in_negation_number_date_or_name_is_alike() -> None:
    source = random.Random(7)
    compared = 0
    while compared < 10_000:
        parts = statement(source)
        field = source.choice(("name", "negation", "count", "date"))
        other = {**parts, field: statement(source)[field]}
        if other == parts:
            continue
        compared += 1
        first, second = text_of(parts), text_of(other)
        # Some say something more besides.
        second += source.choice(("", " It rained.", " Everybody saw it."))
        assert not alike(memory(first), memory(second)), (first, second)


async def test_generated_pairs_of_one_vector_are_never_merged() -> None:
    """Through the whole scan; every pair is as near as can be."""
    source = random.Random(8)
    texts: set[str] = set()
    while len(texts) < 400:
        parts = statement(source)
        texts |= {text_of(parts), text_of({**parts, "negation": "" if parts["negation"] else "not "})}
    items = [RetainItem(text, embedding=SAME) for text in sorted(texts)]
    async with opened() as call:
        await call_bank(call)
        for start in range(0, len(items), 100):
            await call(BatchRetain(BANK, items[start : start + 100]))
        count = len(await current_all(call))
        run = await merged(call)
        assert (run.merged, count) == (0, len(texts))


async def current_all(call: Any) -> list[str]:
    return [one.memory_id for one in (await call(ListMemories(BANK, page_size=1_000))).memories]
