"""Consolidation by a language model, one change and one scope at a time, within a daily budget of each bank.

A call is counted before it is made, and its answer is stored with the place that it leads to: a crash loses no memory,
repeats at most the call that it interrupted, and gives no budget back. While the model fails, or the budget is spent,
the bank waits. A memory that the model gives no usable answer for is left to the rules.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field

import structlog

from astrocyte.config import ConsolidationSettings
from astrocyte.core import failpoint
from astrocyte.errors import AstrocyteError, DeadlineExceeded, ProviderUnavailable
from astrocyte.model import Bank, Memory, MemoryHit
from astrocyte.pipelines.knowledge.consolidation import plan
from astrocyte.pipelines.knowledge.consolidator import Written, run
from astrocyte.pipelines.knowledge.model_actions import READ_CHARS, Proposal, prompt_of, read_actions
from astrocyte.pipelines.knowledge.model_plan import memories_of, planned, rebuilt, still_said
from astrocyte.pipelines.knowledge.scopes import normalised, scopes_of
from astrocyte.pipelines.query.time_windows import DAY_MS
from astrocyte.pipelines.text.model_answers import UnusableAnswer
from astrocyte.pipelines.text.model_calls import MOST_ATTEMPTS, RENEWAL_SECONDS, Withheld, rest_seconds
from astrocyte.providers.protocols import LanguageModel
from astrocyte.stores.knowledge.consolidation import Action, ConsolidationStore, ConsolidationWork, Reached
from astrocyte.stores.knowledge.items import ItemRecord

# Observations that the model is shown, those most alike the memory.
MOST_OBSERVATIONS = 15
# Memories of outdated observations that are read again with one that changed, the newest.
MOST_AGAIN = 16

log = structlog.get_logger(__name__)

# The relevance of each text to a question, from 0 to 1.
Relevances = Callable[[str, Sequence[str]], Sequence[float]]


@dataclass(slots=True)
class _Step:
    """A step: where it leads to, what is done without the model, and what the model is to read.

    ``left`` are the scopes of the change that are not done, ``scope`` is the first of them.
    """

    reached: Reached
    scope: str = ""
    left: frozenset[str] = frozenset()
    actions: list[Action] = field(default_factory=list)
    memories: list[Memory] = field(default_factory=list)
    records: list[ItemRecord] = field(default_factory=list)


class ModelWriter:
    """Writes observations by a language model.

    Args:
        store: Memories and observations.
        model: The language model.
        settings: Of a bank, by its id.
        most: Observations that a bank may have.
        withheld: Removes what must not leave from texts.
        relevances: Finds the observations that a memory is about.
        executor: Reads and plans.
        clock: Milliseconds since the epoch.
    """

    def __init__(  # noqa: PLR0913 - the parts of one call
        self,
        store: ConsolidationStore,
        model: LanguageModel,
        settings: Callable[[str], ConsolidationSettings],
        *,
        most: int,
        withheld: Withheld,
        relevances: Relevances,
        executor: Executor,
        clock: Callable[[], int],
    ) -> None:
        self._store = store
        self._model = model
        self._settings = settings
        self._most = most
        self._withheld = withheld
        self._relevances = relevances
        self._executor = executor
        self._clock = clock
        # Banks that wait, by key, and until which instant of `time.monotonic`.
        self._waiting: dict[int, float] = {}
        self._failures = 0

    def takes(self, bank: Bank) -> bool:
        """True if the model writes the bank's observations, and the bank does not wait."""
        if self._settings(bank.bank_id).writer != "model":
            return False
        until = self._waiting.get(bank.key)
        if until is not None and until <= time.monotonic():
            del self._waiting[bank.key]
            until = None
        return until is None

    def rest(self) -> float | None:
        """Seconds until the next bank need not wait any longer; each wait that is over is told once."""
        if not self._waiting:
            return None
        now = time.monotonic()
        rest = max(0.0, min(self._waiting.values()) - now)
        # Its bank may have nothing to do any more, and then nobody else removes it.
        self._waiting = {key: until for key, until in self._waiting.items() if until > now}
        return rest

    async def write(self, work: ConsolidationWork) -> Written | None:
        """Read one change for one scope; None where the bank has to wait."""
        own = self._settings(work.bank.bank_id)
        step = await run(self._executor, lambda: self._step(work, own))
        if not step.memories:
            return await self._stored(work, step.actions, step.reached)
        if work.attempts >= MOST_ATTEMPTS:
            return await self._by_rules(work, own, step.left)
        if not await self._store.reserve(work, self._clock() // DAY_MS, (own.calls_per_day, own.tokens_per_day)):
            self._waiting[work.bank.key] = time.monotonic() + RENEWAL_SECONDS
            return None
        try:
            proposals, tokens = await self._asked(work, step, own)
        except ProviderUnavailable as error:
            if not isinstance(error, UnusableAnswer):
                await self._store.give_back(work)
            self._failed(work, error)
            return None
        except DeadlineExceeded as error:
            await self._store.waste(work, 0, is_unusable=True)
            self._failed(work, error)
            return None
        self._failures = 0
        actions = planned(proposals, step.memories, step.records, step.scope, self._most)
        failpoint("consolidation.planned")
        reached = Reached(step.reached.position, step.reached.scope_done, tokens)
        try:
            return await self._stored(work, [*step.actions, *actions], reached)
        except AstrocyteError:
            with contextlib.suppress(AstrocyteError):
                await self._store.waste(work, tokens, is_unusable=False)
            raise

    def _failed(self, work: ConsolidationWork, error: AstrocyteError) -> None:
        rest = rest_seconds(self._failures, error)
        self._failures += 1
        self._waiting[work.bank.key] = time.monotonic() + rest
        log.warning("consolidation_waits", bank_key=work.bank.key, reason=error.reason, rest_seconds=rest)

    async def _stored(self, work: ConsolidationWork, actions: Sequence[Action], reached: Reached) -> Written:
        done, left_out = await self._store.step(work, actions, reached)
        return Written(int(reached.position > work.position), left_out, done)

    async def _asked(
        self, work: ConsolidationWork, step: _Step, own: ConsolidationSettings
    ) -> tuple[list[Proposal], int]:
        """The proposals of the model, and the tokens that they took."""
        bank_id = work.bank.bank_id
        told = self._withheld(
            bank_id, [text or "" for memory in step.memories for text in (memory.content, memory.speaker)]
        )
        hits = [
            MemoryHit(
                text[:READ_CHARS], 1.0, memory.memory_id, bank_id, occurred_at=memory.occurred_at, speaker=who or None
            )
            for memory, text, who in zip(step.memories, told[::2], told[1::2], strict=True)
        ]
        known = self._withheld(bank_id, [record.current.body["text"] for record in step.records])
        completion = await self._model.complete(prompt_of(hits, known), deadline=time.monotonic() + own.model_seconds)
        try:
            return read_actions(completion, hits, known, own.least_confidence), completion.usage.total
        except UnusableAnswer:
            await self._store.waste(work, completion.usage.total, is_unusable=True)
            raise

    def _step(self, work: ConsolidationWork, own: ConsolidationSettings) -> _Step:
        """The next change for its next scope; reads the store."""
        store, bank = self._store, work.bank
        memory_ids, position = store.changed(bank, after=work.position, until=work.target, limit=1)
        outdated = store.resting_on(bank, memory_ids)
        memories = store.memories(bank, memory_ids)
        wanted = list(map(normalised, own.scopes))
        scopes = {scope for memory in memories for scope in scopes_of(memory, wanted)}
        named = sorted(scopes | {record.scope for record in outdated})
        # By name, since a scope whose outdated observations are mended is no longer among them.
        left = [one for one in named if one > work.scope_done]
        if not left:
            return _Step(Reached(position))
        scope = left[0]
        step = _Step(Reached(position) if len(left) == 1 else Reached(work.position, scope), scope, frozenset(left))
        known = store.of_scope(bank, scope)
        # One whose source changes again behind this change may be hidden now and come back later.
        stale = {record.key: record for record in (*outdated, *known) if record.scope == scope and record.is_outdated}
        # A step that leaves them as they are would come again for ever.
        held = store.held(bank, list(stale.values()))
        said = [(record, memories_of(store, bank, record)) for key, record in stale.items() if key not in held]
        kept = [(record, saying) for record, left in said if (saying := still_said(record, left))]
        if kept:
            # In a step of their own: the model is then shown them, and does not write them again.
            step.actions = [rebuilt(record, saying, self._most) for record, saying in kept]
            step.reached = Reached(work.position, work.scope_done)
            return step
        step.actions = [rebuilt(record, [], self._most) for record, _ in said]
        again = list({memory.memory_id: memory for _, left in said for memory in left}.values())[-MOST_AGAIN:]
        own_memories = memories if scope in scopes else []
        reread = [memory for memory in again if memory.memory_id not in memory_ids]
        step.memories = [memory for memory in (*own_memories, *reread) if memory.content.strip()]
        if step.memories:
            shown = [one for one in known if one.key not in stale or (one.key in held and not one.lacks_source)]
            step.records = self._alike(step.memories, shown)
        return step

    def _alike(self, memories: Sequence[Memory], records: Sequence[ItemRecord]) -> list[ItemRecord]:
        """The observations that the memories are most likely about, by age."""
        question = " ".join(memory.content for memory in memories)[:READ_CHARS]
        scores = self._relevances(question, [record.current.body["text"] for record in records])
        ranked = sorted(zip(scores, records, strict=True), key=lambda one: (-one[0], one[1].key))
        return sorted((record for _, record in ranked[:MOST_OBSERVATIONS]), key=lambda record: record.key)

    async def _by_rules(self, work: ConsolidationWork, own: ConsolidationSettings, left: frozenset[str]) -> Written:
        """Do by rules the scopes of a change that are left."""
        store, bank = self._store, work.bank
        wanted = list(map(normalised, own.scopes))

        def scopes(memory: Memory) -> list[str]:
            return [scope for scope in scopes_of(memory, wanted) if scope in left]

        def made() -> tuple[list[Action], int]:
            memory_ids, position = store.changed(bank, after=work.position, until=work.target, limit=1)
            return plan(store, bank, memory_ids, self._most, scopes), position

        actions, position = await run(self._executor, made)
        log.warning("consolidated_by_rules", bank_key=bank.key, attempts=work.attempts)
        return await self._stored(work, actions, Reached(position))
