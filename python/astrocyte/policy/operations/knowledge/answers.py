"""Directives, observations and mental models in the answers of recall and reflect."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor
from dataclasses import replace

from astrocyte.model import (
    BANK_SCOPE,
    ENTITY_SCOPE,
    TAG_SCOPE,
    Bank,
    Directive,
    MemoryHit,
    RecallQuery,
    RecallResult,
    ReflectQuery,
)
from astrocyte.pipelines.search.entity_arm import phrases
from astrocyte.policy.operations.knowledge.blending import LAYERS, SEARCHED, Blending
from astrocyte.policy.operations.knowledge.directives import directive_of, ranked
from astrocyte.policy.operations.parts import OperationParts
from astrocyte.policy.requests.page_tokens import LARGEST_POSITION
from astrocyte.stores.knowledge.items import ItemKind, ItemRecord

# The directives that apply to an answer of these hits.
ChosenDirectives = Callable[[Iterable[MemoryHit]], tuple[Directive, ...]]
# Wiki pages are for readers: they say again what memories say.
ANSWERING = SEARCHED | {ItemKind.DIRECTIVE}
# Sections of mental models before the memories of a reflect.
MOST_MODELS = 3
# Directives of one bank that are read; no bank may have more.
MOST_DIRECTIVES = 1_000


class KnowledgeAnswers:
    """Adds to answers what banks know beside their memories.

    Args:
        parts: What the operations share.
        clock: Milliseconds since the epoch.
        executor: Runs searches.
    """

    def __init__(self, parts: OperationParts, clock: Callable[[], int], executor: Executor) -> None:
        self._executor = executor
        self._store = parts.knowledge
        self._blending = Blending(parts, clock)

    def _any(self, banks: Sequence[Bank]) -> bool:
        """True if one of the banks has an item for answers."""
        return any(self._store.kinds(bank) & ANSWERING for bank in banks)

    async def joined(
        self, banks: Sequence[Bank], query: RecallQuery, result: RecallResult, most_tokens: int
    ) -> RecallResult:
        """An answer with the directives that apply, and with the observations and mental models that are relevant.

        An answer as of an instant in the past has no observations and mental models, which are of the present.
        """
        if not self._any(banks):
            return result

        def join() -> RecallResult:
            directives = self.directives(banks, query)(result.hits)
            told = replace(result, directives=directives) if directives else result
            return self._blending.blended(banks, query, told, most_tokens)

        return await self._beside(join)

    async def evidence(self, banks: Sequence[Bank], query: RecallQuery, result: RecallResult) -> RecallResult:
        """The hits that an answer is made of: the best mental models, the memories, then the observations."""
        if not self._any(banks):
            return result

        def join() -> RecallResult:
            memories = {hit.memory_id for hit in result.hits}
            found = self._blending.blended(banks, query, result, LARGEST_POSITION)
            known = [hit for hit in found.hits if hit.memory_id not in memories]
            models = [hit for hit in known if hit.memory_layer == LAYERS[ItemKind.MENTAL_MODEL]]
            others = [hit for hit in known if hit.memory_layer != LAYERS[ItemKind.MENTAL_MODEL]]
            # An observation says again what memories say: it adds to them, and takes the place of none.
            return replace(found, hits=(*models[:MOST_MODELS], *result.hits, *others))

        return await self._beside(join)

    async def _beside(self, work: Callable[[], RecallResult]) -> RecallResult:
        """The result of work on a thread: the first search of a bank builds its index."""
        return await asyncio.get_running_loop().run_in_executor(self._executor, work)

    def directives(self, banks: Sequence[Bank], query: RecallQuery | ReflectQuery) -> ChosenDirectives:
        """The directives that apply to a query, by its hits, the highest priority first.

        One of a tag applies if the query filters by the tag or a hit has it, one of an entity if the query names it.
        """
        found: list[ItemRecord] = []
        for bank in banks:
            if ItemKind.DIRECTIVE in self._store.kinds(bank):
                found += self._store.listed(bank, ItemKind.DIRECTIVE, scope="", after=0, limit=MOST_DIRECTIVES)
        of_query = {BANK_SCOPE, *(TAG_SCOPE + tag for tag in query.tags)}
        if not all(record.scope == BANK_SCOPE for record in found):
            of_query.update(ENTITY_SCOPE + phrase.replace("-", " ") for phrase in phrases(query.query))
        rules = [(record.scope, directive_of(record)) for record in ranked(found)]

        def chosen(hits: Iterable[MemoryHit]) -> tuple[Directive, ...]:
            scopes = of_query.union(TAG_SCOPE + tag for hit in hits for tag in hit.tags or ())
            return tuple(directive for scope, directive in rules if scope in scopes)

        return chosen
