"""Bounded calls to the configured language model: every call ends by its deadline.

What holds for every model from outside belongs here, so that no vendor's module has to remember it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import aclosing, contextmanager

from astrocyte.errors import AstrocyteError, DeadlineExceeded, ProviderUnavailable
from astrocyte.providers.messages import Completion, Prompt
from astrocyte.providers.protocols import LanguageModel, modalities

# No tokeniser makes longer tokens on the average; a model that sends more than its limit of these does not stop.
CHARS_PER_TOKEN = 32


class BoundedModel:
    """`LanguageModel` around another: ends a call at its deadline, or when the answer exceeds the token limit."""

    def __init__(self, model: LanguageModel) -> None:
        self._model = model

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
        with self._told():
            async with asyncio.timeout_at(deadline):
                completion = await self._model.complete(prompt, deadline=deadline)
        self._fits(len(completion.text), prompt)
        return completion

    async def stream(self, prompt: Prompt, *, deadline: float | None = None) -> AsyncIterator[str | Completion]:
        """Pieces of the text, and last of all the whole answer."""
        sent = 0
        async with aclosing(_closable(self._model.stream(prompt, deadline=deadline))) as pieces:
            while True:
                with self._told():
                    # Around each piece: what the consumer does between two of them is not the model's time.
                    async with asyncio.timeout_at(deadline):
                        piece = await anext(pieces, None)
                if piece is None:
                    raise self._failure("ended without an answer")
                if isinstance(piece, Completion):
                    self._fits(len(piece.text), prompt)
                    yield piece
                    return
                sent += len(piece)
                self._fits(sent, prompt)
                yield piece

    async def close(self) -> None:
        """Release the model's connections."""
        await self._model.close()

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Failures as errors of this package, without their message, which could hold the prompt."""
        try:
            yield
        except TimeoutError as error:
            raise DeadlineExceeded(
                f"language model {self.model_id} did not answer in time", metadata={"model": self.model_id}
            ) from error
        except AstrocyteError:
            raise
        except Exception as error:
            raise self._failure(f"failed ({type(error).__name__})") from error

    def _fits(self, chars: int, prompt: Prompt) -> None:
        if chars > prompt.max_tokens * CHARS_PER_TOKEN:
            raise self._failure(f"sent more than {prompt.max_tokens} tokens")

    def _failure(self, problem: str) -> ProviderUnavailable:
        return ProviderUnavailable(f"language model {self.model_id} {problem}", metadata={"model": self.model_id})


async def _closable(pieces: AsyncIterator[str | Completion]) -> AsyncGenerator[str | Completion, None]:
    """The same pieces from a generator, which can be closed, unlike any iterator of a model."""
    try:
        async for piece in pieces:
            yield piece
    finally:
        if isinstance(pieces, AsyncGenerator):
            await pieces.aclose()
