"""An index that was built anew answers as the one that has followed every commit: same hits, order and scores."""

import asyncio
from typing import Any

from hypothesis import example, given
from hypothesis import settings as budget
from hypothesis import strategies as st

from astrocyte.api.requests import (
    BatchRecall,
    CreateBank,
    Forget,
    GetBank,
    Recall,
    Retain,
    UndeleteMemory,
    UpdateMemory,
)
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.model import Bank, Caller, ForgetSelector, FusionMethod, MemoryHit, MemoryUpdate, RecallQuery, RetainItem
from astrocyte.pipelines.query.time_windows import from_ms

ME = Caller()
# Short turns that share words: neighbours in a session lend one another their scores, so order of arrival shows.
WORDS = ("tea", "green", "jam", "in the garden", "yes", "at noon")
LONG = " ".join(f"The {word} was on the table on day {day}." for day in range(60) for word in WORDS)
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["retain", "retain", "retain", "update", "forget", "undelete"]),
        st.integers(0, 30),
        st.sampled_from([None, "s1", "s2"]),
        st.lists(st.sampled_from(WORDS), min_size=1, max_size=3),
        st.booleans(),
    ),
    min_size=2,
    max_size=16,
)


# Without its long memory the bank is one of short ones.
@example(steps=[("retain", 0, None, ["jam"], False), ("retain", 0, None, ["tea", "jam"], False),
                ("retain", 0, None, ["tea"], False), ("retain", 0, None, ["green"], True),
                ("forget", 3, None, ["jam"], False), ("retain", 0, None, ["green"], False)])  # fmt: skip
@given(steps=STEPS)
@budget(max_examples=60, deadline=None)
def test_a_reloaded_index_equals_the_live_one(steps: list[Any]) -> None:
    asyncio.run(_run(steps))


async def _run(steps: list[Any]) -> None:
    now = 1_700_000_000_000
    app = App(
        Settings.from_mapping({"vector_store": "in_memory", "signal_quality": {"dedup": {"action": "warn"}}}),
        clock=lambda: now,
    )
    try:
        bank = await app.gate.call(ME, CreateBank("b"))
        # Loaded while it is empty, so that it learns everything from commits.
        await app.gate.call(ME, Recall(RecallQuery("tea", "b")))
        known: list[str] = []
        for number, (step, choice, session, words, long) in enumerate(steps):
            now += 10
            text = f"{' '.join(words)} {number}" + (f" {LONG}" if long and step != "forget" else "")
            memory_id = known[choice % len(known)] if known else None
            if step == "retain" or memory_id is None:
                result = await app.gate.call(ME, Retain("b", RetainItem(text, session_id=session)))
                known.append(result.memory_id or "")
            else:
                await _change(app, step, memory_id, text)
        await _compare(app, bank, now)
    finally:
        await app.close()


async def _change(app: App, step: str, memory_id: str, text: str) -> None:
    forgotten = app.gate._memories._store.memory(await app.gate.call(ME, GetBank("b")), memory_id) is None
    if step == "update" and not forgotten:
        await app.gate.call(ME, UpdateMemory("b", MemoryUpdate(memory_id, frozenset({"content"}), content=text)))
    elif step == "forget":
        await app.gate.call(ME, Forget("b", ForgetSelector(memory_ids=(memory_id,))))
    elif step == "undelete" and forgotten:
        await app.gate.call(ME, UndeleteMemory("b", memory_id))


async def _compare(app: App, bank: Bank, now: int) -> None:
    queries = [
        RecallQuery(text, "b", max_results=50, fusion_method=method, as_of=as_of, session_id=session)
        for text in ("green tea in the garden", "jam at noon", "yes")
        for method in FusionMethod
        for as_of in (None, from_ms(now - 45))
        for session in (None, "s1")
    ]
    live = await _answers(app, queries)
    app.gate._registry.drop(bank)
    assert await _answers(app, queries) == live


async def _answers(app: App, queries: list[RecallQuery]) -> list[tuple[int, tuple[MemoryHit, ...]]]:
    return [(result.total_available, tuple(result.hits)) for result in await app.gate.call(ME, BatchRecall(queries))]
