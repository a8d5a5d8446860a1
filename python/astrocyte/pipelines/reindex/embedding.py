"""Vectors for versions that are stored already: in small batches, with rests in between, and again where it failed."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import Executor
from time import perf_counter

from astrocyte.config import ReindexSettings
from astrocyte.errors import CircuitOpen, ProviderUnavailable
from astrocyte.pipelines.index.embedding_spaces import usable
from astrocyte.pipelines.index.rows import embedded_text
from astrocyte.providers.protocols import Embedder
from astrocyte.stores.operations import Embedded
from astrocyte.stores.records import VersionRecord

# The longest rest before another attempt.
MOST_REST_SECONDS = 60.0


def texts_of(version: VersionRecord) -> list[str]:
    """The texts of a version to embed: the whole, then each chunk."""
    memory = version.memory
    return [embedded_text(text, memory.speaker) for text in (memory.content, *(chunk.text for chunk in memory.chunks))]


class VectorMaker:
    """Asks embedders for vectors of versions.

    Args:
        settings: How many texts at once, how often, and how much rest.
        executor: Where local embedders work.
    """

    def __init__(self, settings: ReindexSettings, executor: Executor) -> None:
        self._settings = settings
        self._executor = executor

    async def vectors_of(self, embedder: Embedder, versions: Sequence[VersionRecord]) -> list[Embedded]:
        """The vectors of each version.

        Raises:
            ProviderUnavailable: The embedder failed as often as it may.
        """
        texts = [texts_of(version) for version in versions]
        flat = [text for own in texts for text in own]
        size = self._settings.batch_texts
        vectors: list[bytes | None] = []
        for first in range(0, len(flat), size):
            start = perf_counter()
            vectors += map(usable, await self._embedded(embedder, flat[first : first + size]))
            await self.rest(perf_counter() - start)
        made: list[Embedded] = []
        start_at = 0
        for version, own in zip(versions, texts, strict=True):
            made.append((version.row_key, vectors[start_at : start_at + len(own)]))
            start_at += len(own)
        return made

    async def rest(self, worked_seconds: float) -> None:
        """Leave others their share of the time."""
        await asyncio.sleep(self.owed(worked_seconds))

    def owed(self, worked_seconds: float) -> float:
        """The seconds to rest after so much work."""
        return worked_seconds * (1.0 - self._settings.share) / self._settings.share

    async def _embedded(self, embedder: Embedder, texts: list[str]) -> list[bytes]:
        rest = self._settings.retry_seconds
        for _ in range(self._settings.attempts - 1):
            try:
                return await self._once(embedder, texts)
            except CircuitOpen as error:
                await asyncio.sleep(min(max(error.retry_after, rest), MOST_REST_SECONDS))
            except ProviderUnavailable:
                await asyncio.sleep(min(rest, MOST_REST_SECONDS))
            rest *= 2
        return await self._once(embedder, texts)

    async def _once(self, embedder: Embedder, texts: list[str]) -> list[bytes]:
        if not embedder.local:
            return await embedder.embed(texts)
        return await asyncio.get_running_loop().run_in_executor(self._executor, embedder.embed_now, texts)
