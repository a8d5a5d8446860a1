"""Explain, computed another way: from the arms' raw scores on, every step of a recall in plain Python.

`Oracle.stages` gives the stage of every memory, and `Oracle.hits` the answer that follows; the tests hold that answer
to the real one, so that an oracle that is wrong is seen.
"""

import math
import random
import struct
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from astrocyte.api.requests import BatchRetain, Forget, UpdateMemory
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.core import Answer, RecallRequest
from astrocyte.model import (
    Bank,
    Caller,
    ExplainStage,
    ForgetSelector,
    FusionMethod,
    Memory,
    MemoryUpdate,
    RecallQuery,
    RetainItem,
    TagMatch,
    TimeRange,
)
from astrocyte.pipelines.index.rows import bytes_to_id, id_to_bytes
from astrocyte.pipelines.search.core_request import Planner
from astrocyte.pipelines.search.plan import Plan

ME = Caller()
BANK = "oracle"
WORDS = (
    "tea",
    "coffee",
    "river",
    "mountain",
    "dog",
    "cat",
    "train",
    "book",
    "paper",
    "cloud",
    "stone",
    "garden",
    "window",
    "bread",
    "salt",
    "letter",
    "music",
    "winter",
    "boat",
    "kitchen",
    "doctor",
    "school",
    "market",
    "bridge",
)
TAGS = ("red", "blue", "green")
START = datetime(2024, 1, 1, tzinfo=UTC)
MOST_TOKENS = 100_000
# The temporal arm counts no more deviations than this.
TEMPORAL_CAP = 4.0
FIRST_HITS = 3
# Candidates that are boosted for the times of the query, and the distance of scores that were set for the order alone.
BOOSTED = 20
TIED = 1e-9
# Candidates of an arm: few, so that queries of many hits want more.
DEPTH = 20
OVERFETCH = 3
SETTINGS = {
    "vector_store": "in_memory",
    # Lists from outside have no part in this: of what they do not name they know no score.
    "recall": {"depth": DEPTH, "overfetch": OVERFETCH, "weights": {"entity": 0.0}, "rrf_weights": {"entity": 0.0}},
    "homeostasis": {"recall_max_tokens": MOST_TOKENS},
    "signal_quality": {"dedup": {"similarity_threshold": 1.0}},
}


@dataclass
class World:
    """A bank with all that can happen to memories, and the ids that were ever in it."""

    app: App
    bank: Bank
    ids: list[str]

    def memory(self, memory_id: str) -> list[Memory]:
        return self.app.storage.store.versions(self.bank, memory_id)


async def make_world(
    seed: int, memories: int = 140, *, app: App | None = None, bank_id: str = BANK, repeated: Sequence[str] = ()
) -> World:
    """A bank of the application, or of a new one; ``repeated`` are contents that another bank holds too."""
    chance = random.Random(seed)
    app = app or App(Settings.from_mapping(SETTINGS))
    items = [
        RetainItem(
            f"{' '.join(chance.sample(WORDS, chance.randint(3, 12)))} {number}.",
            tags=tuple(tag for tag in TAGS if chance.random() < 0.4),
            fact_type=chance.choice(("world", "experience")),
            metadata={"n": chance.randint(0, 2)} if chance.random() < 0.7 else {},
            session_id=chance.choice((None, "one", "two")),
            occurred_at=START + timedelta(days=chance.randint(0, 400)) if chance.random() < 0.7 else None,
            valid_from=START + timedelta(days=chance.randint(0, 200)) if chance.random() < 0.3 else None,
            valid_until=START + timedelta(days=chance.randint(201, 400)) if chance.random() < 0.3 else None,
        )
        for number in range(memories)
    ]
    items += [RetainItem(content) for content in repeated]
    ids = [result.memory_id or "" for result in await app.gate.call(ME, BatchRetain(bank_id, items))]
    for memory_id in chance.sample(ids, 8):
        content = f"{' '.join(chance.sample(WORDS, 5))} changed {memory_id[-4:]}."
        await app.gate.call(ME, UpdateMemory(bank_id, MemoryUpdate(memory_id, frozenset({"content"}), content=content)))
    await app.gate.call(ME, Forget(bank_id, ForgetSelector(tuple(chance.sample(ids, 6)))))
    bank = app.storage.store.get_bank("default", bank_id)
    assert bank is not None
    return World(app, bank, ids)


