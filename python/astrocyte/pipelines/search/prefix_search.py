"""The words of a bank that begin with the prefixes of a query.

The core keeps the words of a bank in memory from the first search that needs them: it gets all texts once, follows the
commits afterwards, and drops all words after an erasure. Its index knows which words memories hold. No file has them.
"""

from __future__ import annotations

from typing import NamedTuple

from astrocyte.model import Bank, RecallQuery
from astrocyte.pipelines.index.bank_index import MALFORMED, BankIndex
from astrocyte.pipelines.index.rows import indexed_text
from astrocyte.pipelines.query.prefixes import prefixes_of
from astrocyte.stores.protocols import MemoryStore
from astrocyte.stores.records import VersionRecord

# Words of one prefix that are searched: their postings are read for each recall. They are those that most memories
# hold, so what is left out is rare.
MOST_WORDS = 64
# Versions whose texts are read at once.
READ_AT_ONCE = 1_000


class PrefixWords(NamedTuple):
    """The words of a prefix, how many the bank has in all, and whether it has more words than are kept."""

    words: list[str]
    total: int
    cut: bool


class PrefixFinding(NamedTuple):
    """The words of each prefix of a query."""

    prefixes: list[PrefixWords]

    @property
    def unions(self) -> list[list[str]]:
        """The words, as the core is asked for them."""
        return [prefix.words for prefix in self.prefixes]

    @property
    def told(self) -> str:
        """The numbers, for a trace. The words are content, which barriers may keep from the caller."""
        return f"; prefixes: {', '.join(f'{len(one.words)} of {one.total} words' for one in self.prefixes)}"

    @property
    def warnings(self) -> tuple[str, ...]:
        """A sentence for each prefix of which some words were left out."""
        left_out = [
            f"prefix {number} begins {one.total} words of the bank; the {len(one.words)} that most memories hold were "
            "searched, so write more of its letters"
            for number, one in enumerate(self.prefixes, 1)
            if len(one.words) < one.total
        ]
        if any(one.cut for one in self.prefixes):
            left_out.append("the bank has more words than are kept for prefixes, so some may be missing")
        return tuple(left_out)


class PrefixSearch:
    """Expands prefixes.

    Args:
        store: Reads texts.
    """

    def __init__(self, store: MemoryStore) -> None:
        self._store = store

    def find(self, bank: Bank, index: BankIndex, query: RecallQuery) -> PrefixFinding:
        """The words of the bank for each prefix of the query; to read the texts of a large bank takes seconds."""
        past = query.as_of is not None or query.include_archived
        return PrefixFinding([self._words(bank, index, prefix, past=past) for prefix in prefixes_of(query)])

    def _words(self, bank: Bank, index: BankIndex, prefix: str, *, past: bool) -> PrefixWords:
        while (found := index.core.expand(prefix, MOST_WORDS, past=past)) is None:
            # One thread reads the texts; the others wait for it. An erasure meanwhile begins it anew.
            with index.spelling:
                if index.core.expand(prefix, 0) is None:
                    self._read(bank, index)
        return PrefixWords(*found)

    def _read(self, bank: Bank, index: BankIndex) -> None:
        """Give the core the texts of all versions, unless an erasure drops them meanwhile."""
        # Before the first page: what is committed after it comes from the commits.
        generation = index.core.begin_spellings()
        for versions in self._store.iter_versions(index.space_of(bank), batch_size=READ_AT_ONCE):
            texts = [text for version in versions if (text := _text(version)) is not None]
            if not index.core.add_spellings(generation, texts):
                return
        index.core.finish_spellings(generation)


def _text(version: VersionRecord) -> str | None:
    """The text of a version as the index has it; None where the index has none."""
    memory = version.memory
    try:
        return indexed_text(memory.content, memory.speaker, memory.occurred_at)
    except MALFORMED:
        return None
