"""The interface of a recall on one bank, for callers that need not know how it is answered."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from astrocyte.model import Bank, RecallQuery, RecallResult


class Recall(Protocol):
    """Answers queries on one bank: `RecallPipeline`, or `TieredRecall` over it."""

    async def run(self, bank: Bank, query: RecallQuery, most_tokens: int, at: str = "") -> RecallResult:
        """The answer to one query.

        Args:
            bank: The bank that is asked.
            query: Checked by the gate.
            most_tokens: Ceiling of the answer's tokens.
            at: Path of the query in the request, a prefix of the field of an error.

        Raises:
            DimensionMismatch: The query's vector does not live in the bank's space.
            FailedPrecondition: ``min_position`` was not reached in time.
            ProviderUnavailable: The embedder failed.
        """

    async def run_many(self, requests: Sequence[tuple[Bank, RecallQuery, int, str]]) -> list[RecallResult]:
        """The answers to many queries, each with the arguments of `run` and equal to its answer.

        Raises:
            AstrocyteError: As `run`, of the first query that cannot be answered.
        """

    def forget(self, bank: Bank) -> None:
        """Drop what is kept of a bank that was deleted."""
