"""An HTTP endpoint of a provider: JSON in, JSON or server-sent events out. Extras ``openai`` and ``anthropic``.

Overload and transport errors are retried until a response has begun. Every response is bounded in bytes, in the length
of a line and in time. Errors name the status and the provider's error code, never its message: providers repeat the
prompt in it.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from typing import Any

import httpx
from httpx_retries import RetryTransport
from httpx_sse import EventSource
from pydantic import BaseModel, ConfigDict, Field, SecretStr

from astrocyte.errors import DeadlineExceeded, ProviderUnavailable
from astrocyte.providers.http import response_body
from astrocyte.providers.http.retries import ClientTransport, RetryPolicy, WaitRefusedError

# Far above any completion.
MOST_BYTES = 16 << 20
# Far above one event of a stream, which holds some tokens.
MOST_LINE_BYTES = 1 << 20
# An event takes up to four lines; the longest completions have some hundred thousand.
MOST_LINES = 1_000_000
# Only the error code is read.
MOST_ERROR_BYTES = 64 << 10
# The documented codes of errors. Another one may be a word of the prompt.
CODES = frozenset(
    {
        "api_error",
        "authentication_error",
        "billing_error",
        "content_filter",
        "context_length_exceeded",
        "insufficient_quota",
        "internal_error",
        "invalid_api_key",
        "invalid_request_error",
        "model_not_found",
        "not_found_error",
        "overloaded_error",
        "permission_error",
        "rate_limit_error",
        "rate_limit_exceeded",
        "request_too_large",
        "requests",
        "server_error",
        "string_above_max_length",
        "timeout_error",
        "tokens",
        "unsupported_parameter",
        "unsupported_value",
    }
)


class ConnectionOptions(BaseModel):
    """Options of any provider behind HTTP."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    model: str = Field(min_length=1, description="Name of the model, as the endpoint knows it.")
    base_url: str = Field(min_length=1, description="Address, without the path of the call.")
    api_key: SecretStr | None = Field(None, description="Key; from the environment where it is not given.")
    parallel: int = Field(8, ge=1, le=256, description="Requests in flight at once.")
    timeout_seconds: float = Field(60.0, gt=0.0, le=3_600.0, description="Longest silence of the endpoint.")
    retries: int = Field(2, ge=0, le=10, description="Attempts after the first.")
    longest_wait_seconds: float = Field(10.0, ge=0.0, le=600.0, description="A longer Retry-After fails at once.")

    @property
    def answer_seconds(self) -> float:
        """Bound of a whole response."""
        return self.timeout_seconds


class EndpointOptions(ConnectionOptions):
    """Options of any language model behind HTTP."""

    longest_answer_seconds: float = Field(
        600.0, gt=0.0, le=86_400.0, description="Bound of a whole answer, however steadily it arrives."
    )

    @property
    def answer_seconds(self) -> float:
        """Bound of a whole response."""
        return self.longest_answer_seconds


