"""Cutting a long content into chunks of bounded token count, at the boundaries of its kind."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

CountTokens = Callable[[Sequence[str]], list[int]]

# White space after a full stop, the stops of scripts without spaces, and line ends.
SENTENCE_END = re.compile(r"(?<=[.!?\u2026])[\"'\u201d\u2019)\]]*\s+|(?<=[\u3002\uff01\uff1f\uff61])|\n+")
PARAGRAPH_END = re.compile(r"\n[ \t]*\n\s*")
# "Name:" at the start of a line; names of up to four words.
TURN = re.compile(r"(?m)^(?=[^\W\d_][\w.'\u2019-]*(?: [\w.'\u2019-]+){0,3}:(?:[ \t]|$))")
SPEAKER = re.compile(r"[^:\n]{1,80}:[ \t]*")
# A word with the space before it, which is how tokens fall. Longer ones are cut: text without spaces, or data.
WORD = re.compile(r"\s*\S{1,32}(?:\s+$)?")


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of a content, with its own token count."""

    text: str
    tokens: int


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
    cutter = _Cutter(size, overlap, count_tokens)
    match strategy:
        case "paragraph":
            pieces = cutter.paragraphs(content)
        case "dialogue":
            pieces = cutter.turns(content)
        case "fixed":
            pieces = cutter.windows(content)
        case _:
            pieces = cutter.sentences(content, size)
    texts = [text for piece in pieces if (text := piece.strip())]
    return [Chunk(text, tokens) for text, tokens in zip(texts, count_tokens(texts), strict=True)]


def cut_at(text: str, boundary: re.Pattern[str]) -> list[str]:
    """Pieces that end at each boundary, so that joining them gives the text again.

    White space goes to the piece that follows, since that is how tokens fall: their counts then add up.
    """
    pieces, start = [], 0
    for match in boundary.finditer(text):
        end = match.start() + len(match.group().rstrip())
        if end > start:
            pieces.append(text[start:end])
            start = end
    if start < len(text):
        pieces.append(text[start:])
    return pieces


class _Cutter:
    def __init__(self, size: int, overlap: int, count_tokens: CountTokens) -> None:
        self._size = size
        self._overlap = overlap
        self._count = count_tokens

    def paragraphs(self, text: str) -> list[str]:
        return self._merge(self._fit(cut_at(text, PARAGRAPH_END), self._size, self._small_sentences), self._size)

    def turns(self, text: str) -> list[str]:
        turns = cut_at(text, TURN)
        pieces: list[tuple[str, int]] = []
        for turn, tokens in zip(turns, self._count(turns), strict=True):
            if tokens <= self._size:
                pieces.append((turn, tokens))
            else:
                pieces.extend(self._long_turn(turn))
        return self._merge(pieces, self._size)

    def windows(self, text: str) -> list[str]:
        words = WORD.findall(text)
        counts = self._count(words)
        pieces, start = [], 0
        while start < len(words):
            end, total = start, 0
            while end < len(words) and (end == start or total + counts[end] <= self._size):
                total += counts[end]
                end += 1
            pieces.append("".join(words[start:end]))
            if end == len(words):
                break
            back, shared = end, 0
            while back - 1 > start and shared + counts[back - 1] <= self._overlap:
                back -= 1
                shared += counts[back]
            start = back
        return pieces

    def sentences(self, text: str, size: int) -> list[str]:
        return self._merge(self._fit(cut_at(text, SENTENCE_END), size, self._words), size)

    def _small_sentences(self, text: str, size: int) -> list[tuple[str, int]]:
        return list(self._fit(cut_at(text, SENTENCE_END), size, self._words))

    def _words(self, text: str, _size: int) -> list[tuple[str, int]]:
        words = WORD.findall(text)
        return list(zip(words, self._count(words), strict=True))

    def _long_turn(self, turn: str) -> Iterator[tuple[str, int]]:
        match = SPEAKER.match(turn)
        prefix = match.group() if match and TURN.match(turn) else ""
        room = max(1, self._size - self._count([prefix])[0]) if prefix else self._size
        parts = [part.strip() for part in self.sentences(turn[len(prefix) :], room)]
        pieces = [f"{prefix}{part}\n" for part in parts if part]
        yield from zip(pieces, self._count(pieces), strict=True)

    def _fit(
        self, units: list[str], size: int, finer: Callable[[str, int], list[tuple[str, int]]]
    ) -> Iterator[tuple[str, int]]:
        """The units with their token counts, those above ``size`` replaced by finer ones."""
        for unit, tokens in zip(units, self._count(units), strict=True):
            if tokens <= size:
                yield unit, tokens
            else:
                yield from finer(unit, size)

    @staticmethod
    def _merge(units: Iterator[tuple[str, int]] | list[tuple[str, int]], size: int) -> list[str]:
        """Neighbours joined while their counts stay within ``size``."""
        pieces: list[str] = []
        current: list[str] = []
        total = 0
        for unit, tokens in units:
            if current and total + tokens > size:
                pieces.append("".join(current))
                current, total = [], 0
            current.append(unit)
            total += tokens
        if current:
            pieces.append("".join(current))
        return pieces
