"""The bundled static embedder: token vectors looked up and pooled in the core, without a model run or a network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from astrocyte.core import StaticEmbedder, bundled_embedder
from astrocyte.errors import ConfigError
from astrocyte.providers.options import read_options
from astrocyte.providers.protocols import Embedder


class StaticOptions(BaseModel):
    """Options of the static embedder."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    table: Path | None = Field(None, description="Another table than the bundled one.")


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


def create(options: Mapping[str, Any]) -> Embedder:
    """The static embedder.

    Raises:
        ConfigError: The table cannot be read.
    """
    table = read_options(StaticOptions, options).table
    if table is None:
        return Static(bundled_embedder())
    try:
        return Static(StaticEmbedder(table.read_bytes()))
    except OSError as error:
        raise ConfigError(f"embedding.options.table: cannot read {table}: {error.strerror}") from error
