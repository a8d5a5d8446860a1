"""Routing between a pipeline and an engine: factors on their weights, by rules over the query's form.

A signal counts for the engine where it says that it is good at such questions, and for the pipeline where it does not:
the pipeline has an arm of its own for dates, and short look-ups are what words and vectors find.
"""

from __future__ import annotations

import re
from datetime import date
from typing import NamedTuple

from astrocyte.model import Intent
from astrocyte.pipelines.query.calendar import Calendar
from astrocyte.pipelines.query.date_parser import find_windows
from astrocyte.pipelines.query.intent import classify
from astrocyte.providers.engines import EngineCapabilities

# How far one signal shifts the weights; several multiply. By rank fusion (k = 60) 1.2 is worth twelve places, and 1.4
# more than twenty: of ten hits each, those of the side that a signal is for come first.
TOWARDS_PIPELINE = 1.2
TOWARDS_ENGINE = 1.4
# From this share of names among the words on, a question is about how several things hang together.
NAMES_SHARE = 0.3
LEAST_NAMES = 2
SHORT_WORDS = 3
LONG_WORDS = 25
WORD = re.compile(r"[^\W_][\w'\u2019-]*")
# Whether there is a date at all does not depend on what it counts from.
_SOME_DAY = Calendar.of(date(2000, 1, 1), date(2000, 1, 1), date(2000, 1, 1))
_TIMES = frozenset({Intent.TEMPORAL})
_OPEN = frozenset({Intent.COMPARATIVE, Intent.EXPLORATORY, Intent.PROCEDURAL})


class Route(NamedTuple):
    """Factors of the two sides, and what they were chosen by."""

    engine: float
    pipeline: float
    signals: tuple[str, ...]


def route(query: str, able: EngineCapabilities) -> Route:
    """The route of a query: factors on the weights of an engine with these abilities, and of the pipeline."""
    engine = pipeline = 1.0
    signals = []
    for signal in _signals(query):
        signals.append(signal)
        suits = {
            "temporal": able.temporal_search,
            "entities": able.graph_search,
            "complex": able.reflect,
        }.get(signal, False)
        if suits:
            engine *= TOWARDS_ENGINE
        else:
            pipeline *= TOWARDS_PIPELINE
    return Route(engine, pipeline, tuple(signals))


def _signals(query: str) -> list[str]:
    """The signals of a query's form: temporal, entities, complex, short."""
    words = WORD.findall(query)
    if not words:
        return []
    intent = classify(query).intent
    # The first word is large whatever it is.
    names = sum(word[0].isupper() and word != "I" for word in words[1:])
    signals = []
    if intent in _TIMES or find_windows(query, _SOME_DAY):
        signals.append("temporal")
    if intent is Intent.RELATIONAL or (names >= LEAST_NAMES and names / len(words) >= NAMES_SHARE):
        signals.append("entities")
    if intent in _OPEN or len(words) >= LONG_WORDS:
        signals.append("complex")
    if len(words) <= SHORT_WORDS and not signals:
        signals.append("short")
    return signals
