"""Turns inside one memory: a transcript of several speakers, each named at the start of a line."""

from __future__ import annotations

import re
from typing import NamedTuple

from astrocyte.pipelines.text.speakers import LEAST, labels

LINE = re.compile(r"^(?=[^\n])", re.MULTILINE)


class SpokenTurn(NamedTuple):
    """A part of a text and who says it; None for a part that nobody says."""

    text: str
    speaker: str | None = None


def spoken_turns(text: str) -> list[SpokenTurn]:
    """The turns of a text, without the labels before them; a text without at least two labels is one turn."""
    if "\n" not in text:
        return [SpokenTurn(text)]
    found = sorted(labels(text, [line.start() for line in LINE.finditer(text)]).items())
    if len(found) < LEAST:
        return [SpokenTurn(text)]
    turns = [SpokenTurn(text[: found[0][0]].strip())]
    for (_, label), end in zip(found, [*(start for start, _ in found[1:]), len(text)], strict=True):
        turns.append(SpokenTurn(text[label.end : end].strip(), label.name))
    return [turn for turn in turns if turn.text]
