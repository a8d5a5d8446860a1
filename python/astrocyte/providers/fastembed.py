"""Embeddings from ONNX models run in this process by fastembed. Extra: ``fastembed``.

The first use of a model downloads it to fastembed's cache, unless ``cache_dir`` holds it already. With ``model_path``
nothing is ever fetched.
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

AT = "embedding.options"


class FastembedOptions(BaseModel):
    """Options of fastembed."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    model: str = Field("BAAI/bge-small-en-v1.5", min_length=1, description="One of fastembed's text models.")
    model_path: Path | None = Field(None, description="Folder that holds its ONNX file, tokenizer and configuration.")
    cache_dir: Path | None = Field(None, description="Where models are kept.")
    threads: int | None = Field(None, ge=1, le=256, description="Threads of the model; None lets it choose.")
    local_files_only: bool = Field(False, description="Never download.")
    # Each batch is padded to its longest text: fastembed's 256 took five times the memory where lengths differ.
    batch_size: int = Field(32, ge=1, le=256, description="Texts that are read together.")


class FastembedEmbedder:
    """`Embedder` over a model in this process; a thread of its own keeps it off the event loop."""

    local = False

    def __init__(self, model: TextEmbedding, name: str, dimensions: int, batch_size: int) -> None:
        self._model = model
        self._batch_size = batch_size
        self.model_id = f"{name}/{dimensions}"
        self.dimensions = dimensions
        # One: the model spreads its own work over threads.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="fastembed")

    def embed_now(self, texts: Sequence[str]) -> list[bytes]:
        """Vectors as little-endian f32, in order; takes milliseconds a text."""
        # Texts of one length waste no room in a batch.
        order = sorted(range(len(texts)), key=lambda place: len(texts[place]))
        try:
            read = [texts[place] for place in order]
            found = [list(map(float, vector)) for vector in self._model.embed(read, batch_size=self._batch_size)]
        except Exception as error:
            raise ProviderUnavailable(
                f"fastembed model {self.model_id} failed: {type(error).__name__}", metadata={"model": self.model_id}
            ) from error
        if len(found) != len(texts):
            raise ProviderUnavailable(f"fastembed model {self.model_id} did not return one vector for each text")
        vectors = [b""] * len(texts)
        for place, values in zip(order, found, strict=True):
            vectors[place] = self._unit(values)
        return vectors

    async def embed(self, texts: Sequence[str]) -> list[bytes]:
        """Vectors as little-endian f32, in order.

        Raises:
            ProviderUnavailable: The model failed.
        """
        return await asyncio.get_running_loop().run_in_executor(self._thread, self.embed_now, texts)

    async def close(self) -> None:
        """Stop the thread."""
        self._thread.shutdown(wait=False)

    def _unit(self, values: list[float]) -> bytes:
        norm = math.hypot(*values)
        if len(values) != self.dimensions or not math.isfinite(norm) or norm == 0.0:
            raise ProviderUnavailable(
                f"fastembed model {self.model_id} returned a vector that is zero, infinite or not a number"
            )
        return vector_bytes([value / norm for value in values])


def create(options: Mapping[str, Any]) -> Embedder:
    """An embedder over a fastembed model, from a local folder where ``model_path`` names one.

    Raises:
        ConfigError: An option is wrong, or the model is unknown or cannot be had.
    """
    chosen = read_options(FastembedOptions, options)
    folder = _folder(chosen)
    try:
        model = TextEmbedding(
            chosen.model,
            cache_dir=None if chosen.cache_dir is None else str(chosen.cache_dir),
            threads=chosen.threads,
            local_files_only=chosen.local_files_only or folder is not None,
            specific_model_path=folder,
        )
        # Asking the model itself: the list of sizes is not part of fastembed's stable surface.
        dimensions = len(next(iter(model.embed(["size"]))))
    except Exception as error:
        where = "" if folder is None else f" from {chosen.model_path}"
        raise ConfigError(
            f"fastembed cannot load {chosen.model!r}{where}: {error}", metadata={"model": chosen.model}
        ) from error
    return FastembedEmbedder(model, chosen.model, dimensions, chosen.batch_size)


def _folder(chosen: FastembedOptions) -> str | None:
    if chosen.model_path is None:
        return None
    if chosen.cache_dir is not None:
        # It would have no effect: a folder of the model's own is never looked for in a cache.
        raise ConfigError(
            f"{AT}.cache_dir: cannot be combined with model_path; set one of them", metadata={"key": "cache_dir"}
        )
    if not chosen.model_path.expanduser().is_dir():
        raise ConfigError(f"{AT}.model_path: there is no folder {chosen.model_path}", metadata={"key": "model_path"})
    return str(chosen.model_path.expanduser())
