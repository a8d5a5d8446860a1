"""Bounded boosts: additions to the score of a candidate beside its relevance.

Each is an amount (0 and up) times a weight, and never more than its bound, both in deviations of an arm's scores; so a
boost can bring a memory before others of about the same relevance, and no further.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass

from astrocyte.config.boosts import BoostSettings, BoundedBoost
from astrocyte.model import RecallQuery
from astrocyte.pipelines.index.rows import DAYS, MONTHS
from astrocyte.pipelines.query.time_windows import DAY_MS
from astrocyte.pipelines.recall.asked_kinds import QUESTION, asked_kinds, lexicon, named_things
from astrocyte.pipelines.recall.usage_statistics import Usage
from astrocyte.pipelines.search.candidates import Asked, Candidate, happened

OWN = "own"
# How much of it a candidate has.
Amount = Callable[[Candidate], float]
# What a name looks like: a capital, not at the start of a sentence, where every word has one.
NAME = re.compile(r"(?<![.!?] )(?<!^)\b[A-Z\u00c0-\u00de][\w\u2019'-]+")
# A question about its asker.
FIRST_PERSON = re.compile(r"\b(?i:i|my|me|mine|myself|we|our|ours|us)\b")
# A question about what the other side said to the asker.
TOLD = re.compile(
    r"\byou(?:'ve)? (?:\w+ )?(?:said|told|tell|say|suggest|recommend|mention|explain|give|gave|propose|advise)",
    re.IGNORECASE,
)
# A phrase of at least two letters in straight or curly marks; an apostrophe is none.
QUOTED = re.compile('"([^"]{2,200})"|\u201c([^\u201d]{2,200})\u201d|\u00ab([^\u00bb]{2,200})\u00bb')
WORD = re.compile(r"\w+")
# No text.
NEVER = re.compile(r"(?!)")
# Capitalised words that are nobody's name.
NO_NAMES = frozenset(
    {"i", "i'm", "i've", "i'd", "i'll", *(name.lower() for name in (*DAYS, *MONTHS))},
)
# Proofs that a boost counts: beyond it a number in metadata says nothing more.
MOST_PROOFS = 1_000


class BoostStage:
    """Adds the boosts that are on.

    Args:
        settings: Weights and bounds.
        usage: What was found how often, where a boost needs it.
    """

    name = "boosts"

    def __init__(self, settings: BoostSettings, usage: Usage | None) -> None:
        own = frozenset(settings.own.speakers)
        on = [
            _Rule(OWN, settings.own, lambda _: lambda candidate: _spoken(candidate, own), asks_of_own, FIRST_PERSON),
            _Rule("recency", settings.recency, lambda asked: _recency(asked, settings.recency.half_life_days)),
            _Rule("proof", settings.proof, lambda _: _proof(settings.proof.metadata_key)),
            _Rule("names", settings.names, lambda asked: _names(asked.query.query), names_of, NAME),
            _Rule("quotes", settings.quotes, lambda asked: _quotes(asked.query.query), quotes_of, QUOTED),
            # Of no more candidates where more hits are wanted, so that the first hits stay the same.
            _Rule(
                "kinds", settings.kinds, lambda asked: _kinds(asked.query.query), asked_kinds, QUESTION, settings.pool
            ),
        ]
        if usage is not None:
            on.append(_Rule("frequency", settings.frequency, lambda _: usage.doublings))
            on.append(_Rule("utility", settings.utility, lambda _: usage.utility))
        self._rules = [rule for rule in on if rule.boost.weight > 0.0 and rule.boost.bound > 0.0]
        if settings.kinds.weight > 0.0:
            # Read now, so that no recall waits for the file.
            lexicon()
        self.cue = _any_of([rule.cue for rule in self._rules])

    @property
    def any(self) -> bool:
        """True if a boost is on."""
        return bool(self._rules)

    def wanted(self, query: RecallQuery) -> bool:
        """True if one of the boosts may apply to this query."""
        # Every recall asks; a generator would cost as much as the rule.
        for rule in self._rules:  # noqa: SIM110
            if rule.wanted(query.query):
                return True
        return False

    def own(self, query: RecallQuery) -> BoundedBoost | None:
        """The boost of what the asker said, where it is the only one that can lift anything for this query."""
        wanted = [rule for rule in self._rules if rule.wanted(query.query)]
        return wanted[0].boost if len(wanted) == 1 and wanted[0].name == OWN else None

    def apply(self, asked: Asked, candidates: list[Candidate]) -> list[Candidate]:
        """All candidates, with the boosts added."""
        for rule in self._rules:
            if not rule.wanted(asked.query.query):
                continue
            amount = rule.amount(asked)
            for candidate in candidates[: rule.most]:
                lift = min(rule.boost.weight * amount(candidate), rule.boost.bound) * asked.unit
                if lift:
                    candidate.add(rule.name, lift)
        return candidates


@dataclass(frozen=True, slots=True)
class _Rule:
    """One boost: how the amounts of a query's candidates are found, and what a query must hold for it."""

    name: str
    boost: BoundedBoost
    amount: Callable[[Asked], Amount]
    cues: Callable[[str], object] | None = None
    # A pattern without which ``cues`` finds nothing; None where a query needs none.
    cue: re.Pattern[str] | None = None
    # The number of candidates that it looks at; None for all.
    most: int | None = None

    def wanted(self, query: str) -> bool:
        return self.cues is None or bool(self.cues(query))


