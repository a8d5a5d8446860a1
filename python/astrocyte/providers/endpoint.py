"""An HTTP endpoint of a language model: JSON in, JSON or server-sent events out. Extras ``openai``, ``anthropic``.

A request that is refused for load, or fails on the way, is tried again after the time that the server asks for, or a
growing one; once an answer has begun it is not. Errors name the status and the provider's error code, never a message:
providers like to repeat the prompt in it.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import httpx
from pydantic import BaseModel, ConfigDict, Field, SecretStr

from astrocyte.errors import DeadlineExceeded, ProviderUnavailable
from astrocyte.providers.retrying import RETRIED, wait_seconds

# Far above any answer; a body beyond it does not end.
MOST_BYTES = 16 << 20
# What providers call an error, such as rate_limit_exceeded: a name, no sentence.
CODE = re.compile(r"[a-z][a-z0-9_.-]{0,63}\Z")


class EndpointOptions(BaseModel):
    """Options of any language model behind HTTP."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    model: str = Field(min_length=1, description="Name of the model, as the endpoint knows it.")
    base_url: str = Field(min_length=1, description="Address, without the path of the call.")
    api_key: SecretStr | None = Field(None, description="Key; from the environment where it is not given.")
    parallel: int = Field(8, ge=1, le=256, description="Requests in flight at once.")
    timeout_seconds: float = Field(60.0, gt=0.0, le=3_600.0, description="Longest silence of the endpoint.")
    retries: int = Field(2, ge=0, le=10, description="Further tries after the first.")
    longest_wait_seconds: float = Field(10.0, ge=0.0, le=600.0, description="A longer Retry-After fails at once.")


class Endpoint:
    """Where a model is called.

    Args:
        path: After the base URL.
        headers: Sent with every request, the key among them.
        options: Address, limits.
        transport: Another than the network.
    """

    def __init__(
        self,
        path: str,
        headers: Mapping[str, str],
        options: EndpointOptions,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._url = f"{options.base_url.rstrip('/')}{path}"
        self._options = options
        self._client = httpx.AsyncClient(
            headers=headers, timeout=options.timeout_seconds, transport=transport, follow_redirects=False
        )
        self._slots = asyncio.Semaphore(options.parallel)

    async def post(self, body: Mapping[str, Any], deadline: float | None) -> dict[str, Any]:
        """The JSON object that the endpoint answers.

        Raises:
            ProviderUnavailable: It failed, refused, or sent something else.
            DeadlineExceeded: The next try would begin after the deadline.
        """
        async with self._answer(body, deadline) as response:
            return self.decoded(await self._read(response))

    async def events(self, body: Mapping[str, Any], deadline: float | None) -> AsyncGenerator[str, None]:
        """The data of each server-sent event, until the endpoint ends its answer.

        Raises:
            ProviderUnavailable: It failed, refused, sent something else, or broke off.
            DeadlineExceeded: The next try would begin after the deadline.
        """
        async with self._answer(body, deadline) as response:
            if not response.headers.get("content-type", "").startswith("text/event-stream"):
                raise self.failure("sent no stream of events")
            data: list[str] = []
            size = 0
            try:
                async for line in response.aiter_lines():
                    size += len(line)
                    if size > MOST_BYTES:
                        raise self.failure("sent an answer without end")
                    if line.startswith("data:"):
                        data.append(line.removeprefix("data:").removeprefix(" "))
                    elif not line and data:
                        yield "\n".join(data)
                        data = []
            except httpx.TransportError as error:
                raise self.failure(f"broke off ({type(error).__name__})") from error
            if data:
                yield "\n".join(data)

    def decoded(self, text: str | bytes) -> dict[str, Any]:
        """A JSON object.

        Raises:
            ProviderUnavailable: It is none.
        """
        try:
            value = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise self.failure("sent something else than JSON") from error
        if not isinstance(value, dict):
            raise self.failure("sent something else than a JSON object")
        return value

    def failure(self, problem: str, **metadata: str) -> ProviderUnavailable:
        """What went wrong here, as our error."""
        return ProviderUnavailable(
            f"language model endpoint {self._url} {problem}",
            metadata={"model": self._options.model, "url": self._url, **metadata},
        )

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    @asynccontextmanager
    async def _answer(self, body: Mapping[str, Any], deadline: float | None) -> AsyncIterator[httpx.Response]:
        """An answer of status 200 that has begun, after as many tries as it takes."""
        async with self._slots:
            response = await self._begun(body, deadline)
            try:
                yield response
            finally:
                await response.aclose()

    async def _begun(self, body: Mapping[str, Any], deadline: float | None) -> httpx.Response:
        longest = self._options.longest_wait_seconds
        for attempt in range(self._options.retries + 1):
            last = attempt == self._options.retries
            request = self._client.build_request("POST", self._url, json=body)
            try:
                response = await self._client.send(request, stream=True)
            except httpx.TransportError as error:
                if last:
                    raise self.failure(f"gave no answer ({type(error).__name__})") from error
                await self._sleep(wait_seconds(attempt, None, longest), deadline)
                continue
            if response.status_code == httpx.codes.OK:
                return response
            wait = wait_seconds(attempt, response.headers.get("retry-after"), longest)
            try:
                code = error_code(await self._read(response))
            finally:
                await response.aclose()
            if last or response.status_code not in RETRIED or wait > longest:
                named = f" ({code})" if code else ""
                raise self.failure(f"answered {response.status_code}{named}", status=str(response.status_code))
            await self._sleep(wait, deadline)
        raise AssertionError("the last try returns or raises")

    async def _sleep(self, seconds: float, deadline: float | None) -> None:
        if deadline is not None and time.monotonic() + seconds >= deadline:
            raise DeadlineExceeded(
                f"language model endpoint {self._url} was busy until the deadline",
                metadata={"model": self._options.model, "url": self._url},
            )
        await asyncio.sleep(seconds)

    async def _read(self, response: httpx.Response) -> bytes:
        parts: list[bytes] = []
        size = 0
        try:
            async for part in response.aiter_bytes():
                size += len(part)
                if size > MOST_BYTES:
                    raise self.failure("sent an answer without end")
                parts.append(part)
        except (httpx.TransportError, httpx.DecodingError) as error:
            raise self.failure(f"broke off ({type(error).__name__})") from error
        return b"".join(parts)


def error_code(body: str | bytes) -> str:
    """The provider's name of an error, out of its answer; empty where there is none."""
    try:
        error = json.loads(body)["error"]
        named = error.get("code") or error.get("type")
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError):
        return ""
    return named if isinstance(named, str) and CODE.match(named) else ""
