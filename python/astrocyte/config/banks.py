"""What may differ from bank to bank, and how a bank's own values are laid over those of the whole."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from astrocyte.config.access import BankGrant
from astrocyte.config.homeostasis import HomeostasisSettings
from astrocyte.config.section import Section
from astrocyte.config.signal_quality import SignalQualitySettings
from astrocyte.config.source import merge


class BankDefaultSettings(Section):
    """How banks come to be."""

    auto_create: bool = Field(True, description="The first retain makes a bank that does not exist.")


class BankSettings(Section):
    """The settings of one bank. What a bank does not say itself, it takes from the block of the same name at the top.

    A block is added by one field here, of the type and name that it has in `Settings`; what `Settings` has not, such as
    ``access``, is the bank's alone.
    """

    homeostasis: HomeostasisSettings = HomeostasisSettings()
    signal_quality: SignalQualitySettings = SignalQualitySettings()
    access: tuple[BankGrant, ...] = Field((), description="Who may do what in this bank; as in access_grants.")


def complete(values: Mapping[str, Any]) -> dict[str, Any]:
    """Values of `Settings` in which each bank says everything: its own values laid over those of the whole."""
    banks = values.get("banks")
    if not isinstance(banks, Mapping):
        return dict(values)
    whole = {name: plain(values[name]) for name in BankSettings.model_fields if name in values}
    return {
        **values,
        "banks": {
            bank: merge(whole, plain(own)) if isinstance(plain(own), Mapping) else own for bank, own in banks.items()
        },
    }


def plain(value: object) -> Any:  # noqa: ANN401 - what it was made from
    """A section as the mapping that makes it; anything else as it is."""
    return value.model_dump() if isinstance(value, Section) else value
