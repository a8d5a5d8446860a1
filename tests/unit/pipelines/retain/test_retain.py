"""Retain through the gate: chunks, layers, and duplicates of every kind."""

import asyncio
import struct
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from astrocyte.api.requests import (
    BatchRetain,
    CreateBank,
    Forget,
    GetBankStats,
    GetMemory,
    History,
    Recall,
    Retain,
    UpdateMemory,
)
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.model import (
    Caller,
    DedupAction,
    Embedding,
    ForgetSelector,
    MemoryUpdate,
    RecallQuery,
    RetainItem,
    RetainResult,
)
from astrocyte.policy.gate import Gate

ME = Caller()
FIRST = RetainItem("Mara is allergic to peanuts and cashews, says her mother in the kitchen")
AGAIN = replace(FIRST, content="Mara is allergic to peanuts and cashews, says her mother, in the kitchen!")
DAY = datetime(2024, 5, 1, 12, tzinfo=UTC)


async def retain(gate: Gate, item: RetainItem) -> RetainResult:
    return await gate.call(ME, Retain("b", item))


async def count(gate: Gate) -> int:
    return (await gate.call(ME, GetBankStats("b"))).memory_count


@pytest.mark.parametrize(
    ("content_type", "layer", "fact_type"),
    [
        ("text", "semantic", "world"),
        ("document", "semantic", "world"),
        ("email", "episodic", "world"),
        ("event", "episodic", "world"),
        ("conversation", "episodic", "experience"),
        ("transcript", "episodic", "experience"),
        ("anything", "semantic", "world"),
    ],
)
async def test_layers_and_fact_types(gate: Gate, content_type: str, layer: str, fact_type: str) -> None:
    result = await retain(gate, RetainItem("tea", content_type=content_type))
    memory = await gate.call(ME, GetMemory("b", result.memory_id or ""))
    assert (result.memory_layer, memory.memory_layer, memory.fact_type) == (layer, layer, fact_type)
    assert memory.content_type == content_type


async def test_a_profile_and_a_fact_type_of_the_callers_own(gate: Gate) -> None:
    result = await retain(gate, RetainItem("tea", extraction_profile="builtin_conversation"))
    memory = await gate.call(ME, GetMemory("b", result.memory_id or ""))
    assert (memory.memory_layer, memory.fact_type, memory.content_type) == ("episodic", "experience", "text")
    result = await retain(gate, RetainItem("jam", fact_type="preference", content_type="conversation"))
    assert (await gate.call(ME, GetMemory("b", result.memory_id or ""))).fact_type == "preference"


async def test_speaker_and_session_may_come_in_the_metadata(gate: Gate) -> None:
    result = await retain(gate, RetainItem("tea", metadata={"speaker": "Ann", "session_id": "s1", "other": 3}))
    memory = await gate.call(ME, GetMemory("b", result.memory_id or ""))
    assert (memory.speaker, memory.session_id, memory.metadata["speaker"]) == ("Ann", "s1", "Ann")
    result = await retain(gate, RetainItem("jam", metadata={"speaker": "Ann"}, speaker="Bob"))
    assert (await gate.call(ME, GetMemory("b", result.memory_id or ""))).speaker == "Bob"
    result = await retain(gate, RetainItem("ham", metadata={"speaker": "two\nlines", "session_id": 7}))
    memory = await gate.call(ME, GetMemory("b", result.memory_id or ""))
    assert (memory.speaker, memory.session_id) == (None, None)


async def test_a_long_memory_is_cut_and_found_by_its_chunk(gate: Gate) -> None:
    filler = " ".join(f"Sentence {n} speaks of nothing in particular, at some length." for n in range(60))
    content = f"{filler} The key is under the blue flowerpot. {filler.replace('Sentence', 'Phrase')}"
    result = await retain(gate, RetainItem(content))
    assert result.chunk_count > 5
    assert result.token_count > 800
    hit = (await gate.call(ME, Recall(RecallQuery("where is the key? flowerpot", "b")))).hits[0]
    assert "blue flowerpot" in hit.text
    assert hit.chunk_index > 0
    assert hit.chunk_count == result.chunk_count
    assert hit.token_count < 200


async def test_a_turn_of_a_long_conversation_keeps_its_speaker(gate: Gate) -> None:
    long_turn = " ".join(f"And then on day {n} we walked along the shore for hours." for n in range(40))
    content = f"Ann: hello\nBob: {long_turn} We saw a walrus at last.\nAnn: bye"
    await retain(gate, RetainItem(content, content_type="conversation"))
    hit = (await gate.call(ME, Recall(RecallQuery("walrus", "b")))).hits[0]
    assert hit.text.startswith("Bob: ")
    assert "walrus" in hit.text


