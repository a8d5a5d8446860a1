import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from astrocyte.errors import AstrocyteError, DeadlineExceeded, FailedPrecondition, ProviderUnavailable
from astrocyte.providers.bounded import BoundedModel
from astrocyte.providers.messages import Completion, Message, Prompt, Role

Call = Callable[["Model", float | None], Awaitable[None]]
ASK = Prompt((Message(Role.USER, "Who?"),), max_tokens=2)
LONG = "a" * 100


class Model:
    """Says pieces; ``None`` is to hang, an exception to fail. Knows nothing of deadlines."""

    model_id = "theirs"

    def __init__(self, *pieces: str | Completion | Exception | None) -> None:
        self.pieces = pieces
        self.closed = False

    async def complete(self, prompt: Prompt, *, deadline: float | None = None) -> Completion:
        async for piece in self.stream(prompt, deadline=deadline):
            if isinstance(piece, Completion):
                return piece
        raise AssertionError("no completion")

    async def stream(self, prompt: Prompt, *, deadline: float | None = None) -> AsyncIterator[str | Completion]:
        try:
            for piece in self.pieces:
                if piece is None:
                    await asyncio.sleep(60)
                elif isinstance(piece, Exception):
                    raise piece
                else:
                    yield piece
        finally:
            self.closed = True

    async def close(self) -> None:
        pass


async def complete(model: Model, deadline: float | None) -> None:
    await BoundedModel(model).complete(ASK, deadline=deadline)


async def stream(model: Model, deadline: float | None) -> None:
    async for _ in BoundedModel(model).stream(ASK, deadline=deadline):
        pass


CALLS = pytest.mark.parametrize("call", [complete, stream])


@CALLS
async def test_a_model_that_hangs_is_cut(call: Call) -> None:
    model = Model("a", None)
    with pytest.raises(DeadlineExceeded, match="theirs"):
        await call(model, time.monotonic() + 0.05)
    assert model.closed


@CALLS
async def test_a_model_that_does_not_stop_is_cut(call: Call) -> None:
    model = Model(LONG, Completion(LONG))
    with pytest.raises(ProviderUnavailable, match="more than 2 tokens"):
        await call(model, None)


@CALLS
async def test_failures_are_of_our_tree_and_without_their_message(call: Call) -> None:
    with pytest.raises(ProviderUnavailable) as caught:
        await call(Model(RuntimeError("Who?")), None)
    assert "RuntimeError" in str(caught.value)
    assert "Who?" not in str(caught.value)
    ours: AstrocyteError = FailedPrecondition("as it is")
    with pytest.raises(FailedPrecondition, match="as it is"):
        await call(Model(ours), None)


async def test_a_stream_without_a_whole_answer_is_no_answer() -> None:
    with pytest.raises(ProviderUnavailable, match="ended without an answer"):
        await stream(Model("a"), None)


async def test_the_time_of_the_consumer_is_not_the_models() -> None:
    bounded = BoundedModel(Model("a", None))
    assert bounded.model_id == "theirs"
    pieces = bounded.stream(ASK, deadline=time.monotonic() + 0.05)
    assert await anext(pieces) == "a"
    # Not cut while it has the piece; only when it asks for the next.
    await asyncio.sleep(0.06)
    with pytest.raises(DeadlineExceeded):
        await anext(pieces)
    await bounded.close()


async def test_a_model_whose_stream_is_left_is_closed() -> None:
    model = Model("a", "b", Completion("ab"))
    pieces = BoundedModel(model).stream(ASK)
    await anext(pieces)
    await pieces.aclose()  # type: ignore[attr-defined]
    assert model.closed
