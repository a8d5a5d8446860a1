"""The template of each bank, and the permissions that it gives.

A template is found by a bank's name alone, so what is said of a bank is the same whether it exists or not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from astrocyte.config import BankTemplateSettings, Settings
from astrocyte.config.loading.per_bank import PerBank
from astrocyte.config.templates import closest, fill
from astrocyte.model import NO_PERMISSIONS, BankTemplate, Permission, TemplateGrant
from astrocyte.policy.glob_patterns import ANY, matches
from astrocyte.policy.permissions import parse_permissions


@dataclass(frozen=True, slots=True)
class Template:
    """A template as it holds for one bank: its grants name principals, or patterns of these."""

    name: str
    settings: BankTemplateSettings
    grants: Sequence[tuple[str, frozenset[Permission]]]

    def permissions(self, principal: str) -> frozenset[Permission]:
        """The permissions that the template gives the principal in the bank."""
        return NO_PERMISSIONS.union(*(held for pattern, held in self.grants if matches(pattern, principal)))


class Templates:
    """The templates of the configuration, which hold in every tenant."""

    def __init__(self, settings: Settings) -> None:
        self._templates = settings.bank_templates
        self._patterns = {name: template.name_pattern for name, template in settings.bank_templates.items()}
        # The template of a bank: the one whose pattern says most of its id.
        self.of: PerBank[Template | None] = PerBank(self._find)

    def listed(self) -> list[BankTemplate]:
        """All of them, as they stand in the configuration."""
        return [
            BankTemplate(
                name,
                template.name_pattern,
                template.profile or "",
                template.auto_create,
                tuple(TemplateGrant(one.principal, parse_permissions(one.permissions)) for one in template.access),
            )
            for name, template in self._templates.items()
        ]

    def _find(self, bank_id: str) -> Template | None:
        if not self._patterns:
            return None
        match = closest(self._patterns, bank_id)
        if match is None:
            return None
        name, bound = match
        settings = self._templates[name]
        # What a bank's name can hold is no pattern, so a principal that it fills stands for itself.
        grants = [(fill(one.principal, bound, ANY), parse_permissions(one.permissions)) for one in settings.access]
        return Template(name, settings, grants)
