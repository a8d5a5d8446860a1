"""Measure extraction and resolution of entities on the labelled sets.

python -m benches.entities                  the test split
python -m benches.entities --split dev --errors 40
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Mapping
from time import thread_time

from astrocyte.pipelines.graph.extraction import extract
from benches.entities.pairs import pairs
from benches.entities.scoring import ExtractionScore, ResolutionScore, score_extraction, score_resolution
from benches.entities.sentences import sentences

# Rounds of the timing; the best is printed.
ROUNDS = 5
TYPICAL = (
    "Alice Smith joined the platform team in Berlin last March. She met Kenji Tanaka at Acme Corp, and they talked "
    "about the Apollo project for an hour. I hope that it goes well, because the deadline is near."
)


def main(arguments: list[str] | None = None) -> int:
    """Print the figures and tables of a split."""
    parser = argparse.ArgumentParser(
        prog="python -m benches.entities", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--split", choices=("dev", "test"), default="test", help="which templates and pairs")
    parser.add_argument("--errors", type=int, default=0, help="so many sentences and pairs that went wrong")
    options = parser.parse_args(arguments)
    extraction = score_extraction(sentences(options.split))
    resolution = score_resolution(pairs(options.split))
    _print_extraction(extraction)
    _print_resolution(resolution)
    extract(TYPICAL, speaker="Mara")
    best = min(_seconds() for _ in range(ROUNDS))
    print(f"\n{len(TYPICAL)} characters: {1e6 * best:.0f} microseconds of processor time")
    for line in [*extraction.errors, *resolution.errors][: options.errors]:
        print("  ", line)
    return 0


def _seconds() -> float:
    started = thread_time()
    for _ in range(100):
        extract(TYPICAL, speaker="Mara")
    return (thread_time() - started) / 100


def _print_extraction(score: ExtractionScore) -> None:
    names, links = score.names, score.links
    print(f"names: precision {names.precision:.3f}, recall {names.recall:.3f}, F1 {names.f1:.3f}")
    print(f"type accuracy: {score.type_accuracy:.3f}")
    print(f"relations: precision {links.precision:.3f}, recall {links.recall:.3f}, F1 {links.f1:.3f}\n")
    _print_table(score.types)
    print("\n| label | found | relations |\n|---|---|---|")
    for (label, found), count in sorted(score.link_types.items()):
        print(f"| {label} | {found} | {count} |")


def _print_table(counts: Mapping[tuple[str, str], int]) -> None:
    """A table with a row for each label and a column for each found type."""
    labels, found = (sorted({pair[side] for pair in counts}) for side in (0, 1))
    print(f"| label | {' | '.join(found)} |\n|{'---|' * (len(found) + 1)}")
    for label in labels:
        print(f"| {label} | {' | '.join(str(counts.get((label, kind), 0)) for kind in found)} |")


def _print_resolution(score: ResolutionScore) -> None:
    same = score.same
    print(f"\npairs: precision {same.precision:.3f}, recall {same.recall:.3f}\n")
    print("| label | one entity | two entities |\n|---|---|---|")
    print(f"| one entity | {same.right} | {same.missed} |\n| two entities | {same.wrong} | {score.different} |\n")
    print("| reason | right | wrong |\n|---|---|---|")
    reasons: Counter[str] = Counter(reason for reason, _ in score.reasons)
    for reason in sorted(reasons):
        print(f"| {reason} | {score.reasons[reason, True]} | {score.reasons[reason, False]} |")


if __name__ == "__main__":
    sys.exit(main())
