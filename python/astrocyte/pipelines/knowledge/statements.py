"""Statements in memories, found by rules: who, what, and whether it is denied.

A statement is a sentence of a subject, a known verb and an object, or one that states an amount of an attribute. In the
first person the subject is the speaker, and the text tells of the speaker in the third person. Questions, wishes and
conditions are no statements.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass

from astrocyte.core import split_sentences
from astrocyte.model import ObservationKind
from astrocyte.pipelines.knowledge.attributes import attribute
from astrocyte.pipelines.knowledge.claims import Claim, Relation, level_of, may_be_place
from astrocyte.pipelines.text.content_words import content_words

# Sentences of a memory that are read.
MOST_SENTENCES = 64
# Words of an object: a longer one says several things.
MOST_OBJECT_WORDS = 14
TOPIC_BYTES = 16
# Confidence in a statement of a known subject, and in one of "I" that nobody is known to have said.
SURE, UNSURE = 0.8, 0.7

NAME = r"[A-Z][\w\u2019'-]*(?:[ ][A-Z][\w\u2019'-]*){0,2}"
ADVERBS = r"(?:(?:really|also|still|just|absolutely|definitely|truly|now|currently|always|usually|often|generally)[ ])*"
# What is denied, before the verb or after a form of "to be".
DENIED = r"(?:do not|don['\u2019]t|does not|doesn['\u2019]t|did not|didn['\u2019]t|never|no longer)"
SENTENCE = re.compile(
    rf"^(?:(?i:well|yes|yeah|so|and|but|oh|actually|honestly),?[ ])?(?P<subject>I|The (?:user|customer)|{NAME})[ ]"
    rf"(?P<before>{ADVERBS})(?:(?P<denied>{DENIED})[ ])?(?P<adverbs>{ADVERBS})(?P<rest>[^?]+)$"
)
CONTRACTED = re.compile(r"\bI['\u2019]m\b")
# The object ends where another clause begins. "Since 2019" and "anything but meat" are parts of it.
CLAUSE_END = re.compile(
    r"[.!;:\u2014(]|,|[ ](?:because|although|though|while|whenever|when|so that|and (?:I|he|she|they|we|it))\b"
    r"|(?<!thing)(?<!body)(?<!one)(?<!all)[ ]but\b|[ ]since\b(?-i:(?![ ](?:\d|[A-HJ-Z]|last\b|then\b)))",
    re.IGNORECASE,
)
HABITUALLY = re.compile(r"always|usually")
# How often, or whether nothing else: it is a part of what a statement claims.
FREQUENCY = re.compile(r"always|usually|often|generally|just")
# An exception, or a condition, behind the object. Of an event, "when" is its time.
EXCEPTION = r"^[\W_]*(?:(?:but|and)[ ])?(?:except|unless|only|if|as long as|provided|apart from|other than"
CONDITIONS = {
    True: re.compile(rf"{EXCEPTION})\b", re.IGNORECASE),
    False: re.compile(rf"{EXCEPTION}|when|whenever|while)\b", re.IGNORECASE),
}
# Adverbs of time at the end of an object: they say that the statement holds, as its verb does.
AT_PRESENT = re.compile(r"(?:[ ](?:now|currently|today|these days|at the moment|right now|too|also|as well))+$")
# When and why something began, behind a name.
CIRCUMSTANCES = re.compile(
    r"(?:[ ](?:(?:(?:for|with|from)[ ].+)|yesterday|today|recently|(?:last|this|earlier this)[ ]\w+|\w+[ ]\w+[ ]ago"
    r"|(?:in|on|at)[ ](?:the[ ])?(?:\d|[A-Z]|end|beginning|start|spring|summer|autumn|fall|winter)[\w ]*))+$"
)
# Of a name alone: words with capitals, joined by at most one particle.
_WORD_OF_NAME = r"[A-Z][\w\u2019'&.-]*"
_JOINING = r"(?:(?:of|and|the|upon|de|del|la|le|van|von|am|&)[ ])?"
ONLY_NAME = re.compile(rf"^(?:[Tt]he[ ])?{_WORD_OF_NAME}(?:[ ]{_JOINING}{_WORD_OF_NAME})*$")
# What no two statements that agree may differ in, whatever the stems say.
NAMES_AND_NUMBERS = re.compile(r"\b(?:[A-Z][\w-]*|\w*\d\w*)\b")
# Words that begin a sentence with a capital and are no name.
NO_NAMES = frozenset({
    "he", "she", "it", "we", "they", "you", "this", "that", "these", "those", "there", "here", "who", "what", "which",
    "everyone", "everybody", "someone", "somebody", "nobody", "people", "my", "our", "your", "his", "her", "their",
    "the", "a", "an", "if", "when", "thanks", "hey", "hi", "wow", "just",
    "also", "still", "finally", "recently", "today", "yesterday", "last", "next", "would", "could", "should",
})  # fmt: skip
# An object of these alone says nothing.
EMPTY_OBJECT = re.compile(r"^(?:it|that|this|them|him|her|you|me|us|so|these|those|both|all|too|much|lot|a lot)*$")
# An object with another clause in it, or with something that only the conversation names.
OF_OTHERS = re.compile(
    r"^(?:that|this|these|those|it|how|what|when|if)\b|\b(?:I|[Yy]ou|[Yy]ours?|[Ww]e|[Uu]s|[Oo]urs?)\b"
)
FIRST_PERSON = re.compile(r"\b(?:my|mine|me|myself)\b", re.IGNORECASE)
HABITUAL = re.compile(
    r"\b(?:every|each) (?:\w+)|\bon (?:mon|tues|wednes|thurs|fri|satur|sun)days\b|\bonce a (?:day|week|month|year)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class _Verb:
    predicate: str
    kind: ObservationKind
    relation: Relation
    # Whether the verb itself denies the predicate.
    denies: bool = False
    # The state in which an event leaves its subject. It takes the place of an earlier one, as a later state does.
    begins: str = ""


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement.

    ``topic`` is a digest of what two statements share that agree or contradict each other. ``confidence`` is lower for
    a statement in the first person without a known speaker.
    """

    text: str
    kind: ObservationKind
    topic: bytes
    claim: Claim
    confidence: float

    def agrees(self, other: Statement) -> bool:
        """True if two statements say the same."""
        return self.topic == other.topic and self.claim.agrees(other.claim)

    def contradicts(self, other: Statement) -> bool:
        """True if two statements cannot hold at the same time."""
        return self.topic == other.topic and self.claim.contradicts(other.claim)