@pytest.mark.parametrize("content", ["tea at  noon", " tea\tat noon\n", "\ufefftea at noon"])
async def test_exact_duplicates_are_always_kept_once(gate: Gate, content: str) -> None:
    first = await retain(gate, RetainItem("tea at noon"))
    again = await retain(gate, RetainItem(content, dedup_action=DedupAction.WARN))
    assert (again.stored, again.memory_id, again.deduplicated) == (False, first.memory_id, True)
    assert (again.retention_action, again.memory_layer, again.position) == ("skipped", "semantic", 0)
    assert await count(gate) == 1


async def test_the_same_words_of_another_speaker_are_another_memory(gate: Gate) -> None:
    results = [await retain(gate, RetainItem("That is great, thanks!", speaker=name)) for name in ("Ann", "Bob", "Ann")]
    assert [result.stored for result in results] == [True, True, False]


async def test_a_speaker_is_no_part_of_what_is_said(gate: Gate) -> None:
    items = [RetainItem("That is great", speaker="Ann"), RetainItem("Ann: That is great")]
    results = [await retain(gate, item) for item in items]
    assert [result.stored for result in results] == [True, True]
    metadata = RetainItem("That is great", metadata={"speaker": "Ann"})
    assert (await retain(gate, metadata)).memory_id == results[0].memory_id


async def test_a_near_duplicate_is_left_out(gate: Gate) -> None:
    first = await retain(gate, FIRST)
    again = await retain(gate, AGAIN)
    assert (again.stored, again.deduplicated, again.memory_id) == (False, True, first.memory_id)
    assert again.retention_action == "skipped"
    assert again.similarity is not None
    assert again.similarity >= 0.95
    assert await count(gate) == 1


async def test_a_near_duplicate_is_stored_and_flagged(gate: Gate) -> None:
    first = await retain(gate, FIRST)
    again = await retain(gate, replace(AGAIN, dedup_action=DedupAction.WARN))
    assert (again.stored, again.retention_action, again.near_duplicate_of) == (True, "created", first.memory_id)
    assert await count(gate) == 2


async def test_a_near_duplicate_replaces_what_it_says_and_keeps_the_rest(gate: Gate) -> None:
    first = await retain(gate, replace(FIRST, tags=("health",), metadata={"a": 1}, source="visit"))
    # Times are told apart by the millisecond.
    await asyncio.sleep(0.005)
    again = await retain(gate, replace(AGAIN, dedup_action=DedupAction.UPDATE, metadata={"b": 2}))
    assert (again.stored, again.was_update, again.memory_id) == (True, True, first.memory_id)
    assert again.retention_action == "updated"
    memory = await gate.call(ME, GetMemory("b", first.memory_id or ""))
    assert (memory.version, memory.content, memory.tags) == (2, AGAIN.content, ("health",))
    assert (dict(memory.metadata), memory.source) == ({"b": 2}, "visit")
    past = await gate.call(
        ME, History(RecallQuery("allergic", "b", as_of=memory.updated_at - timedelta(milliseconds=1)))
    )
    assert [hit.text for hit in past.hits] == [FIRST.content]


async def test_an_exact_duplicate_makes_no_version(gate: Gate) -> None:
    await retain(gate, FIRST)
    again = await retain(gate, replace(FIRST, dedup_action=DedupAction.UPDATE))
    assert (again.stored, again.deduplicated, again.was_update) == (False, True, False)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({"content": "Mara is allergic to nuts, they say"}, {"content": "Mara is not allergic to nuts, they say"}),
        ({"content": "the rent of the flat is 900 euros"}, {"content": "the rent of the flat is 950 euros"}),
        ({"content": "the show starts on 8 May in town"}, {"content": "the show starts on 9 May in town"}),
        ({"content": "lunch with Ann in the old town"}, {"content": "lunch with Bob in the old town"}),
        ({"content": "went for a long run by the river", "occurred_at": DAY}, {"occurred_at": DAY + timedelta(days=1)}),
        ({"content": "went for a long run by the river", "speaker": "Ann"}, {"speaker": "Bob"}),
    ],
)
@pytest.mark.parametrize("together", [False, True])
async def test_what_differs_in_a_fact_is_no_duplicate(
    gate: Gate, old: dict[str, Any], new: dict[str, Any], *, together: bool
) -> None:
    first = RetainItem(**old, dedup_threshold=1e-9)
    second = replace(first, **{"content": old["content"] + "!"} | new)
    if together:
        results = await gate.call(ME, BatchRetain("b", [first, second]))
    else:
        results = [await retain(gate, first), await retain(gate, second)]
    assert [result.stored for result in results] == [True, True]


