"""Words that carry content, in one form whatever their ending, as keyword search compares them."""

from __future__ import annotations

from astrocyte.core import stemmed_words

# Say nothing of what a question is about, though a search may look for them.
LIGHT = frozenset(
    {
        "above",
        "against",
        "below",
        "between",
        "both",
        "else",
        "ever",
        "kind",
        "many",
        "may",
        "might",
        "much",
        "must",
        "now",
    }
    | {"often", "shall", "type", "upon", "whether", "whose", "yes", "yet"}
)


def analysed(text: str, most: int | None = None) -> tuple[list[str], list[str]]:
    """The first words of a text, or all, and the stems of those that carry content; in order, with repetitions."""
    pairs = stemmed_words(text)[:most]
    return [word for word, _ in pairs], [stem for word, stem in pairs if stem is not None and word not in LIGHT]


def content_words(text: str) -> list[str]:
    """Stems of the words that carry content, in order, with repetitions."""
    return analysed(text)[1]
