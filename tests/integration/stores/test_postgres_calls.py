"""Every call on a PostgreSQL database: no statement of one is refused, whatever the call does with its failure."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import apsw
import pytest

from astrocyte.api import RPCS, requests
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.errors import AstrocyteError, StoreError
from astrocyte.model import (
    Caller,
    ExplainQuery,
    ForgetSelector,
    GraphFormat,
    MemoryUpdate,
    NewEntityLink,
    OnConflict,
    RecallQuery,
    RetainItem,
    TagMatch,
    TermDecision,
    TimeRange,
)
from astrocyte.stores.postgres.engine.connection import Connection
from doubles.stages import ME
from external import postgres
from harness.calls import ROWS, calls
from samples.archiving import export, load

BANK = "people"
ALICE, BOB = "person:alice-smith", "person:bob-miller"
EARLY, LATE = datetime(2020, 1, 1, tzinfo=UTC), datetime(2035, 1, 1, tzinfo=UTC)
ITEMS = (
    RetainItem("Alice Smith works at Acme Corp.", tags=("work", "people"), metadata={"team": "red", "floor": 3}),
    RetainItem("Bob Miller sat beside Alice Smith.", tags=("people",), metadata={"seat": 1.5, "window": True}),
    RetainItem("Bob Miller leads Acme Corp in Berlin.", tags=("work",), occurred_at=EARLY, session_id="s1"),
    RetainItem("The canteen opens at noon.", metadata={"none": None, "open": False}),
    RetainItem("The canteen opens at noon on Mondays.", fact_type="world"),
    RetainItem("Carla Jones moved to Berlin with Bob Miller.", source="a letter", speaker="Carla"),
)
METADATA = ({"team": "red"}, {"floor": 3}, {"seat": 1.5}, {"window": True}, {"open": False}, {"none": None})
FILTERS: tuple[dict[str, Any], ...] = (
    *({"metadata": one} for one in METADATA),
    {"metadata": {"team": "red", "floor": 3}},
    *({"tags": ("people", "work"), "tag_match": match} for match in TagMatch),
    {"fact_types": ("world", "experience")},
    {"session_id": "s1"},
    {"time_range": TimeRange(EARLY, LATE), "retained_range": TimeRange(EARLY, LATE)},
    {"as_of": LATE},
    {"valid_at": LATE},
    {"include_archived": True, "include_sources": True},
)


@pytest.fixture
def refused(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Statements that fail on any connection, each with its error."""
    found: list[str] = []
    execute = Connection.execute

    def spied(self: Connection, sql: str, bindings: Any = ()) -> Any:
        try:
            return execute(self, sql, bindings)
        except apsw.ConstraintError:
            # A name that is taken: the store asks the database whether it is.
            raise
        except Exception as error:
            found.append(f"{type(error).__name__}: {error}: {sql}")
            raise

    monkeypatch.setattr(Connection, "execute", spied)
    return found


@asynccontextmanager
async def people(caller: Caller = ME, **sections: Any) -> AsyncIterator[tuple[App, list[str]]]:
    """An application on a database of its own, with a bank of memories; their ids."""
    with postgres.schema() as schema:
        store = {"backend": "postgres", "dsn": postgres.address(), "schema_name": schema}
        app = App(Settings.from_mapping({"store": store, **sections}))
        try:
            app.start_purging()
            await app.backend.call(caller, requests.CreateBank(BANK))
            done = await app.backend.call(caller, requests.BatchRetain(BANK, list(ITEMS)))
            yield app, [one.memory_id or "" for one in done]
        finally:
            await app.close()


@pytest.mark.timeout(240)
async def test_no_statement_of_any_call_is_refused(refused: list[str]) -> None:
    async with people() as (app, ids):
        failed = {}
        # The bank lives until the end.
        for name in sorted(ROWS, key=lambda name: name == "DeleteBank"):
            try:
                async with asyncio.timeout(20):
                    await calls(ids[1])[name](app.backend, ME, BANK)
            except StoreError as error:
                failed[name] = error.message
            except AstrocyteError:
                continue
        assert failed == {}
        assert len(calls(ids[1])) == len(RPCS)
    assert refused == []


