"""An answer out of memories, where another makes it."""

from __future__ import annotations

import math
from collections.abc import Sequence

from astrocyte.core import count_tokens
from astrocyte.errors import DeadlineExceeded, ProviderUnavailable
from astrocyte.model import Citation, MemoryHit
from astrocyte.pipelines.custom.bounded_call import BoundedStage, UnusableError
from astrocyte.pipelines.reflect.draft import Draft, abstention
from astrocyte.pipelines.reflect.llm_answer import Task
from astrocyte.pipelines.text import detail_levels
from astrocyte.providers.stages import GivenMemory, Synthesis, Synthesiser

STAGE = "synthesis"


class CustomSynthesis:
    """Asks a synthesiser, within bounds.

    Args:
        synthesiser: Whom.
        stage: How.
    """

    def __init__(self, synthesiser: Synthesiser, stage: BoundedStage) -> None:
        self.synthesiser = synthesiser
        self._stage = stage

    async def answer(self, task: Task) -> Draft:
        """The synthesiser's answer.

        Raises:
            ProviderUnavailable: It gave none that could be used.
            DeadlineExceeded: It gave none in time.
        """
        given = [_given(number, hit) for number, hit in enumerate(task.hits, 1)]
        outcome = await self._stage.call(
            task.query.bank_id,
            lambda deadline: self.synthesiser.answer(
                task.query.query, given, max_tokens=task.max_tokens, deadline=deadline
            ),
            _checked,
            until=task.deadline,
        )
        if outcome.value is None:
            kind = DeadlineExceeded if outcome.problem in {"timeout", "too_little_time"} else ProviderUnavailable
            raise kind(f"the synthesiser failed: {outcome.problem}", metadata={"provider": self._stage.stage})
        return _draft(task, outcome.value)


def _given(number: int, hit: MemoryHit) -> GivenMemory:
    return GivenMemory(number, hit.memory_id or "", hit.text, hit.speaker, hit.occurred_at)


def _checked(synthesis: object) -> Synthesis:
    """An answer whose parts are what they should be.

    Raises:
        UnusableError: They are not.
    """
    if not isinstance(synthesis, Synthesis):
        raise UnusableError
    # Of any types: others wrote them.
    text: object = synthesis.text
    sure: object = synthesis.confidence
    citations: object = synthesis.citations
    if not isinstance(text, str):
        raise UnusableError
    if sure is not None and not (isinstance(sure, (int, float)) and math.isfinite(sure) and 0.0 <= sure <= 1.0):
        raise UnusableError
    if not isinstance(citations, Sequence) or not all(map(_cites, citations)):
        raise UnusableError
    return synthesis


def _cites(citation: object) -> bool:
    return (
        isinstance(citation, Sequence) and len(citation) == 3 and all(type(place) is int for place in citation)  # noqa: PLR2004 - start, end, number
    )


def _draft(task: Task, synthesis: Synthesis) -> Draft:
    """An answer cut to its budget, citing memories that were given and nothing else."""
    if not synthesis.text.strip():
        return abstention(task.confidence / 2)
    text = synthesis.text
    cut = count_tokens(text) > task.max_tokens
    if cut:
        text = detail_levels.cut(text, task.max_tokens)
    cited = [
        (start, min(end, len(text)), task.hits[number - 1])
        for start, end, number in synthesis.citations
        if 1 <= number <= len(task.hits) and 0 <= start < min(end, len(text))
    ]
    sources = {hit.memory_id: hit for _, _, hit in cited}
    return Draft(
        text,
        tuple(dict.fromkeys(Citation(start, end, hit.memory_id or "") for start, end, hit in cited)),
        tuple(sources.values()),
        () if cited else ("The synthesiser named no memory that its answer rests on.",),
        task.confidence if synthesis.confidence is None else float(synthesis.confidence),
        truncated=cut,
    )