_PREFERENCE, _STATE, _EVENT = ObservationKind.PREFERENCE, ObservationKind.STATE, ObservationKind.EVENT
_MANY, _ONE = Relation.MANY, Relation.ONE
# Base form, and what it states. Longer forms come first where one begins with the other.
_VERBS: dict[str, _Verb] = {
    "prefer": _Verb("like", _PREFERENCE, _MANY),
    "like": _Verb("like", _PREFERENCE, _MANY),
    "love": _Verb("like", _PREFERENCE, _MANY),
    "enjoy": _Verb("like", _PREFERENCE, _MANY),
    "adore": _Verb("like", _PREFERENCE, _MANY),
    "hate": _Verb("like", _PREFERENCE, _MANY, denies=True),
    "dislike": _Verb("like", _PREFERENCE, _MANY, denies=True),
    "avoid": _Verb("use", _PREFERENCE, _MANY, denies=True),
    "live in": _Verb("live", _STATE, _ONE),
    "work at": _Verb("work at", _STATE, _ONE),
    "work for": _Verb("work at", _STATE, _ONE),
    "work as": _Verb("work as", _STATE, _MANY),
    "own": _Verb("own", _STATE, _MANY),
    "use": _Verb("use", _STATE, _MANY),
    "speak": _Verb("speak", _STATE, _MANY),
    "study": _Verb("study", _STATE, _MANY),
    "play": _Verb("play", _STATE, _MANY),
    "collect": _Verb("collect", _STATE, _MANY),
    "volunteer at": _Verb("volunteer", _STATE, _MANY),
    "need": _Verb("need", _STATE, _MANY),
    "drink": _Verb("drink", _STATE, _MANY),
    "eat": _Verb("eat", _STATE, _MANY),
    "moved to": _Verb("moved", _EVENT, _MANY, begins="live in"),
    "bought": _Verb("bought", _EVENT, _MANY),
    "adopted": _Verb("adopted", _EVENT, _MANY),
    "visited": _Verb("visited", _EVENT, _MANY),
    "went to": _Verb("went", _EVENT, _MANY),
    "started working at": _Verb("started", _EVENT, _MANY, begins="work at"),
    "started working for": _Verb("started", _EVENT, _MANY, begins="work for"),
    "started": _Verb("started", _EVENT, _MANY),
    "joined": _Verb("joined", _EVENT, _MANY),
    "attended": _Verb("attended", _EVENT, _MANY),
    "finished": _Verb("finished", _EVENT, _MANY),
    "won": _Verb("won", _EVENT, _MANY),
    "signed up for": _Verb("signed up", _EVENT, _MANY),
}
# After "am", "is" and "are"; no word of the object is the verb's.
_BEING: dict[str, _Verb] = {
    "allergic to": _Verb("allergic", _STATE, _MANY),
    "fond of": _Verb("like", _PREFERENCE, _MANY),
    "afraid of": _Verb("afraid", _STATE, _MANY),
    "interested in": _Verb("interested", _PREFERENCE, _MANY),
    "married to": _Verb("married", _STATE, _ONE),
    "from": _Verb("from", _STATE, _ONE),
}
BEING = re.compile(r"^(?:am|is|are)[ ](?P<denied>not[ ])?(?P<words>" + "|".join(_BEING) + r")[ ](?P<object>.+)$")


