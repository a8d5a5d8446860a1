"""Shapes of content and keys of metadata that have no place in a memory. Pure functions over one block of settings."""

from __future__ import annotations

import json
import re

from astrocyte.config.barriers import ContentSettings, MetadataSettings
from astrocyte.errors import ValidationError
from astrocyte.model import Metadata, RetainItem

# Controls that no text has: all of C0 but layout, back-space and escapes, all of C1, and what bad bytes decode to.
BINARY = re.compile("[\x00-\x07\x0e-\x1a\x1c-\x1f\x7f-\x9f\ufffd]")
# How files begin that are no text, as Latin-1 or UTF-8 reads them.
MAGIC = ("%PDF-", "\x89PNG", "PK\x03\x04", "GIF87a", "GIF89a", "\x7fELF", "\xff\xd8\xff", "\x1f\x8b", "BZh9")
# Without any of these a content is sure to be text.
SUSPECT = re.compile(f"^(?:{'|'.join(map(re.escape, MAGIC))})|{BINARY.pattern}")
# Text with a stray control stays text; from one in fifty on it is none.
BINARY_SHARE = 0.02
# Where a key has its joints.
JOINTS = re.compile(r"[._\-\s]+|(?<=[a-z0-9])(?=[A-Z])")


def check_item(item: RetainItem, settings: ContentSettings, at: str) -> None:
    """A content, and a format, that are taken.

    Raises:
        ValidationError: One is not; its field is prefixed by ``at``.
    """
    check_content(item.content, settings, f"{at}content")
    allowed = settings.allowed_content_types
    if allowed is not None and item.content_type not in allowed:
        raise ValidationError(
            f"{ascii(str(item.content_type))[:64]} is not accepted; expected one of {', '.join(allowed) or 'none'}",
            field=f"{at}content_type",
        )


def check_content(content: str, settings: ContentSettings, path: str) -> None:
    """Refuse content that is too long or binary.

    Raises:
        ValidationError: It is too long, or binary.
    """
    if settings.max_content_length is not None and len(content) > settings.max_content_length:
        raise ValidationError(
            f"has {len(content):,} characters, the limit of the bank is {settings.max_content_length:,} "
            "(barriers.validation.max_content_length); split it into several memories",
            field=path,
            metadata={"limit": str(settings.max_content_length)},
        )
    if settings.reject_binary_content and is_binary(content):
        raise ValidationError("is binary; send text", field=path)


def is_binary(content: str) -> bool:
    """True if a content is a file's bytes read as text: by how it begins, or by its share of controls."""
    if content.startswith(MAGIC):
        return True
    if BINARY.search(content) is None:
        return False
    return len(BINARY.findall(content)) >= BINARY_SHARE * len(content)


def strip_metadata(metadata: Metadata, settings: MetadataSettings, path: str) -> tuple[Metadata, tuple[str, ...]]:
    """The metadata without blocked keys, and those keys.

    Raises:
        ValidationError: A key is blocked and the action is to refuse, or what is left is too large.
    """
    if not metadata:
        return metadata, ()
    words = [_parts(word) for word in settings.blocked_keys]
    blocked = tuple(key for key, value in metadata.items() if _is_blocked(key, words, text=isinstance(value, str)))
    if blocked and settings.action == "reject":
        raise ValidationError(f"the key {blocked[0]!a} is blocked; leave it out", field=path)
    left = {key: value for key, value in metadata.items() if key not in blocked} if blocked else metadata
    size = len(json.dumps(dict(left), ensure_ascii=False, separators=(",", ":")).encode())
    if size > settings.max_metadata_size_bytes:
        raise ValidationError(
            f"takes {size:,} bytes as JSON, the limit is {settings.max_metadata_size_bytes:,}",
            field=path,
            metadata={"limit": str(settings.max_metadata_size_bytes)},
        )
    return left, blocked


def _parts(key: str) -> list[str]:
    return [part.casefold() for part in JOINTS.split(key) if part]


def _is_blocked(key: str, words: list[list[str]], *, text: bool) -> bool:
    """True if a key ends with a blocked word, or has one within and text as value: `token_count` is a number.

    Joints do not count: ``api_key``, ``api-key``, ``apiKey`` and ``APIKEY`` are one.
    """
    parts = _parts(key)
    whole = "".join(parts)
    for word in words:
        size = len(word)
        if whole == "".join(word) or parts[-size:] == word:
            return True
        if text and any(parts[place : place + size] == word for place in range(len(parts) - size)):
            return True
    return False
