"""Citations out of a model's answer: ``[2]`` and ``[1, 3]`` become spans, and leave the text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from astrocyte.core import split_sentences
from astrocyte.model import Citation, MemoryHit

# What the model says where the memories hold no answer; its own kind of marker.
NO_ANSWER = "[none]"
MARKER = re.compile(r"\[\s*(?:none|\d+(?:\s*[,;]\s*\d+)*)\s*\]", re.IGNORECASE)
# The beginning of what may become a marker, with the space before it, at the end of a text.
BEGUN = re.compile(r"\s*(?:\[[\s\dnone,;]{0,40})?\Z", re.IGNORECASE)
NUMBER = re.compile(r"\d+")


@dataclass(slots=True)
class CitedText:
    """A text that arrives in pieces, with its markers taken out.

    Attributes:
        text: What has been let through so far.
        marks: Where a marker stood in ``text``, and the numbers in it.
        nothing: Whether the model said that there is no answer.
    """

    text: str = ""
    marks: list[tuple[int, tuple[int, ...]]] = field(default_factory=list)
    nothing: bool = False
    _held: str = ""

    def take(self, piece: str) -> str:
        """The text that can be shown now; what may become a marker is held back."""
        self._held += piece
        begun = BEGUN.search(self._held)
        ready = self._held[: begun.start()] if begun else self._held
        self._held = self._held[len(ready) :]
        # A whole marker may be in there; the start of one never is.
        return self._let(ready)

    def end(self) -> str:
        """The rest."""
        rest, self._held = self._held, ""
        return self._let(rest).rstrip()

    def _let(self, text: str) -> str:
        shown = ""
        start = 0
        for marker in MARKER.finditer(text):
            # A space before a marker belongs to the marker.
            shown += self._unled(text[start : marker.start()].rstrip(), shown)
            numbers = tuple(int(number) for number in NUMBER.findall(marker.group()))
            self.nothing = self.nothing or not numbers
            self.marks.append((len(self.text) + len(shown), numbers))
            start = marker.end()
        shown += self._unled(text[start:], shown)
        self.text += shown
        return shown

    def _unled(self, text: str, shown: str) -> str:
        """The text without space before it, where nothing stands before it."""
        return text if self.text or shown else text.lstrip()

    def citations(self, memories: Sequence[MemoryHit]) -> tuple[Citation, ...]:
        """The citations of each sentence; numbers that name no memory are dropped."""
        text = self.text
        ends = list(accumulate(map(len, split_sentences(text, every_stop=True))))
        found: list[Citation] = []
        last = 0
        for at, numbers in self.marks:
            end = len(text[: min(at, len(text))].rstrip())
            start = max([boundary for boundary in (0, *ends) if boundary < end], default=0)
            if found and last < end:
                start = max(start, last)
            elif found and last == end:
                start = found[-1].start
            start += len(text[start:end]) - len(text[start:end].lstrip())
            known = [number for number in numbers if 1 <= number <= len(memories)]
            found += [Citation(start, end, memories[number - 1].memory_id or "") for number in known]
            last = end if known else last
        return tuple(dict.fromkeys(found))
