"""Providers behind their circuit breakers: a call that exceeds its deadline is ended, and counts as a failure."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing
from functools import partial
from typing import TypeVar

from astrocyte.errors import ProviderUnavailable
from astrocyte.providers.circuit_breaker import Breaker
from astrocyte.providers.messages import Completion, Prompt
from astrocyte.providers.protocols import Embedder, LanguageModel, modalities

# Texts that an endpoint embeds in one go; a batch takes as many times as long.
TEXTS_AT_ONCE = 64
FLOAT_BYTES = 4

T = TypeVar("T")


class GuardedEmbedder:
    """`Embedder` around one that is not local.

    Args:
        embedder: It.
        breaker: Its own.
        timeout_seconds: How long it may take for `TEXTS_AT_ONCE` texts.
    """

    local = False

    def __init__(self, embedder: Embedder, breaker: Breaker, timeout_seconds: float) -> None:
        self._embedder = embedder
        self._breaker = breaker
        self._timeout_seconds = timeout_seconds
        self.model_id = embedder.model_id
        self.dimensions = embedder.dimensions
        self.embed_now = embedder.embed_now
        # Only where the embedder has it: whoever wants it looks whether it is there.
        inner = getattr(embedder, "embed_multimodal", None)
        self.embed_multimodal = None if inner is None else partial(self._guarded, inner)

    async def embed(self, texts: Sequence[str]) -> list[bytes]:
        """Vectors as little-endian f32, in order.

        Raises:
            CircuitOpen: It failed so often that it was not asked.
            ProviderUnavailable: It failed, hung, or did not return valid vectors.
        """
        return await self._guarded(self._embedder.embed, texts)

    async def _guarded(
        self, embed: Callable[[Sequence[T]], Awaitable[list[bytes]]], contents: Sequence[T]
    ) -> list[bytes]:
        seconds = self._timeout_seconds * -(-len(contents) // TEXTS_AT_ONCE)
        with self._breaker.call():
            try:
                async with asyncio.timeout(seconds):
                    vectors = await embed(contents)
            except TimeoutError as error:
                raise self._failure(f"did not answer in {seconds:g} s") from error
            except ProviderUnavailable:
                raise
            except Exception as error:
                # Without its message, which could hold what was sent.
                raise self._failure(f"failed ({type(error).__name__})") from error
            if [len(vector) for vector in vectors] != [FLOAT_BYTES * self.dimensions] * len(contents):
                raise self._failure("did not return valid vectors")
        return vectors

    async def close(self) -> None:
        """Release connections."""
        await self._embedder.close()

    def _failure(self, problem: str) -> ProviderUnavailable:
        return ProviderUnavailable(f"embedder {self.model_id} {problem}", metadata={"model": self.model_id})


class GuardedModel:
    """`LanguageModel` around another, which ends its calls by their deadlines itself."""

    def __init__(self, model: LanguageModel, breaker: Breaker) -> None:
        self._model = model
        self._breaker = breaker

    @property
    def model_id(self) -> str:
        """The model's own."""
        return self._model.model_id

    @property
    def modalities(self) -> frozenset[str]:
        """The model's own."""
        return modalities(self._model)

    async def complete(self, prompt: Prompt, *, deadline: float | None = None) -> Completion:
        """The whole answer."""
        with self._breaker.call():
            return await self._model.complete(prompt, deadline=deadline)

    async def stream(self, prompt: Prompt, *, deadline: float | None = None) -> AsyncIterator[str | Completion]:
        """Pieces of the text, and last of all the whole answer."""
        with self._breaker.call():
            async with aclosing(self._model.stream(prompt, deadline=deadline)) as pieces:  # type: ignore[type-var]
                async for piece in pieces:
                    yield piece

    async def close(self) -> None:
        """Release the model's connections."""
        await self._model.close()
