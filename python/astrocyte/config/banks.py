"""What may differ from bank to bank, and how a bank's own values are laid over those of the whole."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, Field

from astrocyte.config.access import BankGrant
from astrocyte.config.barriers import BarrierSettings, DlpSettings
from astrocyte.config.extraction import ExtractionSettings
from astrocyte.config.limits import EscalationSettings, HomeostasisSettings
from astrocyte.config.retain import CuratedRetainSettings, SignalQualitySettings
from astrocyte.config.section import Section
from astrocyte.config.source import KeyPath, SourceLines, merge
from astrocyte.config.templates import BankTemplateSettings, ProfileName, closest, profile_values, readable
from astrocyte.errors import ConfigError


class BankDefaultSettings(Section):
    """How banks come to be."""

    auto_create: bool = Field(True, description="The first retain makes a bank that does not exist.")


class BankSettings(Section):
    """The settings of one bank. What a bank does not say itself, its profile says; what that does not, the whole.

    A block is added by one field here, of the type and name that it has in `Settings`; what `Settings` has not, such as
    ``access``, is the bank's alone.
    """

    profile: ProfileName | None = Field(
        None, description="Settings known by a word; the bank's own blocks go over them."
    )
    homeostasis: HomeostasisSettings = HomeostasisSettings()
    barriers: BarrierSettings = BarrierSettings()
    dlp: DlpSettings = DlpSettings()
    signal_quality: SignalQualitySettings = SignalQualitySettings()
    escalation: EscalationSettings = EscalationSettings()
    extraction: ExtractionSettings = ExtractionSettings()
    curated_retain: CuratedRetainSettings = CuratedRetainSettings()
    access: tuple[BankGrant, ...] = Field((), description="Who may do what in this bank; as in access_grants.")


# Inside of a bank these may stand one level higher than in the whole.
SHORT_FORMS = tuple(
    (("homeostasis", name), ("homeostasis", "rate_limits", name))
    for name in ("retain_per_minute", "recall_per_minute", "reflect_per_minute")
)
# What there is once for the whole server, though its block may differ from bank to bank.
SHARED = (
    ("homeostasis", "rate_limits", "global_per_minute"),
    ("homeostasis", "quotas", "database"),
    ("escalation", "circuit_breaker"),
    ("escalation", "queue_limit"),
    ("escalation", "cache_entries"),
)


def spell_out(values: Mapping[str, Any], source: SourceLines) -> tuple[dict[str, Any], SourceLines]:
    """Values in which every key stands at its full path, and where each of them was said.

    Raises:
        ConfigError: A key is said in both forms.
    """
    banks = values.get("banks")
    if not isinstance(banks, Mapping):
        return dict(values), source
    spelled: dict[str, Any] = {}
    lines = dict(source.lines)
    for bank, own in banks.items():
        spelled[bank] = plain(own)
        for short, full in SHORT_FORMS:
            found = at(spelled[bank], short)
            if found is None:
                continue
            where = ("banks", str(bank))
            if at(spelled[bank], full) is not None:
                place = source.place((*where, *short))
                raise ConfigError(
                    f"{place} is set twice: {'.'.join(full)} is its full form",
                    metadata={"key": ".".join((*where, *short))},
                )
            spelled[bank] = merge(without(spelled[bank], short), nested(full, found))
            line = source.line((*where, *short))
            if line is not None:
                lines[*where, *full] = line
    return {**values, "banks": spelled}, SourceLines(source.name, lines)


def check_shared(whole: BaseModel, banks: Mapping[str, BaseModel], source: SourceLines) -> None:
    """Refuse a bank that says otherwise what there is only once.

    Raises:
        ConfigError: Names the key and its line.
    """
    for bank, own in banks.items():
        for path in SHARED:
            if attribute(own, path) != attribute(whole, path):
                key = ("banks", bank, *path)
                raise ConfigError(
                    f"{source.place(key)} cannot differ from bank to bank; set {'.'.join(path)}",
                    metadata={"key": ".".join(key)},
                )


def complete(values: Mapping[str, Any]) -> dict[str, Any]:
    """Values of `Settings` in which each bank says everything: its own values, over its profile, over the whole."""
    banks = values.get("banks")
    if not isinstance(banks, Mapping):
        return dict(values)
    whole = {name: plain(values[name]) for name in BankSettings.model_fields if name in values}
    templates = readable(values.get("bank_templates"))
    spoken: dict[str, Any] = {}
    for bank, own in banks.items():
        said = plain(own)
        if isinstance(said, Mapping):
            profile = said.get("profile") or _template_profile(templates, str(bank))
            spoken[bank] = {**merge(merge(whole, profile_values(profile)), said), "profile": profile}
        else:
            spoken[bank] = own
    return {**values, "banks": spoken}


def over_profile(whole: BankSettings, profile: ProfileName | None) -> BankSettings:
    """The settings of a bank that has a profile and says nothing itself."""
    return BankSettings.model_validate({**merge(whole.model_dump(), profile_values(profile)), "profile": profile})


def _template_profile(templates: Mapping[str, BankTemplateSettings], bank_id: str) -> ProfileName | None:
    """The profile of a bank that names none."""
    match = closest({name: template.name_pattern for name, template in templates.items()}, bank_id)
    return None if match is None else templates[match[0]].profile


def at(values: object, path: KeyPath) -> object:
    """The value at a path, or None."""
    for part in path:
        values = values.get(part) if isinstance(values, Mapping) else None
    return values


def without(values: Mapping[str, Any], path: KeyPath) -> dict[str, Any]:
    """Values without what is at a path."""
    name, *below = path
    if below:
        return {**values, name: without(values[name], tuple(below))}
    return {key: value for key, value in values.items() if key != name}


def nested(path: KeyPath, value: object) -> dict[str, Any]:
    """A value at a path, and nothing else."""
    for part in reversed(path):
        value = {part: value}
    return {} if not isinstance(value, dict) else value


def attribute(section: BaseModel, path: KeyPath) -> object:
    """The value of a setting."""
    found: object = section
    for part in path:
        found = getattr(found, part)
    return found


def plain(value: object) -> Any:  # noqa: ANN401 - what it was made from
    """A section as the mapping that makes it; anything else as it is."""
    return value.model_dump() if isinstance(value, Section) else value
