"""Guards of invariants, by the part of the package that has them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Guard:
    """A guard, the text that switches it off, and the tests that must fail then.

    Attributes:
        name: Short and unique.
        file: Below `python/astrocyte`.
        on: The text of the guard; stands in the file once.
        off: Its replacement.
        tests: Arguments of pytest.
        slow: Whether the tests start processes, and so stay out of the quick run.
    """

    name: str
    file: str
    on: str
    off: str
    tests: tuple[str, ...]
    slow: bool = False
