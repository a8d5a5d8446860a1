"""Recall: from a question to ranked memories.

1. analyse: dates in the question become time windows (`analysis`), its words say what it asks for (`intent`);
2. embed the question, where the bank's space is the server's, unless the caller sent a vector;
3. core: filter, arms, words that the first hits add, fusion, dedup and token budget, in one call;
4. hydrate: read every hit back from the database, which decides whether it may be seen, and whether it meets the
   query's filter (`filtering`);
5. shape: detail level, budget of the first hit, what the caller brings from elsewhere (`external`), trace.

Steps 1 and 3 to 5 are one synchronous function. It runs on the event loop for small banks, where a change of thread
would cost more than it frees, and in the executor for others.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from time import perf_counter

from astrocyte.config import Settings
from astrocyte.core import Core, RecallRequest, RecallResponse
from astrocyte.model import (
    Bank,
    DetailLevel,
    Intent,
    MemoryHit,
    QueryIntent,
    RecallQuery,
    RecallResult,
    RecallTrace,
    TimeRange,
)
from astrocyte.model.building import open_twin
from astrocyte.pipelines.analysis import DAY_MS, from_ms, time_windows
from astrocyte.pipelines.caching import RecallCache, name_of
from astrocyte.pipelines.external import ARM, blend, passing
from astrocyte.pipelines.filtering import compile_filter
from astrocyte.pipelines.indexing import id_to_bytes, metadata_pairs
from astrocyte.pipelines.intent import NO_INTENT, classify
from astrocyte.pipelines.preparing import check_space, optional_ms, usable
from astrocyte.pipelines.registry import BankIndex, IndexRegistry
from astrocyte.pipelines.shaping import found, layer_distribution
from astrocyte.providers.protocols import Embedder
from astrocyte.stores.protocols import HydratedRow, MemoryStore, Visibility

# Queries of a batch that are searched together: a millisecond or two of work for the loop, which shapes them.
PART = 16
NOW = Visibility()
_OpenTrace = open_twin(RecallTrace)

# Which tier answered.
CACHE, FULL_RETRIEVAL = 1, 3


@dataclass(slots=True)
class Plan:
    """A query on its way, and when each stage ended, in seconds."""

    bank: Bank
    query: RecallQuery
    index: BankIndex
    vector: bytes | None
    most_tokens: int
    start: float
    embedded: float
    windows: list[tuple[int, int]] = field(default_factory=list)
    intent: QueryIntent = NO_INTENT
    budget: int = 0
    analysed: float = 0.0
    searched: float = 0.0
    hydrated: float = 0.0
    external: Sequence[MemoryHit] = ()
    blended: float = 0.0


class RecallPipeline:
    """Answers queries."""

    def __init__(
        self,
        store: MemoryStore,
        core: Core,
        registry: IndexRegistry,
        embedder: Embedder,
        settings: Settings,
        executor: Executor,
    ) -> None:
        self._store = store
        self._core = core
        self._registry = registry
        self._embedder = embedder
        self._settings = settings.recall
        self._executor = executor
        self._cache = RecallCache(settings.recall.cache_bytes)
        if self._cache.enabled:
            # After the registry, which subscribed before: see `RecallCache.put`.
            store.subscribe(self._cache.on_commit)
        self._time_tail_ms = round(settings.recall.time_tail_days * DAY_MS)
        self._factors = {
            Intent(name): (factor.semantic, factor.keyword, factor.temporal)
            for name, factor in settings.recall.intent.factors.items()
        }
        weights, rrf_weights = settings.recall.weights, settings.recall.rrf_weights
        self._weights = {
            "relative_score": (weights.semantic, weights.keyword, weights.temporal),
            "rrf": (rrf_weights.semantic, rrf_weights.keyword, rrf_weights.temporal),
        }

    async def run(self, bank: Bank, query: RecallQuery, most_tokens: int) -> RecallResult:
        """The answer to one query, under a ceiling of tokens.

        Raises:
            DimensionMismatch: The query's vector does not live in the bank's space.
            FailedPrecondition: ``min_position`` was not reached in time.
            ProviderUnavailable: The embedder failed.
        """
        start = perf_counter()
        index = await self._index(bank, query)
        if not self._cache.enabled:
            return await self._searched(bank, query, index, most_tokens, start)
        position, name = index.core.position, name_of(query, most_tokens)
        kept = self._cache.get(bank.key, position, name)
        if kept is not None:
            return _again(kept, start)
        answer = await self._searched(bank, query, index, most_tokens, start)
        self._cache.put(bank.key, position, name, answer, lambda: index.core.position)
        return answer

    async def _searched(
        self, bank: Bank, query: RecallQuery, index: BankIndex, most_tokens: int, start: float
    ) -> RecallResult:
        vector = _given(bank, query, "")
        if vector is None and bank.embedding_model == self._embedder.model_id:
            vector = (await self._embed([query.query]))[0]
        plan = Plan(bank, query, index, vector, most_tokens, start, perf_counter())
        if index.small(self._settings.inline_rows):
            return self._answer(plan)
        return await asyncio.get_running_loop().run_in_executor(self._executor, self._answer, plan)

    async def run_many(self, requests: Sequence[tuple[Bank, RecallQuery, int]]) -> list[RecallResult]:
        """The answers to many queries, each equal to the single call's; the core spreads them over its threads.

        Raises:
            AstrocyteError: As `run`, of the first query that cannot be answered.
        """
        start = perf_counter()
        plans = [
            await self.plan(bank, query, most_tokens, start, f"queries[{number}].")
            for number, (bank, query, most_tokens) in enumerate(requests)
        ]
        await self.embed(plans)
        return await self._answer_all(plans)

    async def plan(self, bank: Bank, query: RecallQuery, most_tokens: int, start: float, at: str = "") -> Plan:
        """A query with the bank's index, and with its vector if it brought one.

        Raises:
            DimensionMismatch: The query's vector does not live in the bank's space; its field is prefixed by ``at``.
            FailedPrecondition: ``min_position`` was not reached in time.
        """
        vector = _given(bank, query, at)
        return Plan(bank, query, await self._index(bank, query), vector, most_tokens, start, start)

    def plan_now(self, bank: Bank, query: RecallQuery, most_tokens: int, start: float, at: str = "") -> Plan | None:
        """As `plan`, or None where the bank's index would have to be waited for."""
        index = self._registry.loaded(bank)
        if index is None or index.core.position < query.min_position:
            return None
        return Plan(bank, query, index, _given(bank, query, at), most_tokens, start, start)

    async def embed(self, plans: Sequence[Plan]) -> None:
        """Give the plans their vectors, each text embedded once, where the server can make one for the bank.

        Raises:
            ProviderUnavailable: The embedder failed.
        """
        waiting = [plan for plan in plans if self.waits(plan)]
        if waiting:
            texts = list(dict.fromkeys(plan.query.query for plan in waiting))
            vectors = dict(zip(texts, await self._embed(texts), strict=True))
            for plan in waiting:
                plan.vector = vectors[plan.query.query]
        embedded = perf_counter()
        for plan in plans:
            plan.embedded = embedded

    def waits(self, plan: Plan) -> bool:
        """Whether a plan needs a vector that the server can make, and has none yet."""
        return plan.vector is None and plan.bank.embedding_model == self._embedder.model_id

    async def _answer_all(self, plans: list[Plan]) -> list[RecallResult]:
        """Answers in order. While the core searches for one part, the part before is read back and shaped."""
        parts = [plans[first : first + PART] for first in range(0, len(plans), PART)]
        inline = all(plan.index.small(self._settings.inline_rows) for plan in plans)
        run = asyncio.get_running_loop().run_in_executor
        searches = [run(self._executor, self.search, part) for part in parts]
        results: list[RecallResult] = []
        try:
            for part, search in zip(parts, searches, strict=True):
                responses = await search
                if inline:
                    results += self._finish_all(part, responses)
                else:
                    results += await run(self._executor, self._finish_all, part, responses)
        finally:
            for search in searches:
                if not search.cancel() and not search.cancelled():
                    # One failure is told; that of a later part has nobody to be told to.
                    search.exception()
        return results

    async def _index(self, bank: Bank, query: RecallQuery) -> BankIndex:
        """The bank's index, at the position that the query asks for or beyond."""
        index = self._registry.loaded(bank)
        if index is None:
            index = await self._registry.get(bank)
        if query.min_position and index.core.position < query.min_position:
            await self._registry.wait_for(bank, query.min_position, self._settings.min_position_seconds)
            index = await self._registry.get(bank)
        return index

    async def _embed(self, texts: list[str]) -> list[bytes | None]:
        embedder = self._embedder
        vectors = embedder.embed_now(texts) if embedder.local else await embedder.embed(texts)
        return [usable(vector) for vector in vectors]

    def _answer(self, plan: Plan) -> RecallResult:
        self._analyse(plan)
        response = plan.index.core.recall(self._request(plan))
        plan.searched = perf_counter()
        return self._finish(plan, response)

    def search(self, plans: Sequence[Plan]) -> list[RecallResponse]:
        """What the core ranks for each plan, in one call for all."""
        requests = []
        for plan in plans:
            self._analyse(plan)
            requests.append((plan.index.core, self._request(plan)))
        responses = self._core.recall_many(requests)
        searched = perf_counter()
        for plan in plans:
            plan.searched = searched
        return responses

    def _finish_all(self, plans: list[Plan], responses: list[RecallResponse]) -> list[RecallResult]:
        """As `_finish` of each, with one read for all that look at the same bank in the same way."""
        groups: dict[tuple[int, Visibility], list[int]] = {}
        for number, plan in enumerate(plans):
            groups.setdefault((plan.bank.key, _visibility(plan.query)), []).append(number)
        results: list[RecallResult | None] = [None] * len(plans)
        for (_, visibility), numbers in groups.items():
            passages = [passage for number in numbers for passage in responses[number].passages]
            rows = self._store.hydrate(plans[numbers[0]].bank, passages, visibility)
            known = {row[:2]: row for row in rows}
            hydrated = perf_counter()
            for number in numbers:
                plans[number].hydrated = hydrated
                own = [known[passage] for passage in responses[number].passages if passage in known]
                results[number] = self._result(plans[number], responses[number], _meeting(plans[number].query, own))
        return [result for result in results if result is not None]

    def _analyse(self, plan: Plan) -> None:
        index, query = plan.index, plan.query
        if index.earliest is not None and index.latest is not None:
            plan.windows = time_windows(
                query.query,
                first=index.earliest,
                last=index.latest,
                reference=query.query_reference_date,
                time_range=query.time_range,
            )
        if self._factors or query.include_trace:
            plan.intent = classify(query.query)
        # A caller's budget is capped by the configured ceiling.
        wish = query.max_tokens
        plan.budget = plan.most_tokens if wish is None else min(wish, plan.most_tokens)
        plan.analysed = perf_counter()

    def rows(self, plan: Plan, passages: Sequence[tuple[int, int]]) -> list[HydratedRow]:
        """Those of the passages that the database lets this query see, in the order given."""
        return _meeting(plan.query, self._store.hydrate(plan.bank, passages, _visibility(plan.query)))

    def _finish(self, plan: Plan, response: RecallResponse) -> RecallResult:
        rows = self.rows(plan, response.passages)
        plan.hydrated = perf_counter()
        return self._result(plan, response, rows)

    def _result(self, plan: Plan, response: RecallResponse, rows: list[HydratedRow]) -> RecallResult:
        hits, truncated = found(plan.query, response, rows, plan.budget)
        if plan.query.external_context:
            plan.external = passing(plan.query)
            weight = self._settings.external_weight
            hits, dropped = blend(plan.query, hits, plan.external, weight=weight, budget=plan.budget)
            truncated = truncated or dropped
            plan.blended = perf_counter()
        trace = self._trace(plan, response, hits) if plan.query.include_trace else None
        return RecallResult(hits, response.candidates + len(plan.external), truncated, trace)

    def arm_weights(self, plan: Plan) -> tuple[float, float, float]:
        """The weights of the semantic, the keyword and the temporal arm for an analysed query."""
        query = plan.query
        weights = self._weights[str(query.fusion_method or self._settings.fusion_method)]
        if query.weights:
            given = query.weights
            return (
                given.get("semantic", weights[0]),
                given.get("keyword", weights[1]),
                given.get("temporal", weights[2]),
            )
        factors = self._factors.get(plan.intent.intent)
        if factors:
            return (weights[0] * factors[0], weights[1] * factors[1], weights[2] * factors[2])
        return weights

    def _request(self, plan: Plan) -> RecallRequest:
        query, settings = plan.query, self._settings
        fusion = str(query.fusion_method or settings.fusion_method)
        memory_ids = None
        if query.memory_ids:
            memory_ids = [identity for one in query.memory_ids if (identity := id_to_bytes(one)) is not None]
        threshold = query.dedup_threshold if query.dedup_threshold is not None else settings.dedup_threshold
        return RecallRequest(
            text=query.query or None,
            vector=plan.vector,
            k=query.max_results,
            depth=max(settings.depth, settings.overfetch * query.max_results),
            tags=query.tags,
            tag_match=query.tag_match,
            fact_types=query.fact_types,
            metadata=metadata_pairs(query.metadata) if query.metadata else (),
            session=query.session_id,
            occurred=_range(query.time_range),
            retained=_range(query.retained_range),
            as_of=optional_ms(query.as_of),
            valid_at=optional_ms(query.valid_at),
            memory_ids=memory_ids,
            time_windows=plan.windows,
            time_tail_ms=self._time_tail_ms,
            fusion=fusion,
            rank_constant=query.rank_constant or settings.rank_constant,
            weights=self.arm_weights(plan),
            feedback=settings.feedback,
            context_windows=settings.context_windows,
            layer_weights=list(query.layer_weights.items()) if query.layer_weights else (),
            dedup_threshold=threshold,
            # Titles are short and are counted when they are made.
            budget=None if query.detail_level is DetailLevel.TITLES else plan.budget,
            budget_whole=query.detail_level is DetailLevel.FULL,
        )

    def _trace(self, plan: Plan, response: RecallResponse, hits: Sequence[MemoryHit]) -> RecallTrace:
        names, counts = response.arm_names, response.arm_candidates
        made = _OpenTrace()
        made.strategies_used = tuple(name for name, count in zip(names, counts, strict=True) if count)
        made.total_candidates = sum(counts)
        made.fusion_method = str(plan.query.fusion_method or self._settings.fusion_method)
        made.latency_ms = (perf_counter() - plan.start) * 1e3
        made.strategy_timings_ms = {name: us / 1e3 for name, us in zip(names, response.arm_micros, strict=True)}
        made.strategy_candidate_counts = dict(zip(names, counts, strict=True))
        made.tier_used = FULL_RETRIEVAL
        made.layer_distribution = layer_distribution(hits)
        made.cache_hit = False
        made.wiki_tier_used = False
        feedback = response.feedback_micros / 1e3
        made.stage_timings_ms = {
            "embed": (plan.embedded - plan.start) * 1e3,
            "analyse": (plan.analysed - plan.embedded) * 1e3,
            "core": (plan.searched - plan.analysed) * 1e3 - feedback,
            "feedback": feedback,
            "hydrate": (plan.hydrated - plan.searched) * 1e3,
        }
        if plan.query.external_context:
            count = len(plan.external)
            made.strategies_used += (ARM,) * bool(count)
            made.total_candidates += count
            made.strategy_candidate_counts[ARM] = count
            made.stage_timings_ms["external_context"] = (plan.blended - plan.hydrated) * 1e3
        made.plan = response.plan
        made.time_windows = tuple(TimeRange(from_ms(start), from_ms(end)) for start, end in plan.windows)
        made.position = response.position
        made.degraded = ""
        made.intent, made.intent_confidence = plan.intent
        made.banks = ()
        made.__class__ = RecallTrace
        trace: RecallTrace = made
        return trace


