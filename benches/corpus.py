"""Synthetic rows, the same for every peer and every run of one seed.

Vectors lie in clusters, as embeddings do; words follow Zipf's law, as language does.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

# A vocabulary and a slope as of a small bank of English text.
WORDS = 20_000
SLOPE = 1.07
# One topic per hundred rows, and as much noise as signal within a topic.
ROWS_PER_TOPIC = 100
NOISE = 1.0
# How far a query lies from the row that it was made from.
QUERY_NOISE = 0.6


@dataclass(frozen=True)
class Corpus:
    """Texts and unit vectors, row by row; ``seed`` made them."""

    seed: int
    texts: list[str]
    vectors: NDArray[np.float32]


@dataclass(frozen=True)
class Queries:
    """Query texts and unit vectors."""

    texts: list[str]
    vectors: NDArray[np.float32]


def make_corpus(rows: int, *, dimensions: int, words: int, seed: int) -> Corpus:
    """``rows`` texts of ``words`` words each, with their vectors."""
    random = np.random.default_rng(seed)
    topics = random.standard_normal((max(1, rows // ROWS_PER_TOPIC), dimensions))
    vectors = topics[random.integers(len(topics), size=rows)] + NOISE * random.standard_normal((rows, dimensions))
    return Corpus(seed, _texts(random, rows, words), _unit(vectors))


def make_queries(corpus: Corpus, count: int, *, words: int) -> Queries:
    """``count`` queries, each near a row in meaning and sharing half of its words with it."""
    random = np.random.default_rng(corpus.seed + 1)
    rows = random.integers(len(corpus.texts), size=count)
    noise = random.standard_normal((count, corpus.vectors.shape[1])) / np.sqrt(corpus.vectors.shape[1])
    shared = words // 2
    others = _texts(random, count, words - shared)
    texts = [
        " ".join([*random.permutation(corpus.texts[row].split())[:shared], other])
        for row, other in zip(rows, others, strict=True)
    ]
    return Queries(texts, _unit(corpus.vectors[rows] + QUERY_NOISE * noise))


def _unit(vectors: NDArray[np.float64]) -> NDArray[np.float32]:
    return np.ascontiguousarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), dtype=np.float32)


def _texts(random: np.random.Generator, rows: int, words: int) -> list[str]:
    weights = 1.0 / np.arange(1, WORDS + 1) ** SLOPE
    vocabulary = _vocabulary()
    drawn = random.choice(WORDS, size=(rows, words), p=weights / weights.sum())
    return [" ".join(vocabulary[word] for word in row) for row in drawn]


def _vocabulary() -> list[str]:
    """Words that can be said, all different, none an English stop word."""
    syllables = [consonant + vowel for consonant in "bdfgklmnprstvz" for vowel in "aeiou"]
    size = len(syllables)
    return [
        syllables[index % size] + syllables[index // size % size] + syllables[index // size**2 % size] + "x"
        for index in range(WORDS)
    ]


def english_texts(rows: int, *, words: int, seed: int, numbered: bool = True) -> list[str]:
    """Texts of words that the example conversation uses, as often as it does: what a tokeniser meets in earnest.

    Each ends in its number, which keeps texts apart that chance would make near duplicates. Questions go without, for a
    number might be a date.
    """
    lines = (Path(__file__).parent.parent / "examples/conversation.jsonl").read_text(encoding="utf-8").splitlines()
    spoken = [word for line in lines for word in json.loads(line)["content"].split()]
    drawn = np.random.default_rng(seed).integers(len(spoken), size=(rows, words))
    texts = [" ".join(spoken[word] for word in row) for row in drawn]
    return [f"{text} ({number})" for number, text in enumerate(texts)] if numbered else texts
