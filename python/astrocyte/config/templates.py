"""Settings of bank templates, and the patterns of bank ids.

A pattern such as ``user-{user_id}`` matches each bank id with text in place of the braces. Matching goes from left to
right. Each placeholder takes the shortest text, the last one the rest, so that a match is unambiguous.
"""

from __future__ import annotations

import string
from collections.abc import Mapping
from contextlib import suppress
from functools import cache, lru_cache
from importlib.resources import files
from typing import Annotated, Any, Literal, get_args

import yaml
from pydantic import Field, field_validator
from pydantic import ValidationError as PydanticError

from astrocyte.config.access import PRINCIPAL_CHARS, PermissionName
from astrocyte.config.loading.section import Section
from astrocyte.config.loading.time_zone import ZoneName

# Other names are refused: an unbound placeholder matches every principal, so a typo would grant access to all.
PLACEHOLDERS = ("user_id", "agent_id", "service_id", "team_id")
TemplateName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
# Exceeds the number of patterns of a configuration.
KEPT_PATTERNS = 1_024


class TemplateGrant(Section):
    """Permissions in every bank of a template.

    A placeholder of name_pattern takes its text from the bank id. Any other placeholder matches any text, as * does.
    """

    principal: str = Field(
        min_length=1, max_length=PRINCIPAL_CHARS, description="Principal such as user:{user_id}, or a pattern."
    )
    permissions: tuple[PermissionName, ...] = Field(
        min_length=1, description="Any of read, write, forget and admin; none implies another. * is all four."
    )

    @field_validator("principal")
    @classmethod
    def _check_principal(cls, principal: str) -> str:
        _placeholders(principal)
        return principal


class BankTemplateSettings(Section):
    """Settings of banks whose ids match ``name_pattern``."""

    name_pattern: Annotated[str, Field(pattern=r"^[A-Za-z0-9{][A-Za-z0-9._:@{}-]{0,254}$")] = Field(
        description="Bank id with {user_id}, {agent_id}, {service_id} or {team_id}, each at most once."
    )
    profile: ProfileName | None = Field(None, description="Profile of these banks.")
    time_zone: ZoneName | None = Field(None, description="Time zone of these banks; by default the server's.")
    auto_create: bool = Field(False, description="Create a missing bank on the first retain or recall.")
    access: tuple[TemplateGrant, ...] = Field(
        (), description="Permissions in these banks. If set, the creator of a bank does not own it."
    )

    @field_validator("name_pattern")
    @classmethod
    def _check_pattern(cls, pattern: str) -> str:
        names = _placeholders(pattern)
        if not names:
            raise ValueError(f"{pattern!r} matches one bank only; expected a placeholder such as {{user_id}}")
        if len(set(names)) != len(names):
            raise ValueError(f"{pattern!r} contains a placeholder twice")
        if "}{" in pattern:
            raise ValueError(f"{pattern!r}: adjacent placeholders are ambiguous; put text between them")
        return pattern


def readable(templates: object) -> dict[str, BankTemplateSettings]:
    """Return the valid templates; `Settings` reports the invalid ones."""
    found: dict[str, BankTemplateSettings] = {}
    for name, template in templates.items() if isinstance(templates, Mapping) else ():
        with suppress(PydanticError):
            found[str(name)] = BankTemplateSettings.model_validate(template)
    return found


def bind(pattern: str, bank_id: str) -> dict[str, str] | None:
    """Match a bank id with a pattern. Returns placeholder values, or None if it does not match."""
    parts, tail = _split(pattern)
    bound: dict[str, str] = {}
    at = 0
    if not bank_id.startswith(parts[0][0]):
        return None
    for index, (before, name) in enumerate(parts):
        at += len(before)
        if index + 1 < len(parts):
            end = bank_id.find(parts[index + 1][0], at + 1)
        else:
            end = len(bank_id) - len(tail) if bank_id.endswith(tail) else -1
        if end <= at:
            return None
        bound[name] = bank_id[at:end]
        at = end
    return bound


def closest(patterns: Mapping[str, str], bank_id: str) -> tuple[str, dict[str, str]] | None:
    """Return the most specific matching pattern (the first of equals) and its placeholder values."""
    found = [(name, bound) for name, pattern in patterns.items() if (bound := bind(pattern, bank_id)) is not None]
    return min(found, key=lambda one: sum(map(len, one[1].values())), default=None)


def fill(text: str, bound: Mapping[str, str], unbound: str) -> str:
    """Replace placeholders by their values, or by ``unbound`` if they have none."""
    return text.format_map({name: bound.get(name, unbound) for name in PLACEHOLDERS})


@lru_cache(KEPT_PATTERNS)
def _split(pattern: str) -> tuple[tuple[tuple[str, str], ...], str]:
    """Split a pattern into (text before, placeholder) pairs and the text after the last."""
    pieces = list(string.Formatter().parse(pattern))
    tail = pieces[-1][0] if pieces[-1][1] is None else ""
    return tuple((before, name) for before, name, _, _ in pieces if name is not None), tail


def _placeholders(text: str) -> list[str]:
    """Return the placeholders of a text, in order.

    Raises:
        ValueError: Braces contain anything else.
    """
    names: list[str] = []
    for before, name, spec, conversion in string.Formatter().parse(text):
        if "{" in before or "}" in before:
            raise ValueError(f"{text!r}: single braces are not allowed")
        if name is None:
            continue
        if name not in PLACEHOLDERS or spec or conversion:
            raise ValueError(f"{text!r}: expected one of {', '.join(PLACEHOLDERS)} in braces, got {name!r}")
        names.append(name)
    return names


ProfileName = Literal["minimal", "personal", "support", "coding", "research", "gdpr", "hipaa", "pdpa"]
PROFILES: tuple[ProfileName, ...] = get_args(ProfileName)


def profile_values(name: object) -> dict[str, Any]:
    """Return the settings of a profile; empty for an unknown name."""
    return _read(name) if name in PROFILES and isinstance(name, str) else {}


@cache
def _read(name: str) -> dict[str, Any]:
    text = files("astrocyte").joinpath("profiles", f"{name}.yaml").read_text(encoding="utf-8")
    values: dict[str, Any] = yaml.safe_load(text)
    return values
