"""An RPC that is made by the recipe in CONTRIBUTING.md works at the gate, on the server and in the client."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool

from astrocyte.api import RPCS, Backend, Concurrency, Request, Rpc, StreamRequest
from astrocyte.api.requests import Retain
from astrocyte.api.rpcs import READ
from astrocyte.client import RemoteBackend
from astrocyte.errors import AccessDenied, BankNotFound, ValidationError
from astrocyte.model import Caller, RetainItem
from astrocyte.policy.gate import Gate
from astrocyte.policy.requests import field_checks
from harness.calls import ask
from harness.doors import api_keys, secret_of
from harness.serving import Served, serving

SERVICE = "astrocyte.test.ThrowAwayService"
ANN, BOB = Caller(principal="user:ann"), Caller(principal="user:bob")
Field = descriptor_pb2.FieldDescriptorProto


# Step 1, the messages: what a .proto file would say.
def protocol() -> descriptor_pb2.FileDescriptorProto:
    file = descriptor_pb2.FileDescriptorProto(name="astrocyte/test/throw_away.proto", package="astrocyte.test")
    file.syntax = "proto3"
    for name, fields in {
        "CountWordsRequest": {"bank_id": Field.TYPE_STRING, "memory_id": Field.TYPE_STRING, "least": Field.TYPE_INT32},
        "CountWordsResponse": {"words": Field.TYPE_INT64, "first": Field.TYPE_STRING},
        "StreamWordsRequest": {"bank_id": Field.TYPE_STRING, "memory_id": Field.TYPE_STRING},
        "StreamWordsResponse": {"word": Field.TYPE_STRING},
    }.items():
        message = file.message_type.add(name=name)
        for number, (field, kind) in enumerate(fields.items(), 1):
            message.field.add(name=field, number=number, type=kind, label=Field.LABEL_OPTIONAL)
    service = file.service.add(name="ThrowAwayService")
    for name in ("CountWords", "StreamWords"):
        service.method.add(
            name=name,
            input_type=f".astrocyte.test.{name}Request",
            output_type=f".astrocyte.test.{name}Response",
            server_streaming=name == "StreamWords",
        )
    return file


# Step 2, the request and its response.
@dataclass(frozen=True, slots=True)
class WordCount:
    words: int
    first: str | None = None


@dataclass(slots=True)
class CountWords(Request[WordCount]):
    bank_id: str
    memory_id: str
    least: int = 0


@dataclass(slots=True)
class StreamWords(StreamRequest[str]):
    bank_id: str
    memory_id: str


# Step 3, the rows.
ROWS = (
    Rpc(SERVICE, CountWords, READ, concurrency=Concurrency.READ),
    Rpc(SERVICE, StreamWords, READ, concurrency=Concurrency.STREAM),
)


# Step 4, the handlers.
class Words:
    def __init__(self, gate: Gate) -> None:
        self._banks = gate._banks
        self._store = gate._memories._store

    async def count_words(self, caller: Caller, request: CountWords) -> WordCount:
        words = self._words(caller, "CountWords", request.bank_id, request.memory_id)
        field_checks.integer(request.least, "least", 0, 10)
        return WordCount(len(words), words[0] if words else None)

    async def stream_words(self, caller: Caller, request: StreamWords) -> AsyncIterator[str]:
        for word in self._words(caller, "StreamWords", request.bank_id, request.memory_id):
            yield word

    def _words(self, caller: Caller, rpc: str, bank_id: str, memory_id: str) -> list[str]:
        self._banks.require(caller, rpc, bank_id)
        memory = self._store.memory(self._banks.handle(caller, rpc, bank_id), memory_id)
        return [] if memory is None else memory.content.split()


@pytest.fixture
def rpcs(monkeypatch: pytest.MonkeyPatch) -> None:
    """The table with the new rows, and a gate with their handlers."""
    pool = descriptor_pool.Default()
    try:
        pool.FindServiceByName(SERVICE)
    except KeyError:
        pool.Add(protocol())
    for row in ROWS:
        monkeypatch.setitem(RPCS, row.request, row)
    build = Gate.__init__

    def with_handlers(self: Gate, parts: Any) -> None:
        build(self, parts)
        words = Words(self)
        self._handlers[CountWords] = words.count_words
        self._streams[StreamWords] = words.stream_words

    monkeypatch.setattr(Gate, "__init__", with_handlers)


@asynccontextmanager
async def served() -> AsyncIterator[Served]:
    grant = {"bank_id": "*", "principal": ANN.principal, "permissions": ["*"]}
    control = {"access_control": {"enabled": True}, "access_grants": [grant]}
    async with serving(auth={"api_keys": api_keys([ANN, BOB])}, **control) as started:
        yield started


@pytest.mark.usefixtures("rpcs")
@pytest.mark.parametrize("remote", [False, True], ids=["gate", "client"])
async def test_an_rpc_that_is_made_by_the_recipe_answers(remote: bool) -> None:
    async with served() as started:
        gate: Backend = started.app.backend
        clients = {who: RemoteBackend(started.address, api_key=secret_of(who)) for who in (ANN, BOB)}
        kept = await started.app.gate.call(ANN, Retain("family", RetainItem("Mara plays the oboe.")))
        memory = kept.memory_id or ""

        async def asked(who: Caller, request: Any) -> Any:
            backend, caller = (clients[who], Caller()) if remote else (gate, who)
            rpc = RPCS[type(request)]
            if rpc.server_streaming:
                return [piece async for piece in backend.stream(caller, request)]
            return await ask(backend, caller, rpc, request)

        assert await asked(ANN, CountWords("family", memory)) == WordCount(4, "Mara")
        assert await asked(ANN, CountWords("family", "mem_1")) == WordCount(0, None)
        assert await asked(ANN, StreamWords("family", memory)) == ["Mara", "plays", "the", "oboe."]
        with pytest.raises(BankNotFound):
            await asked(ANN, CountWords("nowhere", memory))
        with pytest.raises(ValidationError, match="least"):
            await asked(ANN, CountWords("family", memory, 11))
        for request in (CountWords("family", memory), StreamWords("family", memory)):
            with pytest.raises(AccessDenied, match="'user:bob' lacks read access to bank 'family'"):
                await asked(BOB, request)
        for client in clients.values():
            await client.close()


@pytest.mark.usefixtures("rpcs")
async def test_a_value_that_cannot_be_sent_is_named() -> None:
    async with served() as started:
        client = RemoteBackend(started.address, api_key=secret_of(ANN))
        with pytest.raises(ValidationError, match="lone surrogate") as refusal:
            await client.call(Caller(), CountWords("family", "\ud800"))
        assert refusal.value.field == "memory_id"
        await client.close()
