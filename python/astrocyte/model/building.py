"""How the values that every recall makes many of are made fast."""

from __future__ import annotations

from dataclasses import fields
from typing import Any


def open_twin(frozen: type[Any]) -> type[Any]:
    """A class with the slots of a frozen dataclass, whose objects may be filled and then become that dataclass's.

    A frozen dataclass sets each of its fields by a call. An object of the twin takes them by plain assignment, and
    ``made.__class__ = frozen`` closes it: a third of the time. All slots must have been filled by then.
    """
    return type(f"Open{frozen.__name__}", (), {"__slots__": tuple(field.name for field in fields(frozen))})
