from collections.abc import Sequence

import pytest

from astrocyte.core import count_tokens, count_tokens_many
from astrocyte.pipelines.text.chunking import split


def words(texts: Sequence[str]) -> list[int]:
    return [len(text.split()) for text in texts]


def test_sentences_are_merged_while_they_fit() -> None:
    text = "One two three. Four five! Six seven eight nine? Ten."
    chunks = split(text, "sentence", size=5, overlap=0, count_tokens=words)
    assert [chunk.text for chunk in chunks] == ["One two three. Four five!", "Six seven eight nine? Ten."]
    assert [chunk.tokens for chunk in chunks] == [5, 5]


def test_sentences_of_scripts_without_spaces_are_found() -> None:
    chunks = split(
        "今日は晴れです。明日は雨でしょう。", "sentence", size=8, overlap=0, count_tokens=lambda t: list(map(len, t))
    )
    assert [chunk.text for chunk in chunks] == ["今日は晴れです。", "明日は雨でしょう。"]


def test_a_sentence_that_is_too_long_is_cut_by_words() -> None:
    chunks = split(" ".join(map(str, range(10))), "sentence", size=4, overlap=0, count_tokens=words)
    assert [chunk.text for chunk in chunks] == ["0 1 2 3", "4 5 6 7", "8 9"]


def test_paragraphs_are_merged_and_a_long_one_is_cut_by_sentence() -> None:
    text = "a b.\n\nc d.\n\nOne two three. Four five six."
    chunks = split(text, "paragraph", size=4, overlap=0, count_tokens=words)
    assert [chunk.text for chunk in chunks] == ["a b.\n\nc d.", "One two three.", "Four five six."]


def test_a_turn_that_is_too_long_repeats_its_speaker() -> None:
    text = "Mara: hello there\nJonas: One two three. Four five six. Seven.\nMara: bye"
    chunks = split(text, "dialogue", size=5, overlap=0, count_tokens=words)
    assert [chunk.text for chunk in chunks] == [
        "Mara: hello there",
        "Jonas: One two three.",
        "Jonas: Four five six. Seven.",
        "Mara: bye",
    ]


def test_short_turns_share_a_chunk() -> None:
    chunks = split("A: x\nB: y\nA: z", "dialogue", size=4, overlap=0, count_tokens=words)
    assert [chunk.text for chunk in chunks] == ["A: x\nB: y", "A: z"]


def test_fixed_windows_share_their_overlap() -> None:
    chunks = split(" ".join(map(str, range(10))), "fixed", size=4, overlap=2, count_tokens=words)
    assert [chunk.text for chunk in chunks] == ["0 1 2 3", "2 3 4 5", "4 5 6 7", "6 7 8 9"]


@pytest.mark.parametrize("strategy", ["sentence", "paragraph", "dialogue", "fixed"])
def test_nothing_is_lost_and_limits_hold(strategy: str) -> None:
    lines = [f"Speaker {n % 3}: This is sentence {n}, with {n * 7} words. And more!\n\n" for n in range(60)]
    text = "".join(lines) + "x" * 3_000
    chunks = split(text, strategy, size=40, overlap=8, count_tokens=count_tokens_many)
    assert len(chunks) > 10
    assert all(chunk.tokens == count_tokens(chunk.text) for chunk in chunks)
    # Counts of units add up only nearly: a token may span two of them.
    assert max(chunk.tokens for chunk in chunks) <= 44
    joined = " ".join(chunk.text for chunk in chunks)
    assert all(f"sentence {n}, with {n * 7} words" in joined for n in range(60)) or strategy == "fixed"
    assert joined.count("x") >= 3_000
