"""Steps of the pipelines by a third party, as a test package brings them: one of each kind, found by entry points.

Each does its work, or what bad code does, by its option ``fault``; none has anything installed.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from astrocyte.errors import ProviderUnavailable
from astrocyte.model import Intent, TimeRange
from astrocyte.providers.stages import ArmQuery, GivenMemory, QueryAnalysis, RankedList, Synthesis

FAULTS = ("hangs", "clings", "raises", "away", "none", "wrong")
# What each makes of a step, by the trace and the events.
REASONS = {
    "hangs": "timeout",
    "clings": "timeout",
    "raises": "RuntimeError",
    "away": "provider_unavailable",
    "none": "invalid_answer",
    "wrong": "invalid_answer",
}


@dataclass
class Step:
    """The common part of the steps: options, a record of every call, and faults."""

    options: Mapping[str, Any]
    calls: list[Any] = field(default_factory=list)
    closed: bool = False

    def __post_init__(self) -> None:
        LAST.append(self)

    async def failing(self, wrong: Any) -> Any:
        """Do what the option says, or return ``self``."""
        match self.options.get("fault", ""):
            case "hangs":
                await asyncio.Event().wait()
            case "clings":
                # Takes no for an answer only the second time.
                try:
                    await asyncio.Event().wait()
                except asyncio.CancelledError:
                    await asyncio.Event().wait()
            case "raises":
                raise RuntimeError("secret content")
            case "away":
                raise ProviderUnavailable("away")
            case "none":
                return None
            case "wrong":
                return wrong
        return self

    async def close(self) -> None:
        self.closed = True


LAST: list[Step] = []


class HeadingChunker(Step):
    """Cuts before each line that starts with a number sign."""

    async def split(self, text: str, *, size: int, content_type: str, deadline: float) -> Sequence[tuple[int, int]]:
        self.calls.append((text, size, content_type))
        made = await self.failing([(0, len(text) + 1)])
        if made is not self:
            return made  # type: ignore[no-any-return]
        starts = [0, *(at + 1 for at in range(len(text) - 1) if text[at : at + 2] == "\n#")]
        return list(zip(starts, [*starts[1:], len(text)], strict=True))


class PayPeriodAnalyser(Step):
    """Knows what a pay period is, and takes every question about one for one of times."""

    async def analyse(self, question: str, *, today: date | None, deadline: float) -> QueryAnalysis:
        self.calls.append((question, today))
        made = await self.failing(QueryAnalysis(Intent.TEMPORAL, confidence=2.0))
        if made is not self:
            return made  # type: ignore[no-any-return]
        if "pay period" not in question or today is None:
            return QueryAnalysis()
        end = datetime(today.year, today.month, today.day, tzinfo=UTC)
        return QueryAnalysis(Intent.TEMPORAL, 0.9, [TimeRange(end - timedelta(days=14), end)])


class ListArm(Step):
    """Proposes the memories of its option ``ids``, whatever is asked."""

    async def search(self, query: ArmQuery, *, deadline: float) -> Sequence[tuple[str, float]]:
        self.calls.append(query)
        made = await self.failing([("mem_1", float("nan"))])
        if made is not self:
            return made  # type: ignore[no-any-return]
        return [(memory_id, 1.0 / place) for place, memory_id in enumerate(self.options.get("ids", ()), 1)]


class CountingFusion(Step):
    """Puts first what most lists have, and leaves out what one list alone has where the option ``least`` is 2."""

    async def fuse(self, question: str, lists: Sequence[RankedList], *, deadline: float) -> Mapping[str, float]:
        self.calls.append((question, lists))
        made = await self.failing({"mem_1": "1"})
        if made is not self:
            return made  # type: ignore[no-any-return]
        counts: dict[str, float] = {"mem_nobody_has_this": 9.0}
        for one in lists:
            for memory_id, _, _ in one.entries:
                counts[memory_id] = counts.get(memory_id, 0.0) + 1.0
        return {memory_id: count for memory_id, count in counts.items() if count >= self.options.get("least", 1)}


class ReversedFusion(Step):
    """The reciprocal ranks of the keyword list alone, worst first."""

    async def fuse(self, question: str, lists: Sequence[RankedList], *, deadline: float) -> Mapping[str, float]:
        self.calls.append((question, lists))
        return {memory_id: float(rank) for one in lists if one.arm == "keyword" for memory_id, rank, _ in one.entries}


class QuotingSynthesiser(Step):
    """Answers with the best memory, word by word."""

    async def answer(
        self, question: str, memories: Sequence[GivenMemory], *, max_tokens: int, deadline: float
    ) -> Synthesis:
        self.calls.append((question, tuple(memories), max_tokens))
        made = await self.failing(Synthesis("x", [(0, 1)]))  # type: ignore[list-item]
        if made is not self:
            return made  # type: ignore[no-any-return]
        if self.options.get("silent"):
            return Synthesis("")
        text = self.options.get("text", memories[0].text)
        outside = (0, 5, len(memories) + 1)
        return Synthesis(text, [(0, len(text), 1), outside, (len(text), len(text) + 9, 1)], 0.75)


class Synchronous:
    """A step with the right methods of the wrong kind."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        del options

    def split(self) -> None: ...

    analyse = search = fuse = answer = split


class Refusing:
    """A step that does not take its options."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        raise ValueError("no such option")


GROUPS = {
    "astrocyte.chunkers": {"headings": "HeadingChunker"},
    "astrocyte.query_analysers": {"pay_periods": "PayPeriodAnalyser"},
    "astrocyte.retrieval_arms": {"listed": "ListArm"},
    "astrocyte.fusions": {"counting": "CountingFusion", "reversed": "ReversedFusion"},
    "astrocyte.synthesisers": {"quoting": "QuotingSynthesiser"},
}
BAD = {"synchronous": "Synchronous", "refusing": "Refusing", "lost": "Nothing"}


def install(folder: Path, patch: pytest.MonkeyPatch) -> None:
    """Put the metadata of a distribution on the path, as an installer would."""
    metadata = folder / "third_party_stages-1.0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: third-party-stages\nVersion: 1.0\n")
    lines = []
    for group, points in GROUPS.items():
        lines.append(f"[{group}]")
        lines += [f"{name} = third_party:{made}" for name, made in {**points, **BAD}.items()]
    (metadata / "entry_points.txt").write_text("\n".join(lines) + "\n")
    patch.syspath_prepend(str(folder))
