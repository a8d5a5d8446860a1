"""Protocols of the providers that the pipelines call."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Protocol

from astrocyte.model import ContentPart
from astrocyte.providers.messages import Completion, Prompt


class Embedder(Protocol):
    """A model from texts to unit vectors of one named space.

    ``model_id`` names the space for ever: two embedders with the same id give comparable vectors. ``local`` is True
    when ``embed_now`` answers within microseconds and without input or output, so that it may run on the event loop,
    and on several threads at once.
    """

    @property
    def model_id(self) -> str: ...

    @property
    def dimensions(self) -> int: ...

    @property
    def local(self) -> bool: ...

    def embed_now(self, texts: Sequence[str]) -> list[bytes]:
        """Vectors as little-endian f32, in order. Only when ``local``."""

    async def embed(self, texts: Sequence[str]) -> list[bytes]:
        """Vectors as little-endian f32, in order.

        Raises:
            ProviderUnavailable: The provider failed, refused, timed out, or did not return valid vectors.
                The message must not repeat what was sent or received.
        """

    async def close(self) -> None:
        """Release connections."""


class MultimodalEmbedder(Embedder, Protocol):
    """An embedder whose space holds more than texts."""

    async def embed_multimodal(self, contents: Sequence[Sequence[ContentPart]]) -> list[bytes]:
        """One vector for each content, which is a list of parts, as little-endian f32, in order.

        Raises:
            ProviderUnavailable: As `embed`.
        """


class LanguageModel(Protocol):
    """A model from messages to text or tool calls. ``model_id`` names it in traces and errors.

    ``deadline`` is an instant of `time.monotonic` at which the caller stops waiting; None for no such instant. A model
    that retries gives up when the next try would begin after it; one that hangs is cut by
    `astrocyte.providers.bounded`, through which every model of the settings is called.

    A model that takes in more than text says so by an attribute ``modalities``, a set of ``image`` and ``audio``.

    Both methods raise:
        ProviderUnavailable: The provider failed, refused the request, or returned an invalid answer.
        DeadlineExceeded: The deadline came first.
    """

    @property
    def model_id(self) -> str: ...

    async def complete(self, prompt: Prompt, *, deadline: float | None = None) -> Completion:
        """The whole answer."""

    def stream(self, prompt: Prompt, *, deadline: float | None = None) -> AsyncIterator[str | Completion]:
        """Pieces of the text as they come, and last of all the whole answer; an answer cut short raises instead."""

    async def close(self) -> None:
        """Release connections."""


def modalities(model: LanguageModel) -> frozenset[str]:
    """The modalities that a model accepts beside text: ``image``, ``audio``, both or none."""
    return frozenset(getattr(model, "modalities", ()))


class Reranker(Protocol):
    """Grades passages by how well they answer a question. ``model_id`` names it in traces.

    Found by `pipeline.reranking.mode`: a distribution registers ``create(options)`` under the entry point group
    ``astrocyte.rerankers``. Whatever it does, no recall fails for it: it is left out when it is late, raises, or
    answers with something else than numbers.

    One whose passages do not leave this process says so by an attribute ``local`` that is True, and reads them as they
    are stored; others read them after the outbound policy for personal data (`dlp`), where that is on.
    """

    @property
    def model_id(self) -> str: ...

    async def score(self, query: str, passages: Sequence[str], *, deadline: float | None = None) -> Sequence[float]:
        """One finite number for each passage, in order; higher is better, on any scale.

        ``deadline`` is an instant of `time.monotonic` at which the caller stops waiting.
        """

    async def close(self) -> None:
        """Release its resources."""


def is_local(reranker: Reranker) -> bool:
    """True if the texts given to a reranker stay in this process."""
    return getattr(reranker, "local", False) is True
