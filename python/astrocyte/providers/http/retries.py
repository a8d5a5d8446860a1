"""The policy by which a request to a provider is sent again."""

from __future__ import annotations

import asyncio
import re
import time

import httpx
from httpx_retries import Retry

# Overload and errors of the server: the same request may succeed later. 529 is one vendor's "overloaded".
RETRIED = (408, 409, 425, 429, 500, 502, 503, 504, 529)
# Half of the shortest wait; waits double from there, with jitter so that clients do not return together.
BACKOFF_FACTOR = 0.125
JITTER = 0.5
# httpx-retries reads whole seconds and dates; some vendors send fractions.
SECONDS = re.compile(r"\d+(\.\d+)?")


class WaitRefusedError(Exception):
    """The next attempt would begin too late."""

    def __init__(self, status: int | None, seconds: float, *, after_deadline: bool) -> None:
        super().__init__(f"a wait of {seconds:g} s is too long")
        self.status = status
        self.seconds = seconds
        self.after_deadline = after_deadline


class RetryPolicy(Retry):
    """Retries overload and transport errors, and refuses waits beyond a bound or a deadline.

    Args:
        retries: Attempts after the first.
        longest_wait_seconds: A longer ``Retry-After`` ends the call at once.
    """

    def __init__(
        self, retries: int, longest_wait_seconds: float, *, deadline: float | None = None, made: int = 0
    ) -> None:
        super().__init__(
            total=retries,
            allowed_methods=["POST"],
            status_forcelist=RETRIED,
            retry_on_exceptions=[httpx.TransportError],
            backoff_factor=BACKOFF_FACTOR,
            backoff_jitter=JITTER,
            # The base class demands more than zero.
            max_backoff_wait=max(longest_wait_seconds, 1e-9),
            attempts_made=made,
        )
        self._longest = longest_wait_seconds
        self._deadline = deadline

    def until(self, deadline: float | None) -> RetryPolicy:
        """Return this policy with a deadline, in seconds of ``time.monotonic``."""
        return RetryPolicy(self.total, self._longest, deadline=deadline, made=self.attempts_made)

    def increment(self) -> RetryPolicy:
        """Return the policy after one more attempt."""
        return RetryPolicy(self.total, self._longest, deadline=self._deadline, made=self.attempts_made + 1)

    def parse_retry_after(self, retry_after: str) -> float:
        """Return the seconds of a ``Retry-After`` header: a number or a date."""
        retry_after = retry_after.strip()
        return float(retry_after) if SECONDS.fullmatch(retry_after) else super().parse_retry_after(retry_after)

    async def asleep(self, response: httpx.Response | Exception) -> None:
        """Wait before the next attempt.

        Raises:
            WaitRefusedError: The provider asks for a longer wait than is allowed, or the wait ends after the deadline.
        """
        answered = response if isinstance(response, httpx.Response) else None
        asked = self._asked(answered)
        seconds = self.backoff_strategy() if asked is None else asked
        late = self._deadline is not None and time.monotonic() + seconds >= self._deadline
        if late or seconds > self.max_backoff_wait:
            status = None if answered is None else answered.status_code
            raise WaitRefusedError(status, seconds, after_deadline=late and seconds <= self.max_backoff_wait)
        await asyncio.sleep(seconds)

    def _asked(self, response: httpx.Response | None) -> float | None:
        header = "" if response is None else response.headers.get("retry-after", "")
        try:
            return self.parse_retry_after(header) if header else None
        except ValueError:
            return None


class ClientTransport(httpx.AsyncBaseTransport):
    """Sends requests through a client, so that its proxies hold for each attempt.

    Args:
        client: Sends each attempt.
        seconds: Bound from the start of an attempt to the end of the response's headers.
    """

    def __init__(self, client: httpx.AsyncClient, seconds: float) -> None:
        self._client = client
        self._seconds = seconds

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request and return the response with its body unread."""
        try:
            async with asyncio.timeout(self._seconds):
                return await self._client.send(request, stream=True)
        except TimeoutError as error:
            raise httpx.ReadTimeout(f"no response within {self._seconds:g} s", request=request) from error

    async def aclose(self) -> None:
        """Close the client."""
        await self._client.aclose()
