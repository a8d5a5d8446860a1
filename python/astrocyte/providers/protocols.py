"""What the pipelines may ask of a provider."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class Embedder(Protocol):
    """Texts to unit vectors of one named space.

    ``model_id`` names the space for ever: two embedders with the same id give comparable vectors. ``local`` is True
    when ``embed_now`` answers within microseconds and without input or output, so that it may run on the event loop.
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
            ProviderUnavailable: The provider failed, refused, timed out, or answered with something else than vectors.
        """

    async def close(self) -> None:
        """Release connections."""
