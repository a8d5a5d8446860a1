"""Questions of a language put to its bank with each variant of the settings, and the figures of what comes back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, get_args

from astrocyte.config.extraction import Language
from benches.quality.data import Key, QuestionSet, read_set
from benches.quality.metrics import mean
from benches.quality.product import open_brain
from benches.quality.report import OVERALL, Kept, evaluate
from benches.quality.runner import Stored, ask, store

FOLDER = Path(__file__).parent
ENGLISH = "english"
LANGUAGES = (
    ENGLISH,
    "german",
    "dutch",
    "french",
    "spanish",
    "italian",
    "portuguese",
    "russian",
    "japanese",
)
SHOWN = ("R@1", "R@10", "MRR")
PARAPHRASE = "paraphrase"

DEFAULT = "default"
LANGUAGE = "extraction.language"
KEYWORD = "keyword arm"
SEMANTIC = "semantic arm"
ACROSS = "English questions"

# Means of metrics by variant: of all questions, and of the paraphrases.
Figures = Mapping[str, Mapping[str, Mapping[str, float]]]


@dataclass(frozen=True, slots=True)
class Variant:
    """Settings of one pass over the questions, and whether they are asked in English."""

    settings: Mapping[str, Any]
    in_english: bool = False


def read(language: str) -> QuestionSet:
    """The set of a language."""
    return read_set(FOLDER / f"{language}.json")


def variants(language: str) -> dict[str, Variant]:
    """The passes of a language; the keyword arm has its stems where `extraction.language` has the language."""
    stems: dict[str, Any] = {"extraction": {"language": language}} if language in get_args(Language) else {}
    found = {DEFAULT: Variant({})}
    if stems and language != ENGLISH:
        found[LANGUAGE] = Variant(stems)
    found[KEYWORD] = Variant({**stems, "recall": {"weights": {"semantic": 0.0}}})
    found[SEMANTIC] = Variant({"recall": {"weights": {"keyword": 0.0}}})
    if language != ENGLISH:
        found[ACROSS] = Variant({}, in_english=True)
    return found


def in_english(questions: QuestionSet) -> QuestionSet:
    """The set with the texts of the English questions; the memories stay as they are."""
    texts = {one.id: one.text for bank in read(ENGLISH).banks for one in bank.questions}
    banks = (
        replace(bank, questions=tuple(replace(one, text=texts[one.id]) for one in bank.questions))
        for bank in questions.banks
    )
    return replace(questions, banks=tuple(banks))


def figures(questions: QuestionSet, ranked: Mapping[Key, list[str]], kept: Kept) -> dict[str, dict[str, float]]:
    """Means of all questions and of each kind, by the names of `SHOWN`."""
    scores = evaluate(questions, ranked, kept)
    return {
        kind: {name: value for name, value in mean(found).items() if name in SHOWN} for kind, found in scores.items()
    }


async def measure(language: str, folder: Path, settings: Mapping[str, Any]) -> Figures:
    """Store a language in `folder`, ask it with each variant beside `settings`, and return the figures of each."""
    questions = read(language)
    async with open_brain(folder, settings) as brain:
        stored = await store(brain, questions)
    found = {}
    for name, variant in variants(language).items():
        asked = in_english(questions) if variant.in_english else questions
        ranked = await _ask(folder, asked, stored, {**settings, **variant.settings})
        found[name] = figures(asked, ranked, stored.kept)
    return found


async def _ask(
    folder: Path, questions: QuestionSet, stored: Stored, settings: Mapping[str, Any]
) -> dict[Key, list[str]]:
    async with open_brain(folder, settings) as brain:
        return {
            (bank.name, question.id): await ask(brain, question.text, number, stored)
            for number, bank in enumerate(questions.banks)
            for question in bank.questions
        }


def table(found: Mapping[str, Figures]) -> Iterator[str]:
    """Two Markdown tables: a row for each variant of each language, and R@10 of all variants by language."""
    yield f"\n| language | settings | {' | '.join(SHOWN)} | {' | '.join(f'{name}, paraphrases' for name in SHOWN)} |"
    yield "|---|---|" + "---|" * (2 * len(SHOWN))
    for language, by_variant in found.items():
        for name, means in by_variant.items():
            cells = [_cell(means[kind][metric]) for kind in (OVERALL, PARAPHRASE) for metric in SHOWN]
            yield f"| {language} | {name} | {' | '.join(cells)} |"
    columns = (DEFAULT, LANGUAGE, KEYWORD, SEMANTIC, ACROSS)
    yield f"\n| R@10 | {' | '.join(columns)} |"
    yield "|---|" + "---|" * len(columns)
    for language, by_variant in found.items():
        cells = [_cell(by_variant[name][OVERALL]["R@10"]) if name in by_variant else "" for name in columns]
        yield f"| {language} | {' | '.join(cells)} |"


def _cell(value: float) -> str:
    return f"{value:.3f}".removeprefix("0")
