"""Coverage: what a bank can answer of a description or of questions, and the gaps."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from astrocyte.api import LimitKind
from astrocyte.api.requests import AuditCoverage
from astrocyte.errors import CapabilityNotSupported, DeadlineExceeded, ProviderUnavailable, ValidationError
from astrocyte.model import (
    AuditMethod,
    AuditResult,
    Bank,
    BankStrategy,
    Caller,
    GapItem,
    RecallQuery,
    RecallResult,
    TopicCoverage,
    UnansweredQuery,
)
from astrocyte.pipelines.knowledge import coverage, coverage_judge
from astrocyte.pipelines.query.time_windows import from_ms
from astrocyte.policy.limits.rate_limits import Demand
from astrocyte.policy.operations.knowledge.items import Items
from astrocyte.policy.operations.parts import OperationParts
from astrocyte.policy.requests import field_checks
from astrocyte.policy.requests.page_tokens import LARGEST_POSITION
from astrocyte.providers.protocols import LanguageModel
from astrocyte.stores.activity import ActivityStore

NAME = "AuditCoverage"
DEFAULT_MEMORIES = 50
# Queries without an answer that count, each of which costs a recall.
MOST_UNANSWERED = 20
# Memories of a topic: enough to tell thin from covered.
MEMORIES_OF_TOPIC = 10
# Finds the memories of a bank for a caller by a call.
Recall = Callable[[Caller, str, BankStrategy | None, Sequence[Bank], RecallQuery], Awaitable[RecallResult]]


class Coverage:
    """Handler of AuditCoverage.

    Args:
        parts: What the operations share.
        activity: Queries without an answer.
        recall: Finds memories.
        clock: Milliseconds since the epoch.
    """

    def __init__(
        self, parts: OperationParts, activity: ActivityStore, recall: Recall, clock: Callable[[], int]
    ) -> None:
        self._activity = activity
        self._items = Items(parts)
        self._recall = recall
        self._clock = clock
        self._banks = parts.banks
        self._limits = parts.settings.limits
        self._settings = parts.settings.coverage
        self._policies = parts.policies
        self._model: LanguageModel | None = parts.pipelines.language_model

    async def audit_coverage(self, caller: Caller, request: AuditCoverage) -> AuditResult:
        """Find gaps."""
        bank_id = request.bank_id
        self._banks.require(caller, NAME, bank_id)
        await self._policies.limits.admit((Demand(caller.tenant, bank_id, LimitKind.REFLECT),))
        scope, questions = self._subjects(request)
        field_checks.integer(request.max_memories, "max_memories", 0, self._limits.max_results)
        if request.max_tokens is not None:
            field_checks.integer(request.max_tokens, "max_tokens", 1, LARGEST_POSITION)
        field_checks.labels(request.tags, "tags", self._limits.tags, self._limits.tag_chars)
        if self._settings.judge == "model" and self._model is None:
            raise CapabilityNotSupported(
                "coverage.judge is 'model', and there is no language model; set llm_provider, or coverage.judge: auto",
                metadata={"parameter": "coverage.judge"},
            )
        bank = self._banks.handle(caller, NAME, bank_id)
        most = request.max_memories or DEFAULT_MEMORIES
        asked = RecallQuery(
            scope or questions[0], bank_id, max_results=most, max_tokens=request.max_tokens, tags=tuple(request.tags)
        )
        sample = await self._found(caller, bank, asked)
        topics = coverage.topics_of(scope)
        found = [
            await self._topic(caller, bank, replace(asked, max_results=min(most, MEMORIES_OF_TOPIC)), topic)
            for topic in (*topics, *questions)
        ]
        now = from_ms(self._clock())
        gaps = [
            coverage.gap_of(one, now, self._settings.outdated_days, is_question=place >= len(topics))
            for place, one in enumerate(found)
        ]
        told = [replace(one, is_covered=gap is None) for one, gap in zip(found, gaps, strict=True)]
        # Those queries asked for all of the bank.
        unanswered = [] if asked.tags else await self._unanswered(caller, bank, asked)
        gaps += map(coverage.gap_of_query, unanswered)
        missing = [gap for gap in gaps if gap is not None]
        result = AuditResult(
            scope=request.scope,
            bank_id=bank_id,
            coverage_score=coverage.score(len(gaps), missing),
            gaps=coverage.ranked(missing),
            topics=tuple(told),
            memories_scanned=len({hit.memory_id for hit in sample.hits}.union(*(one.memory_ids for one in found))),
            method=AuditMethod.RULES,
            trace=sample.trace,
            unanswered=tuple(unanswered),
        )
        # There is nothing to judge in a bank without a relevant memory.
        if self._model is None or self._settings.judge == "rules" or not sample.hits:
            return result
        return await self._by_model(self._model, result, sample, [*filter(None, [scope]), *questions])

    def _subjects(self, request: AuditCoverage) -> tuple[str, tuple[str, ...]]:
        """The description and the questions."""
        scope = self._items.text(request.scope, "scope") if request.scope else ""
        most = self._limits.batch_items
        if len(request.questions) > most:
            raise ValidationError(
                f"has {len(request.questions):,} elements, the limit is {most:,}",
                field="questions",
                metadata={"limit": str(most)},
            )
        questions = tuple(self._items.text(one, f"questions[{place}]") for place, one in enumerate(request.questions))
        if not scope and not questions:
            raise ValidationError("is empty; describe what the bank is about, or send questions", field="scope")
        return scope, questions

    async def _topic(self, caller: Caller, bank: Bank, query: RecallQuery, topic: str) -> TopicCoverage:
        found = await self._found(caller, bank, replace(query, query=topic))
        relevant = [hit for hit in found.hits if hit.memory_id and hit.score >= self._settings.least_relevance]
        times = [time for hit in relevant if (time := hit.occurred_at or hit.retained_at) is not None]
        ids = tuple(dict.fromkeys(hit.memory_id or "" for hit in relevant))
        return TopicCoverage(topic, bool(ids), found.confidence or 0.0, ids, max(times, default=None))

    async def _unanswered(self, caller: Caller, bank: Bank, asked: RecallQuery) -> list[UnansweredQuery]:
        """The queries of the bank without an answer that were asked most often, each with the answer of today."""
        found = []
        for one in self._activity.unanswered(bank, MOST_UNANSWERED):
            topic = await self._topic(caller, bank, replace(asked, max_results=MEMORIES_OF_TOPIC), one.query)
            (text,) = self._policies.barriers.told(bank.bank_id, [one.query])
            found.append(UnansweredQuery(text, one.count, from_ms(one.asked_at), bool(topic.memory_ids)))
        return found

    async def _found(self, caller: Caller, bank: Bank, query: RecallQuery) -> RecallResult:
        """The memories that a reflect on the same text would be made of."""
        query, _ = await self._policies.barriers.query(NAME, query, (bank.bank_id,))
        found = await self._recall(caller, NAME, None, [bank], query)
        found = replace(found, hits=tuple(hit for hit in found.hits if hit.bank_id == bank.bank_id and not hit.engine))
        return self._policies.barriers.evidence([bank.bank_id], NAME, found)

    async def _by_model(
        self, model: LanguageModel, result: AuditResult, sample: RecallResult, subjects: Sequence[str]
    ) -> AuditResult:
        shown = self._policies.barriers.shown(result.bank_id, NAME, sample)
        deadline = time.monotonic() + self._settings.model_seconds
        try:
            score, gaps = await coverage_judge.judged(model, subjects, shown.hits, deadline)
        except (ProviderUnavailable, DeadlineExceeded):
            return replace(result, error="the language model could not judge; this is the result by rules")
        topics, reasons = [gap.topic for gap in gaps], [gap.reason for gap in gaps]
        told = self._policies.barriers.told(result.bank_id, [*topics, *reasons])
        gaps = tuple(
            GapItem(topic, gap.severity, reason)
            for gap, topic, reason in zip(gaps, told[: len(gaps)], told[len(gaps) :], strict=True)
        )
        return replace(result, coverage_score=score, gaps=gaps, method=AuditMethod.MODEL)
