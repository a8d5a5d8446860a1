"""The entity graph over the wire, on the command line, and after a kill."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import grpc
import pytest
from click.testing import CliRunner

from astrocyte import Astrocyte
from astrocyte.api.requests import CreateEntityLink, ExportGraph, UpdateEntity
from astrocyte.cli import cli, output
from astrocyte.errors import NotFound, ValidationError
from astrocyte.model import GraphFormat, NewEntityLink
from astrocyte.v1 import graph_pb2, graph_pb2_grpc
from harness.serving import reason, serving
from samples.entity_graphs import BANK, ME, say

ALICE, BOB, ACME = "person:alice-smith", "person:bob-miller", "org:acme-corp"


async def test_every_answer_is_the_same_over_the_wire() -> None:
    async with serving() as served:
        await say(served.app, "Alice Smith works at Acme Corp.")
        await say(served.app, "Bob Miller sat beside Alice Smith.")
        near, far = Astrocyte(served.app.gate), Astrocyte(served.backend)
        when = datetime(2020, 1, 1, tzinfo=UTC)
        link = NewEntityLink(ALICE, BOB, "knows", "so they say", 0.0, {"n": 1}, when, when.replace(year=2021))
        (made,) = await far.create_entity_links([link], BANK)
        assert (made.confidence, made.valid_from, made.valid_until) == (0.0, when, when.replace(year=2021))
        assert made.metadata == {"n": 1}
        changed = await far.update_entity(ALICE, BANK, name="Ally", aliases=["Zelda"], metadata={"team": "x"})
        assert changed == await near.get_entity(ALICE, BANK)
        cleared = await far.update_entity(ALICE, BANK, aliases=[], metadata={})
        assert (cleared.name, cleared.aliases, cleared.metadata) == ("Ally", (), {})
        assert await far.graph_search("ally", BANK) == await near.graph_search("ally", BANK) != []
        assert await far.list_entities(BANK) == await near.list_entities(BANK)
        assert await far.graph_neighborhood([ALICE], BANK) == await near.graph_neighborhood([ALICE], BANK)
        assert await far.find_path(ACME, BOB, BANK, max_paths=3) == await near.find_path(ACME, BOB, BANK, max_paths=3)
        assert await far.graph_stats(BANK) == await near.graph_stats(BANK)
        for kind in GraphFormat:
            pieces = [piece async for piece in far.export_graph(BANK, format=kind)]
            assert pieces == [piece async for piece in near.export_graph(BANK, format=kind)] != []
        merged = await far.merge_entities([BOB], ALICE, BANK, reason="one person")
        assert merged.merged_ids == (BOB,)
        assert (await far.split_entity(BOB, BANK)).merged_ids == ()
        assert await far.delete_entity_link(made.link_id, BANK) == made.link_id
        assert (await far.rebuild_graph(BANK)).entities == 3
        with pytest.raises(NotFound):
            await far.get_entity("person:nobody", BANK)


async def test_the_confidence_of_a_link_is_one_unless_it_is_set() -> None:
    async with serving() as served:
        await say(served.app, "Bob Miller sat beside Alice Smith.")
        stub = graph_pb2_grpc.GraphServiceStub(served.channel)
        links = [graph_pb2.NewEntityLink(entity_a=ALICE, entity_b=BOB, link_type="knows")]
        request = graph_pb2.CreateEntityLinkRequest(bank_id=BANK, links=links)
        answer = await stub.CreateEntityLink(request)
        assert answer.links[0].confidence == 1.0
        assert answer.links[0].origin == graph_pb2.LINK_ORIGIN_CALLER


async def test_a_wrong_mask_and_a_wrong_format_are_refused() -> None:
    async with serving() as served:
        await say(served.app, "Bob Miller sat beside Alice Smith.")
        stub = graph_pb2_grpc.GraphServiceStub(served.channel)
        for paths in ([], ["id"], ["name", "mention_count"]):
            request = graph_pb2.UpdateEntityRequest(bank_id=BANK, entity_id=ALICE, name="x")
            request.update_mask.paths.extend(paths)
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await stub.UpdateEntity(request)
            assert reason(caught.value) == "INVALID_ARGUMENT"
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            async for _ in stub.ExportGraph(graph_pb2.ExportGraphRequest(bank_id=BANK, format=7)):  # type: ignore[arg-type]
                pass
        assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
        with pytest.raises(ValidationError):
            await served.backend.call(ME, UpdateEntity(BANK, ALICE, metadata={"k": object()}))  # type: ignore[dict-item]
        with pytest.raises(ValidationError):
            await served.backend.call(ME, CreateEntityLink(BANK, [NewEntityLink(ALICE, BOB, "knows", confidence=2.0)]))
        pieces = [piece async for piece in served.backend.stream(ME, ExportGraph(BANK))]
        assert pieces


def test_the_commands_print_tables_json_and_graphviz(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output.OUT, "width", 160)

    def run(*arguments: str) -> str:
        result = CliRunner().invoke(cli, ["--data-dir", str(tmp_path), *arguments], catch_exceptions=False)
        assert result.exit_code == 0, result.output
        return result.output

    run("retain", BANK, "Alice Smith works at Acme Corp.")
    run("retain", BANK, "Bob Miller sat beside Alice Smith.")
    assert ALICE in run("graph", "search", BANK, "alice")
    found = json.loads(run("--json", "graph", "search", BANK, "alice"))
    assert [(one["id"], one["mention_count"]) for one in found] == [(ALICE, 2)]
    assert "works_at" in run("graph", "neighbors", BANK, ALICE)
    dot = run("graph", "neighbors", BANK, ALICE, "--dot")
    assert dot.startswith("digraph entities {")
    assert f'"{ALICE}" -> "{ACME}" [label="works_at"];' in dot
    assert f"{ALICE} -works_at-> {ACME}" in run("graph", "path", BANK, ACME, BOB)
    made = run("graph", "link", BANK, ALICE, "knows", BOB, "--confidence", "0.5")
    assert "knows" in made
    assert made.partition(":")[0] in run("graph", "unlink", BANK, made.partition(":")[0])
    assert "Zelda" in run("graph", "update", BANK, ALICE, "--alias", "Zelda", "--meta", "team=platform")
    assert BOB in run("graph", "merge", BANK, BOB, "--into", ALICE)
    assert BOB in run("graph", "split", BANK, BOB)
    assert "ORG" in run("graph", "list", BANK, "--entity-type", "ORG")
    assert "Ali" in run("graph", "get", BANK, ALICE)
    assert "mentions" in run("graph", "stats", BANK)
    lines = run("graph", "export", BANK).splitlines()
    assert {json.loads(line)["kind"] for line in lines} == {"entity", "link"}
    assert "<graphml" in run("graph", "export", BANK, "--format", "graphml")
    assert '"rebuilding": false' in run("--json", "graph", "rebuild", BANK)


async def test_what_was_not_derived_before_a_stop_is_derived_after_it(tmp_path: Path) -> None:
    off = {"enabled": False, "read_wait_seconds": 0.01}
    async with serving(vector_store="sqlite", data_dir=str(tmp_path), entity_graph=off) as served:
        for number in range(200):
            await say(served.app, f"Alice Smith works at Acme Corp. Note {number}.")
        brain = Astrocyte(served.backend)
        assert (await brain.graph_stats(BANK)).pending_memories == 200
    async with serving(vector_store="sqlite", data_dir=str(tmp_path)) as served:
        brain = Astrocyte(served.backend)
        assert (await brain.get_entity(ALICE, BANK)).mention_count == 200
        assert (await brain.graph_stats(BANK)).pending_memories == 0
