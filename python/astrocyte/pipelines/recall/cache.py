"""A cache of answers to the same query at the same state of a bank.

The key is the bank, the position of its index, the ceiling of tokens, every field of the query, and the day where the
query may have a relative date, so that an answer can never outlive what it was made of: any commit moves the position.
Who may ask is checked before, at every call. A commit also drops the bank's answers, so that what was forgotten is in
no memory.
"""

from __future__ import annotations

import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b

from astrocyte.model import MemoryHit, RecallQuery, RecallResult
from astrocyte.pipelines.recall.hits import FoundHits
from astrocyte.stores.records import HydratedRow, IndexBatch
from astrocyte.stores.sharing import Told, Topic

# What is around a hit's texts, and around an answer: rows, hits of the core, times, the trace, the entry itself.
HIT_BYTES = 1_000
ANSWER_BYTES = 6_000


@dataclass(slots=True)
class _Bank:
    """Sizes of one bank's answers at one position, by name."""

    position: int
    sizes: dict[bytes, int] = field(default_factory=dict)


class RecallCache:
    """An LRU cache of answers, within a budget of bytes. Thread-safe.

    Args:
        most_bytes: Budget; 0 keeps nothing.
    """

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._lock = threading.Lock()
        self._answers: OrderedDict[tuple[int, bytes], RecallResult] = OrderedDict()
        self._banks: dict[int, _Bank] = {}
        self._bytes = 0

    @property
    def enabled(self) -> bool:
        """True if the budget is above 0."""
        return self._most_bytes > 0

    @property
    def size_bytes(self) -> int:
        """The estimated size of the cached answers."""
        return self._bytes

    def get(self, bank: int, position: int, name: bytes) -> RecallResult | None:
        """The cached answer of that name at that position, or None."""
        with self._lock:
            held = self._banks.get(bank)
            if held is None or held.position != position or name not in held.sizes:
                return None
            self._answers.move_to_end((bank, name))
            return self._answers[bank, name]

    def put(self, bank: int, position: int, name: bytes, answer: RecallResult, current: Callable[[], int]) -> None:
        """Cache an answer of ``position``, unless the bank was deleted.

        Args:
            bank: Key of the bank.
            position: Where the index was before the answer was made.
            name: Of the question; see `name_of`.
            answer: What was answered.
            current: Where the index is now. Asked under the lock: a commit moves the index first, and drops the bank's
                answers then, so that nothing older stays.
        """
        size = size_of(answer.hits)
        if size > self._most_bytes:
            return
        with self._lock:
            if current() != position:
                return
            held = self._banks.get(bank)
            if held is None or held.position != position:
                self._drop(bank)
                held = self._banks[bank] = _Bank(position)
            self._bytes += size - held.sizes.get(name, 0)
            held.sizes[name] = size
            self._answers[bank, name] = answer
            self._answers.move_to_end((bank, name))
            while self._bytes > self._most_bytes:
                self._drop_oldest()

    def on_commit(self, batch: IndexBatch) -> None:
        """Drop the bank's answers; the store calls it after each commit, when the index has taken it."""
        with self._lock:
            self._drop(batch.bank.key)

    def on_told(self, told: Told) -> None:
        """Drop the answers of a bank that another process changed."""
        if told.topic in {Topic.CHANGES, Topic.DELETED}:
            self.drop(told.bank)

    def drop(self, bank: int) -> None:
        """Drop the bank's answers."""
        with self._lock:
            self._drop(bank)

    def _drop(self, bank: int) -> None:
        held = self._banks.pop(bank, None)
        if held is not None:
            for name, size in held.sizes.items():
                self._bytes -= size
                del self._answers[bank, name]

    def _drop_oldest(self) -> None:
        (bank, name), _ = self._answers.popitem(last=False)
        held = self._banks[bank]
        self._bytes -= held.sizes.pop(name)
        if not held.sizes:
            del self._banks[bank]


def name_of(query: RecallQuery, most_tokens: int, mark: str = "") -> bytes:
    """A digest of every field, with the types of its values: ``1``, ``1.0`` and ``True`` ask for different metadata.

    Args:
        query: What is asked.
        most_tokens: Ceiling of tokens.
        mark: The day or minute that relative dates of the question count from, where it may have any.
    """
    return blake2b(f"{most_tokens} {mark} {query!r}".encode("utf-8", "surrogatepass"), digest_size=32).digest()


def size_of(hits: Sequence[MemoryHit]) -> int:
    """Estimate of an answer's bytes."""
    held = hits.rows if isinstance(hits, FoundHits) else hits
    return ANSWER_BYTES + sum(map(_size, held))


def _size(held: HydratedRow | MemoryHit) -> int:
    texts = [held.content, held.chunk_text] if isinstance(held, HydratedRow) else [held.text]
    parts = [*texts, *(held.tags or ())]
    for key, value in (held.metadata or {}).items():
        parts += [key, str(value)]
    return HIT_BYTES + sum(map(sys.getsizeof, parts))
