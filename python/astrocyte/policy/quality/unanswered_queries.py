"""Queries that recalls did not answer, for audits of coverage: gathered, screened, and stored some time later.

Only recalls of one bank without filters count: a filter may exclude what the bank knows. What came in the last half
minute is lost if the process is killed.
"""

from __future__ import annotations

import contextlib
import threading
from collections import OrderedDict, defaultdict
from collections.abc import Awaitable, Callable, Sequence

from astrocyte.errors import BankNotFound, PiiRejected, ProviderUnavailable
from astrocyte.model import Bank, RecallQuery, RecallResult
from astrocyte.stores.activity import ActivityStore, Unanswered
from astrocyte.stores.records import IndexBatch

# Queries that wait to be stored, over all banks; of more, the oldest are dropped.
MOST_WAITING = 10_000
# A longer text is a document that is looked for, not a question.
MOST_CHARS = 512

# The texts of a bank as they may be stored.
Screen = Callable[[str, Sequence[str]], Awaitable[Sequence[str]]]
# Parts of a query that exclude memories, or ask for another time than now.
_NARROWING = (
    "tags",
    "fact_types",
    "metadata",
    "session_id",
    "time_range",
    "as_of",
    "valid_at",
    "memory_ids",
    "external_context",
)


class UnansweredQueries:
    """Gathers queries. Safe to use from any thread.

    Args:
        store: Where they are stored.
        screen: Judges what may be stored.
        most: Queries that a bank keeps; 0 keeps none.
        clock: Milliseconds since the epoch.
    """

    def __init__(self, store: ActivityStore, screen: Screen, most: int, clock: Callable[[], int]) -> None:
        self._store = store
        self._screen = screen
        self._most = most
        self._clock = clock
        self._lock = threading.Lock()
        self._waiting: OrderedDict[tuple[int, str], tuple[Bank, Unanswered]] = OrderedDict()
        # Erasures by bank: what came before one is not stored after it.
        self._erasures: defaultdict[int, int] = defaultdict(int)

    def note(self, bank: Bank, query: RecallQuery, result: RecallResult) -> None:
        """Gather a query, if it was not answered and asks for all of the bank."""
        if not self._most or (result.hits and not result.abstain) or any(getattr(query, name) for name in _NARROWING):
            return
        text = " ".join(query.query.split())
        if not text or len(text) > MOST_CHARS:
            return
        with self._lock:
            _, known = self._waiting.pop((bank.key, text), (bank, Unanswered(text, 0, 0)))
            self._waiting[bank.key, text] = (bank, Unanswered(text, known.count + 1, self._clock()))
            while len(self._waiting) > MOST_WAITING:
                self._waiting.popitem(last=False)

    def on_commit(self, batch: IndexBatch) -> None:
        """Forget the queries of a bank in which something was erased: they may quote it."""
        if batch.erased:
            self.forget(batch.bank.key)

    def forget(self, bank_key: int) -> None:
        """Keep nothing of a bank."""
        with self._lock:
            self._erasures[bank_key] += 1
            for key in [key for key in self._waiting if key[0] == bank_key]:
                del self._waiting[key]

    async def flush(self) -> None:
        """Store what was gathered."""
        with self._lock:
            waiting, self._waiting = self._waiting, OrderedDict()
            erasures = {key: self._erasures[key] for key, _ in waiting}
        banks: dict[int, tuple[Bank, list[Unanswered]]] = {}
        for bank, one in waiting.values():
            banks.setdefault(bank.key, (bank, []))[1].append(one)
        for key, (bank, found) in banks.items():
            queries = await self._screened(bank, found)
            # A bank that is gone keeps nothing.
            with contextlib.suppress(BankNotFound):
                await self._store.note_unanswered(
                    bank,
                    queries,
                    most=self._most,
                    is_fresh=lambda: self._erasures[key] == erasures[key],  # noqa: B023 - called before the next one
                )

    async def _screened(self, bank: Bank, found: Sequence[Unanswered]) -> dict[str, Unanswered]:
        """The queries as they may be stored; those that may not are left out."""
        kept: dict[str, Unanswered] = {}
        for one in found:
            try:
                (text,) = await self._screen(bank.bank_id, [one.query])
            except (PiiRejected, ProviderUnavailable):
                continue
            known = kept.get(text, Unanswered(text, 0, 0))
            kept[text] = Unanswered(text, known.count + one.count, max(known.asked_at, one.asked_at))
        return kept
