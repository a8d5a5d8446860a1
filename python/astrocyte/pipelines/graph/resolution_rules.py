"""Rules that decide that two names are of one entity, each with its reason and confidence."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from astrocyte.model.derived.entity import NAME
from astrocyte.pipelines.graph.names.gazetteers import nickname_table, place_table
from astrocyte.pipelines.graph.names.name_forms import SMALL, NameForm
from astrocyte.pipelines.graph.names.type_words import EVENT, LEGAL_FORMS, ORG, PERSON, PLACE, PRODUCT, PROJECT


class Match(NamedTuple):
    """A decision of a rule.

    Attributes:
        reason: The rule, in words.
        confidence: 0..1.
        exact: True if the names are the same name, so that other candidates do not make it doubtful.
    """

    reason: str
    confidence: float
    exact: bool = False


Rule = Callable[[NameForm, NameForm], Match | None]
# Words that stand for one another in names of places.
PLACE_WORDS = {"st": "saint", "mt": "mount", "ft": "fort"}
# A given name and a family name.
PAIR = 2
# Acronyms of two letters stand for too much.
SHORTEST_ACRONYM = 3
# Shorter names are alike by chance.
SHORTEST_COMPACT = 5


def match(left: NameForm, left_type: str, right: NameForm, right_type: str) -> Match | None:
    """The decision of the first rule that finds the names to be of one entity; None if none does."""
    kind = left_type if right_type == NAME else right_type
    if left_type not in {kind, NAME} or not left.words or not right.words:
        return None
    if left.generation and right.generation and left.generation != right.generation:
        return None
    if left.words == right.words:
        same = left_type == right_type
        return Match("same name" if same else "same name, one without type", 0.97 if same else 0.9, exact=True)
    for rule in RULES.get(kind, GENERAL):
        found = rule(left, right)
        if found is not None:
            return found
    return None


def _sounds(left: NameForm, right: NameForm) -> Match | None:
    if left.sounds != right.sounds:
        return None
    other = left.romanised or right.romanised
    return Match("same name in another script" if other else "same name in another spelling", 0.9, exact=True)


def _script(left: NameForm, right: NameForm) -> Match | None:
    return _sounds(left, right) if left.romanised or right.romanised else None


def _compact(left: NameForm, right: NameForm) -> Match | None:
    same = left.compact == right.compact and len(left.compact) >= SHORTEST_COMPACT
    return Match("same name without blanks", 0.92, exact=True) if same else None


def _nickname(left: NameForm, right: NameForm) -> Match | None:
    if len(left.words) < PAIR or len(left.words) != len(right.words) or left.sounds[1:] != right.sounds[1:]:
        return None
    return Match("nickname of the given name", 0.85) if same_given(left.words[0], right.words[0]) else None


def same_given(left: str, right: str) -> bool:
    """True if one is a nickname of the other, or both are nicknames of one given name."""
    table = nickname_table()
    mine, yours = table.get(left, frozenset()), table.get(right, frozenset())
    if left in yours or right in mine:
        return True
    return left not in mine and right not in yours and not mine.isdisjoint(yours)


def _initials(left: NameForm, right: NameForm) -> Match | None:
    """Match "A. Smith" and "Alice Smith", "J. R. R. Tolkien" and "John Ronald Reuel Tolkien"."""
    if len(left.words) != len(right.words) or len(left.words) < PAIR or left.sounds[-1] != right.sounds[-1]:
        return None
    shortened = 0
    for one, other in zip(left.words[:-1], right.words[:-1], strict=True):
        if one == other:
            continue
        if one[0] != other[0] or min(len(one), len(other)) > 1:
            return None
        shortened += 1
    return Match("initials of the given names", 0.8) if shortened else None


def _middle(left: NameForm, right: NameForm) -> Match | None:
    short, long = (left, right) if len(left.words) < len(right.words) else (right, left)
    if not PAIR <= len(short.words) < len(long.words):
        return None
    first = short.sounds[0] == long.sounds[0] or same_given(short.words[0], long.words[0])
    if not (first and short.sounds[-1] == long.sounds[-1]):
        return None
    rest = iter(long.words[1:-1])
    kept = all(
        any(word == other or word == other[0] or other == word[0] for other in rest) for word in short.words[1:-1]
    )
    return Match("middle name left out", 0.85) if kept else None


def _one_word(left: NameForm, right: NameForm) -> Match | None:
    short, long = (left, right) if len(left.words) < len(right.words) else (right, left)
    if len(short.words) != 1 or len(long.words) == 1 or len(short.words[0]) == 1:
        return None
    if short.sounds[0] == long.sounds[0]:
        return Match("only person with that given name", 0.75)
    return Match("only person with that family name", 0.75) if short.sounds[0] == long.sounds[-1] else None


def _legal_form(left: NameForm, right: NameForm) -> Match | None:
    same = _plain(left) == _plain(right) and _plain(left) != ()
    return Match("same organisation, other legal form", 0.92, exact=True) if same else None


def _plain(form: NameForm) -> tuple[str, ...]:
    """The words of an organisation without article and legal form."""
    words = list(form.words)
    if words[0] == "the" and len(words) > 1:
        words.pop(0)
    while len(words) > 1 and words[-1] in LEGAL_FORMS:
        words.pop()
    # "S.A." has become two letters.
    if len(words) > PAIR and words[-2:] == ["s", "a"]:
        words = words[:-2]
    return tuple(words)


def _word_order(left: NameForm, right: NameForm) -> Match | None:
    """Match "University of Oslo" and "Oslo University"."""
    if ("of" in left.words) == ("of" in right.words):
        return None
    mine, yours = ({*_plain(one)} - SMALL for one in (left, right))
    return Match("same words in another order", 0.85) if mine == yours and len(mine) > 1 else None


def _acronym(left: NameForm, right: NameForm) -> Match | None:
    short, long = (left, right) if len(left.words) < len(right.words) else (right, left)
    acronym = short.compact if len(short.words) == 1 or all(len(word) == 1 for word in short.words) else ""
    if len(acronym) < SHORTEST_ACRONYM or len(long.words) < len(acronym):
        return None
    spelled = "".join(word[0] for word in _plain(long) if word not in SMALL)
    return Match("initials of the name", 0.85) if acronym in {spelled, long.initials} else None


def _place(left: NameForm, right: NameForm) -> Match | None:
    mine, yours = (" ".join(PLACE_WORDS.get(word, word) for word in one.words) for one in (left, right))
    if mine == yours:
        return Match("same place, word written out", 0.95, exact=True)
    table = place_table()
    same = table.get(mine, mine) == table.get(yours, yours)
    return Match("other name of the place", 0.9, exact=True) if same else None


def _project(left: NameForm, right: NameForm) -> Match | None:
    mine, yours = (
        tuple(word for word in one.words if word not in {"project", "initiative", "the"}) for one in (left, right)
    )
    return Match("same project without the word project", 0.9) if mine == yours and mine else None


GENERAL: tuple[Rule, ...] = (_sounds, _compact)
RULES: dict[str, tuple[Rule, ...]] = {
    PERSON: (_sounds, _compact, _nickname, _initials, _middle, _one_word),
    ORG: (_compact, _legal_form, _word_order, _acronym),
    PLACE: (_place, _script, _compact, _acronym),
    PROJECT: (_compact, _project),
    PRODUCT: (_compact,),
    EVENT: (_compact,),
}
