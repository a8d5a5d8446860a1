"""Boosts of turns, and the confidence in a question about the wrong speaker."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any

from astrocyte import Astrocyte
from astrocyte.model import MemoryHit, MultiBankStrategy, RecallQuery, RecallResult

BANK = "friends"
TURNS = [
    ("Mara Holm", "How was the regatta at the lighthouse?", "2026-03-02T10:00:00+00:00"),
    ("Ole", "Third place, in heavy wind.", "2026-03-02T10:01:00+00:00"),
    ("Ole", "I bought a violin in the old town.", "2026-04-05T10:00:00+00:00"),
    ("Mara Holm", "My cello needs new strings.", "2026-04-05T10:01:00+00:00"),
    ("Mara Holm", "Your violin sounds lovely in the old town hall.", "2026-04-06T10:00:00+00:00"),
    ("Ole", "The garden is full of tulips.", "2026-05-01T10:00:00+00:00"),
    ("Mara Holm", "The bakery has closed for good.", "2026-05-02T10:00:00+00:00"),
]


@asynccontextmanager
async def opened(**turns: float) -> AsyncIterator[Astrocyte]:
    recall: dict[str, Any] = {"boosts": {"turns": turns}, "feedback": 0.0, "context_windows": False}
    brain = Astrocyte.from_config_dict({"vector_store": "in_memory", "recall": recall})
    for speaker, text, when in TURNS:
        at = datetime.fromisoformat(when)
        await brain.retain(text, BANK, speaker=speaker, session_id="s", occurred_at=at)
    yield brain
    await brain.close()


def boosts(hits: Sequence[MemoryHit], name: str) -> dict[str, float]:
    return {hit.text: boost.value for hit in hits for boost in hit.boosts if boost.name == name}


async def test_what_the_one_named_speaker_said_is_lifted() -> None:
    async with opened() as brain:
        for question, who in [
            ("Which instrument did Mara play?", "Mara Holm"),
            ("which instrument did mara play?", "Mara Holm"),
            ("Which instrument is Ole's?", "Ole"),
        ]:
            found = await brain.recall(question, BANK)
            lifted = boosts(found.hits, "speaker")
            assert lifted == {text: 2.0 for speaker, text, _ in TURNS if speaker == who}, question
        both = await brain.recall("What did Ole say to Mara?", BANK)
        assert boosts(both.hits, "speaker") == {}
    async with opened(speaker=0.0) as brain:
        found = await brain.recall("Which instrument did Mara play?", BANK)
        assert boosts(found.hits, "speaker") == {}


async def test_a_reply_passes_the_question_before_it() -> None:
    question, reply = TURNS[0][1], TURNS[1][1]

    def places(found: RecallResult) -> tuple[int, int]:
        texts = [hit.text for hit in found.hits]
        return texts.index(question), texts.index(reply)

    async with opened(question=0.0) as brain:
        before = places(await brain.recall("regatta at the lighthouse, which place?", BANK))
    async with opened(question=4.0) as brain:
        found = await brain.recall("regatta at the lighthouse, which place?", BANK)
    assert before[0] < before[1]
    assert places(found)[0] > places(found)[1]
    assert boosts(found.hits, "question") == {question: -4.0}
    assert boosts(found.hits, "reply")[reply] > 0.0


async def test_an_assistants_questions_stay() -> None:
    brain = Astrocyte.from_config_dict({"vector_store": "in_memory"})
    await brain.retain("Which harbour do you mean?", BANK, speaker="assistant", session_id="s")
    await brain.retain("The northern harbour.", BANK, speaker="user", session_id="s")
    found = await brain.recall("which harbour", BANK)
    await brain.close()
    assert len(found.hits) == len(TURNS[:2])
    assert all(not hit.boosts for hit in found.hits)


async def test_memories_of_the_time_that_a_question_names_are_lifted() -> None:
    async with opened() as brain:
        found = await brain.recall("What about the old town in April 2026?", BANK)
        assert set(boosts(found.hits, "date")) == {text for _, text, when in TURNS if when.startswith("2026-04")}
        # A year is too long to tell.
        found = await brain.recall("What about the old town in 2026?", BANK)
        assert boosts(found.hits, "date") == {}


async def test_a_question_about_the_wrong_person_has_a_low_confidence() -> None:
    async with opened() as brain:
        right = await brain.recall("Who of all bought a violin in the old town, was it Ole?", BANK)
        wrong = await brain.recall("Who of all bought a violin in the old town, was it Mara?", BANK)
        assert (wrong.confidence or 0.0) < 0.5 * (right.confidence or 0.0)
        # What one is told of oneself counts as one's own.
        told = await brain.recall("Where does the violin of Ole sound lovely in the hall?", BANK)
        assert (told.confidence or 0.0) > (wrong.confidence or 0.0)


async def test_banks_asked_together_are_boosted_too() -> None:
    async with opened() as brain:
        await brain.retain("Strings for a cello are dear.", "other", speaker="Ole")
        found = await brain.recall(
            "Which instrument did Mara play?",
            banks=[BANK, "other"],
            strategy=MultiBankStrategy("parallel", fusion_method="dbsf"),
        )
        assert set(boosts(found.hits, "speaker")) == {text for speaker, text, _ in TURNS if speaker == "Mara Holm"}


async def test_the_trace_has_the_time_and_explain_the_boosts() -> None:
    async with opened() as brain:
        found = await brain.recall("Which instrument did Mara play?", BANK, include_trace=True)
        assert found.trace is not None
        assert (found.trace.stage_timings_ms or {})["turns"] > 0.0
        cello = next(hit for hit in found.hits if "cello" in hit.text)
        told = await brain.explain(RecallQuery("Which instrument did Mara play?", BANK), [cello.memory_id or ""])
        assert [tuple(boost) for boost in told.explanations[0].boosts] == [("speaker", 2.0)]
