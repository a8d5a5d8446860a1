"""Whoever wants answers of a batch as they are made, on the threads that make them, and not only all at its end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from astrocyte.model import RecallResult

Listener = Callable[[RecallResult], None]


class _Ear:
    """What tasks that are begun meanwhile keep, which may outlive the listener."""

    __slots__ = ("listener",)

    def __init__(self, listener: Listener) -> None:
        self.listener: Listener | None = listener


_ear: ContextVar[_Ear | None] = ContextVar("astrocyte_early", default=None)


@contextmanager
def heard_early(listener: Listener) -> Iterator[None]:
    """Have ``listener`` called with answers of the batches that are asked for here, on any thread, as they are made.

    Those that threads answer in parts; others come at the end alone. And what is answered then may be another object:
    a rule has changed it.
    """
    ear = _Ear(listener)
    token = _ear.set(ear)
    try:
        yield
    finally:
        ear.listener = None
        _ear.reset(token)


def early_listener() -> Listener | None:
    """Who wants to hear, if anybody does."""
    ear = _ear.get()
    return None if ear is None else ear.listener
