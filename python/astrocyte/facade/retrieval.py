"""The part of the Python API on questions: recall, history, explain, reflect."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from datetime import datetime
from typing import Any, Unpack

from astrocyte.api import Backend
from astrocyte.api.requests import (
    BatchRecall,
    Explain,
    History,
    Recall,
    Reflect,
    StreamReflect,
)
from astrocyte.facade import keywords
from astrocyte.facade.keywords import (
    RecallOptions,
    ReflectOptions,
    Strategy,
    Texts,
)
from astrocyte.model import (
    AstrocyteContext,
    DetailLevel,
    Dispositions,
    ExplainQuery,
    ExplainResult,
    FusionMethod,
    HistoryResult,
    MemoryHit,
    RecallQuery,
    RecallResult,
    ReflectResult,
    TagMatch,
)


class Retrieval:
    """The calls of `Astrocyte` that answer questions.

    ``context`` names the caller, the local user by default.
    """

    _backend: Backend

    async def recall(  # noqa: PLR0913 - the parameters of the specification
        self,
        query: str,
        bank_id: str | None = None,
        *,
        banks: Texts | None = None,
        strategy: Strategy | None = None,
        max_results: int = 10,
        max_tokens: int | None = None,
        tags: Texts | None = None,
        context: AstrocyteContext | None = None,
        external_context: Sequence[MemoryHit] | None = None,
        fact_types: Texts | None = None,
        time_range: tuple[datetime, datetime] | None = None,
        include_sources: bool = False,
        layer_weights: dict[str, float] | None = None,
        detail_level: str | None = None,
        as_of: datetime | None = None,
        **options: Unpack[RecallOptions],
    ) -> RecallResult:
        """Find the memories that matter to a query, best first.

        Args:
            query: A question in natural language.
            bank_id: Where to look.
            banks: Where to look instead, in several banks; see `MultiBankStrategy`. A configured group of banks is
                named by ``bank_group`` in the options.
            strategy: How several banks are asked; None is as configured.
            max_results: Hits wanted.
            max_tokens: Budget of all hits' texts together.
            tags: Only memories with at least one of these labels; see ``tag_match`` in the options.
            context: Who calls.
            external_context: Results of another system to blend in, under the same filter and budget; never stored.
            fact_types: Only these kinds of facts.
            time_range: Only memories that happened (or, where that is not known, were stored) in it; ends included.
            include_sources: Whether hits carry their source and the principal that stored them.
            layer_weights: Factors by memory layer; ``fact`` is semantic and episodic.
            detail_level: titles, chunk (the default) or full.
            as_of: The bank as the service knew it then.
            **options: See `RecallOptions`.

        Raises:
            BankNotFound: There is no such bank.
        """
        keywords.refuse_unknown("recall", options, RecallOptions)
        keywords.refuse_nowhere(bank_id, banks, options.get("bank_group"))
        extra: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
        keywords.convert(extra, "tag_match", lambda value: keywords.choice(TagMatch, value, "tag_match"))
        keywords.convert(extra, "fusion_method", lambda value: keywords.choice(FusionMethod, value, "fusion_method"))
        keywords.convert(extra, "retained_range", lambda value: keywords.time_range(value, "retained_range"))
        keywords.convert(extra, "memory_ids", lambda value: keywords.texts(value, "memory_ids"))
        asked = RecallQuery(
            query=query,
            bank_id=bank_id or "",
            banks=keywords.texts(banks, "banks"),
            strategy=keywords.strategy_of(strategy),
            max_results=max_results,
            max_tokens=max_tokens,
            tags=keywords.texts(tags, "tags"),
            fact_types=keywords.texts(fact_types, "fact_types"),
            time_range=keywords.time_range(time_range, "time_range") if time_range is not None else None,
            include_sources=include_sources,
            layer_weights=layer_weights or {},
            detail_level=keywords.choice(DetailLevel, detail_level or DetailLevel.CHUNK, "detail_level"),
            as_of=as_of,
            external_context=tuple(external_context or ()),
            **extra,
        )
        return keywords.plain(await self._backend.call(keywords.caller_of(context), Recall(asked)))

    async def recall_many(
        self, queries: Sequence[RecallQuery], *, context: AstrocyteContext | None = None
    ) -> list[RecallResult]:
        """Answer many queries, over any banks; each result equals the one of `recall`."""
        results = await self._backend.call(keywords.caller_of(context), BatchRecall(queries))
        return [keywords.plain(result) for result in results]

    async def explain(
        self,
        query: RecallQuery,
        memory_ids: Sequence[str],
        *,
        position: int = 0,
        context: AstrocyteContext | None = None,
    ) -> ExplainResult:
        """Where memories fell out of a recall, or their places in it, and the least change that would return each.

        Args:
            query: The recall, of one bank or several.
            memory_ids: The memories in question.
            position: Position that the trace of a finished recall of one bank names; the result says when the bank
                moved on since.
            context: Who calls.
        """
        asked = ExplainQuery(query, keywords.texts(memory_ids, "memory_ids"), position)
        return await self._backend.call(keywords.caller_of(context), Explain(asked))

    async def history(  # noqa: PLR0913 - the parameters of the specification
        self,
        query: str,
        bank_id: str,
        as_of: datetime,
        *,
        max_results: int = 10,
        max_tokens: int | None = None,
        tags: Texts | None = None,
        context: AstrocyteContext | None = None,
    ) -> HistoryResult:
        """Recall on the bank as it was known at ``as_of``. Forgotten memories are absent at every instant."""
        asked = RecallQuery(
            query=query,
            bank_id=bank_id,
            as_of=as_of,
            max_results=max_results,
            max_tokens=max_tokens,
            tags=keywords.texts(tags, "tags"),
        )
        return keywords.plain(await self._backend.call(keywords.caller_of(context), History(asked)))

    async def reflect(  # noqa: PLR0913 - the parameters of the specification
        self,
        query: str,
        bank_id: str | None = None,
        *,
        banks: Texts | None = None,
        strategy: Strategy | None = None,
        max_tokens: int | None = None,
        tags: Texts | None = None,
        context: AstrocyteContext | None = None,
        include_sources: bool = True,
        dispositions: Dispositions | Mapping[str, int] | None = None,
        **options: Unpack[ReflectOptions],
    ) -> ReflectResult:
        """Answer a question from memory; the answer says what it rests on, and when memory does not hold one.

        Args:
            query: A question in natural language.
            bank_id: Where to look.
            banks: Where to look instead, in several banks; ``bank_group`` in the options names a configured group.
            strategy: How several banks are asked; None is as configured.
            max_tokens: Budget of the answer.
            tags: Only from memories with at least one of these labels; see ``tag_match`` in the options.
            context: Who calls.
            include_sources: Whether the result carries the memories that the answer rests on.
            dispositions: How the answer leans: `Dispositions`, or a mapping with its names.
            **options: See `ReflectOptions`; ``mode`` is extractive, llm or agentic.

        Raises:
            BankNotFound: There is no such bank.
            CapabilityNotSupported: The mode needs a language model.
            ProviderUnavailable: The language model failed, and the settings name nothing to fall back on.
        """
        asked = keywords.question(query, bank_id, banks, strategy, max_tokens, tags, dispositions, options)
        request = Reflect(replace(asked, include_sources=include_sources))
        return keywords.plain_reflect(await self._backend.call(keywords.caller_of(context), request))

    async def reflect_stream(  # noqa: PLR0913 - the parameters of reflect
        self,
        query: str,
        bank_id: str | None = None,
        *,
        banks: Texts | None = None,
        strategy: Strategy | None = None,
        max_tokens: int | None = None,
        tags: Texts | None = None,
        context: AstrocyteContext | None = None,
        dispositions: Dispositions | Mapping[str, int] | None = None,
        **options: Unpack[ReflectOptions],
    ) -> AsyncIterator[str | ReflectResult]:
        """As `reflect`: the pieces of the answer as they come, and last of all the whole result."""
        asked = keywords.question(query, bank_id, banks, strategy, max_tokens, tags, dispositions, options)
        async with aclosing(self._backend.stream(keywords.caller_of(context), StreamReflect(asked))) as pieces:  # type: ignore[type-var]
            async for piece in pieces:
                yield keywords.plain_reflect(piece) if isinstance(piece, ReflectResult) else piece
