"""Floors of the gate: values of the default configuration, and how far below them a change may go."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from benches.quality.gate.measure import ABSTAINS, AREA, OF_KIND, OPENS


@dataclass(frozen=True, slots=True)
class Floor:
    """A measured value and the margin below it that still passes."""

    measured: float
    margin: float

    @property
    def value(self) -> float:
        """The least value that passes."""
        return self.measured - self.margin


# Each margin admits the loss of one question or trap: vector kernels of other processors round differently, which can
# exchange two neighbours. One of 90 questions is .0111, one of 16 traps .0625. From rank 1 to 2, a question costs its
# kind .5 divided by the number of its questions, at least 9.
QUESTION, TRAP, RANK_OF_KIND = 0.012, 0.063, 0.056
# One trap that passes a tenth of the questions costs .0063.
OF_AREA = 0.01

# Values of `python -m benches.quality.gate`.
FLOORS: Mapping[str, Floor] = {
    "R@1": Floor(0.678, QUESTION),
    "R@10": Floor(0.933, QUESTION),
    "MRR": Floor(0.766, QUESTION),
    AREA: Floor(0.716, OF_AREA),
    ABSTAINS: Floor(0.375, TRAP),
    OPENS: Floor(0.578, QUESTION),
    f"{OF_KIND}, fact": Floor(1.0, RANK_OF_KIND),
    f"{OF_KIND}, speaker": Floor(0.830, RANK_OF_KIND),
    f"{OF_KIND}, dated": Floor(0.869, RANK_OF_KIND),
    f"{OF_KIND}, relative": Floor(1.0, RANK_OF_KIND),
    f"{OF_KIND}, multi-hop": Floor(0.760, RANK_OF_KIND),
    f"{OF_KIND}, paraphrase": Floor(0.339, RANK_OF_KIND),
    f"{OF_KIND}, update": Floor(0.606, RANK_OF_KIND),
}


def below(figures: Mapping[str, float]) -> dict[str, str]:
    """The figures below their floors, each with a sentence that says so; empty if the gate passes.

    Raises:
        ValueError: A figure has no floor, or a floor no figure.
    """
    if figures.keys() != FLOORS.keys():
        raise ValueError(f"expected the figures {sorted(FLOORS)}, got {sorted(figures)}")
    return {
        name: f"{name} is {figures[name]:.3f}, below its floor of {floor.value:.3f} (measured {floor.measured:.3f})"
        for name, floor in FLOORS.items()
        if figures[name] < floor.value
    }


def lines(figures: Mapping[str, float]) -> Iterator[str]:
    """A Markdown table of figures and floors."""
    yield "| figure | value | floor | |"
    yield "|---|---|---|---|"
    failed = below(figures)
    for name, floor in FLOORS.items():
        gained = figures[name] > floor.measured + floor.margin
        remark = "below" if name in failed else "raise the floor" if gained else ""
        yield f"| {name} | {figures[name]:.3f} | {floor.value:.3f} | {remark} |"
