"""The protocol of a store that finds memories by the names in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from astrocyte.model import Bank


class EntityStore(Protocol):
    """The names of all banks, kept with the versions that hold them."""

    def naming(self, bank: Bank, names: Sequence[str], *, as_of: int | None, most: int) -> Mapping[str, Sequence[str]]:
        """The ids of the memories that name each entity, for entities named by one to ``most`` memories.

        Args:
            bank: Where.
            names: As `astrocyte.model.Entity.folded` has them.
            as_of: The versions of that time; None for the current ones.
            most: What more memories name than this tells none of them from the others, and is left out.
        """
