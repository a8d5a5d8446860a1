import pytest

from astrocyte.model import Metadata
from astrocyte.pipelines.index.rows import date_words, embedded_text, id_to_bytes, indexed_text, metadata_pairs


def test_the_indexed_text_says_who_and_when() -> None:
    # 2023-05-08T13:56Z, a Monday.
    assert indexed_text("Hi!", "Mara", 1_683_554_160_000) == "Mara Hi! Monday 8 May 2023"
    assert indexed_text("Hi!", None, None) == "Hi!"


def test_the_embedded_text_says_who() -> None:
    assert embedded_text("Hi!", "Mara") == "Mara: Hi!"
    assert embedded_text("Hi!", None) == "Hi!"


@pytest.mark.parametrize(
    ("milliseconds", "expected"),
    [
        (0, "Thursday 1 January 1970"),
        (-1, "Wednesday 31 December 1969"),
        (1_709_164_800_000, "Thursday 29 February 2024"),
    ],
)
def test_days_in_words(milliseconds: int, expected: str) -> None:
    assert date_words(milliseconds) == expected


@pytest.mark.parametrize(
    "value",
    ["mem_3f8a", "", "mem_", "mem_" + "g" * 32, "ab" * 16, "mem_" + "ab" * 17, "mem_" + "ab " * 10 + "ab", "ab" * 18],
)
def test_ids_that_are_none_of_ours(value: str) -> None:
    assert id_to_bytes(value) is None


def test_ids_are_sixteen_bytes() -> None:
    assert id_to_bytes("mem_" + "0f" * 16) == b"\x0f" * 16


def test_metadata_values_of_different_types_are_different() -> None:
    values: Metadata = {"a": "1", "b": 1, "c": 1.0, "d": True, "e": None, "f": "true", "g": 0, "h": False}
    typed = [value for _, value in metadata_pairs(values)]
    assert len(set(typed)) == len(typed)
    assert metadata_pairs({"a": -0.0}) == metadata_pairs({"a": 0.0})
