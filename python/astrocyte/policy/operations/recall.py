"""Recall, BatchRecall and History at the gate: limits, checks, barriers, the pipeline, and barriers again."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from astrocyte.api import LimitKind
from astrocyte.api.requests import BatchRecall, History, Recall
from astrocyte.errors import CircuitOpen
from astrocyte.model import (
    Bank,
    BankStrategy,
    Caller,
    HistoryResult,
    MemoryHit,
    RecallQuery,
    RecallResult,
)
from astrocyte.pipelines.multi_bank.bank_answers import Question
from astrocyte.pipelines.recall.hits import FoundHits
from astrocyte.policy.banks.selection import BankSet
from astrocyte.policy.engines.recall import Asking
from astrocyte.policy.operations.knowledge.answers import KnowledgeAnswers
from astrocyte.policy.operations.parts import OperationParts
from astrocyte.policy.requests.composed_text import composed


class Recalling:
    """Checks and answers queries. Steps that the settings turn on for no bank are left out of every call.

    Args:
        parts: What the operations share.
        knowledge: Adds what banks know beside their memories.
    """

    def __init__(self, parts: OperationParts, knowledge: KnowledgeAnswers) -> None:
        self._knowledge = knowledge
        self._itemless = parts.knowledge.itemless
        policies = parts.policies
        self._limits = policies.limits
        self._barriers = policies.barriers
        self._authority = policies.authority
        self._overrides = policies.overrides
        self._escalation = policies.escalation
        self._activity = policies.activity
        self._unanswered = policies.unanswered
        self._recalls = parts.pipelines.lifecycle.recalls
        self._engines = policies.engines
        self._banks = parts.banks
        self._bank_sets = parts.bank_sets
        self._recall = parts.pipelines.recall
        self._wiki = parts.pipelines.wiki_tier
        self._multi_bank = parts.pipelines.multi_bank
        self._access = parts.access
        self._check = parts.check
        self._hybrid = parts.hybrid
        self._relevance = parts.relevance
        self._spaces = parts.spaces
        self._is_limited = LimitKind.RECALL in policies.limits.limited
        self._screens_queries = "queries" in policies.barriers.lookers
        # Answers leave as the pipelines make them where neither looks at hits.
        self._screens_answers = "outgoing" in policies.barriers.lookers or policies.authority.enabled

    async def recall(self, caller: Caller, request: Recall) -> RecallResult:
        """Rank the memories of a bank, or of several."""
        query = request.query
        result = await self._one(caller, "Recall", query)
        self._count(caller, query, result)
        return result

    async def _one(self, caller: Caller, operation: str, query: RecallQuery) -> RecallResult:
        """The answer of the bank, or the banks, that a query names."""
        known = self._known_bank(caller, query)
        asked = self._bank_sets.resolve(caller, query) if known is None else BankSet((known.bank_id,))
        if self._access.enabled:
            self._banks.require_each(caller, operation, asked)
        if self._is_limited:
            await self._limits.admit_each(caller.tenant, asked.bank_ids, LimitKind.RECALL)
        self._check.query(query)
        if query.tags or query.metadata or query.session_id is not None:
            query = composed(query)
        banks: Sequence[Bank]
        if known is None or self._access.enabled or self._spaces.moved:
            banks = self._banks.expected_each(caller, operation, asked.bank_ids)
        else:
            banks = [known]
        warnings: tuple[str, ...] = ()
        if self._screens_queries:
            query, warnings = await self._barriers.query(operation, query, asked.bank_ids)
        if known is None:
            banks = await self._banks.ready_each(caller, operation, banks)
        if asked.strategy is None and not (self._relevance.references or self._engines.all):
            most_tokens = self._overrides.of[asked.bank_ids[0]].homeostasis.recall_max_tokens
            result = await self._answer(banks[0], query, most_tokens)
            if banks[0].key not in self._itemless:
                result = await self._knowledge.joined(banks, query, result, most_tokens)
            if not (warnings or self._screens_answers):
                return result
            return self._told(asked.bank_ids, operation, result, warnings)
        asking = self._asking(caller, operation, asked.strategy, banks, query)
        result = await self._answered(asking)
        result = await self._knowledge.joined(banks, query, result, asking.most_tokens)
        return self._told(self._whose(asking), operation, result, warnings)

    def _known_bank(self, caller: Caller, query: RecallQuery) -> Bank | None:
        """The one bank that a query names, if it has a handle: its id was checked when that was made."""
        # A caller in this process may send anything as a name.
        named: object = query.bank_id
        if isinstance(named, str) and not query.banks and query.bank_group is None and query.strategy is None:
            return self._banks.handles.get((caller.tenant, named))
        return None

    async def batch_recall(self, caller: Caller, request: BatchRecall) -> list[RecallResult]:
        """Answer all queries, or fail with the first that cannot be answered."""
        queries = request.queries
        self._check.query_count(queries)
        # What depends on the banks alone is found once for all queries about the same.
        sets, places = self._banks_of_each(caller, "BatchRecall", queries)
        every = [bank_id for place in places for bank_id in sets[place].bank_ids]
        await self._limits.admit_each(caller.tenant, every, LimitKind.RECALL)
        self._check.queries(queries)
        queries = [composed(query) for query in queries]
        expected = [self._banks.expected_each(caller, "BatchRecall", one.bank_ids) for one in sets]
        screened = await self._barriers.queries("BatchRecall", queries, [one.bank_ids for one in sets], places)
        banks = [await self._banks.ready_each(caller, "BatchRecall", own) for own in expected]
        # All but the query, which is put into its own where it is needed.
        alike = [
            self._asking(caller, "BatchRecall", one.strategy, own, queries[0])
            for one, own in zip(sets, banks, strict=True)
        ]
        plain = [self._is_plain(asking) for asking in alike]
        whose = [self._whose(asking) for asking in alike]
        asked = [
            (index, alike[place], place, query, warnings)
            for index, (place, (query, warnings)) in enumerate(zip(places, screened, strict=True))
        ]
        alone = [
            (asking.banks[0], query, asking.most_tokens, f"queries[{index}].")
            for index, asking, place, query, _ in asked
            if plain[place]
        ]
        answers = iter(await self._answers(alone))
        results = [
            next(answers) if plain[place] else await self._answered(asking._replace(query=query), f"queries[{index}].")
            for index, asking, place, query, _ in asked
        ]
        results = [
            await self._knowledge.joined(asking.banks, query, result, asking.most_tokens)
            for result, (_, asking, _, query, _) in zip(results, asked, strict=True)
        ]
        for query, result in zip(queries, results, strict=True):
            self._count(caller, query, result)
        return [
            self._told(whose[place], "BatchRecall", result, warnings)
            for result, (*_, place, _, warnings) in zip(results, asked, strict=True)
        ]

    def _count(self, caller: Caller, query: RecallQuery, result: RecallResult) -> None:
        """Count a recall of one bank; of several, each would be blamed for what another is asked for."""
        if not query.banks and query.bank_group is None:
            self._activity.recalled(caller.tenant, query.bank_id, result)
            if not result.hits or result.abstain:
                self._note_unanswered(caller, query, result)
            self._note(caller.tenant, query.bank_id, result.hits)
            return
        by_bank: dict[str, list[MemoryHit]] = {}
        for hit in result.hits:
            by_bank.setdefault(hit.bank_id or "", []).append(hit)
        for bank_id, hits in by_bank.items():
            self._note(caller.tenant, bank_id, hits)

    def _note_unanswered(self, caller: Caller, query: RecallQuery, result: RecallResult) -> None:
        """Note a query without an answer, for audits of what its bank covers."""
        bank = self._banks.handles.get((caller.tenant, query.bank_id))
        if bank is not None:
            self._unanswered.note(bank, query, result)

    def _note(self, tenant: str, bank_id: str, hits: Sequence[MemoryHit]) -> None:
        """Note that memories were recalled, in a bank that archives those that were not."""
        if bank_id and self._recalls.wanted and self._recalls.wanted(bank_id):
            found = hits.memory_ids if isinstance(hits, FoundHits) else [hit.memory_id for hit in hits]
            self._recalls.note(tenant, bank_id, [one for one in found if one])

    async def history(self, caller: Caller, request: History) -> HistoryResult:
        """Recall as of an instant."""
        query = request.query
        as_of = self._check.history(query)
        result = await self._one(caller, "History", query)
        return HistoryResult(
            result.hits,
            result.total_available,
            result.truncated,
            as_of,
            query.bank_id,
            result.trace,
            result.warnings,
        )

    async def evidence(
        self, caller: Caller, operation: str, strategy: BankStrategy | None, banks: Sequence[Bank], query: RecallQuery
    ) -> RecallResult:
        """The hits of the bank, or of several by the strategy, that an answer is made of."""
        asking = self._asking(caller, operation, strategy, banks, query)

        async def local(query: RecallQuery) -> RecallResult:
            return await self._found(asking._replace(query=query), self._barriers.refuses_evidence)

        result = await self._hybrid.recall(asking, local)
        for bank in banks:
            own = [hit for hit in result.hits if len(banks) == 1 or hit.bank_id == bank.bank_id]
            self._note(caller.tenant, bank.bank_id, own)
        return result

    def _asking(
        self, caller: Caller, operation: str, strategy: BankStrategy | None, banks: Sequence[Bank], query: RecallQuery
    ) -> Asking:
        """A recall that was let pass, with what other banks have that is relevant to its own."""
        most_tokens = self._most_tokens(*[bank.bank_id for bank in banks])
        return Asking(caller, operation, banks, query, most_tokens, strategy, self._relevance.beside(caller, banks))

    def _is_plain(self, asking: Asking) -> bool:
        """True if a recall is about one bank and nothing else."""
        return asking.strategy is None and not asking.beside and not self._hybrid.concerns(asking.banks)

    @staticmethod
    def _whose(asking: Asking) -> list[str]:
        """The banks that judge an answer: what is from other banks is judged by those."""
        bank_ids = [bank.bank_id for bank in asking.banks]
        if not asking.beside:
            return bank_ids
        return bank_ids + [one.bank.bank_id for those in asking.beside.values() for one in those]

    def _told(
        self, bank_ids: Sequence[str], operation: str, result: RecallResult, warnings: tuple[str, ...]
    ) -> RecallResult:
        """An answer as it may leave."""
        return self._authority.told(self._barriers.output(bank_ids, operation, result, warnings))

    async def _answered(self, asking: Asking, at: str = "") -> RecallResult:
        """The answer of the pipeline, and of the engines beside the banks where there are any."""
        if self._is_plain(asking):
            return await self._answer(asking.banks[0], asking.query, asking.most_tokens)

        async def local(query: RecallQuery) -> RecallResult:
            if asking.strategy is None and not asking.beside:
                return await self._answer(asking.banks[0], query, asking.most_tokens)
            return await self._answer_several(asking._replace(query=query), at)

        return await self._hybrid.recall(asking, local)

    async def _found(self, asking: Asking, refuses: Callable[[MemoryHit], bool], at: str = "") -> RecallResult:
        """The pipelines' answer of the bank, or of several by the strategy; of equal hits, one that is not refused."""
        query, banks, most_tokens = asking.query, asking.banks, asking.most_tokens
        if asking.strategy is None and not asking.beside:
            return await self._recall.run(banks[0], query, most_tokens)
        strategy = asking.strategy or BankStrategy()
        return await self._multi_bank.run(Question(query, banks, strategy, most_tokens, at, refuses, asking.beside))

    async def _answer_several(self, asking: Asking, at: str = "") -> RecallResult:
        """The answer of several banks, or what there is while the provider that they need is left alone."""
        try:
            return await self._found(asking, self._barriers.refuses, at)
        except CircuitOpen as failure:
            if asking.strategy is None:
                return await self._answer(asking.banks[0], asking.query, asking.most_tokens)
            return self._escalation.recall_several(asking.banks, failure)

    async def _answer(self, bank: Bank, query: RecallQuery, most_tokens: int) -> RecallResult:
        """The pipeline's answer, or what there is while its provider is left alone."""
        if self._wiki is not None:
            answer = await self._wiki.answer(bank, query, most_tokens)
            if answer is not None:
                return answer
        erasures = self._escalation.erasures
        try:
            result = await self._recall.run(bank, query, most_tokens)
        except CircuitOpen as failure:
            return self._escalation.recall(bank, query, failure)
        if self._escalation.keeps:
            self._escalation.keep(bank, query, result, erasures)
        return result

    async def _answers(self, requests: Sequence[tuple[Bank, RecallQuery, int, str]]) -> list[RecallResult]:
        """The result of `_answer` for each request, made together where each is sure to need the pipeline."""
        if self._wiki is not None:
            return [await self._answer(bank, query, most_tokens) for bank, query, most_tokens, _ in requests]
        erasures = self._escalation.erasures
        try:
            results = await self._recall.run_many(requests)
        except CircuitOpen:
            # Some of them may need no provider.
            return [await self._answer(bank, query, most_tokens) for bank, query, most_tokens, _ in requests]
        if self._escalation.keeps:
            for (bank, query, *_), result in zip(requests, results, strict=True):
                self._escalation.keep(bank, query, result, erasures)
        return results

    def _banks_of(self, caller: Caller, operation: str, query: RecallQuery, at: str = "") -> BankSet:
        """The banks that a query names, each of which the caller may use for this, before any is looked at."""
        asked = self._bank_sets.resolve(caller, query, at)
        self._banks.require_each(caller, operation, asked)
        return asked

    def _banks_of_each(
        self, caller: Caller, operation: str, queries: Sequence[RecallQuery]
    ) -> tuple[list[BankSet], list[int]]:
        """As `_banks_of` each query: the sets, one for all that name the same bank alone, and whose set is where."""
        sets: list[BankSet] = []
        places: list[int] = []
        alone: dict[str, int] = {}
        for index, query in enumerate(queries):
            is_alone = not query.banks and query.bank_group is None and query.strategy is None
            # What a caller in the process sends as a name may be anything.
            place = alone.get(query.bank_id) if is_alone and isinstance(query.bank_id, str) else None
            if place is None:
                place = len(sets)
                sets.append(self._banks_of(caller, operation, query, f"queries[{index}]."))
                if is_alone:
                    alone[query.bank_id] = place
            places.append(place)
        return sets, places

    def _most_tokens(self, *bank_ids: str) -> int:
        """Ceiling of a recall's token budget; of several banks, the lowest holds."""
        return min([own.homeostasis.recall_max_tokens for own in self._overrides.each(bank_ids)])
