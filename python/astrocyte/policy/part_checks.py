"""Checks of the parts of a content that is not all text."""

from __future__ import annotations

import re
from collections.abc import Sequence

from astrocyte.config import LimitSettings
from astrocyte.errors import ValidationError
from astrocyte.model import MEDIA_TYPES, ContentPart, PartKind
from astrocyte.policy import checks

# What addresses may be: no file of the provider's machine, no script.
URL = re.compile(r"https?://[^\s/?#]+[^\s]*")
MOST_URL_CHARS = 2_048


def check_parts(parts: Sequence[ContentPart], path: str, limits: LimitSettings) -> None:
    """Parts: as many and as large as may be, each with what its kind needs and nothing else.

    Raises:
        ValidationError: One is wrong.
    """
    checks.count(parts, path, limits.parts)
    size = 0
    for index, part in enumerate(parts):
        at = f"{path}[{index}]"
        if not isinstance(part, ContentPart):
            raise ValidationError(f"expected a ContentPart, got {type(part).__name__}", field=at)
        checks.choice(part.kind, f"{at}.kind", PartKind)
        if part.kind is PartKind.TEXT:
            _text(part, at, limits)
        else:
            _media(part, at)
        size += len(part.data) + len(part.text)
        if size > limits.part_bytes:
            raise ValidationError(
                f"have {size:,} bytes or more together, the limit is {limits.part_bytes:,}",
                field=path,
                metadata={"limit": str(limits.part_bytes)},
            )


def _text(part: ContentPart, at: str, limits: LimitSettings) -> None:
    checks.text(part.text, f"{at}.text", limits.part_bytes)
    if not part.text.strip():
        raise ValidationError("is empty", field=f"{at}.text")
    if part.data or part.url or part.media_type:
        raise ValidationError("is text, and has something else too", field=at)


def _media(part: ContentPart, at: str) -> None:
    if part.text:
        raise ValidationError(f"has no place in a part of kind {part.kind}", field=f"{at}.text")
    if not isinstance(part.data, bytes):
        raise ValidationError(f"expected bytes, got {type(part.data).__name__}", field=f"{at}.data")
    if bool(part.data) == bool(part.url):
        raise ValidationError("needs data or url, one of them", field=at)
    if part.url:
        checks.label(part.url, f"{at}.url", MOST_URL_CHARS)
        if part.kind is not PartKind.IMAGE:
            raise ValidationError("is taken for images only; send data", field=f"{at}.url")
        if not URL.fullmatch(part.url):
            raise ValidationError("is no address of http or https", field=f"{at}.url")
    elif part.media_type not in MEDIA_TYPES[part.kind]:
        known = ", ".join(sorted(MEDIA_TYPES[part.kind]))
        raise ValidationError(f"must be one of {known}, got {ascii(part.media_type)[:64]}", field=f"{at}.media_type")
