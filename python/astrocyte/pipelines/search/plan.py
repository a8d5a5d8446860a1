"""The plan of a recall on one bank: the query, and the findings about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType

from astrocyte.model import Bank, MemoryHit, MemoryPath, QueryIntent, RecallQuery
from astrocyte.pipelines.index.bank_index import BankIndex
from astrocyte.pipelines.query.intent import NO_INTENT
from astrocyte.pipelines.search.candidates import Candidate
from astrocyte.pipelines.search.entity_arm import External
from astrocyte.pipelines.search.phrase_search import PhraseFinding
from astrocyte.pipelines.search.prefix_search import PrefixFinding

# Milliseconds of nothing.
NO_TIMES: Mapping[str, float] = MappingProxyType({})

NO_PATHS: Mapping[str, MemoryPath] = MappingProxyType({})

# What an external store proposes: its name, its weight, and memories with scores, best first.
ExternalList = tuple[str, float, list[tuple[bytes, float]]]

# A boost that the core adds: its name, the labels of what it lifts, how much, how far a hit that feedback kept at the
# head is above the next one, and the hits and tokens that are wanted of the candidates.
Lift = tuple[str, list[tuple[str, str]], float, float, int, int]


@dataclass(frozen=True, slots=True)
class Reading:
    """The reading of a question by a custom stage; None leaves a part to the rules. Windows are closed, in ms."""

    intent: QueryIntent | None
    windows: tuple[tuple[int, int], ...] | None


class Findings:
    """The findings about a query and the seconds at which each stage ended, before any stage ran.

    ``windows_hold`` says that the windows are not those of this bank's times, but of the query alone.
    ``pool`` is how many candidates stages after the core look at, 0 where none does; ``stages`` their milliseconds.
    ``outside`` is None until the stores and arms from outside were asked; ``degraded`` names what gave nothing.
    ``spent`` and ``proposing`` are milliseconds of steps, and of lists, that others make.
    ``fuses`` says that another fusion has a word, ``fused`` its scores by identity, ``fusion_name`` what it is called.
    """

    windows: Sequence[tuple[int, int]] = ()
    windows_hold: bool = False
    # Those of the question, without the caller's range, and the question without its dates.
    question_windows: Sequence[tuple[int, int]] = ()
    undated: str = ""
    # What the keyword arm looks for, where that is not the whole question.
    text: str | None = None
    # Whether the question asks for the time before or after a date.
    directed: bool = False
    # Impossible dates of the question, each as a sentence.
    date_warnings: tuple[str, ...] = ()
    # What relative dates count from, in the zone of their days; None until it is needed.
    reference: datetime | None = None
    intent: QueryIntent = NO_INTENT
    budget: int = 0
    # Seconds that it waited in its batch until it was analysed.
    queued: float = 0.0
    # Seconds between its analysis and the search, in which other plans of its batch were analysed.
    waited: float = 0.0
    analysed: float = 0.0
    searched: float = 0.0
    hydrated: float = 0.0
    external: Sequence[MemoryHit] = ()
    blended: float = 0.0
    pool: int = 0
    lift: Lift | None = None
    stages: Mapping[str, float] = NO_TIMES
    outside: list[ExternalList] | None = None
    degraded: str = ""
    asked: float = 0.0
    # How long names were looked up, where they were.
    naming: float | None = None
    names: Sequence[External] = ()
    # Windows of dates in other languages than English, where these are looked for.
    multilingual_windows: Sequence[tuple[int, int]] = ()
    # How many candidates a reranker wants to read, 0 where none has a word; then they are these, of these arms.
    reranked: int = 0
    candidates: list[Candidate] | None = None
    arm_names: Sequence[str] = ()
    reading: Reading | None = None
    spent: Mapping[str, float] = NO_TIMES
    proposing: Mapping[str, float] = NO_TIMES
    # By which paths the graph arm found what it proposes, by memory.
    paths: Mapping[str, MemoryPath] = NO_PATHS
    fuses: bool = False
    fused: Mapping[bytes, float] | None = None
    fusion_name: str = ""
    # Which memories hold the phrases of the query, where it requires them; they are the only ones that may be found.
    phrases: PhraseFinding | None = None
    # The words that stand for the prefixes of the query, where it expands them.
    prefixes: PrefixFinding | None = None
    # The numbers of its phrases and prefixes, for a trace, and the sentences about them.
    told: str = ""
    warnings: tuple[str, ...] = ()
    # How the core makes one list of those of the arms.
    fusion: str = ""
    # False where no part of the query can exclude a row; `Planner.request` says so.
    narrows: bool = True


@dataclass(eq=False)
class Plan(Findings):
    """A query on its way to one bank. What is not found yet it has no place for, so that making many costs little.

    ``alone`` says that nobody but the answer needs the candidates, so that the core may do a boost, ``lift``, itself.
    ``trial`` is True for a recall that only explains another, and so is no use of a memory. ``at`` is the prefix of the
    query's fields in errors.
    """

    bank: Bank
    query: RecallQuery
    index: BankIndex
    vector: bytes | None
    most_tokens: int
    start: float
    embedded: float
    alone: bool = False
    trial: bool = False
    at: str = ""

    def tell(self) -> None:
        """Note what the phrases and prefixes tell readers. Most queries have none, and every answer reads it."""
        findings = [finding for finding in (self.phrases, self.prefixes) if finding is not None]
        self.told = "".join(finding.told for finding in findings)
        self.warnings = tuple(warning for finding in findings for warning in finding.warnings)

    def missed(self, what: str) -> None:
        """Note what gave nothing; a trace says it once."""
        if what not in self.degraded.split(", "):
            self.degraded = ", ".join(filter(None, (self.degraded, what)))
