"""Profiles: settings of a bank that are known by a word, in one file each under `astrocyte/profiles`."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any, Literal, get_args

import yaml

ProfileName = Literal["minimal", "personal", "support", "coding", "research", "gdpr", "hipaa", "pdpa"]
PROFILES: tuple[ProfileName, ...] = get_args(ProfileName)


def profile_values(name: object) -> dict[str, Any]:
    """What a profile says, as a bank's block would; nothing for a name that is none, which its field refuses."""
    return _read(name) if name in PROFILES and isinstance(name, str) else {}


@cache
def _read(name: str) -> dict[str, Any]:
    text = files("astrocyte").joinpath("profiles", f"{name}.yaml").read_text(encoding="utf-8")
    values: dict[str, Any] = yaml.safe_load(text)
    return values
