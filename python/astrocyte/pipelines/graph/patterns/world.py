"""Patterns of places, things and events."""

from __future__ import annotations

from astrocyte.model.derived.entity import NAME
from astrocyte.pipelines.graph.names.type_words import PERSON, PLACE, PRODUCT
from astrocyte.pipelines.graph.patterns.words import (
    ACTORS,
    ADVERBS,
    ARTICLE,
    COMPLEMENT,
    EVENTS,
    NOT_PEOPLE,
    PEOPLE,
    PLACES,
    SITES,
    THINGS,
    WORKS,
    Pattern,
    types,
)

WORLD_PATTERNS: tuple[Pattern, ...] = (
    # Places.
    Pattern(
        "lives_in",
        PEOPLE,
        PLACES,
        rf"{ADVERBS}(?:live|lives|living|lived|resides?|residing|settled|stay(?:s|ed|ing)|rents? (?:a|an) \w+"
        rf"|bought (?:a|an) \w+){COMPLEMENT} ?(?:in|at|near|outside)",
        0.95,
    ),
    Pattern("lives_in", frozenset({PERSON}), PLACES, rf"{ADVERBS}based{COMPLEMENT} ?(?:in|at|near)", 0.9),
    Pattern(
        "lives_in",
        PEOPLE,
        PLACES,
        rf"{ADVERBS}(?:moved|moving|relocated|relocating|emigrated|returned"
        rf"|moves){COMPLEMENT}(?: from [A-Z]\w+)? ?(?:to"
        r"|back to)",
        0.85,
    ),
    Pattern(
        "born_in",
        PEOPLE,
        PLACES,
        rf"{ADVERBS}(?:,? )?born(?: and raised| on [\w ,]{{3,16}}| in \d{{4}})? (?:in|near)",
        0.95,
    ),
    Pattern(
        "comes_from",
        PEOPLE,
        PLACES,
        rf"{ADVERBS}(?:come|comes|came|hails?|grew up|grown up|originally|raised|a native)(?: originally)? (?:from"
        r"|in|of)",
        0.9,
    ),
    Pattern("comes_from", PEOPLE, PLACES, r"(?:is|am|are|'m|was|,)(?: originally)? from", 0.85),
    Pattern(
        "visited",
        PEOPLE,
        PLACES,
        rf"{ADVERBS}(?:visit|visits|visited|visiting|toured|explored|travelled to|traveled to|flew to|flies to"
        rf"|flying to|went(?: [\w-]+){{0,2}} to|drove to|took (?:a|the) (?:train|bus|ferry|flight|trip) to"
        r"|back from|on (?:vacation|holiday) in|vacationed in|hiked in)",
        0.85,
    ),
    Pattern(
        "located_in",
        SITES,
        PLACES,
        rf"{ADVERBS},? ?(?:located|based|situated|headquartered|held|hosted|organi[sz]ed|takes place|took place"
        rf"|taking place|happens|happened|lies|sits|opened(?: [\w-]+){{0,4}}?|has (?:its|an?"
        rf"|their) [\w ]{{3,24}}|moved (?:its|their) \w+){COMPLEMENT} ?(?:in|at|to|near|on)(?: the)?",
        0.9,
    ),
    Pattern(
        "located_in",
        SITES,
        PLACES,
        r"(?:is|was|,)(?: an?| the)? ?(?:[\w-]+ ){0,3}?(?:city|town|village|capital|island|museum|restaurant"
        r"|caf[ée]|bakery|company|startup|firm|school|clinic|hospital|district|neighbou?rhood|bookshop|bank"
        r"|festival|conference|suburb|port|province|state|region)(?: [\w-]+){0,2}? (?:in|of|near|from|outside)",
        0.9,
    ),
    Pattern("located_in", SITES - {NAME}, frozenset({PLACE}), r"(?:is |was )?in", 0.85),
    Pattern("located_in", frozenset({PLACE}), frozenset({PLACE}), r",", 0.85),
    Pattern("located_in", SITES - {NAME}, frozenset({PLACE}), r"\(", 0.7),
    # Things.
    Pattern(
        "uses",
        ACTORS | THINGS,
        types(PRODUCT),
        rf"{ADVERBS}(?:use|uses|used|using|prefers?|switched to|migrated to|moved to|runs on|relies on|adopted"
        r"|deploys|deployed|installed|depends on|built on(?: top of)?|written in|programs in|plays|takes"
        rf"|learns|learning|rides|reads|upgraded to|swears by|built with|powered by|listens to){ARTICLE}",
        0.85,
    ),
    Pattern(
        "created",
        ACTORS,
        WORKS,
        rf"{ADVERBS}(?:built|created|wrote|written|writes|designed|developed|develops|made|makes|released|launched"
        r"|published|invented|directed|composed|painted|authored|recorded|shipped|coded|open-sourced"
        rf"|introduced|rewrote|prototyped|organi[sz]ed|hosted|unveiled|produces|started){ARTICLE}",
        0.85,
    ),
    Pattern(
        "created",
        WORKS,
        ACTORS,
        rf"{ADVERBS},? ?(?:(?:a|an|the) (?:[\w-]+ ){{1,4}})?(?:built|created|written|designed|developed|made"
        r"|released|launched|published|invented|directed|composed|painted|recorded|organi[sz]ed|hosted"
        rf"|produced|maintained)?(?: in \d{{4}})? ?by",
        0.85,
        reverse=True,
    ),
    Pattern(
        "replaced",
        NOT_PEOPLE,
        NOT_PEOPLE,
        rf"{ADVERBS}(?:replaced|replaces|replacing|supersedes|superseded)(?: the)?",
        0.85,
    ),
    Pattern("succeeded", PEOPLE, PEOPLE, rf"{ADVERBS}(?:succeeded|replaced|took over from)", 0.85),
    # Events.
    Pattern(
        "attended",
        PEOPLE,
        EVENTS,
        rf"{ADVERBS}(?:attend(?:s|ed|ing)?|spoke|speaking|speaks|gave (?:a|the) [\w -]{{2,24}}|presented"
        r"|present(?:s|ing)|volunteered|took part|competed|competing|played|performed|sang|sings|danced"
        r"|exhibited|ran|running|celebrated|went|participated|exhibited|finished|medal(?:l)?ed"
        rf"|won(?: [\w -]{{2,20}})?|registered){COMPLEMENT} ?(?:in|at|to|for)?{ARTICLE}",
        0.85,
    ),
)
