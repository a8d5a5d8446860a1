"""The SQLite store against a dictionary: any sequence of writes, with a clock that also goes backwards."""

import asyncio
import shutil
import tempfile
from collections.abc import Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, multiple, rule

from astrocyte.errors import MemoryNotFound
from astrocyte.model import Bank, Change, ForgetSelector
from astrocyte.stores.records import IndexBatch, Insert, NewMemory, Passage, Replace, RequestKey, Visibility
from astrocyte.stores.sqlite import SqliteStore
from samples.memories import Clock, current, make_bank, memory, memory_id

T = TypeVar("T")
LATER = 10**13
TAGS = ("red", "green", "blue")
TEXTS = tuple(f"text {letter}" for letter in "abcdef")


@dataclass
class Version:
    row_key: int
    content: str
    tags: tuple[str, ...]
    known_from: int
    known_until: int | None = None


@dataclass
class Kept:
    versions: list[Version]
    forgotten: bool = False


@dataclass
class Index:
    """The state of a listener: current and ended versions by row key."""

    rows: dict[int, int | None] = field(default_factory=dict)
    position: int = 0

    def __call__(self, batch: IndexBatch, /) -> None:
        assert batch.position > self.position
        self.position = batch.position
        for record in batch.upserts:
            self.rows[record.row_key] = record.known_until
        for key, known_until in batch.ended:
            self.rows[key] = known_until
        for key in batch.removed:
            self.rows.pop(key, None)


