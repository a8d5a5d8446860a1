"""Bounded reading of HTTP response bodies."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator

import httpx


class BodyTooLarge(httpx.HTTPError):
    """A response body exceeds its bound of bytes or time."""


async def chunks(
    response: httpx.Response,
    *,
    most_bytes: int,
    most_line_bytes: int | None = None,
    most_lines: int = 0,
    seconds: float,
) -> AsyncGenerator[bytes, None]:
    """Yield the decoded body of a streamed response in chunks.

    Args:
        response: Response whose body has not been read.
        most_bytes: Bound of the decoded body.
        most_line_bytes: Bound of a line; None sets no bound of lines.
        most_lines: Bound of the number of lines.
        seconds: Bound of the time until the last chunk. The timeout of the client bounds the wait for each chunk.

    Raises:
        BodyTooLarge: The body or a line of it exceeds its bound.
    """
    size = line = lines = 0
    end = time.monotonic() + seconds
    async for chunk in response.aiter_bytes():
        size += len(chunk)
        if size > most_bytes:
            raise BodyTooLarge(f"the response exceeds {most_bytes} bytes")
        if time.monotonic() > end:
            raise BodyTooLarge(f"the response takes longer than {seconds:g} s")
        if most_line_bytes is not None:
            first, *others = chunk.replace(b"\r", b"\n").split(b"\n")
            longest = max(line + len(first), *map(len, others), 0)
            line = len(others[-1]) if others else line + len(first)
            lines += len(others)
            if longest > most_line_bytes:
                raise BodyTooLarge(f"a line of the response exceeds {most_line_bytes} bytes")
            if lines > most_lines:
                raise BodyTooLarge(f"the response exceeds {most_lines} lines")
        yield chunk


async def read(response: httpx.Response, *, most_bytes: int, seconds: float) -> bytes:
    """Return the decoded body of a streamed response.

    Raises:
        BodyTooLarge: It has more than ``most_bytes``, or takes longer than ``seconds``.
    """
    return b"".join([chunk async for chunk in chunks(response, most_bytes=most_bytes, seconds=seconds)])
