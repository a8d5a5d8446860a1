"""Receipts of erasures: what they prove, and how they are kept for a retry."""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime

from astrocyte.model import ErasureReceipt
from astrocyte.stores.sqlite.engine.writer import Slices

SALT_BYTES = 16
# Hashed while the writer waits: some milliseconds' worth.
IDS_AT_ONCE = 4_096

Answer = tuple[list[str], int, ErasureReceipt]


def receipt(
    erased: Sequence[str],
    counts: Mapping[str, int],
    *,
    before: Sequence[str],
    after: Sequence[str],
    completed_at: datetime,
) -> Slices[ErasureReceipt]:
    """The receipt of an erasure; in slices, because a large bank has many ids to hash.

    Args:
        erased: Ids of the memories.
        counts: Rows that went, by table.
        before: Ids of all memories of the bank when the erased ones were hidden, these included.
        after: Those of them that are there still.
        completed_at: When the files were clean.
    """
    salt = secrets.token_hex(SALT_BYTES)
    salted: dict[str, str] = {}
    for start in range(0, len(before), IDS_AT_ONCE):
        for memory_id in before[start : start + IDS_AT_ONCE]:
            salted[memory_id] = hashlib.sha256(f"{salt}{memory_id}".encode()).hexdigest()
        yield
    roots = []
    for memory_ids in (before, after):
        roots.append(_root([salted[memory_id] for memory_id in memory_ids]))
        yield
    return ErasureReceipt(
        counts=dict(counts),
        salt=salt,
        salted_ids=tuple(salted[memory_id] for memory_id in erased),
        root_hash_before=roots[0],
        root_hash_after=roots[1],
        completed_at=completed_at,
    )


def encode(answer: Answer) -> bytes:
    """An answer as a response to a request id."""
    memory_ids, position, receipt = answer
    written = {**asdict(receipt), "completed_at": receipt.completed_at.isoformat()}
    return json.dumps([memory_ids, position, written]).encode()


def decode(response: bytes) -> Answer:
    """The inverse of `encode`."""
    memory_ids, position, written = json.loads(response)
    receipt = ErasureReceipt(**written)
    completed_at = datetime.fromisoformat(written["completed_at"])
    return memory_ids, position, replace(receipt, salted_ids=tuple(receipt.salted_ids), completed_at=completed_at)


def _root(salted: list[str]) -> str:
    salted.sort()
    return hashlib.sha256("".join(salted).encode()).hexdigest()
