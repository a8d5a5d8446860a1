"""Something laid around a whole object: some of its methods are wrapped, all others are its own.

Spans and hooks are made this way, so that the gate and the pipelines know nothing of them and, where nobody wants
them, a call passes no line of theirs.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractContextManager, aclosing
from typing import Any, TypeVar, cast

from astrocyte.policy.backend import Backend

T = TypeVar("T")
Wrap = Callable[[Callable[..., Any]], Callable[..., Any]]

# The methods of a backend, and by which parameter each says what it is about.
OPERATIONS: Mapping[str, inspect.Signature] = {
    name: inspect.signature(method)
    for name, method in vars(Backend).items()
    if inspect.isfunction(method) and not name.startswith("_")
}
# Where their arguments stand that are not given by name; without self.
PLACES: Mapping[str, Mapping[str, int]] = {
    name: {parameter: place for place, parameter in enumerate(signature.parameters, -1)}
    for name, signature in OPERATIONS.items()
}
# Those that answer in pieces.
STREAMS = frozenset(name for name in OPERATIONS if not inspect.iscoroutinefunction(getattr(Backend, name)))


def front(inner: T, wrappers: Mapping[str, Wrap]) -> T:
    """``inner`` with methods wrapped, by their names.

    Args:
        inner: Anything.
        wrappers: Given the method, each returns what takes its place.
    """
    return cast("T", _Front(inner, wrappers))


def argument(operation: str, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:  # noqa: ANN401 - whatever it is
    """An argument of a call of a backend's method, however it was given; None where it was not, or there is no such."""
    if name in kwargs:
        return kwargs[name]
    place = PLACES[operation].get(name, len(args))
    return args[place] if place < len(args) else None


async def stepped(pieces: Any, around: Callable[[], AbstractContextManager[None]]) -> AsyncGenerator[Any, None]:  # noqa: ANN401 - a generator
    """The pieces, none of which is None; ``around`` is laid around the making of each, not around who looks at it."""
    async with aclosing(pieces):
        while True:
            with around():
                piece = await anext(pieces, None)
            if piece is None:
                return
            yield piece


class _Front:
    def __init__(self, inner: object, wrappers: Mapping[str, Wrap]) -> None:
        self._inner = inner
        for name, wrap in wrappers.items():
            setattr(self, name, wrap(getattr(inner, name)))

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever it is
        return getattr(self._inner, name)
