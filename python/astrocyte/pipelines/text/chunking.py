"""Cutting a long content into chunks of bounded token count, at the boundaries of its kind.

A chunk that begins inside a section, a turn or a table says so: it repeats the heading, the speaker or the header.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from astrocyte.core import split_sentences, split_words
from astrocyte.pipelines.text.blocks import Block, blocks

CountTokens = Callable[[Sequence[str]], list[int]]

# Longer runs without white space are cut: text of scripts without spaces, or data.
WORD_CHARS = 32
# A heading, or the header of a table, that takes more of a chunk than this is not repeated.
LEAD_SHARE = 0.5


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of a content, with its own token count."""

    text: str
    tokens: int


@dataclass(slots=True)
class _Unit:
    """A text that is not cut further, with the text before it in a chunk that begins with it."""

    text: str
    tokens: int
    lead: str = ""
    apart: bool = False


def split(content: str, strategy: str, *, size: int, overlap: int, count_tokens: CountTokens) -> list[Chunk]:
    """Pieces in order, each of about ``size`` tokens at the most.

    Args:
        content: Normalised text of more than ``size`` tokens.
        strategy: ``sentence`` merges sentences while they fit; ``paragraph`` merges paragraphs, and cuts one that is
            too long by sentence; ``dialogue`` merges turns, and cuts one that is too long by sentence, with its
            speaker repeated; ``fixed`` cuts windows of words that share ``overlap`` tokens.
        size: Tokens.
        overlap: Tokens; used by ``fixed`` alone.
        count_tokens: Token counts of many texts in one call.

    Returns:
        Chunks whose texts are not blank. A unit that no boundary can cut further may stay above ``size``.
    """
    if strategy == "fixed":
        pieces = _windows(content, size, overlap, count_tokens)
    else:
        pieces = _Cutter(strategy, size, count_tokens).pieces(content)
    texts = [text for piece in pieces if (text := piece.strip())]
    return [Chunk(text, tokens) for text, tokens in zip(texts, count_tokens(texts), strict=True)]


class _Cutter:
    def __init__(self, strategy: str, size: int, count_tokens: CountTokens) -> None:
        self._strategy = strategy
        self._size = size
        self._count = count_tokens
        self._leads: dict[str, int] = {"": 0}

    def pieces(self, content: str) -> list[str]:
        """Texts of chunks."""
        found = blocks(content, dialogue=self._strategy == "dialogue")
        counts = self._count([block.text for block in found])
        units = [unit for block, tokens in zip(found, counts, strict=True) for unit in self._units(block, tokens)]
        return self._merged(units)

    def _units(self, block: Block, tokens: int) -> list[_Unit]:
        """A block that fits as one unit, or its sentences."""
        begin, rest = self._lead(block.begin), self._lead(block.rest)
        room = self._size - self._leads[begin]
        whole = tokens <= room and (self._strategy != "sentence" or block.header > 0)
        if whole:
            return [_Unit(block.text, tokens, begin, block.apart)]
        room = max(1, self._size - max(self._leads[begin], self._leads[rest]))
        texts = _rows(block) if block.header else split_sentences(block.text)
        units = [_Unit(text, count, rest) for text, count in self._fitted(texts, room)]
        units[0].lead, units[0].apart = begin, block.apart
        return units

    def _lead(self, lead: str) -> str:
        """The repeated lead of a chunk; where that is too much, without outer headings, or only its last line."""
        parts = lead.split("\n\n")
        shorter = ("\n\n".join(parts[place:]) for place in range(1, len(parts)))
        for shown in (lead, *shorter, lead.rpartition("\n")[2], ""):
            if shown not in self._leads:
                self._leads[shown] = self._count([shown])[0]
            if self._leads[shown] <= self._size * LEAD_SHARE:
                return shown
        return ""

    def _fitted(self, texts: Sequence[str], room: int) -> Iterable[tuple[str, int]]:
        """Texts with their tokens; those beyond ``room`` by every stop, then by word."""
        for text, tokens in zip(texts, self._count(texts), strict=True):
            if tokens <= room:
                yield text, tokens
                continue
            parts = split_sentences(text, every_stop=True)
            for part, count in zip(parts, self._count(parts), strict=True):
                if count <= room:
                    yield part, count
                else:
                    words = split_words(part, WORD_CHARS)
                    yield from zip(words, self._count(words), strict=True)

    def _merged(self, units: Iterable[_Unit]) -> list[str]:
        """Neighbours joined while their counts stay within the size."""
        pieces: list[str] = []
        current: list[str] = []
        total = 0
        for unit in units:
            if current and (unit.apart or total + unit.tokens > self._size):
                pieces.append("".join(current))
                current, total = [], 0
            if not current and unit.lead and pieces:
                current, total = [unit.lead, unit.text.lstrip()], self._leads[unit.lead] + unit.tokens
            else:
                current.append(unit.text)
                total += unit.tokens
        if current:
            pieces.append("".join(current))
        return pieces


def _rows(block: Block) -> list[str]:
    """The header of a table with what stands before it, then each row with the line end before it."""
    lines = block.text[block.header :].split("\n")
    rows = [f"\n{line}" for line in lines[1:]]
    return [f"{block.text[: block.header]}{lines[0]}", *rows]


def _windows(text: str, size: int, overlap: int, count_tokens: CountTokens) -> list[str]:
    """Windows of words that share ``overlap`` tokens."""
    words = split_words(text, WORD_CHARS)
    counts = count_tokens(words)
    pieces, start = [], 0
    while start < len(words):
        end, total = start, 0
        while end < len(words) and (end == start or total + counts[end] <= size):
            total += counts[end]
            end += 1
        pieces.append("".join(words[start:end]))
        if end == len(words):
            break
        back, shared = end, 0
        while back - 1 > start and shared + counts[back - 1] <= overlap:
            back -= 1
            shared += counts[back]
        start = back
    return pieces
