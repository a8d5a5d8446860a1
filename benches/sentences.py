"""Sentences of question sets with the vectors of a model, to measure with in place of synthetic rows.

    python -m benches.sentences --data locomo.json --data beam.json.gz --config minilm.yaml --out sentences.npz
    python -m benches.scale --sentences sentences.npz --rows 1000000

Sets are those of benches.quality; the embedder is that of the configuration, by default the bundled table. Where more
rows are wanted than there are sentences, the rest are mixtures of two of them: some words of each, in their order, and
the mean of their vectors, weighted by how many words each gave.
"""

from __future__ import annotations

import argparse
import asyncio
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rich.progress import track

from astrocyte.config import Settings, load_settings
from astrocyte.providers.registry import create_embedder
from benches.corpus import Corpus, Queries
from benches.quality.data import QuestionSet, read_set

# Shorter ones say nothing alone; longer ones are lists and tables.
WORDS = range(5, 41)
SENTENCES = 40_000
QUESTIONS = 200
# The first of two gives this share of its words, and the second the rest of its own.
SHARES = (0.5, 0.9)
BATCH = 256
_END = re.compile(r"(?<=[.!?])\s+|\n+")


def load(path: Path, rows: int, *, seed: int) -> tuple[Corpus, Queries, int]:
    """``rows`` texts with their unit vectors, the questions, and how many of the rows are real."""
    with np.load(path) as file:
        texts, vectors = file["texts"].tolist(), file["vectors"]
        queries = Queries(file["questions"].tolist(), file["question_vectors"])
    real = min(rows, len(texts))
    mixed, between = _mixtures(texts, vectors, rows - real, seed)
    return Corpus(seed, texts[:real] + mixed, np.concatenate([vectors[:real], between])), queries, real


def _mixtures(
    texts: Sequence[str], vectors: NDArray[np.float32], count: int, seed: int
) -> tuple[list[str], NDArray[np.float32]]:
    random = np.random.default_rng(seed)
    pairs = random.integers(len(texts), size=(count, 2))
    shares = random.uniform(*SHARES, size=count).astype(np.float32)
    words = [text.split() for text in texts]
    mixed = [
        " ".join(_some(random, words[one], share) + _some(random, words[other], 1 - share))
        for (one, other), share in zip(pairs, shares, strict=True)
    ]
    between = np.empty((count, vectors.shape[1]), np.float32)
    for first in range(0, count, 1 << 16):
        part = slice(first, first + (1 << 16))
        own = shares[part, None]
        between[part] = own * vectors[pairs[part, 0]] + (1 - own) * vectors[pairs[part, 1]]
        between[part] /= np.linalg.norm(between[part], axis=1, keepdims=True)
    return mixed, between


def _some(random: np.random.Generator, words: list[str], share: np.float32) -> list[str]:
    """That share of the words, in their order."""
    kept = np.sort(random.permutation(len(words))[: max(1, round(len(words) * float(share)))])
    return [words[place] for place in kept]


def _sentences(sets: Sequence[QuestionSet], seed: int) -> list[str]:
    found = {
        sentence: None
        for questions in sets
        for bank in questions.banks
        for turn in bank.turns
        for sentence in _split(turn.text)
    }
    order = np.random.default_rng(seed).permutation(len(found))
    sentences = list(found)
    return [sentences[place] for place in order[:SENTENCES]]


def _split(text: str) -> Iterator[str]:
    for part in _END.split(text):
        sentence = part.strip()
        if len(sentence.split()) in WORDS:
            yield sentence


def _questions(sets: Sequence[QuestionSet], seed: int) -> list[str]:
    asked = sorted({question.text for questions in sets for bank in questions.banks for question in bank.questions})
    return [asked[place] for place in np.random.default_rng(seed).permutation(len(asked))[:QUESTIONS]]


async def _embedded(settings: Settings, texts: Sequence[str], title: str) -> NDArray[np.float32]:
    embedder = create_embedder(settings.embedding.provider, settings.embedding.options)
    vectors: list[bytes] = []
    for first in track(range(0, len(texts), BATCH), description=title):
        vectors += await embedder.embed(texts[first : first + BATCH])
    await embedder.close()
    return np.frombuffer(b"".join(vectors), np.float32).reshape(len(texts), -1)


def main() -> None:
    """Embed and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, action="append", required=True, help="a question set; may be repeated")
    parser.add_argument("--config", type=Path, help="a file of settings that names another embedder than the default")
    parser.add_argument("--out", type=Path, required=True, help="the file to write")
    parser.add_argument("--seed", type=int, default=20_250_112)
    options = parser.parse_args()
    settings = load_settings(options.config)
    sets = [read_set(path) for path in options.data]
    sentences, questions = _sentences(sets, options.seed), _questions(sets, options.seed)
    np.savez(
        options.out,
        texts=np.array(sentences),
        vectors=asyncio.run(_embedded(settings, sentences, f"{len(sentences):,} sentences")),
        questions=np.array(questions),
        question_vectors=asyncio.run(_embedded(settings, questions, f"{len(questions):,} questions")),
    )


if __name__ == "__main__":
    main()
