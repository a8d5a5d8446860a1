"""Measure how well the product recalls, in process and with its default configuration, or the settings of `--config`.

Each file is a question set: banks of memories, and questions with the ids of their evidence. Every bank is retained
into a new store in a temporary folder, every question is one recall.

Example:
    python -m benches.quality --data set-a.json --data set-b.json.gz --out runs/new --against runs/old
"""

from __future__ import annotations

import argparse
import asyncio
import platform
import sys
import tempfile
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

import yaml

from benches.machine import peak_resident_bytes, resident_bytes
from benches.quality.ablation import ablate
from benches.quality.data import QuestionSet, read_run, read_set, write_run
from benches.quality.product import open_brain
from benches.quality.report import evaluate, table, timing_lines
from benches.quality.routing import routes
from benches.quality.runner import Answers, answer, answer_together

# Names the interval's draws; any other number does as well.
SEED = 20_250_101


def main(arguments: list[str] | None = None) -> int:
    """Run every set and print its table."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.config and (options.ablate or options.routes):
        parser.error("--config: expected neither --ablate nor --routes beside it, which choose settings themselves")
    sets = [(path, read_set(path)) for path in options.data]
    print(
        f"astrocyte {_version()}, Python {platform.python_version()}, "
        f"{platform.machine()}, bootstrap seed {options.seed}"
    )
    for path, questions in sets:
        if options.ablate:
            print("", *asyncio.run(ablate(questions, seed=options.seed)), sep="\n")
        elif options.routes:
            print(*asyncio.run(routes(questions, seed=options.seed)), sep="\n")
        else:
            _measure(path, questions, options)
    return 0


def _measure(path: Path, questions: QuestionSet, options: argparse.Namespace) -> None:
    settings = yaml.safe_load(options.config.read_text(encoding="utf-8")) if options.config else None
    answers = asyncio.run(_run(questions, options.together, settings))
    count = sum(len(bank.turns) for bank in questions.banks)
    asked = sum(len(bank.questions) for bank in questions.banks)
    print(
        f"\n{path.name}: {len(questions.banks)} banks, {count} memories ({answers.refused} refused), {asked} questions"
    )
    name = path.name.split(".", 1)[0] + ".jsonl"
    old = None
    if options.against:
        # The saved run ranks under the first id of equal memories too, so both are judged alike.
        old = evaluate(questions, read_run(options.against / name), answers.kept)
    for line in table(questions.name, evaluate(questions, answers.ranked, answers.kept), old, seed=options.seed):
        print(line)
    for line in timing_lines(answers.timings, count):
        print(line)
    print(f"resident {resident_bytes() / 2**20:.0f} MiB, at most {peak_resident_bytes() / 2**20:.0f} MiB so far")
    if options.out:
        write_run(options.out / name, answers.ranked)


async def _run(questions: QuestionSet, together: str | None, settings: Mapping[str, Any] | None) -> Answers:
    with tempfile.TemporaryDirectory(prefix="astrocyte-quality-") as folder:
        async with open_brain(Path(folder), settings) as brain:
            if together:
                return await answer_together(brain, questions, together)
            return await answer(brain, questions)


def _version() -> str:
    try:
        return metadata.version("astrocyte-grpc")
    except metadata.PackageNotFoundError:
        return "(not installed, from the source tree)"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benches.quality", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, action="append", required=True, help="a question set; may be repeated")
    parser.add_argument(
        "--config", type=Path, help="a file of settings to measure with instead of the default configuration"
    )
    parser.add_argument("--out", type=Path, help="folder that receives one .jsonl of ranked ids per set")
    parser.add_argument("--against", type=Path, help="folder of an earlier --out, to compare with")
    parser.add_argument(
        "--ablate", action="store_true", help="leave out one stage after the other, as a Markdown table"
    )
    parser.add_argument(
        "--routes",
        action="store_true",
        help="ask two sides, and show what a route per question brings, as Markdown tables",
    )
    parser.add_argument(
        "--together",
        choices=("dbsf", "relative_score", "rrf"),
        help="ask all banks of the set at once, fused this way, instead of the one that has the answer",
    )
    parser.add_argument("--seed", type=int, default=SEED, help="seed of the bootstrap")
    return parser


if __name__ == "__main__":
    sys.exit(main())
