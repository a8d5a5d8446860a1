"""The words of a bank that begin with the prefixes of a query.

The core keeps the words of a bank in memory from the first search that needs them: it gets all texts once, follows the
commits afterwards, and drops all words after an erasure. Its index knows which words memories hold. No file has them.

One thread reads the texts of a bank, whoever asks. Calls wait for it on the event loop, where they hold no thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor
from functools import partial
from typing import NamedTuple

from astrocyte.model import Bank, PrefixExpansion, RecallQuery
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

    prefix: str
    words: list[str]
    total: int
    cut: bool


class PrefixFinding(NamedTuple):
    """The words of each prefix of a query in a bank."""

    bank_id: str
    prefixes: list[PrefixWords]

    @property
    def unions(self) -> list[list[str]]:
        """The words, as the core is asked for them."""
        return [prefix.words for prefix in self.prefixes]

    @property
    def expansions(self) -> tuple[PrefixExpansion, ...]:
        """The words, for a trace."""
        return tuple(PrefixExpansion(one.prefix, self.bank_id, tuple(one.words), one.total) for one in self.prefixes)

    @property
    def told(self) -> str:
        """The numbers, for the plan of a trace. The words are content, which barriers may keep from the caller."""
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
        executor: Where they are read.
        charge: Counts the memory of a bank's index anew, on the thread that has added words.
    """

    def __init__(self, store: MemoryStore, executor: Executor, charge: Callable[[Bank], None]) -> None:
        self._store = store
        self._executor = executor
        self._charge = charge
        # The readings of texts that are under way, by the key of their bank.
        self._readings: dict[int, asyncio.Future[None]] = {}

    async def prepare(self, bank: Bank, index: BankIndex) -> None:
        """Read the texts of a bank, unless its words are kept: seconds where it is large.

        Raises:
            StoreError: The texts cannot be read.
        """
        while not index.core.has_spellings():
            reading = self._readings.get(bank.key)
            # One that has ended stays until its callback: waiting for it would not let the event loop go on.
            if reading is None or reading.done():
                loop = asyncio.get_running_loop()
                reading = loop.run_in_executor(self._executor, self._read, bank, index)
                self._readings[bank.key] = reading
                reading.add_done_callback(partial(self._done, bank.key))
            # A call that gives up must not stop the reading for the others.
            await asyncio.shield(reading)

    def find(self, bank: Bank, index: BankIndex, query: RecallQuery) -> PrefixFinding:
        """The words of the bank for each prefix of the query.

        They are there after `prepare`. Where an erasure has dropped them since, this thread reads the texts.
        """
        past = query.as_of is not None or query.include_archived
        prefixes = prefixes_of(query)
        return PrefixFinding(bank.bank_id, [self._words(bank, index, prefix, past=past) for prefix in prefixes])

    def _words(self, bank: Bank, index: BankIndex, prefix: str, *, past: bool) -> PrefixWords:
        while (found := index.core.expand(prefix, MOST_WORDS, past=past)) is None:
            self._read(bank, index)
        return PrefixWords(prefix, *found)

    def _read(self, bank: Bank, index: BankIndex) -> None:
        """Give the core the texts of all versions, unless an erasure drops them meanwhile."""
        with index.spelling:
            if index.core.has_spellings():
                return
            # Before the first page: what is committed after it comes from the commits.
            generation = index.core.begin_spellings()
            for versions in self._store.iter_versions(index.space_of(bank), batch_size=READ_AT_ONCE):
                texts = [text for version in versions if (text := _text(version)) is not None]
                if not index.core.add_spellings(generation, texts):
                    return
            if index.core.finish_spellings(generation):
                self._charge(bank)

    def _done(self, bank_key: int, reading: asyncio.Future[None]) -> None:
        if self._readings.get(bank_key) is reading:
            del self._readings[bank_key]
        if not reading.cancelled():
            # Who waited for it is told; without anyone, nobody has to be.
            reading.exception()


def _text(version: VersionRecord) -> str | None:
    """The text of a version as the index has it; None where the index has none."""
    memory = version.memory
    try:
        return indexed_text(memory.content, memory.speaker, memory.occurred_at)
    except MALFORMED:
        return None