def random_query(chance: random.Random) -> RecallQuery:
    def day(first: int, last: int) -> datetime:
        return START + timedelta(days=chance.randint(first, last))

    text = " ".join(chance.sample(WORDS, chance.randint(1, 5)))
    tags = tuple(chance.sample(TAGS, chance.randint(1, 2)))
    # How often a field is set, and to what.
    parts: list[tuple[float, dict[str, Any]]] = [
        (0.2, {"query": f"{text} in March 2024"}),
        (0.35, {"tags": tags, "tag_match": chance.choice(list(TagMatch))}),
        (0.1, {"fact_types": ("world",)}),
        (0.1, {"metadata": {"n": 1}}),
        (0.1, {"session_id": "one"}),
        (0.15, {"time_range": TimeRange(day(0, 100), chance.choice((day(150, 400), None)))}),
        (0.1, {"valid_at": day(0, 400)}),
        (0.05, {"as_of": START}),
        (0.4, {"max_tokens": chance.randint(5, 90)}),
        (0.4, {"dedup_threshold": round(chance.uniform(0.5, 0.95), 3)}),
        (0.3, {"fusion_method": chance.choice(list(FusionMethod))}),
        (0.15, {"weights": {"semantic": 0.0}}),
    ]
    asked = RecallQuery(text, BANK, max_results=chance.randint(1, 9))
    for share, fields in parts:
        if chance.random() < share:
            asked = replace(asked, **fields)
    return asked


