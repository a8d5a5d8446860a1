"""The settings of one bank: the whole's, with the bank's own block of `banks:` laid over them.

    overrides = Overrides(settings)
    overrides.of("sensitive-customer").homeostasis.retain_max_content_bytes

A bank may override any block that is a field of `astrocyte.config.banks.BankSettings`; a new block takes part by a
field there. Unknown keys, and values out of range, are refused when the settings are loaded, with their name, line and
the nearest key. Everything is resolved then too, once: a look-up here is one of a dictionary, on every call. Settings
never change in a running process; new ones come as a new `Overrides`, and that is an epoch.
"""

from __future__ import annotations

from astrocyte.config import BankSettings, Settings


class Overrides:
    """Which settings hold for which bank, in every tenant.

    Args:
        settings: The whole's, with its ``banks``.
    """

    def __init__(self, settings: Settings) -> None:
        shared = [name for name in BankSettings.model_fields if name in Settings.model_fields]
        self._whole = BankSettings(**{name: getattr(settings, name) for name in shared})
        self._banks = dict(settings.banks)

    def of(self, bank_id: str) -> BankSettings:
        """All blocks as they hold for a bank."""
        return self._banks.get(bank_id, self._whole)
