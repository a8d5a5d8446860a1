"""Building blocks of the patterns that state a relation between two names."""

from __future__ import annotations

from typing import NamedTuple

from astrocyte.model.derived.entity import NAME
from astrocyte.pipelines.graph.names.type_words import EVENT, ORG, PERSON, PLACE, PRODUCT, PROJECT


class Pattern(NamedTuple):
    """Words between a name and the next.

    Attributes:
        link_type: Of the relation; "" for the noun that the group ``noun`` matches.
        left: Types that the name before may have.
        right: Types that the name after may have.
        words: Regular expression of the words between, without the blanks around them.
        confidence: Of the relation.
        reverse: True if the relation goes from the name after to the name before.
    """

    link_type: str
    left: frozenset[str]
    right: frozenset[str]
    words: str
    confidence: float = 0.9
    reverse: bool = False


def types(*kinds: str) -> frozenset[str]:
    """The types, and that of names whose type nothing tells."""
    return frozenset({*kinds, NAME})


PEOPLE, ORGS, PLACES, EVENTS = types(PERSON), types(ORG), types(PLACE), frozenset({EVENT})
ORGS_PLACES, ACTORS = types(ORG, PLACE), types(PERSON, ORG)
THINGS, WORKS, MADE = types(PRODUCT, PROJECT), types(PRODUCT, PROJECT, ORG, EVENT), types(PRODUCT, PROJECT)
SITES = types(ORG, PLACE, EVENT)
ANY = types(PERSON, ORG, PLACE, PROJECT, PRODUCT, EVENT)
NOT_PEOPLE = ANY - {PERSON}

# Adverbs and auxiliaries before a verb.
ADVERBS = (
    r"(?:(?:is|are|was|were|has|have|had|'ve|'s|'m|am|been|now|currently|still|also|just|recently|then|later"
    r"|already|once|briefly|since|first|finally|originally|eventually|both|soon|always|mostly|really|never before"
    r"|who|which|that) )*"
)
# A complement of up to four words: "as a nurse", "part-time".
COMPLEMENT = (
    r"(?:,? ?(?:as|in|on|full-time|part-time|together|again|abroad|back|there|remotely|for|last"
    r"|this)\b(?: [\w'\u2019-]+){0,4}?)?"
)
ARTICLE = r"(?: (?:the|a|an|her|his|their|our|my|its|both))?"
ADJECTIVES = (
    r"(?:(?:older|younger|elder|little|big|twin|late|best|old|close|good|former|new|first|second|oldest|youngest"
    r"|eldest|dear|maternal|paternal|childhood|ex) |ex-)*"
)
# "Is" and its like, or an apposition.
BE = r"(?:is|was|became|,|,? who is|,? who was)"

# Nouns of relations between people.
KIN = (
    "sister|brother|mother|father|mom|mum|dad|son|daughter|cousin|niece|nephew|aunt|uncle|grandmother"
    "|grandfather|grandma|grandpa|grandson|granddaughter|wife|husband|spouse|fianc[ée]e?|partner|girlfriend"
    "|boyfriend|friend|colleague|coworker|co-worker|teammate|classmate|roommate|flatmate|housemate|neighbou?r"
    "|boss|manager|supervisor|mentor|teacher|tutor|student|assistant|doctor|dentist|therapist|lawyer|coach"
    "|trainer|landlord|landlady|tenant|godmother|godfather|stepmother|stepfather|stepsister|stepbrother"
    "|mother-in-law|father-in-law|sister-in-law|brother-in-law|co-founder|cofounder|rival|twin|half-sister"
    "|half-brother|dog|cat|horse"
)
# Link types of nouns that are not the noun and ``of``.
SAME_KIN = {
    "mom": "mother_of", "mum": "mother_of", "dad": "father_of", "grandma": "grandmother_of",
    "grandpa": "grandfather_of", "wife": "married_to", "husband": "married_to", "spouse": "married_to",
    "fiance": "engaged_to", "fiancee": "engaged_to", "fiancé": "engaged_to", "fiancée": "engaged_to",
    "girlfriend": "partner_of", "boyfriend": "partner_of", "coworker": "colleague_of", "co-worker": "colleague_of",
    "teammate": "colleague_of", "flatmate": "roommate_of", "housemate": "roommate_of", "boss": "manages",
    "manager": "manages", "supervisor": "manages", "landlady": "landlord_of", "cofounder": "co_founder_of",
    "dog": "pet_of", "cat": "pet_of", "horse": "pet_of",
}  # fmt: skip
