"""Amounts that are stated of an attribute of somebody: "My rent is 850 pounds a month", "Mara's salary rose to 42,000".

An age is one too: "I'm 34", "Mara turned 35".

There is one amount at a time: a later one takes the place of the earlier one. Dates are left out, as somebody may have
several flights or appointments.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from astrocyte.pipelines.knowledge.claims import Claim, Relation
from astrocyte.pipelines.query.calendar import MONTH_NAMES, WEEKDAYS
from astrocyte.pipelines.text.content_words import content_words

_OWNER = r"(?P<owner>My|Our|[A-Z][\w-]*(?:[ ][A-Z][\w-]*){0,2}['\u2019]s)"
# A noun of at most four words.
_ATTRIBUTE = r"(?P<attribute>[a-z][a-z-]+(?:[ ][a-z][a-z-]+){0,3}?)"
_MOVES = r"(?:gone|went|going)[ ](?:up|down)|rose|risen|fell|fallen|dropped|increased|decreased|changed|grown|shrunk"
_CHANGED = r"(?:raised|increased|reduced|lowered|cut|changed|set)"
_VERB = (
    rf"(?:(?:is|are)(?:[ ](?:now|currently))?|(?:(?:has|have)[ ])?(?:{_MOVES})[ ](?:up[ ]|down[ ])?to"
    rf"|(?:was|were|has[ ]been|have[ ]been|is[ ]being)[ ]{_CHANGED}[ ](?:up[ ]|down[ ])?to)"
)
_AMOUNT = (
    r"(?:(?:about|around|roughly|exactly|just)[ ])?"
    r"(?P<amount>[-\u00a3$\u20ac\u00a5]?\d[\w.,%\u20ac]*(?:[ ][\w./%-]+){0,4})"
)
ATTRIBUTE = re.compile(rf"^{_OWNER}[ ]{_ATTRIBUTE}[ ](?:now[ ])?{_VERB}[ ]{_AMOUNT}$")
# A point, comma or colon in a number ends no clause.
CLAUSE_END = re.compile(r"[!;\u2014(]|[.,:](?!\d)")
# What is said behind the amount, or of the time at which it holds. What else follows, as in "in Lyon", "in the evening"
# and "from Paris", tells amounts of several things apart.
BEHIND = re.compile(
    r"(?:[ ](?:now|currently|today|at the moment|these days|already|and|but|because|since|as of"
    rf"|(?:from|in)(?=[ ](?:now|today|next|this|total|all|\d|(?:{'|'.join(MONTH_NAMES[1:])})\b)))\b.*)$"
)
# Of these somebody has several, at once or one after another, of which another sentence says which it is.
SEVERAL = re.compile(
    r"(?:son|daughter|child|kid|baby|brother|sister|sibling|cousin|nephew|niece|friend|dog|cat|pet|horse"
    r"|ticket|fare|flight|trip|hotel|booking|order|parcel|invoice|receipt|meeting|appointment)s?$"
)
# Of a time of day or of the calendar.
OF_TIME = re.compile(
    rf"\d:\d|\b(?:{'|'.join((*MONTH_NAMES[1:], *WEEKDAYS))}|o'clock|am|pm)\b|\b\d+(?:st|nd|rd|th)\b|\d{{4}}-\d\d",
    re.IGNORECASE,
)
FIGURE = re.compile(r"\d[\d.,]*")
# Of others than the speaker, a number alone may be anything ("Room is 34"), and so may one with more behind it ("I am
# 12 on the list").
AGE = re.compile(
    r"^(?:I|(?P<name>[A-Z][\w-]*(?:[ ][A-Z][\w-]*){0,2}))[ ](?:(?:have|has|just|finally|already)[ ]){0,2}"
    r"(?:(?P<is>am|is)[ ](?:(?:now|already|only)[ ])?|turned[ ])(?P<age>[1-9]\d?|1[01]\d)(?P<years>[ ]years?[ ]old)?"
    r"(?:[ ](?:now|today|currently|already|but|because|and(?![ ](?:an?|one)\b)"
    r"|(?(is)(?!)|(?:yesterday|last|on|in|this)))\b.*)?$"
)


class Attribute(NamedTuple):
    """An amount of an attribute.

    ``owner`` is empty for the speaker, and ``possessive`` is the word for it in the sentence. ``subjects`` are what two
    statements share that are about the same: the words of the attribute and the unit.
    """

    owner: str
    possessive: str
    subjects: tuple[str, ...]
    claim: Claim
    text: str


def attribute(sentence: str) -> Attribute | None:
    """The amount that a sentence states of an attribute; None where it states none."""
    clause = CLAUSE_END.split(sentence, maxsplit=1)[0].strip()
    match = ATTRIBUTE.match(BEHIND.sub("", clause))
    if match is None:
        return _age(clause)
    amount = match["amount"].rstrip(".,")
    words = tuple(content_words(match["attribute"]))
    if not words or OF_TIME.search(amount) or SEVERAL.search(match["attribute"]):
        return None
    owner = "" if match["owner"] in {"My", "Our"} else match["owner"][:-2]
    unit = " ".join(FIGURE.sub("", amount).casefold().split())
    claim = Claim((*words, *FIGURE.findall(amount)), amount, "", is_denied=False, relation=Relation.ONE)
    told = match[0].removeprefix(match["owner"])
    return Attribute(owner, match["owner"], ("amount", *words, unit), claim, told.strip())


def _age(clause: str) -> Attribute | None:
    match = AGE.match(clause)
    if match is None or (match["name"] and match["is"] and not match["years"]):
        return None
    claim = Claim(("age", match["age"]), match["age"], "", is_denied=False, relation=Relation.ONE)
    owner = match["name"] or ""
    possessive = f"{owner}'s" if owner else "My"
    return Attribute(owner, possessive, ("amount", "age"), claim, f"age is {match['age']}")
