"""The slot of a bank in the registry."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import replace

from astrocyte.model import Bank
from astrocyte.pipelines.index.bank_index import BankIndex
from astrocyte.stores.records import IndexBatch


class Slot:
    """The slot of a bank: a published index, or batches queued for the loader."""

    __slots__ = (
        "bank",
        "bytes",
        "gone",
        "index",
        "loading",
        "lock",
        "next",
        "next_bytes",
        "next_pending",
        "pending",
        "used",
        "wanted",
    )

    def __init__(self, bank: Bank) -> None:
        self.bank = bank
        self.lock = threading.Lock()
        self.index: BankIndex | None = None
        self.pending: list[IndexBatch] = []
        self.loading: asyncio.Future[BankIndex] | None = None
        # The index of the model that the bank moves to, once it is whole; and what waits for whoever builds it.
        self.next: BankIndex | None = None
        self.next_pending: list[IndexBatch] | None = None
        self.next_bytes = 0
        # When it was used last, in uses of any bank.
        self.used = 0
        # Position that the index must have for its next use: another process has committed up to there.
        self.wanted = 0
        # What the registry counts for it. Once it is gone from the registry it counts for nothing.
        self.bytes = 0
        self.gone = False


def in_space(batch: IndexBatch, model: str) -> IndexBatch | None:
    """A commit with the vectors of a model; None where a version lacks them."""
    upserts = []
    for version in batch.upserts:
        memory = version.memory.in_space(model)
        if memory is None:
            return None
        upserts.append(replace(version, memory=memory))
    return replace(batch, upserts=tuple(upserts))
