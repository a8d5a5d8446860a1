"""Phrases of a query in quotation marks: what is found, in both tiers and at any time, and what is refused."""

import asyncio
import random
from collections.abc import AsyncIterator
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
from astrocyte.core import holds_phrases, phrase_word_count
from astrocyte.errors import ValidationError
from astrocyte.model import (
    Caller,
    ExplainQuery,
    ExplainStage,
    ForgetSelector,
    MemoryHit,
    MemoryUpdate,
    RecallQuery,
    RecallResult,
    RetainItem,
)
from astrocyte.pipelines.search import phrase_search

ME = Caller()
BLUE, TURNED, BOTH = "The blue kiln is in the yard.", "The kiln by the blue door.", "A blue kiln, and the blue door."
# As many rows as lie in a file together, and some more.
ROWS = 4_200


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
    fields = {"require_phrases": True, **fields}
    result: RecallResult = await app.gate.call(ME, Recall(RecallQuery(text, bank, **fields)))
    return result


async def found(app: App, text: str, bank: str = "b", **fields: Any) -> set[str]:
    return {hit.text for hit in (await asked(app, text, bank, **fields)).hits}


async def retained(app: App, *texts: str, bank: str = "b", **fields: Any) -> list[str]:
    return [(await app.gate.call(ME, Retain(bank, RetainItem(text, **fields)))).memory_id or "" for text in texts]


def test_words_are_compared_as_written() -> None:
    texts = [BLUE, TURNED, BOTH, "BLUE-KILN", "blue kilns", "blue. Kiln"]
    assert holds_phrases(texts, ["blue kiln"]) == [True, False, True, True, False, True]
    assert holds_phrases(texts, ["blue kiln", "the blue door"]) == [False, False, True, False, False, False]
    assert [phrase_word_count(text) for text in ("", "?!", "the kiln")] == [0, 0, 2]


async def test_every_hit_holds_every_phrase() -> None:
    async with opened() as app:
        await retained(app, BLUE, TURNED, BOTH, "Rain.")
        assert await found(app, 'where is the "blue kiln"?') == {BLUE, BOTH}
        assert await found(app, 'where is the “Blue Kiln”, at "the blue door"?') == {BOTH}
        assert await found(app, '"kiln blue"') == set()
        assert await found(app, '"quagga"') == set()
        # Without the option quotation marks mean nothing.
        assert await found(app, 'the "blue kiln"', require_phrases=False) >= {BLUE, TURNED, BOTH}
        result = await asked(app, '"blue kiln"')
        assert result.trace is not None
        assert (result.trace.plan or "").endswith("; phrases: 2 of 3 memories with the words, 3 in all")
        # No arm is left out: a hit may be the nearest one, too.
        assert {arm.arm for hit in result.hits for arm in hit.arms} >= {"keyword", "semantic"}


async def test_a_filter_holds_beside_phrases() -> None:
    async with opened() as app:
        (plain,) = await retained(app, BLUE)
        await retained(app, BOTH, tags=("door",), metadata={"n": 1}, session_id="s")
        for fields in ({"tags": ("door",)}, {"metadata": {"n": 1}}, {"session_id": "s"}):
            assert await found(app, '"blue kiln"', **fields) == {BOTH}
        assert await found(app, '"blue kiln"', memory_ids=(plain,)) == {BLUE}
        assert await found(app, '"the yard"', tags=("door",)) == set()


async def test_the_versions_of_the_instant_are_compared() -> None:
    clock = Clock()
    async with opened(clock) as app:
        (memory,) = await retained(app, BLUE)
        before = datetime.fromtimestamp(clock.now / 1_000, UTC)
        clock.now += 60_000
        await app.gate.call(ME, UpdateMemory("b", MemoryUpdate(memory, frozenset({"content"}), content=TURNED)))
        assert await found(app, '"blue kiln"') == set()
        assert await found(app, '"blue kiln"', as_of=before) == {BLUE}
        assert await found(app, '"blue door"') == {TURNED}
        assert await found(app, '"blue door"', as_of=before) == set()


async def test_forgotten_memories_and_other_banks_are_not_found() -> None:
    async with opened() as app:
        gone, _ = await retained(app, BLUE, BOTH)
        await retained(app, "My blue kiln.", bank="other")
        await app.gate.call(ME, Forget("b", ForgetSelector(memory_ids=(gone,))))
        assert await found(app, '"blue kiln"') == {BOTH}
        assert await found(app, '"blue kiln"', bank="", banks=("b", "other")) == {BOTH, "My blue kiln."}
        queries = [RecallQuery('"blue kiln"', bank, require_phrases=True) for bank in ("other", "b")]
        results = await app.gate.call(ME, BatchRecall(queries))
        assert [[hit.text for hit in result.hits] for result in results] == [["My blue kiln."], [BOTH]]


async def test_items_of_the_caller_need_the_phrases_too() -> None:
    async with opened() as app:
        await retained(app, BLUE)
        items = (MemoryHit("Their blue kiln.", 1.0), MemoryHit("Their kiln.", 1.0))
        assert await found(app, '"blue kiln"', external_context=items) == {BLUE, "Their blue kiln."}


