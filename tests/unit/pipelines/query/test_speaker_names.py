"""Words of a query that may be names of speakers."""

import pytest

from astrocyte.pipelines.query.speaker_names import MOST_NAMES, speaker_names


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("What did Caroline say?", ["what", "caroline"]),
        ("Which dog is Anna's?", ["which", "anna"]),
        ("Which dog is Anna\u2019s?", ["which", "anna"]),
        ("Where does Jean-Luc live?", ["where", "jean-luc"]),
        ("O'Neil or \u00c9mile", ["o'neil", "\u00e9mile"]),
        ("Will Anna come?", ["anna"]),
        ("Did Will come?", ["did", "will"]),
        ("where will anna live", ["where", "anna", "live"]),
        ("", []),
        ("2023, 17:00", []),
    ],
)
def test_words_that_may_be_names(query: str, names: list[str]) -> None:
    assert speaker_names(query) == names


def test_the_number_of_names_is_bounded_and_each_comes_once() -> None:
    assert speaker_names("Anna Anna Ole") == ["anna", "ole"]
    assert len(speaker_names(" ".join(f"A{chr(97 + number % 26)}{'b' * number}" for number in range(60)))) == MOST_NAMES