def _again(kept: RecallResult, start: float) -> RecallResult:
    """A kept answer, told of as what it is."""
    if kept.trace is None:
        return kept
    spent = (perf_counter() - start) * 1e3
    stages = {"cache": spent}
    trace = replace(
        kept.trace, cache_hit=True, tier_used=CACHE, latency_ms=spent, strategy_timings_ms={}, stage_timings_ms=stages
    )
    return replace(kept, trace=trace)


def _given(bank: Bank, query: RecallQuery, at: str) -> bytes | None:
    """The caller's vector, if one came and it lives in the bank's space."""
    if query.embedding is None:
        return None
    check_space(bank, query.embedding, at)
    return query.embedding.values


def _meeting(query: RecallQuery, rows: list[HydratedRow]) -> list[HydratedRow]:
    """The rows that meet the query's filter, whatever the index believed."""
    meets = compile_filter(query)
    return rows if meets is None else [row for row in rows if meets(row)]


def _visibility(query: RecallQuery) -> Visibility:
    if query.as_of is None and query.valid_at is None:
        return NOW
    return Visibility(optional_ms(query.as_of), optional_ms(query.valid_at))


def _range(value: TimeRange | None) -> tuple[int | None, int | None] | None:
    return None if value is None else (optional_ms(value.start), optional_ms(value.end))
