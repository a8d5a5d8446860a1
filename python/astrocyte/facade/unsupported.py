"""Operations of the API reference that this version does not have."""

from __future__ import annotations

from typing import NoReturn

from astrocyte.errors import CapabilityNotSupported


class Unsupported:
    """Refuses, by name, what the API reference describes and this version does not have."""

    def set_mental_model_store(self, store: object) -> NoReturn:
        """Refuse: mental models are kept in the store of the memories.

        Raises:
            CapabilityNotSupported: Always.
        """
        del store
        _refuse("set_mental_model_store", "other stores of mental models; create_mental_model needs none")


def _refuse(method: str, feature: str) -> NoReturn:
    raise CapabilityNotSupported(
        f"Astrocyte.{method} is not available: this version has no {feature}", metadata={"capability": method}
    )
