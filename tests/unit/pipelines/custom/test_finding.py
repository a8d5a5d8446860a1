"""Steps by others are found by name or by place, and what cannot be one is refused at the start."""

import sys
from types import ModuleType
from typing import Any

import pytest

from astrocyte.api.requests import GetMemory, Recall, Retain
from astrocyte.errors import ConfigError
from astrocyte.model import RecallQuery, RetainItem
from doubles import third_party
from doubles.stages import ME, app_of, last


def chosen(key: str, name: str) -> dict[str, Any]:
    """Settings that ask for a step of that name in the place of a key."""
    match key:
        case "custom_chunker":
            return {"chunking": {"strategy": "custom", key: name}}
        case "custom_analyser":
            return {"query_analysis": {"mode": "custom", key: name}}
        case "custom_arms":
            return {"retrieval": {key: {"mine": {"arm": name}}}}
        case "custom_fusion":
            return {"fusion": {"mode": "custom", key: name}}
    return {"reflect": {"mode": "custom", key: name}}


KEYS = ("custom_chunker", "custom_analyser", "custom_arms", "custom_fusion", "custom_synthesiser")
PLACES = dict(
    zip(KEYS, ("HeadingChunker", "PayPeriodAnalyser", "ListArm", "CountingFusion", "QuotingSynthesiser"), strict=True)
)


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("nobody", "there is no 'nobody'; there are "),
        ("synchronous", r"needs a coroutine function \(async def\)"),
        ("refusing", "cannot be made: ValueError: no such option"),
        ("lost", "cannot be loaded"),
        ("no_such_module:Thing", "cannot be loaded: No module named 'no_such_module'"),
        ("third_party:Nothing", "cannot be loaded"),
        ("third_party:FAULTS", "not callable"),
        ("builtins:dict", "has no method"),
        (":", "cannot be loaded"),
    ],
)
def test_what_cannot_be_one_is_refused(key: str, name: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem) as refused:
        app_of(chosen(key, name))
    assert key in refused.value.message


@pytest.mark.parametrize("key", KEYS)
async def test_a_place_does_without_an_entry_point(key: str) -> None:
    app = app_of(chosen(key, f"third_party:{PLACES[key]}"))
    await app.close()
    assert last(getattr(third_party, PLACES[key])).closed


async def test_all_kinds_together() -> None:
    pipeline = {
        "chunking": {"strategy": "custom", "custom_chunker": "headings", "max_chunk_size": 200},
        "query_analysis": {"mode": "custom", "custom_analyser": "pay_periods"},
        "retrieval": {"custom_arms": {"archive": {"arm": "listed"}, "attic": {"arm": "listed"}}},
        "fusion": {"mode": "custom", "custom_fusion": "counting"},
        "reflect": {"mode": "custom", "custom_synthesiser": "quoting"},
    }
    app = app_of(pipeline)
    await app.gate.call(
        ME, Retain("b", RetainItem(f"# Oboe\n{'The oboe is a woodwind. ' * 8}\n# Harp\n{'It has strings. ' * 9}"))
    )
    result = await app.gate.call(ME, Recall(RecallQuery("what is an oboe?", "b")))
    assert result.hits[0].text.startswith("# Oboe")
    assert {"query_analysis", "outside", "fusion"} <= set(result.trace.stage_timings_ms)
    assert {"archive", "attic"} <= set(result.trace.strategy_timings_ms)
    await app.close()


async def test_the_extractor_of_the_specification_runs_as_written(monkeypatch: pytest.MonkeyPatch) -> None:
    class MyEntityExtractor:
        async def extract(self, text: str, metadata: Any) -> list[tuple[str, str]]:
            return [("Oboe", "THING")]

    package, module = ModuleType("mypackage"), ModuleType("mypackage.extractors")
    module.MyEntityExtractor = MyEntityExtractor  # type: ignore[attr-defined] # as a package of somebody's would
    monkeypatch.setitem(sys.modules, "mypackage", package)
    monkeypatch.setitem(sys.modules, "mypackage.extractors", module)
    block = {"mode": "custom", "custom_extractor": "mypackage.extractors:MyEntityExtractor"}
    app = app_of({"entity_extraction": block})
    stored = await app.gate.call(ME, Retain("b", RetainItem("I play it.")))
    memory = await app.gate.call(ME, GetMemory("b", stored.memory_id or ""))
    assert [one.name for one in memory.entities] == ["Oboe"]
    await app.close()