def _forms() -> Iterator[tuple[str, str]]:
    """Each form of a verb with its base form."""
    for base, verb in _VERBS.items():
        yield base, base
        head, _, tail = base.partition(" ")
        if verb.kind is not _EVENT:
            yield f"{_third(head)} {tail}".strip(), base


def _third(verb: str) -> str:
    """The third person of a verb."""
    if verb.endswith(("s", "sh", "ch", "x", "o")):
        return f"{verb}es"
    return f"{verb[:-1]}ies" if verb.endswith("y") and verb[-2:-1] not in set("aeiou") else f"{verb}s"


_FORMS = dict(_forms())
VERB = re.compile(rf"^(?P<verb>{'|'.join(sorted(map(re.escape, _FORMS), key=len, reverse=True))})[ ](?P<object>.+)$")


def statements(content: str, speaker: str | None) -> list[Statement]:
    """The statements of a memory, without repeats, in its order."""
    found: list[Statement] = []
    for sentence in split_sentences(content, every_stop=True)[:MOST_SENTENCES]:
        one = _statement(" ".join(sentence.split()), speaker)
        if one is not None and not any(one.agrees(other) for other in found):
            found.append(one)
    return found


def _statement(sentence: str, speaker: str | None) -> Statement | None:
    sentence = CONTRACTED.sub("I am", sentence)
    if sentence.endswith("?"):
        return None
    match = SENTENCE.match(sentence)
    subject = match["subject"] if match is not None else ""
    is_own = subject == "I"
    if match is None or (not is_own and not subject.startswith("The ") and _is_no_name(subject)):
        return _of_attribute(sentence, speaker)
    read = _predicate(match)
    if read is None:
        return _of_attribute(sentence, speaker)
    verb, rest, denied = read
    thing = CLAUSE_END.split(rest, maxsplit=1)[0].strip()
    object_ = thing if verb.kind is _EVENT else AT_PRESENT.sub("", thing)
    words = _words(object_)
    conditions = CONDITIONS[verb.kind is _EVENT]
    if not words or (is_own and speaker is None and FIRST_PERSON.search(thing)) or conditions.match(rest[len(thing) :]):
        return None
    who = speaker.strip() if is_own and speaker and speaker.strip() else subject
    adverbs = f"{match['before']}{match['adverbs']}"
    habitual = HABITUAL.search(thing) or HABITUALLY.search(adverbs)
    claim, subjects = _claim(verb, object_, words, adverbs, is_denied=denied != verb.denies)
    return Statement(
        text=_told(sentence, match, rest, thing, who),
        kind=ObservationKind.HABIT if habitual and verb.kind is not _EVENT else verb.kind,
        topic=_topic(who, subjects),
        claim=claim,
        confidence=UNSURE if who == "I" else SURE,
    )


def _of_attribute(sentence: str, speaker: str | None) -> Statement | None:
    """The statement of an amount: "My rent is 850 pounds a month"."""
    found = attribute(sentence)
    if found is None or (found.owner and _is_no_name(found.owner)):
        return None
    known = found.owner or (speaker or "").strip()
    return Statement(
        text=f"{known}'s {found.text}." if known else f"{found.possessive} {found.text}.",
        kind=_STATE,
        topic=_topic(known or "I", found.subjects),
        claim=found.claim,
        confidence=SURE if known else UNSURE,
    )


def _topic(who: str, subjects: tuple[str, ...]) -> bytes:
    return hashlib.blake2b("\x1f".join((who.casefold(), *subjects)).encode(), digest_size=TOPIC_BYTES).digest()


