"""The work of callers on an entity graph reaches a graph store, and leaves it, through every failure."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from astrocyte.api.requests import (
    CreateEntityLink,
    DeleteBank,
    DeleteEntityLink,
    Forget,
    GetEntity,
    MergeEntities,
    RebuildGraph,
    Recall,
    SplitEntity,
    UndeleteMemory,
    UpdateEntity,
    UpdateMemory,
)
from astrocyte.app import App
from astrocyte.errors import AstrocyteError, ProviderUnavailable
from astrocyte.model import Bank, ForgetSelector, LinkOrigin, MemoryUpdate, NewEntityLink, RecallQuery
from astrocyte.pipelines.external_stores import graph_sync
from astrocyte.pipelines.external_stores.items import name_of
from astrocyte.providers.storage import EntityRecord, LinkRecord
from astrocyte.stores.graph.entity_graph import ALIAS_OF, DISTINCT_FROM, ArchivedEntity, ArchivedLink, GraphView
from astrocyte.stores.sqlite.engine.migrations import load_migrations
from doubles.faulty_stores import ANA, SEED, Outside, bank_of, retain, settled, wired

# Names that no rule joins.
MARA, TOM, INES, ACME = "person:mara-silva", "person:tom-reed", "person:ines-lopes", "org:acme-corp"
TEXT = "Mara Silva met Tom Reed and Ines Lopes at Acme Corp."
RULES = {"pipeline": {"entity_extraction": {"mode": "rules"}}}


@pytest.fixture
def outside(monkeypatch: pytest.MonkeyPatch) -> Outside:
    return wired(monkeypatch)


async def link(app: App, source: str, target: str, link_type: str = "knows", **fields: Any) -> str:
    made = await app.gate.call(ANA, CreateEntityLink("notes", [NewEntityLink(source, target, link_type, **fields)]))
    assert made[0].link_id is not None
    return made[0].link_id


async def merge(app: App, *entity_ids: str, into: str) -> None:
    await app.gate.call(ANA, MergeEntities("notes", list(entity_ids), into, "the same"))


async def drop(app: App, memory_id: str, *, compliance: bool = False) -> None:
    await app.gate.call(ANA, Forget("notes", ForgetSelector(memory_ids=(memory_id,)), compliance))


async def held(app: App, outside: Outside, bank_id: str = "notes") -> tuple[list[EntityRecord], list[LinkRecord]]:
    """The content of the store for a bank, once it is up to date."""
    bank = await bank_of(app, bank_id)
    assert await app.pipelines.graph.follower.caught_up(30.0)
    await settled(app, bank)
    name = name_of(app.storage.store.following.installation, bank)
    records = await outside.graph.list_entities(name, limit=10_000)
    return sorted(records, key=lambda record: record.entity_id), await outside.graph.list_links(name, limit=10_000)


def truth(app: App, bank: Bank) -> tuple[dict[str, tuple[Any, ...]], dict[str, tuple[Any, ...]]]:
    """The content that a store must have, told by reads that the callers of the graph have."""
    with app.storage.store.graph.reader(GraphView(bank)) as reader:
        links = [one for _, one in reader.all_links(0, 100_000)]
        entities = reader.each("", 100_000)
    apart = {frozenset((one.entity_a, one.entity_b)) for one in links if one.link_type == DISTINCT_FROM}
    aliases: dict[str, set[str]] = {}
    for one in links:
        if one.link_type == ALIAS_OF and frozenset((one.entity_a, one.entity_b)) not in apart:
            aliases.setdefault(one.entity_a, set()).add(one.entity_b)
    of_callers = [one for one in links if one.origin is LinkOrigin.CALLER]
    linked = {end for one in of_callers for end in (one.entity_a, one.entity_b)}
    with app.storage.store._connections.snapshot() as connection:
        rows = connection.execute(
            "SELECT entity_id, given_name FROM graph_entities WHERE bank_key = ? AND given_name IS NOT NULL",
            (bank.key,),
        )
        given = {str(entity_id): name for entity_id, name in rows.fetchall()}
    records = {
        one.id: (
            one.entity_type,
            given.get(one.id),
            one.aliases,
            dict(one.metadata),
            tuple(sorted(aliases.get(one.id, ()))),
        )
        for one in entities
        if one.id in given or one.aliases or one.metadata or one.id in aliases or one.id in linked
    }
    return records, {
        f"{one.link_id}": (one.entity_a, one.entity_b, one.link_type, one.evidence, one.confidence)
        for one in of_callers
    }


async def equal_the_truth(app: App, outside: Outside, bank_id: str = "notes") -> None:
    records, links = await held(app, outside, bank_id)
    wanted = truth(app, await bank_of(app, bank_id))
    told = {
        one.entity_id: (
            one.entity_type,
            one.name,
            one.aliases,
            {key: value[1:] for key, value in one.metadata.items()},
            tuple(sorted(one.alias_of)),
        )
        for one in records
    }
    assert told == wanted[0]
    assert {
        f"link-{one.id}": (one.source_id, one.target_id, one.link_type, one.evidence, one.confidence) for one in links
    } == wanted[1]
    assert all(one.walked is (one.link_type not in {ALIAS_OF, DISTINCT_FROM}) for one in links)


async def test_every_call_of_a_caller_reaches_the_store(outside: Outside, tmp_path: Path) -> None:
    async with outside.running(tmp_path, **RULES) as app:
        await retain(app, TEXT)
        assert await held(app, outside) == ([], [])

        made = await link(app, MARA, TOM, link_type="reports_to", evidence="the chart", confidence=0.75)
        records, (one,) = await held(app, outside)
        assert [(record.entity_id, record.name, record.alias_of) for record in records] == [
            (MARA, None, ()),
            (TOM, None, ()),
        ]
        assert (one.source_id, one.target_id, one.link_type) == (MARA, TOM, "reports_to")
        assert (one.evidence, one.confidence, one.walked) == ("the chart", 0.75, True)

        update = UpdateEntity("notes", INES, name="Inês", aliases=["I. Lopes"], metadata={"team": "maps"})
        await app.gate.call(ANA, update)
        record = next(record for record in (await held(app, outside))[0] if record.entity_id == INES)
        assert (record.name, record.aliases, record.folded) == ("Inês", ("I. Lopes",), ("inês", "i. lopes"))
        assert record.metadata == {"team": "smaps"}

        await merge(app, MARA, into=INES)
        records, links = await held(app, outside)
        assert {record.entity_id: record.alias_of for record in records} == {MARA: (INES,), TOM: (), INES: ()}
        assert {(one.link_type, one.walked) for one in links} == {("reports_to", True), (ALIAS_OF, False)}

        await app.gate.call(ANA, SplitEntity("notes", MARA, "two people"))
        await app.gate.call(ANA, DeleteEntityLink("notes", made))
        await equal_the_truth(app, outside)
        records, links = await held(app, outside)
        assert [(record.entity_id, record.alias_of) for record in records] == [(INES, ())]
        assert links == []


async def test_names_that_rules_join_are_joined_in_the_store_until_a_caller_splits_them(
    outside: Outside, tmp_path: Path
) -> None:
    async with outside.running(tmp_path, **RULES) as app:
        said = await retain(app, "Alice Smith (formerly Alice Johnson) joined Acme Corp.")
        records, links = await held(app, outside)
        assert ([(record.entity_id, record.alias_of) for record in records], links) == (
            [("person:alice-johnson", ("person:alice-smith",))],
            [],
        )
        await drop(app, said)
        assert await held(app, outside) == ([], [])
        await app.gate.call(ANA, UndeleteMemory("notes", said))
        await equal_the_truth(app, outside)
        assert (await held(app, outside))[0]

        await app.gate.call(ANA, SplitEntity("notes", "person:alice-johnson", ""))
        records, (one,) = await held(app, outside)
        assert [record.alias_of for record in records] == [(), ()]
        assert (one.link_type, one.walked) == (DISTINCT_FROM, False)


async def test_a_link_and_a_name_of_callers_lead_recalls_to_memories(outside: Outside, tmp_path: Path) -> None:
    weights = {"recall": {"weights": {"semantic": 0, "keyword": 0}, "feedback": 0}}
    async with outside.running(tmp_path, **RULES, **weights) as app:
        await retain(app, "Mara Silva has a lantern.")
        other = await retain(app, "Tom Reed repairs kites.")
        third = await retain(app, "Ines Lopes moved to the old mill.")
        await held(app, outside)

        async def led(question: str) -> set[str]:
            found = await app.gate.call(ANA, Recall(RecallQuery(question, "notes", include_trace=True)))
            assert found.trace is not None
            assert found.trace.degraded == ""
            return {str(hit.memory_id) for hit in found.hits if "graph_store" in {arm.arm for arm in hit.arms}}

        assert other not in await led("what does Mara Silva do?")
        await link(app, MARA, TOM, link_type="reports_to")
        await app.gate.call(ANA, UpdateEntity("notes", INES, aliases=["The Miller"]))
        await merge(app, TOM, into=INES)
        await held(app, outside)
        assert {other, third} <= await led("what does Mara Silva do?")
        assert {other, third} <= await led("where is The Miller?")


async def test_what_is_forgotten_leaves_with_its_names_and_links(outside: Outside, tmp_path: Path) -> None:
    async with outside.running(tmp_path, **RULES) as app:
        said = await retain(app, "Mara Silva met Tom Reed.")
        await retain(app, "Ines Lopes works at Acme Corp.")
        await app.gate.call(ANA, UpdateEntity("notes", MARA, aliases=["Mar"], metadata={"k": "v"}))
        await merge(app, TOM, into=INES)
        await merge(app, MARA, into=ACME)
        assert len((await held(app, outside))[0]) == 4
        # A merge keeps no entity: what only the forgotten memory names is gone, with all that was said of it.
        await drop(app, said)
        records, links = await held(app, outside)
        assert ([record.entity_id for record in records], links) == ([], [])
        await app.gate.call(ANA, UndeleteMemory("notes", said))
        await equal_the_truth(app, outside)
        assert len((await held(app, outside))[1]) == 2
        # Its last version says something else: the names are no longer those of now.
        update = MemoryUpdate(said, frozenset({"content"}), content="A kettle stands in the hall.")
        await app.gate.call(ANA, UpdateMemory("notes", update))
        await equal_the_truth(app, outside)
        assert MARA not in {record.entity_id for record in (await held(app, outside))[0]}


async def test_an_erasure_is_confirmed_with_the_names_of_the_graph(outside: Outside, tmp_path: Path) -> None:
    async with outside.running(tmp_path, **RULES) as app:
        said = await retain(app, "Mara Silva met Tom Reed.")
        await app.gate.call(ANA, UpdateEntity("notes", MARA, aliases=["Mar"]))
        await merge(app, TOM, into=MARA)
        assert (await held(app, outside))[0]
        await drop(app, said, compliance=True)
        # Without waiting for anything else.
        assert "mara" not in repr((outside.graph._banks, outside.graph._entities, outside.graph._links)).lower()
        await equal_the_truth(app, outside)


async def test_an_erasure_waits_for_the_names_of_the_graph(
    outside: Outside, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with outside.running(tmp_path, **RULES, outside_stores={"erase_seconds": 0.2}) as app:
        said = await retain(app, "Mara Silva met Tom Reed.")
        await app.gate.call(ANA, UpdateEntity("notes", MARA, aliases=["Mar"]))
        await held(app, outside)

        async def fail(*_: object) -> int:
            raise ConnectionError

        with monkeypatch.context() as away:
            away.setattr(outside.graph, "delete_entities", fail)
            with pytest.raises(ProviderUnavailable, match="graph_store"):
                await drop(app, said, compliance=True)
        await equal_the_truth(app, outside)
        assert await held(app, outside) == ([], [])


async def test_what_an_archive_brings_reaches_the_store(outside: Outside, tmp_path: Path) -> None:
    async with outside.running(tmp_path, **RULES) as app:
        for bank_id in ("notes", "copy"):
            await retain(app, TEXT, bank=bank_id)
        await link(app, MARA, TOM)
        await merge(app, INES, into=TOM)
        await app.gate.call(ANA, UpdateEntity("notes", TOM, aliases=["T."]))
        graph, copy = app.storage.store.graph, await bank_of(app, "copy")
        rows: list[ArchivedEntity | ArchivedLink] = [
            *graph.archived_entities(await bank_of(app), after="", limit=100),
            *graph.archived_links(await bank_of(app), after=0, limit=100)[0],
        ]
        assert await held(app, outside, "copy") == ([], [])
        words = {name: frozenset({name}) for name in (MARA, TOM, INES, ACME, "T.")}
        assert True in await graph.restore(copy, rows, words, by="me", overwrite=False)
        await equal_the_truth(app, outside, "copy")
        records, links = await held(app, outside, "copy")
        assert (len(records), len(links)) == (3, 2)


async def test_a_deleted_bank_leaves_whole(outside: Outside, tmp_path: Path) -> None:
    async with outside.running(tmp_path, **RULES, outside_stores={"compare_seconds": 0.02}) as app:
        await retain(app, TEXT)
        await link(app, MARA, TOM)
        await merge(app, INES, into=TOM)
        await held(app, outside)
        name = name_of(app.storage.store.following.installation, await bank_of(app))
        await app.gate.call(ANA, DeleteBank("notes"))
        async with asyncio.timeout(30):
            while await outside.graph.list_banks(name):  # noqa: ASYNC110 - no event tells of it
                await asyncio.sleep(0.01)
        assert (await outside.graph.list_links(name), await outside.graph.list_entities(name)) == ([], [])
        await retain(app, TEXT)
        await link(app, TOM, INES)
        await equal_the_truth(app, outside)


async def test_a_store_that_was_away_converges(outside: Outside, tmp_path: Path) -> None:
    async with outside.running(tmp_path, **RULES) as app:
        await retain(app, TEXT)
        gone = await link(app, MARA, TOM)
        before = await held(app, outside)
        outside.faults.down = True
        await app.gate.call(ANA, DeleteEntityLink("notes", gone))
        await link(app, INES, ACME, link_type="works_at")
        await merge(app, MARA, into=INES)
        await app.gate.call(ANA, UpdateEntity("notes", TOM, name="Thomas"))
        # Callers have what they asked for; the store has nothing of it.
        assert (await app.gate.call(ANA, GetEntity("notes", MARA))).id == INES
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(settled(app, await bank_of(app)), 0.05)
        name = name_of(app.storage.store.following.installation, await bank_of(app))
        assert len(await outside.graph.list_entities(name)) == len(before[0])
        assert await outside.graph.list_links(name) == before[1]
    # The process ends, and another one finds the store back.
    outside.faults.down = False
    async with outside.running(tmp_path, **RULES) as app:
        await equal_the_truth(app, outside)
        assert len((await held(app, outside))[1]) == 2


async def test_a_rebuild_fills_the_store_anew(outside: Outside, tmp_path: Path) -> None:
    async with outside.running(tmp_path, **RULES) as app:
        await retain(app, TEXT)
        gone = await link(app, MARA, TOM)
        await link(app, TOM, ACME)
        await app.gate.call(ANA, DeleteEntityLink("notes", gone))
        mentions, whole = await outside_mentions(app, outside), await held(app, outside)
        name = name_of(app.storage.store.following.installation, await bank_of(app))
        # As after somebody else wrote into the store.
        outside.graph._links[name].clear()
        outside.graph._entities[name]["ff"] = EntityRecord("ff", name, "person:nobody", "PERSON")
        outside.graph._banks[name].popitem()
        assert await held(app, outside) != whole
        outside.faults.calls.clear()
        # Until the store has dropped the bank: then once more.
        outside.faults.chance = 0.3
        await app.gate.call(ANA, RebuildGraph("notes"))
        assert await held(app, outside) == whole
        outside.faults.chance = 0.0
        assert await outside_mentions(app, outside) == mentions
        assert "drop_bank, done" in outside.faults.calls
        await equal_the_truth(app, outside)
    dropped = outside.faults.calls.count("drop_bank, done")
    async with outside.running(tmp_path, **RULES) as app:
        # A refill is no reason for another one.
        assert await held(app, outside) == whole
        assert outside.faults.calls.count("drop_bank, done") == dropped


async def outside_mentions(app: App, outside: Outside) -> dict[str, object]:
    await held(app, outside)
    name = name_of(app.storage.store.following.installation, await bank_of(app))
    return dict(outside.graph._banks[name])


async def test_a_store_ahead_of_the_graph_begins_anew(outside: Outside, tmp_path: Path) -> None:
    async with outside.running(tmp_path, **RULES) as app:
        await retain(app, TEXT)
        await link(app, MARA, TOM)
        mentions, whole = await outside_mentions(app, outside), await held(app, outside)
        name = name_of(app.storage.store.following.installation, await bank_of(app))
    # As after the data directory was put back to an earlier state.
    await outside.graph.advance_graph(name, 400)
    await outside.graph.store_links([LinkRecord("ff", name, MARA, ACME, "later", "", 1.0, 1)])
    async with outside.running(tmp_path, **RULES) as app:
        assert await held(app, outside) == whole
        assert await outside_mentions(app, outside) == mentions


async def test_what_there_was_before_the_log_is_sent(outside: Outside, tmp_path: Path) -> None:
    """A database of an earlier version: the step of the schema fills the log."""
    async with outside.running(tmp_path, **RULES) as app:
        await retain(app, TEXT)
        await link(app, MARA, TOM)
        await merge(app, INES, into=ACME)
        await app.gate.call(ANA, UpdateEntity("notes", TOM, metadata={"k": "v"}))
        whole = await held(app, outside)
        name = name_of(app.storage.store.following.installation, await bank_of(app))
        earlier = [(change.kind, change.key) for change in feed(app, await bank_of(app))]
        step = next(one for one in load_migrations() if one.name == "graph_changes")
        seeds = [sql for sql in step.sql.split("-- A view")[0].split(";\n") if "INSERT INTO graph_changes" in sql]
        assert len(seeds) == 2

        def work(transaction: Any) -> None:
            transaction.connection.execute("DELETE FROM graph_changes")
            for sql in seeds:
                transaction.connection.execute(sql)

        await app.storage.store._writer.submit(work)
        assert sorted((change.kind, change.key) for change in feed(app, await bank_of(app))) == sorted(earlier)
        await outside.graph.drop_bank(name)
    async with outside.running(tmp_path, **RULES) as app:
        assert await held(app, outside) == whole


def feed(app: App, bank: Bank) -> Sequence[Any]:
    return app.storage.store.graph_feed.changes(bank, after=0, limit=1_000)


@pytest.mark.parametrize("change", [{"tenant": "other"}, {"bank_id": "other"}, {"key": 99}])
async def test_a_bank_that_is_not_what_it_says_has_nothing_to_follow(
    outside: Outside, tmp_path: Path, change: dict[str, Any]
) -> None:
    async with outside.running(tmp_path, **RULES) as app:
        await retain(app, TEXT)
        await link(app, MARA, TOM)
        bank = await bank_of(app)
        own = app.storage.store.graph_feed
        keys = {kind: [one.key for one in feed(app, bank) if one.kind == kind] for kind in ("entity", "link")}
        assert (len(own.entities(bank, keys["entity"])), len(own.links(bank, keys["link"]))) == (2, 1)
        wrong = replace(bank, **change)
        assert (own.entities(wrong, keys["entity"]), own.links(wrong, keys["link"])) == ([], [])


async def test_nothing_is_lost_or_doubled_through_failures_and_restarts(
    outside: Outside, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # So that many steps are cut off between their calls.
    monkeypatch.setattr(graph_sync, "CHANGES_AT_ONCE", 3)
    source = random.Random(SEED)
    people = [f"person:{first}-{last}" for first in ("mara", "tom", "ines") for last in ("silva", "reed", "lopes")]
    known: list[str] = []
    links: list[str] = []
    done: dict[str, int] = {}
    for turn in range(5):
        async with outside.running(tmp_path, **RULES) as app:
            # A third of the calls fail before they have an effect, a third of the others after it.
            outside.faults.chance = 0.3
            for _ in range(30):
                act = source.choice(("say", "say", "link", "link", "merge", "split", "name", "unlink", "drop", "back"))
                if act == "drop" and source.random() < 0.3:
                    act = "erase"
                try:
                    await perform(app, act, source, people, known, links)
                    done[act] = done.get(act, 0) + 1
                except AstrocyteError:
                    # An entity that is not there, a merge that closes a circle, a split of what is not merged.
                    continue
            if turn == 3:
                await app.gate.call(ANA, RebuildGraph("notes"))
            if turn % 2:
                outside.faults.chance = 0.0
                await equal_the_truth(app, outside)
    outside.faults.chance = 0.0
    async with outside.running(tmp_path, **RULES) as app:
        await equal_the_truth(app, outside)
    assert min(done.get(act, 0) for act in ("say", "link", "merge", "split", "name", "unlink", "drop", "back")) > 0, (
        done
    )


async def perform(
    app: App, act: str, source: random.Random, people: list[str], known: list[str], links: list[str]
) -> None:
    one, other = source.sample(people, 2)
    match act:
        case "say":
            names = [name.partition(":")[2].replace("-", " ").title() for name in (one, other)]
            known.append(await retain(app, f"{names[0]} met {names[1]} on day {source.random()}."))
        case "link":
            links.append(await link(app, one, other, link_type=source.choice(("knows", "helps", ALIAS_OF))))
        case "merge":
            await merge(app, one, into=other)
        case "split":
            await app.gate.call(ANA, SplitEntity("notes", one, ""))
        case "name":
            aliases = [f"Alias {source.randrange(9)}"] if source.random() < 0.7 else []
            await app.gate.call(ANA, UpdateEntity("notes", one, aliases=aliases))
        case "unlink" if links:
            await app.gate.call(ANA, DeleteEntityLink("notes", links.pop(source.randrange(len(links)))))
        case "drop" | "erase" if known:
            await drop(app, source.choice(known))
        case "back" if known:
            await app.gate.call(ANA, UndeleteMemory("notes", source.choice(known)))
