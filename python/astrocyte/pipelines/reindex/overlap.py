"""Two indexes of one bank, asked the same: how much of their answers they share.

The queries are the beginnings of some of the bank's own memories, for queries of callers are kept nowhere. A memory
does not count in the answers to its own words.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from time import perf_counter

from astrocyte.model import Bank, Comparison, MemoryHit, RecallQuery
from astrocyte.pipelines.index.bank_index import BankIndex
from astrocyte.pipelines.recall.pipeline import RecallPipeline
from astrocyte.pipelines.reindex.embedding import VectorMaker
from astrocyte.pipelines.search.plan import Plan

# Memories of an answer that are compared.
PLACES = 10
# Characters of a memory that make a query: about a sentence.
QUERY_CHARS = 160
# More than any answer here has: nothing is cut.
MOST_TOKENS = 1 << 20
# Arms beside the semantic one, which has no say in the second question.
SEMANTIC_ALONE = {"keyword": 0.0, "temporal": 0.0}


async def compare(
    recall: RecallPipeline,
    maker: VectorMaker,
    bank: Bank,
    indexes: tuple[BankIndex, BankIndex],
    sample: Sequence[tuple[str, str]],
) -> Comparison:
    """Ask both indexes what each of the sampled memories says.

    Args:
        recall: What answers.
        maker: Rests between the queries.
        bank: Whose indexes they are.
        indexes: The one that answers now, and the one that is to.
        sample: Ids and contents of memories.

    Raises:
        ProviderUnavailable: An embedder failed.
    """
    overlaps, semantic, same_first, before, after = [], [], [], [], []
    for memory_id, content in sample:
        start = perf_counter()
        query = query_of(content)
        whole = [await _answer(recall, bank, index, query, memory_id, {}) for index in indexes]
        alone = [await _answer(recall, bank, index, query, memory_id, SEMANTIC_ALONE) for index in indexes]
        overlaps.append(overlap(*whole))
        semantic.append(overlap(*alone))
        same_first.append(float([hit.memory_id for hit in whole[0][:1]] == [hit.memory_id for hit in whole[1][:1]]))
        before += [hit.score for hit in whole[0][:1]]
        after += [hit.score for hit in whole[1][:1]]
        await maker.rest(perf_counter() - start)
    return Comparison(
        queries=len(sample),
        overlap=_mean(overlaps, 1.0),
        semantic_overlap=_mean(semantic, 1.0),
        same_first=_mean(same_first, 1.0),
        score_before=_mean(before, 0.0),
        score_after=_mean(after, 0.0),
    )


def query_of(content: str) -> str:
    """The beginning of a content, at the end of a word."""
    if len(content) <= QUERY_CHARS:
        return content
    return content[:QUERY_CHARS].rsplit(maxsplit=1)[0]


def overlap(one: Sequence[MemoryHit], other: Sequence[MemoryHit]) -> float:
    """The share of the longer answer's memories that both hold; 1.0 for two empty ones."""
    first, second = ({hit.memory_id for hit in hits} for hits in (one, other))
    longer = max(len(first), len(second))
    return len(first & second) / longer if longer else 1.0


async def _answer(
    recall: RecallPipeline, bank: Bank, index: BankIndex, text: str, own: str, weights: dict[str, float]
) -> list[MemoryHit]:
    query = RecallQuery(text, bank.bank_id, max_results=PLACES + 1, include_trace=False, weights=weights)
    start = perf_counter()
    plan = Plan(bank, query, index, None, MOST_TOKENS, start, start, trial=True)
    await recall.embed([plan])
    found = await recall.answer(plan)
    return [hit for hit in found.hits if hit.memory_id != own][:PLACES]


def _mean(values: Sequence[float], nothing: float) -> float:
    return fmean(values) if values else nothing
