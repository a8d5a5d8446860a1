"""Requests to the core: the analysed question, the weights of the arms, and the request built from both."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter
from typing import Any

from astrocyte.config import RecallSettings
from astrocyte.core import RecallRequest
from astrocyte.errors import ValidationError
from astrocyte.model import DetailLevel, Intent, RecallQuery, TimeRange
from astrocyte.pipelines.index.rows import id_to_bytes, metadata_pairs
from astrocyte.pipelines.query.date_parser import HINT, without
from astrocyte.pipelines.query.intent import classify
from astrocyte.pipelines.query.layers import by_layer
from astrocyte.pipelines.query.prefixes import without_prefixes
from astrocyte.pipelines.query.reference import ReferenceClock
from astrocyte.pipelines.query.speaker_names import speaker_names
from astrocyte.pipelines.query.time_windows import DAY_MS, optional_ms, question_times, range_window
from astrocyte.pipelines.search.entity_arm import External, entity_list
from astrocyte.pipelines.search.phrase_search import PhraseSearch
from astrocyte.pipelines.search.plan import Plan
from astrocyte.pipelines.search.prefix_search import PrefixSearch
from astrocyte.stores.graph.entities import EntityStore
from astrocyte.stores.lifecycle import ARCHIVE_INSTANT
from astrocyte.stores.records import Visibility

NOW = Visibility()

# Of the core, in the order of their weights.
ARMS = ("semantic", "keyword", "temporal")

# Factor on the temporal arm's weight for "before 2025" and its like: what is on the other side is no answer, whatever
# it says, and a weight that is right for "in 2025" is outvoted by the other two arms.
DIRECTED = 3.0

# What the place of a hit that feedback kept at the head counts, in deviations. Its score says only that it stays there,
# and without this the smallest boost shuffled the head: mean reciprocal rank -.015 on three development sets.
STANDING = 0.5

# A deviation as a share of the span of a ranking: the best of a hundred are about four deviations above the last.
RELATIVE_UNIT = 0.25

# A month: what happened in a longer window is hardly nearer to an answer than what did not.
CLOSE_MS = 31 * DAY_MS


class Planner:
    """Makes requests of queries.

    Args:
        settings: Weights, depths, what is on.
        entities: Knows which memories name what.
        references: Resolves what relative dates count from.
        phrases: Finds the memories that hold the phrases of a query.
        prefixes: Finds the words of a bank that begin with the prefixes of a query.
    """

    def __init__(
        self,
        settings: RecallSettings,
        entities: EntityStore,
        references: ReferenceClock,
        phrases: PhraseSearch,
        prefixes: PrefixSearch,
    ) -> None:
        self._references = references
        self._phrases = phrases
        self._prefixes = prefixes
        self._settings = settings
        self._fusion = str(settings.fusion_method)
        self._entities = entities
        self._time_tail_ms = round(settings.time_tail_days * DAY_MS)
        turns = settings.boosts.turns
        amounts = (turns.speaker, turns.question, turns.date)
        self._turns = amounts
        self._boosts_turns = any(amounts)
        self._factors = {
            Intent(name): (factor.semantic, factor.keyword, factor.temporal)
            for name, factor in settings.intent.factors.items()
        }
        weights, rrf_weights = settings.weights, settings.rrf_weights
        # Whether the entity arm has a weight without the query's word.
        self._looks_up = bool(weights.entity or rrf_weights.entity)
        self._weights = {
            "relative_score": (weights.semantic, weights.keyword, weights.temporal),
            "dbsf": (weights.semantic, weights.keyword, weights.temporal),
            "rrf": (rrf_weights.semantic, rrf_weights.keyword, rrf_weights.temporal),
        }

    def analyse(self, plan: Plan, like: Plan | None = None) -> None:
        """Find out what the question says beyond its words, and what its answer may hold.

        Args:
            plan: Whose.
            like: An analysed plan of the same query, for another bank.
        """
        index, query = plan.index, plan.query
        if like is not None and like.windows_hold:
            plan.windows, plan.windows_hold = like.windows, True
        elif index.earliest is not None and index.latest is not None:
            plan.windows_hold = HINT.search(query.query.lower()) is None
            own = [] if query.time_range is None else [range_window(query.time_range)]
            if not plan.windows_hold:
                own += self._dates(plan, index.earliest, index.latest)
            if own:
                plan.windows = own
        if like is not None:
            plan.intent = like.intent
        elif self._factors or query.include_trace:
            plan.intent = classify(query.query)
        # A caller's budget is capped by the configured ceiling.
        wish = query.max_tokens
        plan.budget = plan.most_tokens if wish is None else min(wish, plan.most_tokens)
        plan.fusion = self._fusion if query.fusion_method is None else str(query.fusion_method)
        plan.analysed = perf_counter()
        if self._looks_up or query.weights:
            plan.names = self._named(plan)

    def _dates(self, plan: Plan, first: int, last: int) -> list[tuple[int, int]]:
        """The windows of the dates in a question, for memories from ``first`` to ``last``, all in milliseconds."""
        text = plan.query.query
        reference = plan.reference = plan.reference or self._references.of(plan.query, plan.bank.bank_id)
        windows, plan.date_warnings, reading = question_times(text, first=first, last=last, reference=reference)
        plan.question_windows, plan.directed = windows, reading.directed
        plan.undated = without(text, reading.places)
        if reading.excluded:
            # "before 2025" asks for other years than the one that it names.
            plan.text = without(text, reading.excluded).strip()
        return windows

    def follow(self, plans: Sequence[Plan], place: int) -> int:
        """The number of plans behind the analysed one at a place that took over its findings.

        These are of the same query, for other banks, of which the core is asked the same. The first one of which it
        would not be, or that is of another query, is left as it was, and so are all behind it: it has to be analysed.
        """
        like = plans[place]
        # Some of what is found out is of one bank.
        if not like.windows_hold or like.outside or like.naming is not None or _of_one_bank(like.query):
            return 0
        query, vector, most_tokens, alone = like.query, like.vector, like.most_tokens, like.alone
        windows, intent, budget, analysed = like.windows, like.intent, like.budget, like.analysed
        pool, lift, feedback = like.pool, like.lift, self._feedback(like)
        count = 0
        for plan in plans[place + 1 :]:
            if (
                plan.query is not query
                or plan.vector is not vector
                or plan.most_tokens != most_tokens
                or plan.alone is not alone
                or plan.outside
                or plan.multilingual_windows
                or plan.reading is not None
                or self._feedback(plan) != feedback
            ):
                break
            plan.windows, plan.windows_hold, plan.intent, plan.analysed = windows, True, intent, analysed
            plan.budget, plan.pool, plan.lift, plan.fusion = budget, pool, lift, like.fusion
            count += 1
        return count

    def arm_weights(self, plan: Plan) -> tuple[float, float, float]:
        """The weights of the semantic, the keyword and the temporal arm for an analysed query."""
        query = plan.query
        weights = self._weights[plan.fusion]
        if query.weights:
            given = query.weights
            return (
                given.get("semantic", weights[0]),
                given.get("keyword", weights[1]),
                given.get("temporal", weights[2]),
            )
        factors = self._factors.get(plan.intent.intent)
        if factors:
            weights = (weights[0] * factors[0], weights[1] * factors[1], weights[2] * factors[2])
        return weights if not plan.directed else (weights[0], weights[1], weights[2] * DIRECTED)

    def list_weights(self, plan: Plan) -> dict[str, float]:
        """The weight of each list of an analysed plan."""
        own = dict(zip(ARMS, self.arm_weights(plan), strict=True))
        return {**own, **{name: weight for name, weight, _ in (*(plan.outside or ()), *plan.names)}}

    def _turn_boosts(self, plan: Plan) -> tuple[Any, ...]:
        """The amounts by which turns are boosted, and what of the query decides which."""
        speaker, question, date = self._turns
        windows = [one for one in plan.question_windows if one[1] - one[0] <= CLOSE_MS]
        return (
            speaker_names(plan.query.query),
            speaker,
            question,
            date,
            windows,
            STANDING,
            unit_of(plan, self._settings.rank_constant),
        )

    def _named(self, plan: Plan) -> list[External]:
        """The list of the entity arm, where it has a weight and finds anything."""
        query = plan.query
        weight = self._entity_weight(query)
        if not weight or not query.query:
            return []
        start = perf_counter()
        found = entity_list(
            self._entities,
            plan.bank,
            query.query,
            as_of=known_at(query),
            rows=plan.index.row_count,
            weight=weight,
        )
        plan.naming = perf_counter() - start
        return found

    def _entity_weight(self, query: RecallQuery) -> float:
        settings = self._settings
        fusion = self._fusion if query.fusion_method is None else query.fusion_method
        weights = settings.rrf_weights if fusion == "rrf" else settings.weights
        return query.weights.get("entity", weights.entity)

    def alike(self, plan: Plan, other: Plan) -> bool:
        """True if two analysed plans of one query make the same request to the core."""
        return (
            plan.windows == other.windows
            and plan.vector == other.vector
            and plan.budget == other.budget
            # What these hold is of one bank.
            and not (plan.outside or other.outside or plan.names or other.names or _of_one_bank(plan.query))
            and plan.lift == other.lift
            and self._feedback(plan) == self._feedback(other)
        )

    def _feedback(self, plan: Plan) -> float:
        # The first hits of long memories are about everything.
        return self._settings.feedback if plan.index.pieces <= self._settings.feedback_pieces else 0.0

    def depth(self, query: RecallQuery) -> int:
        """Candidates of each arm."""
        return max(self._settings.depth, self._settings.overfetch * query.max_results)

    def proposals(self, plan: Plan) -> int:
        """So many memories at the most are in the lists of an analysed plan."""
        own = len(ARMS) * self.depth(plan.query)
        return own + sum(len(hits) for _, _, hits in (*(plan.outside or ()), *plan.names))

    def request(self, plan: Plan) -> RecallRequest:
        """The request to the core for an analysed query.

        Raises:
            ValidationError: A phrase of the query cannot be searched.
        """
        query, settings = plan.query, self._settings
        threshold = query.dedup_threshold if query.dedup_threshold is not None else settings.dedup_threshold
        further = {**_filter(query), **_times(query)}
        if query.require_phrases:
            try:
                plan.phrases = self._phrases.find(plan.bank, plan.index, query, visibility(query), further)
            except ValidationError as error:
                raise ValidationError(error.description, field=f"{plan.at}query") from error
            further["memory_ids"] = plan.phrases.memory_ids
        plan.narrows = bool(further)
        text = query.query if plan.text is None else plan.text
        if query.expand_prefixes:
            plan.prefixes = self._prefixes.find(plan.bank, plan.index, query)
            text = without_prefixes(query, text)
            further["unions"] = plan.prefixes.unions
        if query.require_phrases or query.expand_prefixes:
            plan.tell()
        if query.layer_weights:
            further["layer_weights"] = list(by_layer(query.layer_weights).items())
        if query.detail_level is DetailLevel.FULL:
            further["budget_whole"] = True
        if plan.outside or plan.names:
            further["external"] = [*(plan.outside or ()), *plan.names]
        if plan.lift is not None:
            further["lift"] = plan.lift
        if self._boosts_turns and not plan.fuses:
            further["turns"] = self._turn_boosts(plan)
        return RecallRequest(
            text=text or None,
            vector=plan.vector,
            k=plan.pool or query.max_results,
            depth=max(self.depth(query), 0 if plan.fuses else plan.pool),
            time_windows=plan.windows,
            time_tail_ms=self._time_tail_ms,
            fusion=plan.fusion,
            rank_constant=query.rank_constant or settings.rank_constant,
            weights=self.arm_weights(plan),
            feedback=self._feedback(plan),
            context_windows=settings.context_windows,
            dedup_threshold=threshold,
            # Titles are short and are counted when they are made; what may still change its place, when it has one.
            budget=None if query.detail_level is DetailLevel.TITLES or plan.pool else plan.budget,
            **further,
        )


def unit_of(plan: Plan, rank_constant: float) -> float:
    """The score of one deviation, or of a first place of rrf, for an analysed plan.

    Args:
        plan: The plan.
        rank_constant: The constant of rrf, unless the query has its own.
    """
    if plan.fusion == "dbsf":
        return 1.0
    if plan.fusion == "relative_score":
        return RELATIVE_UNIT
    return 1.0 / ((plan.query.rank_constant or rank_constant) + 1.0)


def _of_one_bank(query: RecallQuery) -> bool:
    """True if the core is asked another thing in each bank."""
    return query.require_phrases or query.expand_prefixes


def _filter(query: RecallQuery) -> dict[str, Any]:
    """The filter of a query but its times. Each argument costs the core a look through all names."""
    further: dict[str, Any] = {}
    if query.tags:
        further["tags"], further["tag_match"] = query.tags, query.tag_match
    if query.fact_types:
        further["fact_types"] = query.fact_types
    if query.metadata:
        further["metadata"] = metadata_pairs(query.metadata)
    if query.session_id is not None:
        further["session"] = query.session_id
    if query.memory_ids:
        known = [identity for one in query.memory_ids if (identity := id_to_bytes(one)) is not None]
        further["memory_ids"] = known
    return further


def _times(query: RecallQuery) -> dict[str, Any]:
    """The times of a query's filter."""
    further: dict[str, Any] = {}
    if query.time_range is not None:
        further["occurred"] = _range(query.time_range)
    if query.retained_range is not None:
        further["retained"] = _range(query.retained_range)
    if query.as_of is not None or query.include_archived:
        further["as_of"] = known_at(query)
    if query.valid_at is not None:
        further["valid_at"] = optional_ms(query.valid_at)
    return further


def visibility(query: RecallQuery) -> Visibility:
    """When the query looks."""
    if query.as_of is None and query.valid_at is None and not query.include_archived:
        return NOW
    return Visibility(known_at(query), optional_ms(query.valid_at))


def known_at(query: RecallQuery) -> int | None:
    """The instant as of which the query looks, in milliseconds since the epoch; None is now."""
    return ARCHIVE_INSTANT if query.include_archived else optional_ms(query.as_of)


def _range(value: TimeRange) -> tuple[int | None, int | None]:
    return optional_ms(value.start), optional_ms(value.end)
