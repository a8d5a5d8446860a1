"""Shared by tests of reflect: a bank with memories, and a language model that follows a script."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from astrocyte.api.requests import BatchRetain, Reflect, StreamReflect
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.core import bundled_embedder
from astrocyte.errors import (
    ProviderUnavailable,
)
from astrocyte.model import (
    Caller,
    MemoryHit,
    ReflectQuery,
    ReflectResult,
    RetainItem,
    TimeRange,
)
from astrocyte.pipelines.reflect import extractive
from astrocyte.pipelines.reflect.draft import Draft
from astrocyte.pipelines.reflect.evidence import Evidence, gather
from astrocyte.pipelines.reflect.extractive import Form
from astrocyte.pipelines.reflect.selection import choose
from astrocyte.providers.bounded import BoundedModel
from astrocyte.providers.messages import Completion, FinishReason, Prompt, TokenUsage, ToolCall

ME = Caller()
TEA = "Mara drinks green tea every morning."
MEMORIES = (
    RetainItem(TEA, tags=("drinks",), source="diary"),
    RetainItem("Ben plays the cello in an orchestra.", tags=("music",)),
    RetainItem("The orchestra meets on Thursdays.", tags=("music",)),
)
ASKED = "What does Mara drink in the morning?"


class Model:
    """Answers what it is told to, in order, the last answer again and again; an exception is raised, None hangs."""

    model_id = "scripted"

    def __init__(self, *answers: str | Completion | Exception | None) -> None:
        self.answers = list(answers)
        self.prompts: list[Prompt] = []

    async def complete(self, prompt: Prompt, *, deadline: float | None = None) -> Completion:
        self.prompts.append(prompt)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if answer is None:
            await asyncio.sleep(60)
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, Completion) else Completion(answer or "", usage=TokenUsage(10, 5))

    async def stream(self, prompt: Prompt, *, deadline: float | None = None) -> AsyncIterator[str | Completion]:
        completion = await self.complete(prompt, deadline=deadline)
        for start in range(0, len(completion.text), 4):
            yield completion.text[start : start + 4]
        yield completion

    async def close(self) -> None:
        pass


DOWN = ProviderUnavailable("down")


@asynccontextmanager
async def memory(model: Model | None = None, **settings: Any) -> AsyncIterator[App]:
    """A bank with the memories, and this language model."""
    values = {"vector_store": "in_memory", "llm_provider": "none" if model is None else "mock"} | settings
    with pytest.MonkeyPatch.context() as patch:
        if model is not None:
            patch.setattr("astrocyte.wiring.providers.create_language_model", lambda name, options: BoundedModel(model))
        app = App(Settings.from_mapping(values))
    await app.gate.call(ME, BatchRetain("b", MEMORIES))
    yield app
    await app.close()


async def ask(app: App, query: str = ASKED, **options: Any) -> ReflectResult:
    return await app.gate.call(ME, Reflect(ReflectQuery(query, "b", **options)))


async def pieces(app: App, **options: Any) -> tuple[list[str], ReflectResult]:
    texts: list[str] = []
    async for piece in app.gate.stream(ME, StreamReflect(ReflectQuery(ASKED, "b", **options))):
        if isinstance(piece, ReflectResult):
            return texts, piece
        texts.append(piece)
    raise AssertionError("no result")


def call(name: str, identity: str = "c", **arguments: Any) -> Completion:
    return Completion("", FinishReason.TOOL_CALLS, (ToolCall(identity, name, arguments),), TokenUsage(100, 10))


def read(query: str, hits: Sequence[MemoryHit], windows: Sequence[TimeRange] = ()) -> Evidence:
    return gather(query, hits, bundled_embedder().embed, windows)


def composed(
    evidence: Evidence, max_tokens: int = 96, *, literalism: int = 3, by_time: bool = False, events: bool = False
) -> Draft:
    chosen = choose(evidence.sentences, max_tokens=max_tokens, most=6, literalism=literalism)
    return extractive.compose(evidence, chosen, Form(max_tokens, by_time=by_time, events=events))
