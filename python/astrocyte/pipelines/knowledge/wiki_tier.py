"""The tier of recalls that wiki pages answer: the sections that a query is about, then the memories of their pages.

A page answers if its relevance is high and none of its memories changed since it was compiled. Filters hold for pages
as for memories: all memories that a page rests on pass them. Nothing is embedded with the bank's model.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from time import perf_counter

from astrocyte.core import count_tokens
from astrocyte.model import ArmScore, Bank, DetailLevel, MemoryHit, RecallQuery, RecallResult
from astrocyte.pipelines.knowledge.search import Found, KnowledgeSearch
from astrocyte.pipelines.query.time_windows import from_ms
from astrocyte.pipelines.recall.external_context import within
from astrocyte.pipelines.recall.hits import layer_distribution
from astrocyte.pipelines.recall.pipeline import RecallPipeline
from astrocyte.pipelines.recall.relevance import descending
from astrocyte.pipelines.recall.tiered import WORDS_ONLY
from astrocyte.pipelines.recall.trace import FAST_PATH
from astrocyte.stores.knowledge.items import ItemKind, KnowledgeStore, is_stale_page

# The layer and the arm of pages.
WIKI = "wiki"
# Pages of an answer; the rest of it are their memories.
MOST_PAGES = 3
# Parts of a query that pages cannot answer: they are of now, and have no rank in an arm.
_REFUSED = (
    "as_of",
    "valid_at",
    "include_archived",
    "require_phrases",
    "expand_prefixes",
    "memory_ids",
    "fact_types",
    "weights",
    "embedding",
    "external_context",
    "time_range",
)


class WikiTier:
    """Answers queries by pages.

    Args:
        search: Finds pages.
        store: Tells whether a bank has pages.
        recall: Finds the memories of the pages.
        least_relevance: Relevance from which a page answers.
        executor: Runs searches, of which the first builds an index.
        clock: Milliseconds since the epoch.
    """

    def __init__(
        self,
        search: KnowledgeSearch,
        store: KnowledgeStore,
        recall: RecallPipeline,
        least_relevance: float,
        executor: Executor,
        clock: Callable[[], int],
    ) -> None:
        self._search = search
        self._store = store
        self._recall = recall
        self._least = least_relevance
        self._executor = executor
        self._clock = clock

    async def answer(self, bank: Bank, query: RecallQuery, most_tokens: int) -> RecallResult | None:
        """The answer of the pages of a bank; None where none of them answers."""
        if ItemKind.WIKI_PAGE not in self._store.kinds(bank):
            return None
        if not query.query.strip() or any(getattr(query, name) for name in _REFUSED):
            return None
        start = perf_counter()
        pages = await asyncio.get_running_loop().run_in_executor(self._executor, lambda: self._pages(bank, query))
        if not pages:
            return None
        ids = tuple(dict.fromkeys(one.memory_id for page in pages for one in page.record.current.sources))
        memories = await self._recall.run(bank, replace(query, weights=WORDS_ONLY, memory_ids=ids), most_tokens)
        ranked = [*(_hit(query, bank, page, rank) for rank, page in enumerate(pages, 1)), *memories.hits]
        budget = min(query.max_tokens or most_tokens, most_tokens)
        kept, dropped = within(descending(ranked)[: query.max_results], budget)
        trace = memories.trace
        if trace is not None:
            spent = (perf_counter() - start) * 1e3
            trace = replace(
                trace,
                strategies_used=(WIKI, *(trace.strategies_used or ())),
                strategy_candidate_counts={**(trace.strategy_candidate_counts or {}), WIKI: len(pages)},
                strategy_timings_ms={**(trace.strategy_timings_ms or {}), WIKI: spent},
                total_candidates=(trace.total_candidates or 0) + len(pages),
                tier_used=FAST_PATH,
                tier_reason=f"wiki: {len(pages)} pages at {self._least:.2f} or above",
                wiki_tier_used=True,
                cache_hit=False,
                latency_ms=spent,
                layer_distribution=layer_distribution(kept),
            )
        return replace(
            memories,
            hits=kept,
            total_available=memories.total_available + len(pages),
            truncated=memories.truncated or dropped,
            confidence=max(memories.confidence or 0.0, pages[0].relevance),
            abstain=False,
            trace=trace,
        )

    def _pages(self, bank: Bank, query: RecallQuery) -> Sequence[Found]:
        """The pages that answer, best first."""
        found = self._search.search(bank, query, self._clock())
        relevant = [one for one in found if one.relevance >= self._least]
        return [one for one in relevant if not is_stale_page(one.record.current.sources)][:MOST_PAGES]


def _hit(query: RecallQuery, bank: Bank, page: Found, rank: int) -> MemoryHit:
    """A page as a hit; ``metadata`` names its scope and its sources."""
    record, sources = page.record, page.record.current.sources
    text = page.heading if query.detail_level is DetailLevel.TITLES else page.text
    metadata: dict[str, str | int | float | bool | None] = {
        "scope": record.scope,
        "section": page.heading,
        "proof_count": len(sources),
    }
    if query.include_sources:
        metadata["source_ids"] = ",".join(source.memory_id for source in sources)
    return MemoryHit(
        text=text,
        score=page.relevance,
        memory_id=record.item_id,
        bank_id=bank.bank_id,
        metadata=metadata,
        tags=(),
        occurred_at=from_ms(max(source.observed_at for source in sources)) if sources else None,
        retained_at=from_ms(record.updated_at),
        memory_layer=WIKI,
        fact_type=WIKI,
        principal=record.created_by if query.include_sources else None,
        token_count=count_tokens(text),
        version=record.current.revision,
        arms=(ArmScore(WIKI, rank, page.relevance),),
    )
