"""Content as it is kept: without byte order mark, foreign line ends, mail envelopes and signatures."""

from __future__ import annotations

import re

from astrocyte.pipelines.text import mail

BLANK_LINES = re.compile(r"\n{3,}")
# Spoken and written records; their blank lines carry no meaning beyond one.
RECORDS = frozenset({"document", "conversation", "transcript"})


def normalise(content: str, content_type: str) -> str:
    """The content as it is stored and cut; empty when nothing is left.

    All types lose a byte order mark, outer white space and CR line ends. Records lose blank lines beyond one. A mail,
    which has been decoded (`mail.decoded`), loses its header block, except the subject, which becomes the first line,
    and its signatures; where nothing would be left of a mail, it stays whole.
    """
    text = content.lstrip("\ufeff")
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    if content_type == mail.CONTENT_TYPE:
        return mail.plain(text) or text.strip()
    text = text.strip()
    if content_type in RECORDS and "\n\n\n" in text:
        return BLANK_LINES.sub("\n\n", text)
    return text
