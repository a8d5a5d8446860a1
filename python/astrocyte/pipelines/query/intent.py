"""The intent of a query, by rules over its words.

Each rule that matches adds its weight to its intent, and the sums end at 1. The largest sum names the intent and is
the confidence; below `THRESHOLD` the query is of no known shape. Equal sums go to the intent that comes first in
`ORDER`, the narrower one.
"""

from __future__ import annotations

import re

from astrocyte.model import Intent, QueryIntent

# One strong cue is enough, a weak one alone is not.
THRESHOLD = 0.5
STRONG, MEDIUM, WEAK = 0.8, 0.5, 0.3
# Rules look at the head of a pasted text only: a question says what it is within its first sentences.
MOST_CHARS = 400
ORDER = (
    Intent.COMPARATIVE,
    Intent.RELATIONAL,
    Intent.PROCEDURAL,
    Intent.TEMPORAL,
    Intent.EXPLORATORY,
    Intent.FACTUAL,
)

# How a query of each intent begins.
_OPENINGS: tuple[tuple[Intent, float, str], ...] = (
    (Intent.PROCEDURAL, STRONG, r"how (?:to|(?:do|can|should|would) (?:i|we|you))\b"),
    (Intent.TEMPORAL, STRONG, r"(?:when|since when|how long|how often|what (?:day|date|month|year|time))\b"),
    (Intent.EXPLORATORY, STRONG, r"(?:tell me|what about|describe|summari[sz]e|give me|catch me up)\b"),
    (Intent.FACTUAL, MEDIUM, r"(?:what|who[ms]?e?|where|which|why|do(?:es)?|did|is|are|was|were|ha[sd]|have|can)\b"),
    (Intent.FACTUAL, MEDIUM, r"(?:how (?:many|much|old|tall|big|far)|(?:in|at|on|from|to|for|with|by) wh\w+)\b"),
)
# What may stand anywhere: first the words of which one must be there, so that most rules cost nothing.
_CUES: tuple[tuple[Intent, float, str, str], ...] = (
    (Intent.COMPARATIVE, STRONG, "vs versus compare compares compared comparing comparison", r""),
    (
        Intent.COMPARATIVE,
        STRONG,
        "difference differences differ differs differed common",
        r"\bdifferences? (?:between|from|in)\b|\bdiffer(?:s|ed)? from\b|\bin common\b",
    ),
    (
        Intent.COMPARATIVE,
        MEDIUM,
        "than similar",
        r"\b(?:better|worse|more|less|fewer|larger|smaller|cheaper|faster|older) than\b|\bsimilar to\b",
    ),
    (
        Intent.RELATIONAL,
        STRONG,
        "relate relates related relation relationship connect connected connection connections linked",
        r"\b(?:relat(?:e[ds]?|ion|ionship)|connect(?:ed|ions?)?|linked) (?:to|with|between)\b",
    ),
    (Intent.RELATIONAL, STRONG, "know", r"\bhow (?:does|do|did) \w+(?: \w+)? know \w+\b"),
    (
        Intent.RELATIONAL,
        MEDIUM,
        "depend depends led cause caused because influence influenced impact",
        r"\b(?:depends? on|led to|caused? by|because of|influenced?|impact of)\b",
    ),
    (Intent.PROCEDURAL, MEDIUM, "procedure instructions recipe", r""),
    (Intent.PROCEDURAL, MEDIUM, "step steps", r"\bsteps? (?:to|for|of)\b|\bstep by step\b"),
    (Intent.PROCEDURAL, WEAK, "configure install deploy troubleshoot", r""),
    (Intent.TEMPORAL, STRONG, "days weeks months years hours time", r"\bhow (?:many|much) \w+\b(?<! times)"),
    (Intent.TEMPORAL, STRONG, "order timeline", r"\bwh\w+ order\b|\btimeline\b"),
    (Intent.TEMPORAL, MEDIUM, "yesterday today recently lately", r""),
    (Intent.TEMPORAL, MEDIUM, "week month year", r"\b(?:last|next|this|past) (?:week|month|year)\b"),
    (
        Intent.TEMPORAL,
        MEDIUM,
        "ago earlier later before after between",
        r"\b(?:day|week|month|year)s? (?:ago|before|after|earlier|later|between)\b",
    ),
    (Intent.TEMPORAL, WEAK, "before after since until during first latest earliest", r""),
    (
        Intent.TEMPORAL,
        WEAK,
        "january february april june july august september october november december",
        r"",
    ),
    (Intent.EXPLORATORY, STRONG, "summary overview recap", r"\b(?:summary|overview|recap) of\b"),
    (Intent.EXPLORATORY, STRONG, "everything", r"\beverything (?:about|on)\b"),
    (Intent.EXPLORATORY, MEDIUM, "explain comprehensive", r""),
    (Intent.FACTUAL, WEAK, "name address number colour color price email phone birthday", r""),
)  # fmt: skip
OPENINGS = tuple((intent, weight, re.compile(pattern)) for intent, weight, pattern in _OPENINGS)
CUES = tuple(
    (intent, weight, frozenset(words.split()), re.compile(pattern) if pattern else None)
    for intent, weight, words, pattern in _CUES
)
# Most questions have none of these.
CUE_WORDS = frozenset(word for _, _, words, _ in CUES for word in words)
WORD = re.compile(r"[a-z]+")
NO_INTENT = QueryIntent(Intent.UNKNOWN, 0.0)


def classify(query: str) -> QueryIntent:
    """The intent of a query, with a confidence from 0 to 1; `Intent.UNKNOWN` where no rule is sure enough."""
    head = query[:MOST_CHARS].lower()
    first = WORD.search(head)
    if first is None:
        return NO_INTENT
    start = first.start()
    words = CUE_WORDS.intersection(WORD.findall(head))
    sums: dict[Intent, float] = {}
    for intent, weight, pattern in OPENINGS:
        if pattern.match(head, start):
            sums[intent] = sums.get(intent, 0.0) + weight
    for intent, weight, cues, pattern_ in CUES if words else ():
        if not cues.isdisjoint(words) and (pattern_ is None or pattern_.search(head)):
            sums[intent] = sums.get(intent, 0.0) + weight
    if not sums:
        return NO_INTENT
    most = max(sums.values())
    for best in ORDER:
        if sums.get(best) == most:
            break
    confidence = min(1.0, most)
    return QueryIntent(best if confidence >= THRESHOLD else Intent.UNKNOWN, confidence)
