"""Shared by the tests of the stores of agents' private memories: a memory, and a PostgreSQL schema."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from astrocyte.config import StoreSettings
from astrocyte.stores.agent_memory import NewAgentMemory
from astrocyte.stores.records import RequestKey
from external.postgres import address

SETTINGS = StoreSettings()
VECTOR = array("f", [0.6, 0.8]).tobytes()
NEW = NewAgentMemory(
    "acme",
    "agent:atlas",
    None,
    "deploy window",
    "the deploy window",
    is_canonical=True,
    content="We deploy on Tuesdays. Grüße 🚢",
    source={"platform": "slack", "thread": 7, "open": True, "ratio": 0.5, "none": None, "nul": "a\x00b"},
    model="m1",
    vector=VECTOR,
)
REQUEST = RequestKey("r1", "remember", b"\x01" * 16)


@contextmanager
def database() -> Iterator[str]:
    """A schema of its own; yields its address."""
    with psycopg.connect(address(), autocommit=True) as connection:
        connection.execute("DROP SCHEMA IF EXISTS agents CASCADE")
        connection.execute("CREATE SCHEMA agents")
    yield f"{address()}{'&' if '?' in address() else '?'}options=-csearch_path%3Dagents"
