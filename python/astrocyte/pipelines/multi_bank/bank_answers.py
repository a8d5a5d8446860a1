"""A call to several banks, by its banks: what each is asked, what became of it, and which of them count."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from astrocyte.core import Answer, Hit, summarise
from astrocyte.errors import AstrocyteError
from astrocyte.model import Bank, BankOutcome, BankStrategy, MemoryHit, MultiBankMode, RecallQuery
from astrocyte.pipelines.index.rows import id_to_bytes
from astrocyte.pipelines.search.candidates import Candidate
from astrocyte.pipelines.search.plan import Plan


@dataclass(frozen=True, slots=True)
class Question:
    """A query to several banks, in the order in which they are asked; the strategy is complete.

    Errors of its fields are told with ``at`` before their names. ``refuses`` says of a memory whether its bank keeps it
    out of answers, in which case another bank may show the same. ``beside`` has, by bank, memories of other banks that
    are relevant to it.
    """

    query: RecallQuery
    banks: Sequence[Bank]
    strategy: BankStrategy
    most_tokens: int
    at: str = ""
    refuses: Callable[[MemoryHit], bool] = lambda _: False
    beside: Mapping[str, Sequence[tuple[Bank, tuple[str, ...]]]] = field(default_factory=dict)

    @property
    def budget(self) -> int:
        """Tokens for all hits: the caller's wish, under the ceiling."""
        wish = self.query.max_tokens
        return self.most_tokens if wish is None else min(wish, self.most_tokens)


@dataclass(slots=True)
class Part:
    """One bank of a call, and what became of it.

    A part with a ``leader`` is of a bank that the call does not name: ``only`` are its memories that are relevant to
    the leader's bank, with which they are asked, weighed and given tokens.
    """

    bank: Bank
    weight: float
    leader: Part | None = None
    only: tuple[str, ...] = ()
    plan: Plan | None = None
    response: Answer | None = None
    outcome: BankOutcome = BankOutcome.NOT_NEEDED
    reason: str = ""
    error: AstrocyteError | None = None
    token_budget: int = 0
    # Its hits in the order of the stages after the core, and what these made of each, by row; None where none ran.
    ranked: list[Hit] | None = None
    boosted: Mapping[int, Candidate] | None = None

    @property
    def searched(self) -> Plan:
        """The plan of a bank that was searched."""
        assert self.plan is not None  # noqa: S101 - only a planned bank is searched
        return self.plan

    @property
    def answer(self) -> Answer:
        """The response of a bank that was searched."""
        assert self.response is not None  # noqa: S101 - only banks that answered count
        return self.response

    @property
    def query(self) -> RecallQuery:
        """The query as it was put to this bank."""
        return self.searched.query

    def failed(self, error: AstrocyteError, outcome: BankOutcome = BankOutcome.FAILED) -> None:
        """It will not answer."""
        self.error = error
        self.outcome = outcome
        self.reason = error.reason


def parts_of(question: Question) -> list[Part]:
    """Each bank's part of a call, before those of other banks' memories that are relevant to it."""
    weights, beside = question.strategy.bank_weights, question.beside
    leaders = [Part(bank, weights.get(bank.bank_id, 1.0)) for bank in question.banks]
    if not beside:
        return leaders
    wanted = {id_to_bytes(one) for one in question.query.memory_ids}
    parts = []
    for leader in leaders:
        parts.append(leader)
        for other, memory_ids in beside.get(leader.bank.bank_id, ()):
            only = tuple(one for one in memory_ids if not wanted or id_to_bytes(one) in wanted)
            if only:
                parts.append(Part(other, leader.weight, leader, only))
    return parts


class Summary(NamedTuple):
    """A summary of several responses.

    Attributes:
        candidates: Memories that any arm of any bank proposed.
        truncated: Whether the budget cut or dropped a hit of any.
        arms: Name, candidates and microseconds of each arm, over all banks.
        banks: Number of hits and position of each bank.
        confidences: Of the banks with a candidate.
    """

    candidates: int
    truncated: bool
    arms: list[tuple[str, int, float]]
    banks: list[tuple[int, int]]
    confidences: list[float]


def summary_of(parts: Sequence[Part]) -> Summary:
    """The summary of the responses of the banks that were searched."""
    return Summary._make(summarise([part.response for part in parts if part.response is not None]))


def groups_of(parts: Sequence[Part]) -> list[int]:
    """For each part the place of the first one that belongs together with it."""
    if not [part for part in parts if part.leader is not None]:
        return list(range(len(parts)))
    first: dict[int, int] = {}
    return [first.setdefault(id(part.leader or part), place) for place, part in enumerate(parts)]


def counted(strategy: BankStrategy, parts: Sequence[Part]) -> list[Part]:
    """The banks whose hits count: for a first match that bank alone, should there be one."""
    answered = [part for part in parts if part.response is not None]
    if strategy.mode is MultiBankMode.FIRST_MATCH:
        last = {id(part.leader or part) for part in answered[-1:]}
        group = [part for part in answered if id(part.leader or part) in last]
        return group if any(good(part, strategy) for part in group) else []
    return answered


def good(part: Part, strategy: BankStrategy) -> set[object]:
    """The bank's hits that are good enough to stop for: contents, where repeats are folded, else memories."""
    if part.response is None or part.weight <= 0.0:
        return set()
    least = strategy.min_score_to_stop
    hits = [hit for hit in part.response.hits if least is None or hit.relevance >= least]
    if strategy.dedup_across_banks:
        return {hit.content_hash for hit in hits}
    return {(part.bank.bank_id, hit.memory_id) for hit in hits}
