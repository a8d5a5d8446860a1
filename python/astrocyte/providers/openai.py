"""Embeddings from any endpoint that speaks the OpenAI protocol: OpenAI, vLLM, Ollama, TEI, LiteLLM.

Extra: ``openai`` (httpx). Texts go in batches; a batch that is refused for load, or fails on the way, is tried again
after the time that the server asks for, or a growing one.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping, Sequence
from typing import Any

import httpx
from pydantic import BaseModel, ConfigDict, Field, SecretStr

from astrocyte.core import vector_bytes
from astrocyte.errors import ProviderUnavailable
from astrocyte.providers.options import read_options
from astrocyte.providers.protocols import Embedder
from astrocyte.providers.retrying import RETRIED, wait_seconds

# How much of an answer an error repeats: the beginning names the trouble.
SHOWN_CHARS = 200


class OpenAIOptions(BaseModel):
    """Options of an OpenAI-compatible endpoint."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    model: str = Field(min_length=1, description="Name of the model, as the endpoint knows it.")
    dimensions: int = Field(ge=1, le=4_096, description="Values per vector that the model gives.")
    base_url: str = Field("https://api.openai.com/v1", min_length=1, description="Address, without /embeddings.")
    api_key: SecretStr | None = Field(None, description="Bearer key; none is sent without it.")
    send_dimensions: bool = Field(False, description="Ask for that many dimensions; some models can shorten.")
    batch_size: int = Field(96, ge=1, le=2_048, description="Texts in one request.")
    parallel: int = Field(4, ge=1, le=64, description="Requests in flight at once.")
    timeout_seconds: float = Field(20.0, gt=0.0, le=600.0, description="For one request.")
    retries: int = Field(3, ge=0, le=10, description="Further tries after the first.")
    longest_wait_seconds: float = Field(10.0, ge=0.0, le=600.0, description="A longer Retry-After fails at once.")


class OpenAIEmbedder:
    """`Embedder` over HTTP."""

    local = False

    def __init__(self, options: OpenAIOptions, transport: httpx.AsyncBaseTransport | None = None) -> None:
        self._options = options
        # The same model cut to another length is another space.
        self.model_id = f"{options.model}/{options.dimensions}"
        self.dimensions = options.dimensions
        headers = {} if options.api_key is None else {"Authorization": f"Bearer {options.api_key.get_secret_value()}"}
        self._client = httpx.AsyncClient(
            headers=headers, timeout=options.timeout_seconds, transport=transport, follow_redirects=False
        )
        self._url = f"{options.base_url.rstrip('/')}/embeddings"
        self._slots = asyncio.Semaphore(options.parallel)

    def embed_now(self, texts: Sequence[str]) -> list[bytes]:
        """Not for an embedder that waits for a network."""
        raise ProviderUnavailable(f"{self.model_id} answers over the network; await embed({len(texts)} texts) instead")

    async def embed(self, texts: Sequence[str]) -> list[bytes]:
        """Unit vectors as little-endian f32, in order.

        Raises:
            ProviderUnavailable: The endpoint failed, refused, timed out, or sent something else than vectors.
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
        await self._client.aclose()

    async def _guarded(self, texts: list[str]) -> list[bytes] | ProviderUnavailable:
        """The vectors, or the failure as a value: a task group would wrap it."""
        async with self._slots:
            try:
                return await self._batch(texts)
            except ProviderUnavailable as error:
                return error

    async def _batch(self, texts: list[str]) -> list[bytes]:
        body: dict[str, Any] = {"model": self._options.model, "input": texts, "encoding_format": "float"}
        if self._options.send_dimensions:
            body["dimensions"] = self.dimensions
        longest = self._options.longest_wait_seconds
        for attempt in range(self._options.retries + 1):
            last = attempt == self._options.retries
            try:
                response = await self._client.post(self._url, json=body)
            except httpx.TransportError as error:
                if last:
                    raise self._failure(f"no answer ({type(error).__name__})") from error
                await asyncio.sleep(wait_seconds(attempt, None, longest))
                continue
            if response.status_code == httpx.codes.OK:
                return self._vectors(response, len(texts))
            wait = wait_seconds(attempt, response.headers.get("retry-after"), longest)
            if last or response.status_code not in RETRIED or wait > longest:
                raise self._failure(f"answered {response.status_code}: {response.text[:SHOWN_CHARS]}")
            await asyncio.sleep(wait)
        raise AssertionError("the last try returns or raises")

    def _vectors(self, response: httpx.Response, count: int) -> list[bytes]:
        """The vectors of an answer, in the order of the texts, each of length 1."""
        try:
            entries = response.json()["data"]
            ordered = sorted(entries, key=lambda entry: int(entry["index"]))
            if [entry["index"] for entry in ordered] != list(range(count)):
                raise self._failure(f"sent {len(entries)} vectors for {count} texts")
            return [self._unit(entry["embedding"]) for entry in ordered]
        except (ValueError, KeyError, TypeError) as error:
            raise self._failure(f"sent something else than vectors ({type(error).__name__})") from error

    def _unit(self, values: list[float]) -> bytes:
        if len(values) != self.dimensions:
            raise self._failure(f"sent {len(values)} dimensions, embedding.options.dimensions says {self.dimensions}")
        norm = math.hypot(*values)
        if not math.isfinite(norm) or norm == 0.0:
            raise self._failure("sent a vector that is zero, infinite or not a number")
        return vector_bytes([value / norm for value in values])

    def _failure(self, problem: str) -> ProviderUnavailable:
        return ProviderUnavailable(
            f"embedding endpoint {self._url} {problem}", metadata={"model": self.model_id, "url": self._url}
        )


def create(options: Mapping[str, Any]) -> Embedder:
    """An embedder over an OpenAI-compatible endpoint.

    Raises:
        ConfigError: An option is unknown, missing or out of its range.
    """
    return OpenAIEmbedder(read_options(OpenAIOptions, options))
