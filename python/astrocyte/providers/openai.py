"""Embeddings from any endpoint that speaks the OpenAI protocol: OpenAI, vLLM, Ollama, TEI, LiteLLM.

Extra: ``openai``. Texts are sent in batches.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping, Sequence
from typing import Any

import httpx
from pydantic import Field

from astrocyte.core import vector_bytes
from astrocyte.errors import ProviderUnavailable
from astrocyte.providers.http.endpoint import ConnectionOptions, Endpoint
from astrocyte.providers.options import read_options
from astrocyte.providers.protocols import Embedder

# A number of full precision with its separator and indentation, as text.
MOST_BYTES_PER_VALUE = 64
# Keys around the vector of a text.
MOST_BYTES_PER_TEXT = 1_024


class OpenAIOptions(ConnectionOptions):
    """Options of an OpenAI-compatible endpoint."""

    dimensions: int = Field(ge=1, le=4_096, description="Values per vector that the model gives.")
    base_url: str = Field("https://api.openai.com/v1", min_length=1, description="Address, without /embeddings.")
    send_dimensions: bool = Field(False, description="Ask for that many dimensions; some models can shorten.")
    batch_size: int = Field(96, ge=1, le=2_048, description="Texts in one request.")
    parallel: int = Field(4, ge=1, le=64, description="Requests in flight at once.")
    timeout_seconds: float = Field(20.0, gt=0.0, le=600.0, description="Bound of one request.")
    retries: int = Field(3, ge=0, le=10, description="Attempts after the first.")


class OpenAIEmbedder:
    """`Embedder` over HTTP."""

    local = False

    def __init__(self, options: OpenAIOptions, transport: httpx.AsyncBaseTransport | None = None) -> None:
        self._options = options
        # The same model with other dimensions is another embedding space.
        self.model_id = f"{options.model}/{options.dimensions}"
        self.dimensions = options.dimensions
        headers = {} if options.api_key is None else {"Authorization": f"Bearer {options.api_key.get_secret_value()}"}
        per_text = options.dimensions * MOST_BYTES_PER_VALUE + MOST_BYTES_PER_TEXT
        self._endpoint = Endpoint(
            "embedding",
            "/embeddings",
            headers,
            options,
            # One text more, for what is around the vectors.
            most_bytes=(options.batch_size + 1) * per_text,
            transport=transport,
        )

    def embed_now(self, texts: Sequence[str]) -> list[bytes]:
        """Raise ProviderUnavailable: the endpoint is behind a network."""
        raise ProviderUnavailable(f"{self.model_id} answers over the network; await embed({len(texts)} texts) instead")

    async def embed(self, texts: Sequence[str]) -> list[bytes]:
        """Return unit vectors as little-endian f32, in the order of the texts.

        Raises:
            ProviderUnavailable: The endpoint failed, refused, timed out, or sent invalid vectors.
        """
        size = self._options.batch_size
        batches = [list(texts[start : start + size]) for start in range(0, len(texts), size)]
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._guarded(batch)) for batch in batches]
        results = [task.result() for task in tasks]
        for result in results:
            if isinstance(result, ProviderUnavailable):
                raise result
        return [vector for result in results if not isinstance(result, ProviderUnavailable) for vector in result]

    async def close(self) -> None:
        """Close the connections."""
        await self._endpoint.close()

    async def _guarded(self, texts: list[str]) -> list[bytes] | ProviderUnavailable:
        """Return the vectors, or the failure as a value: a task group would wrap it."""
        try:
            return await self._batch(texts)
        except ProviderUnavailable as error:
            return error

    async def _batch(self, texts: list[str]) -> list[bytes]:
        body: dict[str, Any] = {"model": self._options.model, "input": texts, "encoding_format": "float"}
        if self._options.send_dimensions:
            body["dimensions"] = self.dimensions
        answer = await self._endpoint.post(body)
        try:
            entries = answer["data"]
            ordered = sorted(entries, key=lambda entry: int(entry["index"]))
            if [entry["index"] for entry in ordered] != list(range(len(texts))):
                raise self._endpoint.failure(f"sent {len(entries)} vectors for {len(texts)} texts")
            return [self._unit(entry["embedding"]) for entry in ordered]
        except (ValueError, KeyError, TypeError, OverflowError) as error:
            raise self._endpoint.failure(f"sent invalid vectors ({type(error).__name__})") from None

    def _unit(self, values: list[float]) -> bytes:
        if len(values) != self.dimensions:
            raise self._endpoint.failure(
                f"sent vectors of {len(values)} dimensions; embedding.options.dimensions is {self.dimensions}"
            )
        norm = math.hypot(*values)
        if not math.isfinite(norm) or norm == 0.0:
            raise self._endpoint.failure("sent a vector that is zero, infinite or not a number")
        return vector_bytes([value / norm for value in values])


def create(options: Mapping[str, Any]) -> Embedder:
    """Return an embedder over an OpenAI-compatible endpoint.

    Raises:
        ConfigError: An option is unknown, missing or out of its range.
    """
    return OpenAIEmbedder(read_options(OpenAIOptions, options))
