"""A content as blocks: turns, paragraphs and tables, each under its heading."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from astrocyte.pipelines.text.headings import Path, fences, heading_end, is_rule, is_section, table
from astrocyte.pipelines.text.speaker_patterns import DASH
from astrocyte.pipelines.text.speakers import RECORDS, UNSAID, Label, labels

# The times of a cue of WebVTT or SubRip, with the cue's number or name on the line before.
CUE = re.compile(r"(?:[^\n]{1,80}\n)?(?:\d{1,3}:)?\d{1,2}:\d{2}[.,]\d{1,3}[ \t]*-->[^\n]*\n?")
# What a transcript puts in brackets on a line: a noise, a gesture.
ASIDE = re.compile(r"[ \t]*(?:\([^()\n]{1,80}\)|\[[^\[\]\n]{1,80}\]|\*[^*\n]{1,80}\*)[ \t]*$", re.MULTILINE)


@dataclass(slots=True)
class Block:
    """A part of a content that is kept together where it fits.

    Args:
        text: The part, with the white space before it.
        begin: What stands before it in a chunk that begins with it: the headings of its section, but for those in the
            text.
        rest: What stands before a later piece of it in a chunk that begins with that: headings, speaker, table header.
        header: Characters of the text up to the end of a table's header; 0 where it is no table.
        apart: Whether no chunk holds this and what is before it.
    """

    text: str
    begin: str
    rest: str
    header: int = 0
    apart: bool = False


class _Start(NamedTuple):
    """Where a block begins, and what is known of it."""

    at: int
    # Names the speaker; and whether the turn has begun before.
    lead: str = ""
    continues: bool = False
    # The place up to which it is read, and whether it ends there.
    end: int = 0
    closed: bool = False
    is_heading: bool = False
    header_end: int = 0
    apart: bool = False


def blocks(content: str, *, dialogue: bool) -> list[Block]:
    """The blocks of a content, in order; their texts joined are the content.

    A heading belongs to the block that follows it.

    Args:
        content: Text with line feeds for line ends.
        dialogue: Whether lines that name a speaker begin a turn. A turn ends where the next begins, at a heading, at a
            rule, and, but in exports of chats, at a paragraph without a name.
    """
    return _joined(content, list(_Reader(content, dialogue=dialogue).starts()))


class _Reader:
    """Reads a content line by line."""

    def __init__(self, content: str, *, dialogue: bool) -> None:
        self._text = content
        self._dialogue = dialogue
        self._fences = dict(fences(content))
        self._labels = labels(content, list(self._places())) if dialogue else {}

    def starts(self) -> Iterator[_Start]:
        """Where blocks begin."""
        text, at = self._text, 0
        blank = closed = True
        turn: Label | None = None
        while at < len(text):
            end = self._line_end(at)
            if text[at:end].isspace():
                blank, at = True, end
                continue
            read = self._fences.get(at, at)
            start, turn = self._start(at, turn, blank=blank)
            if start is None and closed:
                start = _Start(at, turn.lead if turn else "", turn is not None)
            if start is not None:
                yield start
                read = max(read, start.end)
            # A heading and a table end with their last line.
            blank = closed = start is not None and start.closed
            at = self._line_end(max(at, read - 1))

    def _start(self, at: int, turn: Label | None, *, blank: bool) -> tuple[_Start | None, Label | None]:
        """The block that begins on a line, None where the one before goes on; and whose turn the line is."""
        text = self._text
        label, end = self._label(at)
        if end > at:
            return self._turn(at, label, end), label
        if (end := heading_end(text, at, after_blank=blank) or at) > at:
            return _Start(at, end=end, closed=True, is_heading=True, apart=turn is not None), None
        apart = False
        if turn is not None and self._ends_turn(at, turn, blank=blank):
            turn, apart, blank = None, ASIDE.match(text, at) is None, True
        if (found := table(text, at, after_blank=blank)) is not None:
            lead = turn.lead if turn else ""
            continues = turn is not None
            return _Start(at, lead, continues, found.end, closed=True, header_end=found.header_end, apart=apart), turn
        if apart:
            return _Start(at, apart=True), None
        return (_Start(at) if blank and turn is None else None), turn

    def _turn(self, at: int, label: Label | None, end: int) -> _Start:
        """The turn that begins on a line; a table right behind the label has the label in its header."""
        cell = end
        while self._text.startswith((" ", "\t"), cell):
            cell += 1
        if self._text.startswith(("|", "+-"), cell) and self._line_end(end) not in self._labels:
            found = table(self._text, cell, after_blank=False)
            if found is not None:
                return _Start(at, end=found.end, closed=True, header_end=found.header_end)
        return _Start(at, label.lead if label else "", end=end)

    def _ends_turn(self, at: int, turn: Label, *, blank: bool) -> bool:
        """True if a line without a name does not belong to the speaker."""
        unsaid = UNSAID.get(turn.form)
        if is_rule(self._text, at) or (unsaid is not None and unsaid.match(self._text, at)):
            return True
        return turn.form not in RECORDS and (blank or is_section(self._text, at))

    def _label(self, at: int) -> tuple[Label | None, int]:
        """The label of the turn or cue that begins on a line, and the place behind it, or behind the times of a cue."""
        if (label := self._labels.get(at)) is not None:
            return label, label.end
        if self._dialogue and (cue := CUE.match(self._text, at)):
            said = self._labels.get(self._said(cue.end()))
            return said, max(cue.end(), said.end if said else 0)
        return None, at

    def _places(self) -> Iterator[int]:
        """The places where a label may be."""
        text, at = self._text, 0
        while at < len(text):
            if at in self._fences:
                at = self._line_end(self._fences[at])
                continue
            if (cue := CUE.match(text, at)) is not None:
                at = cue.end()
                yield self._said(at)
            else:
                yield at
            at = self._line_end(at)

    def _said(self, at: int) -> int:
        """The place behind the dash of a subtitle."""
        dash = DASH.match(self._text, at)
        return dash.end() if dash else at

    def _line_end(self, at: int) -> int:
        end = self._text.find("\n", at)
        return end + 1 if end >= 0 else len(self._text)


def _joined(content: str, starts: list[_Start]) -> list[Block]:
    """Blocks of what begins at these places, each with the white space before it, a heading with what follows it."""
    made: list[Block] = []
    path = Path()
    begin, cut, apart = "", 0, False
    for number, start in enumerate(starts, 1):
        is_last = number == len(starts)
        end = len(content) if is_last else _end_before(content, starts[number].at)
        apart = apart or start.apart
        if start.is_heading:
            path.enter(content[start.at : end].strip())
            begin = path.above
            if not is_last:
                continue
        header = f"{content[start.at : start.header_end].rstrip()}\n" if start.header_end else ""
        made.append(
            Block(
                content[cut:end],
                f"{begin}{start.lead}" if start.continues else begin,
                f"{path.whole}{start.lead}{header}",
                max(0, start.header_end - cut),
                apart=apart,
            )
        )
        path.leave()
        begin, cut, apart = path.whole, end, False
    return made


def _end_before(content: str, at: int) -> int:
    """The place behind the last character before ``at`` that is no white space."""
    while at and content[at - 1].isspace():
        at -= 1
    return at
