"""An object with some of its methods wrapped: spans around pipelines and providers, which know nothing of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast

T = TypeVar("T")
Wrap = Callable[[Callable[..., Any]], Callable[..., Any]]


def front(inner: T, wrappers: Mapping[str, Wrap]) -> T:
    """``inner`` with methods wrapped, by their names.

    Args:
        inner: Any object.
        wrappers: Given the method, each returns its replacement.
    """
    return cast("T", _Front(inner, wrappers))


class _Front:
    def __init__(self, inner: object, wrappers: Mapping[str, Wrap]) -> None:
        self._inner = inner
        for name, wrap in wrappers.items():
            setattr(self, name, wrap(getattr(inner, name)))

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever it is
        return getattr(self._inner, name)
