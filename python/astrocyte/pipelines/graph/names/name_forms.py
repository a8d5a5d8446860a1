"""Normal forms of names for comparison: words without titles, accents and scripts."""

from __future__ import annotations

import re
from typing import NamedTuple

from anyascii import anyascii

from astrocyte.pipelines.graph.names.gazetteers import fold, spelling_table
from astrocyte.pipelines.graph.names.type_words import HONORIFICS

WORDS = re.compile(r"[^\W_]+(?:['\u2019][^\W_]+)*\.?")
DOTTED = re.compile(r"(?<=\b\w)\.(?=\w\b)")
INITIALS = re.compile(r"\b(?:[^\W\d_]\.){2,5}")
CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
# "Smith, Alice".
INVERTED = re.compile(r"([^\W\d_][^,]{0,60}), ([^\W\d_][^,]{0,60})")
GENERATIONS = frozenset({"jr", "sr", "ii", "iii", "iv", "junior", "senior"})
# Spellings of one sound that languages and transliterations exchange.
SOUNDS = {
    "tsch": "ch", "sch": "sh", "tch": "ch", "ph": "f", "ck": "k", "ks": "x", "ae": "a", "oe": "o", "ue": "u",
    "ou": "u", "dj": "j", "yo": "io", "iy": "i", "ij": "i", "ii": "i", "y": "i", "'": "",
}  # fmt: skip
SPELLINGS = re.compile("|".join(SOUNDS))
DOUBLED = re.compile(r"(.)\1")
SMALL = frozenset(
    {"of", "the", "and", "for", "de", "la", "du", "des", "del", "von", "und", "y", "et", "da", "do", "dos"}
)
# Letters of a name as other keyboards write them.
WRITTEN_OUT = str.maketrans(
    {"ä": "a", "ö": "o", "ü": "u", "Ä": "A", "Ö": "O", "Ü": "U", "ø": "o", "Ø": "O", "å": "a", "æ": "a", "Æ": "A"}
)


class NameForm(NamedTuple):
    """A name as it is compared.

    Attributes:
        words: In Latin letters, lower case, without accents, titles and generation.
        sounds: The same words with one spelling for each sound, and with the first of several spellings of a name.
        generation: ``jr``, ``sr``, ``ii``…; "" for none.
        romanised: True if the name is written in another script.
        handle: True for ``@alice_smith``.
    """

    words: tuple[str, ...]
    sounds: tuple[str, ...]
    generation: str
    romanised: bool
    handle: bool

    @property
    def compact(self) -> str:
        """All words without blanks."""
        return "".join(self.words)

    @property
    def initials(self) -> str:
        """First letters of the words, without small words."""
        return "".join(word[0] for word in self.words if word not in SMALL)


def name_form(name: str) -> NameForm:
    """The form of a name."""
    handle = name.startswith("@")
    inverted = INVERTED.fullmatch(name)
    if inverted is not None and fold(inverted[2]).rstrip(".") not in GENERATIONS | {"inc", "ltd", "llc"}:
        name = f"{inverted[2]} {inverted[1]}"
    name = CAMEL.sub(" ", name) if handle else name
    name = INITIALS.sub(lambda found: found.group().replace(".", " "), name).replace("&", " and ")
    romanised = any(letter.isalpha() and ord(letter) > LAST_LATIN for letter in name)
    latin = name if name.isascii() else anyascii(name.translate(WRITTEN_OUT))
    words = [word.rstrip(".").lower().replace("\u2019", "'") for word in WORDS.findall(latin)]
    while len(words) > 1 and words[0] in HONORIFICS:
        words.pop(0)
    generation = words.pop() if len(words) > 1 and words[-1] in GENERATIONS else ""
    sounds = tuple(map(sound, words))
    return NameForm(tuple(words), sounds, generation.replace("junior", "jr").replace("senior", "sr"), romanised, handle)


# Last code point of the Latin blocks.
LAST_LATIN = 0x024F


def sound(word: str) -> str:
    """A word with one spelling for each sound."""
    word = spelling_table().get(word, word)
    word = SPELLINGS.sub(lambda found: SOUNDS[found.group()], word)
    return DOUBLED.sub(r"\1", word)
