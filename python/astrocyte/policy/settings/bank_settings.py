"""The settings of one bank: the whole's, with its profile and its own block of `banks:` laid over them.

    overrides = Overrides(settings)
    overrides.of("sensitive-customer").homeostasis.retain_max_content_bytes

A bank may override any block that is a field of `astrocyte.config.banks.BankSettings`; a new block takes part by a
field there. Its profile is the one that it names, else that of its template
(`astrocyte.policy.settings.bank_templates`). Unknown keys, and values out of range, are refused when the settings are
loaded, with their name, line and the nearest key.
Everything is resolved once: a look-up here is one of a dictionary, on every call. Settings never change in a running
process; new ones come as a new `Overrides`, and that is an epoch.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from astrocyte.config import BankSettings, Settings
from astrocyte.config.banks import over_profile
from astrocyte.policy.settings.bank_templates import Templates


class Overrides:
    """Which settings hold for which bank, in every tenant.

    Args:
        settings: The whole's, with its ``banks`` and ``bank_templates``.
    """

    def __init__(self, settings: Settings) -> None:
        shared = [name for name in BankSettings.model_fields if name in Settings.model_fields]
        self._whole = BankSettings(**{name: getattr(settings, name) for name in shared})
        self._banks = dict(settings.banks)
        self._found = Templates(settings)
        self._templates = {
            name: over_profile(self._whole, template.profile) for name, template in settings.bank_templates.items()
        }

    def of(self, bank_id: str) -> BankSettings:
        """All blocks as they hold for a bank."""
        own = self._banks.get(bank_id)
        if own is not None:
            return own
        template = self._found.of(bank_id)
        return self._whole if template is None else self._templates[template.name]

    def each(self, bank_ids: Iterable[str]) -> Collection[BankSettings]:
        """As `of` each of the banks, but once what holds for several."""
        if not self._banks and not self._templates:
            return (self._whole,)
        return list({id(own): own for own in map(self.of, bank_ids)}.values())

    def template(self, bank_id: str) -> str:
        """The name of a bank's template; empty where it has none."""
        template = self._found.of(bank_id)
        return "" if template is None else template.name

    @property
    def every(self) -> Collection[BankSettings]:
        """The whole's blocks, and those of each bank and template that has its own."""
        return (self._whole, *self._banks.values(), *self._templates.values())

    @property
    def templates(self) -> Mapping[str, BankSettings]:
        """All blocks as they hold for the banks of each template."""
        return self._templates
