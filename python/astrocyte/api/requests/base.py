"""The base classes of requests: each states the type of its response."""

from __future__ import annotations

from typing import Any, Generic, TypeVar, get_args, get_origin

R_co = TypeVar("R_co", covariant=True)


class Request(Generic[R_co]):
    """A request of a call that returns ``R_co``."""

    __slots__ = ()


class StreamRequest(Generic[R_co]):
    """A request of a stream that yields ``R_co``."""

    __slots__ = ()


def response_of(request: type[Any]) -> Any:  # noqa: ANN401 - a type, or a form such as list[Bank]
    """The type that a call of this request returns, or that its stream yields.

    Raises:
        TypeError: The class does not state it.
    """
    for base in getattr(request, "__orig_bases__", ()):
        if get_origin(base) in {Request, StreamRequest}:
            return get_args(base)[0]
    raise TypeError(f"expected a subclass of Request[...] or StreamRequest[...], got {request.__name__}")


def unknown(request: object) -> TypeError:
    """The error for an object that is no request, or one of the other kind of call."""
    return TypeError(f"expected a request of astrocyte.api.requests, got {type(request).__name__}")
