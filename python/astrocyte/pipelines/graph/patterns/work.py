"""Patterns of other names and of work."""

from __future__ import annotations

from astrocyte.pipelines.graph.names.type_words import EVENT, ORG, PERSON, PLACE, PRODUCT, PROJECT
from astrocyte.pipelines.graph.patterns.words import (
    ACTORS,
    ADVERBS,
    ANY,
    ARTICLE,
    BE,
    COMPLEMENT,
    MADE,
    NOT_PEOPLE,
    ORGS,
    ORGS_PLACES,
    PEOPLE,
    Pattern,
    types,
)

WORK_PATTERNS: tuple[Pattern, ...] = (
    # Other names.
    Pattern(
        "alias_of",
        ANY,
        ANY,
        r",? ?\(?(?:formerly|previously|n[ée]e|born|a\.?k\.?a\.?|also (?:known as|called|written)|or"
        r"|better known as|known (?:as|online as|to friends as)|nicknamed|alias|i\.e\.|short for)(?: known as"
        r"| called)?",
        0.95,
        reverse=True,
    ),
    Pattern(
        "alias_of",
        ANY,
        ANY,
        r"(?:,? (?:who|which) )?(?:is|was) (?:formerly|previously|also|better|originally"
        r"|sometimes)? ?(?:known as|called|nicknamed)",
        0.9,
        reverse=True,
    ),
    Pattern(
        "alias_of",
        ANY,
        ANY,
        r"(?:is|stands|is just|which is|,) ?(?:short|an? (?:acronym|abbreviation|nickname|pseudonym"
        r"|pen name)) (?:for|of)",
        0.95,
    ),
    Pattern(
        "alias_of",
        NOT_PEOPLE,
        NOT_PEOPLE,
        rf"{ADVERBS}(?:renamed|rebranded|changed its name)(?: itself)?(?: last year)? ?(?:to|as)?",
        0.9,
    ),
    Pattern(
        "alias_of",
        PEOPLE,
        PEOPLE,
        r"(?:goes by|changed (?:her|his|their) (?:last |family )?name to|took the name)",
        0.9,
        reverse=True,
    ),
    # Work.
    Pattern(
        "works_at",
        PEOPLE,
        ORGS_PLACES,
        rf"{ADVERBS}(?:works?|working|(?:has|have|'ve)(?: also| always)? worked|employed"
        r"|teach(?:es|ing)?|volunteers?|volunteering|intern(?:s|ed|ing)?"
        rf"|freelances?){COMPLEMENT} ?(?:at|for|with|by|in){ARTICLE}",
        0.95,
    ),
    Pattern(
        "works_at",
        PEOPLE,
        ORGS,
        rf"{ADVERBS}(?:joined|joins|started (?:working )?at|got (?:a|the) (?:new )?job (?:at|with)|got hired (?:at"
        r"|by)|hired by|accepted an offer from|signed (?:for|with)|plays for|works with)",
        0.9,
    ),
    Pattern(
        "works_at",
        PEOPLE,
        ORGS,
        rf"{BE}(?: now| currently)?(?: an?| the| our| my)? (?!(?:co-?)?founders?\b|CEO|CTO"
        rf"|students?\b)(?:[\w'\u2019-]+ ){{0,4}}?(?:engineers?|nurses?|teachers?|managers?|professors?"
        r"|lecturers?|developers?|designers?|analysts?|researchers?|scientists?|consultants?|accountants?"
        r"|interns?|journalists?|reporters?|editors?|doctors?|surgeons?|lawyers?|chefs?|cooks?|curators?"
        r"|baristas?|librarians?|architects?|pilots?|secretary|technicians?|recruiters?|assistants?|drivers?"
        r"|employees?|midwife|pharmacists?|violinists?|cellists?|conductors?|postdocs?|specialists?"
        rf"|trainees?)(?: [\w'\u2019-]+){{0,2}}? (?:at|for|with|of|in)(?: the)?",
        0.9,
    ),
    Pattern("works_at", frozenset({PERSON}), frozenset({ORG}), r"(?:of|from)", 0.7),
    Pattern(
        "worked_at",
        PEOPLE,
        ORGS,
        rf"{ADVERBS}(?:worked|taught|interned|volunteered){COMPLEMENT} ?(?:at|for|with)(?: the)?",
        0.9,
    ),
    Pattern(
        "worked_at",
        PEOPLE,
        ORGS,
        rf"{ADVERBS}(?:left|quit|resigned from|retired from|fired (?:by|from)|laid off (?:by|from))",
        0.85,
    ),
    Pattern(
        "leads",
        PEOPLE,
        types(ORG, PROJECT, EVENT, PRODUCT),
        rf"{ADVERBS}(?:leads?|leading|led|heads?|heading|chairs?|runs|running|manages|managing|managed|coordinates"
        r"|oversees|directs|coaches)(?: the)?",
        0.9,
    ),
    Pattern(
        "leads",
        PEOPLE,
        types(ORG, PROJECT, EVENT, PRODUCT, PLACE),
        r"(?:is|was|became|,|,? who is|has been)(?: now| currently)?(?: an?| the| our)?(?: new| current"
        r"| interim)? (?:CEO|CTO|CFO|COO|chief [\w ]{3,20}|president|chair(?:man|woman|person)?"
        r"|managing director|director|head|lead|leader|owner and \w+|mayor|principal|dean|editor-in-chief"
        r"|captain|general manager|product manager|project manager|product owner)(?: and [\w-]+)?(?: of| at"
        r"| for)(?: the)?",
        0.9,
    ),
    Pattern(
        "leads",
        NOT_PEOPLE,
        PEOPLE,
        rf"{ADVERBS}(?:led|headed|run|managed|chaired|directed|coordinated|overseen) by(?: the)?",
        0.9,
        reverse=True,
    ),
    Pattern("manages", PEOPLE, PEOPLE, rf"{ADVERBS}(?:manages|managing|supervises|supervising|oversees)", 0.9),
    Pattern(
        "reports_to",
        PEOPLE,
        PEOPLE,
        rf"{ADVERBS}(?:reports? (?:directly )?to|reporting to|answers to|managed by|supervised by)",
        0.95,
    ),
    Pattern(
        "founded",
        PEOPLE,
        ORGS,
        rf"{ADVERBS}(?:co-?founded|founded|started|set up|established|created|launched)(?: the)?(?: (?:company"
        r"|startup|charity|bakery|studio|firm|band|non-?profit|NGO))?(?: called)?",
        0.9,
    ),
    Pattern(
        "founded",
        PEOPLE,
        ORGS,
        r"(?:is|was|,|,? who is)(?: an?| the)?(?: \w+)? ?(?:co-?)?founders?(?: and (?:CEO|CTO|owner"
        r"|director))?(?: of| at)",
        0.9,
    ),
    Pattern(
        "founded",
        ORGS,
        PEOPLE,
        rf"{ADVERBS},? ?(?:co-?)?(?:founded|started|set up|established|created)(?: [\w ]{{2,18}})? by",
        0.9,
        reverse=True,
    ),
    Pattern(
        "studies_at",
        PEOPLE,
        ORGS_PLACES,
        rf"{ADVERBS}(?:stud(?:y|ies|ied|ying)|major(?:s|ed|ing)|enrolled|graduated|(?:did|got|earned|received|has"
        r"|holds|finished|is doing|started|doing) (?:a|an|her|his|their"
        rf"|my) [\w'\u2019. ]{{2,24}}?)(?: (?:in )?[\w'\u2019-]+){{0,4}}? ?(?:at|from)(?: the)?",
        0.9,
    ),
    Pattern(
        "studies_at",
        PEOPLE,
        ORGS,
        r"(?:is|was|,|,? who is)(?: now)? (?:a|an) (?:[\w'\u2019-]+ ){0,3}?(?:student|undergraduate|freshman"
        r"|sophomore|doctoral candidate|PhD candidate)(?: [\w'\u2019-]+){0,2}? (?:at|of|from)(?: the)?",
        0.9,
    ),
    Pattern(
        "member_of",
        PEOPLE,
        ORGS,
        rf"{ADVERBS}(?:an? )?(?:[\w-]+ )?(?:member of|belongs? to|plays? (?:the )?[\w ]{{2,20}} (?:in|with)"
        r"|sings? (?:in|with))(?: the)?",
        0.85,
    ),
    Pattern(
        "works_with",
        ACTORS,
        ACTORS,
        rf"{ADVERBS}(?:partner(?:s|ed)|collaborat(?:es|ed|ing)|work(?:s|ed|ing) closely|teamed up|work(?:s|ed"
        rf"|ing)){COMPLEMENT} ?with",
        0.85,
    ),
    Pattern("hired", ACTORS, PEOPLE, rf"{ADVERBS}(?:hired|recruited|employs|employed|appointed|promoted)", 0.85),
    Pattern(
        "works_on",
        PEOPLE,
        MADE,
        rf"{ADVERBS}(?:works? on|working on|worked on|contributes? to|contributed to|maintains?|maintaining"
        r"|assigned to|joined|coordinates|moved to|responsible for|in charge of)(?: the)?",
        0.85,
    ),
    Pattern("invested_in", ACTORS, ORGS, rf"{ADVERBS}(?:invested|invests)(?: [\w$\u20ac. ]{{1,20}})? in", 0.9),
    Pattern(
        "acquired",
        ACTORS,
        types(ORG, PRODUCT),
        rf"{ADVERBS}(?:acquired|bought|took over|purchased|acquires|merged with)",
        0.85,
    ),
    Pattern(
        "acquired",
        types(ORG, PRODUCT),
        ACTORS,
        rf"{ADVERBS}(?:acquired|bought|taken over|purchased)(?: last \w+| in \d{{4}})? by",
        0.9,
        reverse=True,
    ),
    Pattern(
        "competes_with",
        ORGS,
        ORGS,
        rf"{ADVERBS}(?:competes? with|a (?:rival|competitor) of|competing with)",
        0.9,
    ),
    Pattern(
        "part_of",
        NOT_PEOPLE,
        NOT_PEOPLE,
        rf"{ADVERBS},? ?(?:part of|belongs to|an? (?:[\w-]+ )?(?:subsidiary|division|district|suburb|neighbou?rhood"
        r"|department|unit|branch|member|brand|module|component|phase|milestone|borough|quarter) of)(?: the)?",
        0.9,
    ),
    Pattern(
        "owns",
        ACTORS,
        NOT_PEOPLE,
        rf"{ADVERBS}(?:owns?|owned|the owner of|bought|purchased|drives)(?: (?:a|an|the|his|her|their|my"
        r"|our))?(?: new| used| old| second-hand| small)?",
        0.8,
    ),
)