async def test_explain_names_the_condition() -> None:
    async with opened() as app:
        blue, turned = await retained(app, BLUE, TURNED)
        query = RecallQuery('"blue kiln"', "b", require_phrases=True)
        told = await app.gate.call(ME, Explain(ExplainQuery(query, (blue, turned))))
        kept, out = told.explanations
        assert kept.stage is ExplainStage.RETURNED
        assert out.stage is ExplainStage.FILTER
        assert "require_phrases" in out.conditions
        assert out.counterfactual is not None
        assert out.counterfactual.query.require_phrases is False


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("the blue kiln", "has no phrase"),
        ('the "blue kiln', "without a partner"),
        ('"" kiln', "has 0 words in phrase 1"),
        ('"blue kiln" and "?!"', "has 0 words in phrase 2"),
        (f'"{"kiln " * 17}"', "has 17 words in phrase 1"),
        ('"kiln" ' * 9, "has 9 phrases"),
        ('"to be or not to be"', "stop word"),
    ],
)
async def test_wrong_phrases_are_refused(query: str, told: str) -> None:
    async with opened() as app:
        await retained(app, BLUE)
        with pytest.raises(ValidationError, match=told) as raised:
            await asked(app, query)
        assert raised.value.field == "query"
        with pytest.raises(ValidationError, match="true or false") as raised:
            await asked(app, '"blue kiln"', require_phrases="yes")
        assert raised.value.field == "require_phrases"


async def test_a_wrong_phrase_of_a_batch_is_told_with_its_query() -> None:
    async with opened() as app:
        await retained(app, BLUE)
        await retained(app, BLUE, bank="other")
        right = RecallQuery('"blue kiln"', "b", require_phrases=True)
        for wrong in (RecallQuery('"to be"', "b", require_phrases=True), replace(right, query='"of the"')):
            with pytest.raises(ValidationError, match="stop word") as raised:
                await app.gate.call(ME, BatchRecall([right, wrong]))
            assert raised.value.field == "queries[1].query"
        several = RecallQuery('"to be"', "", banks=("b", "other"), require_phrases=True)
        with pytest.raises(ValidationError, match="stop word") as raised:
            await app.gate.call(ME, BatchRecall([right, several]))
        assert raised.value.field == "queries[1].query"


async def test_the_answer_says_if_not_all_candidates_were_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(phrase_search, "MOST_COMPARED", 3)
    async with opened() as app:
        await retained(app, *(f"The blue kiln of house {number}." for number in range(5)))
        result = await asked(app, '"blue kiln"')
        assert len(result.hits) == 3
        assert [warning.split(";")[0] for warning in result.warnings] == [
            "phrases were looked for in 3 of 5 memories that hold their words"
        ]
        await retained(app, BLUE, bank="other")
        several = await asked(app, '"blue kiln"', "", banks=("b", "other"))
        assert [warning.split(";")[0] for warning in several.warnings] == [
            "bank b: phrases were looked for in 3 of 5 memories that hold their words"
        ]


async def test_the_python_api_has_the_option() -> None:
    memory = Astrocyte.from_config_dict({"vector_store": "in_memory"})
    try:
        for text in (BLUE, TURNED):
            await memory.retain(text, bank_id="b")
        hits = (await memory.recall('"blue kiln"', bank_id="b", require_phrases=True)).hits
        assert [hit.text for hit in hits] == [BLUE]
    finally:
        await memory.close()


@pytest.mark.timeout(300)
async def test_both_tiers_find_what_a_look_through_all_texts_finds(tmp_path: Path) -> None:
    chance = random.Random(5)
    words = [*(f"word{number}" for number in range(60)), "the", "of", "IT", "kilns", "firing", "Ärzte"]
    texts = [" ".join(chance.choices(words, k=chance.randint(2, 14))) for _ in range(ROWS)]
    phrases = []
    for _ in range(40):
        parts = chance.choice(texts).split()
        first, last = sorted(chance.sample(range(len(parts) + 1), 2))
        # Half of them in an order that hardly a text has.
        own = parts[first:last][:: chance.choice((1, -1))]
        if any(word not in ("the", "of", "IT") for word in own):
            phrases.append(" ".join(own[:4]))
    phrases = [one for one in phrases if any(word not in ("the", "of", "IT") for word in one.split())]
    expected = [{text for text in texts if _holds(text, phrase)} for phrase in phrases]
    assert sum(map(bool, expected)) > len(expected) // 3
    for tier in ("memory", "disk"):
        index = {"tier": tier, "graph_rows": 1_000, "sampling": 0.0, "build_share": 1.0, "checkpoint_rows": 1}
        async with opened(data_dir=str(tmp_path / tier), index=index) as app:
            await app.gate.call(ME, CreateBank("b"))
            for first in range(0, ROWS, 256):
                items = [RetainItem(text) for text in texts[first : first + 256]]
                await app.gate.call(ME, BatchRetain("b", items))
            if tier == "disk":
                await _fold(app)
            for phrase, wanted in zip(phrases, expected, strict=True):
                result = await asked(app, f'"{phrase}"', max_results=200)
                assert {hit.text for hit in result.hits} <= wanted, (tier, phrase)
                assert len({hit.text for hit in result.hits}) == min(len(wanted), 200), (tier, phrase)


def _holds(text: str, phrase: str) -> bool:
    own, wanted = text.casefold().split(), phrase.casefold().split()
    return any(own[at : at + len(wanted)] == wanted for at in range(len(own)))


async def _fold(app: App) -> None:
    """Wait until rows lie in files."""
    await asked(app, '"word1"')
    index = app.storage.registry.peek(await app.gate.call(ME, GetBank("b")))
    assert index is not None
    loop = asyncio.get_running_loop()
    for _ in range(200):
        await loop.run_in_executor(None, index.core.fold)
        trace = (await asked(app, '"word1"')).trace
        assert trace is not None
        if "disk tier" in (trace.plan or ""):
            return
    pytest.fail("no row came into a file")