class Oracle:
    """The recall of one query, step by step.

    Args:
        world: The bank.
        plan: The query, with its vector.
        query: The query.
    """

    def __init__(self, world: World, plan: Plan, query: RecallQuery) -> None:
        self._world = world
        self._query = query
        self._plan = copy(plan)
        self._plan.query = query
        recall: Any = world.app.gate._pipelines.recall
        self._planner = recall._planner
        self._planner.analyse(self._plan)
        self._known = {one: versions for one in world.ids if (versions := world.memory(one))}
        self._allowed = {one for one, versions in self._known.items() if meets(query, versions)}
        self.stages: dict[str, ExplainStage] = {}
        self.hits: list[str] = []
        self._run()

    def _run(self) -> None:
        for one in self._world.ids:
            known = one in self._known
            self.stages[one] = ExplainStage.FILTER if known else ExplainStage.NOT_FOUND
        request = self._planner.request(self._plan)
        scores, response = self._ranked(request, first=True)
        ranked = list(scores)
        if response.trace.feedback_terms:
            settings = self._world.app.settings.recall.model_copy(update={"feedback": 0.0})
            own = self._planner
            without = Planner(settings, own._entities, own._references, own._phrases, own._prefixes)
            looked, _ = self._ranked(without.request(self._plan), first=False)
            head = list(looked)[:FIRST_HITS]
            ranked = [*(one for one in head if one in ranked), *(one for one in ranked if one not in head)]
            for place in reversed(range(min(len(head), len(ranked) - 1))):
                above = math.nextafter(scores[ranked[place + 1]], math.inf)
                scores[ranked[place]] = max(scores[ranked[place]], above)
        self._walk(self._with_dates(ranked, scores, kept=bool(response.trace.feedback_terms)))

    def _with_dates(self, ranked: list[str], scores: dict[str, float], *, kept: bool) -> list[str]:
        """The list with the boost of what happened at a time of the query; no turn here has a speaker."""
        *_, date, windows, standing, unit = self._planner._turn_boosts(self._plan)
        lifted = [one for one in ranked[:BOOSTED] if any(low <= self._happened(one) <= high for low, high in windows)]
        if not lifted:
            return ranked
        boosted = dict(scores)
        for place in reversed(range(min(FIRST_HITS, len(ranked) - 1)) if kept else ()):
            own, below = ranked[place], ranked[place + 1]
            tied = scores[own] - scores[below] <= TIED * max(abs(scores[own]), 1.0)
            if tied or scores[own] < boosted[below]:
                boosted[own] = boosted[below] + standing * unit
        for one in lifted:
            boosted[one] += date * unit
        return sorted(ranked, key=lambda one: (-boosted[one], one))

    def _happened(self, memory_id: str) -> float:
        """Milliseconds since the epoch; not a number where the memory has no time."""
        occurred = self._known[memory_id][-1].occurred_at
        return math.nan if occurred is None else occurred.timestamp() * 1_000

    def _ranked(self, request: RecallRequest, *, first: bool) -> tuple[dict[str, float], Answer]:
        """The fused scores, best first; at the first, memories that pass and have none get their stage."""
        ids = sorted(self._allowed)
        core = self._plan.index.core.explain(request, [id_to_bytes(one) or b"" for one in ids])
        response = core.response
        names, spreads = response.arm_names, response.trace.arm_spreads
        scores = [
            {one: fate.arms[arm][1] for one, fate in zip(ids, core.fates, strict=True)} for arm in range(len(names))
        ]
        depth = max(DEPTH, OVERFETCH * self._query.max_results)
        proposals: list[list[str]] = []
        knows: set[str] = set()
        for name, own, (mean, _) in zip(names, scores, spreads, strict=True):
            single = struct.unpack("f", struct.pack("f", mean))[0]
            floor = {"semantic": float("-inf"), "keyword": 0.0, "temporal": single}[name]
            known = {one: score for one, score in own.items() if score is not None}
            knows.update(one for one, score in known.items() if name == "semantic" or score > 0.0)
            above = [one for one, score in known.items() if score > floor]
            proposals.append(sorted(above, key=lambda one, known=known: (-known[one], one))[:depth])  # type: ignore[misc]
        candidates = set().union(*proposals)
        for one in self._allowed - candidates if first else ():
            self.stages[one] = ExplainStage.ARM_CUT if one in knows else ExplainStage.NO_ARM
        weights = dict(zip(("semantic", "keyword", "temporal"), self._planner.arm_weights(self._plan), strict=True))
        fused = dict.fromkeys(sorted(candidates), 0.0)
        shares = {one: fate.shares for one, fate in zip(ids, core.fates, strict=True)}
        for name, own, spread, proposed in zip(names, scores, spreads, proposals, strict=True):
            if self._plan.fusion == "relative_score":
                for one in proposed:
                    fused[one] += weights[name] * share_of([own[other] for other in proposed], own[one])
                continue
            if self._plan.fusion == "rrf":
                for rank, one in enumerate(proposed, 1):
                    fused[one] += weights[name] / (60.0 + rank)
                continue
            for one in fused:
                score = own[one]
                if score is not None and spread[1] != 0.0:
                    standard = (score - spread[0]) / spread[1]
                    fused[one] += weights[name] * (min(standard, TEMPORAL_CAP) if name == "temporal" else standard)
        settled = with_lenders_first(fused, shares)
        return {one: settled[one] for one in sorted(settled, key=lambda one: (-settled[one], one))}, response

    def _walk(self, ranked: Sequence[str]) -> None:
        left = MOST_TOKENS if self._query.max_tokens is None else self._query.max_tokens
        vectors: list[tuple[float, ...]] = []
        for one in ranked:
            if len(self.hits) == self._query.max_results:
                self.stages[one] = ExplainStage.MAX_RESULTS
                continue
            own = self._vector(one)
            threshold = self._query.dedup_threshold
            if threshold is not None and any(dot(own, other) >= threshold for other in vectors):
                self.stages[one] = ExplainStage.DUPLICATE
                continue
            tokens = self._known[one][-1].token_count
            if tokens > left and self.hits:
                self.stages[one] = ExplainStage.TOKEN_BUDGET
                continue
            left = max(left - tokens, 0)
            vectors.append(own)
            self.hits.append(one)
            self.stages[one] = ExplainStage.RETURNED

    def _vector(self, memory_id: str) -> tuple[float, ...]:
        version = self._world.app.storage.store.version(self._world.bank, memory_id)
        assert version is not None
        assert version.memory.vector is not None
        values = struct.unpack(f"<{len(version.memory.vector) // 4}f", version.memory.vector)
        length = sum(value * value for value in values) ** 0.5
        return tuple(value / length for value in values)


