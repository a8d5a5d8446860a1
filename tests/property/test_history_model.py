"""Retain, update, forget, undelete and erase against a dictionary: recall shows what it says, at every instant."""

import asyncio
from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import settings as budget
from hypothesis import strategies as st

from astrocyte.api.requests import CreateBank, Forget, Recall, Retain, UndeleteMemory, UpdateMemory
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.model import Caller, ForgetSelector, MemoryUpdate, RecallQuery, RetainItem
from astrocyte.pipelines.query.time_windows import from_ms

ME = Caller()
MOST = 200


@dataclass
class Version:
    text: str
    known_from: int
    known_until: int | None = None


@dataclass
class Entry:
    versions: list[Version] = field(default_factory=list)
    forgotten: bool = False


@dataclass
class Model:
    """The expected view."""

    entries: dict[str, Entry] = field(default_factory=dict)

    def seen(self, as_of: int | None) -> set[tuple[str, str]]:
        return {
            (memory_id, version.text)
            for memory_id, entry in self.entries.items()
            if not entry.forgotten
            for version in entry.versions
            if (version.known_until is None if as_of is None else _holds(version, as_of))
        }


def _holds(version: Version, as_of: int) -> bool:
    return version.known_from <= as_of and (version.known_until is None or as_of < version.known_until)


# Each step: what to do, to which of the memories so far, and whether the index is built anew before the next look.
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["retain", "retain", "update", "forget", "undelete", "erase"]),
        st.integers(0, 30),
        st.booleans(),
    ),
    min_size=1,
    max_size=14,
)


@given(steps=STEPS)
@budget(max_examples=40, deadline=None)
def test_recall_shows_what_the_model_says(steps: list[tuple[str, int, bool]]) -> None:
    asyncio.run(_run(steps))


async def _run(steps: list[tuple[str, int, bool]]) -> None:
    now = 1_700_000_000_000

    def clock() -> int:
        return now

    settings = Settings.from_mapping({"vector_store": "in_memory", "forget": {"purge_after_days": 36_000}})
    app = App(settings, clock=clock)
    gate, model = app.gate, Model()
    bank = await gate.call(ME, CreateBank("b"))
    instants = [now]
    try:
        for number, (step, choice, reload) in enumerate(steps):
            now += 10
            text = f"tea note number {number}"
            known = sorted(model.entries)
            memory_id = known[choice % len(known)] if known else None
            if step == "retain" or memory_id is None:
                result = await gate.call(ME, Retain("b", RetainItem(text)))
                model.entries[result.memory_id or ""] = Entry([Version(text, now)])
            else:
                await _change(app, model, step, memory_id, text, now)
            instants.append(now + 5)
            if reload:
                app.gate._registry.drop(bank)
            for as_of in (None, *instants):
                asked = None if as_of is None else from_ms(as_of)
                answer = await gate.call(ME, Recall(RecallQuery("tea note", "b", max_results=MOST, as_of=asked)))
                assert {(hit.memory_id, hit.text) for hit in answer.hits} == model.seen(as_of), (step, as_of)
                assert len(answer.hits) == len({hit.memory_id for hit in answer.hits})
    finally:
        await app.close()


async def _change(app: App, model: Model, step: str, memory_id: str, text: str, now: int) -> None:
    gate, entry = app.gate, model.entries[memory_id]
    selector = ForgetSelector(memory_ids=(memory_id,))
    if step == "update" and not entry.forgotten:
        await gate.call(ME, UpdateMemory("b", MemoryUpdate(memory_id, frozenset({"content"}), content=text)))
        entry.versions[-1].known_until = now
        entry.versions.append(Version(text, now))
    elif step == "forget":
        await gate.call(ME, Forget("b", selector))
        entry.forgotten = True
    elif step == "undelete" and entry.forgotten:
        await gate.call(ME, UndeleteMemory("b", memory_id))
        entry.forgotten = False
    elif step == "erase":
        await gate.call(ME, Forget("b", selector, compliance=True))
        del model.entries[memory_id]
