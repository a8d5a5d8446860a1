"""Documents with known findings, and how well a scanner finds them."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Literal

from benches.pii.templates import FILLERS, NEGATIVES, TEMPLATES
from benches.pii.values import MAKERS, digits

Split = Literal["development", "held_out"]
# A type, and the characters that it stands at.
Found = tuple[str, int, int]
Scan = Callable[[str], Iterable[Found]]
SEED = 20_250_301


@dataclass(frozen=True, slots=True)
class Document:
    """A text, and all that is to be found in it."""

    text: str
    expected: tuple[Found, ...] = ()


@dataclass(slots=True)
class Score:
    """Counts by type: what was there, what was found of it, and what was found that was not there."""

    there: Counter[str] = field(default_factory=Counter)
    right: Counter[str] = field(default_factory=Counter)
    wrong: Counter[str] = field(default_factory=Counter)
    negatives: int = 0
    # Hard documents in which anything was found.
    alarms: int = 0
    examples: list[str] = field(default_factory=list)

    def recall(self, names: Sequence[str]) -> float:
        """Share of what was there that was found."""
        return sum(self.right[name] for name in names) / max(1, sum(self.there[name] for name in names))

    def precision(self, names: Sequence[str]) -> float:
        """Share of what was found that was there."""
        right = sum(self.right[name] for name in names)
        return right / max(1, right + sum(self.wrong[name] for name in names))

    def add(self, document: Document, found: set[Found]) -> None:
        """Count one document; a finding is right when its type and both its ends are."""
        expected = set(document.expected)
        self.there.update(name for name, *_ in expected)
        self.right.update(name for name, *_ in found & expected)
        self.wrong.update(name for name, *_ in found - expected)
        if found != expected:
            self.examples.append(f"{sorted(expected)} {sorted(found)} {document.text}")

    @property
    def false_alarms(self) -> float:
        """Share of the hard documents in which anything was found."""
        return self.alarms / max(1, self.negatives)


def positives(split: Split, count: int, seed: int = SEED) -> Iterator[Document]:
    """For each type so many documents that hold one value of it."""
    random = Random(f"{seed}-{split}")
    for name, templates in TEMPLATES.items():
        for _ in range(count):
            value = MAKERS[name](random)
            before, after = random.choice(templates[split == "held_out"]).split("{}")
            lead = random.choice(FILLERS) + " " if random.random() < 0.5 else ""
            tail = " " + random.choice(FILLERS) if random.random() < 0.5 else ""
            start = len(lead) + len(before)
            yield Document(f"{lead}{before}{value}{after}{tail}", ((name, start, start + len(value)),))


def negatives(split: Split, count: int, seed: int = SEED) -> Iterator[Document]:
    """So many hard documents: numbers of things, hashes, code."""
    random = Random(f"{seed}-{split}-negatives")
    for _ in range(count):
        text = random.choice(NEGATIVES[split == "held_out"]).format_map(_Numbers(random))
        yield Document(f"{text} {random.choice(FILLERS)}" if random.random() < 0.5 else text)


class _Numbers(dict[str, str]):
    """Numbers of things by the names that templates use."""

    def __init__(self, random: Random) -> None:
        super().__init__()
        self._random = random

    def __missing__(self, name: str) -> str:
        random = self._random
        if name[0] == "n" and name[1:].isdigit():
            return digits(random, int(name[1:]))
        if name.startswith("hex"):
            return "".join(random.choices("0123456789abcdef", k=int(name[3:])))
        made: dict[str, Callable[[], str]] = {
            "date": lambda: (
                f"{random.randrange(2015, 2030)}-{random.randrange(1, 13):02d}-{random.randrange(1, 29):02d}"
            ),
            "time": lambda: f"{random.randrange(24):02d}:{random.randrange(60):02d}",
            "iso": lambda: (
                f"2025-0{random.randrange(1, 10)}-1{random.randrange(10)}T12:"
                f"{random.randrange(10, 60)}:07.{digits(random, 6)}Z"
            ),
            "epoch": lambda: str(random.randrange(1_500_000_000, 1_800_000_000)),
            "epochms": lambda: str(random.randrange(1_500_000_000_000, 1_800_000_000_000)),
            "price": lambda: (
                f"{random.choice(['$', '€', ''])}{random.randrange(1, 999)},{digits(random, 3)}.{digits(random, 2)}"
            ),
            "uuid": lambda: str(uuid.UUID(bytes=random.randbytes(16), version=4)),
            "md5": lambda: random.randbytes(16).hex(),
            "sha1": lambda: random.randbytes(20).hex(),
            "sha256": lambda: random.randbytes(32).hex(),
            "version": lambda: f"{random.randrange(1, 30)}.{random.randrange(40)}.{random.randrange(200)}",
            "version4": lambda: (
                f"v{random.randrange(1, 30)}.{random.randrange(40)}.{random.randrange(20)}.{random.randrange(3)}"
            ),
            "lat": lambda: f"{random.uniform(-90, 90):.6f}",
            "lon": lambda: f"{random.uniform(-180, 180):.6f}",
            "isbn": lambda: (
                f"978-{random.randrange(10)}-{digits(random, 2)}-{digits(random, 6)}-{random.randrange(10)}"
            ),
            "part": lambda: (
                f"{random.choice('ABCDEFG')}{random.choice('XYZ')}-{digits(random, 4)}-{random.choice('ABC')}"
            ),
            "ean": lambda: f"4{digits(random, 12)}",
        }
        return made[name]()


def measure(scan: Scan, split: Split, *, each: int = 60, hard: int = 3_000) -> Score:
    """The score of a scanner on one split."""
    score = Score()
    for document in positives(split, each):
        score.add(document, set(scan(document.text)))
    for document in negatives(split, hard):
        found = set(scan(document.text))
        score.negatives += 1
        score.alarms += bool(found)
        score.wrong.update(name for name, *_ in found)
        if found:
            score.examples.append(f"none {sorted(found)} {document.text}")
    return score
