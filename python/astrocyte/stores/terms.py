"""The protocol of the store of canonical terms."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

from astrocyte.model import Term, TermDecision, TermStatus
from astrocyte.stores.records import RequestKey

# Of the memories for which a term was proposed, so many are kept: provenance for a reviewer, not a list of all.
MOST_MEMORY_IDS = 16


@dataclass(frozen=True, slots=True)
class NewTerm:
    """A proposal. ``name_key`` is the name without regard to case and punctuation."""

    name: str
    name_key: str
    aliases: tuple[str, ...]
    definition: str
    memory_id: str | None


class TermStore(Protocol):
    """Terms by tenant. Reads and writes are as those of `astrocyte.stores.protocols.MemoryStore`."""

    def epoch(self, tenant: str) -> int:
        """The number of the tenant's last change of its approved terms."""

    def approved(self, tenant: str) -> list[Term]:
        """All approved terms, with the names of terms that were merged into them as aliases, oldest first."""

    def get(self, tenant: str, term_id: str) -> Term | None:
        """A term, or None."""

    def listed(
        self, tenant: str, *, statuses: Collection[TermStatus], after: int, limit: int
    ) -> list[tuple[int, Term]]:
        """Terms of some statuses with their keys, oldest first."""

    def count_proposed(self) -> int:
        """The number of terms of all tenants that wait for a review."""

    async def propose(self, tenant: str, new: NewTerm, *, by: str, request: RequestKey | None = None) -> Term:
        """Insert a proposal; where the tenant has a term of that name, count the proposal there and return it."""

    async def review(  # noqa: PLR0913 - the parts of a decision
        self,
        tenant: str,
        term_id: str,
        decision: TermDecision,
        merge_into: str | None,
        *,
        by: str,
        check: Callable[[Sequence[Term]], None],
        request: RequestKey | None = None,
    ) -> Term:
        """Decide on a proposal.

        Args:
            tenant: Whose terms.
            term_id: The term.
            decision: The decision.
            merge_into: The approved term that it becomes an alias of.
            by: The principal that decides.
            check: Called with the approved terms before a term joins them; raises where there are too many.
            request: The request's id.

        Raises:
            NotFound: There is no such term.
            FailedPrecondition: It was reviewed already, or ``merge_into`` is no approved term.
        """
