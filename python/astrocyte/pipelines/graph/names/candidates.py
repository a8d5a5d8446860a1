"""Places of a text where capitalised words stand together, as candidates for names."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from astrocyte.pipelines.graph.names.gazetteers import Gazetteers, fold, gazetteers
from astrocyte.pipelines.graph.names.runs import KEPT_POSSESSIVES, LINKS, POSSESSIVE, RUN, Word, parts
from astrocyte.pipelines.graph.names.type_words import (
    AFTER,
    HEADS,
    HONORIFICS,
    LEGAL_FORMS,
    NAMES_TOO,
    NEVER,
    NOUNS,
    OPENERS,
)

# After a word that opens a sentence and is a name.
ACTS = re.compile(
    r"['\u2019]s (?:[a-z]+ )?(?:sister|brother|mother|father|mom|mum|dad|son|daughter|wife|husband|friend|boss|team"
    r"|company|office|house|birthday|cousin|aunt|uncle|CEO|app|founder)\b|: |,? and [A-Z]"
    r"|,? (?:is|was|are) (?:based|headquartered|founded|acquired|bought|a subsidiary|owned)\b"
)
NEXT_WORD = re.compile(r" ([a-z]+)")
# Before a word of the same sentence, beside letters and digits.
INSIDE = ",'\u2019&/)$%+-\u2013@#_"
CONTRACTION = re.compile(r"['\u2019](?:ve|s|re|ll|d|m|t)$")
# Compounds with a name: "Berlin-based".
COMPOUND = re.compile(
    r"-(?:inspired|related|based|style|like|themed|level|wide|born|made|led|only|free|owned|friendly|shaped|powered"
    r"|trained|native|specific|obsessed|loving|esque|ish|era|bound|educated|compatible)$"
)
# Longer words in capitals are emphasis.
LONGEST_ACRONYM = 5
SENTENCE_END = re.compile(r"[.!?](?=\s|$)|\n")
LONGEST = 80
# Taken from the beginning of a name that opens a sentence, and of others.
_OPENING = OPENERS | HONORIFICS
_INSIDE = NEVER | HONORIFICS


class Candidate(NamedTuple):
    """Words that may be a name.

    Attributes:
        words: The words, without title and possessive.
        folded: The same words without case and accents.
        start: First character in the text.
        end: The character after the last.
        title: The honorific before it, folded; "" for none.
        sure: False for a word that is capitalised perhaps only because it opens a sentence.
    """

    words: tuple[str, ...]
    folded: tuple[str, ...]
    start: int
    end: int
    title: str
    sure: bool

    @property
    def key(self) -> str:
        """The folded words together."""
        return " ".join(self.folded)


def candidates(text: str) -> Iterator[Candidate]:
    """The candidates of a text, in order."""
    lists = gazetteers()
    for run in RUN.finditer(text):
        opens = _opens(text, run.start())
        for number, part in enumerate(parts(run, lists)):
            found = _candidate(text, part, opens=opens and number == 0, lists=lists)
            if found is not None:
                yield found


def _opens(text: str, start: int) -> bool:
    """True if a sentence, a quotation or a line begins here, or something else than words precedes."""
    place = start - 1
    while place >= 0 and text[place] in " \u00a0":
        place -= 1
    return place < 0 or not (text[place].isalnum() or text[place] in INSIDE)


def _candidate(text: str, words: list[Word], *, opens: bool, lists: Gazetteers) -> Candidate | None:
    first = words[0]
    title = _strip(text, words, opens=opens, lists=lists)
    if not words:
        return None
    name = words[-1].text
    if words[-1].folded not in KEPT_POSSESSIVES:
        name = COMPOUND.sub("", POSSESSIVE.sub("", name))
    if name.endswith(".") and not _keeps_stop(name, text[words[-1].start + len(name) :][:2]):
        name = name[:-1]
    start, end = words[0].start, words[-1].start + len(name)
    texts = (*(word.text for word in words[:-1]), name)
    if not 1 < end - start <= LONGEST or not _has_letter(texts):
        return None
    if len(words) == 1 and not title and _is_emphasis(text, name, start, end, lists):
        return None
    sure = not opens or first is not words[0] or len(words) > 1 or _known(texts[0], text, end, lists)
    folded = (*(word.folded for word in words[:-1]), fold(name))
    return Candidate(texts, folded, start, end, title, sure)


def _strip(text: str, words: list[Word], *, opens: bool, lists: Gazetteers) -> str:
    """Remove words that are no part of the name from both ends; return the title among them, or ""."""
    while words and (words[-1].folded in LINKS or words[-1].folded == "the"):
        words.pop()
    title = ""
    opening = opens
    if opens and len(words) > 1 and _interjection(text, words, lists):
        words.pop(0)
    while words and _stripped(text, words, opens=opening, lists=lists):
        word = words.pop(0).folded.rstrip(".")
        if word in HONORIFICS and words and not words[0].folded.isdigit():
            title = title or word
        opening = opening and word not in HONORIFICS
    while len(words) > 1 and words[-1].folded in NEVER and words[-1].folded not in HEADS:
        words.pop()
    return title


def _interjection(text: str, words: list[Word], lists: Gazetteers) -> bool:
    """True if an unknown word opens a sentence before a given name: "Awesome John"."""
    first, second = words[0].folded, POSSESSIVE.sub("", words[1].folded)
    if first in lists.given or first in lists.family or first in HEADS or words[0].text.isupper() or "-" in first:
        return False
    called = text[words[1].start + len(words[1].text) :][:1] in {",", "!"}
    return first.endswith(("ly", "ing")) or (second in lists.given and (called or second not in lists.family))


def _stripped(text: str, words: list[Word], *, opens: bool, lists: Gazetteers) -> bool:
    """True if the first word is no part of the name: a word that opens a sentence, or a title."""
    word = CONTRACTION.sub("", words[0].folded).rstrip(".")
    alone = len(words) == 1 and word not in lists.given
    if word not in (_OPENING if opens or alone else _INSIDE):
        return words[0].folded in LINKS and words[0].text.islower()
    if word in NAMES_TOO and _is_person(text, words, opens=opens, lists=lists):
        return False
    if len(words) > 1:
        following = words[1].folded
        if following == "of" and word in HONORIFICS:
            return False
        return not lists.holds(f"{word} {POSSESSIVE.sub('', following)}")
    return not (words[0].text.isupper() and len(word) > 1 and word not in NEVER and lists.holds(word))


def _is_person(text: str, words: list[Word], *, opens: bool, lists: Gazetteers) -> bool:
    """True if a function word is a given name: in "Will Smith left", but not in "Will Smith leave?"."""
    if len(words) == 1 or POSSESSIVE.sub("", words[1].folded) not in lists.family:
        return False
    end = SENTENCE_END.search(text, words[1].start)
    return not (opens and end is not None and end.group().startswith("?"))


def _keeps_stop(word: str, after: str) -> bool:
    """True if the full stop at the end of a name belongs to it, not to the sentence."""
    if word[:-1].count(".") > 0:
        return True
    folded = fold(word).rstrip(".")
    return (folded in LEGAL_FORMS or folded in {"jr", "sr", "bros"}) and after[1:2].islower() | after.startswith(",")


def _has_letter(words: tuple[str, ...]) -> bool:
    return any(len(word.rstrip(".")) > 1 and word[0].isalpha() for word in words)


def _is_emphasis(text: str, word: str, start: int, end: int, lists: Gazetteers) -> bool:
    """True for a word in capitals that is no acronym, and for a gerund."""
    folded = fold(word)
    if lists.holds(folded) or (folded in lists.given and not word.isupper()):
        return False
    if word.isupper() and word.isalpha():
        beside = text[end : end + 3].isupper() or text[max(0, start - 3) : start].strip().isupper()
        return len(word) > LONGEST_ACRONYM or beside or folded in OPENERS
    return folded.endswith("ing") and folded not in lists.family


def _known(word: str, text: str, end: int, lists: Gazetteers) -> bool:
    """True if a word that opens a sentence is a name in spite of its place."""
    folded = fold(word)
    if not word[1:].islower() and any(letter.isupper() for letter in word[1:]):
        return True
    following = NEXT_WORD.match(text, end)
    acts = (following is not None and following[1] in AFTER) or ACTS.match(text, end) is not None
    acts = acts and not folded.endswith(("ly", "ing")) and folded.removesuffix("s") not in NOUNS
    if folded in lists.words:
        return acts and folded in lists.given
    return acts or folded in lists.given or lists.holds(folded)
