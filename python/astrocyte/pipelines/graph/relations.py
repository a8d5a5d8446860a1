"""Relations that a text states between its names, with the passage that states them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache

from astrocyte.model.derived.graph import Mention, Relation
from astrocyte.pipelines.graph.anchors import Anchor, anchors
from astrocyte.pipelines.graph.causes import causes
from astrocyte.pipelines.graph.names.type_words import PERSON
from astrocyte.pipelines.graph.patterns.table import PATTERNS
from astrocyte.pipelines.graph.patterns.words import KIN, SAME_KIN, Pattern

# Words between two names of one relation.
LONGEST_GAP = 90
MOST_RELATIONS = 64
# Names that share a verb: "Ana, Ben and Carla work at".
MOST_TOGETHER = 5
# Names between a verb and its subject.
MOST_CARRIED = 8
AND = re.compile(r"(?:,|,? (?:and|&|as well as)(?: (?:his|her|my|their|our) [\w' -]{2,30})?|/)")
CARRIED = re.compile(r"\)(?= )|(?:,? (?:and|but|then|where|after which)|,)(?: (?:then|now|also|later|has|is))? ")
# A noun or a description after a name: "the Atlas project depends on", ", a library written in".
KIND = re.compile(
    r" (?:project|initiative|migration|rewrite|team|app|conference|festival|company|programme|program|library"
    r"|plugin)(?= )"
)
DESCRIPTION = re.compile(
    r", (?:a|an|the|our) (?:[\w'-]+ ){1,4}?(?=(?:that|which|who|written|built|based|founded|created|made|owned)\b)"
)
# Before a name that is no subject: "the novel by Ana won".
PREPOSITION = re.compile(r"\b(?:by|of|with|from|to|for|in|at|near|about|between)(?: the)? $")
# After such a name only these state something of it.
OF_OBJECT = re.compile(
    r"'s |,| ?\(| (?:and|but|then|who|which|that|in|of|at|from|to|is|was|are|were) | (?:formerly|aka|n[ée]e|also known)"
)
WHO = re.compile(r",? (?:who|which|that) ")
CLAUSE = re.compile(r", (?:but|and|so|yet)\b|;")
SENTENCE = re.compile(r"[.!?\n]\s")
# Where the end of a question is looked for.
LONGEST_SENTENCE = 400
ASKED = re.compile(r"[^.!?\n]*\?")
# A condition or a doubt before a statement.
DOUBTED = re.compile(
    r"\b(?:(?i:if|whether|unless|maybe|perhaps|nobody|imagine)|might|may|could|would|should|wants? to"
    r"|hopes? to|plans? to|never|not|no longer|denie[ds]|wish|wishes|pretends?|dreams? of|rumou?r|doubts?)\b"
    r"|n['\u2019]t\b"
)
AFTER_KIN = re.compile(rf"['\u2019]s?(?: [\w-]+)? (?P<noun>{KIN})\b")
AFTER_BOTH = re.compile(
    r" (?:are|were|have been|became|got) (?:[\w-]+ )?(?P<noun>friends|colleagues|siblings|sisters|brothers"
    r"|cousins|married|engaged|neighbou?rs"
    r"|roommates|classmates|partners|twins|rivals|flatmates|coworkers|co-workers|teammates)\b"
)
BOTH = {"married": "married_to", "engaged": "engaged_to", "twins": "sibling_of", "neighbours": "neighbor_of"}
SMALL = frozenset(["of", "the", "and", "for", "de", "la", "du", "des", "von", "und", "y"])


def relations(text: str, mentions: Sequence[Mention], speaker: str | None) -> tuple[Relation, ...]:
    """The relations, in order of their passages; each once.

    Args:
        text: The text.
        mentions: Its names, in order.
        speaker: Name for whom "I" stands; None for nobody.
    """
    known = anchors(text, mentions, speaker)
    kept: dict[tuple[str, str, str], Relation] = {}
    for relation in (*_stated(text, known), *causes(text, known)):
        key = relation[:3]
        if relation.source_name != relation.target_name and key not in kept:
            kept[key] = relation
        if len(kept) == MOST_RELATIONS:
            break
    return tuple(sorted(kept.values(), key=lambda one: (one.start, one.end, one.link_type)))


def _stated(text: str, known: Sequence[Anchor]) -> Iterator[Relation]:
    """The relations between neighbouring anchors."""
    for place in range(1, len(known)):
        left, right = known[place - 1], known[place]
        gap = text[left.end : right.start].replace("\u2019", "'")
        if left.sentence != right.sentence or right.pronoun or len(gap) > LONGEST_GAP:
            continue
        gap = "'s" + gap if left.possessive else gap
        if (
            not left.pronoun
            and PREPOSITION.search(text, max(0, left.start - 12), left.start)
            and not OF_OBJECT.match(gap)
        ):
            continue
        found = list(_of_pair(text, known, place, gap))
        if found and not _doubted(text, known, place):
            yield from found


def _doubted(text: str, known: Sequence[Anchor], place: int) -> bool:
    """True in a question, and after a condition or a negation in the same sentence."""
    right = known[place]
    first = place - 1
    while first > 0 and known[first - 1].sentence == right.sentence:
        first -= 1
    sentence = text[known[first].start : right.start]
    before = text[max(0, known[first].start - 40) : known[first].start]
    if DOUBTED.search(SENTENCE.split(before)[-1]) or DOUBTED.search(CLAUSE.split(sentence)[-1]):
        return True
    return ASKED.match(text, right.end, right.end + LONGEST_SENTENCE) is not None


def _of_pair(text: str, known: Sequence[Anchor], place: int, gap: str) -> Iterator[Relation]:
    left, right = known[place - 1], known[place]
    yield from _brackets(left, right, gap)
    yield from _kin_after(text, known, place, gap)
    for where, words in _readings(text, known, place, gap):
        subject = known[where]
        pattern, noun = _pattern(words, subject.entity_type, right.entity_type)
        if pattern is None:
            continue
        link = pattern.link_type or SAME_KIN.get(noun, f"{noun.replace('-', '_')}_of")
        subjects = [subject, *_together(text, known, where)] if not pattern.reverse else [subject]
        for one in subjects:
            yield _relation(one, right, link, pattern)
        for other in _more_objects(text, known, place):
            yield _relation(subject, other, link, pattern)
        return


def _relation(subject: Anchor, thing: Anchor, link: str, pattern: Pattern) -> Relation:
    source, target = (thing, subject) if pattern.reverse else (subject, thing)
    confidence = round(pattern.confidence * subject.doubt * thing.doubt, 3)
    start, end = min(subject.start, thing.start), max(subject.end, thing.end)
    return Relation(source.name, target.name, link, start, end, confidence)


def _readings(text: str, known: Sequence[Anchor], place: int, gap: str) -> Iterator[tuple[int, str]]:
    """Places of the subjects that the words before a name may have, with those words.

    The subject is the name before, or one further before in the sentence.
    """
    before = place - 1
    kind = KIND.match(gap)
    gap = gap if kind is None else gap[kind.end() :]
    sentence = known[before].sentence
    if gap == " to " and before > 0 and known[before - 1].sentence == sentence:
        yield before - 1, f"{text[known[before - 1].end : known[before].start].strip()} Xx to"
    described = DESCRIPTION.match(gap)
    if described is not None:
        yield before, gap[described.end() :].strip()
    who = WHO.match(gap)
    if who is not None:
        yield before, gap[who.end() :].strip()
    carried = CARRIED.match(gap)
    if carried is not None:
        first = before
        while first > max(0, before - MOST_CARRIED) and known[first - 1].sentence == sentence:
            first -= 1
        for subject in dict.fromkeys((first, *range(before - 1, first - 1, -1))):
            if not known[subject].possessive:
                yield subject, gap[carried.end() :].strip()
    yield before, gap.strip()


@cache
def _of_types(left: str, right: str) -> re.Pattern[str] | None:
    """The patterns that allow two types, as one."""
    allowed = [
        f"(?P<p{number}>{pattern.words})"
        for number, pattern in enumerate(PATTERNS)
        if left in pattern.left and right in pattern.right
    ]
    return re.compile("|".join(allowed)) if allowed else None


def _pattern(words: str, left: str, right: str) -> tuple[Pattern | None, str]:
    """The first pattern of the words between two names of these types, and the noun in it."""
    compiled = _of_types(left, right)
    found = None if compiled is None else compiled.fullmatch(words)
    if found is None or found.lastgroup is None:
        return None, ""
    groups = found.groupdict()
    noun = groups.get("noun") or groups.get("noun1") or ""
    return PATTERNS[int(found.lastgroup[1:])], noun.replace("neighbour", "neighbor")


def _together(text: str, known: Sequence[Anchor], place: int) -> list[Anchor]:
    """The anchors before a subject that share its verb."""
    found: list[Anchor] = []
    subject = known[place]
    while place > 0 and len(found) < MOST_TOGETHER:
        other, later = known[place - 1], known[place]
        if other.possessive and place > 1:
            other = known[place - 2]
            place -= 1
        same = other.entity_type == subject.entity_type and other.sentence == subject.sentence
        if not same or AND.fullmatch(text[other.end : later.start].rstrip()) is None:
            break
        found.append(other)
        place -= 1
    return found


def _more_objects(text: str, known: Sequence[Anchor], place: int) -> list[Anchor]:
    """The anchors after an object that share its verb; those that a verb follows begin another clause."""
    found: list[Anchor] = []
    while place + 1 < len(known) and len(found) < MOST_TOGETHER:
        here, after = known[place], known[place + 1]
        joined = AND.fullmatch(text[here.end : after.start].rstrip()) is not None
        if not joined or after.entity_type != here.entity_type or after.pronoun:
            break
        if (
            text[after.end : after.end + 1] == " "
            and text[after.end + 1 : after.end + 2].islower()
            and here.entity_type == PERSON
        ):
            break
        found.append(after)
        place += 1
    return found


def _kin_after(text: str, known: Sequence[Anchor], place: int, gap: str) -> Iterator[Relation]:
    """Yield the relation of "Ana is Ben's sister" and of "Ana and Ben are cousins"."""
    left, right = known[place - 1], known[place]
    if left.entity_type != PERSON or right.entity_type != PERSON:
        return
    confidence = round(0.9 * left.doubt * right.doubt, 3)
    after = AFTER_KIN.match(text, right.end)
    if after is not None and gap.strip() in {"is", "was", ",", "became", ", who is", "is also"}:
        noun = after["noun"].replace("neighbour", "neighbor")
        link = SAME_KIN.get(noun, f"{noun.replace('-', '_')}_of")
        yield Relation(left.name, right.name, link, left.start, after.end(), confidence)
    both = AFTER_BOTH.match(text, right.end)
    if both is not None and gap.strip() in {"and", "&"}:
        noun = both["noun"]
        link = BOTH.get(noun, f"{noun.removesuffix('s').replace('-', '_')}_of")
        yield Relation(
            left.name, right.name, SAME_KIN.get(noun.removesuffix("s"), link), left.start, both.end(), confidence
        )


def _brackets(left: Anchor, right: Anchor, gap: str) -> Iterator[Relation]:
    """Yield the relation of a name and its initials: "World Health Organization (WHO)"."""
    if gap.strip() not in {"(", '("', '"', "\u201c"}:
        return
    if _initials(left.name) == right.name.upper() or _initials(right.name) == left.name.upper():
        short, full = (right, left) if len(right.name) < len(left.name) else (left, right)
        yield Relation(short.name, full.name, "alias_of", left.start, right.end, 0.95)


def _initials(name: str) -> str:
    return "".join(word[0] for word in name.split() if word not in SMALL).upper()