@pytest.mark.parametrize("action", list(DedupAction))
async def test_near_duplicates_within_a_batch(gate: Gate, action: DedupAction) -> None:
    items = [replace(item, dedup_action=action) for item in (FIRST, RetainItem("jam"), AGAIN)]
    results = await gate.call(ME, BatchRetain("b", items))
    kept = results[0].memory_id
    match action:
        case DedupAction.SKIP:
            assert (results[2].stored, results[2].memory_id) == (False, kept)
        case DedupAction.WARN:
            assert (results[2].stored, results[2].near_duplicate_of) == (True, kept)
        case DedupAction.UPDATE:
            assert (results[2].was_update, results[2].memory_id) == (True, kept)
            assert (await gate.call(ME, GetMemory("b", kept or ""))).content == AGAIN.content
    assert await count(gate) == (3 if action is DedupAction.WARN else 2)


async def test_thresholds_are_the_callers(gate: Gate) -> None:
    await retain(gate, RetainItem("we drank tea in the garden behind the house"))
    near = RetainItem("we drank some tea in a garden near the house")
    assert (await retain(gate, replace(near, dedup_threshold=1.0))).stored
    more = replace(near, content="so we drank some tea in the garden behind that old house", dedup_threshold=0.5)
    assert not (await retain(gate, more)).stored
    other = replace(near, content="we drank tea in the garden beside the house", dedup_threshold=0.5)
    assert (await retain(gate, other)).stored


async def test_what_was_forgotten_is_no_duplicate(gate: Gate) -> None:
    first = await retain(gate, FIRST)
    await gate.call(ME, Forget("b", ForgetSelector(memory_ids=(first.memory_id or "",))))
    assert (await retain(gate, AGAIN)).stored
    assert (await retain(gate, FIRST)).deduplicated


async def test_replacing_what_goes_away_meanwhile(gate: Gate) -> None:
    first = await retain(gate, FIRST)
    again = replace(AGAIN, dedup_action=DedupAction.UPDATE)
    for _ in range(20):
        selector = ForgetSelector(memory_ids=(first.memory_id or "",))
        _, result = await asyncio.gather(gate.call(ME, Forget("b", selector)), retain(gate, again))
        assert result.stored or result.deduplicated
        await gate.call(ME, Forget("b", ForgetSelector(scope="all")))
        first = await retain(gate, FIRST)


async def test_settings_choose_sizes_and_strategies() -> None:
    words = " ".join(f"w{n}" for n in range(400))
    settings = {"chunk_tokens": 64, "overlap_tokens": 16, "chunking": {"text": "fixed"}}
    app = App(Settings.from_mapping({"vector_store": "in_memory", "retain": settings}))
    result = await app.gate.call(ME, Retain("b", RetainItem(words)))
    assert result.chunk_count > result.token_count / 64
    await app.close()


async def test_settings_choose_what_becomes_of_near_duplicates() -> None:
    dedup = {"action": "warn"}
    banks = {"off": {"signal_quality": {"dedup": {"enabled": False}}}}
    app = App(Settings.from_mapping({"vector_store": "in_memory", "signal_quality": {"dedup": dedup}, "banks": banks}))
    for bank, flagged in (("b", True), ("off", False)):
        await app.gate.call(ME, Retain(bank, FIRST))
        again = await app.gate.call(ME, Retain(bank, AGAIN))
        assert again.stored
        assert (again.near_duplicate_of is not None) == flagged
        # In a batch the items are compared with each other too.
        pair = [replace(FIRST, content=f"{item.content} once more") for item in (FIRST, AGAIN)]
        await app.gate.call(ME, BatchRetain(bank, pair))
        # The same once more is never stored twice, and an item may ask for itself.
        assert not (await app.gate.call(ME, Retain(bank, FIRST))).stored
    asked = replace(AGAIN, content=f"{AGAIN.content} again", dedup_action=DedupAction.SKIP)
    assert not (await app.gate.call(ME, Retain("off", asked))).stored
    await app.close()


async def test_with_vectors_of_the_callers_own_only_exact_copies_are_duplicates(gate: Gate) -> None:
    await gate.call(ME, CreateBank("own", embedding_model="theirs", dimensions=4))
    vector = Embedding("theirs", 4, struct.pack("<4f", 1, 2, 3, 4))

    async def stored(item: RetainItem) -> bool:
        return (await gate.call(ME, Retain("own", replace(item, embedding=vector)))).stored

    assert await stored(FIRST)
    # The cosine is 1, and one text has all words of the other.
    assert await stored(AGAIN)
    assert not await stored(FIRST)
    # An item may ask for itself.
    assert not await stored(replace(AGAIN, content=f"{AGAIN.content} again", dedup_action=DedupAction.SKIP))


