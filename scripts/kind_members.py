"""Writes the lexicon of kinds of `astrocyte.pipelines.recall.asked_kinds` from WordNet 3.0.

The lexicon is committed, so this runs only to renew it, with the folder that Debian's package wordnet-base installs:

    python scripts/kind_members.py /usr/share/wordnet
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

DATA = Path(__file__).parents[1] / "python/astrocyte/pipelines/recall/data"
# Words for kinds in the plural, and the senses (as WordNet numbers them, from 1) under which their members lie.
KINDS = {
    "activities exercises hobbies interests pastimes sports workouts": (
        "diversion:1 sport:1 exercise:1 painting:1 drawing:1 sculpture:2 handicraft:1 cookery:1 gardening:1 reading:1 "
        "dancing:1 writing:1 sewing:1 photography:1 hiking:1 swimming:1 yoga:2"
    ),
    "cuisines dishes foods ingredients meals recipes snacks treats": "food:1 food:2 dish:2",
    "desserts": "dessert:1 cake:3 cookie:1 candy:1 pastry:1",
    "fruits": "edible_fruit:1",
    "vegetables": "vegetable:1",
    "beverages drinks": "beverage:1",
    "countries": "country:1 country:2",
    "cities towns": "city:1 town:1",
    "states": "state:1",
    "destinations locations places": (
        "country:1 country:2 city:1 town:1 state:1 geological_formation:1 body_of_water:1 building:1"
    ),
    "instruments": "musical_instrument:1",
    "animals pets": "domestic_animal:1",
    "careers jobs occupations professions": "occupation:1 professional:1 skilled_worker:1",
    "clothes garments outfits": "clothing:1",
    "cars vehicles": "wheeled_vehicle:1 craft:2",
    "languages": "natural_language:1",
    "emotions feelings": "emotion:1",
    "diseases illnesses symptoms": "illness:1 symptom:1",
    "injuries": "injury:1",
    "relatives": "relative:1",
    "colors colours": "color:1",
    "games": "game:1 game:3 game:4",
    "dances": "dancing:1",
    "toys": "plaything:1",
}
# Longer names are rare in speech.
MOST_WORDS = 2


def senses(folder: Path) -> dict[str, list[str]]:
    """The synsets of each noun, the most frequent sense first."""
    found = {}
    for line in lines(folder / "index.noun"):
        fields = line.split()
        found[fields[0]] = fields[6 + int(fields[3]) :]
    return found


def synsets(folder: Path) -> dict[str, tuple[list[str], list[str]]]:
    """The words and the hyponyms and instances of each synset."""
    found = {}
    for line in lines(folder / "data.noun"):
        fields = line.split(" | ")[0].split()
        count = int(fields[3], 16)
        pointers = fields[4 + 2 * count :]
        below = [pointers[at + 1] for at in range(1, len(pointers) - 3, 4) if pointers[at] in {"~", "~i"}]
        found[fields[0]] = fields[4 : 4 + 2 * count : 2], below
    return found


def lines(path: Path) -> Iterator[str]:
    """The lines of a file of WordNet without its licence, which is indented."""
    return (line for line in path.read_text(encoding="latin-1").splitlines() if not line.startswith("  "))


def members(roots: str, of_noun: dict[str, list[str]], nouns: dict[str, tuple[list[str], list[str]]]) -> list[str]:
    """The nouns whose most frequent sense lies under one of the roots."""
    names = [root.split(":") for root in roots.split()]
    left = [of_noun[word][int(number) - 1] for word, number in names]
    below: set[str] = set()
    while left:
        if (one := left.pop()) not in below:
            below.add(one)
            left += nouns[one][1]
    found = {word.lower() for one in below for word in nouns[one][0]}
    return sorted(
        word.replace("_", " ")
        for word in found
        if of_noun.get(word, [""])[0] in below
        and word.count("_") < MOST_WORDS
        and word.replace("_", "").replace("-", "").isalpha()
    )


def main() -> None:
    """Write the lexicon."""
    folder = Path(sys.argv[1])
    of_noun, nouns = senses(folder), synsets(folder)
    kinds = (f"{kind}: {'; '.join(members(roots, of_noun, nouns))}\n" for kind, roots in KINDS.items())
    (DATA / "kind_members.txt").write_text("".join(kinds), encoding="utf-8")


if __name__ == "__main__":
    main()
