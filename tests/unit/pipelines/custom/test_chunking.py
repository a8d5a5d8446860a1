"""Contents cut by another: its pieces, its faults, and what it may not do."""

from typing import Any

import pytest

from astrocyte.api.requests import Recall, Retain
from astrocyte.errors import ConfigError
from astrocyte.model import RecallQuery, RetainItem
from astrocyte.pipelines.custom.bounded_call import UnusableError
from astrocyte.pipelines.custom.chunking import MOST_PIECES, _pieces
from doubles.stages import ME, app_of, heard, last
from doubles.third_party import FAULTS, REASONS, HeadingChunker

PARTS = [f"# {name}\n{name} is told of here. {'Words that fill it. ' * 12}" for name in ("Oboe", "Harp", "Lute")]
CONTENT = "\n".join(PARTS)


def block(**chunking: Any) -> dict[str, Any]:
    return {"chunking": {"strategy": "custom", "custom_chunker": "headings", "max_chunk_size": 300, **chunking}}


async def chunks(app: Any) -> list[str]:
    """The chunks of the one memory, in order."""
    found = await app.gate.call(ME, Recall(RecallQuery("oboe harp lute part words", "b")))
    (hit,) = found.hits
    store, bank = app.storage.store, app.storage.store.get_bank("default", "b")
    version = store.version(bank, hit.memory_id)
    return [chunk.text for chunk in version.memory.chunks]


async def test_contents_are_cut_where_it_says() -> None:
    app = app_of(block())
    result = await app.gate.call(ME, Retain("b", RetainItem(CONTENT)))
    assert result.warnings == ()
    assert await chunks(app) == [part.strip() for part in PARTS]
    assert last(HeadingChunker).calls == [(CONTENT.strip(), 300, "text")]
    (hit,) = (await app.gate.call(ME, Recall(RecallQuery("what of the lute?", "b")))).hits
    assert hit.text.startswith("# Lute")
    assert hit.chunk_count == 3
    await app.close()
    assert last(HeadingChunker).closed


async def test_short_contents_and_those_of_other_strategies_stay_as_they_are() -> None:
    app = app_of(block(), retain={"chunking": {"document": "paragraph"}})
    await app.gate.call(ME, Retain("b", RetainItem("# One\n# Two")))
    await app.gate.call(ME, Retain("c", RetainItem(CONTENT, content_type="document")))
    assert last(HeadingChunker).calls == []
    await app.close()


async def test_a_profile_and_a_content_type_may_name_it() -> None:
    chunking = {"custom_chunker": "headings", "max_chunk_size": 300}
    profiles = {"tickets": {"chunking_strategy": "custom", "chunk_size": 400}}
    app = app_of({"chunking": chunking}, extraction_profiles=profiles, retain={"chunking": {"email": "custom"}})
    await app.gate.call(ME, Retain("b", RetainItem(CONTENT, extraction_profile="tickets")))
    await app.gate.call(ME, Retain("c", RetainItem(CONTENT, content_type="email")))
    await app.gate.call(ME, Retain("d", RetainItem(CONTENT)))
    asked = [(size, kind) for _, size, kind in last(HeadingChunker).calls]
    assert asked == [(400, "text"), (300, "email")]
    await app.close()


async def test_sizes_in_tokens_are_told_in_characters() -> None:
    app = app_of({"chunking": {"strategy": "custom", "custom_chunker": "headings"}}, retain={"chunk_tokens": 80})
    await app.gate.call(ME, Retain("b", RetainItem(CONTENT)))
    ((_, size, _),) = last(HeadingChunker).calls
    assert 160 < size < 640
    await app.close()


@pytest.mark.parametrize("fault", FAULTS)
async def test_where_it_fails_sentences_are_cut_and_the_caller_is_told(fault: str) -> None:
    with heard() as told:
        app = app_of(block(options={"fault": fault}, timeout_seconds=0.05))
        result = await app.gate.call(ME, Retain("b", RetainItem(CONTENT)))
        cut = await chunks(app)
        await app.close()
    plain = app_of({"chunking": {"strategy": "sentence", "max_chunk_size": 300}})
    await plain.gate.call(ME, Retain("b", RetainItem(CONTENT)))
    assert cut == await chunks(plain)
    await plain.close()
    assert result.stored
    assert result.warnings == (f"chunking: the custom chunker gave none ({REASONS[fault]}); it was cut by sentence",)
    assert told == [("retain", "b", "chunking", f"chunking: {REASONS[fault]}")]


@pytest.mark.parametrize(
    "pairs",
    [
        [],
        [(0, 0)],
        [(3, 2)],
        [(-1, 4)],
        [(0, 11)],
        [(4, 6), (0, 3)],
        [(0, 4, 5)],
        [(0.0, 4)],
        [(False, 4)],
        ["ab"],
        {0: 4},
        [(4, 5)],
        [(0, 4)] * (MOST_PIECES + 1),
    ],
)
def test_what_is_no_list_of_places_is_refused(pairs: Any) -> None:
    with pytest.raises(UnusableError):
        _pieces("abcd efghi", pairs)


def test_pieces_may_overlap_and_leave_gaps() -> None:
    assert _pieces("abcd efghi", [(0, 5), (1, 3), (6, 10)]) == ["abcd", "bc", "fghi"]


@pytest.mark.parametrize(
    ("pipeline", "problem"),
    [
        ({"chunking": {"strategy": "custom"}}, "custom needs pipeline.chunking.custom_chunker"),
        ({"chunking": {"custom_chunker": "headings"}}, "has no effect"),
        ({"chunking": {"options": {"a": 1}}}, "has no effect"),
        (block(custom_chunker="heading"), "did you mean 'headings'"),
    ],
)
def test_what_would_do_nothing_is_refused(pipeline: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        app_of(pipeline)
