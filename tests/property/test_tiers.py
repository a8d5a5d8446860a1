"""A bank in the disk tier answers as one in memory, whatever is applied, moved, scrubbed or reopened between."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from astrocyte import core
from astrocyte.errors import StoreError

# Thousands of rows in each test; a busy machine takes a minute for some.
pytestmark = pytest.mark.timeout(300)
# Rows that lie in files together.
GROUP = 4_096
DIMENSIONS = 16
# Of the bank with graphs, whose vectors are around subjects as those of sentences are.
WIDE, SUBJECTS, NOISE = 64, 64, 1.2
WORDS = [f"w{number}" for number in range(400)]
TAGS = ("red", "green", "blue")
LABEL = core.Label("bank", "given", "1", "")


def owner(folder: Path | None, tier: str, dense: str) -> core.Core:
    return core.Core(
        None if folder is None else str(folder),
        graph_rows=1_000,
        build_share=1.0,
        scan_rows=1,
        sampling=0.0,
        dense=dense,
        tier=tier,
    )


def made(chosen: random.Random, key: int, memory: int, now: int, vector: bytes | None) -> core.Row:
    """A version with words of which few are frequent, and now and then with chunks, tags, times or a session."""
    words = [WORDS[int(chosen.random() ** 3 * len(WORDS))] for _ in range(chosen.randint(0, 9))]
    # A frequency that does not fit into a posting.
    words += ["often"] * (40 if chosen.random() < 0.01 else 0)
    chunks = [("part " + word, vector, 3) for word in words[:2]] if chosen.random() < 0.1 else []
    return core.Row(
        key,
        memory.to_bytes(16, "big"),
        key.to_bytes(16, "little"),
        " ".join(words),
        vector,
        tokens=len(words),
        known_from=now,
        occurred_at=chosen.choice((None, chosen.randint(0, 100))),
        tags=[tag for tag in TAGS if chosen.random() < 0.3],
        session=chosen.choice((None, None, "s1", "s2")),
        chunks=chunks,
    )


def vector_of(chosen: random.Random, dimensions: int) -> bytes:
    return np.array([chosen.gauss(0, 1) for _ in range(dimensions)], dtype="<f4").tobytes()


def asked(chosen: random.Random, now: int) -> core.RecallRequest:
    sometimes = chosen.random() < 0.3
    return core.RecallRequest(
        text=" ".join(WORDS[int(chosen.random() ** 3 * len(WORDS))] for _ in range(4)) + chosen.choice((" often", "")),
        vector=vector_of(chosen, DIMENSIONS) if chosen.random() < 0.8 else None,
        k=50,
        tags=chosen.sample(TAGS, 1) if chosen.random() < 0.4 else (),
        as_of=chosen.randint(0, now) if sometimes else None,
        session="s1" if chosen.random() < 0.1 else None,
        feedback=chosen.choice((0.0, 0.3)),
        context_windows=chosen.random() < 0.5,
    )


def answer(found: core.Answer) -> object:
    """All of an answer that depends neither on time nor on the plan."""
    hits = [(hit.key, hit.ordinal, hit.score, hit.evidence, hit.arms) for hit in found.hits]
    return hits, found.passages, found.tokens


def ranked(found: core.Answer) -> object:
    """Versions with rank and score of the arm: where graphs are searched, the fusion estimates mean and deviation."""
    return [(hit.key, hit.ordinal, hit.arms) for hit in found.hits]


class Twins:
    """The same bank in memory and in the disk tier, both scanned, so that their answers are equal to the bit."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.chosen = random.Random(seed)
        self.folder = folder
        self.disk = owner(folder, "disk", "scan")
        self.expected = owner(None, "memory", "scan").bank(DIMENSIONS)
        self.found = self.disk.bank(DIMENSIONS)
        self.position = self.next = self.operations = 0

    def apply(self, inserts: int, removals: int) -> None:
        self.position += 1
        rows, ended = [], []
        for _ in range(inserts):
            self.next += 1
            memory = self.next
            if self.next > 100 and self.chosen.random() < 0.2:
                memory = self.chosen.randrange(1, self.next)
                ended.append((memory, self.position))
            vector = vector_of(self.chosen, DIMENSIONS) if self.chosen.random() < 0.9 else None
            rows.append(made(self.chosen, self.next, memory, self.position, vector))
        removed = [self.chosen.randrange(1, self.next + 1) for _ in range(removals)]
        for bank in (self.expected, self.found):
            bank.apply(self.position, rows, ended, removed)
        self.operations += len(rows) + len(ended) + len(removed)

    def compare(self) -> None:
        request = asked(self.chosen, self.position)
        assert answer(self.found.recall(request)) == answer(self.expected.recall(request)), self.position
        ids = [self.chosen.randrange(1, self.next + 1).to_bytes(16, "big") for _ in range(2)]
        told = [bank.explain(request, ids) for bank in (self.found, self.expected)]
        assert answer(told[0].response) == answer(told[1].response)
        self.operations += 2

    def fold(self) -> None:
        self.found.fold()

    def scrub(self) -> None:
        self.found.scrub()

    def move(self, tier: str) -> None:
        self.found.set_tier(tier)

    def reopen(self) -> None:
        directory = self.folder / f"c{self.position}"
        directory.mkdir()
        core.write_checkpoint(self.found, str(directory), LABEL)
        self.found = self.disk.load(str(directory), DIMENSIONS, LABEL)


