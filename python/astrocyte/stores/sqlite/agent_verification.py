"""Verification of the database of agents' private memories: its pages and its rows."""

from __future__ import annotations

from dataclasses import dataclass

from astrocyte.errors import StoreError
from astrocyte.stores.sqlite import damage
from astrocyte.stores.sqlite.engine.connections import Connections
from astrocyte.stores.sqlite.rows import Row, decode_metadata, to_datetime
from astrocyte.stores.sqlite.verification import file_problems

# Rows whose keys are read at once.
KEYS_AT_ONCE = 1_024
# Components of vectors are f32.
COMPONENT_BYTES = 4


@dataclass(frozen=True, slots=True)
class AgentVerification:
    """The result of a verification.

    Attributes:
        memories: Number of memories, forgotten ones included.
        damaged: Keys of the rows that cannot be read, or have no valid values.
        database: Problems of the file, as SQLite names them.
    """

    memories: int
    damaged: tuple[int, ...]
    database: tuple[str, ...]

    @property
    def intact(self) -> bool:
        """True if nothing is damaged."""
        return not self.damaged and not self.database


def verify_agent_memory(connections: Connections) -> AgentVerification:
    """Read every row, and check the file."""
    count, after = 0, 0
    damaged: list[int] = []
    problems = file_problems(connections)
    while True:
        try:
            sql = "SELECT memory_key FROM agent_memories WHERE memory_key > ? ORDER BY memory_key LIMIT ?"
            keys = [int(row[0]) for row in connections.query(sql, (after, KEYS_AT_ONCE))]
        except StoreError as error:
            # The pages that lead to the rest cannot be read.
            return AgentVerification(count, tuple(damaged), problems or (error.message,))
        if not keys:
            return AgentVerification(count, tuple(damaged), problems)
        after, count = keys[-1], count + len(keys)
        damaged += [key for key in keys if not _is_whole(connections, key)]


def _is_whole(connections: Connections, key: int) -> bool:
    columns = "topic, topic_raw, content, source, vector, created_at, updated_at"
    try:
        rows = connections.query(f"SELECT {columns} FROM agent_memories WHERE memory_key = ?", (key,))
        return len(rows) == 1 and _is_valid(rows[0])
    except Exception as error:
        if damage.problem_of(error) is None:
            raise
        return False


def _is_valid(row: Row) -> bool:
    topic, topic_raw, content, source, vector, created_at, updated_at = row
    decode_metadata(source)
    texts = all(isinstance(text, str) and text for text in (topic, topic_raw, content))
    return texts and len(vector) % COMPONENT_BYTES == 0 and to_datetime(created_at) <= to_datetime(updated_at)
