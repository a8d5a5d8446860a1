"""Recall by tiers of rising cost: the first that finds enough answers.

1. cache: the answer to the same question, while the bank stays as it is;
2. fast path, for which nothing is embedded: the words of the bank's newest memories (`recent`), then of all of them;
3. full: every arm;
4. agentic: the full recall again for the question as a language model puts it otherwise (`rewriting`), ranks fused.

Enough are `min_results` hits that hold the share `min_score` of the question's content words. Every tier is a recall by
`RecallPipeline`, so that filters, clocks, budget and the second look of the database hold in each. A question that says
by weights, a vector or results from elsewhere how it wants to be answered goes to the full recall at once.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from time import perf_counter

from astrocyte.config import Settings
from astrocyte.core import count_tokens
from astrocyte.errors import DeadlineExceeded, ProviderUnavailable
from astrocyte.model import Bank, MemoryHit, RecallQuery, RecallResult
from astrocyte.pipelines.recall.hits import FoundHits
from astrocyte.pipelines.recall.pipeline import RecallPipeline
from astrocyte.pipelines.recall.query_rewriting import rewritten
from astrocyte.pipelines.recall.recent_words import RecentWords
from astrocyte.pipelines.recall.relevance import descending
from astrocyte.pipelines.recall.trace import AGENTIC, FAST_PATH
from astrocyte.pipelines.text import detail_levels
from astrocyte.pipelines.text.content_words import content_words
from astrocyte.providers.protocols import LanguageModel
from astrocyte.stores.protocols import MemoryStore

# The words alone.
WORDS_ONLY = {"semantic": 0.0}
# k of the fusion by ranks.
RANK_CONSTANT = 60.0


def check_tiers(settings: Settings, model: LanguageModel | None) -> None:
    """Refuse a tier that cannot be.

    Raises:
        ConfigError: It needs a language model, and there is none.
    """
    tiers = settings.tiered_retrieval
    if tiers.enabled and tiers.max_tier == AGENTIC and model is None:
        raise settings.refusal(("tiered_retrieval", "max_tier"), "4 needs a language model; set llm_provider")


class TieredRecall:
    """Answers queries by tiers; takes the place of `RecallPipeline` for recalls on one bank.

    Args:
        recall: What every tier is made of.
        store: Whose commits say what is new.
        settings: When a tier has found enough.
        model: The language model, if there is one.
    """

    def __init__(
        self, recall: RecallPipeline, store: MemoryStore, settings: Settings, model: LanguageModel | None
    ) -> None:
        self._recall = recall
        self._settings = settings.tiered_retrieval
        self._model = model
        self._recent = RecentWords(self._settings.recent_memories, self._settings.recent_banks)
        store.subscribe(self._recent.on_commit)

    def forget(self, bank: Bank) -> None:
        """Keep nothing of a bank that was deleted."""
        self._recent.drop(bank.key)
        self._recall.forget(bank)

    async def run(self, bank: Bank, query: RecallQuery, most_tokens: int, at: str = "") -> RecallResult:
        """The answer of the first tier that finds enough; arguments and errors as of `RecallPipeline.run`."""
        start = perf_counter()
        kept = await self._recall.kept(bank, query, most_tokens)
        if kept is not None:
            return _named(kept, start, "an equal question was answered before")
        words = frozenset(content_words(query.query))
        tried: list[str] = []
        if words and not (query.weights or query.embedding or query.external_context):
            result = await self._fast(bank, query, most_tokens, words, tried, start)
            if result is not None:
                return result
        else:
            tried.append("the question has no words to go by, or says how it is to be answered")
        result = await self._recall.run(bank, query, most_tokens, at)
        found = self._good(result, words)
        if found >= self._settings.min_results or self._settings.max_tier < AGENTIC or self._model is None:
            return _named(result, start, "; ".join(tried))
        return await self._agentic(bank, query, most_tokens, result, [*tried, self._told("full", found)], start)

    async def run_many(self, requests: Sequence[tuple[Bank, RecallQuery, int, str]]) -> list[RecallResult]:
        """As `run` of each, one after the other: whether a tier is needed shows when the one before has answered."""
        return [await self.run(*request) for request in requests]

    async def _fast(
        self,
        bank: Bank,
        query: RecallQuery,
        most_tokens: int,
        words: frozenset[str],
        tried: list[str],
        start: float,
    ) -> RecallResult | None:
        """The answer by words alone, if they find enough or no further tier is wanted; writes down what was tried."""
        settings = self._settings
        by_words = replace(query, weights=WORDS_ONLY)
        is_plain = query.as_of is None and query.valid_at is None and not query.include_archived
        if is_plain and not query.memory_ids and not query.min_position:
            match = self._recent.match(bank.key, query.query, settings.min_score)
            found = len(match.memory_ids)
            if found >= settings.min_results:
                text = " ".join([query.query, *match.further])
                result = await self._recall.run(
                    bank, replace(by_words, query=text, memory_ids=match.memory_ids), most_tokens
                )
                found = self._good(result, frozenset(content_words(text)), len(words))
                if found >= settings.min_results:
                    return _named(result, start, self._told("recent", found), FAST_PATH)
            tried.append(self._told("recent", found))
        result = await self._recall.run(bank, by_words, most_tokens)
        found = self._good(result, words)
        tried.append(self._told("keyword", found))
        if found >= settings.min_results or settings.max_tier == FAST_PATH:
            return _named(result, start, "; ".join(tried), FAST_PATH)
        return None

    def _good(self, result: RecallResult, words: frozenset[str], asked: int | None = None) -> int:
        """The number of hits that hold enough of the words, of which ``asked`` count in the question itself."""
        least = max(self._settings.min_score * (len(words) if asked is None else asked), 1.0)
        return sum(len(words.intersection(content_words(text))) >= least for text in _texts(result.hits))

    def _told(self, tier: str, found: int) -> str:
        return f"{tier}: {found} good of {self._settings.min_results} wanted"

    async def _agentic(
        self,
        bank: Bank,
        query: RecallQuery,
        most_tokens: int,
        result: RecallResult,
        tried: list[str],
        start: float,
    ) -> RecallResult:
        """The answer fused with those of rewritten questions; the full answer where the model cannot help."""
        if self._model is None:
            return result
        deadline = time.monotonic() + self._settings.rewrite_seconds
        try:
            queries = await rewritten(self._model, query.query, deadline)
        except (ProviderUnavailable, DeadlineExceeded) as error:
            return _named(result, start, "; ".join([*tried, f"agentic: {error.reason}"]))
        if not queries:
            return _named(result, start, "; ".join([*tried, "agentic: no other query"]))
        further = [await self._recall.run(bank, replace(query, query=text), most_tokens) for text in queries]
        wish = query.max_tokens
        budget = most_tokens if wish is None else min(wish, most_tokens)
        hits, dropped = _together(query, [one.hits for one in (result, *further)], budget)
        everything = [result, *further]
        merged = replace(
            result,
            hits=hits,
            total_available=max(one.total_available for one in everything),
            truncated=dropped or any(one.truncated for one in everything),
            confidence=max(one.confidence or 0.0 for one in everything),
            abstain=all(one.abstain for one in everything),
        )
        count = f"agentic: {len(queries)} other queries"
        return _named(merged, start, "; ".join([*tried, count]), AGENTIC)


def _texts(hits: Sequence[MemoryHit]) -> list[str]:
    """The texts in which the question's words count: whole memories where they are at hand, else the hits' texts."""
    if isinstance(hits, FoundHits):
        return [f"{row.speaker or ''} {row.content}" for row in hits.rows]
    return [f"{hit.speaker or ''} {hit.text}" for hit in hits]


def _together(
    query: RecallQuery, lists: Sequence[Sequence[MemoryHit]], budget: int
) -> tuple[tuple[MemoryHit, ...], bool]:
    """One list of several by ranks, within count and budget; and whether a hit was cut or left out for the budget."""
    scores: dict[str | None, float] = {}
    known: dict[str | None, MemoryHit] = {}
    for hits in lists:
        for place, hit in enumerate(hits, 1):
            scores[hit.memory_id] = scores.get(hit.memory_id, 0.0) + 1 / (RANK_CONSTANT + place)
            known.setdefault(hit.memory_id, hit)
    ranked = sorted(known.values(), key=lambda hit: (-scores[hit.memory_id], hit.memory_id or ""))
    kept: list[MemoryHit] = []
    truncated = False
    for hit in ranked[: query.max_results]:
        fitting = replace(hit, fused_score=scores[hit.memory_id])
        if hit.token_count > budget:
            truncated = True
            if kept:
                continue
            text = detail_levels.cut(hit.text, budget)
            fitting = replace(fitting, text=text, token_count=count_tokens(text))
        budget -= fitting.token_count
        kept.append(fitting)
    return descending(kept), truncated


def _named(result: RecallResult, start: float, reason: str, number: int | None = None) -> RecallResult:
    """The answer with what its trace says of tiers, and of the time since the question came."""
    trace = result.trace
    if trace is None:
        return result
    spent = (perf_counter() - start) * 1e3
    used = trace.tier_used if number is None else number
    return replace(result, trace=replace(trace, tier_used=used, tier_reason=reason, latency_ms=spent))