@pytest.mark.parametrize(
    "other",
    [
        {"occurred_at": DAY + timedelta(days=1)},
        {"occurred_at": DAY + timedelta(hours=3)},
        {"session_id": "evening"},
        {"speaker": "Bo"},
        {"metadata": {"session_id": "evening"}},
    ],
)
@pytest.mark.parametrize("content", ["Took the pill.", FIRST.content])
async def test_a_second_occurrence_is_another_memory(gate: Gate, content: str, other: dict[str, Any]) -> None:
    first = RetainItem(content, occurred_at=DAY, session_id="morning", speaker="Ann")
    one, again = await retain(gate, first), await retain(gate, replace(first, **{"session_id": None, **other}))
    assert again.stored
    assert again.memory_id != one.memory_id
    assert not (await retain(gate, first)).stored
    assert await count(gate) == 2


async def test_a_duplicate_adds_its_tags_to_the_memory_that_stays(gate: Gate) -> None:
    first = await retain(gate, replace(FIRST, tags=("health",), metadata={"by": "phone"}))
    again = await retain(gate, replace(FIRST, tags=("family", "health"), metadata={"by": "mail"}))
    assert (again.stored, again.deduplicated, again.retention_action) == (False, True, "merged")
    assert again.memory_id == first.memory_id
    memory = await gate.call(ME, GetMemory("b", first.memory_id or ""))
    assert (memory.tags, memory.metadata, memory.version) == (("health", "family"), {"by": "phone"}, 2)
    found = await gate.call(ME, Recall(RecallQuery("peanuts", "b", tags=("family",))))
    assert [hit.memory_id for hit in found.hits] == [first.memory_id]
    third = await retain(gate, replace(FIRST, tags=("family",)))
    assert (third.retention_action, third.position) == ("skipped", 0)


async def test_duplicates_within_a_batch_add_their_tags(gate: Gate) -> None:
    items = tuple(replace(FIRST, tags=(tag,)) for tag in ("one", "two", "two"))
    results = await gate.call(ME, BatchRetain("b", items))
    assert [result.retention_action for result in results] == ["created", "merged", "skipped"]
    assert (await gate.call(ME, GetMemory("b", results[0].memory_id or ""))).tags == ("one", "two")


async def test_a_date_that_is_changed_changes_what_is_the_same(gate: Gate) -> None:
    first = await retain(gate, replace(FIRST, occurred_at=DAY))
    later = DAY + timedelta(days=1)
    await gate.call(
        ME, UpdateMemory("b", MemoryUpdate(first.memory_id or "", frozenset({"occurred_at"}), occurred_at=later))
    )
    assert (await retain(gate, replace(FIRST, occurred_at=DAY))).stored
    assert not (await retain(gate, replace(FIRST, occurred_at=later))).stored


async def test_a_merge_changes_nothing_but_the_tags(gate: Gate) -> None:
    first = replace(FIRST, content_type="conversation", fact_type="plan", source="phone", valid_until=DAY, tags=("a",))
    kept = await retain(gate, first)
    before = await gate.call(ME, GetMemory("b", kept.memory_id or ""))
    again = await retain(gate, replace(FIRST, tags=("b",), valid_until=DAY - timedelta(days=99), metadata={"x": 1}))
    assert again.retention_action == "merged"
    after = await gate.call(ME, GetMemory("b", kept.memory_id or ""))
    assert after.tags == ("a", "b")
    for name in ("content_type", "fact_type", "memory_layer", "source", "valid_until", "metadata", "occurred_at"):
        assert getattr(after, name) == getattr(before, name), name


async def test_a_merge_keeps_to_the_limit_of_tags(gate: Gate) -> None:
    most = Settings().limits.tags
    first = await retain(gate, replace(FIRST, tags=tuple(f"t{number}" for number in range(most))))
    again = await retain(gate, replace(FIRST, tags=("one more",)))
    assert (again.retention_action, again.memory_id) == ("skipped", first.memory_id)
    assert f"the limit is {most}" in " ".join(again.warnings)
    assert len((await gate.call(ME, GetMemory("b", first.memory_id or ""))).tags) == most


@pytest.mark.parametrize("more", [{"occurred_at": DAY}, {"session_id": "s1"}])
async def test_a_near_duplicate_with_a_date_or_session_of_its_own_is_stored(gate: Gate, more: dict[str, Any]) -> None:
    await retain(gate, FIRST)
    assert (await retain(gate, replace(AGAIN, **more))).stored
    updated = await retain(
        gate, replace(AGAIN, dedup_action=DedupAction.UPDATE, content=f"{FIRST.content} now", **more)
    )
    assert updated.stored
