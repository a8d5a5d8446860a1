"""Explain: what became of certain memories in a recall, and what would have kept them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from astrocyte.model.recall import Boost, MemoryPath, RecallQuery


class ExplainStage(StrEnum):
    """Where a memory fell out of a recall; RETURNED where it did not.

    NOT_FOUND is all that is said of memories that are not there, were forgotten, or are in a bank that the caller may
    not read. FILTER: the query's conditions exclude it. NO_ARM: no arm knows it. ARM_CUT: the arms know it, behind
    those that they propose. DUPLICATE: it repeats a better hit. TOKEN_BUDGET: it did not fit. MAX_RESULTS: enough hits
    were better. RERANKING: a step after the fusion put others before it. APPROXIMATE_SEARCH: the graph of a large bank
    passed it over, and a scan would not have. INDEX: the index and the database say different things of it, and the
    database decides. POLICY: it holds what may not leave the bank. Of several banks: BANK_NOT_ASKED: the strategy had
    enough before its bank, or counts another one alone; BANK_UNAVAILABLE: its bank did not answer; BANK_FUSION: enough
    hits of other banks were better. Beside an engine: ENGINE_FUSION: enough hits that the engine brought were better.
    """

    RETURNED = "returned"
    NOT_FOUND = "not_found"
    FILTER = "filter"
    NO_ARM = "no_arm"
    ARM_CUT = "arm_cut"
    DUPLICATE = "duplicate"
    TOKEN_BUDGET = "token_budget"  # noqa: S105 - a stage
    MAX_RESULTS = "max_results"
    RERANKING = "reranking"
    APPROXIMATE_SEARCH = "approximate_search"
    INDEX = "index"
    POLICY = "policy"
    BANK_NOT_ASKED = "bank_not_asked"
    BANK_UNAVAILABLE = "bank_unavailable"
    BANK_FUSION = "bank_fusion"
    ENGINE_FUSION = "engine_fusion"


@dataclass(frozen=True, slots=True)
class ExplainQuery:
    """One explain: memories of a recall. Fields are checked by the gate, not here.

    ``position`` is the one that the trace of a finished recall names; 0 where it does not matter.
    """

    query: RecallQuery
    memory_ids: tuple[str, ...]
    position: int = 0


class ArmStanding(NamedTuple):
    """The place of a memory in an arm.

    ``rank`` counts all memories that pass the filter, from 1, and is 0 where the arm does not know it. ``cut_off`` is
    the score of the last memory that the arm proposed, None where it proposed all that it knows.
    """

    arm: str
    rank: int
    score: float | None
    proposed: bool
    cut_off: float | None


class BorrowedScore(NamedTuple):
    """A part of an arm's score that comes from a neighbour in the session.

    ``lender`` says that the neighbour is the better one of the two by its own scores: then it ranks above the memory.
    """

    arm: str
    memory_id: str
    amount: float
    lender: bool


class Counterfactual(NamedTuple):
    """The query with the least change that was found to return the memory; it was tried.

    ``fields`` names what differs, and ``summary`` says how; usually one field.
    """

    query: RecallQuery
    fields: tuple[str, ...]
    summary: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """The fate of one memory.

    ``rank`` is its place in the answer, from 1, and ``score`` its score there; ``fused_rank`` and ``fused_score`` are
    those among all candidates. ``borrowed`` names what neighbours in the session add to the scores of arms, ``boosts``
    what the fused score has for speaker, kind and date of a turn.
    ``conditions`` names the fields of the query that exclude it. ``repeats`` is the hit that it repeats, with the
    cosine in ``similarity`` where that is why. ``token_count`` is what it counts,
    ``tokens_left`` what was left of the budget at its turn. ``redacted`` says that personal data in it was replaced.
    ``bank_id`` is the bank that it is in, where several were asked; ranks and scores of arms and fusion are of there.
    ``via`` is the path by which the arm ``graph`` found it, if it did.
    """

    memory_id: str
    stage: ExplainStage
    detail: str
    rank: int = 0
    score: float | None = None
    fused_rank: int = 0
    fused_score: float | None = None
    arms: tuple[ArmStanding, ...] = ()
    conditions: tuple[str, ...] = ()
    repeats: str | None = None
    similarity: float | None = None
    token_count: int = 0
    tokens_left: int | None = None
    redacted: bool = False
    counterfactual: Counterfactual | None = None
    bank_id: str = ""
    borrowed: tuple[BorrowedScore, ...] = ()
    via: MemoryPath | None = None
    boosts: tuple[Boost, ...] = ()


@dataclass(frozen=True, slots=True)
class ItemExplanation:
    """The fate of an observation or mental model that the search of a bank's knowledge considered.

    ``arm`` is the arm that brought it, ``observation`` or ``mental_model``. ``relevance``, from 0 to 1, is that of the
    best passage. ``score`` is ``weight`` times the sum of ``relevance`` and ``proof_bonus``, which ``proof_count``
    memories give; hits of less relevance come after it. ``rank`` is its place in the answer, from 1, or 0.
    """

    item_id: str
    bank_id: str
    arm: str
    stage: ExplainStage
    detail: str
    relevance: float
    weight: float
    proof_count: int
    proof_bonus: float
    score: float
    rank: int = 0


@dataclass(frozen=True, slots=True)
class ExplainResult:
    """One explanation for each memory that was asked about, in that order.

    ``position`` is the one that was looked at, 0 of several banks; ``moved`` that it is another than was asked for.
    ``returned`` counts the hits of the answer, ``candidates`` the memories and items that any arm proposed. ``items``
    are the observations and mental models that were considered, the highest score first.
    """

    explanations: tuple[Explanation, ...]
    position: int
    moved: bool
    returned: int
    candidates: int
    warnings: tuple[str, ...] = ()
    items: tuple[ItemExplanation, ...] = ()
