"""Short replies to a question of the turn before, which say little without it: "Only sesame."."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from astrocyte.core import split_sentences
from astrocyte.model import MemoryHit

# Words of a reply: a longer turn is understood by itself.
MOST_WORDS = 10
# Words of the question that is quoted with its reply: a longer one would take the place of other evidence.
MOST_ASKED_WORDS = 30
QUESTION_END = re.compile(r"[?\u061f\uff1f][\"')\]\u201d\u2019]*\Z")
# A description of an attached picture stands behind what is said.
CAPTION = re.compile(r"\s*\[(?:image|photo|picture)\b[^\]]*\]")


@dataclass(frozen=True, slots=True)
class Asked:
    """The question to which a turn replies, and the memory that holds it."""

    text: str
    hit: MemoryHit


def is_reply(hit: MemoryHit) -> bool:
    """True if a memory is a turn so short that a question before it would explain it."""
    if not hit.session_id or hit.memory_id is None or hit.chunk_count > 1:
        return False
    said = CAPTION.sub("", hit.text).strip()
    return len(said.split()) <= MOST_WORDS and QUESTION_END.search(said) is None


def asked_before(reply: MemoryHit, before: MemoryHit) -> Asked | None:
    """The question with which the turn before a reply ends; None if it ends with none or is of the same speaker."""
    if before.session_id != reply.session_id or before.bank_id != reply.bank_id or before.chunk_count > 1:
        return None
    if before.speaker is not None and before.speaker == reply.speaker:
        return None
    text = question_in(CAPTION.sub("", before.text))
    return Asked(text, before) if text else None


def question_in(text: str) -> str:
    """The question that ends a text; empty if there is none, or only a long one."""
    sentences: Sequence[str] = [one for piece in split_sentences(text, every_stop=True) if (one := piece.strip())]
    if not sentences or QUESTION_END.search(sentences[-1]) is None or len(sentences[-1].split()) > MOST_ASKED_WORDS:
        return ""
    return sentences[-1]
