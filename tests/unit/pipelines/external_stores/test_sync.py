"""External stores: they follow the truth through every failure, and what they propose cannot leak."""

import asyncio
import random
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from astrocyte.api.requests import (
    BatchRecall,
    DeleteBank,
    Forget,
    Recall,
    UndeleteMemory,
    UpdateMemory,
)
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.errors import ConfigError, ProviderUnavailable
from astrocyte.model import ForgetSelector, MemoryUpdate, RecallQuery, RecallResult, TagMatch
from astrocyte.pipelines.external_stores.items import name_of
from astrocyte.providers.storage import StoreFilters, StoreHit
from astrocyte.providers.storage.in_memory import InMemoryDocumentStore
from doubles.faulty_stores import ANA, SEED, Outside, bank_of, retain, settled, wired

EVERYONE = "vector_store, document_store, graph_store"


@pytest.fixture
def outside(monkeypatch: pytest.MonkeyPatch) -> Outside:
    return wired(monkeypatch)


async def recall(app: App, query: str, bank: str = "notes", **fields: Any) -> RecallResult:
    return await app.gate.call(ANA, Recall(RecallQuery(query, bank, include_trace=True, **fields)))


def ids(result: RecallResult) -> list[str | None]:
    return [hit.memory_id for hit in result.hits]


class TestFollowing:
    async def test_every_kind_of_change_reaches_the_stores(self, outside: Outside, tmp_path: Path) -> None:
        async with outside.running(tmp_path) as app:
            people = {"people": "Mara Silva, Jonas", "n": 1}
            kept = await retain(app, "Mara is allergic to sesame.", tags=["food"], metadata=people)
            await retain(app, "long " + "words and more words in a sentence. " * 200)
            gone = await retain(app, "The kettle is green.")
            back = await retain(app, "The lantern is blue.")
            await outside.equal_the_truth(app)
            await app.gate.call(
                ANA, UpdateMemory("notes", MemoryUpdate(kept, frozenset({"content"}), content="Mara likes rye."))
            )
            for memory_id in (gone, back):
                await app.gate.call(ANA, Forget("notes", ForgetSelector(memory_ids=(memory_id,))))
            await app.gate.call(ANA, UndeleteMemory("notes", back))
            await outside.equal_the_truth(app)
            await app.gate.call(ANA, Forget("notes", ForgetSelector(memory_ids=(kept,)), compliance=True))
            await outside.equal_the_truth(app)
            name = name_of(app.storage.store.following.installation, await bank_of(app))
            assert "Mara" not in repr((outside.documents._banks[name], outside.graph._banks[name]))

    async def test_nothing_is_lost_or_doubled_through_failures_and_restarts(
        self, outside: Outside, tmp_path: Path
    ) -> None:
        source = random.Random(SEED)
        known: list[tuple[str, str]] = []
        for turn in range(6):
            # A third of the calls fail before they have an effect, a third of the others after it.
            outside.faults.chance = 0.0 if turn == 5 else 0.3
            async with outside.running(tmp_path) as app:
                for number in range(25):
                    act, bank_id = source.random(), f"b{number % 3}"
                    if act < 0.6 or not known:
                        known.append((bank_id, await retain(app, f"memory {turn} {number}", bank=bank_id)))
                    elif act < 0.8:
                        bank_id, memory_id = source.choice(known)
                        if app.storage.store.get_bank("default", bank_id):
                            await app.gate.call(ANA, Forget(bank_id, ForgetSelector(memory_ids=(memory_id,))))
                    elif act < 0.85 and turn < 5 and app.storage.store.get_bank("default", bank_id):
                        await app.gate.call(ANA, DeleteBank(bank_id))
                    await asyncio.sleep(0)
                if turn == 5:
                    await outside.equal_the_truth(app)
                    assert len(known) > 50
                    assert outside.faults.calls.count("advance, done") > 10
                    prefix = app.storage.store.following.installation
                    there = {name_of(prefix, bank) for bank in app.storage.store.following.banks(after=0, limit=9)}
                    assert set(await outside.vectors.list_banks(prefix)) == there

    async def test_a_store_that_was_down_goes_on_from_where_it_was(self, outside: Outside, tmp_path: Path) -> None:
        async with outside.running(tmp_path) as app:
            await retain(app, "first")
            await settled(app, await bank_of(app))
            outside.faults.down = True
            await retain(app, "second")
            await retain(app, "third")
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(settled(app, await bank_of(app)), 0.05)
            outside.faults.calls.clear()
            outside.faults.down = False
            await outside.equal_the_truth(app)
            assert outside.faults.calls.count("store_documents, done") == 1

    async def test_deleted_banks_leave_and_a_namesake_is_another_bank(self, outside: Outside, tmp_path: Path) -> None:
        settings = {"outside_stores": {"compare_seconds": 0.02}}
        async with outside.running(tmp_path, **settings) as app:
            await retain(app, "of the first bank")
            first = await bank_of(app)
            await settled(app, first)
            await app.gate.call(ANA, DeleteBank("notes"))
            await retain(app, "of the second bank")
            await outside.equal_the_truth(app)
            name = name_of(app.storage.store.following.installation, first)
            async with asyncio.timeout(5):
                while await outside.vectors.list_banks(name) or await outside.documents.list_banks(name):  # noqa: ASYNC110 - no event tells of it
                    await asyncio.sleep(0.01)
            await outside.equal_the_truth(app)

    async def test_a_store_ahead_of_the_truth_begins_anew(self, outside: Outside, tmp_path: Path) -> None:
        async with outside.running(tmp_path) as app:
            await retain(app, "kept")
            await settled(app, await bank_of(app))
            name = name_of(app.storage.store.following.installation, await bank_of(app))
        # As after the data directory was put back to an earlier state.
        await outside.documents.advance(name, 40)
        (document,) = outside.documents._banks[name].values()
        outside.documents._banks[name]["ff.-1"] = document
        async with outside.running(tmp_path) as app:
            await outside.equal_the_truth(app)

    async def test_other_servers_banks_are_left_alone(self, outside: Outside, tmp_path: Path) -> None:
        await outside.vectors.advance("another/default/notes/1", 3)
        async with outside.running(tmp_path) as app:
            await retain(app, "mine")
            await outside.equal_the_truth(app)
        assert await outside.vectors.position("another/default/notes/1") == 3


