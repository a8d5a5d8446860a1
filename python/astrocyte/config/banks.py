"""Per-bank settings, merged over profile and global settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, Field

from astrocyte.config.access import BankGrant
from astrocyte.config.barriers import BarrierSettings, DlpSettings
from astrocyte.config.derived.entity_graph import GraphExtractionSettings
from astrocyte.config.derived.knowledge import ObservationSettings
from astrocyte.config.derived.lifecycle import LifecycleSettings
from astrocyte.config.derived.ttl import without_ttl
from astrocyte.config.extraction import ExtractionSettings
from astrocyte.config.index import IndexSettings
from astrocyte.config.limits import EscalationSettings, HomeostasisSettings
from astrocyte.config.loading.section import Section
from astrocyte.config.loading.source import KeyPath, SourceLines, merge
from astrocyte.config.loading.time_zone import ZoneName
from astrocyte.config.retain import CuratedRetainSettings, SignalQualitySettings
from astrocyte.config.templates import BankTemplateSettings, ProfileName, closest, profile_values, readable
from astrocyte.errors import ConfigError


class BankDefaultSettings(Section):
    """Bank creation."""

    auto_create: bool = Field(True, description="Create a missing bank on the first retain.")


class BankSettings(Section):
    """Settings of one bank, which override those of its profile, which override the global settings.

    A block here has the name and type of the block in `Settings`. Keys that `Settings` does not have, such as
    ``access``, apply to the bank only.
    """

    profile: ProfileName | None = Field(None, description="Profile; the bank's own blocks override it.")
    time_zone: ZoneName = Field("UTC", description="Time zone of the bank, as in time_zone.")
    homeostasis: HomeostasisSettings = HomeostasisSettings()
    barriers: BarrierSettings = BarrierSettings()
    dlp: DlpSettings = DlpSettings()
    signal_quality: SignalQualitySettings = SignalQualitySettings()
    escalation: EscalationSettings = EscalationSettings()
    extraction: ExtractionSettings = ExtractionSettings()
    curated_retain: CuratedRetainSettings = CuratedRetainSettings()
    lifecycle: LifecycleSettings = LifecycleSettings()
    graph_extraction: GraphExtractionSettings = GraphExtractionSettings()
    observations: ObservationSettings = ObservationSettings()
    index: IndexSettings = IndexSettings()
    access: tuple[BankGrant, ...] = Field((), description="Permissions in this bank, as in access_grants.")


# Keys that a bank may set one level higher than the global settings.
SHORT_FORMS = tuple(
    (("homeostasis", name), ("homeostasis", "rate_limits", name))
    for name in ("retain_per_minute", "recall_per_minute", "reflect_per_minute")
)
# Server-wide keys of blocks that banks may override.
SHARED = (
    ("homeostasis", "rate_limits", "global_per_minute"),
    ("homeostasis", "quotas", "database"),
    ("escalation", "circuit_breaker"),
    ("escalation", "queue_limit"),
    ("escalation", "cache_entries"),
    *(("observations", name) for name in ObservationSettings.model_fields if name != "consolidation"),
    ("observations", "consolidation", "delay_seconds"),
    ("observations", "consolidation", "memories_per_minute"),
    *(("index", name) for name in IndexSettings.model_fields if name != "tier"),
)


def spell_out(values: Mapping[str, Any], source: SourceLines) -> tuple[dict[str, Any], SourceLines]:
    """Expand short forms of keys to full paths, in the values and in the line numbers.

    Raises:
        ConfigError: A key is set in both forms.
    """
    lines = dict(source.lines)
    values = dict(values)
    if "lifecycle" in values:
        values["lifecycle"] = without_ttl(values["lifecycle"], ("lifecycle",), source, lines)
    banks = values.get("banks")
    if not isinstance(banks, Mapping):
        return values, SourceLines(source.name, lines)
    spelled: dict[str, Any] = {}
    for bank, own in banks.items():
        spelled[bank] = plain(own)
        if isinstance(spelled[bank], Mapping) and "lifecycle" in spelled[bank]:
            path = ("banks", str(bank), "lifecycle")
            spelled[bank] = {
                **spelled[bank],
                "lifecycle": without_ttl(spelled[bank]["lifecycle"], path, source, lines),
            }
        for short, full in SHORT_FORMS:
            found = at(spelled[bank], short)
            if found is None:
                continue
            where = ("banks", str(bank))
            if at(spelled[bank], full) is not None:
                place = source.place((*where, *short))
                raise ConfigError(
                    f"{place} is set twice: it is the short form of {'.'.join(full)}",
                    metadata={"key": ".".join((*where, *short))},
                )
            spelled[bank] = merge(without(spelled[bank], short), nested(full, found))
            line = source.line((*where, *short))
            if line is not None:
                lines[*where, *full] = line
    return {**values, "banks": spelled}, SourceLines(source.name, lines)


def check_shared(whole: BaseModel, banks: Mapping[str, BaseModel], source: SourceLines) -> None:
    """Refuse per-bank values of server-wide keys.

    Raises:
        ConfigError: A bank overrides such a key; the message has the key and its line.
    """
    for bank, own in banks.items():
        for path in SHARED:
            if attribute(own, path) != attribute(whole, path):
                key = ("banks", bank, *path)
                raise ConfigError(
                    f"{source.place(key)} cannot be set per bank; set {'.'.join(path)}",
                    metadata={"key": ".".join(key)},
                )


def complete(values: Mapping[str, Any]) -> dict[str, Any]:
    """Complete the values of each bank with those of its profile and the global ones."""
    banks = values.get("banks")
    if not isinstance(banks, Mapping):
        return dict(values)
    whole = {name: plain(values[name]) for name in BankSettings.model_fields if name in values}
    templates = readable(values.get("bank_templates"))
    spoken: dict[str, Any] = {}
    for bank, own in banks.items():
        said = plain(own)
        if isinstance(said, Mapping):
            template = _template(templates, str(bank))
            profile = said.get("profile") or (template.profile if template else None)
            values_of_kind = {**profile_values(profile), **_own_zone(template)}
            spoken[bank] = {**merge(merge(whole, values_of_kind), said), "profile": profile}
        else:
            spoken[bank] = own
    return {**values, "banks": spoken}


def over_template(whole: BankSettings, template: BankTemplateSettings) -> BankSettings:
    """Return the settings of a bank with a template and no settings of its own."""
    values = merge(whole.model_dump(), {**profile_values(template.profile), **_own_zone(template)})
    return BankSettings.model_validate({**values, "profile": template.profile})


def _own_zone(template: BankTemplateSettings | None) -> dict[str, Any]:
    """Return the time zone of a template, if it has one, as a bank's settings have it."""
    return {"time_zone": template.time_zone} if template is not None and template.time_zone else {}


