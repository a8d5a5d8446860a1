"""Protocols of custom pipeline steps, with their arguments and results. Implementations import them from here.

A distribution registers a function of the options in the settings, or a class that is made of them, under the entry
point group of its kind, and the settings name it; ``package.module:name`` does without an entry point.

| step | protocol | entry point group | settings |
|---|---|---|---|
| cutting contents | `Chunker` | ``astrocyte.chunkers`` | ``pipeline.chunking`` |
| reading a question | `QueryAnalyser` | ``astrocyte.query_analysers`` | ``pipeline.query_analysis`` |
| finding candidates | `RetrievalArm` | ``astrocyte.retrieval_arms`` | ``pipeline.retrieval.custom_arms`` |
| making one list of several | `Fusion` | ``astrocyte.fusions`` | ``pipeline.fusion`` |
| answering | `Synthesiser` | ``astrocyte.synthesisers`` | ``pipeline.reflect`` |

All methods are coroutine functions, called from the server's event loop, several at a time: what computes for longer
than a millisecond does that in a thread (``asyncio.to_thread``). A stage may have a coroutine function ``close``,
called once at the end. ``deadline`` is an instant of ``time.monotonic`` at which the caller stops waiting.

None of them can make a call fail, but for a synthesiser where ``fallback_strategy`` says so: what raises, answers with
something else than it should, or is late, is left out, and the built-in step does its work. Whoever asked is told, by
``trace.degraded`` or by a warning. None of them can show what must not be seen: memories are named by their ids, and
each is looked up in the bank, with the filters and the rights of the caller, before it leaves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Protocol

from astrocyte.model import Intent, TimeRange
from astrocyte.providers.storage import StoreFilters


class Chunker(Protocol):
    """Splits long content into the chunks that recall searches."""

    async def split(self, text: str, *, size: int, content_type: str, deadline: float) -> Sequence[tuple[int, int]]:
        """First and last-but-one place of each piece: ``text[start:end]``.

        Args:
            text: The content after the barriers, of more than 1.25 times ``size``. Shorter ones stay whole.
            size: What a piece should have at the most, in characters.
            content_type: Of the content, as its profile says.
            deadline: When the caller stops waiting (``pipeline.chunking.timeout_seconds``).

        Returns:
            At least one and at most 4,096 pairs, ``0 <= start < end <= len(text)``, each starting at or after the start
            of the one before; they may overlap, and need not cover the text. Pieces of white space are left out.
            Anything else, and an exception or no answer in time, has the content cut by sentence; the retain's
            ``warnings`` say so.
        """


@dataclass(frozen=True, slots=True)
class QueryAnalysis:
    """The findings of a query analysis.

    Attributes:
        intent: Which kind of question it is; None leaves that to the rules.
        confidence: Of the intent, from 0 to 1.
        windows: Up to 16 ranges that it asks about, which the temporal arm prefers and no filter excludes; both ends
            are part of them, have a time zone, and None is open. None leaves them to the rules, an empty list says
            that it asks about none.
    """

    intent: Intent | None = None
    confidence: float = 1.0
    windows: Sequence[TimeRange] | None = None


class QueryAnalyser(Protocol):
    """Analyses questions."""

    async def analyse(self, question: str, *, today: date, deadline: float) -> QueryAnalysis:
        """Returns the findings of a question.

        Args:
            question: After the barriers; never empty.
            today: What "yesterday" counts from: the day of the caller's reference date, or of the clock, in the time
                zone of the request or the bank.
            deadline: When the caller stops waiting (``pipeline.query_analysis.timeout_seconds``).
        """


@dataclass(frozen=True, slots=True)
class ArmQuery:
    """The request to an arm.

    Attributes:
        tenant: Whose bank.
        bank_id: Which bank; the caller may read it.
        text: The question after the barriers; may be empty.
        vector: Of the question in the bank's space, as little-endian f32; None where there is none.
        filters: What memories must meet. An arm that looks at them wastes no places on others.
        limit: How many proposals are read, best first.
    """

    tenant: str
    bank_id: str
    text: str
    vector: bytes | None
    filters: StoreFilters
    limit: int


class RetrievalArm(Protocol):
    """Proposes memories, from an index or a service of its own, whose list is fused with those of the built-in arms."""

    async def search(self, query: ArmQuery, *, deadline: float) -> Sequence[tuple[str, float]]:
        """Ids of memories with finite scores, higher is better, on any scale.

        What is no memory of the bank, does not meet the query's filters, or may not be seen is passed over, and so are
        ids that are none. ``deadline`` is ``timeout_seconds`` of the arm away; without an answer by then the others
        decide, and ``trace.degraded`` names the arm.
        """


@dataclass(frozen=True, slots=True)
class RankedList:
    """The proposals of one arm.

    Attributes:
        arm: Its name: semantic, keyword, temporal, entity, or that of an arm or a store beside these.
        weight: In the built-in fusion, after the intent of the question was looked at.
        entries: Memory id, rank from 1, and score on the arm's own scale, best first; ranks of what the filter or a
            duplicate took out are missing.
    """

    arm: str
    weight: float
    entries: Sequence[tuple[str, int, float]]


class Fusion(Protocol):
    """Merges the lists of the arms into one."""

    async def fuse(self, question: str, lists: Sequence[RankedList], *, deadline: float) -> Mapping[str, float]:
        """A finite score for each kept memory, higher is better, on any scale; ties are ordered by memory id.

        Ids that no list has are passed over, and memories without a score are left out. The scores get the mean and
        the deviation that the built-in fusion gives the same memories, so that boosts, and what is blended in after
        it, keep their measure.
        """


@dataclass(frozen=True, slots=True)
class GivenMemory:
    """A memory that may support an answer, as the caller may see it.

    ``number`` counts from 1, best first.
    """

    number: int
    memory_id: str
    text: str
    speaker: str | None = None
    occurred_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Synthesis:
    """An answer.

    Attributes:
        text: Cut at the end of a sentence where it has more tokens than were asked for; empty says that the memories
            hold no answer.
        citations: First and last-but-one place in the text, and the number of a memory that it rests on there. What
            lies outside of the text, or names no memory that was given, is dropped.
        confidence: From 0 to 1; None takes that of the memories.
    """

    text: str
    citations: Sequence[tuple[int, int, int]] = ()
    confidence: float | None = None


class Synthesiser(Protocol):
    """Answers questions from memories."""

    async def answer(
        self, question: str, memories: Sequence[GivenMemory], *, max_tokens: int, deadline: float
    ) -> Synthesis:
        """The answer to a question from at least one memory.

        Memories are data that others wrote: what asks a language model quotes them. ``deadline`` is
        ``pipeline.reflect.deadline_seconds`` from the start of the call. Where this raises, is late or returns
        something else, ``fallback_strategy`` says what happens.
        """
