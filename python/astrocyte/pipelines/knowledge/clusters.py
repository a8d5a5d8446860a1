"""Topics of memories that no tag and no name covers: clusters of their vectors.

Two memories are linked if one is among the nearest of the other, at or above a cosine. A cluster is what links hold
together. Equal memories give equal clusters. A cluster keeps the page with which it shares most memories.
"""

from __future__ import annotations

import asyncio
import hashlib
from array import array
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from itertools import count

from astrocyte.core import Bank as CoreBank
from astrocyte.model import BANK_SCOPE, Bank, PageKind
from astrocyte.pipelines.index.registry import IndexRegistry
from astrocyte.stores.knowledge.wiki import Topic, WikiStore

# Memories that are clustered, the newest: each is compared with the whole bank.
MOST_CLUSTERED = 20_000
# Memories of one call of the index: a tenth of a second's work for 100,000 memories.
COMPARED_AT_ONCE = 128
# Bytes of the digest in the id of a page.
DIGEST_BYTES = 6

Unnamed = Sequence[tuple[int, str, bytes]]


class ClusterSearch:
    """Finds the clusters of a bank.

    Args:
        store: Reads vectors, and the pages of clusters.
        registry: The indexes.
        executor: Where the index works.
        threshold: The least cosine of two memories that are linked; 1 finds none.
        least: Memories of a cluster.
    """

    def __init__(
        self, store: WikiStore, registry: IndexRegistry, executor: Executor, *, threshold: float, least: int
    ) -> None:
        self._store = store
        self._registry = registry
        self._executor = executor
        self._threshold = threshold
        self._least = least

    async def topics(self, bank: Bank, named: Collection[int]) -> list[Topic]:
        """The clusters of the current memories that are not among ``named``, by row key.

        While the bank moves to another model, these are the clusters that have a page, as the page has them.

        Raises:
            BankNotFound: It was deleted meanwhile.
        """
        if self._threshold >= 1:
            return []
        run = asyncio.get_running_loop().run_in_executor
        unnamed = await run(self._executor, lambda: self._store.unnamed(bank, named, MOST_CLUSTERED))
        # After the vectors: if they were dropped with their model, the index is of another one.
        index = await self._registry.get(bank)
        if index.model != bank.embedding_model:
            return await run(self._executor, self._kept, bank)
        if len(unnamed) < self._least:
            return []
        return await run(self._executor, self._found, bank, index.core, unnamed)

    def _found(self, bank: Bank, core: CoreBank, unnamed: Unnamed) -> list[Topic]:
        ids = {row_key: memory_id for row_key, memory_id, _ in unnamed}
        groups = self._groups(core, unnamed)
        names = page_ids([[(key, ids[key]) for key in group] for group in groups], self._store.clusters(bank))
        return [_topic(name, group) for name, group in zip(names, groups, strict=True)]

    def _kept(self, bank: Bank) -> list[Topic]:
        return [_topic(name, sorted(keys)) for name, keys in sorted(self._store.clusters(bank).items())]

    def _groups(self, core: CoreBank, unnamed: Unnamed) -> list[list[int]]:
        """Row keys of each cluster, ascending; the clusters by their first."""
        roots = {row_key: row_key for row_key, _, _ in unnamed}

        def root(key: int) -> int:
            while roots[key] != key:
                roots[key] = key = roots[roots[key]]
            return key

        for start in range(0, len(unnamed), COMPARED_AT_ONCE):
            part = unnamed[start : start + COMPARED_AT_ONCE]
            near = core.near_duplicates([vector for _, _, vector in part], self._threshold)
            for (row_key, _, _), found in zip(part, near, strict=True):
                for other, _, _ in found:
                    if other in roots:
                        first, second = sorted((root(row_key), root(other)))
                        roots[second] = first
        groups: dict[int, list[int]] = {}
        for row_key in roots:
            groups.setdefault(root(row_key), []).append(row_key)
        return [group for group in groups.values() if len(group) >= self._least]


def page_ids(groups: Sequence[Sequence[tuple[int, str]]], pages: Mapping[str, Collection[int]]) -> list[str]:
    """The id of the page of each group of row keys and memory ids.

    Larger groups choose first: the page with which they share most memories, else one that is named by the first memory
    whose name is free. An id has nothing of a text, for it outlives the memories. Each page is read once.
    """
    holders: dict[int, list[str]] = {}
    for page, keys in pages.items():
        for key in keys:
            holders.setdefault(key, []).append(page)
    taken: set[str] = set()
    chosen: dict[int, str] = {}
    for place in sorted(range(len(groups)), key=lambda place: (-len(groups[place]), groups[place][0])):
        group = groups[place]
        shared = Counter(page for key, _ in group for page in holders.get(key, ()) if page not in taken)
        best = min(shared.items(), key=lambda entry: (-entry[1], entry[0]), default=None)
        name = best[0] if best else next(name for name in _names(group) if name not in taken and name not in pages)
        taken.add(name)
        chosen[place] = name
    return [chosen[place] for place in range(len(groups))]


def _names(group: Sequence[tuple[int, str]]) -> Iterator[str]:
    """Ids of pages, each of the digest of a memory's id; then of further digests, without end."""
    for turn in count():
        for _, memory_id in group:
            text = f"{memory_id}#{turn}" if turn else memory_id
            yield f"{PageKind.CLUSTER}:{hashlib.blake2b(text.encode(), digest_size=DIGEST_BYTES).hexdigest()}"


def _topic(name: str, row_keys: Sequence[int]) -> Topic:
    return Topic(PageKind.CLUSTER, name, BANK_SCOPE, array("q", row_keys))