def _template(templates: Mapping[str, BankTemplateSettings], bank_id: str) -> BankTemplateSettings | None:
    """Return the bank's template."""
    match = closest({name: template.name_pattern for name, template in templates.items()}, bank_id)
    return None if match is None else templates[match[0]]


def at(values: object, path: KeyPath) -> object:
    """Return the value at a path, or None."""
    for part in path:
        values = values.get(part) if isinstance(values, Mapping) else None
    return values


def without(values: Mapping[str, Any], path: KeyPath) -> dict[str, Any]:
    """Return a copy without the value at a path."""
    name, *below = path
    if below:
        return {**values, name: without(values[name], tuple(below))}
    return {key: value for key, value in values.items() if key != name}


def nested(path: KeyPath, value: object) -> dict[str, Any]:
    """Return a mapping with a single value at a path."""
    for part in reversed(path):
        value = {part: value}
    return {} if not isinstance(value, dict) else value


def attribute(section: BaseModel, path: KeyPath) -> object:
    """Return the value of a setting."""
    found: object = section
    for part in path:
        found = getattr(found, part)
    return found


def plain(value: object) -> Any:  # noqa: ANN401 - what it was made from
    """Convert a section to a mapping; return other values unchanged."""
    return value.model_dump() if isinstance(value, Section) else value
