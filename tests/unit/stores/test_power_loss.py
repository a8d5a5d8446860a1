"""A power cut at any write or sync: what was acknowledged by then is there afterwards, what was forgotten is not."""

import random
import shutil
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from astrocyte.errors import StoreError
from astrocyte.model import Bank, ForgetSelector
from astrocyte.stores.sqlite import SqliteStore
from doubles.faulty_disk import FaultyDisk, faulty_disk
from samples.memories import insert, listed, make_bank, memory, memory_id, replace

# Cuts of one run, spread over its writes and syncs by chance.
CUTS = 40
LATER = 10**13


@dataclass
class Promises:
    """Promises that hold after a cut: acknowledged contents by id, and those that may have changed since."""

    kept: dict[str, str] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)
    touched: set[str] = field(default_factory=set)


class Run:
    """Writes on a disk whose state is copied, as a power cut would leave it, at random moments."""

    def __init__(self, folder: Path, disk: FaultyDisk, seed: int) -> None:
        self.folder, self.disk = folder, disk
        self.chosen = random.Random(seed)
        self.promises = Promises()
        self.cuts: list[tuple[Path, Promises]] = []

    def cut(self, _action: str, _kind: str) -> None:
        if len(self.cuts) < CUTS and self.chosen.random() < 0.02:
            image = self.folder / f"cut-{len(self.cuts)}"
            self.disk.cut_power(image, self.chosen)
            promises = self.promises
            self.cuts.append((image, Promises(dict(promises.kept), set(promises.gone), set(promises.touched))))

    async def write(self, store: SqliteStore, bank: Bank) -> None:
        self.disk.fault = self.cut
        number = 0
        while len(self.cuts) < CUTS:
            number += 1
            await self._insert(store, bank, number)
            alive = sorted(self.promises.kept)
            if number % 3 == 0:
                await self._replace(store, bank, self.chosen.choice(alive), number)
            if number % 4 == 0:
                await self._forget(store, bank, self.chosen.choice(alive))
            if number % 25 == 0:
                # What a log that has grown does by itself.
                store._connections.writer.wal_checkpoint()
        self.disk.fault = None

    async def _insert(self, store: SqliteStore, bank: Bank, number: int) -> None:
        content = f"memory number {number} " + "x" * self.chosen.choice((0, 300, 6_000))
        self.promises.touched = {memory_id(number)}
        await insert(store, bank, memory(number, content))
        self.promises.kept[memory_id(number)] = content

    async def _replace(self, store: SqliteStore, bank: Bank, one: str, number: int) -> None:
        self.promises.touched = {one}
        await replace(store, bank, memory(int(one[4:], 16), f"replaced by {number}"))
        self.promises.kept[one] = f"replaced by {number}"

    async def _forget(self, store: SqliteStore, bank: Bank, one: str) -> None:
        self.promises.touched = {one}
        await store.forget(bank, ForgetSelector(memory_ids=(one,)), reason="", principal="", purge_after=LATER)
        del self.promises.kept[one]
        self.promises.gone.add(one)

    def broken(self, bank: Bank) -> int:
        """The number of cuts that broke a promise."""
        return sum(not _holds(image, promises, bank) for image, promises in self.cuts)


def _holds(image: Path, promises: Promises, bank: Bank) -> bool:
    try:
        store = SqliteStore(image)
    except StoreError:
        return False
    try:
        return _kept(store, promises, bank)
    except StoreError:
        return False
    finally:
        store.close()
        shutil.rmtree(image)


def _kept(store: SqliteStore, promises: Promises, bank: Bank) -> bool:
    if store._connections.query("PRAGMA integrity_check") != [("ok",)] or store.get_bank("default", "bank") is None:
        return False
    present = set(listed(store, bank))
    for one in promises.kept.keys() - promises.touched:
        found = store.memory(bank, one)
        if found is None or found.content != promises.kept[one]:
            return False
    return not (present & promises.gone) and present <= promises.kept.keys() | promises.touched


async def run(folder: Path, seed: int, synchronous: str) -> int:
    with faulty_disk() as disk:
        store = SqliteStore(folder / "data", _vfs=disk.name)
        bank = await make_bank(store)
        store._connections.writer.wal_checkpoint()
        store._connections.writer.pragma("synchronous", synchronous)
        cuts = Run(folder, disk, seed)
        await cuts.write(store, bank)
        store.close()
        return cuts.broken(bank)


@pytest.mark.parametrize("seed", range(3))
async def test_a_power_cut_breaks_no_promise(tmp_path: Path, seed: int) -> None:
    assert await run(tmp_path, seed, "FULL") == 0


async def test_without_syncs_it_would(tmp_path: Path) -> None:
    assert await run(tmp_path, 0, "OFF") > CUTS // 4