def _claim(
    verb: _Verb, object_: str, words: tuple[str, ...], adverbs: str, *, is_denied: bool
) -> tuple[Claim, tuple[str, ...]]:
    """The claim of a statement, and its part of the topic."""
    frequency = " ".join(sorted(FREQUENCY.findall(adverbs)))
    began = None if is_denied else _state_after(verb, object_)
    if began is not None:
        # Two moves to one town at two times are two events.
        frequency = object_[len(began[1]) :].strip().casefold()
        verb, object_ = began
        words = _words(object_)
    level = level_of(object_) if verb.relation is Relation.ONE and ONLY_NAME.match(object_) else None
    relation = Relation.MANY if level is None else Relation.ONE
    claim = Claim(words, object_, frequency, is_denied, relation)
    return claim, (verb.predicate, *(words if level is None else (level,)))


def _state_after(verb: _Verb, object_: str) -> tuple[_Verb, str] | None:
    """The state that an event begins, and its object; None where it begins none, or one of no known object."""
    name = CIRCUMSTANCES.sub("", object_) if verb.begins else ""
    if not name or not ONLY_NAME.match(name):
        return None
    state = _VERBS[verb.begins]
    # Who moved to Sales, to Slack or to Google lives where he lived.
    return (state, name) if state.predicate != "live" or may_be_place(name) else None


def _predicate(match: re.Match[str]) -> tuple[_Verb, str, bool] | None:
    """The verb of a sentence, what follows it, and whether it is denied; None where the verb is not known."""
    being = BEING.match(match["rest"])
    if being is not None:
        # "Does not" and "is" are no sentence together.
        if match["denied"] not in {None, "no longer", "never"}:
            return None
        return _BEING[being["words"]], being["object"], bool(match["denied"] or being["denied"])
    found = VERB.match(match["rest"])
    if found is None:
        return None
    base = _FORMS[found["verb"]]
    verb, does = _VERBS[base], (match["denied"] or "").startswith("d")
    # "Seems like" is no statement of Seems: a name has its verb in the third person, or "does" before it.
    if verb.kind is not _EVENT and (match["subject"] == "I" or does) != (found["verb"] == base):
        return None
    return verb, found["object"], bool(match["denied"])


def _words(thing: str) -> tuple[str, ...]:
    """Stems, names and numbers of an object; empty where it says nothing, or too much."""
    if len(thing.split()) > MOST_OBJECT_WORDS or EMPTY_OBJECT.match(thing.casefold()) or OF_OTHERS.search(thing):
        return ()
    stems = content_words(thing)
    return (*stems, *sorted(name.casefold() for name in NAMES_AND_NUMBERS.findall(thing))) if stems else ()


def _is_no_name(subject: str) -> bool:
    words = subject.casefold().replace("\u2019", "'").split()
    # "Swimming", "It's" and "Last Friday I" begin sentences that are about something else.
    return words[0] in NO_NAMES or "'" in words[0] or "i" in words or (len(words) == 1 and words[0].endswith("ing"))


# First persons and what they become of somebody.
_PERSONS = {"my": "their", "mine": "theirs", "me": "them", "myself": "themselves"}
_BE = {"am": "is", "don't": "doesn't", "don\u2019t": "doesn\u2019t", "do": "does"}


def _told(sentence: str, match: re.Match[str], rest: str, thing: str, who: str) -> str:
    """The statement as a sentence: as it was said up to its clause's end, of the speaker in the third person."""
    start = match.start("subject")
    end = sentence.index(rest, match.start("rest")) + len(rest[: len(rest) - len(rest.lstrip())]) + len(thing)
    said = sentence[start:end].strip()
    if who == match["subject"]:
        return f"{said}."
    words = said.split(" ")[1:]
    told = [FIRST_PERSON.sub(lambda found: _PERSONS[found[0].lower()], word) for word in words]
    # The verb, or "do" before it, stands behind the adverbs; "never" and "no longer" are like adverbs.
    denied = match["denied"] or ""
    place = len(match["before"].split())
    if not denied.startswith("d"):
        place += len(denied.split()) + len(match["adverbs"].split())
    if place < len(told):
        told[place] = _conjugated(told[place])
    return f"{who} {' '.join(told)}."


def _conjugated(word: str) -> str:
    """The first verb of a sentence in the third person; past forms stay."""
    if word in _BE:
        return _BE[word]
    known = any(form.split(" ")[0] == word for form in _VERBS if _VERBS[form].kind is not _EVENT)
    return _third(word) if known else word
