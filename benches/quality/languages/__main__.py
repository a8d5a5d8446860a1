"""Print the recall of the same memories and questions in nine languages, and of English questions in each.

The sets are beside this file, one for each language: 100 everyday memories of a family and a team, of which several are
near each other, and 50 questions, about half of which share few words with the memory that answers them. They were
written in English for this program and translated by hand. They are part of no fit.

Each language is stored once, in a bank of its own, and asked with several settings: the default ones,
`extraction.language` for this language, one arm alone, and the English questions.

Example:
    python -m benches.quality.languages
    python -m benches.quality.languages --config embedder.yaml --language german --language japanese
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
from benches.quality.languages.measure import LANGUAGES, Figures, measure, read, table


async def run(languages: tuple[str, ...], settings: Mapping[str, Any]) -> dict[str, Figures]:
    """The figures of each language, with settings beside the default ones."""
    found = {}
    for language in languages:
        with tempfile.TemporaryDirectory(prefix="astrocyte-languages-") as folder:
            found[language] = await measure(language, Path(folder), settings)
        print(f"{language}: asked", file=sys.stderr, flush=True)
    return found


def lines(found: Mapping[str, Figures], settings: Mapping[str, Any]) -> Iterator[str]:
    """Header and tables."""
    banks = [bank for language in found for bank in read(language).banks]
    yield describe(
        languages=len(found),
        memories=sum(len(bank.turns) for bank in banks),
        questions=sum(len(bank.questions) for bank in banks),
        embedder=(settings.get("embedding") or {}).get("provider", "static"),
    )
    yield from table(found)


def main(arguments: list[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        prog="python -m benches.quality.languages",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--config", type=Path, help="a file of settings, such as another embedder")
    parser.add_argument("--language", action="append", choices=LANGUAGES, help="only this one; may be repeated")
    options = parser.parse_args(arguments)
    settings = yaml.safe_load(options.config.read_text(encoding="utf-8")) if options.config else {}
    found = asyncio.run(run(tuple(options.language or LANGUAGES), settings))
    print(*lines(found, settings), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
