"""An archive of any history, imported elsewhere, shows the same at every instant, and is exported as the same lines."""

import asyncio
from datetime import UTC, datetime
from typing import Any

from hypothesis import given
from hypothesis import settings as budget
from hypothesis import strategies as st

from astrocyte.api.requests import CreateBank, Forget, ListMemories, Recall, Retain, UndeleteMemory, UpdateMemory
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.model import Caller, ForgetSelector, MemoryUpdate, RecallQuery, RetainItem
from astrocyte.pipelines.query.time_windows import from_ms
from samples.archiving import export, lines_of, load

ME = Caller()
BEGIN = 1_700_000_000_000
LONG = " ".join(f"Sentence {number} of the tea note tells what happened in the kitchen." for number in range(60))
ITEMS = st.builds(
    RetainItem,
    content=st.one_of(
        st.text("abc déf tea.", min_size=3, max_size=30).filter(lambda text: len(text.split()) > 0), st.just(LONG)
    ),
    content_type=st.sampled_from(["text", "conversation", "document"]),
    metadata=st.dictionaries(st.sampled_from(["page", "ok", "who"]), st.one_of(st.integers(0, 9), st.booleans())),
    tags=st.lists(st.sampled_from(["x", "y", "z"]), unique=True).map(tuple),
    occurred_at=st.one_of(st.none(), st.integers(0, 400).map(lambda day: datetime.fromtimestamp(day * 86_400, UTC))),
    speaker=st.sampled_from([None, "Ines", "Mara"]),
    session_id=st.sampled_from([None, "s1"]),
)
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["retain", "retain", "update", "retag", "forget", "undelete", "erase"]),
        st.integers(0, 30),
        ITEMS,
    ),
    min_size=1,
    max_size=12,
)


@given(steps=STEPS, embeddings=st.booleans())
@budget(max_examples=40, deadline=None)
def test_a_round_trip_is_equal(steps: list[tuple[str, int, RetainItem]], embeddings: bool) -> None:
    asyncio.run(_round_trip(steps, embeddings=embeddings))


async def _round_trip(steps: list[tuple[str, int, RetainItem]], *, embeddings: bool) -> None:
    now = BEGIN

    def clock() -> int:
        return now

    settings = Settings.from_mapping({"vector_store": "in_memory", "signal_quality": {"dedup": {"enabled": False}}})
    source, target = App(settings, clock=clock), App(settings, clock=clock)
    try:
        await source.gate.call(ME, CreateBank("b"))
        known: list[str] = []
        for step, choice, item in steps:
            now += 10
            await _step(source, known, step, choice, item)
        archive = await export(source.gate, include_embeddings=embeddings)
        now += 1_000
        result = await load(target.gate, archive)
        assert (result.errors, result.skipped) == (0, 0)
        for as_of in (None, *range(BEGIN + 5, now, 10)):
            assert await _seen(source, as_of) == await _seen(target, as_of), as_of
        assert await _listed(source) == await _listed(target)
        # A second time nothing is left to do, and the same lines come out again.
        again = await load(target.gate, archive)
        assert (again.imported, again.skipped) == (0, result.imported)
        assert _memories(await export(target.gate, include_embeddings=embeddings)) == _memories(archive)
    finally:
        await source.close()
        await target.close()


async def _step(app: App, known: list[str], step: str, choice: int, item: RetainItem) -> None:
    gate = app.gate
    if step == "retain" or not known:
        result = await gate.call(ME, Retain("b", item))
        if result.stored:
            known.append(result.memory_id or "")
        return
    memory_id = known[choice % len(known)]
    selector = ForgetSelector(memory_ids=(memory_id,))
    alive = app.storage.store.memory((await _bank(app)), memory_id) is not None
    if step == "update" and alive:
        update = MemoryUpdate(
            memory_id, frozenset({"content", "occurred_at"}), item.content, occurred_at=item.occurred_at
        )
        await gate.call(ME, UpdateMemory("b", update))
    elif step == "retag" and alive:
        await gate.call(ME, UpdateMemory("b", MemoryUpdate(memory_id, frozenset({"tags"}), tags=item.tags)))
    elif step == "forget":
        await gate.call(ME, Forget("b", selector))
    elif step == "undelete" and not alive:
        await gate.call(ME, UndeleteMemory("b", memory_id))
    elif step == "erase":
        await gate.call(ME, Forget("b", selector, compliance=True))
        known.remove(memory_id)


async def _bank(app: App) -> Any:
    bank = app.storage.store.get_bank("default", "b")
    assert bank is not None
    return bank


async def _seen(app: App, as_of: int | None) -> list[tuple[Any, ...]]:
    asked = None if as_of is None else from_ms(as_of)
    query = RecallQuery("tea note kitchen", "b", max_results=200, as_of=asked, query_reference_date=from_ms(BEGIN))
    answer = await app.gate.call(ME, Recall(query))
    return sorted(
        (hit.memory_id, hit.text, hit.version, hit.tags, hit.occurred_at, hit.retained_at, hit.speaker, hit.principal)
        for hit in answer.hits
    )


async def _listed(app: App) -> list[tuple[Any, ...]]:
    page = await app.gate.call(ME, ListMemories("b"))
    return sorted(
        (one.memory_id, one.version, one.content, sorted(one.metadata.items()), one.retained_at, one.updated_at)
        for one in page.memories
    )


def _memories(archive: bytes) -> list[dict[str, Any]]:
    return [line for line in lines_of(archive) if line.get("section") == "memories"]
