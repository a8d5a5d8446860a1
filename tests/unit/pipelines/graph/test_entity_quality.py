"""Accuracy of extraction and resolution on the labelled sets; docs/quality.md has the tables."""

from pathlib import Path

import pytest

from benches.entities.pairs import pairs
from benches.entities.scoring import Counts, score_extraction, score_resolution
from benches.entities.sentences import Split, sentences

DOCUMENT = Path(__file__).parents[4] / "docs/quality.md"
SPLITS: list[Split] = ["dev", "test"]


def test_splits_share_no_sentence_and_no_name() -> None:
    dev, test = sentences("dev"), sentences("test")
    assert len(dev) == len(test) == 150
    assert len({one.domain for one in dev}) == len({one.domain for one in test}) == 10
    assert not {one.text for one in dev} & {one.text for one in test}
    assert not {label.name for one in dev for label in one.labels} & {
        label.name for one in test for label in one.labels
    }


@pytest.mark.parametrize("split", SPLITS)
def test_accuracy_reaches_the_targets(split: Split) -> None:
    extraction, resolution = score_extraction(sentences(split)), score_resolution(pairs(split))
    assert extraction.names.f1 >= 0.85
    assert extraction.type_accuracy >= 0.85
    assert extraction.links.precision >= 0.80
    assert resolution.same.precision >= 0.97
    assert resolution.same.recall >= 0.75


def test_figures_of_the_documentation() -> None:
    """Fails where a change of the rules changes a figure; renew the tables with ``python -m benches.entities``."""
    extraction, resolution = score_extraction(sentences("test")), score_resolution(pairs("test"))
    assert counts(extraction.names) == (343, 3, 5)
    assert extraction.typed == 323
    assert counts(extraction.links) == (127, 5, 35)
    assert counts(resolution.same) == (48, 1, 2)
    text = DOCUMENT.read_text(encoding="utf-8")
    for figure in (extraction.names.f1, extraction.type_accuracy, extraction.links.precision, extraction.links.recall):
        assert f"{figure:.3f}".removeprefix("0") in text


def counts(score: Counts) -> tuple[int, int, int]:
    return score.right, score.wrong, score.missed
