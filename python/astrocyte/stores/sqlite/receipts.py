"""Receipts of erasures: what they prove, and how they are kept for a retry."""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime

from astrocyte.model import ErasureReceipt
from astrocyte.stores.sqlite.forgetting import LISTED_IDS

SALT_BYTES = 16

Answer = tuple[list[str], int, ErasureReceipt]


def answer(
    erased: Sequence[str],
    position: int,
    counts: Mapping[str, int],
    *,
    before: Sequence[str],
    after: Sequence[str],
    completed_at: datetime,
) -> Answer:
    """What an erasure answers.

    Args:
        erased: Ids of the memories.
        position: Of the last of their changes.
        counts: Rows that went, by table.
        before: Ids of all memories of the bank when the erased ones were hidden, these included.
        after: Those of them that are there still.
        completed_at: When the files were clean.
    """
    salt = secrets.token_hex(SALT_BYTES)
    receipt = ErasureReceipt(
        counts=dict(counts),
        salt=salt,
        salted_ids=tuple(_salted(salt, memory_id) for memory_id in erased),
        root_hash_before=_root(salt, before),
        root_hash_after=_root(salt, after),
        completed_at=completed_at,
    )
    return list(erased[:LISTED_IDS]), position, receipt


def encode(answer: Answer) -> bytes:
    """An answer as a response to a request id."""
    memory_ids, position, receipt = answer
    written = {**asdict(receipt), "completed_at": receipt.completed_at.isoformat()}
    return json.dumps([memory_ids, position, written]).encode()


def decode(response: bytes) -> Answer:
    """What `encode` wrote."""
    memory_ids, position, written = json.loads(response)
    receipt = ErasureReceipt(**written)
    completed_at = datetime.fromisoformat(written["completed_at"])
    return memory_ids, position, replace(receipt, salted_ids=tuple(receipt.salted_ids), completed_at=completed_at)


def _salted(salt: str, memory_id: str) -> str:
    return hashlib.sha256(f"{salt}{memory_id}".encode()).hexdigest()


def _root(salt: str, memory_ids: Iterable[str]) -> str:
    digest = hashlib.sha256()
    for salted in sorted(_salted(salt, memory_id) for memory_id in memory_ids):
        digest.update(salted.encode())
    return digest.hexdigest()
