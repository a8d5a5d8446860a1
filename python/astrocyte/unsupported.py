"""Operations of the API reference that this version does not have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from astrocyte.errors import CapabilityNotSupported


class Unsupported:
    """Refuses, by name, what the API reference describes and this version does not have."""

    async def audit(self, scope: str, bank_id: str, **options: object) -> NoReturn:
        """Refuse: gaps of a bank are not analysed. The audit trail is `list_audit_events`.

        Raises:
            CapabilityNotSupported: Always.
        """
        del scope, bank_id, options
        _refuse("audit", "gap analysis of a bank")

    async def compile(self, bank_id: str, *, scope: str | None = None) -> NoReturn:
        """Refuse: memories are not compiled into wiki pages.

        Raises:
            CapabilityNotSupported: Always.
        """
        del bank_id, scope
        _refuse("compile", "wiki pages")

    async def consolidate(self, bank_id: str, **options: object) -> NoReturn:
        """Refuse: memories are not consolidated after they are retained.

        Raises:
            CapabilityNotSupported: Always.
        """
        del bank_id, options
        _refuse("consolidate", "consolidation")

    async def graph_search(self, query: str, bank_id: str, **options: object) -> NoReturn:
        """Refuse: entities are searched by recall only.

        Raises:
            CapabilityNotSupported: Always.
        """
        del query, bank_id, options
        _refuse("graph_search", "entity graph queries")

    async def graph_neighbors(self, entity_ids: Sequence[str], bank_id: str, **options: object) -> NoReturn:
        """Refuse: as `graph_search`.

        Raises:
            CapabilityNotSupported: Always.
        """
        del entity_ids, bank_id, options
        _refuse("graph_neighbors", "entity graph queries")

    async def export_bank(self, bank_id: str, path: str, **options: object) -> NoReturn:
        """Refuse: banks are not exported as archives.

        Raises:
            CapabilityNotSupported: Always.
        """
        del bank_id, path, options
        _refuse("export_bank", "memory archives; page through list() instead")

    async def import_bank(self, bank_id: str, path: str, **options: object) -> NoReturn:
        """Refuse: banks are not imported from archives.

        Raises:
            CapabilityNotSupported: Always.
        """
        del bank_id, path, options
        _refuse("import_bank", "memory archives; call retain_many, or `astrocyte import` for JSON Lines")

    def set_mental_model_store(self, store: object) -> NoReturn:
        """Refuse: there are no mental models.

        Raises:
            CapabilityNotSupported: Always.
        """
        del store
        _refuse("set_mental_model_store", "mental models")


def _refuse(method: str, feature: str) -> NoReturn:
    raise CapabilityNotSupported(
        f"Astrocyte.{method} is not available: this version has no {feature}", metadata={"capability": method}
    )
