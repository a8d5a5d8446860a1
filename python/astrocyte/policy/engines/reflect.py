"""Reflect by an engine: its answer is screened like its hits.

An answer that rests on a memory which this server has forgotten, archived or changed is not shown: the
pipeline answers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from astrocyte.config.engines import PIPELINE
from astrocyte.core import count_tokens
from astrocyte.errors import AstrocyteError, FailedPrecondition, ProviderUnavailable
from astrocyte.model import Bank, Caller, MemoryHit, RecallQuery, RecallResult, ReflectQuery, ReflectResult
from astrocyte.pipelines.text import detail_levels
from astrocyte.policy.engines.registry import Engine, Engines, cause_of
from astrocyte.policy.engines.result_screening import ResultScreening
from astrocyte.policy.events import emit
from astrocyte.policy.privacy.barriers import Barriers
from astrocyte.providers.engines import EngineAnswer, EngineReflection

# Sources that an answer may name, as many as a recall may have hits.
MOST_SOURCES = 200


class EngineReflecting:
    """Routes reflects to the engines of the banks that are configured for it.

    Args:
        engines: All of them.
        screening: Screens their hits.
        barriers: Judge what they say.
        name_of: Who a caller counts as.
    """

    def __init__(
        self, engines: Engines, screening: ResultScreening, barriers: Barriers, name_of: Callable[[Caller], str]
    ) -> None:
        self._engines = engines
        self._screening = screening
        self._barriers = barriers
        self._name_of = name_of

    async def answer(
        self, caller: Caller, operation: str, bank: Bank, query: ReflectQuery, most_tokens: int
    ) -> ReflectResult | None:
        """The answer of the engine that should give it, under a ceiling; None where the pipeline has to.

        Raises:
            ProviderUnavailable: It failed, and both sides are required.
            FailedPrecondition: It refused, or cannot be asked, and both sides are required.
        """
        engine = self._engines.of_bank(bank)
        if engine is None or engine.settings.reflect_target == PIPELINE:
            return None
        past = query.as_of is not None or query.valid_at is not None
        try:
            if engine.too_far(caller) or (past and not engine.able.time_travel):
                raise FailedPrecondition(
                    f"engine {engine.name!r} cannot run this reflect", metadata={"engine": engine.name}
                )
            limit = min(most_tokens, query.max_tokens or most_tokens)
            return await self._asked(caller, operation, engine, bank, replace(query, max_tokens=limit))
        except AstrocyteError as error:
            emit("engine_failed", operation=operation, bank_id=bank.bank_id, engine=engine.name, reason=cause_of(error))
            if engine.settings.require_both:
                raise
            return None

    async def _asked(
        self, caller: Caller, operation: str, engine: Engine, bank: Bank, query: ReflectQuery
    ) -> ReflectResult:
        seconds = engine.settings.reflect_timeout_seconds
        call = engine.call_for(caller, self._name_of(caller), bank.bank_id, seconds)
        question = replace(query, embedding=None, min_position=0, include_sources=True)
        given: object = await engine.ask(lambda: engine.provider.reflect(call, question), seconds)
        if not isinstance(given, EngineReflection) or not isinstance(given.result, ReflectResult):
            raise ProviderUnavailable(
                f"engine {engine.name!r} returned an invalid answer",
                metadata={"engine": engine.name, "cause": "not_an_answer"},
            )
        result = given.result
        said = self._barriers.screen_engine_result(
            bank.bank_id,
            operation,
            RecallResult((MemoryHit(result.answer, 0.0, bank_id=bank.bank_id),), 0, truncated=False),
        )
        if not said.hits:
            raise ProviderUnavailable(
                f"engine {engine.name!r} returned an answer that the bank's privacy barrier refuses",
                metadata={"engine": engine.name, "cause": "PII_REJECTED"},
            )
        asked = RecallQuery(query.query, bank.bank_id, max_results=MOST_SOURCES, include_sources=query.include_sources)
        judged = self._screening.judge(
            engine.name,
            bank,
            operation,
            _filters(asked, query),
            EngineAnswer(tuple(result.sources or ()), given.origins),
        )
        if judged.outdated:
            raise ProviderUnavailable(
                f"engine {engine.name!r} answered from {judged.outdated} memories that were forgotten, archived or "
                "changed here",
                metadata={"engine": engine.name, "cause": "outdated"},
            )
        limit = query.max_tokens or 0
        text = said.hits[0].text
        cut = count_tokens(text) > limit
        text = detail_levels.cut(text, limit) if cut else text
        same = text == result.answer
        shown = {hit.memory_id for hit in judged.hits}
        confidence = result.confidence if isinstance(result.confidence, float) else 0.0
        return ReflectResult(
            answer=text,
            confidence=min(1.0, max(0.0, confidence)),
            sources=judged.hits if query.include_sources else None,
            observations=(f"answered by engine {engine.name}", *said.warnings, *judged.warnings),
            # Places in an answer that was changed are not those that the engine meant.
            citations=tuple(one for one in result.citations if one.memory_id in shown) if same else (),
            abstained=bool(result.abstained),
            truncated=cut or bool(result.truncated),
        )


def _filters(asked: RecallQuery, query: ReflectQuery) -> RecallQuery:
    """The recall with the filters of a reflect."""
    return replace(
        asked,
        tags=query.tags,
        tag_match=query.tag_match,
        fact_types=query.fact_types,
        session_id=query.session_id,
        time_range=query.time_range,
        as_of=query.as_of,
        valid_at=query.valid_at,
        query_reference_date=query.query_reference_date,
        time_zone=query.time_zone,
    )
