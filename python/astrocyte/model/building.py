"""How the values that every recall makes many of are made fast."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from typing import Any, TypeVar

T = TypeVar("T")


def open_twin(frozen: type[Any]) -> type[Any]:
    """A class with the slots of a frozen dataclass, whose objects may be filled and then become that dataclass's.

    A frozen dataclass sets each of its fields by a call. An object of the twin takes them by plain assignment, and
    ``made.__class__ = frozen`` closes it: a third of the time. All slots must have been filled by then.
    """
    return type(f"Open{frozen.__name__}", (), {"__slots__": tuple(field.name for field in fields(frozen))})


def maker(frozen: type[T]) -> Callable[[Mapping[str, Any]], T]:
    """What makes objects of a frozen dataclass of a mapping of fields, none unknown; others have their defaults.

    Its code is written for the class, as ``dataclass`` writes the class's own, and sets all fields by one assignment.
    The class has no ``__post_init__``.
    """
    own = fields(frozen)  # type: ignore[arg-type]  # a dataclass
    new = {field.name: field.default_factory for field in own if field.default_factory is not MISSING}
    defaults = {field.name: None if field.default is MISSING else field.default for field in own}
    required = [field.name for field in own if field.default is MISSING and field.name not in new]
    lines = (
        "def make(values):",
        *(f"    values[{name!r}]" for name in required),
        "    made = twin()",
        f"    {', '.join(f'made.{name}' for name in defaults)}, = {{**defaults, **values}}.values()",
        *(f"    if {name!r} not in values: made.{name} = new[{name!r}]()" for name in new),
        "    made.__class__ = frozen",
        "    return made",
    )
    names: dict[str, Any] = {"twin": open_twin(frozen), "frozen": frozen, "defaults": defaults, "new": new}
    exec("\n".join(lines), names)  # noqa: S102 - of the names of the class's fields alone
    make: Callable[[Mapping[str, Any]], T] = names["make"]
    return make
