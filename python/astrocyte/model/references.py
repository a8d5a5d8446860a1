"""Memories of one bank that are relevant to others: what their metadata says under one key."""

from __future__ import annotations

from dataclasses import dataclass

# Holds the ids of the other banks, with commas between, which no bank id has.
ALSO_RELEVANT_TO = "also_relevant_to"
SEPARATOR = ","
# Banks that one memory may name.
MOST_NAMED = 32


@dataclass(frozen=True, slots=True)
class Reference:
    """A current memory, by its row, that names other banks of its tenant."""

    row_key: int
    tenant: str
    bank_id: str
    memory_id: str
    named: str

    @property
    def targets(self) -> tuple[str, ...]:
        """The banks that it names."""
        return tuple(filter(None, (part.strip() for part in self.named.split(SEPARATOR))))
