"""Cross-encoders from ONNX files, run in this process by fastembed. Extra: ``fastembed``. Nothing is ever fetched."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from fastembed.rerank.cross_encoder import TextCrossEncoder
from pydantic import BaseModel, ConfigDict, Field

from astrocyte.errors import ConfigError, ProviderUnavailable
from astrocyte.providers.options import read_options
from astrocyte.providers.protocols import Reranker

AT = "pipeline.reranking.options"


class CrossEncoderOptions(BaseModel):
    """Options of a cross-encoder."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    model: str = Field(
        "Xenova/ms-marco-MiniLM-L-6-v2", min_length=1, description="One of fastembed's cross-encoders, by its name."
    )
    model_path: Path = Field(description="Folder that holds its ONNX file, tokenizer and configuration.")
    threads: int | None = Field(None, ge=1, le=256, description="Threads of the model; None lets it choose.")
    batch_size: int = Field(32, ge=1, le=256, description="Passages that are read together.")


class CrossEncoder:
    """`Reranker` over a model in this process; a thread of its own keeps it off the event loop."""

    local = True

    def __init__(self, model: TextCrossEncoder, name: str, batch_size: int) -> None:
        self._model = model
        self._batch_size = batch_size
        self.model_id = name
        # One: the model spreads its own work over threads, and what waits for it can still be given up.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="cross-encoder")

    async def score(self, query: str, passages: Sequence[str], *, deadline: float | None = None) -> list[float]:
        """The model's score of each passage; a running batch goes on after ``deadline``.

        Raises:
            ProviderUnavailable: The model failed.
        """
        # The loop's clock is that of the deadline.
        async with asyncio.timeout_at(deadline):
            return await asyncio.get_running_loop().run_in_executor(self._thread, self._score, query, passages)

    def _score(self, query: str, passages: Sequence[str]) -> list[float]:
        # Passages of one length waste no room in a batch.
        order = sorted(range(len(passages)), key=lambda place: len(passages[place]))
        try:
            read = [passages[place] for place in order]
            found = list(map(float, self._model.rerank(query, read, batch_size=self._batch_size)))
        except Exception as error:
            raise ProviderUnavailable(
                f"cross-encoder {self.model_id} failed: {type(error).__name__}", metadata={"model": self.model_id}
            ) from error
        if len(found) != len(passages):
            raise ProviderUnavailable(f"cross-encoder {self.model_id} did not return one score for each passage")
        scores = [0.0] * len(passages)
        for place, score in zip(order, found, strict=True):
            scores[place] = score
        return scores

    async def close(self) -> None:
        """Stop the thread."""
        self._thread.shutdown(wait=False)


def create(options: Mapping[str, Any]) -> Reranker:
    """A reranker over a cross-encoder from a local folder.

    Raises:
        ConfigError: An option is wrong, or the model cannot be loaded from there.
    """
    chosen = read_options(CrossEncoderOptions, options, AT)
    if not chosen.model_path.expanduser().is_dir():
        raise ConfigError(f"{AT}.model_path: there is no folder {chosen.model_path}", metadata={"key": "model_path"})
    try:
        model = TextCrossEncoder(
            chosen.model,
            threads=chosen.threads,
            local_files_only=True,
            specific_model_path=str(chosen.model_path.expanduser()),
        )
    except Exception as error:
        raise ConfigError(
            f"fastembed cannot load {chosen.model!r} from {chosen.model_path}: {error}",
            metadata={"model": chosen.model},
        ) from error
    return CrossEncoder(model, chosen.model, chosen.batch_size)
