"""The settings of one bank: the whole's, with its profile and its own block of `banks:` laid over them.

    overrides = Overrides(settings)
    overrides.of["sensitive-customer"].homeostasis.retain_max_content_bytes

A bank may override any block that is a field of `astrocyte.config.banks.BankSettings`; a new block takes part by a
field there. Its profile is the one that it names, else that of its template
(`astrocyte.policy.settings.bank_templates`). Unknown keys, and values out of range, are refused when the settings are
loaded, with their name, line and the nearest key. Settings never change in a running process.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from astrocyte.config import BankSettings, Settings
from astrocyte.config.banks import over_template
from astrocyte.config.loading.per_bank import PerBank
from astrocyte.policy.settings.bank_templates import Templates


class Overrides:
    """The settings of each bank, in every tenant.

    Args:
        settings: The whole's, with its ``banks`` and ``bank_templates``.

    Attributes:
        of: All blocks as they hold for a bank, by its id.
        templates: All blocks as they hold for the banks of each template.
    """

    def __init__(self, settings: Settings) -> None:
        shared = [name for name in BankSettings.model_fields if name in Settings.model_fields]
        self._whole = BankSettings(**{name: getattr(settings, name) for name in shared})
        self._banks = dict(settings.banks)
        self._found = Templates(settings)
        self.templates: Mapping[str, BankSettings] = {
            name: over_template(self._whole, template) for name, template in settings.bank_templates.items()
        }
        self.of = PerBank(self._find)

    def _find(self, bank_id: str) -> BankSettings:
        own = self._banks.get(bank_id)
        if own is not None:
            return own
        template = self._found.of[bank_id]
        return self._whole if template is None else self.templates[template.name]

    def each(self, bank_ids: Iterable[str]) -> Collection[BankSettings]:
        """The settings of each of the banks, but once those that hold for several."""
        if not self._banks and not self.templates:
            return (self._whole,)
        return list({id(own): own for own in [self.of[bank_id] for bank_id in bank_ids]}.values())

    def template(self, bank_id: str) -> str:
        """The name of a bank's template; empty where it has none."""
        template = self._found.of[bank_id]
        return "" if template is None else template.name

    @property
    def every(self) -> Collection[BankSettings]:
        """The whole's blocks, and those of each bank and template that has its own."""
        return (self._whole, *self._banks.values(), *self.templates.values())
