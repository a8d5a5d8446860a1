"""Budget of a language model for the entity graph."""

from __future__ import annotations

from dataclasses import dataclass

from astrocyte.providers.messages import TokenUsage


@dataclass(slots=True)
class ModelBudget:
    """Calls and tokens that may still be spent.

    Attributes:
        calls: Number of calls.
        tokens: Tokens of prompts and answers, as the model counts them; the last call may exceed them.
    """

    calls: int
    tokens: int

    @property
    def spent(self) -> bool:
        """True if no further call is allowed."""
        return self.calls <= 0 or self.tokens <= 0

    def count(self, usage: TokenUsage) -> None:
        """Subtract one call and its tokens."""
        self.calls -= 1
        self.tokens -= usage.total
