"""The bundled static embedder: token vectors looked up and pooled in the core, without a model run or a network."""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from astrocyte.core import StaticEmbedder, bundled_embedder
from astrocyte.errors import ConfigError
from astrocyte.providers.options import read_options
from astrocyte.providers.protocols import Embedder

FLOAT_BYTES = 4


class StaticOptions(BaseModel):
    """Options of the static embedder."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    table: Path | None = Field(None, description="Another table than the bundled one.")
    dimensions: int | None = Field(
        None,
        ge=8,
        description="Values that are kept of each vector, the first ones; a model of its own, smaller and coarser.",
    )


class Static:
    """`Embedder` over a table of token vectors; answers at once."""

    local = True

    def __init__(self, embedder: StaticEmbedder) -> None:
        self.model_id: str = embedder.model_id
        self.dimensions: int = embedder.dimensions
        self.embed_now = embedder.embed

    async def embed(self, texts: Sequence[str]) -> list[bytes]:
        """Vectors as little-endian f32, in order."""
        return self.embed_now(texts)

    async def close(self) -> None:
        """Nothing to release."""


class Cut:
    """`Embedder` that keeps the first values of another's vectors, and makes them unit vectors again.

    Args:
        whole: Answers at once.
        dimensions: How many values are kept; fewer than there are.
    """

    local = True

    def __init__(self, whole: Static, dimensions: int) -> None:
        self._whole = whole
        self.dimensions = dimensions
        self.model_id = f"{whole.model_id}-{dimensions}"

    def embed_now(self, texts: Sequence[str]) -> list[bytes]:
        """Vectors as little-endian f32, in order."""
        return [self._cut(vector) for vector in self._whole.embed_now(texts)]

    async def embed(self, texts: Sequence[str]) -> list[bytes]:
        """Vectors as little-endian f32, in order."""
        return self.embed_now(texts)

    async def close(self) -> None:
        """Nothing to release."""

    def _cut(self, vector: bytes) -> bytes:
        values = struct.unpack_from(f"<{self.dimensions}f", vector)
        length = math.hypot(*values)
        # Text without a known token has no direction, however many values are kept.
        return (
            struct.pack(f"<{self.dimensions}f", *(value / length for value in values))
            if length
            else bytes(FLOAT_BYTES * self.dimensions)
        )


def create(options: Mapping[str, Any]) -> Embedder:
    """The static embedder.

    Raises:
        ConfigError: The table cannot be read, or has fewer dimensions than are to be kept.
    """
    given = read_options(StaticOptions, options)
    whole = _whole(given.table)
    if given.dimensions is None or given.dimensions == whole.dimensions:
        return whole
    if given.dimensions > whole.dimensions:
        raise ConfigError(
            f"options.dimensions of a static embedder: the table has {whole.dimensions}, got {given.dimensions}",
            metadata={"dimensions": str(whole.dimensions)},
        )
    return Cut(whole, given.dimensions)


def _whole(table: Path | None) -> Static:
    if table is None:
        return Static(bundled_embedder())
    try:
        return Static(StaticEmbedder(table.read_bytes()))
    except OSError as error:
        raise ConfigError(f"embedding.options.table: cannot read {table}: {error.strerror}") from error
