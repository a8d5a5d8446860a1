"""The scopes that a memory is consolidated in: the whole bank, its tags, and the entities that it names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from unicodedata import normalize

from astrocyte.model import BANK_SCOPE, ENTITY_SCOPE, TAG_SCOPE, Entity, Memory

# Stands for every tag, or every entity.
ANY = "*"

Scopes = Callable[[Memory], Sequence[str]]


def normalised(scope: str) -> str:
    """A configured scope in the form in which items are stored."""
    if scope == BANK_SCOPE:
        return scope
    prefix = TAG_SCOPE if scope.startswith(TAG_SCOPE) else ENTITY_SCOPE
    name = normalize("NFC", scope[len(prefix) :])
    # An id such as person:alice-smith names the entity after its type.
    return prefix + (name if prefix == TAG_SCOPE or name == ANY else _folded(name.rpartition(":")[2]))


def scopes_of(memory: Memory, wanted: Sequence[str]) -> list[str]:
    """The scopes of a memory among those that are wanted, the bank first, then by name.

    Args:
        memory: With its tags and entities.
        wanted: Scopes as `normalised` returns them; ``tag:*`` and ``entity:*`` stand for all.
    """
    tags = {TAG_SCOPE + tag for tag in memory.tags}
    # A name that no scope spells as the store compares it, such as "a - b", has no scope.
    entities = {ENTITY_SCOPE + name for one in memory.entities if (name := _folded(one.name)) == _stored(one)}
    found: set[str] = set()
    for scope in wanted:
        if scope == TAG_SCOPE + ANY:
            found |= tags
        elif scope == ENTITY_SCOPE + ANY:
            found |= entities
        elif scope == BANK_SCOPE or scope in tags or scope in entities:
            found.add(scope)
    return sorted(found, key=lambda scope: (scope != BANK_SCOPE, scope))


def _folded(name: str) -> str:
    """The name of an entity as scopes compare it: hyphens and blanks are alike."""
    return Entity(name.replace("-", " ")).folded


def _stored(entity: Entity) -> str:
    return entity.folded.replace("-", " ")
