"""Bank templates: what holds for every bank whose name has a certain form, and who may do what in it.

A name such as ``user-{user_id}`` means each bank whose id has some text in place of the braces. Names are read from the
left, and every placeholder takes as little as it can, the last one what is left: so a bank has one reading only.
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
from astrocyte.config.section import Section

# What braces may hold. A slip of the pen in a grant would else mean everybody, as an unbound placeholder does.
PLACEHOLDERS = ("user_id", "agent_id", "service_id", "team_id")
TemplateName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
# More than any configuration has patterns.
KEPT_PATTERNS = 1_024


class TemplateGrant(Section):
    """Permissions in every bank of a template.

    A placeholder that the bank's name has stands for what the name has there; another one for anything, as * does.
    """

    principal: str = Field(
        min_length=1, max_length=PRINCIPAL_CHARS, description="A principal such as user:{user_id}, or a pattern."
    )
    permissions: tuple[PermissionName, ...] = Field(
        min_length=1, description="Any of read, write, forget and admin, none of which implies another; * is all four."
    )

    @field_validator("principal")
    @classmethod
    def _check_principal(cls, principal: str) -> str:
        _placeholders(principal)
        return principal


class BankTemplateSettings(Section):
    """What holds for the banks whose ids have the form of ``name_pattern``."""

    name_pattern: Annotated[str, Field(pattern=r"^[A-Za-z0-9{][A-Za-z0-9._:@{}-]{0,254}$")] = Field(
        description="A bank id with {user_id}, {agent_id}, {service_id} or {team_id} in it, each at most once."
    )
    profile: ProfileName | None = Field(None, description="The profile of these banks.")
    auto_create: bool = Field(False, description="The first retain or recall makes a bank that does not exist.")
    access: tuple[TemplateGrant, ...] = Field(
        (), description="Who may do what in these banks; where it says anything, whoever made one does not own it."
    )

    @field_validator("name_pattern")
    @classmethod
    def _check_pattern(cls, pattern: str) -> str:
        names = _placeholders(pattern)
        if not names:
            raise ValueError(f"{pattern!r} is the name of one bank; put {{user_id}} or its like into it")
        if len(set(names)) != len(names):
            raise ValueError(f"{pattern!r} has a placeholder twice")
        if "}{" in pattern:
            raise ValueError(f"{pattern!r}: put something between two placeholders, so that it can be read back")
        return pattern


def readable(templates: object) -> dict[str, BankTemplateSettings]:
    """Those of the templates that can be read; the others are refused when the settings are made."""
    found: dict[str, BankTemplateSettings] = {}
    for name, template in templates.items() if isinstance(templates, Mapping) else ():
        with suppress(PydanticError):
            found[str(name)] = BankTemplateSettings.model_validate(template)
    return found


def bind(pattern: str, bank_id: str) -> dict[str, str] | None:
    """What the placeholders of a pattern stand for in a bank's id; None where it has another form."""
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
    """The name of the pattern that says most of a bank's id itself, the first of equals, and what it binds."""
    found = [(name, bound) for name, pattern in patterns.items() if (bound := bind(pattern, bank_id)) is not None]
    return min(found, key=lambda one: sum(map(len, one[1].values())), default=None)


def fill(text: str, bound: Mapping[str, str], unbound: str) -> str:
    """A text with its placeholders filled, those that are not bound by ``unbound``."""
    return text.format_map({name: bound.get(name, unbound) for name in PLACEHOLDERS})


@lru_cache(KEPT_PATTERNS)
def _split(pattern: str) -> tuple[tuple[tuple[str, str], ...], str]:
    """A pattern as placeholders with the text before each, and the text after the last."""
    pieces = list(string.Formatter().parse(pattern))
    tail = pieces[-1][0] if pieces[-1][1] is None else ""
    return tuple((before, name) for before, name, _, _ in pieces if name is not None), tail


def _placeholders(text: str) -> list[str]:
    """The placeholders of a text, in order.

    Raises:
        ValueError: Braces hold something else.
    """
    names: list[str] = []
    for before, name, spec, conversion in string.Formatter().parse(text):
        if "{" in before or "}" in before:
            raise ValueError(f"{text!r}: a brace of its own has no place there")
        if name is None:
            continue
        if name not in PLACEHOLDERS or spec or conversion:
            raise ValueError(f"{text!r}: expected one of {', '.join(PLACEHOLDERS)} in braces, got {name!r}")
        names.append(name)
    return names


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
