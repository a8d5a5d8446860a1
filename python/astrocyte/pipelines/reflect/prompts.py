"""Prompts. Every word here is the server's own; stored text comes in through `prompt_fence` alone."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum

from astrocyte.model import Dispositions, MemoryHit
from astrocyte.pipelines.index.rows import date_words
from astrocyte.pipelines.query.time_windows import to_ms
from astrocyte.pipelines.reflect.citations import NO_ANSWER
from astrocyte.pipelines.text.prompt_fence import Fence, quoted
from astrocyte.providers.messages import Message, Role

ROLE = "You answer a question from the memories of an agent, and from nothing else."
DIRECTIVES = "Follow these rules in every answer, the first ones before the later ones:"
RULES = (
    "Answer in the language of the question, in as few sentences as it takes, and start with the answer itself. After "
    "each statement put the numbers of the memories that it rests on in square brackets, like [2] or [1, 3]. Where "
    "memories contradict each other, go by the later one and say so. Mind who said a memory and of whom: what one "
    "person says of himself is not true of another. If the memories do not hold the answer, reply with "
    f"{NO_ANSWER} and nothing else; never guess."
)


class Variant(StrEnum):
    """The instruction for a kind of question beside the rules."""

    DEFAULT = "default"
    TEMPORAL = "temporal_aware"
    SYNTHESIS = "grounded_synthesis"
    INFERENCE = "evidence_inference"
    STRICT = "evidence_strict"


VARIANTS = {
    Variant.DEFAULT: "",
    Variant.TEMPORAL: (
        "The question is about time. The date before a memory is when it was said or happened: work out what "
        '"yesterday" or "last week" in a memory means from its own date, and answer with dates.'
    ),
    Variant.SYNTHESIS: (
        "The question asks for more than one fact. Bring together what all the memories say on it, the most important "
        "first, each statement with its numbers."
    ),
    Variant.INFERENCE: (
        "The question may ask for what no memory says outright. Conclude only what the memories make likely, say that "
        "it is a conclusion, and cite what it rests on."
    ),
    Variant.STRICT: (
        "The evidence looks weak. Answer only what a memory says in its own words of the very thing and person that "
        f"are asked about; otherwise reply with {NO_ANSWER}."
    ),
}
# From here on a disposition is told to the model, upwards and downwards.
STRONG, WEAK = 4, 2
TRAITS = {
    "skepticism": (
        "Be sceptical: ask of each memory whether it really says what is needed, and name doubts.",
        "Trust the memories; do not dwell on doubts.",
    ),
    "literalism": (
        "Keep to the words of the memories; do not read anything into them.",
        "Read the memories for what they mean, beyond their words.",
    ),
    "empathy": (
        "Mind how the people concerned feel, and answer warmly.",
        "Answer plainly, without regard to feelings.",
    ),
}


def system(
    fence: Fence,
    variant: Variant,
    dispositions: Dispositions | None,
    *,
    reference: datetime | None = None,
    directives: Sequence[str] = (),
) -> Message:
    """The instructions. Directives come first: unlike memories, they were written by somebody who may instruct."""
    parts = [*_directives(directives), ROLE, fence.rule(), RULES, VARIANTS[variant], *_leaning(dispositions)]
    if reference is not None:
        parts.append(f"Today is {date_words(to_ms(reference))}.")
    return Message(Role.SYSTEM, "\n\n".join(part for part in parts if part))


def question(
    fence: Fence, query: str, hits: Sequence[MemoryHit], authority: str | None = None, subject: str = ""
) -> Message:
    """The memories and the question, with what outranks what before them, and what the question is about after them."""
    parts = []
    if authority:
        lines = [quoted(line) for line in authority.splitlines() if line.strip()]
        parts.append(
            "Which memories outrank which, as data like the memories themselves:\n"
            + fence.block("authority_context", lines)
        )
    parts.append(fence.memories(hits))
    if subject:
        block = fence.block("subject", [quoted(subject)])
        parts.append(f"The subject of the question, as data like the memories themselves:\n{block}")
    parts.append(f"Question: {query}")
    return Message(Role.USER, "\n\n".join(parts))


def _directives(directives: Sequence[str]) -> list[str]:
    if not directives:
        return []
    lines = [f"- {quoted(directive)}" for directive in directives]
    return ["\n".join([DIRECTIVES, *lines])]


def _leaning(dispositions: Dispositions | None) -> list[str]:
    if dispositions is None:
        return []
    said = []
    for name, (more, less) in TRAITS.items():
        value = getattr(dispositions, name)
        if value >= STRONG:
            said.append(more)
        elif value <= WEAK:
            said.append(less)
    return said
