"""Lookup of canonical terms, in the order of certainty: name, alias, word stems, similar spelling."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from difflib import SequenceMatcher
from itertools import chain, dropwhile

from astrocyte.core import stemmed_words
from astrocyte.model import Term, TermLookup, TermMatch

# Words are runs of letters and digits: ``atlas_agent_email`` has three.
_WORD = re.compile(r"[^\W_]+")
_DIGITS = re.compile(r"\d+")
_GRAM = 3
# Words of a query in which terms are looked for. A longer text is a passage, which has no topic of its own.
MOST_QUERY_WORDS = 64
# Spellings that are compared exactly, of those that share the most trigrams.
MOST_COMPARED = 8
NOTHING = TermLookup(found=False)


def name_key(text: str) -> str:
    """A text without regard to case, width and punctuation; "" where it has neither letters nor digits."""
    return " ".join(_WORD.findall(unicodedata.normalize("NFKC", text).casefold()))


class Vocabulary:
    """The approved terms of a tenant, indexed for `lookup`. An earlier term wins where two have the same name.

    Args:
        terms: Approved terms, with the names of merged terms among their aliases.
        similarity: Smallest ratio of matching characters of a match by spelling (Ratcliff and Metzener 1988), 0 to 1.
    """

    def __init__(self, terms: Iterable[Term], similarity: float) -> None:
        self._similarity = similarity
        self._names: dict[str, Term] = {}
        self._aliases: dict[str, Term] = {}
        self._stems: dict[tuple[str, ...], Term] = {}
        self._spellings: list[tuple[str, Term]] = []
        self._grams: dict[str, list[int]] = {}
        # Words of the longest name.
        self._longest = 0
        for term in terms:
            self._add(term.name, term, self._names)
            for alias in term.aliases:
                self._add(alias, term, self._aliases)

    def lookup(self, text: str) -> TermLookup:
        """The term of a text as a whole, or of the text without the stop words at its start, as in "the deploy window".

        Names, aliases and stems are tried for both before the spelling of either.
        """
        key = name_key(text)
        if not key:
            return NOTHING
        keys = dict.fromkeys((key, _without_leading_stop_words(key)))
        for one in keys:
            found = self._by_words(one, _stems(one))
            if found.found:
                return found
        # The text with fewer words that no name has.
        return self._by_spelling([*keys][-1])

    def lookup_query(self, query: str) -> TermLookup:
        """The term of a query: of the whole text as `lookup` finds it, else of a part of it, by name, alias or stems.

        Of several parts the one with the most words counts, and of those the first. A part that is only stop words is
        no term. Texts of more than `MOST_QUERY_WORDS` words are looked up as a whole only.
        """
        if not self._spellings:
            return NOTHING
        whole = self.lookup(query)
        words = name_key(query).split()
        if whole.found or len(words) > MOST_QUERY_WORDS:
            return whole
        analysed = [stemmed_words(word) for word in words]
        stems = [tuple(stem or word for word, stem in one) for one in analysed]
        stop = [all(stem is None for _, stem in one) for one in analysed]
        for size in range(min(self._longest, len(words)), 0, -1):
            for start in range(len(words) - size + 1):
                part = slice(start, start + size)
                if all(stop[part]):
                    continue
                found = self._by_words(" ".join(words[part]), tuple(chain.from_iterable(stems[part])))
                if found.found:
                    return found
        return NOTHING

    def _by_words(self, key: str, stems: tuple[str, ...]) -> TermLookup:
        for term, match in (
            (self._names.get(key), TermMatch.NAME),
            (self._aliases.get(key), TermMatch.ALIAS),
            (self._stems.get(stems), TermMatch.STEM),
        ):
            if term is not None:
                return TermLookup(found=True, term=term, match=match, similarity=1.0)
        return NOTHING

    def _add(self, name: str, term: Term, table: dict[str, Term]) -> None:
        key = name_key(name)
        if not key:
            return
        table.setdefault(key, term)
        self._longest = max(self._longest, key.count(" ") + 1)
        self._stems.setdefault(_stems(key), term)
        for gram in _grams(key):
            self._grams.setdefault(gram, []).append(len(self._spellings))
        self._spellings.append((key, term))

    def _by_spelling(self, key: str) -> TermLookup:
        shared = Counter(place for gram in _grams(key) for place in self._grams.get(gram, ()))
        best, found = self._similarity, NOTHING
        for place, _ in shared.most_common(MOST_COMPARED):
            spelling, term = self._spellings[place]
            # Numbers tell names apart that are spelt alike: ADR-5 is not ADR-6.
            if _DIGITS.findall(spelling) != _DIGITS.findall(key):
                continue
            ratio = SequenceMatcher(None, key, spelling, autojunk=False).ratio()
            if ratio > best or (ratio == best and not found.found):
                best = ratio
                found = TermLookup(found=True, term=term, match=TermMatch.SPELLING, similarity=ratio)
        return found


def _without_leading_stop_words(key: str) -> str:
    """The rest of a key; all of it where it is only stop words."""
    words = key.split()
    rest = [*dropwhile(_is_stop_word, words)]
    return " ".join(rest or words)


def _is_stop_word(word: str) -> bool:
    return all(stem is None for _, stem in stemmed_words(word))


def _stems(key: str) -> tuple[str, ...]:
    return tuple(stem or word for word, stem in stemmed_words(key))


def _grams(key: str) -> set[str]:
    padded = f" {key} "
    return {padded[place : place + _GRAM] for place in range(len(padded) - _GRAM + 1)}
