"""Memories to put into a store, made without a pipeline."""

import hashlib
import struct
from collections.abc import Sequence
from dataclasses import replace as changed
from typing import Any

from astrocyte.model import Bank, Entity, ForgetSelector
from astrocyte.stores.protocols import MemoryStore
from astrocyte.stores.records import ChunkRecord, Insert, NewMemory, Passage, Replace, Visibility, WriteOutcome

# The year 2286.
LATER = 10**13
MODEL = "test-model"
DIMENSIONS = 4


class Clock:
    """Milliseconds that go where they are told, backwards too."""

    def __init__(self, now: int = 1_700_000_000_000) -> None:
        self.now = now

    def __call__(self) -> int:
        return self.now


def memory_id(number: int) -> str:
    return f"mem_{number:032x}"


def content_hash(content: str) -> bytes:
    return hashlib.blake2b(content.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def vector(*values: float, dimensions: int = DIMENSIONS) -> bytes:
    padded = [*values, *[0.0] * (dimensions - len(values))]
    return struct.pack(f"<{dimensions}f", *padded)


def memory(number: int, content: str | None = None, **fields: Any) -> NewMemory:
    text = f"memory number {number}" if content is None else content
    defaults: dict[str, Any] = {
        "content_hash": content_hash(text),
        "content_type": "text",
        "fact_type": "world",
        "memory_layer": "semantic",
        "token_count": len(text.split()),
        "vector": vector(number, 1.0),
    }
    return NewMemory(memory_id=memory_id(number), content=text, **{**defaults, **fields})


async def make_bank(store: MemoryStore, bank_id: str = "bank", tenant: str = "default", **fields: Any) -> Bank:
    defaults = {"display_name": "", "description": "", "embedding_model": MODEL, "dimensions": DIMENSIONS}
    return await store.create_bank(tenant, bank_id, **{**defaults, **fields})


async def insert(store: MemoryStore, bank: Bank, *memories: NewMemory) -> list[WriteOutcome]:
    outcomes, _ = await store.commit(bank, [Insert(one) for one in memories])
    return outcomes


async def replace(store: MemoryStore, bank: Bank, new: NewMemory, etag: str | None = None) -> WriteOutcome:
    outcomes, _ = await store.commit(bank, [Replace(new, etag)])
    return outcomes[0]


def current(store: MemoryStore, bank: Bank) -> Bank:
    found = store.get_bank(bank.tenant, bank.bank_id)
    assert found is not None
    return found


def listed(store: MemoryStore, bank: Bank, tags: Sequence[str] = (), session_id: str | None = None) -> list[str]:
    position = current(store, bank).position
    rows, total = store.list_memories(
        bank, tags=tags, session_id=session_id, at_position=position, after=0, limit=10_000
    )
    assert total == len(rows)
    return [one.memory_id for _, one in rows]


EVERYTHING = ForgetSelector(scope="all")
# One with something in every field.
RICH = memory(
    1,
    "Grüße aus Zürich 👋 — second line\nthird",
    content_type="conversation",
    fact_type="experience",
    memory_layer="episodic",
    chunks=(ChunkRecord("Grüße aus Zürich 👋", 4, vector(1.0)), ChunkRecord("third", 1, None)),
    tags=("b", "a", "ünï"),
    metadata={"n": 1, "f": 0.5, "s": "x", "t": True, "none": None, "big": 2**70},
    source="mail",
    session_id="s1",
    speaker="Ana",
    principal="someone",
    occurred_at=-1_000,
    valid_from=5,
    valid_until=4_102_444_800_000,
    entities=(Entity("Zürich", "PLACE"), Entity("Straße", "NAME")),
)


def seen(store: MemoryStore, bank: Bank, visibility: Visibility | None = None, ordinal: int = -1) -> list[str]:
    """Ids that hydrate lets through when everything is proposed."""
    passages, looked = [Passage(key, ordinal) for key in range(1, 200)], visibility or Visibility()
    rows = store.hydrate(bank, passages, looked)
    # The same among other banks, of which none is there.
    asked = [(changed(bank, key=-1), passages), (bank, passages), (changed(bank, key=-2), [])]
    assert [sorted(own) for own in store.hydrate_each(asked, looked)] == [[], sorted(rows), []]
    return sorted(row.memory_id for row in rows)


async def forget(store: MemoryStore, bank: Bank, selector: ForgetSelector, purge_after: int = LATER) -> list[str]:
    _, memory_ids, *_ = await store.forget(bank, selector, reason="test", principal="tester", purge_after=purge_after)
    return memory_ids
