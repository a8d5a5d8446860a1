"""Degraded answers while a provider's circuit is open, and recovery when it closes.

`empty_recall` answers a recall with nothing, and says so in its trace, tells who asks a reflect that memory is
unavailable, and puts retains into the retry queue; `cache` answers with what the same recall was answered before,
without what was forgotten since, and refuses the others; `error` refuses all. What needs no provider, such as a recall
with a vector of the caller's, goes on as ever.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import replace

from astrocyte.config import Settings
from astrocyte.errors import CircuitOpen
from astrocyte.model import Bank, MemoryHit, RecallQuery, RecallResult, RecallTrace, ReflectResult
from astrocyte.pipelines.recall.external_context import brought
from astrocyte.pipelines.recall.trace import empty_trace
from astrocyte.pipelines.search.arm_paths import paths_to
from astrocyte.policy.events import emit
from astrocyte.policy.requests.request_keys import plain
from astrocyte.policy.resilience.retry_queue import Retries
from astrocyte.policy.settings.bank_settings import Overrides
from astrocyte.providers.circuit_breaker import Breaker, State
from astrocyte.stores.protocols import MemoryStore
from astrocyte.stores.records import IndexBatch
from astrocyte.stores.sharing import Told, Topic

EVENTS = {State.CLOSED: "circuit_closed", State.OPEN: "circuit_opened", State.HALF_OPEN: "circuit_half_open"}
# The mode in which banks answer with nothing.
EMPTY = "empty_recall"
# What a reflect says that cannot be made.
UNAVAILABLE = "Memory is unavailable at the moment."
# Enough that no two of the answers kept meet by chance.
DIGEST_BYTES = 16


class Escalation:
    """Degraded answers.

    Args:
        settings: How many answers are kept.
        overrides: The mode of each bank.
        store: Knows what was forgotten since an answer was given.
        retries: Where retains wait.
        breakers: One for each provider from outside.
    """

    def __init__(
        self,
        settings: Settings,
        overrides: Overrides,
        store: MemoryStore,
        retries: Retries,
        breakers: Sequence[Breaker],
    ) -> None:
        self._overrides = overrides
        self._store = store
        self.retries = retries
        self._most = settings.escalation.cache_entries
        # Whether answers are kept for any bank.
        self.keeps = any(own.escalation.degraded_mode == "cache" for own in overrides.every)
        # By bank and question; the writer's thread drops those of a bank whose content was erased, and counts that.
        self._lock = threading.Lock()
        self._answers: OrderedDict[tuple[int, bytes], RecallResult] = OrderedDict()
        # How many commits have erased content: for `keep`, to be asked before an answer is begun.
        self.erasures = 0
        store.subscribe(self._committed, "erased")
        store.follow(self._on_told)
        self._at_recovery: list[Callable[[], None]] = [retries.wake]
        for breaker in breakers:
            self.watch(breaker)

    def watch(self, breaker: Breaker) -> None:
        """Tell of a breaker's changes, and act when its provider is back."""
        breaker.subscribe(self._changed)

    def at_recovery(self, listener: Callable[[], None]) -> None:
        """Call the listener whenever a provider is back."""
        self._at_recovery.append(listener)

    def queues(self, bank_id: str) -> bool:
        """True if retains of the bank wait while a provider is left alone."""
        return self._overrides.of[bank_id].escalation.degraded_mode == EMPTY

    def keep(self, bank: Bank, query: RecallQuery, result: RecallResult, erasures: int) -> None:
        """Remember an answer, where it may be needed again and nothing was erased since it was begun."""
        if self._overrides.of[bank.bank_id].escalation.degraded_mode != "cache":
            return
        key = _key(bank, query)
        with self._lock:
            if erasures != self.erasures:
                return
            self._answers[key] = result
            self._answers.move_to_end(key)
            if len(self._answers) > self._most:
                self._answers.popitem(last=False)

    def drop(self, bank: Bank) -> None:
        """Keep no answer of the bank any longer: content is gone that some of them may hold."""
        self._drop(bank.key)

    def _drop(self, bank_key: int) -> None:
        with self._lock:
            self.erasures += 1
            for key in [key for key in self._answers if key[0] == bank_key]:
                del self._answers[key]

    def _on_told(self, told: Told) -> None:
        """Take note of what another process erased."""
        if told.topic is Topic.DELETED or (told.topic is Topic.CHANGES and told.erased):
            self._drop(told.bank)

    def _committed(self, batch: IndexBatch) -> None:
        self.drop(batch.bank)

    def recall(self, bank: Bank, query: RecallQuery, failure: CircuitOpen) -> RecallResult:
        """The answer without the provider.

        Raises:
            CircuitOpen: There is none.
        """
        mode = self._overrides.of[bank.bank_id].escalation.degraded_mode
        with self._lock:
            earlier = self._answers.get(_key(bank, query)) if mode == "cache" else None
        if mode == "error" or (mode == "cache" and earlier is None):
            emit("provider_unavailable", operation="recall", bank_id=bank.bank_id, provider=failure.provider)
            raise failure
        emit("degraded", operation="recall", bank_id=bank.bank_id, provider=failure.provider, mode=mode)
        if earlier is None:
            return RecallResult((), 0, truncated=False, trace=empty_trace(RecallTrace(), mode))
        visible = tuple(hit for hit in earlier.hits if self._holds(bank, query, hit))
        trace = earlier.trace or empty_trace(RecallTrace(), mode)
        trace = replace(trace, degraded=mode, cache_hit=True, via=paths_to(trace.via, visible))
        return replace(earlier, hits=visible, trace=trace)

    def _holds(self, bank: Bank, query: RecallQuery, hit: MemoryHit) -> bool:
        """True if a hit of an earlier answer may still be shown: the caller's own, or of a memory as it is now."""
        if brought(hit):
            return True
        memory = None if hit.memory_id is None else self._store.memory(bank, hit.memory_id)
        return memory is not None and (query.as_of is not None or memory.version == hit.version)

    def reflect(self, banks: Sequence[Bank], failure: CircuitOpen) -> ReflectResult:
        """The result in place of an answer that needs the provider.

        Raises:
            CircuitOpen: Nothing is said, unless all of the banks answer with nothing while it lasts.
        """
        self._empty("reflect", banks, failure)
        again = f"Try again in {failure.retry_after:.0f} seconds."
        return ReflectResult(UNAVAILABLE, 0.0, (), (again,), abstained=True, fallback_used=True)

    def recall_several(self, banks: Sequence[Bank], failure: CircuitOpen) -> RecallResult:
        """The answer of several banks without the provider; answers of the past are kept for single banks only.

        Raises:
            CircuitOpen: There is none, unless all of them answer with nothing while it lasts.
        """
        self._empty("recall", banks, failure)
        return RecallResult((), 0, truncated=False, trace=empty_trace(RecallTrace(), EMPTY))

    def _empty(self, operation: str, banks: Sequence[Bank], failure: CircuitOpen) -> None:
        """Tell the operator, and raise the failure unless all of the banks answer with nothing."""
        if any(self._overrides.of[bank.bank_id].escalation.degraded_mode != EMPTY for bank in banks):
            for bank in banks:
                emit("provider_unavailable", operation=operation, bank_id=bank.bank_id, provider=failure.provider)
            raise failure
        for bank in banks:
            emit("degraded", operation=operation, bank_id=bank.bank_id, provider=failure.provider, mode=EMPTY)

    def _changed(self, breaker: Breaker) -> None:
        emit(EVENTS[breaker.state], provider=breaker.provider, wait_seconds=round(breaker.wait_seconds(), 3))
        if breaker.state is State.CLOSED:
            for listener in self._at_recovery:
                listener()


def _key(bank: Bank, query: RecallQuery) -> tuple[int, bytes]:
    """The key of a kept answer: the bank's key, which changes when it is made again, and a digest of all fields."""
    text = json.dumps(plain(query), sort_keys=True, separators=(",", ":"))
    return bank.key, hashlib.blake2b(text.encode(), digest_size=DIGEST_BYTES).digest()
