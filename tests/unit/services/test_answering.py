"""Who sends the answer of a call."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from astrocyte.services.transport import Context


class Call:
    """Notes how it is finished."""

    def __init__(self) -> None:
        self.finished: list[tuple[bytes, bool]] = []

    def finish(self, message: bytes, idle: bool) -> None:
        """As the core's."""
        self.finished.append((message, idle))


@pytest.mark.parametrize("only", [True, False])
async def test_only_the_loop_that_has_nothing_else_to_do_sends_an_answer(only: bool) -> None:
    call = Call()
    Context(cast("Any", call), asyncio.get_running_loop(), lambda: only).finish(b"answer")
    assert call.finished == [(b"answer", only)]