@pytest.mark.parametrize("seed", range(2))
def test_scans_of_both_tiers_are_equal_to_the_bit(tmp_path: Path, seed: int) -> None:
    twins = Twins(tmp_path, seed)
    twins.apply(GROUP + 400, 0)
    twins.found.fold()
    assert twins.found.stats()["disk_rows"] >= GROUP
    steps: dict[str, Callable[[], object]] = {
        "fold": twins.fold,
        "scrub": twins.scrub,
        "memory": partial(twins.move, "memory"),
        "disk": partial(twins.move, "disk"),
        "reopen": twins.reopen,
        # A fifth of the rows: they get other numbers.
        "compact": partial(twins.apply, 10, GROUP // 3),
    }
    for number in range(60):
        twins.apply(twins.chosen.randint(0, 25), twins.chosen.randint(0, 4))
        name = twins.chosen.choice([*steps, "fold", "none"])
        if name == "compact" and number % 3:
            name = "none"
        if name in steps:
            steps[name]()
        for _ in range(4):
            twins.compare()
    twins.apply(GROUP, 0)
    twins.found.set_tier("disk")
    twins.found.fold()
    for _ in range(20):
        twins.compare()
    assert twins.found.stats()["disk_rows"] >= GROUP
    assert twins.operations > 10_000


def filled(bank: core.Bank) -> np.ndarray:
    """Apply two groups of rows and some; returns their vectors."""
    chosen, numbers = random.Random(7), np.random.default_rng(7)
    count = 2 * GROUP + 300
    centres = numbers.standard_normal((SUBJECTS, WIDE))
    vectors = centres[numbers.integers(SUBJECTS, size=count)] + NOISE * numbers.standard_normal((count, WIDE))
    packed = [row.astype("<f4").tobytes() for row in vectors]
    bank.apply(1, [made(chosen, key, key, 1, vector) for key, vector in enumerate(packed, start=1)])
    return vectors


def test_graphs_on_disk_find_the_nearest_and_words_are_the_same_after_a_reopen_too(tmp_path: Path) -> None:
    disk = owner(tmp_path, "disk", "auto")
    exact = owner(None, "memory", "scan").bank(WIDE)
    bank = disk.bank(WIDE)
    vectors = filled(exact)
    filled(bank)
    bank.fold()
    directory = tmp_path / "c"
    directory.mkdir()
    core.write_checkpoint(bank, str(directory), LABEL)
    again = disk.load(str(directory), WIDE, LABEL)
    again.fold()
    assert (again.unsaved_graph_rows, again.unsaved_word_rows) == (0, 0)
    chosen, numbers = random.Random(8), np.random.default_rng(8)
    for one in (bank, again):
        met = wanted = 0
        for _ in range(100):
            near = vectors[numbers.integers(len(vectors))] + 0.6 * numbers.standard_normal(WIDE)
            request = core.RecallRequest(vector=near.astype("<f4").tobytes(), k=10)
            found = one.recall(request)
            assert found.trace.plan.startswith("graph of usearch: ")
            assert "; disk tier: 8192 of " in found.trace.plan
            nearest = {hit.key for hit in exact.recall(request).hits}
            met += len(nearest & {hit.key for hit in found.hits})
            wanted += len(nearest)
            words = core.RecallRequest(text=" ".join(chosen.choices(WORDS, k=4)), k=50)
            assert ranked(one.recall(words)) == ranked(exact.recall(words))
        assert met >= 0.98 * wanted


def test_every_damaged_file_is_found_and_what_it_had_is_made_again(tmp_path: Path) -> None:
    disk = owner(tmp_path, "disk", "auto")
    bank = disk.bank(WIDE)
    filled(bank)
    bank.fold()
    directory = tmp_path / "c"
    directory.mkdir()
    core.write_checkpoint(bank, str(directory), LABEL)
    request = core.RecallRequest(text=" ".join(WORDS[:4]), k=20)
    expected = ranked(bank.recall(request))
    chosen = random.Random(9)
    for path in sorted(directory.iterdir()):
        whole = path.read_bytes()
        for cut in (False, False, True):
            at = chosen.randrange(len(whole))
            flipped = whole[:at] + bytes([whole[at] ^ 1 << chosen.randrange(8)]) + whole[at + 1 :]
            path.write_bytes(whole[:at] if cut else flipped)
            if path.name.startswith(("graph", "postings")):
                # The bank answers without it, and builds it again.
                loaded = disk.load(str(directory), WIDE, LABEL)
                assert ranked(loaded.recall(request)) == expected
                loaded.fold()
                assert loaded.unsaved_graph_rows + loaded.unsaved_word_rows > 0
                assert ranked(loaded.recall(request)) == expected
            else:
                with pytest.raises(StoreError):
                    disk.load(str(directory), WIDE, LABEL)
        path.write_bytes(whole)
    assert ranked(disk.load(str(directory), WIDE, LABEL).recall(request)) == expected
