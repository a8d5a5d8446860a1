"""Resolution of names: the entities of one bank that are the same under several names, by rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from astrocyte.model.derived.entity import NAME
from astrocyte.model.derived.graph import KnownEntity, Resolution
from astrocyte.pipelines.graph.names.gazetteers import place_table
from astrocyte.pipelines.graph.names.name_forms import SMALL, NameForm, name_form
from astrocyte.pipelines.graph.names.type_words import LEGAL_FORMS
from astrocyte.pipelines.graph.resolution_rules import (
    PLACE_WORDS,
    SHORTEST_ACRONYM,
    Match,
    match,
)

MOST_KEYS = 16
# Names of an entity that are compared.
MOST_NAMES = 8


def blocking_keys(name: str) -> frozenset[str]:
    """Keys of a name, at most `MOST_KEYS`; two names that a rule may resolve share at least one."""
    form = name_form(name)
    if not form.words:
        return frozenset()
    places = " ".join(PLACE_WORDS.get(word, word) for word in form.words)
    keys = [
        f"={form.compact}",
        f"={''.join(form.initials)}" if len(form.words) >= SHORTEST_ACRONYM else f"={form.compact}",
        f"@{place_table().get(places, places)}",
        *(key for key in form.sounds if len(key) > 1 and key not in SMALL and key not in LEGAL_FORMS),
    ]
    return frozenset(list(dict.fromkeys(keys))[:MOST_KEYS])


def resolve(new: Sequence[KnownEntity], known: Sequence[KnownEntity]) -> tuple[Resolution, ...]:
    """The entities among ``known`` of which each of ``new`` is another name.

    The answer for an entity depends on it and on the set ``known`` only. A name is resolved to a fuller one, never
    the other way round, and not at all where two different entities may be meant.

    Args:
        new: Entities to resolve.
        known: Entities of the same bank; an entity itself among them is passed over.
    """
    compared = [_Compared.of(other) for other in known]
    found = (_resolution(_Compared.of(entity), compared) for entity in new)
    return tuple(resolution for resolution in found if resolution is not None)


def resolve_each(entities: Mapping[int, KnownEntity], known: Mapping[int, Sequence[int]]) -> tuple[Resolution, ...]:
    """As `resolve`, for entities that are each compared with others of the same mapping.

    Args:
        entities: Entities of one bank, by key. Their names are normalised once, which is most of the work.
        known: The keys of the entities with which an entity is compared, by its key.
    """
    compared = {key: _Compared.of(entity) for key, entity in entities.items()}
    found = (_resolution(compared[key], [compared[other] for other in others]) for key, others in known.items())
    return tuple(resolution for resolution in found if resolution is not None)


class _Compared(NamedTuple):
    """An entity with the forms of its names, and its place in the order of names."""

    entity: KnownEntity
    forms: tuple[NameForm, ...]
    fullness: tuple[bool, bool, int, int]

    @classmethod
    def of(cls, entity: KnownEntity) -> _Compared:
        forms = tuple(map(name_form, (entity.name, *entity.aliases)[:MOST_NAMES]))
        return cls(entity, forms, _fullness(entity, forms[0]))

    def stands_for(self, other: _Compared) -> bool:
        """True if this is the main name of the two; of equals, the one with the smaller id."""
        if self.fullness != other.fullness:
            return self.fullness > other.fullness
        return self.entity.id < other.entity.id


def _resolution(entity: _Compared, known: Sequence[_Compared]) -> Resolution | None:
    others = [other for other in known if other.entity.id != entity.entity.id and other.stands_for(entity)]
    matches = [(found, other) for other in others if (found := _best_match(entity, other)) is not None]
    if any(found.exact for found, _ in matches):
        matches = [one for one in matches if one[0].exact]
    if not matches:
        return None
    matches.sort(key=lambda one: one[1].entity.id)
    found, best = max(matches, key=lambda one: (one[0].confidence, one[1].fullness))
    if any(other is not best and _best_match(other, best) is None for _, other in matches):
        return None
    return Resolution(entity.entity.id, best.entity.id, found.reason, found.confidence)


def _best_match(left: _Compared, right: _Compared) -> Match | None:
    """The most confident match between the names and aliases of two entities."""
    kinds = left.entity.entity_type, right.entity.entity_type
    matches = (match(one, kinds[0], other, kinds[1]) for one in left.forms for other in right.forms)
    return max((found for found in matches if found is not None), key=lambda one: one.confidence, default=None)


def _fullness(entity: KnownEntity, form: NameForm) -> tuple[bool, bool, int, int]:
    """Order of names: with a type before without, written before handles, more and longer words before fewer."""
    written = sum(len(word) > 1 and word not in LEGAL_FORMS for word in form.words)
    return entity.entity_type != NAME, not form.handle, written, len(form.compact)