def _any_of(cues: list[re.Pattern[str] | None]) -> re.Pattern[str] | None:
    """A pattern for texts that hold any of the cues; None, for every text, where one of them is None."""
    known = [cue.pattern for cue in cues if cue is not None]
    if len(known) < len(cues):
        return None
    return re.compile("|".join(known)) if known else NEVER


def asks_of_own(query: str) -> bool:
    """True if a question is about its asker, and not about what the asker was told."""
    return FIRST_PERSON.search(query) is not None and TOLD.search(query) is None


def _spoken(candidate: Candidate, own: frozenset[str]) -> float:
    speaker = candidate.row.speaker
    return float(speaker is not None and speaker.lower() in own)


def names_of(query: str) -> set[str]:
    """The capitalised words of a question that are not at its start, in lower case."""
    found = {match.casefold().removesuffix("'s").removesuffix("\u2019s") for match in NAME.findall(query)}
    return found - NO_NAMES


def quotes_of(query: str) -> list[str]:
    """The phrases in quotation marks, in one form."""
    return [one for match in QUOTED.finditer(query) if (one := plain(next(filter(None, match.groups()))))]


def plain(text: str) -> str:
    """A text's words alone, in one case."""
    return " ".join(WORD.findall(text.casefold()))


def _recency(asked: Asked, half_life_days: float) -> Amount:
    today = asked.today
    if today is None:
        return lambda _: 0.0
    return lambda candidate: halved((today - happened(candidate.row)) / DAY_MS, half_life_days)


def halved(days: float, half_life_days: float) -> float:
    """1 now or later, half of it after each half-life."""
    return math.exp2(-max(days, 0.0) / half_life_days)


def _proof(key: str) -> Amount:
    def amount(candidate: Candidate) -> float:
        count = candidate.row.metadata.get(key)
        if isinstance(count, bool) or not isinstance(count, (int, float)) or not count > 1:
            return 0.0
        return min(count, MOST_PROOFS) - 1.0

    return amount


def _names(query: str) -> Amount:
    wanted = names_of(query)

    def amount(candidate: Candidate) -> float:
        held = set(WORD.findall(f"{candidate.row.speaker or ''} {candidate.row.content}".casefold()))
        return float(len(wanted & held))

    return amount


def _quotes(query: str) -> Amount:
    phrases = quotes_of(query)

    def amount(candidate: Candidate) -> float:
        text = f" {plain(candidate.row.content)} "
        return float(sum(f" {phrase} " in text for phrase in phrases))

    return amount


def _kinds(query: str) -> Amount:
    kinds = asked_kinds(query)
    known = named_things(query, kinds)
    return lambda candidate: float(bool(named_things(candidate.row.chunk_text, kinds) - known))