@pytest.mark.timeout(240)
async def test_a_recall_works_with_every_filter(refused: list[str]) -> None:
    async with people() as (app, ids):
        assert await app.pipelines.graph.follower.caught_up(30.0)
        found = {}
        for place, given in enumerate(FILTERS):
            query = RecallQuery("Where do Alice Smith and Bob Miller work?", BANK, **given)
            result = await app.backend.call(ME, requests.Recall(query))
            assert result.hits, given
            found[place] = {hit.memory_id for hit in result.hits}
            await app.backend.call(ME, requests.Explain(ExplainQuery(query, tuple(ids[:2]))))
        assert [found[place] for place in range(len(METADATA))] == [{ids[place]} for place in (0, 0, 1, 1, 3, 3)]
    assert refused == []


ROOT = {"bank_id": "*", "principal": "user:root", "permissions": ["*"]}
PARTS = ("graph", "observations", "mental_models", "directives", "wiki_pages")


@pytest.mark.timeout(240)
async def test_the_graph_works_with_names_that_a_bank_has(refused: list[str]) -> None:
    async with people() as (app, ids):
        call = app.backend.call
        assert await app.pipelines.graph.follower.caught_up(30.0)
        names = {one.id for one in (await call(ME, requests.ListEntities(BANK, page_size=2))).entities}
        assert len(names) == 2
        for as_of in (None, LATE):
            assert (await call(ME, requests.SearchEntities(BANK, "alice", as_of=as_of)))[0].id == ALICE
            assert (await call(ME, requests.GetEntity(BANK, BOB, as_of))).id == BOB
            assert (await call(ME, requests.ListEntities(BANK, "PERSON", as_of=as_of))).entities
            assert (await call(ME, requests.Neighbors(BANK, [ALICE], 3, as_of=as_of, valid_at=as_of))).entities
            assert (await call(ME, requests.FindPath(BANK, ALICE, BOB, 3, as_of=as_of, valid_at=as_of))).paths
        link = NewEntityLink(ALICE, BOB, "knows", "so they say", 0.5, {"n": 1}, EARLY, LATE)
        (made,) = await call(ME, requests.CreateEntityLink(BANK, [link]))
        await call(ME, requests.UpdateEntity(BANK, ALICE, "Ally", ["Zelda"], {"team": "x"}))
        await call(ME, requests.Recall(RecallQuery("Zelda", BANK)))
        for kind in GraphFormat:
            assert [part async for part in app.backend.stream(ME, requests.ExportGraph(BANK, kind))]
        await call(ME, requests.MergeEntities(BANK, [BOB], ALICE, "one person"))
        await call(ME, requests.SplitEntity(BANK, BOB))
        await call(ME, requests.DeleteEntityLink(BANK, made.link_id))
        await call(ME, requests.Forget(BANK, ForgetSelector(memory_ids=(ids[5],))))
        await call(ME, requests.RebuildGraph(BANK))
        assert (await call(ME, requests.GetGraphStats(BANK))).entities
    assert refused == []


