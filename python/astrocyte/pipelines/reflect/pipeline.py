"""Reflect: from a question to an answer out of memory.

1. recall, more memories than a caller would look at, behind the same filters;
2. read them for the question (`synthesis.evidence`), which says how likely they hold an answer;
3. abstain below the floor; check what the question takes for granted, where that is on;
4. answer: by sentences, by a language model, by one that searches, or by a synthesiser of others;
5. where that cannot be done, what ``fallback_strategy`` says; then cut to the token budget, cite, remark.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import replace
from datetime import datetime

from astrocyte.config import Settings
from astrocyte.core import bundled_embedder, text_relevance
from astrocyte.errors import CapabilityNotSupported, ConfigError, DeadlineExceeded, ProviderUnavailable
from astrocyte.model import (
    Intent,
    MemoryHit,
    RecallQuery,
    RecallResult,
    ReflectMode,
    ReflectQuery,
    ReflectResult,
)
from astrocyte.pipelines.query.intent import classify
from astrocyte.pipelines.reflect import agent, extractive, premises, second_hop
from astrocyte.pipelines.reflect import llm_answer as single
from astrocyte.pipelines.reflect.confidence import confidence
from astrocyte.pipelines.reflect.contradictions import Statements
from astrocyte.pipelines.reflect.custom_synthesis import STAGE, CustomSynthesis
from astrocyte.pipelines.reflect.draft import ABSTENTION, Draft, abstention
from astrocyte.pipelines.reflect.evidence import MOST_FOR_LIST, MOST_MEMORIES, Evidence, gather, in_windows
from astrocyte.pipelines.reflect.extractive_answer import ExtractiveAnswer
from astrocyte.pipelines.reflect.introductions import INTRODUCED, introduced
from astrocyte.pipelines.reflect.list_questions import asks_for_list
from astrocyte.pipelines.reflect.work import Allowance, Work, joined, traced, variant_of
from astrocyte.pipelines.text import detail_levels
from astrocyte.pipelines.text.time_questions import asks_for_time_only
from astrocyte.providers.protocols import LanguageModel

# How far a caller's skepticism, 3 unless said otherwise, moves the floor of abstention.
NEUTRAL = 3
# In a prompt, the question about a name that stands behind the fence.
ABOUT_SUBJECT = "What do the memories say about the subject?"


class ReflectPipeline:
    """Answers questions from memory.

    Args:
        model: The language model, if there is one.
        settings: Modes, bounds, floors.
        statements: Tells the statements of a text.
        synthesis: Who answers in mode custom.
    """

    def __init__(
        self,
        model: LanguageModel | None,
        settings: Settings,
        statements: Statements,
        synthesis: CustomSynthesis | None = None,
    ) -> None:
        self._model = model
        self._synthesis = synthesis
        self._reads = settings.pipeline.query_analysis.mode == "custom"
        self._settings = settings.pipeline.reflect
        self._extractive = ExtractiveAnswer(self._settings, statements)
        self._agentic = settings.agentic_reflect
        self._defense = settings.adversarial_defense
        self._fallback = settings.fallback_strategy
        # Comparing a dozen sentences must not cost a call over the network.
        self._embed = bundled_embedder().embed

    async def run(self, query: ReflectQuery, allowance: Allowance) -> ReflectResult:
        """The answer.

        Args:
            query: What is asked.
            allowance: What it may say and see.

        Raises:
            CapabilityNotSupported: The mode needs a language model, and there is none.
            ProviderUnavailable: The language model, or the embedder, failed, and there is nothing to fall back on.
            DeadlineExceeded: The language model did not answer in time, and there is nothing to fall back on.
        """
        mode = self._checked_mode(query)
        work = await self._begin(query, mode, allowance)
        early = await self._early(work, mode)
        if early is not None:
            return early
        try:
            draft = await self._answer(work, mode)
        except (ProviderUnavailable, DeadlineExceeded, CapabilityNotSupported) as error:
            return await self._fall_back(work, mode, error)
        return self._result(work, draft, mode)

    async def stream(self, query: ReflectQuery, allowance: Allowance) -> AsyncIterator[str | ReflectResult]:
        """Pieces of the answer as they come, and last of all the whole result; arguments and errors as of `run`.

        A language model in one call is streamed; other answers come as one piece. What fails after the first piece
        raises, since that piece cannot be taken back.
        """
        mode = self._checked_mode(query)
        work = await self._begin(query, mode, allowance)
        result = await self._early(work, mode)
        if result is None and mode is ReflectMode.LLM and self._model is not None:
            begun = False
            try:
                async with aclosing(single.stream(self._model, self._task(work))) as pieces:  # type: ignore[type-var]
                    async for piece in pieces:
                        if isinstance(piece, Draft):
                            result = self._result(work, piece, mode)
                        else:
                            begun = True
                            yield piece
            except (ProviderUnavailable, DeadlineExceeded) as error:
                if begun:
                    raise
                result = await self._fall_back(work, mode, error)
            if result is not None and begun:
                yield result
                return
        if result is None:
            try:
                result = self._result(work, await self._answer(work, mode), mode)
            except (ProviderUnavailable, DeadlineExceeded, CapabilityNotSupported) as error:
                result = await self._fall_back(work, mode, error)
        yield result.answer
        yield result

    def _checked_mode(self, query: ReflectQuery) -> ReflectMode:
        """Return the mode of the answer.

        Raises:
            CapabilityNotSupported: The answer is extractive, and the query asks for empathy.
        """
        mode = self._mode(query)
        if mode is ReflectMode.EXTRACTIVE and query.dispositions is not None and query.dispositions.empathy != NEUTRAL:
            raise CapabilityNotSupported(
                "dispositions.empathy needs a language model: an extractive answer quotes memories as they are; "
                f"set llm_provider, or leave empathy at {NEUTRAL}",
                metadata={"parameter": "dispositions.empathy", "mode": str(mode)},
            )
        return mode

    def _mode(self, query: ReflectQuery) -> ReflectMode:
        """The mode that is to answer."""
        if query.mode is not None:
            return query.mode
        if self._settings.mode != "auto":
            return ReflectMode(self._settings.mode)
        if self._model is None:
            return ReflectMode.EXTRACTIVE
        return ReflectMode.AGENTIC if self._agentic.enabled else ReflectMode.LLM

    async def _begin(self, query: ReflectQuery, mode: ReflectMode, allowance: Allowance) -> Work:
        deadline = time.monotonic() + self._settings.deadline_seconds
        recalled = await allowance.recall(self._as_recall(query, mode))
        start = time.perf_counter()
        evidence, sure = self._evidence(query, recalled)
        if mode is ReflectMode.EXTRACTIVE:
            evidence, sure = await self._followed(query, recalled, allowance, evidence, sure)
        # Whoever reads questions for recalls has read this one.
        read = recalled.trace.intent if self._reads and recalled.trace is not None else classify(query.query).intent
        return Work(query, recalled, evidence, sure, read, allowance, deadline, start)

    def _evidence(self, query: ReflectQuery, recalled: RecallResult) -> tuple[Evidence, float]:
        """The recalled memories read for the question, and the probability that they hold an answer."""
        windows = recalled.trace.time_windows if recalled.trace is not None else ()
        # The caller's own range is a filter, which every hit has passed.
        windows = tuple(window for window in windows if window != query.time_range)
        only_time = bool(windows) and asks_for_time_only(query.query)
        hits = recalled.hits
        if only_time:
            # Whatever happened then is the answer, and nothing else is.
            hits = [hit for hit in hits if in_windows(hit, windows)] or hits
        evidence = gather(query.query, hits, self._embed, windows, self._read(query))
        # The confidence of the recall does not cover engine results. The score of one may be that of a hit before it.
        brought = max((text_relevance(query.query, hit.text) for hit in hits if hit.engine), default=0.0)
        sure = confidence(max(recalled.confidence or 0.0, brought), evidence)
        own = introduced(query.query, evidence)
        return (evidence, sure) if own is None else (own, max(sure, INTRODUCED))

    async def _followed(
        self, query: ReflectQuery, recalled: RecallResult, allowance: Allowance, evidence: Evidence, sure: float
    ) -> tuple[Evidence, float]:
        """Evidence and its confidence of a second recall, by a name that the first one found, if that is surer."""
        hop = second_hop.of(query, recalled.hits[:MOST_MEMORIES])
        if hop is None:
            return evidence, sure
        again = replace(query, query=hop.question)
        found = await allowance.recall(self._as_recall(again, ReflectMode.EXTRACTIVE))
        further, surer = self._evidence(again, found)
        if not further.sentences or surer < sure:
            return evidence, sure
        return second_hop.with_link(further, hop.link, recalled.hits), surer

    @staticmethod
    def _read(query: ReflectQuery) -> int:
        """Number of memories that are read for an extractive answer."""
        return MOST_FOR_LIST if asks_for_list(query.query) else MOST_MEMORIES

    def _as_recall(self, query: ReflectQuery, mode: ReflectMode) -> RecallQuery:
        most = self._settings.recall_max_results
        return RecallQuery(
            query.query,
            query.bank_id,
            # What is not read for its sentences need not be fetched.
            max_results=min(most, self._read(query)) if mode is ReflectMode.EXTRACTIVE else most,
            tags=query.tags,
            tag_match=query.tag_match,
            fact_types=query.fact_types,
            session_id=query.session_id,
            time_range=query.time_range,
            as_of=query.as_of,
            valid_at=query.valid_at,
            query_reference_date=query.query_reference_date,
            time_zone=query.time_zone,
            include_sources=query.include_sources,
            embedding=query.embedding,
            min_position=query.min_position,
        )

    async def _early(self, work: Work, mode: ReflectMode) -> ReflectResult | None:
        """The answer of a question that need not, or must not, be synthesised."""
        if not work.recalled.hits:
            return self._result(work, abstention(0.0, extractive.remarks(work.evidence)), mode)
        if self._defense.abstention_enabled and work.confidence < self._floor(work):
            return self._result(work, abstention(work.confidence, extractive.remarks(work.evidence)), mode)
        if self._defense.premise_verification_enabled and self._model is not None and mode != ReflectMode.EXTRACTIVE:
            return await self._unsupported(work, mode)
        return None

    def _floor(self, work: Work) -> float:
        if self._defense.abstention_floor_intent_only and work.intent not in {Intent.EXPLORATORY, Intent.UNKNOWN}:
            return 0.0
        dispositions = work.query.dispositions
        skepticism = NEUTRAL if dispositions is None else dispositions.skepticism
        return min(1.0, self._defense.abstention_floor * (skepticism - 1) / (NEUTRAL - 1))

    async def _unsupported(self, work: Work, mode: ReflectMode) -> ReflectResult | None:
        """The answer that what is taken for granted does not hold, if it does not; a check that fails is none."""
        if self._model is None or work.allowance.subject:
            # A name takes nothing for granted.
            return None
        try:
            premise, used = await premises.unsupported(
                self._model,
                work.query.query,
                lambda text, count: self._search(work, text, None, count),
                min_confidence=self._defense.premise_verification_min_confidence,
                deadline=work.deadline,
            )
        except (ProviderUnavailable, DeadlineExceeded):
            return None
        work.tokens_used += used.total
        if premise is None:
            return None
        draft = abstention(
            work.confidence / 2, (f"Memory does not support what the question takes for granted: {premise}",)
        )
        return self._result(work, draft, mode)

    async def _answer(self, work: Work, mode: ReflectMode) -> Draft:
        if mode is ReflectMode.EXTRACTIVE:
            return await self._extractive.answer(work, self._as_recall(work.query, mode))
        if mode is ReflectMode.CUSTOM:
            return await self._by_another(work)
        if self._model is None:
            raise CapabilityNotSupported(
                f"reflect in mode {str(mode)!r} needs a language model; set llm_provider, or ask for mode 'extractive'",
                metadata={"parameter": "mode", "mode": str(mode)},
            )
        if mode is ReflectMode.LLM:
            return await single.answer(self._model, self._task(work))
        return await agent.answer(
            self._model,
            self._task(work),
            self._agentic,
            lambda text, as_of, count: self._search(work, text, as_of, count),
        )

    async def _by_another(self, work: Work) -> Draft:
        if self._synthesis is None:
            raise CapabilityNotSupported(
                "reflect in mode 'custom' needs pipeline.reflect.custom_synthesiser",
                metadata={"parameter": "mode", "mode": str(ReflectMode.CUSTOM)},
            )
        return await self._synthesis.answer(replace(self._task(work), query=work.query))

    def _task(self, work: Work) -> single.Task:
        subject = work.allowance.subject
        return single.Task(
            query=replace(work.query, query=ABOUT_SUBJECT) if subject else work.query,
            hits=tuple(work.recalled.hits),
            variant=variant_of(work),
            max_tokens=min(work.query.max_tokens or self._settings.synthesis_max_tokens, work.allowance.most_tokens),
            temperature=self._settings.temperature,
            deadline=work.deadline,
            confidence=work.confidence,
            authority=work.recalled.authority_context,
            directives=work.allowance.directives,
            subject=subject,
        )

    async def _search(self, work: Work, text: str, as_of: datetime | None, count: int) -> tuple[MemoryHit, ...]:
        """A further recall, behind the same filters, and never later than the question looks from."""
        limits = [instant for instant in (work.query.as_of, as_of) if instant is not None]
        query = replace(
            self._as_recall(work.query, ReflectMode.AGENTIC),
            query=text,
            max_results=count,
            as_of=min(limits, default=None),
            embedding=None,
            include_trace=False,
        )
        found = await work.allowance.recall(query)
        told = dict.fromkeys((*work.recalled.warnings, *found.warnings))
        work.recalled = replace(work.recalled, warnings=tuple(told))
        return tuple(found.hits)

    async def _fall_back(
        self, work: Work, mode: ReflectMode, error: ProviderUnavailable | DeadlineExceeded | CapabilityNotSupported
    ) -> ReflectResult:
        """The answer of the fallback strategy.

        Raises:
            AstrocyteError: The error, where they say nothing.
        """
        work.missed = f"{STAGE} ({error.reason.lower()})"
        who = "synthesiser" if mode is ReflectMode.CUSTOM else "language model"
        remark = (f"The {who} could not answer; this is what memory says.",)
        if (
            self._fallback == "local_llm"
            and mode in {ReflectMode.AGENTIC, ReflectMode.CUSTOM}
            and self._model is not None
        ):
            draft = await single.answer(self._model, self._task(work))
            return replace(self._result(work, draft, ReflectMode.LLM), fallback_used=True)
        if self._fallback == "extractive":
            draft = await self._extractive.answer(work, self._as_recall(work.query, ReflectMode.EXTRACTIVE))
            draft = replace(draft, observations=(*draft.observations, *remark))
            return replace(self._result(work, draft, ReflectMode.EXTRACTIVE), fallback_used=True)
        if self._fallback == "degrade":
            draft = replace(joined(work), observations=remark)
            return replace(self._result(work, draft, None), fallback_used=True)
        raise error

    def _result(self, work: Work, draft: Draft, mode: ReflectMode | None) -> ReflectResult:
        # A ceiling below the length of the abstention is a strange wish, but a ceiling.
        text = draft.text if draft.text != ABSTENTION else detail_levels.cut(draft.text, work.allowance.most_tokens)
        return ReflectResult(
            answer=text,
            confidence=draft.confidence,
            sources=draft.sources if work.query.include_sources else None,
            observations=(*draft.observations, *work.recalled.warnings),
            authority_context=work.recalled.authority_context,
            citations=draft.citations,
            abstained=draft.abstained,
            mode=mode,
            truncated=draft.truncated,
            tokens_used=draft.tokens_used + work.tokens_used,
            trace=traced(work),
        )


def check_models(settings: Settings, model: LanguageModel | None) -> None:
    """Refuse settings that would never do anything without a language model, where there is none.

    Raises:
        ConfigError: Names the first of them.
    """
    if model is not None:
        return
    fallback, mode = settings.fallback_strategy, settings.pipeline.reflect.mode
    wants = {
        "fallback_strategy": fallback == "local_llm",
        "pipeline.reflect.mode": mode in {"llm", "agentic"} and fallback == "error",
        "agentic_reflect.enabled": settings.agentic_reflect.enabled,
        "adversarial_defense.premise_verification_enabled": settings.adversarial_defense.premise_verification_enabled,
    }
    for key, wanted in wants.items():
        if wanted:
            raise ConfigError(f"{key} needs a language model: set llm_provider", metadata={"key": key})
