"""Spans: one around each request, and below it those of pipelines, providers and stages."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from functools import cache
from typing import Any

from opentelemetry.trace import Span

from astrocyte.api import requests
from astrocyte.model import Bank, Caller, RecallQuery, RecallResult
from astrocyte.policy.observability.method_proxy import Wrap, front
from astrocyte.policy.observability.middleware import Proceed, ProceedStream, stepped
from astrocyte.policy.observability.span_attributes import Taken, Value, given, told
from astrocyte.policy.observability.tracing import Tracing, answered, end, now, recording
from astrocyte.policy.operations.parts import Pipelines
from astrocyte.providers.engines import EngineProvider
from astrocyte.providers.messages import Completion, Prompt
from astrocyte.providers.protocols import Embedder, LanguageModel

Method = Callable[..., Any]

# Span names that differ from the RPC's: forms of one operation share its name.
NAMES: Mapping[type[Any], str] = {
    requests.BatchRetain: "retain",
    requests.StreamRetain: "retain",
    requests.BatchRecall: "recall",
    requests.StreamReflect: "reflect",
    requests.UndeleteMemory: "undelete",
    requests.GetBankStats: "bank_stats",
    requests.GetServerInfo: "server_info",
}
# A reflect that the pipeline makes, out of what it recalls.
REFLECT = "astrocyte.fallback_reflect"
# Before the stages that have spans: embedding is a call of a provider, with one of its own, and analysing takes less
# time than a span.
BEFORE = ("embed", "analyse")
# Within the core.
FEEDBACK = "feedback"


def traced_pipelines(pipelines: Pipelines, tracing: Tracing) -> Pipelines:
    """The pipelines with a span around each; those of a backend's outside are named ``provider``."""

    def around(name: str) -> Wrap:
        return lambda method: _around(tracing, name, method)

    def recall(method: Method) -> Method:
        return _recall(tracing, method)

    def reflect(method: Method) -> Method:
        async def run(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - those of the method
            with tracing.span(REFLECT):
                answered(native=False)
                return await method(*args, **kwargs)

        return run

    def in_pieces(method: Method) -> Method:
        def stream(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, None]:  # noqa: ANN401 - as above
            answered(native=False)
            return _pieces(tracing, tracing.begin(REFLECT), method(*args, **kwargs))

        return stream

    return Pipelines(
        retain=front(pipelines.retain, {"prepare": around("retain.prepare"), "store": around("provider.retain")}),
        recall=front(pipelines.recall, {"run": recall, "run_many": around("provider.recall")}),
        reflect=front(pipelines.reflect, {"run": reflect, "stream": in_pieces}),
        multi_bank=front(pipelines.multi_bank, {"run": around("provider.recall")}),
        explain=front(pipelines.explain, {"look": around("provider.recall")}),
        update=front(pipelines.update, {"run": around("provider.update")}),
        describer=pipelines.describer,
        reindexer=pipelines.reindexer,
        graph=pipelines.graph,
        knowledge=pipelines.knowledge,
        pages=pipelines.pages,
        language_model=pipelines.language_model,
        wiki=pipelines.wiki,
        wiki_tier=pipelines.wiki_tier,
        consolidator=pipelines.consolidator,
        lifecycle=pipelines.lifecycle,
        exports=pipelines.exports,
        imports=pipelines.imports,
        forget=front(pipelines.forget, {"forget": around("provider.forget"), "erase": around("provider.forget")}),
    )


def traced_engine(name: str, engine: EngineProvider, tracing: Tracing) -> EngineProvider:
    """The engine with a span around each call."""
    about: dict[str, Value] = {"astrocyte.provider": name}

    def around(operation: str) -> Wrap:
        def wrap(method: Method) -> Method:
            async def call(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - those of the method
                with tracing.span(f"provider.{operation}", about):
                    result = await method(*args, **kwargs)
                if operation == "reflect":
                    answered(native=True)
                return result

            return call

        return wrap

    return front(engine, {operation: around(operation) for operation in ("retain", "recall", "reflect", "forget")})


def traced_embedder(embedder: Embedder, provider: str, tracing: Tracing) -> Embedder:
    """The embedder with a span around each call."""

    def about(texts: Sequence[str]) -> dict[str, Value]:
        return {
            "astrocyte.provider": provider,
            "astrocyte.texts": len(texts),
            "gen_ai.operation.name": "embeddings",
            "gen_ai.request.model": embedder.model_id,
        }

    def asked(method: Method) -> Method:
        async def embed(texts: Sequence[str]) -> Any:  # noqa: ANN401 - what the method returns
            if not recording():
                return await method(texts)
            with tracing.span("provider.embed", about(texts)):
                return await method(texts)

        return embed

    def at_once(method: Method) -> Method:
        def embed_now(texts: Sequence[str]) -> Any:  # noqa: ANN401 - as above
            # A thread of the executor may not know which operation it is for.
            if not recording():
                return method(texts)
            with tracing.span("provider.embed", about(texts)):
                return method(texts)

        return embed_now

    return front(embedder, {"embed": asked, "embed_now": at_once})


def traced_model(model: LanguageModel, provider: str, tracing: Tracing) -> LanguageModel:
    """The language model with a span around each call."""
    about: dict[str, Value] = {
        "astrocyte.provider": provider,
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": model.model_id,
    }

    def used(span: Span, completion: Completion) -> None:
        span.set_attribute("gen_ai.usage.input_tokens", completion.usage.input_tokens)
        span.set_attribute("gen_ai.usage.output_tokens", completion.usage.output_tokens)

    def whole(method: Method) -> Method:
        async def complete(prompt: Prompt, *, deadline: float | None = None) -> Completion:
            with tracing.span("provider.complete", about) as span:
                completion: Completion = await method(prompt, deadline=deadline)
                used(span, completion)
                return completion

        return complete

    def in_pieces(method: Method) -> Method:
        async def stream(prompt: Prompt, *, deadline: float | None = None) -> AsyncIterator[str | Completion]:
            span = tracing.begin("provider.complete", about)
            async with aclosing(_pieces(tracing, span, method(prompt, deadline=deadline))) as pieces:
                async for piece in pieces:
                    if isinstance(piece, Completion):
                        used(span, piece)
                    yield piece

        return stream

    return front(model, {"complete": whole, "stream": in_pieces})


def _around(tracing: Tracing, name: str, method: Method) -> Method:
    async def call(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - those of the method
        if not recording():
            # Nobody sees the operation, or there is none: what is below it is nobody's either.
            return await method(*args, **kwargs)
        with tracing.span(name):
            return await method(*args, **kwargs)

    return call


async def _pieces(
    tracing: Tracing,
    span: Span,
    pieces: Any,  # noqa: ANN401 - a generator
    taken: Taken | None = None,
) -> AsyncGenerator[Any, None]:
    """The pieces; the span lasts until the last, and is current while one is made, not while one is looked at."""
    try:
        async with aclosing(stepped(pieces, lambda: tracing.inside(span, taken))) as steps:
            async for piece in steps:
                yield piece
    finally:
        if taken is None:
            span.end()
        else:
            end(span, taken)


def _recall(tracing: Tracing, method: Method) -> Method:
    """A recall whose stages have spans too: its trace knows how long each took."""

    async def run(bank: Bank, query: RecallQuery, most_tokens: int) -> RecallResult:
        if not recording():
            unseen: RecallResult = await method(bank, query, most_tokens)
            return unseen
        with tracing.span("provider.recall") as span:
            began = now()
            result: RecallResult = await method(bank, replace(query, include_trace=True), most_tokens)
            if result.trace is not None:
                timings = dict(result.trace.stage_timings_ms or {})
                began += round(sum(timings.pop(stage, 0.0) for stage in BEFORE) * 1e6)
                if FEEDBACK in timings:
                    timings["core"] += timings.pop(FEEDBACK)
                tracing.stages(span, began, {f"recall.{stage}": took for stage, took in timings.items()})
            return result if query.include_trace else replace(result, trace=None)

    return run


class TracingMiddleware:
    """A span around each request."""

    def __init__(self, tracing: Tracing) -> None:
        self._tracing = tracing

    async def call(self, caller: Caller, request: Any, proceed: Proceed) -> Any:  # noqa: ANN401 - any request and its response
        """Call with a span, which ends with the response."""
        with self._tracing.operation(span_name(request)) as (span, taken):
            if span.is_recording():
                span.set_attributes(given(request, self._tracing.provider))
            result = await proceed(caller, request)
            if span.is_recording():
                span.set_attributes(told(request, result, taken))
            return result

    async def stream(self, caller: Caller, request: Any, proceed: ProceedStream) -> AsyncIterator[Any]:  # noqa: ANN401 - any request and its responses
        """Stream with a span, which ends with the last response."""
        span = self._tracing.begin(span_name(request), given(request, self._tracing.provider))
        taken = Taken()
        async with aclosing(_pieces(self._tracing, span, proceed(caller, request), taken)) as pieces:
            async for piece in pieces:
                span.set_attributes(told(request, piece, taken))
                yield piece


def span_name(request: object) -> str:
    """Name of the span around a request: that of the RPC in small letters, or a shared one."""
    kind = type(request)
    return f"astrocyte.{NAMES.get(kind) or _words(kind.__name__)}"


@cache
def _words(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()
