"""Patterns of people among each other, and of causes."""

from __future__ import annotations

from astrocyte.pipelines.graph.patterns.words import (
    ADJECTIVES,
    ADVERBS,
    ANY,
    KIN,
    PEOPLE,
    Pattern,
)

SOCIAL_PATTERNS: tuple[Pattern, ...] = (
    # People.
    Pattern(
        "married_to",
        PEOPLE,
        PEOPLE,
        rf"{ADVERBS}(?:married(?: to)?|wed|marries|tied the knot with|divorced)",
        0.95,
    ),
    Pattern("engaged_to", PEOPLE, PEOPLE, rf"{ADVERBS}(?:engaged to|proposed to)", 0.95),
    Pattern("dates", PEOPLE, PEOPLE, rf"{ADVERBS}(?:dating|dates|seeing)", 0.9),
    Pattern(
        "knows",
        PEOPLE,
        PEOPLE,
        rf"{ADVERBS}(?:met|knows|knew|known|befriended|introduced to|had (?:lunch|dinner|coffee|breakfast) with"
        r"|made friends with|ran into|bumped into|friends with)(?: the)?",
        0.85,
    ),
    Pattern(
        "mentors",
        PEOPLE,
        PEOPLE,
        rf"{ADVERBS}(?:mentors|mentored|mentoring|coaches|coached|tutors|tutored|teaches|taught|trains|trained)",
        0.85,
    ),
    Pattern(
        "",
        PEOPLE,
        PEOPLE,
        rf"'s {ADJECTIVES}(?P<noun>{KIN})(?:,|:| is| was| named| called| \()?(?: called| named)?",
        0.9,
        reverse=True,
    ),
    Pattern(
        "",
        PEOPLE,
        PEOPLE,
        rf"(?:is|was|became|,|,? who is|,? who was)(?: also)?(?: an?| the)? {ADJECTIVES}(?P<noun1>{KIN}) (?:of|to)",
        0.9,
    ),
    # Causes between names.
    Pattern(
        "led_to",
        ANY,
        ANY,
        rf"{ADVERBS}(?:led|gave rise|contributed) to(?: the)?(?: [\w-]+ of)?",
        0.8,
    ),
    Pattern(
        "led_to",
        ANY,
        ANY,
        rf"{ADVERBS}(?:caused|triggered|resulted in|sparked|delayed|blocked|derailed"
        r"|inspired)(?: the)?(?: [\w-]+ of)?",
        0.8,
    ),
    Pattern(
        "caused_by",
        ANY,
        ANY,
        rf"{ADVERBS}[\w ]{{0,24}}(?:caused by|due to|because of|thanks to|as a result of|triggered by|owing to"
        r"|inspired by|delayed by|blocked by)(?: the)?(?: [\w-]+ (?:of|at|in|by))?",
        0.8,
    ),
)