class TestAsking:
    async def test_what_a_store_proposes_is_ranked_with_the_rest(self, outside: Outside, tmp_path: Path) -> None:
        # With its own arms silenced, the index leaves the order to the stores.
        settings = {"recall": {"weights": {"semantic": 0, "keyword": 0}, "feedback": 0}}
        async with outside.running(tmp_path, **settings) as app:
            await retain(app, "a lantern")
            best = await retain(app, "a lantern beside the green kettle")
            await settled(app, await bank_of(app))
            found = await recall(app, "green kettle lantern")
            assert ids(found)[0] == best
            assert {"vector_store", "document_store"} <= {arm.arm for arm in found.hits[0].arms}
            assert found.trace is not None
            assert {"vector_store", "document_store"} <= set(found.trace.strategies_used or ())
            assert (found.trace.degraded, "outside" in (found.trace.stage_timings_ms or {})) == ("", True)

    @pytest.mark.parametrize("banks", [("notes",), ("notes", "more")])
    async def test_a_store_that_is_down_costs_its_list_alone(
        self, outside: Outside, tmp_path: Path, banks: tuple[str, ...]
    ) -> None:
        async with outside.running(tmp_path) as app:
            wanted = await retain(app, "a lantern")
            await retain(app, "a kettle", bank="more")
            outside.faults.down = True
            asked = RecallQuery("lantern", banks[0] if len(banks) == 1 else "", include_trace=True)
            if len(banks) > 1:
                asked = RecallQuery("lantern", banks=banks, include_trace=True)
            # More often than the breaker lets them fail.
            for _ in range(5):
                found = await app.gate.call(ANA, Recall(asked))
                assert ids(found)[0] == wanted
                assert found.trace is not None
                assert found.trace.degraded == EVERYONE
            outside.faults.down = False
            async with asyncio.timeout(5):
                # Until the breaker lets calls pass again.
                while (found := await app.gate.call(ANA, Recall(asked))).trace is None or found.trace.degraded:  # noqa: ASYNC110 - no event tells of it
                    await asyncio.sleep(0.01)
            for bank_id in banks:
                await settled(app, await bank_of(app, bank_id))
            found = await app.gate.call(ANA, Recall(asked))
            assert found.trace is not None
            assert "document_store" in (found.trace.strategies_used or ())

    async def test_a_store_that_hangs_is_not_waited_for(self, outside: Outside, tmp_path: Path) -> None:
        async with outside.running(tmp_path, outside_stores={"recall_seconds": 0.05}) as app:
            wanted = await retain(app, "a lantern")
            outside.faults.hung = True
            async with asyncio.timeout(3):
                found = await recall(app, "lantern")
            assert ids(found) == [wanted]
            assert found.trace is not None
            assert found.trace.degraded == EVERYONE

    async def test_a_lying_store_shows_nothing_that_must_not_be_seen(
        self, outside: Outside, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async with outside.running(tmp_path) as app:
            seen = await retain(app, "a lantern", tags=["x"])
            also = await retain(app, "a kettle", tags=["x"])
            others = [
                await retain(app, "of another bank", bank="secret"),
                await retain(app, "without the tag"),
                await retain(app, "soon forgotten", tags=["x"]),
            ]
            await app.gate.call(ANA, Forget("notes", ForgetSelector(memory_ids=(others[2],))))

            async def lie(*_: object, **__: object) -> list[StoreHit]:
                hits = [StoreHit("1", memory_id, 1.0) for memory_id in (*others, "mem_x", "", "mem_" + "0" * 32)]
                return [*hits, StoreHit("2", also, float("nan")), StoreHit("3", seen, 0.1)]

            monkeypatch.setattr(outside.vectors, "search_similar", lie)
            monkeypatch.setattr(outside.documents, "search_fulltext", lie)
            found = await recall(app, "anything at all", tags=["x"], tag_match=TagMatch.ANY)
            assert set(ids(found)) == {seen, also}
            assert "document_store" in {arm.arm for arm in found.hits[0].arms}

    async def test_the_filter_and_the_clocks_reach_the_store(
        self, outside: Outside, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        asked: list[StoreFilters | None] = []
        search = outside.documents.search_fulltext

        async def listen(query: str, bank: str, limit: int = 10, filters: StoreFilters | None = None) -> Any:
            asked.append(filters)
            return await search(query, bank, limit, filters)

        monkeypatch.setattr(outside.documents, "search_fulltext", listen)
        now = datetime.now(UTC)
        async with outside.running(tmp_path) as app:
            memory_id = await retain(app, "the old text", tags=["x"])
            await settled(app, await bank_of(app))
            then = datetime.now(UTC)
            await asyncio.sleep(0.002)
            await app.gate.call(
                ANA, UpdateMemory("notes", MemoryUpdate(memory_id, frozenset({"content"}), content="new"))
            )
            await settled(app, await bank_of(app))
            found = await recall(app, "old", tags=["x"], tag_match=TagMatch.ALL, as_of=then, fact_types=["world"])
        assert asked[0] is not None
        assert (asked[0].tags, asked[0].tag_match, asked[0].fact_types) == (("x",), "all", ("world",))
        assert asked[0].as_of is not None
        assert asked[0].as_of >= int(now.timestamp() * 1_000)
        assert [hit.text for hit in found.hits] == ["the old text"]
        assert "document_store" in {arm.arm for arm in found.hits[0].arms}

    async def test_several_banks_and_batches_ask_too(self, outside: Outside, tmp_path: Path) -> None:
        async with outside.running(tmp_path) as app:
            one = await retain(app, "a lantern", bank="one")
            two = await retain(app, "a green lantern", bank="two")
            for bank_id in ("one", "two"):
                await settled(app, await bank_of(app, bank_id))
            several = await app.gate.call(ANA, Recall(RecallQuery("green lantern", banks=("one", "two"))))
            (batched,) = await app.gate.call(ANA, BatchRecall([RecallQuery("lantern", "one")]))
        assert ids(several) == [two, one]
        assert all("document_store" in {arm.arm for arm in hit.arms} for hit in (*several.hits, *batched.hits))

    async def test_names_lead_to_what_is_named_beside_them(self, outside: Outside, tmp_path: Path) -> None:
        silent = {"recall": {"weights": {"semantic": 0, "keyword": 0}, "feedback": 0}}
        async with outside.running(tmp_path, vector_store="sqlite", document_store="none", **silent) as app:
            first = await retain(app, "She moved away.", metadata={"people": "Mara Silva, Jonas"})
            second = await retain(app, "He builds boats.", metadata={"people": "Jonas"})
            await retain(app, "It rains.", metadata={"people": "Freya"})
            await settled(app, await bank_of(app))
            found = await recall(app, "what of mara silva?", max_results=2)
            named = [hit.memory_id for hit in found.hits if "graph_store" in {arm.arm for arm in hit.arms}]
            assert named == [first, second]


class TestErasing:
    async def test_it_is_answered_when_the_stores_have_confirmed(self, outside: Outside, tmp_path: Path) -> None:
        async with outside.running(tmp_path, outside_stores={"erase_seconds": 0.1}) as app:
            memory_id = await retain(app, "a secret lantern")
            await settled(app, await bank_of(app))
            outside.faults.down = True
            request = str(UUID(int=1))
            erase = ForgetSelector(memory_ids=(memory_id,))
            for _ in range(2):
                with pytest.raises(ProviderUnavailable, match="document_store"):
                    await app.gate.call(ANA, Forget("notes", erase, compliance=True, request_id=request))
            assert ids(await recall(app, "lantern")) == []
            outside.faults.down = False
            result = await app.gate.call(ANA, Forget("notes", erase, compliance=True, request_id=request))
            assert (result.deleted_count, result.receipt is not None) == (1, True)
            await outside.equal_the_truth(app)


def refused(values: dict[str, Any], words: Iterable[str]) -> None:
    with pytest.raises(ConfigError) as error:
        App(Settings.from_mapping({"vector_store": "in_memory", **values}))
    assert all(word in str(error.value) for word in words), str(error.value)


def test_settings_that_cannot_be_used_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refused({"vector_store": "postgre", "data_dir": str(tmp_path)}, ["vector_store", "'postgres'"])
    refused({"document_store": "elsewhere"}, ["document_store", "elasticsearch, none, opensearch, postgres"])
    refused({"document_store_config": {"dsn": "x"}}, ["document_store_config", "no effect"])
    refused({"vector_store_config": {"dsn": "x"}}, ["vector_store_config", "no effect"])
    refused({"document_store": "postgres", "document_store_config": {"dsm": "x"}}, ["document_store_config.dsm", "dsn"])
    refused({"document_store": "postgres", "document_store_config": {}}, ["document_store_config.dsn"])
    neo4j = {"uri": "bolt://localhost:7687", "password": "x"}
    for key, value in {
        "uri": "http://localhost:7474",
        "password": 3,
        "label_prefix": "a`b",
        "database": "a b",
        "connections": 0,
        "connect_seconds": -1,
        "passwrod": "x",
    }.items():
        options = {**neo4j, key: value}
        refused({"graph_store": "neo4j", "graph_store_config": options}, [f"graph_store_config.{key}"])
    refused({"graph_store": "neo4j", "graph_store_config": {"uri": "bolt://a"}}, ["graph_store_config.password"])
    refused({"vector_store": "neo4j", "data_dir": str(tmp_path)}, ["vector_store", "'neo4j'"])
    refused({"document_store": "reference", "document_store_config": {"a": 1}}, ["document_store_config.a"])
    refused({"document_store": "reference", "recall": {"cache_bytes": 1_000}}, ["recall.cache_bytes"])
    monkeypatch.setattr(InMemoryDocumentStore, "SPI_VERSION", 2)
    refused({"document_store": "reference"}, ["version 2"])
