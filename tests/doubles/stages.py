"""Shared by tests of third-party steps: an application with some, and a record of their failures."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.model import Caller
from astrocyte.policy import events
from doubles import third_party

ME = Caller()


def app_of(pipeline: dict[str, Any] | None = None, **settings: Any) -> Any:
    return App(Settings.from_mapping({"vector_store": "in_memory", "pipeline": pipeline or {}, **settings}))


def last(kind: type[Any]) -> Any:
    """The step of a kind that was made last."""
    return next(step for step in reversed(third_party.LAST) if type(step).__name__ == kind.__name__)


@contextmanager
def heard() -> Iterator[list[tuple[str, ...]]]:
    """Events of steps that gave nothing: operation, bank, provider and mode."""
    told: list[tuple[str, ...]] = []

    def listener(event: str, fields: Any) -> None:
        assert "secret" not in repr(fields)
        if event == "degraded":
            told.append(tuple(fields[name] for name in ("operation", "bank_id", "provider", "mode")))

    events.subscribe(listener)
    try:
        yield told
    finally:
        events.unsubscribe(listener)
