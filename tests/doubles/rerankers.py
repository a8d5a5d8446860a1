"""Rerankers of a third party, as a test package brings them: found by entry points, with nothing installed."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from astrocyte.errors import ProviderUnavailable


class WordReranker:
    """Grades a passage by how often it holds a word, or does what a bad reranker does."""

    def __init__(self, word: str, fault: str) -> None:
        self.model_id = "words"
        self.read: list[tuple[str, tuple[str, ...]]] = []
        self.closed = False
        self._word = word
        self._fault = fault

    async def score(self, query: str, passages: Sequence[str], *, deadline: float | None = None) -> Sequence[float]:
        self.read.append((query, tuple(passages)))
        match self._fault:
            case "hangs":
                await asyncio.Event().wait()
            case "raises":
                raise RuntimeError("secret content")
            case "away":
                raise ProviderUnavailable("away")
            case "few":
                return [1.0]
            case "nan":
                return [float("nan")] * len(passages)
            case "none":
                return None  # type: ignore[return-value]
        return [float(passage.count(self._word)) for passage in passages]

    async def close(self) -> None:
        self.closed = True


LAST: list[WordReranker] = []


def create(options: Mapping[str, Any]) -> WordReranker:
    """The factory of the entry point of the test package."""
    made = WordReranker(str(options.get("word", "")), str(options.get("fault", "")))
    LAST.append(made)
    return made


def create_nothing(options: Mapping[str, Any]) -> object:
    """Makes what is no reranker."""
    return object()


def install(folder: Path, patch: pytest.MonkeyPatch) -> None:
    """Put the metadata of a distribution on the path, as an installer would."""
    metadata = folder / "third_party_reranker-1.0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: third-party-reranker\nVersion: 1.0\n")
    points = (
        "[astrocyte.rerankers]\nwords = rerankers:create\nnothing = rerankers:create_nothing\nlost = no_module:create\n"
    )
    (metadata / "entry_points.txt").write_text(points)
    patch.syspath_prepend(str(folder))
