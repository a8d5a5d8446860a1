"""Print the figures of the regression gate, by kind of question, with what was missed; exit with 1 below a floor.

The set is `banks.json` beside this file: memories of four banks, written for this gate, all people and subjects
invented. It is small, so that it runs with the tests; figures of public sets are in docs/quality.md.

Example:
    python -m benches.quality.gate
    python -m benches.quality.gate --config settings.yaml --quiet
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from benches.machine import describe
from benches.quality.gate.floors import below, lines
from benches.quality.gate.measure import OPENS, Measured, figures, gate_set, measure, misses, openings_by_kind
from benches.quality.product import open_brain
from benches.quality.report import table
from benches.quality.runner import store


async def run(settings: Mapping[str, Any] | None = None) -> Measured:
    """The answers of the product to the set, with settings beside the default ones."""
    questions = gate_set()
    with tempfile.TemporaryDirectory(prefix="astrocyte-gate-") as folder:
        async with open_brain(Path(folder), settings) as brain:
            return await measure(brain, questions, await store(brain, questions))


def report(found: Measured) -> Iterator[str]:
    """Ranking by kind of question, openings by kind, and the figures with their floors."""
    yield from table(found.questions.name, found.scores(), None, seed=0)
    yield ""
    yield f"{OPENS}:"
    for kind, right in openings_by_kind(found).items():
        yield f"  {kind:12} {sum(right):3} of {len(right)}"
    yield ""
    yield from lines(figures(found))


def main(arguments: list[str] | None = None) -> int:
    """Measure, print, compare."""
    parser = argparse.ArgumentParser(
        prog="python -m benches.quality.gate",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--config", type=Path, help="a file of settings instead of the default configuration")
    parser.add_argument("--quiet", action="store_true", help="leave out the misses")
    options = parser.parse_args(arguments)
    settings = yaml.safe_load(options.config.read_text(encoding="utf-8")) if options.config else None
    found = asyncio.run(run(settings))
    banks = found.questions.banks
    memories = sum(len(bank.turns) for bank in banks)
    print(describe(banks=len(banks), memories=memories, questions=len(found.answers), traps=len(found.traps)))
    print("", *report(found), sep="\n")
    if not options.quiet:
        print("\nmissed, wrong or answered:", *misses(found), sep="\n  ")
    failed = below(figures(found))
    print("", *(failed.values() or ["all figures reach their floors"]), sep="\n")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