class StoreMachine(RuleBasedStateMachine):
    """Every rule does the same to the store and to the model; the invariants compare what can be read."""

    ids = Bundle("ids")

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.directory = Path(tempfile.mkdtemp())
        self.clock = Clock()
        self.model: dict[str, Kept] = {}
        self.number = 0
        self.latest = self.clock.now
        self.position = 0
        self.instants: set[int] = set()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.loop.run_until_complete(work)

    def open(self) -> None:
        self.store = SqliteStore(self.directory, clock=self.clock)
        self.index = Index(position=self.position)
        self.store.subscribe(self.index)

    def teardown(self) -> None:
        self.store.close()
        self.loop.close()
        shutil.rmtree(self.directory)

    def stamp(self) -> int:
        self.latest = max(self.latest, self.clock.now)
        self.instants.add(self.latest)
        return self.latest

    @initialize()
    def start(self) -> None:
        self.open()
        self.bank: Bank = self.run(make_bank(self.store))

    @rule(by=st.integers(-5_000, 5_000))
    def move_clock(self, by: int) -> None:
        self.clock.now += by

    @rule(target=ids, texts=st.lists(st.sampled_from(TEXTS), min_size=1, max_size=4), tag=st.sampled_from(TAGS))
    def insert(self, texts: list[str], tag: str) -> Any:
        new = []
        for text in texts:
            self.number += 1
            new.append(memory(self.number, text, tags=(tag,)))
        outcomes, _ = self.run(self.store.commit(self.bank, [Insert(one) for one in new]))
        stored = [outcome.duplicate_of is None for outcome in outcomes]
        now = self.stamp() if any(stored) else self.latest
        for one, outcome in zip(new, outcomes, strict=True):
            twins = [
                key for key, kept in self.model.items()
                if not kept.forgotten and kept.versions[-1].content == one.content
            ]  # fmt: skip
            assert (outcome.duplicate_of in twins) if twins else outcome.duplicate_of is None
            if not twins:
                self.position += 1
                self.model[one.memory_id] = Kept([self.version(one, now)])
        return multiple(*(one.memory_id for one, kept in zip(new, stored, strict=True) if kept))

    def version(self, new: NewMemory, now: int) -> Version:
        record = self.store.version(self.bank, new.memory_id)
        assert record is not None
        assert record.known_from == now
        return Version(record.row_key, new.content, new.tags, now)

    @rule(one=ids, text=st.sampled_from(TEXTS), tag=st.sampled_from(TAGS))
    def replace(self, one: str, text: str, tag: str) -> None:
        new = memory(int(one[4:], 16), text, tags=(tag,))
        kept = self.model.get(one)
        work = self.store.commit(self.bank, [Replace(new)])
        if kept is None or kept.forgotten:
            self.expect_missing(work)
            return
        ((outcome,), _) = self.run(work)
        now = self.stamp()
        self.position += 1
        assert (outcome.position, outcome.version) == (self.position, len(kept.versions) + 1)
        kept.versions[-1].known_until = now
        kept.versions.append(self.version(new, now))

    def expect_missing(self, work: Coroutine[Any, Any, object]) -> None:
        try:
            self.run(work)
        except MemoryNotFound:
            return
        raise AssertionError("a memory that is not there was changed")

    def selected(self, selector: ForgetSelector, *, forgotten: bool) -> list[str]:
        return [
            key for key, kept in self.model.items()
            if (forgotten or not kept.forgotten)
            and (not selector.memory_ids or key in selector.memory_ids)
            and (not selector.tags or set(selector.tags) & set(kept.versions[-1].tags))
        ]  # fmt: skip

    @rule(one=ids, tags=st.sets(st.sampled_from(TAGS), max_size=2))
    def forget(self, one: str, tags: set[str]) -> None:
        selector = ForgetSelector(memory_ids=() if len(tags) == 2 else (one,), tags=tuple(sorted(tags)))
        expected = self.selected(selector, forgotten=False)
        assert set(self.store.select(self.bank, selector)[1]) == set(expected)
        count, listed, position, _ = self.run(
            self.store.forget(self.bank, selector, reason="", principal="", purge_after=LATER)
        )
        if expected:
            self.stamp()
        self.position += len(expected)
        assert (count, set(listed), position) == (len(expected), set(expected), self.position)
        for key in expected:
            self.model[key].forgotten = True

    @rule(one=ids)
    def undelete(self, one: str) -> None:
        kept = self.model.get(one)
        if kept is None:
            self.expect_missing(self.store.undelete(self.bank, one))
            return
        assert self.run(self.store.undelete(self.bank, one)).content == kept.versions[-1].content
        if kept.forgotten:
            self.stamp()
            self.position += 1
            kept.forgotten = False

    @rule(one=ids)
    def erase(self, one: str) -> None:
        selector = ForgetSelector(memory_ids=(one,))
        expected = self.selected(selector, forgotten=True)
        visible = self.selected(selector, forgotten=False)
        listed, position, receipt = self.run(self.store.erase(self.bank, selector, reason="", principal=""))
        if expected:
            self.stamp()
        self.position += len(expected) + len(visible)
        assert (listed, position) == (expected, self.position)
        assert receipt.counts["versions"] == sum(len(self.model[key].versions) for key in expected)
        for key in expected:
            del self.model[key]

    @rule(one=ids)
    def retry(self, one: str) -> None:
        """The same request twice, and once more: one effect, one answer."""
        key = RequestKey(f"forget-{one}", "forget", one.encode())
        selector = ForgetSelector(memory_ids=(one,))
        known = self.store.find_response("default", key)
        expected = self.selected(selector, forgotten=False) if known is None else []
        answers = [
            self.run(self.store.forget(self.bank, selector, reason="", principal="", purge_after=LATER, request=key))
            for _ in range(2)
        ]
        assert answers[0] == answers[1]
        for forgotten in expected:
            self.stamp()
            self.position += 1
            self.model[forgotten].forgotten = True

    @rule()
    def reopen(self) -> None:
        self.store.close()
        self.open()
        self.index.rows = {
            row.row_key: row.known_until for batch in self.store.iter_versions(self.bank) for row in batch
        }

    @invariant()
    def listing_equals_the_model(self) -> None:
        for tag in (None, *TAGS):
            rows, total = self.store.list_memories(
                self.bank, tags=(tag,) if tag else (), session_id=None, at_position=self.position, after=0, limit=1_000
            )
            expected = {
                (kept.versions[-1].row_key, key, kept.versions[-1].content)
                for key, kept in self.model.items()
                if not kept.forgotten and (tag is None or tag in kept.versions[-1].tags)
            }
            assert {(key, one.memory_id, one.content) for key, one in rows} == expected
            assert total == len(expected)

    @invariant()
    def history_equals_the_model(self) -> None:
        versions = [(key, kept, one) for key, kept in self.model.items() for one in kept.versions]
        passages = [Passage(key, -1) for key in range(1, 1 + max((one.row_key for _, _, one in versions), default=0))]
        for instant in (None, self.latest + 1, *sorted(self.instants)[-6:]):
            found = {
                (row.row_key, row.memory_id, row.chunk_text)
                for row in self.store.hydrate(self.bank, passages, Visibility(as_of=instant))
            }
            assert found == {
                (one.row_key, key, one.content) for key, kept, one in versions
                if not kept.forgotten and _known(one, instant)
            }  # fmt: skip

    @invariant()
    def positions_and_times_ascend(self) -> None:
        assert current(self.store, self.bank).position == self.position
        log: list[Change] = self.store.changes(self.bank, after=0, limit=10_000)
        assert [one.position for one in log] == list(range(1, self.position + 1))
        assert [one.changed_at for one in log] == sorted(one.changed_at for one in log)

    @invariant()
    def the_index_equals_the_rows(self) -> None:
        rows = {row.row_key: row.known_until for batch in self.store.iter_versions(self.bank) for row in batch}
        assert self.index.rows == rows
        assert rows == {
            one.row_key: one.known_until
            for kept in self.model.values() if not kept.forgotten
            for one in kept.versions
        }  # fmt: skip

    @invariant()
    def no_part_is_left_without_its_version(self) -> None:
        query = self.store._connections.query
        for table, key in (("contents", "row_key"), ("tags", "row_key"), ("embeddings", "passage_key / 65536")):
            orphans = query(f"SELECT count(*) FROM {table} WHERE {key} NOT IN (SELECT row_key FROM memories)")  # noqa: S608
            assert orphans == [(0,)]
        stats = self.store.bank_stats(self.bank)
        visible = [kept for kept in self.model.values() if not kept.forgotten]
        assert (stats.memory_count, stats.forgotten_count) == (len(visible), len(self.model) - len(visible))


def _known(version: Version, instant: int | None) -> bool:
    if instant is None:
        return version.known_until is None
    return version.known_from <= instant and (version.known_until is None or instant < version.known_until)


StoreMachine.TestCase.settings = settings(
    # One example opens files and takes some twenty syncs.
    max_examples=25,
    stateful_step_count=25,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
TestStoreMachine = StoreMachine.TestCase


def test_the_ids_of_the_model_are_those_of_the_store() -> None:
    assert int(memory_id(77)[4:], 16) == 77
