"""Resolution of names: what is one entity, in which direction, and what is left apart."""

from itertools import combinations, permutations

import pytest

from astrocyte.model.derived.graph import KnownEntity
from astrocyte.pipelines.graph.resolution import MOST_KEYS, blocking_keys, resolve, resolve_each
from benches.entities.pairs import pairs


def entity(name: str, kind: str = "PERSON", identity: str | None = None, *aliases: str) -> KnownEntity:
    return KnownEntity(identity or f"{kind.lower()}:{name.lower()}", name, kind, aliases)


def resolved(*known: KnownEntity) -> set[tuple[str, str, str]]:
    found = [one for each in known for one in resolve([each], known)]
    names = {one.id: one.name for one in known}
    return {(names[one.entity], names[one.alias_of], one.reason) for one in found}


def test_short_form_resolves_to_the_full_name() -> None:
    assert resolved(entity("Alice"), entity("Alice Smith")) == {
        ("Alice", "Alice Smith", "only person with that given name")
    }


@pytest.mark.parametrize("short", ["A. Smith", "Smith", "Alice"])
def test_ambiguous_names_are_left_apart(short: str) -> None:
    others = ("Alice Smith", "Adam Smith") if short != "Alice" else ("Alice Smith", "Alice Jones")
    assert resolved(entity(short), *map(entity, others)) == set()


def test_two_forms_of_one_name_are_not_ambiguous() -> None:
    found = resolved(entity("A. Smith"), entity("Alice Smith"), entity("Alice Mary Smith"))
    assert {(one, other) for one, other, _ in found} == {
        ("A. Smith", "Alice Smith"),
        ("Alice Smith", "Alice Mary Smith"),
    }


def test_name_without_type_resolves_to_the_typed_one() -> None:
    assert resolved(entity("Aurora", "NAME"), entity("Aurora", "PROJECT")) == {
        ("Aurora", "Aurora", "same name, one without type")
    }
    assert resolved(entity("Paris", "NAME"), entity("Paris", "PLACE"), entity("Paris", "PERSON")) == set()


def test_aliases_are_compared() -> None:
    known = entity("Alice Smith", "PERSON", "person:1", "Ally Johnson")
    found = resolved(known, entity("Ally Johnson"))
    assert len(found) == 1
    assert {one[2] for one in found} == {"same name"}


def test_other_types_are_never_one() -> None:
    assert resolved(entity("Ford", "ORG"), entity("Henry Ford")) == set()


def test_generations_are_kept_apart() -> None:
    assert resolved(entity("Sam Davis Jr."), entity("Sam Davis Sr.")) == set()


def test_answer_does_not_depend_on_order_nor_on_the_other_new_entities() -> None:
    known = [entity(name) for name in ("Bob Johnson", "Robert Johnson", "R. Johnson", "Johnson")]
    expected = {one for each in known for one in resolve([each], known)}
    for order in permutations(known):
        assert set(resolve(order, order)) == expected


def test_entities_are_each_compared_with_their_own_others() -> None:
    every = {n: entity(one.left, one.left_type, f"a:{n}") for n, one in enumerate(pairs("dev")[:60])}
    every |= {n + 60: entity(one.right, one.right_type, f"b:{n}") for n, one in enumerate(pairs("dev")[:60])}
    known = {key: [other for other in every if other % 3 == key % 3] for key in every if key % 2}
    expected = [found for key in known for found in resolve([every[key]], [every[other] for other in known[key]])]
    assert len(expected) > 10
    assert list(resolve_each(every, known)) == expected


def test_direction_is_antisymmetric() -> None:
    every = [entity(one.left, one.left_type, f"a:{n}") for n, one in enumerate(pairs("dev"))]
    every += [entity(one.right, one.right_type, f"b:{n}") for n, one in enumerate(pairs("dev"))]
    for left, right in combinations(every[:60], 2):
        assert len(resolve([left, right], [left, right])) <= 1


@pytest.mark.parametrize("split", ["dev", "test"])
def test_names_that_resolve_share_a_key(split: str) -> None:
    for pair in pairs("dev" if split == "dev" else "test"):
        left, right = entity(pair.left, pair.left_type, "x:1"), entity(pair.right, pair.right_type, "x:2")
        if resolve([left, right], [left, right]):
            assert blocking_keys(pair.left) & blocking_keys(pair.right), pair


def test_keys_are_bounded_and_in_lower_case() -> None:
    keys = blocking_keys(" ".join(f"Word{number}" for number in range(100)))
    assert len(keys) == MOST_KEYS
    assert all(key == key.lower() for key in keys)
    assert blocking_keys("") == frozenset() == blocking_keys("!?")


@pytest.mark.parametrize("name", ["", " ", "!!!", "@", "😀", "A", "Jr.", "x" * 5_000])
def test_any_name_is_compared(name: str) -> None:
    assert len(resolve([entity(name, "PERSON", "x")], [entity("Ann Lee"), entity(name, "PERSON", "x")])) == 0
