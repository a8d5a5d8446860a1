"""Every RPC over HTTP says what it says at the gate: answers, errors and streams."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from typing import Any

from astrocyte.api import RPCS, Rpc
from astrocyte.api.requests import (
    CreateBank,
    Explain,
    ExportBank,
    GetMemory,
    ImportBank,
    ListMemories,
    Recall,
    Retain,
    StreamRetain,
)
from astrocyte.errors import AstrocyteError
from astrocyte.model import ExplainQuery, Metadata, RecallQuery, RetainItem
from harness.calls import ROWS, ask, request_of
from harness.http_doors import BINDINGS, ME, opened

BANK = "family"
TEXTS = ("Mara is allergic to sesame.", "Mara lives in Lisbon.", "The cat is called Otto.")


def test_every_rpc_has_a_path() -> None:
    assert {rpc.name for rpc in RPCS.values()} == {kind.__name__ for kind in BINDINGS}


async def outcome(backend: Any, rpc: Rpc, request: Any) -> Any:
    try:
        return await ask(backend, ME, rpc, request)
    except AstrocyteError as error:
        return type(error), str(error), error.metadata


def plain(value: Any) -> Any:
    """A value without what differs from call to call: instants, measured times and the ids of keys."""
    if is_dataclass(value) and not isinstance(value, type):
        left_out = {"trace", "index_memory", "started_at"}
        return {field.name: plain(getattr(value, field.name)) for field in fields(value) if field.name not in left_out}
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        return [plain(item) for item in value]
    if isinstance(value, float):
        return round(value, 9)
    return value.replace(microsecond=0) if hasattr(value, "microsecond") else value


async def test_reads_answer_as_at_the_gate() -> None:
    async with opened() as (app, doors):
        kept = [await app.gate.call(ME, Retain(BANK, RetainItem(text))) for text in TEXTS]
        for name, rpc in ROWS.items():
            # An archive has the time of its export, and so another checksum each time.
            if not rpc.mutates and not rpc.waits and rpc.request is not ExportBank:
                request = request_of(rpc, BANK, str(kept[0].memory_id))
                expected = await outcome(app.gate, rpc, request)
                found = await outcome(doors, rpc, request)
                assert plain(found) == plain(expected), name


async def test_changes_answer_as_at_the_gate() -> None:
    """Each on a bank of its own, once at the gate and once over HTTP; the ids that they make differ."""
    async with opened() as (app, doors):
        for name, rpc in ROWS.items():
            # An archive has tests of its own: its messages are no fields of a request.
            if rpc.mutates and rpc.request is not ImportBank:
                shapes: list[Any] = []
                for backend in (app.gate, doors):
                    bank = f"{name}-{len(shapes)}"
                    kept = await app.gate.call(ME, Retain(bank, RetainItem(TEXTS[0])))
                    shapes.append(shape(await outcome(backend, rpc, request_of(rpc, bank, str(kept.memory_id)))))
                assert shapes[0] == shapes[1], name


def shape(value: Any) -> Any:
    """Types of a value and of its fields."""
    if isinstance(value, str):
        return str
    if is_dataclass(value) and not isinstance(value, type):
        return type(value), {field.name: shape(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, (list, tuple)) and not (value and isinstance(value[0], type)):
        return [shape(item) for item in value]
    return value[0] if isinstance(value, tuple) else type(value)


async def test_all_values_of_a_memory_cross_both_ways() -> None:
    values: Metadata = {"text": "x", "whole": 2**63 - 1, "half": 0.5, "float": 2.0, "yes": True, "none": None}
    item = RetainItem("Mara is allergic to sesame.", metadata=values, tags=("health", "ä/&?"), speaker="Ines")
    async with opened() as (_, doors):
        kept = await doors.call(ME, Retain(BANK, item, request_id="r-1"))
        again = await doors.call(ME, Retain(BANK, item, request_id="r-1"))
        memory = await doors.call(ME, GetMemory(BANK, str(kept.memory_id)))
        page = await doors.call(ME, ListMemories(BANK, tags=("ä/&?", "other")))
        found = await doors.call(ME, Recall(RecallQuery("sesame", BANK, metadata={"whole": 2**63 - 1})))
    assert again == kept
    assert memory.metadata == values
    assert {key: type(value) for key, value in memory.metadata.items()} == {k: type(v) for k, v in values.items()}
    assert (memory.tags, memory.speaker) == (("health", "ä/&?"), "Ines")
    assert [one.memory_id for one in page.memories] == [hit.memory_id for hit in found.hits] == [kept.memory_id]


async def test_an_explanation_has_a_request_that_can_be_sent() -> None:
    async with opened() as (_, doors):
        kept = [await doors.call(ME, Retain(BANK, RetainItem(text))) for text in TEXTS]
        query = RecallQuery("Mara", BANK, max_results=1)
        hits = (await doors.call(ME, Recall(query))).hits
        lost = next(str(one.memory_id) for one in kept if one.memory_id != hits[0].memory_id)
        told = await doors.call(ME, Explain(ExplainQuery(query, (lost,))))
        advised = told.explanations[0].counterfactual
        assert advised is not None
        assert lost in {hit.memory_id for hit in (await doors.call(ME, Recall(advised.query))).hits}


async def test_a_stream_of_requests_answers_item_by_item() -> None:
    items = [RetainItem(TEXTS[0]), RetainItem(""), RetainItem(TEXTS[1])]
    async with opened() as (_, doors):
        answers: Any = await doors.call(ME, StreamRetain(BANK, items))
    first, refused, last = answers
    assert (first.stored, last.stored) == (True, True)
    assert refused.metadata["field"] == "content"


async def test_a_bank_whose_id_ends_as_a_verb_does_can_be_named() -> None:
    async with opened() as (_, doors):
        await doors.call(ME, CreateBank("team:reindex"))
        response = await doors.client.get("/v1/banks/team:reindex", headers=doors._headers(ME))
        assert response.json()["bank"]["bank_id"] == "team:reindex"
        kept = await doors.call(ME, Retain("a:undelete", RetainItem(TEXTS[0])))
        assert (await doors.call(ME, GetMemory("a:undelete", str(kept.memory_id)))).content == TEXTS[0]