class Endpoint:
    """Calls one URL of a provider.

    Args:
        kind: What error messages call it.
        path: Path after the base URL.
        headers: Headers of every request, the key among them.
        options: Address and limits.
        most_bytes: Bound of the body of one response.
        transport: Replaces the network.
    """

    def __init__(
        self,
        kind: str,
        path: str,
        headers: Mapping[str, str],
        options: ConnectionOptions,
        *,
        most_bytes: int = MOST_BYTES,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._url = f"{options.base_url.rstrip('/')}{path}"
        # Without credentials, which some addresses hold.
        self._shown = f"{kind} endpoint {re.sub('//[^/@]*@', '//', self._url)}"
        self._model = options.model
        self._seconds = options.answer_seconds
        self._most_bytes = most_bytes
        self._client = httpx.AsyncClient(
            headers=headers, timeout=options.timeout_seconds, transport=transport, follow_redirects=False
        )
        self._policy = RetryPolicy(options.retries, options.longest_wait_seconds)
        self._transport = RetryTransport(ClientTransport(self._client, self._seconds), self._policy)
        self._slots = asyncio.Semaphore(options.parallel)

    async def post(self, body: Mapping[str, Any], deadline: float | None = None) -> dict[str, Any]:
        """Send a request and return the JSON object of the response.

        Args:
            body: The request, sent as JSON.
            deadline: Seconds of ``time.monotonic`` after which no attempt begins.

        Raises:
            ProviderUnavailable: The endpoint failed, refused, or sent no JSON object within the bounds.
            DeadlineExceeded: The next attempt would begin after the deadline.
        """
        async with self._answer(body, deadline) as response:
            return self.decoded(await self._read(response, self._most_bytes))

    async def events(self, body: Mapping[str, Any], deadline: float | None) -> AsyncGenerator[str, None]:
        """Send a request and yield the data of each server-sent event of the response.

        Raises:
            ProviderUnavailable: The endpoint failed, refused, sent no event stream within the bounds, or cut it off.
            DeadlineExceeded: The next attempt would begin after the deadline.
        """
        async with self._answer(body, deadline) as response:
            if not response.headers.get("content-type", "").startswith("text/event-stream"):
                raise self.failure("sent no event stream")
            async with aclosing(
                response_body.chunks(
                    response,
                    most_bytes=self._most_bytes,
                    most_line_bytes=MOST_LINE_BYTES,
                    most_lines=MOST_LINES,
                    seconds=self._seconds,
                )
            ) as chunks:
                # A response of our own, for httpx-sse joins lines without a bound.
                bounded = httpx.Response(200, headers={"content-type": "text/event-stream"}, content=chunks)
                try:
                    async for event in EventSource(bounded).aiter_sse():
                        if event.data:
                            yield event.data
                except httpx.HTTPError as error:
                    raise self._broken(error) from error

    def decoded(self, text: str | bytes) -> dict[str, Any]:
        """Return the JSON object of a text.

        Raises:
            ProviderUnavailable: The text is something else.
        """
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            raise self.failure("sent a body that is not JSON") from None
        if not isinstance(value, dict):
            raise self.failure("sent a body that is not a JSON object")
        return value

    def failure(self, problem: str, **metadata: str) -> ProviderUnavailable:
        """Return the error for a problem of this endpoint."""
        return ProviderUnavailable(f"{self._shown} {problem}", metadata={"model": self._model, **metadata})

    async def close(self) -> None:
        """Close the connections."""
        await self._transport.aclose()

    @asynccontextmanager
    async def _answer(self, body: Mapping[str, Any], deadline: float | None) -> AsyncIterator[httpx.Response]:
        """Yield a response of status 200 whose body has not been read."""
        async with self._slots:
            response = await self._begun(body, deadline)
            try:
                if response.status_code != httpx.codes.OK:
                    code = error_code(await self._read(response, MOST_ERROR_BYTES))
                    named = f" ({code})" if code else ""
                    status = str(response.status_code)
                    raise self.failure(f"answered {status}{named}", status=status)
                yield response
            finally:
                await response.aclose()

    async def _begun(self, body: Mapping[str, Any], deadline: float | None) -> httpx.Response:
        extensions = {"retry": self._policy.until(deadline)}
        request = self._client.build_request("POST", self._url, json=body, extensions=extensions)
        try:
            return await self._transport.handle_async_request(request)
        except httpx.TransportError as error:
            raise self.failure(f"did not answer ({type(error).__name__})") from error
        except WaitRefusedError as refused:
            if refused.after_deadline:
                raise DeadlineExceeded(
                    f"{self._shown} was busy until the deadline", metadata={"model": self._model}
                ) from None
            status = str(refused.status)
            wait = f"asked to wait {refused.seconds:.0f} s, longer than longest_wait_seconds"
            raise self.failure(f"answered {status} and {wait}", status=status) from None

    async def _read(self, response: httpx.Response, most_bytes: int) -> bytes:
        try:
            return await response_body.read(response, most_bytes=most_bytes, seconds=self._seconds)
        except httpx.HTTPError as error:
            raise self._broken(error) from error

    def _broken(self, error: httpx.HTTPError) -> ProviderUnavailable:
        if isinstance(error, response_body.BodyTooLarge):
            return self.failure(f"sent too much: {error}")
        return self.failure(f"closed the stream early ({type(error).__name__})")


def error_code(body: str | bytes) -> str:
    """Return the code of an error response if it is a documented one, else an empty string."""
    try:
        error = json.loads(body)["error"]
        named = error.get("code") or error.get("type")
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError):
        return ""
    return named if isinstance(named, str) and named in CODES else ""
