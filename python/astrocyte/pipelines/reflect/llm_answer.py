"""An answer by a language model in one call."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from dataclasses import dataclass

from astrocyte.core import count_tokens, split_sentences
from astrocyte.errors import ProviderUnavailable
from astrocyte.model import Citation, Dispositions, MemoryHit, ReflectQuery
from astrocyte.pipelines.reflect.citations import CitedText
from astrocyte.pipelines.reflect.draft import Draft, abstention
from astrocyte.pipelines.reflect.prompts import Variant, question, system
from astrocyte.pipelines.text import detail_levels
from astrocyte.pipelines.text.prompt_fence import Fence
from astrocyte.providers.messages import Completion, FinishReason, Message, Prompt
from astrocyte.providers.protocols import LanguageModel


@dataclass(frozen=True, slots=True)
class Task:
    """The task of a language model.

    Attributes:
        query: The question and how to answer it.
        hits: The memories, best first.
        variant: What this kind of question needs.
        max_tokens: Of the answer.
        temperature: Of the model.
        deadline: Instant of `time.monotonic` at which the answer is given up.
        confidence: Of the evidence, from 0 to 1.
        authority: Which memories outrank which.
        directives: The rules that the answer must follow; there may be more after a search.
        subject: A stored name that the question is about; "" for a question that names its own.
    """

    query: ReflectQuery
    hits: tuple[MemoryHit, ...]
    variant: Variant
    max_tokens: int
    temperature: float
    deadline: float
    confidence: float
    authority: str | None = None
    directives: Callable[[], tuple[str, ...]] = tuple
    subject: str = ""

    @property
    def dispositions(self) -> Dispositions | None:
        """The dispositions of the answer."""
        return self.query.dispositions


def prompt_of(task: Task) -> tuple[Message, ...]:
    """Instructions, memories behind a new fence, question."""
    fence = Fence()
    return (
        system(
            fence,
            task.variant,
            task.dispositions,
            reference=task.query.query_reference_date,
            directives=task.directives(),
        ),
        question(fence, task.query.query, task.hits, task.authority, task.subject),
    )


async def answer(model: LanguageModel, task: Task) -> Draft:
    """The model's answer with its citations.

    Raises:
        ProviderUnavailable: The model failed.
        DeadlineExceeded: It did not answer in time.
    """
    prompt = Prompt(prompt_of(task), max_tokens=task.max_tokens, temperature=task.temperature)
    completion = await model.complete(prompt, deadline=task.deadline)
    cited = CitedText()
    cited.take(completion.text)
    cited.end()
    return finish(task, cited, completion, task.hits)


async def stream(model: LanguageModel, task: Task) -> AsyncIterator[str | Draft]:
    """Pieces of the answer without its markers, then the draft; a text beyond the budget is cut.

    Raises:
        ProviderUnavailable: The model failed, perhaps after some pieces.
        DeadlineExceeded: It did not end in time.
    """
    prompt = Prompt(prompt_of(task), max_tokens=task.max_tokens, temperature=task.temperature)
    cited = CitedText()
    sent = ""
    full = False
    async with aclosing(model.stream(prompt, deadline=task.deadline)) as pieces:  # type: ignore[type-var]
        async for piece in pieces:
            shown = cited.end() if isinstance(piece, Completion) else cited.take(piece)
            # What was shown cannot be taken back, so nothing is shown from the piece on that goes beyond the budget.
            full = full or count_tokens(sent + shown) > task.max_tokens
            if shown and not full and not cited.nothing:
                sent += shown
                yield shown
            if isinstance(piece, Completion):
                if full:
                    cited.text = sent
                yield finish(task, cited, piece, task.hits, truncated=full)


def finish(
    task: Task,
    cited: CitedText,
    completion: Completion,
    hits: tuple[MemoryHit, ...],
    *,
    tokens_used: int | None = None,
    truncated: bool = False,
) -> Draft:
    """The draft of a completed answer.

    Raises:
        ProviderUnavailable: The model refused, or said nothing.
    """
    used = completion.usage.total if tokens_used is None else tokens_used
    text = cited.text.rstrip()
    if completion.finish_reason is FinishReason.REFUSED:
        raise ProviderUnavailable("the language model refused to answer")
    if cited.nothing:
        # An answer together with "there is none" is none that one could rely on.
        return abstention(task.confidence / 2, tokens_used=used)
    if not text:
        raise ProviderUnavailable("the language model gave no answer")
    citations = cited.citations(hits)
    cut = count_tokens(text) > task.max_tokens
    if cut:
        text = detail_levels.cut(text, task.max_tokens)
        citations = tuple(
            Citation(c.start, min(c.end, len(text)), c.memory_id) for c in citations if c.start < len(text)
        )
    named = {citation.memory_id for citation in citations}
    # By number, since two versions of one memory have one id.
    marked = dict.fromkeys(number for _, numbers in cited.marks for number in numbers if 1 <= number <= len(hits))
    observations = () if citations else ("The language model named no memory that its answer rests on.",)
    return Draft(
        text,
        citations,
        tuple(hits[number - 1] for number in marked if (hits[number - 1].memory_id or "") in named),
        observations,
        _confidence(text, citations, task.confidence),
        truncated=truncated or cut or completion.finish_reason is FinishReason.LENGTH,
        tokens_used=used,
    )


def _confidence(text: str, citations: tuple[Citation, ...], evidence: float) -> float:
    """With a memory for every sentence, half way from that of the evidence to 1; with none, 0."""
    places, at = [], 0
    for piece in split_sentences(text, every_stop=True):
        places.append((at, at + len(piece)))
        at += len(piece)
    backed = [any(c.start < end and start < c.end for c in citations) for start, end in places]
    return sum(backed) / max(1, len(backed)) * (1 + evidence) / 2
