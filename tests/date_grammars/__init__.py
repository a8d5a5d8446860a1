"""A reference grammar of date expressions: random phrases with the half-open windows of local time that they name."""

from __future__ import annotations

from date_grammars import composed, feasts, relative, written  # noqa: F401 - they fill the lists of templates
from date_grammars.directed import DIRECTED
from date_grammars.worlds import CARRIERS, OTHERS, POINTS, Case, World

__all__ = ["WHOLE", "Case", "World", "case_of"]

WHOLE = [*OTHERS, *POINTS, *DIRECTED]


def case_of(world: World) -> Case:
    """A random phrase, and what it names."""
    template = world.random.choice(WHOLE)
    text, windows = template(world)
    if template in POINTS:
        lead = {"a_date": "on ", "a_slashed_date": "on ", "a_month": "in ", "a_year": "in "}.get(template.__name__, "")
        text = lead + text
    return Case(world.random.choice(CARRIERS).format(text), sorted(windows, key=str), template.__name__)
