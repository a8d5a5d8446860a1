"""Names of enum values in JSON: lower case, without the prefix that they share in the protocol."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

from google.protobuf.descriptor import EnumDescriptor

WORD = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
UNSPECIFIED = "unspecified"


@cache
def short_names(enum: EnumDescriptor) -> Mapping[int, str]:
    """The short name of each number, such as "first_match" of `MULTI_BANK_MODE_FIRST_MATCH`."""
    prefix = WORD.sub("_", enum.name).upper() + "_"
    return {value.number: value.name.removeprefix(prefix).lower() for value in enum.values}


@cache
def choices(enum: EnumDescriptor) -> tuple[str, ...]:
    """The short names that a caller can send, in the order of the protocol."""
    return tuple(name for name in short_names(enum).values() if name != UNSPECIFIED)
