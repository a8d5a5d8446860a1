"""The text of HTML: paragraphs, items and cells on lines of their own, without markup.

The standard library's parser takes quadratic time over tags that are not closed, so tags are split off here.
"""

from __future__ import annotations

import re
from html import unescape

# Elements on lines of their own, and those with a blank line around them.
LINES = frozenset(
    {
        "address",
        "article",
        "aside",
        "caption",
        "center",
        "dd",
        "div",
        "dl",
        "dt",
        "fieldset",
        "figure",
        "footer",
        "form",
    }
    | {"header", "li", "main", "nav", "section", "tbody", "tfoot", "thead", "tr"}
)
PARAGRAPHS = frozenset({"blockquote", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "ol", "p", "pre", "table", "ul"})
UNSEEN = frozenset({"head", "script", "style", "template", "title"})
CELLS = frozenset({"td", "th"})
TAG = re.compile(r"(/?)([A-Za-z][A-Za-z0-9:-]*)")
SPACES = re.compile(r"[ \t\r\n\f\u200b]+")


def text_of(html: str) -> str:
    """The text that a reader sees."""
    reader = _Reader()
    first, *rest = _without_comments(html).split("<")
    reader.data(first)
    for piece in rest:
        tag, closed, data = piece.partition(">")
        match = TAG.match(tag)
        if closed and (match is not None or tag.startswith(("!", "?"))):
            if match is not None:
                reader.tag(match[2].lower(), ends=bool(match[1]))
            reader.data(data)
        else:
            reader.data(f"<{piece}")
    return "".join(reader.parts).strip()


def _without_comments(html: str) -> str:
    kept: list[str] = []
    at = 0
    while (start := html.find("<!--", at)) >= 0 and (end := html.find("-->", start)) >= 0:
        kept.append(html[at:start])
        at = end + 3
    kept.append(html[at:])
    return "".join(kept)


class _Reader:
    """Collects text between tags."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self._unseen = ""
        self._literal = False
        # What stands between the text so far and the next.
        self._breaks = 0
        self._before = ""

    def tag(self, name: str, *, ends: bool) -> None:
        """A tag that begins or ends an element."""
        if self._unseen:
            if ends and name == self._unseen:
                self._unseen = ""
            return
        if name in UNSEEN and not ends:
            self._unseen = name
        elif name == "br":
            self._breaks += 1
        elif name in CELLS and not ends:
            self._before = "" if self._breaks else "\t"
        elif name in LINES or name in PARAGRAPHS:
            self._breaks = max(self._breaks, 2 if name in PARAGRAPHS else 1)
            self._before = "- " if name == "li" and not ends else ""
        if name == "pre":
            self._literal = not ends

    def data(self, text: str) -> None:
        """Text between two tags."""
        if self._unseen:
            return
        text = unescape(text)
        if not self._literal:
            text = SPACES.sub(" ", text)
        if not text.strip():
            # A space between two words of a line.
            if text and not self._breaks and not self._before:
                self._before = " "
            return
        # More than one blank line means no more than one.
        breaks = "\n" * min(self._breaks, 2)
        if breaks and not self._literal:
            text = text.lstrip(" ")
        if breaks and self.parts:
            self.parts[-1] = self.parts[-1].rstrip(" ")
        self.parts.append(f"{breaks}{self._before}{text}")
        self._breaks, self._before = 0, ""