def share_of(scores: Sequence[float | None], score: float | None) -> float:
    """A score between the least and the most of a ranking."""
    known = [one for one in scores if one is not None]
    least, most = min(known), max(known)
    return ((score or 0.0) - least) / (most - least) if most > least else 1.0


def with_lenders_first(
    fused: dict[str, float], shares: dict[str, list[tuple[int, bytes, float, bool]]]
) -> dict[str, float]:
    """Fused scores with which no memory stands above a neighbour that lends it a part of its score."""
    lenders = {
        one: {bytes_to_id(neighbour) for _, neighbour, _, lender in parts if lender} for one, parts in shares.items()
    }
    members = list(fused)
    for one in members:
        members += sorted(lenders[one].difference(members))
    order = borrowers_first(members, lenders)
    raised = {one: fused.get(one, -math.inf) for one in members}
    for borrower in order:
        for lender in lenders[borrower]:
            raised[lender] = max(raised[lender], math.nextafter(raised[borrower], math.inf))
    lowered = {one: fused.get(one, raised[one]) for one in members}
    for borrower in reversed(order):
        for lender in lenders[borrower]:
            lowered[borrower] = min(lowered[borrower], math.nextafter(lowered[lender], -math.inf))
    means = {one: (raised[one] + lowered[one]) / 2 for one in members}
    for borrower in order:
        for lender in lenders[borrower]:
            means[lender] = max(means[lender], math.nextafter(means[borrower], math.inf))
    return means


def borrowers_first(members: Sequence[str], lenders: dict[str, set[str]]) -> list[str]:
    """The members in an order in which each comes before its lenders."""
    order: list[str] = []

    def visit(one: str) -> None:
        if one not in order:
            for borrower in members:
                if one in lenders[borrower]:
                    visit(borrower)
            order.append(one)

    for one in members:
        visit(one)
    return order


def dot(left: Sequence[float], right: Sequence[float]) -> float:
    return sum(a * b for a, b in zip(left, right, strict=True))


def meets(query: RecallQuery, versions: Sequence[Memory]) -> bool:
    """True if the filter lets a memory pass; every query of these tests looks at now, or at before everything."""
    memory = versions[-1]
    held = set(query.tags) & set(memory.tags)
    tags = {
        TagMatch.ANY: bool(held),
        TagMatch.ALL: held == set(query.tags),
        TagMatch.NONE: not held,
    }[query.tag_match]
    happened = memory.occurred_at or memory.retained_at
    ranges = query.time_range or TimeRange()
    return (
        query.as_of is None
        and (tags or not query.tags)
        and (not query.fact_types or memory.fact_type in query.fact_types)
        and all(memory.metadata.get(key) == value for key, value in query.metadata.items())
        and query.session_id in {None, memory.session_id}
        and (not query.memory_ids or memory.memory_id in query.memory_ids)
        and (ranges.start is None or ranges.start <= happened)
        and (ranges.end is None or happened <= ranges.end)
        and (query.valid_at is None or memory.valid_from is None or memory.valid_from <= query.valid_at)
        and (query.valid_at is None or memory.valid_until is None or query.valid_at <= memory.valid_until)
    )
