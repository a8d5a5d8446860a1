"""Refreshing a mental model from memory: each section is answered anew, and every sentence cites its memories."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from astrocyte.model import (
    Citation,
    Dispositions,
    ModelBlock,
    ModelSection,
    RecallQuery,
    RecallResult,
    ReflectQuery,
    ReflectResult,
)
from astrocyte.pipelines.knowledge.documents import OVERVIEW
from astrocyte.pipelines.reflect.pipeline import ReflectPipeline
from astrocyte.pipelines.reflect.work import Allowance

# Of a section: some six sentences.
SECTION_TOKENS = 256
# A section tells what there is, so no answer is held back because the memories hold little; but only what is close to
# the heading.
DISPOSITIONS = Dispositions(skepticism=1, literalism=4)


class ModelRefresher:
    """Rewrites the sections of mental models.

    Args:
        reflect: Answers by the language model, or by sentences of the memories where there is none.
    """

    def __init__(self, reflect: ReflectPipeline) -> None:
        self._reflect = reflect

    async def refreshed(
        self,
        name: str,
        sections: Sequence[ModelSection],
        bank_id: str,
        most_tokens: int,
        recall: Callable[[RecallQuery], Awaitable[RecallResult]],
    ) -> tuple[ModelSection, ...]:
        """The sections with blocks of what memory says.

        Blocks without sources are kept as they are. Blocks that are equal to a former one are that one.

        Args:
            name: Name of the model.
            sections: Its sections.
            bank_id: Its bank.
            most_tokens: Ceiling of an answer.
            recall: Finds the memories of the scope.

        Raises:
            ProviderUnavailable, DeadlineExceeded: As `ReflectPipeline.run`.
        """
        made = []
        for section in sections:
            question = name if section.heading == OVERVIEW else f"{name}: {section.heading}"
            query = ReflectQuery(question, bank_id, max_tokens=SECTION_TOKENS, dispositions=DISPOSITIONS)
            answer = await self._reflect.run(query, Allowance(most_tokens, recall, subject=question))
            kept = [block for block in section.blocks if not block.source_ids]
            former = {(block.text, frozenset(block.source_ids)): block for block in section.blocks}
            new = [former.get((block.text, frozenset(block.source_ids)), block) for block in cited_blocks(answer)]
            made.append(replace(section, blocks=(*kept, *new)))
        return tuple(made)


def cited_blocks(answer: ReflectResult) -> list[ModelBlock]:
    """A paragraph for each part of an answer that cites memories; other parts are left out."""
    return [] if answer.abstained else cited_parts(answer.answer, answer.citations)


def cited_parts(text: str, citations: Sequence[Citation]) -> list[ModelBlock]:
    """A paragraph for each part of a text that cites memories; other parts are left out."""
    parts: dict[tuple[int, int], list[str]] = {}
    for citation in citations:
        parts.setdefault((citation.start, citation.end), []).append(citation.memory_id)
    return [
        ModelBlock(text=part, source_ids=tuple(dict.fromkeys(memory_ids)))
        for (start, end), memory_ids in sorted(parts.items())
        if (part := text[start:end].strip())
    ]
