"""Content as it is kept: without byte order mark, foreign line ends, mail envelopes and signatures."""

from __future__ import annotations

import re

# Two lines that look like headers make a block a mail header; one could be "Note: ..." in prose.
LEAST_HEADERS = 2
HEADER = re.compile(r"[A-Za-z][A-Za-z0-9-]{0,63}:(?:[ \t]|$)")
SUBJECT = re.compile(r"(?im)^subject:[ \t]*(\S.*)$")
SIGNATURE = re.compile(r"(?m)^-- ?$")
BLANK_LINES = re.compile(r"\n{3,}")
# Spoken and written records; their blank lines carry no meaning beyond one.
RECORDS = frozenset({"document", "conversation", "transcript"})


def normalise(content: str, content_type: str) -> str:
    """The content as it is stored and cut; empty when nothing is left.

    All types lose a byte order mark, outer white space and CR line ends. Records lose blank lines beyond one. A mail
    loses its header block, except the subject, which becomes the first line, and everything from a signature mark on;
    where nothing would be left of a mail, it stays whole.
    """
    text = content.lstrip("\ufeff")
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    if content_type == "email":
        return _mail(text) or text.strip()
    text = text.strip()
    if content_type in RECORDS and "\n\n\n" in text:
        return BLANK_LINES.sub("\n\n", text)
    return text


def _mail(text: str) -> str:
    head, blank, body = text.lstrip("\n").partition("\n\n")
    # A folded header continues on a line that starts with white space.
    lines = [line for line in head.split("\n") if not line.startswith((" ", "\t"))]
    headers = sum(1 for line in lines if HEADER.match(line))
    if blank and headers >= LEAST_HEADERS and len(lines) - headers <= 1:
        subject = SUBJECT.search(head)
        text = f"{subject.group(1).strip()}\n\n{body}" if subject else body
    signature = SIGNATURE.search(text)
    return text[: signature.start()].strip() if signature else text.strip()
