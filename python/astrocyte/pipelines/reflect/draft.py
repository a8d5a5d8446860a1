"""An answer in the making: its text, and which memories each part of it rests on."""

from __future__ import annotations

from dataclasses import dataclass

from astrocyte.model import Citation, MemoryHit

# What is said where memory does not hold the answer.
ABSTENTION = "Memory does not hold an answer to this."


@dataclass(frozen=True, slots=True)
class Draft:
    """The draft of a synthesiser.

    Attributes:
        text: The answer, without markers.
        citations: In the order of the text.
        sources: The memories cited, in the order of their first citation.
        observations: Remarks for the reader.
        confidence: From 0 to 1.
        truncated: Whether the token budget cut it.
        abstained: Whether it says that memory does not hold the answer.
        tokens_used: Of the language model.
    """

    text: str
    citations: tuple[Citation, ...] = ()
    sources: tuple[MemoryHit, ...] = ()
    observations: tuple[str, ...] = ()
    confidence: float = 0.0
    truncated: bool = False
    abstained: bool = False
    tokens_used: int = 0


def abstention(confidence: float, observations: tuple[str, ...] = (), tokens_used: int = 0) -> Draft:
    """The draft that says that there is no answer."""
    return Draft(ABSTENTION, confidence=confidence, observations=observations, abstained=True, tokens_used=tokens_used)
