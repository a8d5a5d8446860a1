"""Counts of calls to banks by day, for their health, and queries that had no answer, for audits of coverage.

A commit for each recall would cost it more than the search, so both are gathered and stored some time later. What came
in the last half minute is lost if the process is killed.
"""

from __future__ import annotations

import contextlib
import threading
from collections import OrderedDict, defaultdict
from collections.abc import Awaitable, Callable, Sequence

from astrocyte.errors import BankNotFound, PiiRejected, ProviderUnavailable
from astrocyte.model import Bank, RecallQuery, RecallResult, ReflectResult, RetainItem, RetainResult
from astrocyte.stores.activity import ActivityStore, BankName, Counts, Days, Unanswered
from astrocyte.stores.records import IndexBatch

# Days and banks of which counts are kept: two weeks show a trend, and all of it together takes a few megabytes.
KEPT_DAYS = 14
KEPT_BANKS = 2_000
DAY_MS = 86_400_000
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


class BankActivity:
    """The counts of the banks that were used last, numbers alone. Safe to use from any thread.

    Args:
        clock: Milliseconds since the epoch.
        store: Where they are stored; None keeps them in memory.
    """

    def __init__(self, clock: Callable[[], int], store: ActivityStore | None = None) -> None:
        self._clock = clock
        self._store = store
        self._lock = threading.Lock()
        # Not stored yet: by tenant and bank, then by the number of the day since the epoch, oldest first.
        self._days: OrderedDict[BankName, Days] = OrderedDict()

    def __len__(self) -> int:
        return len(self._days)

    def retained(self, tenant: str, bank_id: str, items: Sequence[RetainItem], results: Sequence[RetainResult]) -> None:
        """Count items that passed the barriers, with what became of each."""
        with self._lock:
            today = self._today(tenant, bank_id)
            for item, result in zip(items, results, strict=True):
                today.retains += 1
                today.duplicates += result.deduplicated
                today.characters += len(item.content)

    def recalled(self, tenant: str, bank_id: str, result: RecallResult) -> None:
        """Count a recall of this bank alone."""
        with self._lock:
            today = self._today(tenant, bank_id)
            today.recalls += 1
            if result.hits:
                today.recalls_with_hits += 1
                today.scored += result.confidence or 0.0

    def reflected(self, tenant: str, bank_id: str, result: ReflectResult) -> None:
        """Count a reflect on this bank alone; it succeeded if it did not abstain."""
        with self._lock:
            today = self._today(tenant, bank_id)
            today.reflects += 1
            today.answered += not result.abstained

    def days(self, tenant: str, bank_id: str) -> Days:
        """The counts of a bank by the number of the day since the epoch, oldest first. Reads the store."""
        name, since = (tenant, bank_id), self._since()
        found = {} if self._store is None else self._store.days(name, since=since)
        with self._lock:
            return _merged(found, self._days.get(name, {}), since)

    def recent(self) -> dict[BankName, Days]:
        """The counts of the banks that were used last, as `days`. Reads the store."""
        since = self._since()
        found = {} if self._store is None else self._store.recent(since=since, limit=KEPT_BANKS)
        with self._lock:
            for name, days in self._days.items():
                found[name] = _merged(found.get(name, {}), days, since)
        return found

    def forget(self, tenant: str, bank_id: str) -> None:
        """A bank is gone; one that is made by its name later is another one."""
        with self._lock:
            self._days.pop((tenant, bank_id), None)

    async def flush(self) -> None:
        """Store what was counted."""
        if self._store is None or not self._days:
            return
        with self._lock:
            counted, self._days = self._days, OrderedDict()
        await self._store.add(counted, since=self._since())

    def _since(self) -> int:
        """The last day whose counts are not kept."""
        return self._clock() // DAY_MS - KEPT_DAYS

    def _today(self, tenant: str, bank_id: str) -> Counts:
        day = self._clock() // DAY_MS
        days = self._days.get((tenant, bank_id))
        if days is None:
            days = self._days[tenant, bank_id] = {}
            if len(self._days) > KEPT_BANKS:
                self._days.popitem(last=False)
        else:
            self._days.move_to_end((tenant, bank_id))
        counts = days.get(day)
        if counts is None:
            counts = days[day] = Counts()
            while len(days) > KEPT_DAYS:
                del days[min(days)]
        return counts


class UnansweredQueries:
    """Gathers queries that recalls did not answer, for audits of coverage. Safe to use from any thread.

    Only recalls of one bank without filters count: a filter may exclude what the bank knows.

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


def _merged(stored: Days, counted: Days, since: int) -> Days:
    """The sums of two counts by day, of the days after one."""
    sums: Days = {}
    for day in sorted({*stored, *counted}):
        if day > since:
            sums[day] = Counts()
            for part in (stored, counted):
                if day in part:
                    sums[day].add(part[day])
    return sums
