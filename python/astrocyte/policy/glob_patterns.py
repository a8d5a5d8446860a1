"""Names and patterns of grants: ``*`` stands for any characters, ``?`` for one, everything else for itself."""

from __future__ import annotations

ANY = "*"
ONE = "?"


def is_pattern(text: str) -> bool:
    """True if the text has a wildcard."""
    return ANY in text or ONE in text


def matches(pattern: str, name: str) -> bool:
    """True if the pattern matches ``name``."""
    return _fits(pattern, name, wild="")


def covers(wide: str, narrow: str) -> bool:
    """True if every name that ``narrow`` means is one that ``wide`` means too; a False may be too careful.

    ``narrow`` is read as a name whose wildcards are letters of their own: where these fall to a ``*`` of ``wide``,
    whatever they stand for does as well. A ``?`` may stand for another ``?``, never for a ``*``.
    """
    return _fits(wide, narrow, wild=ANY)


def _fits(pattern: str, name: str, wild: str) -> bool:
    """Match in time proportional to both lengths multiplied, whatever the pattern; ``?`` does not take ``wild``.

    Only the last star passed is ever tried again: what an earlier one could still win, that one can as well.
    """
    at = place = 0
    star, resume = -1, 0
    while place < len(name):
        letter = pattern[at] if at < len(pattern) else ""
        if letter == ANY:
            star, resume = at, place
            at += 1
        elif letter and (letter == name[place] if letter != ONE else name[place] != wild):
            at += 1
            place += 1
        elif star >= 0:
            resume += 1
            at, place = star + 1, resume
        else:
            return False
    return pattern[at:].strip(ANY) == ""