@pytest.mark.timeout(240)
async def test_knowledge_works_on_memories_that_a_bank_has(refused: list[str]) -> None:
    async with people(wiki={"min_memories": 2, "cluster_similarity": 0.5}) as (app, ids):
        call = app.backend.call
        assert await app.pipelines.graph.follower.caught_up(30.0)
        done = await call(ME, requests.ConsolidateBank(BANK))
        await call(ME, requests.WaitOperation(BANK, done.operation_id, 10.0))
        seen = await call(ME, requests.CreateObservation(BANK, "Bob leads Acme", ids[:3]))
        await call(ME, requests.UpdateObservation(BANK, seen.observation_id, "Bob led Acme", ids[1:3], 0.5))
        assert (await call(ME, requests.ListObservations(BANK, text="acme", page_size=1))).observations
        assert (await call(ME, requests.ListObservationRevisions(BANK, seen.observation_id))).revisions
        model = await call(ME, requests.CreateMentalModel(BANK, "Acme", content="A firm", source_ids=ids[:3]))
        await call(ME, requests.RefreshMentalModel(BANK, model.model_id, "A firm in Berlin", ids[:2]))
        await call(ME, requests.DiffMentalModelRevisions(BANK, model.model_id, 1, 2))
        await call(ME, requests.DeleteMentalModel(BANK, model.model_id))
        await call(ME, requests.UndeleteMentalModel(BANK, model.model_id))
        await call(ME, requests.CreateDirective(BANK, "Answer in English", "tag:work", 3))
        for tag in ("food", "lunch"):
            await call(ME, requests.CompileBank(BANK))
            pages = (await call(ME, requests.ListPages(BANK))).pages
            assert {page.kind.value for page in pages} == {"topic", "entity", "cluster"}
            for page in pages:
                await call(ME, requests.GetPage(BANK, page.page_id))
            await call(ME, requests.UpdateMemory(BANK, MemoryUpdate(ids[0], frozenset({"tags"}), tags=(tag,))))
        assert await call(ME, requests.SearchPages(BANK, "canteen"))
        await call(ME, requests.LintPages(BANK))
        await call(ME, requests.DiagnoseBank(BANK))
        await call(ME, requests.RepairBank(BANK))
        await call(ME, requests.AuditCoverage(BANK, "tag:work", ["Where does Bob work?"], tags=("work",)))
        assert await call(ME, requests.InvalidateObservations(BANK, ids[1:2]))
    assert refused == []


@pytest.mark.timeout(240)
async def test_a_bank_goes_through_its_administration(refused: list[str]) -> None:
    admin = Caller(principal="user:root")
    async with people(
        admin, access_control={"enabled": True}, access_grants=[ROOT], directives={"allowed_principals": ["user:root"]}
    ) as (app, ids):
        call = app.backend.call
        await call(admin, requests.Grant(BANK, "user:guest", ["read"]))
        for given in ({"memory_ids": tuple(ids[:2])}, {"tags": ("work",)}):
            await call(admin, requests.PlaceHold(BANK, "a case", **given))
        await call(admin, requests.CompileBank(BANK))
        whole: dict[str, Any] = {f"include_{part}": True for part in PARTS}
        archive = await export(app.backend, BANK, admin, include_embeddings=True, include_grants=True, **whole)
        for conflict in (OnConflict.SKIP, OnConflict.OVERWRITE):
            done = await load(app.backend, archive, "copy", admin, on_conflict=conflict, include_grants=True, **whole)
            assert done.imported == (len(ids) if conflict is OnConflict.SKIP else 0), done
        run = await call(admin, requests.RunLifecycle("copy", merge_duplicates=True, similarity_threshold=0.8))
        ended = await call(admin, requests.WaitOperation("copy", run.operation_id, 20.0))
        assert ended.state.value == "succeeded", ended
        for selector in (ForgetSelector(tags=("food",)), ForgetSelector(before_date=EARLY.replace(year=2021))):
            await call(admin, requests.Forget("copy", selector))
        proposed = await call(admin, requests.ProposeTerm("Acme", ("ACME",), "a firm", ids[0]))
        await call(admin, requests.ReviewTerm(proposed.term_id, TermDecision.APPROVE))
        assert (await call(admin, requests.LookupTerm("acme"))) is not None
        assert (await call(admin, requests.ListMemories(BANK, ("work",), page_size=1))).memories
        await call(admin, requests.Forget("copy", ForgetSelector(scope="all"), compliance=True))
        await call(admin, requests.DeleteBank("copy"))
    assert refused == []
