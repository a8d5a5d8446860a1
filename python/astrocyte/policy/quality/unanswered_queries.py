"""Queries that recalls did not answer, for audits of coverage: gathered, screened, and stored some time later.

Only recalls of one bank without filters count: a filter may exclude what the bank knows. What came in the last ten
seconds is lost if the process is killed.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import OrderedDict, defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence

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
# Parts of a query that exclude memories, ask for another time than now, or ask for letters and not about a topic.
_NARROWING = (
    "tags",
    "fact_types",
    "metadata",
    "session_id",
    "time_range",
    "retained_range",
    "as_of",
    "valid_at",
    "memory_ids",
    "external_context",
    "require_phrases",
    "expand_prefixes",
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
        self._flushing = asyncio.Lock()

    def note(self, bank: Bank, query: RecallQuery, result: RecallResult) -> None:
        """Gather a query, if it was not answered and asks for all of the bank."""
        if not self._most or (result.hits and not result.abstain) or any(getattr(query, name) for name in _NARROWING):
            return
        text = " ".join(query.query.split())
        if not text or len(text) > MOST_CHARS:
            return
        with self._lock:
            _, known = self._waiting.pop((bank.key, text), (bank, Unanswered(text, 0, 0)))
            self._waiting[bank.key, text] = (bank, _sum(known, Unanswered(text, 1, self._clock())))
            self._drop_oldest()

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
        """Store what was gathered; what cannot be stored or judged now is kept. A caller that gives up does not end it.

        Raises:
            StoreError, RateLimited: It could not be stored; the next flush tries again.
        """
        await asyncio.shield(self._flush())

    async def _flush(self) -> None:
        async with self._flushing:
            with self._lock:
                waiting, self._waiting = self._waiting, OrderedDict()
                erasures = {key: self._erasures[key] for key, _ in waiting}
            banks: dict[int, tuple[Bank, list[Unanswered]]] = {}
            for bank, one in waiting.values():
                banks.setdefault(bank.key, (bank, []))[1].append(one)
            try:
                for key in list(banks):
                    if await self._stored(*banks[key], erasures[key]):
                        del banks[key]
            finally:
                self._put_back(banks, erasures)

    async def _stored(self, bank: Bank, found: Sequence[Unanswered], erasures: int) -> bool:
        """Store the queries of a bank; False if they cannot be judged now."""
        try:
            queries = await self._screened(bank, found)
        except ProviderUnavailable:
            return False
        # A bank that is gone keeps nothing.
        with contextlib.suppress(BankNotFound):
            await self._store.note_unanswered(
                bank, queries, most=self._most, is_fresh=lambda: self._erasures[bank.key] == erasures
            )
        return True

    def _put_back(self, banks: Mapping[int, tuple[Bank, Sequence[Unanswered]]], erasures: Mapping[int, int]) -> None:
        """Keep the queries of banks in which nothing was erased meanwhile, as those that were asked first."""
        with self._lock:
            newer, self._waiting = self._waiting, OrderedDict()
            for key, (bank, found) in banks.items():
                if self._erasures[key] == erasures[key]:
                    self._waiting.update(((key, one.query), (bank, one)) for one in found)
            for name, (bank, one) in newer.items():
                _, known = self._waiting.pop(name, (bank, Unanswered(one.query, 0, 0)))
                self._waiting[name] = (bank, _sum(known, one))
            self._drop_oldest()

    def _drop_oldest(self) -> None:
        while len(self._waiting) > MOST_WAITING:
            self._waiting.popitem(last=False)

    async def _screened(self, bank: Bank, found: Sequence[Unanswered]) -> dict[str, Unanswered]:
        """The queries as they may be stored; those that may not are left out.

        Raises:
            ProviderUnavailable: What judges them is away.
        """
        kept: dict[str, Unanswered] = {}
        for one in found:
            try:
                (text,) = await self._screen(bank.bank_id, [one.query])
            except PiiRejected:
                continue
            kept[text] = _sum(kept.get(text, Unanswered(text, 0, 0)), Unanswered(text, one.count, one.asked_at))
        return kept


def _sum(one: Unanswered, other: Unanswered) -> Unanswered:
    return Unanswered(one.query, one.count + other.count, max(one.asked_at, other.asked_at))
