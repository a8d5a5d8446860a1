"""The memories that hold the phrases of a query.

The index knows the words of a memory and not their order. It proposes the memories that pass the query's filter and
hold all words of every phrase, those with the best keyword score of the words first; their texts are compared with the
phrases. Both tiers propose the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from astrocyte.core import RecallRequest, holds_phrases
from astrocyte.model import Bank, RecallQuery
from astrocyte.pipelines.index.bank_index import BankIndex
from astrocyte.pipelines.query.phrases import phrases_of
from astrocyte.stores.protocols import MemoryStore
from astrocyte.stores.records import WHOLE, Visibility

# Memories of a bank whose texts are compared: a phrase of frequent words would read all texts of the bank.
MOST_COMPARED = 2_000


class PhraseFinding(NamedTuple):
    """The memories that hold all phrases, and how many were compared of those with the words in any order."""

    memory_ids: list[bytes]
    compared: int
    candidates: int

    @property
    def told(self) -> str:
        """The numbers, for a trace."""
        return f"; phrases: {len(self.memory_ids)} of {self.compared} memories with the words, {self.candidates} in all"

    @property
    def warnings(self) -> tuple[str, ...]:
        """A sentence where not all candidates were compared."""
        if self.compared == self.candidates:
            return ()
        numbers = f"{self.compared} of {self.candidates} memories"
        return (f"phrases were looked for in {numbers} that hold their words; narrow the filter or name rarer words",)


class PhraseSearch:
    """Finds memories by phrases.

    Args:
        store: Reads texts.
    """

    def __init__(self, store: MemoryStore) -> None:
        self._store = store

    def find(
        self, bank: Bank, index: BankIndex, query: RecallQuery, visibility: Visibility, filters: Mapping[str, Any]
    ) -> PhraseFinding:
        """The memories of a bank that meet the filters, arguments of a request to the core, and hold the phrases.

        Raises:
            ValidationError: The query has no phrase, or one that cannot be searched.
        """
        phrases = phrases_of(query.query)
        proposed, total = index.core.phrase_candidates(RecallRequest(**filters), phrases, MOST_COMPARED)
        rows = self._store.hydrate(bank, [(key, WHOLE) for key, _ in proposed], visibility)
        held = holds_phrases([row.content for row in rows], phrases)
        keys = {row.row_key for row, holds in zip(rows, held, strict=True) if holds}
        return PhraseFinding([identity for key, identity in proposed if key in keys], len(proposed), total)
