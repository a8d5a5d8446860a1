"""Headings, rules, fences and tables of plain text and its markups."""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass

from astrocyte.pipelines.text.speaker_labels import SECTIONS

MARKED = re.compile(
    r" {0,3}#{1,6}[ \t]+\S[^\n]{0,200}|={1,6}[ \t]?[^=\s][^=\n]{0,120}={0,6}[ \t]*$|<h[1-6]\b[^\n]{0,200}"
    r"|[ \t]*(?:\*\*|__)[^*_\n]{1,100}(?:\*\*|__):?[ \t]*$",
    re.MULTILINE,
)
UNDERLINED = re.compile(r"[^\n|]{1,100}\n(?:={3,}|-{3,}|~{3,})[ \t]*$", re.MULTILINE)
NUMBERED = re.compile(
    r"(?:\d{1,2}(?:\.\d{1,2}){0,3}[.)]?|[IVX]{1,5}\.|\u00a7 ?\d{1,3})[ \t]+\S[^\n]{0,78}$", re.MULTILINE
)
NAMED = re.compile(
    r"(?:\*\*|__)?(?P<name>[^\n:\uff1a*_]{1,40})(?P<colon>[ \u00a0]?[:\uff1a])(?:\*\*|__)?(?P<rest>[^\n]*)"
)
LINE = re.compile(r"[^\n]*")
# The signs, or the element, that say how deep a heading is, and the levels of the lines below one.
LEVEL = re.compile(r"(?P<sign>#{1,6}|={1,6})[ \t]*[^=\s]|<h(?P<html>[1-6])\b")
UNDERLINES = {"=": 1, "-": 2, "~": 3}
MARKUP = "markup"
BOLD = "bold"
ENDS_SENTENCE = re.compile(r"[.!?,;:\u2026\u3002\uff01\uff1f\u060c\u061f\u06d4\u0964]$")
# Longer lines, or of more words, are text.
CAPITAL_CHARS = 60
CAPITAL_WORDS = 8
LEAST_CAPITALS = 3
RULE = re.compile(r"[ \t]*([-*_=~\u2500\u2501])(?:[ \t]*\1){2,}[ \t]*$", re.MULTILINE)
FENCE = re.compile(r"^[ \t]*(`{3,}|~{3,})[ \t]*([^\n`]*)$", re.MULTILINE)
DELIMITER = re.compile(r"[ \t]*[|+]?[ \t]*:?[-=]+:?[ \t]*(?:[|+][ \t]*:?[-=]+:?[ \t]*)*[|+]?[ \t]*$")
# Rows from which on lines of equal columns are a table, and its least columns.
LEAST_ROWS = 4
LEAST_COLUMNS = 3
# Lines of a header: a frame, names, dashes.
MOST_HEADER_ROWS = 3


@dataclass(frozen=True, slots=True)
class Table:
    """A table: the place behind its header, and behind its last row."""

    header_end: int
    end: int


def heading_end(text: str, start: int, *, after_blank: bool) -> int | None:
    """The place behind the heading at the start of a line, without its line end; None where there is none."""
    if match := MARKED.match(text, start):
        return match.end()
    line = _line(text, start)
    if not after_blank or ENDS_SENTENCE.search(line.rstrip()):
        return None
    if match := UNDERLINED.match(text, start):
        return match.end()
    end = start + len(line)
    is_alone = not _line(text, end + 1).strip()
    if (is_alone and NUMBERED.match(text, start)) or _is_capitals(line.strip()):
        return end
    return None


def _is_capitals(line: str) -> bool:
    """True if a line is a few words in capitals."""
    return (
        line.upper() == line != line.lower()
        and line[0].isalnum()
        and sum(map(str.isalpha, line)) >= LEAST_CAPITALS
        and len(line) <= CAPITAL_CHARS
        and len(line.split()) <= CAPITAL_WORDS
    )


def is_section(text: str, start: int) -> bool:
    """True if a line begins with the name of a section of minutes: "Decisions:", "Agenda: ..."."""
    match = NAMED.match(text, start)
    return match is not None and " ".join(match["name"].casefold().split()) in SECTIONS


