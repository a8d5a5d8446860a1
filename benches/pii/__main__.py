"""Measure how well personal data and secrets are found, by type.

python -m benches.pii                    the scanner, on the held-out templates
python -m benches.pii --split development --errors 40
python -m benches.pii --presidio         and Presidio beside it (make bench-pii)
python -m benches.pii --scripts          values right beside the letters of twelve scripts
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Collection, Iterator

from astrocyte.core import PiiScanner, pii_kinds
from benches.pii import scripts
from benches.pii.documents import Found, Scan, Score, measure, negatives
from benches.pii.values import CHECKSUMMED, MAKERS


def scanner() -> Scan:
    """The product's scanner, all types."""
    names = [name for name, _ in pii_kinds()]
    find = PiiScanner(names)

    def scan(text: str) -> Iterator[Found]:
        return ((names[kind], start, end) for _, kind, start, end, _ in find.find((text,)))

    return scan


def main(arguments: list[str] | None = None) -> int:
    """Print a table for each scanner."""
    parser = argparse.ArgumentParser(
        prog="python -m benches.pii", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--split", choices=("development", "held_out"), default="held_out", help="which templates")
    parser.add_argument("--presidio", action="store_true", help="measure Presidio too")
    parser.add_argument("--errors", type=int, default=0, help="so many documents that went wrong")
    parser.add_argument("--scripts", action="store_true", help="recall and precision by script")
    options = parser.parse_args(arguments)
    if options.scripts:
        _print_scripts(scanner())
        return 0
    scans = {"astrocyte": scanner()}
    common: Collection[str] = MAKERS
    if options.presidio:
        from benches.pii import presidio  # noqa: PLC0415 - an extra

        common = set(presidio.NAMES.values())
        scans |= {"presidio, patterns alone": presidio.alone(), "presidio, with words around": presidio.analyser()}
    for name, scan in scans.items():
        score = measure(scan, options.split)
        _print(name, score, scan, common)
        for line in score.examples[: options.errors]:
            print("  ", line)
    return 0


def _print_scripts(scan: Scan) -> None:
    """A table by script; an alarm is a document with a number of things in which anything is found."""
    print(f"{'script':<16}{'recall':>8}{'precision':>11}{'alarms':>8}")
    for script in scripts.SCRIPTS:
        score = Score()
        for document in scripts.positives(script, 200):
            score.add(document, set(scan(document.text)))
        alarms = sum(any(scan(document.text)) for document in scripts.negatives(script, 2_000))
        names = tuple(score.there)
        print(f"{script:<16}{score.recall(names):>8.3f}{score.precision(names):>11.3f}{alarms:>8}")


def _print(name: str, score: Score, scan: Scan, common: Collection[str]) -> None:
    """A table by type; sums are of the types that all scanners know."""
    texts = [document.text for document in negatives("held_out", 2_000)]
    started = time.process_time()
    for text in texts:
        list(scan(text))
    cost = (time.process_time() - started) / len(texts) * 1e6
    print(
        f"\n{name}: {cost:,.1f} us of processor time a document of {sum(map(len, texts)) / len(texts):.0f} characters"
    )
    print(f"{'type':<24}{'recall':>8}{'precision':>11}")
    sums = {
        "all with checksum": [kind for kind in CHECKSUMMED if kind in common],
        "all": [kind for kind in MAKERS if kind in common],
    }
    for row, kinds in ({kind: [kind] for kind in MAKERS} | sums).items():
        print(f"{row:<24}{score.recall(kinds):>8.3f}{score.precision(kinds):>11.3f}")
    print(f"hard documents with a finding: {score.alarms} of {score.negatives} ({score.false_alarms:.2%})")


if __name__ == "__main__":
    sys.exit(main())
