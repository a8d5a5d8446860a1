"""Embeddings from ONNX models run in this process by fastembed. Extra: ``fastembed``.

The first use of a model downloads it to fastembed's cache, unless ``cache_dir`` holds it already.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from fastembed import TextEmbedding
from pydantic import BaseModel, ConfigDict, Field

from astrocyte.core import vector_bytes
from astrocyte.errors import ConfigError, ProviderUnavailable
from astrocyte.providers.options import read_options
from astrocyte.providers.protocols import Embedder


class FastembedOptions(BaseModel):
    """Options of fastembed."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    model: str = Field("BAAI/bge-small-en-v1.5", min_length=1, description="One of fastembed's text models.")
    cache_dir: Path | None = Field(None, description="Where models are kept.")
    threads: int | None = Field(None, ge=1, le=256, description="Threads of the model; None lets it choose.")
    local_files_only: bool = Field(False, description="Never download.")


class FastembedEmbedder:
    """`Embedder` over a model in this process; a thread of its own keeps it off the event loop."""

    local = False

    def __init__(self, model: TextEmbedding, name: str, dimensions: int) -> None:
        self._model = model
        self.model_id = f"{name}/{dimensions}"
        self.dimensions = dimensions
        # One: the model spreads its own work over threads.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="fastembed")

    def embed_now(self, texts: Sequence[str]) -> list[bytes]:
        """Vectors as little-endian f32, in order; takes milliseconds a text."""
        try:
            return [self._unit(list(map(float, vector))) for vector in self._model.embed(list(texts))]
        except ProviderUnavailable:
            raise
        except Exception as error:
            raise ProviderUnavailable(
                f"fastembed model {self.model_id} failed: {type(error).__name__}", metadata={"model": self.model_id}
            ) from error

    async def embed(self, texts: Sequence[str]) -> list[bytes]:
        """Vectors as little-endian f32, in order.

        Raises:
            ProviderUnavailable: The model failed.
        """
        return await asyncio.get_running_loop().run_in_executor(self._thread, self.embed_now, texts)

    async def close(self) -> None:
        """Let the thread end."""
        self._thread.shutdown(wait=False)

    def _unit(self, values: list[float]) -> bytes:
        norm = math.hypot(*values)
        if len(values) != self.dimensions or not math.isfinite(norm) or norm == 0.0:
            raise ProviderUnavailable(f"fastembed model {self.model_id} gave a vector that cannot be used")
        return vector_bytes([value / norm for value in values])


def create(options: Mapping[str, Any]) -> Embedder:
    """An embedder over a fastembed model.

    Raises:
        ConfigError: An option is wrong, or the model is unknown or cannot be had.
    """
    chosen = read_options(FastembedOptions, options)
    try:
        model = TextEmbedding(
            chosen.model,
            cache_dir=None if chosen.cache_dir is None else str(chosen.cache_dir),
            threads=chosen.threads,
            local_files_only=chosen.local_files_only,
        )
        # Asking the model itself: the list of sizes is not part of fastembed's stable surface.
        dimensions = len(next(iter(model.embed(["size"]))))
    except Exception as error:
        raise ConfigError(
            f"fastembed cannot load {chosen.model!r}: {error}", metadata={"model": chosen.model}
        ) from error
    return FastembedEmbedder(model, chosen.model, dimensions)
