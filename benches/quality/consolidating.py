"""Check what consolidation by rules makes of question sets, and what it does to answers and to retains.

For each set every bank is consolidated. An observation is *supported* if each content word of it is in the memories
that it cites, or is the name of who said them. Two observations *contradict* each other if both hold now, and they are
of the same content words but for a word of denial. The support is checked without the code that made the observation.
Every question that has a written answer is then reflected on, as in `benches.quality.reflecting`, in banks without
observations and in the same banks with them. *error* is the calibration error over ten bins of the confidence of the
answers that were given: one is right if it cites evidence of the question, and wrong if the question is a trap.

With ``--retains`` the time of a retain is measured with and without consolidation in the background, in turns.

Example:
    python -m benches.quality.consolidating --data locomo.json --retains 2000
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean, median

import numpy as np

from astrocyte import Astrocyte
from astrocyte.model import Observation
from astrocyte.pipelines.text.content_words import content_words
from benches.machine import describe
from benches.quality.calibration import calibration_error
from benches.quality.data import Bank, QuestionSet, read_set
from benches.quality.reflecting import TRAP, Answered, ask, table
from benches.quality.runner import fill, item

# Denial, as stems.
DENIALS = frozenset({"no", "not", "never", "longer", "don", "doesn", "didn", "isn", "aren"})
# Unsupported observations that are printed.
SHOWN = 10
PAGE = 500
# An operation on a bank of some thousand memories takes seconds.
PATIENCE = 300.0
# Retains of one kind before the other takes its turn.
ROUND = 100


@dataclass
class Made:
    """Counts over the banks of a set."""

    observations: int = 0
    unsupported: list[str] = field(default_factory=list)
    contradictions: list[tuple[str, str]] = field(default_factory=list)
    seconds: float = 0.0


async def consolidate(brain: Astrocyte, bank: Bank, bank_id: str, ids: dict[str, tuple[str, str]], made: Made) -> None:
    """Consolidate a bank, and check each observation against the memories that it cites."""
    begun = time.perf_counter()
    operation = await brain.consolidate(bank_id)
    done = await brain.wait_operation(bank_id, operation.operation_id, timeout_seconds=PATIENCE)
    made.seconds += time.perf_counter() - begun
    if done.error is not None or done.ended_at is None:
        raise RuntimeError(f"bank {bank.name}: expected a consolidation that succeeds, got {done}")
    said = {stored: turn for turn in bank.turns if turn.id in ids for stored, _ in [ids[turn.id]]}
    current = [one async for one in observations(brain, bank_id)]
    for one in current:
        text = " ".join(f"{said[memory].speaker or ''} {said[memory].text}" for memory in one.source_ids)
        if lacking := set(content_words(one.text)) - set(content_words(text)):
            made.unsupported.append(f"{one.text!r} lacks {sorted(lacking)} in {text!r}")
    made.observations += len(current)
    made.contradictions += contradictions([one for one in current if one.valid_until is None])


async def observations(brain: Astrocyte, bank_id: str) -> AsyncIterator[Observation]:
    """All observations of a bank."""
    token = ""
    while True:
        page = await brain.list_observations(bank_id, page_size=PAGE, page_token=token)
        for one in page:
            yield one
        token = page.next_page_token
        if not token:
            return


def contradictions(held: Sequence[Observation]) -> list[tuple[str, str]]:
    """Pairs of the same words, of which one is denied."""
    said: dict[frozenset[str], dict[bool, str]] = {}
    found = []
    for one in held:
        words = {word.strip(".,!?'\u2019").lower() for word in one.text.replace("\u2019", "'").split()}
        parts = {part for word in words for part in word.split("'")}
        denied = bool(parts & DENIALS)
        others = said.setdefault(frozenset(content_words(one.text)) - DENIALS, {})
        if others and denied not in others:
            found.append((one.text, next(iter(others.values()))))
        others[denied] = one.text
    return found


async def measure(questions: QuestionSet, folder: Path) -> tuple[Made, list[Answered], list[Answered]]:
    """Observations of a set, and the answers without and with them."""
    brain = Astrocyte.from_config_dict({"data_dir": str(folder)})
    made, plain, with_them = Made(), [], []
    for number, bank in enumerate(questions.banks):
        bank_id = f"bank-{number}"
        ids = await fill(brain, bank, bank_id)
        plain += await ask(brain, bank, bank_id, ids)
        await consolidate(brain, bank, bank_id, ids, made)
        with_them += await ask(brain, bank, bank_id, ids)
    await brain.close()
    return made, plain, with_them


def error(answers: Sequence[Answered]) -> float:
    """Calibration error of the answers that were given."""
    given = [one for one in answers if not one.abstained]
    return calibration_error(
        np.array([one.confidence for one in given]),
        np.array([float(one.cites_evidence and one.category != TRAP) for one in given]),
    )


async def retains(questions: QuestionSet, count: int, folder: Path) -> tuple[float, float]:
    """Median seconds of a retain without and with consolidation in the background."""
    turns = [turn for bank in questions.banks for turn in bank.turns][:count]
    brains = [
        Astrocyte.from_config_dict(
            {"data_dir": str(folder / str(on)), "observations": {"consolidation": {"enabled": on}}}
        )
        for on in (False, True)
    ]
    seconds: tuple[list[float], list[float]] = ([], [])
    for begin in range(0, len(turns), ROUND):
        for brain, times in zip(brains, seconds, strict=True):
            for turn in turns[begin : begin + ROUND]:
                begun = time.perf_counter()
                await brain.retain(bank_id="bank", **item(turn))
                times.append(time.perf_counter() - begun)
    for brain in brains:
        await brain.close()
    without, with_it = map(median, seconds)
    return without, with_it


def main(arguments: list[str] | None = None) -> int:
    """Measure every set and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, action="append", required=True, help="a question set; may be repeated")
    parser.add_argument("--retains", type=int, default=0, help="memories whose retain is timed; default: none")
    options = parser.parse_args(arguments)
    print(describe())
    for path in options.data:
        questions = read_set(path)
        with tempfile.TemporaryDirectory(prefix="astrocyte-consolidating-") as folder:
            made, plain, with_them = asyncio.run(measure(questions, Path(folder)))
        supported = 1 - len(made.unsupported) / max(1, made.observations)
        print(
            f"\n{questions.name}: {made.observations:,} observations of {sum(len(b.turns) for b in questions.banks):,} "
            f"memories in {made.seconds:.1f} s, {supported:.3f} supported, {len(made.contradictions)} contradictions"
        )
        print(*made.unsupported[:SHOWN], *made.contradictions[:SHOWN], sep="\n")
        for title, answers in (("without observations", plain), ("with observations", with_them)):
            print(f"\n{title}: words {mean(one.words for one in answers):.3f}, error {error(answers):.3f}")
            print("\n".join(table(answers)))
        if options.retains:
            with tempfile.TemporaryDirectory(prefix="astrocyte-consolidating-") as folder:
                without, with_it = asyncio.run(retains(questions, options.retains, Path(folder)))
            print(
                f"\np50 of a retain: {without * 1e3:.2f} ms without consolidation, {with_it * 1e3:.2f} ms with, "
                f"ratio {with_it / without:.2f}"
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
