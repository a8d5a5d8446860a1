"""Recall: from a question to ranked memories.

1. embed the question, where the bank's space is the server's, unless the caller sent a vector;
2. ask custom analysers, external stores and custom arms, where there are any (`custom.recall_stages`);
3. analyse: dates in the question become time windows, its words say what it asks for (`search.core_request`);
4. core: filter, arms, words that the first hits add, fusion, dedup and token budget, in one call;
5. read every hit back from the database, and make the result (`result_assembly`).

Steps 3 to 5 are one synchronous function. It runs on the event loop for small banks, where a change of thread would
cost more than it frees; else in the executor. A batch is one call of the core, which spreads it over its
threads; step 1 is part of it where all embedders are local. Steps that the settings turn off are left out when the
pipeline is built.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from astrocyte.config import Settings
from astrocyte.core import Answer, Core, RecallRequest
from astrocyte.core import Bank as CoreBank
from astrocyte.model import Bank, RecallQuery, RecallResult
from astrocyte.pipelines.custom.fusion import CustomFusion
from astrocyte.pipelines.custom.query_analysis import read_over
from astrocyte.pipelines.custom.recall_stages import NO_STAGES, Others, RecallStages
from astrocyte.pipelines.external_stores.stores import ExternalStores
from astrocyte.pipelines.index.bank_index import BankIndex
from astrocyte.pipelines.index.embedding_spaces import EmbeddingSpaces, check_space
from astrocyte.pipelines.index.registry import IndexRegistry
from astrocyte.pipelines.query.reference import ReferenceClock
from astrocyte.pipelines.recall.cache import RecallCache, name_of
from astrocyte.pipelines.recall.query_vectors import QueryVectors
from astrocyte.pipelines.recall.result_assembly import ResultAssembly
from astrocyte.pipelines.recall.trace import again
from astrocyte.pipelines.search.core_request import Planner
from astrocyte.pipelines.search.phrase_search import PhraseSearch
from astrocyte.pipelines.search.plan import Plan
from astrocyte.pipelines.search.prefix_search import PrefixSearch
from astrocyte.stores.graph.entities import EntityStore
from astrocyte.stores.protocols import MemoryStore

if TYPE_CHECKING:
    # It comes with an extra.
    from astrocyte.pipelines.query.multilingual_dates import MultilingualDates

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallParts:
    """The parts of a recall on one bank.

    Attributes:
        store: Reads hits back, and tells of commits.
        core: Searches many banks at once.
        registry: The indexes.
        spaces: The embedders.
        settings: The steps that are on, and their parameters.
        executor: Where banks too large for the event loop are searched.
        entities: Finds memories that a question names.
        clock: Milliseconds since the epoch.
        references: Resolves what relative dates count from.
        external: External stores, if there are any.
        multilingual: Parses dates of other languages than English; None if they are not configured.
        stages: Custom steps.
    """

    store: MemoryStore
    core: Core
    registry: IndexRegistry
    spaces: EmbeddingSpaces
    settings: Settings
    executor: Executor
    entities: EntityStore
    clock: Callable[[], int]
    references: ReferenceClock
    external: ExternalStores | None = None
    multilingual: MultilingualDates | None = None
    stages: RecallStages = NO_STAGES


class RecallPipeline:
    """Answers queries on one bank.

    Args:
        parts: What a recall touches.
    """

    def __init__(self, parts: RecallParts) -> None:
        settings = parts.settings
        self._core = parts.core
        self._registry = parts.registry
        self._spaces = parts.spaces
        self._settings = settings.recall
        self._inline_rows = settings.recall.inline_rows
        self._executor = parts.executor
        self._references = parts.references
        self._others = Others(parts.external, parts.multilingual, parts.stages, parts.executor, parts.references)
        self.vectors = QueryVectors(parts.spaces, external_search=self._others.propose_any)
        self._prefixes = PrefixSearch(parts.store, parts.executor, parts.registry.charge)
        self._planner = Planner(
            settings.recall, parts.entities, parts.references, PhraseSearch(parts.store), self._prefixes
        )
        self.assembly = ResultAssembly(parts.store, settings, parts.clock)
        self._rescorer = self.assembly.rescorer
        self._cache = RecallCache(settings.recall.cache_bytes) if settings.recall.cache_bytes else None
        if self._cache is not None:
            # After the registry, which subscribed before: see `RecallCache.put`.
            parts.store.subscribe(self._cache.on_commit)
            parts.store.follow(self._cache.on_told)

    def forget(self, bank: Bank) -> None:
        """Keep nothing of a bank that was deleted."""
        if self._cache is not None:
            self._cache.drop(bank.key)

    async def kept(self, bank: Bank, query: RecallQuery, most_tokens: int) -> RecallResult | None:
        """The answer that is kept for the same question, if there is one.

        Raises:
            FailedPrecondition: ``min_position`` was not reached in time.
        """
        if self._cache is None:
            return None
        start = perf_counter()
        index = await self._index(bank, query)
        answer = self._cache.get(bank.key, index.core.position, self._cache_key(bank, query, most_tokens))
        return None if answer is None else again(answer, start)

    async def run(self, bank: Bank, query: RecallQuery, most_tokens: int, at: str = "") -> RecallResult:
        """The answer to one query; see `Recall.run`."""
        start = perf_counter()
        index = self._registry.loaded(bank)
        if index is None or query.min_position or query.expand_prefixes:
            index = await self._index(bank, query)
        given = None if query.embedding is None else _given(bank, query, index, at)
        plan = Plan(bank, query, index, given, most_tokens, start, start, alone=True, at=at)
        if self._cache is None:
            return await self._searched(plan)
        position, name = index.core.position, self._cache_key(bank, query, most_tokens)
        kept = self._cache.get(bank.key, position, name)
        if kept is not None:
            return again(kept, start)
        answer = await self._searched(plan)
        self._cache.put(bank.key, position, name, answer, lambda: index.core.position)
        return answer

    def _cache_key(self, bank: Bank, query: RecallQuery, most_tokens: int) -> bytes:
        """The key of an answer; relative dates mean other days tomorrow."""
        return name_of(query, most_tokens, self._references.mark(query, bank.bank_id, always=self._others.reads_any))

    async def _searched(self, plan: Plan) -> RecallResult:
        """The answer to a plan that may have no vector yet."""
        embedder = self._spaces.by_model.get(plan.index.model)
        if embedder is not None and plan.vector is None and (not plan.query.weights or self.vectors.waits(plan)):
            texts = [plan.query.query]
            (vector,) = embedder.embed_now(texts) if embedder.local else await embedder.embed(texts)
            # A text without a known token has a vector of zeros, and so no direction.
            plan.vector = vector if any(vector) else None
        if self._others.any:
            await self._others.read([plan])
        plan.embedded = perf_counter()
        return await self.answer(plan)

    async def answer(self, plan: Plan) -> RecallResult:
        """The answer to a plan that has its vector; it is not kept."""
        if self._others.propose_any:
            await self._others.propose([plan])
        if self._others.fusion is not None and plan.query.fusion_method is None:
            return await self._fused(plan, self._others.fusion)
        if plan.index.row_count <= self._inline_rows:
            # As `_beside` does, which would cost another coroutine.
            return self.assembly.finish(plan, self._looked(plan))
        return await self._beside(plan, self._answer, plan)

    async def _fused(self, plan: Plan, fusion: CustomFusion) -> RecallResult:
        """The answer whose list a custom fusion makes; the core's where it makes none."""
        plan.fuses = True
        response = await self._beside(plan, self._looked, plan)
        await fusion.fuse(plan, response, self._planner.list_weights(plan))
        if plan.fused is not None or not response.hits:
            return await self._beside(plan, self.assembly.finish, plan, response)
        # As it would be without: the core ranks the few that are wanted more closely than all.
        plan.fuses = False
        return await self._beside(plan, self._answer, plan)

    async def _beside(self, plan: Plan, work: Callable[P, T], *given: P.args, **named: P.kwargs) -> T:
        """The result of work on a bank: on the event loop for a small bank, in the executor for a large one."""
        if plan.index.row_count <= self._inline_rows:
            return work(*given, **named)
        return await asyncio.get_running_loop().run_in_executor(self._executor, partial(work, *given, **named))

    async def run_many(self, requests: Sequence[tuple[Bank, RecallQuery, int, str]]) -> list[RecallResult]:
        """The answers to many queries, each with the arguments of `run` and equal to its answer.

        They are spread over the threads.

        Raises:
            AstrocyteError: As `run`, of the first query that cannot be answered.
        """
        if self._others.fusion is not None:
            # The other fusion is asked about each.
            return [await self.run(*request) for request in requests]
        start = perf_counter()
        plans = []
        for bank, query, most_tokens, at in requests:
            # Mostly there is nothing to wait for.
            plan = self.plan_now(bank, query, most_tokens, start, at)
            if plan is None:
                plan = await self.plan(bank, query, most_tokens, start, at)
            plan.alone = True
            plans.append(plan)
        waits = self._others.any or any(map(self._spaces.is_waited_for, {plan.index.model for plan in plans}))
        if waits:
            await self.embed(plans)
        return await self._answer_all(plans, embedded=waits)

    async def plan(self, bank: Bank, query: RecallQuery, most_tokens: int, start: float, at: str = "") -> Plan:
        """A query with the bank's index, and with its vector if it brought one.

        Raises:
            DimensionMismatch: The query's vector does not live in the bank's space; its field is prefixed by ``at``.
            FailedPrecondition: ``min_position`` was not reached in time.
        """
        index = await self._index(bank, query)
        given = None if query.embedding is None else _given(bank, query, index, at)
        return Plan(bank, query, index, given, most_tokens, start, start, at=at)

    def plan_now(self, bank: Bank, query: RecallQuery, most_tokens: int, start: float, at: str = "") -> Plan | None:
        """As `plan`, or None where the bank's index, or the words in it, would have to be waited for."""
        index = self._registry.loaded(bank)
        if index is None or (query.min_position and index.core.position < query.min_position):
            return None
        if query.expand_prefixes and not index.core.has_spellings():
            return None
        given = None if query.embedding is None else _given(bank, query, index, at)
        return Plan(bank, query, index, given, most_tokens, start, start, at=at)

    async def embed(self, plans: Sequence[Plan]) -> None:
        """Give the plans their vectors, and what custom steps and external stores say.

        Raises:
            ProviderUnavailable: The embedder failed.
        """
        await self.vectors.embed(plans)
        await self._others.read(plans)
        embedded = perf_counter()
        for plan in plans:
            plan.embedded = embedded
        await self._others.propose(plans)

    async def _answer_all(self, plans: list[Plan], *, embedded: bool) -> list[RecallResult]:
        """Answers in order, from questions to hits."""
        if not plans:
            # Every query of a batch is about several banks.
            return []
        return await self._aside(partial(self._answer_together, plans, embedded=embedded))

    def _aside(self, work: Callable[[], T]) -> asyncio.Future[T]:
        """Work on a thread of the executor, with what is known of the call."""
        return asyncio.get_running_loop().run_in_executor(self._executor, copy_context().run, work)

    def _answer_together(self, plans: list[Plan], *, embedded: bool) -> list[RecallResult]:
        """Answers in order, from one call of the core, which spreads the searches over its threads."""
        requests = self._asked(plans, embedded=embedded)
        start = perf_counter()
        responses = self._core.recall_many(requests)
        searched = perf_counter()
        for plan in plans:
            plan.searched = searched
            # The time since its analysis in which other plans were analysed.
            plan.waited = start - plan.analysed - (plan.naming or 0.0)
        return self.assembly.finish_all(plans, responses)

    def _asked(self, plans: list[Plan], *, embedded: bool) -> list[tuple[CoreBank, RecallRequest]]:
        """Requests of the core for plans of a batch."""
        began = perf_counter()
        for plan in plans:
            plan.queued = began - (plan.asked or plan.embedded)
        if not embedded:
            self.vectors.embed_now(plans)
        requests = []
        ready = perf_counter()
        for plan in plans:
            plan.queued += perf_counter() - ready
            self._analyse(plan)
            requests.append((plan.index.core, self._planner.request(plan)))
        return requests

    async def _index(self, bank: Bank, query: RecallQuery) -> BankIndex:
        """The bank's index, at the position that the query asks for or beyond, with the words that it asks for."""
        index = self._registry.loaded(bank)
        if index is None:
            index = await self._registry.get(bank)
        if query.min_position and index.core.position < query.min_position:
            await self._registry.wait_for(bank, query.min_position, self._settings.min_position_seconds)
            index = await self._registry.get(bank)
        if query.expand_prefixes:
            await self._prefixes.prepare(bank, index)
        return index

    def request(self, plan: Plan) -> RecallRequest:
        """The request to the core for a plan that was answered."""
        return self._planner.request(plan)

    def _answer(self, plan: Plan) -> RecallResult:
        return self.assembly.finish(plan, self._looked(plan))

    def _looked(self, plan: Plan) -> Answer:
        """The core's ranking for a plan."""
        self._analyse(plan)
        response = plan.index.core.recall(self._planner.request(plan))
        plan.searched = perf_counter()
        return response

    def search(self, plans: Sequence[Plan]) -> list[Answer]:
        """The core's rankings of all plans, in one call that uses all processors."""
        requests: list[tuple[CoreBank, RecallRequest]] = []
        while (place := len(requests)) < len(plans):
            # Banks that are asked the same query share what is found out about it, and mostly the request too.
            plan, like = plans[place], plans[place - 1] if place else None
            if like is not None and like.query is not plan.query:
                like = None
            self._analyse(plan, like)
            shared = like is not None and self._planner.alike(plan, like)
            request = requests[-1][1] if shared else self._planner.request(plan)
            alike = plans[place : place + 1 + self._planner.follow(plans, place)]
            requests += [(one.index.core, request) for one in alike]
        responses = self._core.recall_many(requests)
        searched = perf_counter()
        for plan in plans:
            plan.searched = searched
        return responses

    def arm_weights(self, plan: Plan) -> tuple[float, float, float]:
        """The weights of the semantic, the keyword and the temporal arm for an analysed query."""
        return self._planner.arm_weights(plan)

    def unit(self, plan: Plan) -> float:
        """The unit of the scores of a plan's answer: one deviation, or the first place of rrf."""
        return self._rescorer.unit(plan)

    def _analyse(self, plan: Plan, like: Plan | None = None) -> None:
        """Analyse a plan; ``like`` is an analysed plan of the same query, for another bank."""
        self._planner.analyse(plan, like)
        if like is not None:
            plan.pool = like.pool
        elif self._rescorer.cue is None or self._rescorer.cue.search(plan.query.query):
            plan.pool = self._rescorer.pool(plan.query)
        else:
            plan.pool = 0
        if plan.multilingual_windows:
            plan.windows = list(dict.fromkeys([*plan.windows, *plan.multilingual_windows]))
            # Relative ones count in each bank's own time zone.
            plan.windows_hold = False
        if plan.reading is not None:
            read_over(plan)
        if plan.fuses:
            # All that any arm proposes.
            plan.pool = max(plan.pool, self._planner.proposals(plan))
        elif plan.pool and plan.alone and not plan.reranked:
            plan.lift = self._rescorer.lift(plan)
        if plan.reranked:
            plan.pool = max(plan.pool, plan.reranked)


def _given(bank: Bank, query: RecallQuery, index: BankIndex, at: str) -> bytes | None:
    """The caller's vector, which must live in the space of the bank's index."""
    if query.embedding is None:
        return None
    check_space(index.space_of(bank), query.embedding, at)
    return query.embedding.values
