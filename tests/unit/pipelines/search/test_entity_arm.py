"""The entity arm: memories by the names that a question holds, behind the same filters as every arm."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from astrocyte.api.requests import BatchRetain, Forget, GetMemory, Recall, Retain, UndeleteMemory, UpdateMemory
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.errors import ValidationError
from astrocyte.model import Caller, ForgetSelector, FusionMethod, MemoryUpdate, RecallQuery, RecallResult, RetainItem
from astrocyte.pipelines.search.entity_arm import MOST_SHARE, phrases
from astrocyte.policy.gate import Gate

ME = Caller()
OTHERS = [f"On day {number} it rained on the roof for {number} hours." for number in range(12)]
ENTITY: dict[str, float] = {"entity": 1.0}


@pytest.fixture
async def gate() -> AsyncIterator[Gate]:
    app = App(
        Settings.from_mapping(
            {"vector_store": "in_memory", "pipeline": {"entity_extraction": {"mode": "metadata"}}, "limits": {}}
        )
    )
    await app.gate.call(ME, BatchRetain("b", [RetainItem(text) for text in OTHERS]))
    yield app.gate
    await app.close()


async def kept(gate: Gate, content: str, names: str, **fields: Any) -> str:
    result = await gate.call(ME, Retain("b", RetainItem(content, metadata={"people": names}, **fields)))
    assert result.memory_id is not None
    return result.memory_id


async def ask(gate: Gate, query: str, **fields: Any) -> RecallResult:
    return await gate.call(ME, Recall(RecallQuery(query, "b", **{"weights": ENTITY, **fields})))


def by_name(result: RecallResult) -> list[str | None]:
    return [hit.memory_id for hit in result.hits if any(arm.arm == "entity" for arm in hit.arms)]


@pytest.mark.parametrize("fusion", list(FusionMethod))
async def test_a_name_finds_a_memory_that_says_it_otherwise(gate: Gate, fusion: FusionMethod) -> None:
    memory_id = await kept(gate, "She is away until spring.", "Mara Silva")
    result = await ask(gate, "on which day is MARA  Silva's return?", fusion_method=fusion, weights={"entity": 3.0})
    assert by_name(result) == [memory_id]
    assert result.hits[0].memory_id == memory_id
    assert result.trace is not None
    assert "entity" in (result.trace.strategies_used or ())
    assert (result.trace.stage_timings_ms or {})["names"] > 0


async def test_of_several_banks_each_has_names_of_its_own(gate: Gate) -> None:
    mine = await kept(gate, "She is away until spring.", "Mara Silva")
    result = await gate.call(ME, Retain("c", RetainItem("She left in autumn.", metadata={"people": "Mara Silva"})))
    await gate.call(ME, BatchRetain("c", [RetainItem(text) for text in OTHERS]))
    found = await gate.call(ME, Recall(RecallQuery("when is Mara Silva back?", banks=("b", "c"), weights=ENTITY)))
    assert set(by_name(found)) == {mine, result.memory_id}


async def test_without_a_weight_the_arm_does_not_run(gate: Gate) -> None:
    await kept(gate, "She is away until spring.", "Mara Silva")
    result = await ask(gate, "when is Mara Silva back?", weights={})
    assert by_name(result) == []
    assert result.trace is not None
    assert "names" not in (result.trace.stage_timings_ms or {})


async def test_the_rarer_name_counts_more(gate: Gate) -> None:
    ann = [await kept(gate, f"A walk of {number} miles", "Ann") for number in (1, 2)]
    both = await kept(gate, "A walk of 3 miles", "Ann, Bo")
    result = await ask(gate, "Ann Bo", weights={"entity": 1.0, "semantic": 0.0, "keyword": 0.0})
    assert by_name(result)[0] == both
    assert set(by_name(result)) == {*ann, both}


async def test_a_name_that_many_have_tells_nothing(gate: Gate) -> None:
    for number in range(int(len(OTHERS) * MOST_SHARE) * 3):
        await kept(gate, f"Lunch number {number} was {number} euros", "Ann")
    assert by_name(await ask(gate, "Ann")) == []


async def test_every_filter_holds(gate: Gate) -> None:
    await kept(gate, "She is away until spring.", "Mara", tags=("private",))
    assert by_name(await ask(gate, "Mara", tags=("open",))) == []
    assert by_name(await ask(gate, "Mara", fact_types=("wiki",))) == []
    result = await gate.call(ME, Recall(RecallQuery("Mara", "b", weights=ENTITY, session_id="s")))
    assert by_name(result) == []


async def test_another_bank_is_not_looked_at(gate: Gate) -> None:
    await gate.call(ME, Retain("other", RetainItem("Elsewhere", metadata={"people": "Mara"})))
    assert by_name(await ask(gate, "Mara")) == []


async def test_a_version_is_found_by_its_own_names_in_its_time(gate: Gate) -> None:
    memory_id = await kept(gate, "She is away until spring.", "Mara")
    before = await gate.call(ME, GetMemory("b", memory_id))
    update = MemoryUpdate(memory_id, frozenset({"metadata"}), metadata={"people": "Ann"})
    await gate.call(ME, UpdateMemory("b", update))
    assert by_name(await ask(gate, "Mara")) == []
    assert by_name(await ask(gate, "Ann")) == [memory_id]
    assert by_name(await ask(gate, "Mara", as_of=before.updated_at)) in ([memory_id], [])


async def test_a_forgotten_memory_is_not_named(gate: Gate) -> None:
    memory_id = await kept(gate, "She is away until spring.", "Mara")
    await gate.call(ME, Forget("b", ForgetSelector(memory_ids=(memory_id,))))
    assert by_name(await ask(gate, "Mara")) == []
    await gate.call(ME, UndeleteMemory("b", memory_id))
    assert by_name(await ask(gate, "Mara")) == [memory_id]


async def test_the_arm_alone_may_be_asked(gate: Gate) -> None:
    with pytest.raises(ValidationError):
        await ask(gate, "Bo", weights={"semantic": 0.0, "keyword": 0.0})
    memory_id = await kept(gate, "She is away until spring.", "Bo")
    alone = await ask(gate, "Bo", weights={"semantic": 0.0, "keyword": 0.0, "entity": 1.0})
    assert by_name(alone) == [memory_id]


async def test_a_question_without_words_names_nothing(gate: Gate) -> None:
    await kept(gate, "She is away until spring.", "Mara")
    assert by_name(await ask(gate, "?!")) == []


def test_phrases_are_runs_of_words() -> None:
    assert phrases("Did Ann's dog?") == ["did ann dog", "did ann", "ann dog", "did", "ann", "dog"]
    assert phrases("ana@example.org") == ["ana@example.org"]
    assert len(phrases("word " * 10_000)) == 4
    assert phrases("") == []