class Path:
    """The headings over a place in a text, from the outermost to its own."""

    def __init__(self) -> None:
        # Style, level, text, and whether it stands in the block that is being read.
        self._headings: list[tuple[str, int, str, bool]] = []

    @property
    def whole(self) -> str:
        """All headings, each with a blank line behind it."""
        return "".join(f"{text}\n\n" for _, _, text, _ in self._headings)

    @property
    def above(self) -> str:
        """The headings that stand before the block which is being read."""
        return "".join(f"{text}\n\n" for _, _, text, inside in self._headings if not inside)

    def enter(self, heading: str) -> None:
        """Goes on below a heading: it ends the sections that are not above its own."""
        style, level = _rank(heading)
        for place, (other, depth, _, _) in enumerate(self._headings):
            # Markup is above what only looks like a heading, and a line in bold above nothing.
            ends = depth >= level if other == style else other == BOLD or style == MARKUP
            if ends:
                del self._headings[place:]
                break
        self._headings.append((style, level, heading, True))

    def leave(self) -> None:
        """Ends the block: its headings stand before what follows."""
        self._headings = [(style, level, text, False) for style, level, text, _ in self._headings]


def _rank(heading: str) -> tuple[str, int]:
    """The style of a heading, and its level within that, from 1 for the outermost."""
    if match := LEVEL.match(heading):
        sign = match["sign"]
        return MARKUP, int(match["html"]) if match["html"] else len(sign)
    if match := UNDERLINED.match(heading):
        return MARKUP, UNDERLINES[heading[match.end() - 1]]
    if heading.startswith(("**", "__")):
        return BOLD, 1
    if match := NUMBERED.match(heading):
        return "numbered", len(re.findall(r"\d+", heading.split(maxsplit=1)[0])) or 1
    return "capitals", 1


def is_rule(text: str, start: int) -> bool:
    """True if a line is a horizontal rule."""
    return RULE.match(text, start) is not None


def fences(text: str) -> list[tuple[int, int]]:
    """Places of fenced blocks, from the line that opens one to behind the line that closes it."""
    found: list[tuple[int, int]] = []
    opened: re.Match[str] | None = None
    for match in FENCE.finditer(text):
        if opened is None:
            opened = match
        elif match[2] == "" and match[1].startswith(opened[1]):
            found.append((opened.start(), match.end()))
            opened = None
    return found


def table(text: str, start: int, *, after_blank: bool) -> Table | None:
    """The table that begins on a line: with a line of dashes below its header, of pipes, or of separated values."""
    line = _line(text, start)
    if "|" in line or line.lstrip().startswith("+-"):
        return _ruled(text, start)
    return _separated(text, start) if after_blank and ("\t" in line or "," in line or ";" in line) else None


def _ruled(text: str, start: int) -> Table | None:
    """Lines of pipes. The header ends with the first line of dashes below a row, or is the first row."""
    first = _line(text, start).strip()
    boxed = len(first) > 1 and first.startswith("|") and first.endswith("|")
    ends: list[int] = []
    header = 0
    at = start
    while at < len(text):
        line = _line(text, at)
        dashes = DELIMITER.match(line) is not None
        if not line.strip() or not (dashes or "|" in line):
            break
        ends.append(at + len(line))
        if dashes and not header and len(ends) > 1:
            header = len(ends)
        if not header and not boxed and len(ends) == MOST_HEADER_ROWS:
            return None
        at += len(line) + 1
    if header and header <= MOST_HEADER_ROWS and len(ends) > header:
        return Table(ends[header - 1], ends[-1])
    return Table(ends[0], ends[-1]) if boxed and len(ends) >= LEAST_ROWS - 1 else None


def _separated(text: str, start: int) -> Table | None:
    """Lines of as many values each, separated by tabs, commas or semicolons without a space behind them."""
    first = _line(text, start)
    separator = next((sign for sign in "\t;," if sign in first), ",")
    end = text.find("\n\n", start)
    lines = text[start : end if end >= 0 else len(text)].rstrip("\n").split("\n")
    if len(lines) < LEAST_ROWS or (separator != "\t" and any(f"{separator} " in line for line in lines)):
        return None
    try:
        rows = list(csv.reader(lines, delimiter=separator))
    except csv.Error:
        return None
    columns = {len(row) for row in rows}
    least = LEAST_COLUMNS - 1 if separator == "\t" else LEAST_COLUMNS
    if len(rows) != len(lines) or len(columns) != 1 or columns.pop() < least:
        return None
    return Table(start + len(first), start + len("\n".join(lines)))


def _line(text: str, start: int) -> str:
    end = text.find("\n", start)
    return text[start : end if end >= 0 else len(text)]
