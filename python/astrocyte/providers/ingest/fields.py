"""Texts of services as fields of messages, within the default limits of requests."""

from __future__ import annotations

import re

# Of a source, a session and a speaker.
MOST_LABEL_CHARS = 256
# Of a metadata value: as many characters of four bytes fit into 1,024 bytes.
MOST_VALUE_CHARS = 255
CUT = "\N{HORIZONTAL ELLIPSIS}"
CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")


def clean(text: str) -> str:
    """A text without control characters and halves of characters, in lines that end with a line feed."""
    return CONTROLS.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))


def label(text: object) -> str | None:
    """A text as a source, session or speaker; None where it cannot be one."""
    if not isinstance(text, str):
        return None
    text = text.strip()
    return text if 0 < len(text) <= MOST_LABEL_CHARS and text.isprintable() else None


def value(text: object) -> str | None:
    """A text as a metadata value on one line, shortened where it is long; None where there is none."""
    if not isinstance(text, str):
        return None
    text = " ".join(clean(text).split())
    if len(text) > MOST_VALUE_CHARS:
        text = text[: MOST_VALUE_CHARS - 1] + CUT
    return text or None


def values(**texts: object) -> dict[str, str]:
    """Metadata of those texts that are any."""
    return {key: found for key, text in texts.items() if (found := value(text)) is not None}
