"""Calls and tokens of a day that each use of a language model has taken in each bank.

A day that is over counts for nothing; a clock that went back does not make it another day.
"""

from __future__ import annotations

import apsw

GRAPH = "graph"
CONSOLIDATION = "consolidation"

_RESERVE = (
    "INSERT INTO model_budgets AS b VALUES (?1, ?2, ?3, 1, 0) ON CONFLICT (bank_key, use) DO UPDATE SET"
    " calls = CASE WHEN b.day < excluded.day THEN 1 ELSE b.calls + 1 END,"
    " tokens = CASE WHEN b.day < excluded.day THEN 0 ELSE b.tokens END, day = max(b.day, excluded.day)"
    " WHERE b.day < excluded.day OR (b.calls < ?4 AND b.tokens < ?5)"
)


def reserve(connection: apsw.Connection, bank_key: int, use: str, day: int, limits: tuple[int, int]) -> bool:
    """Count a call before it is made, so that no crash makes a call unpaid.

    Args:
        connection: In a transaction.
        bank_key: The bank.
        use: `GRAPH` or `CONSOLIDATION`.
        day: In days since the epoch.
        limits: Calls and tokens of a day.

    Returns:
        False, with nothing counted, if either is spent.
    """
    connection.execute(_RESERVE, (bank_key, use, day, *limits))
    return connection.changes() == 1


def give_back(connection: apsw.Connection, bank_key: int, use: str) -> None:
    """Undo the count of a call to which the model gave no answer."""
    sql = "UPDATE model_budgets SET calls = max(0, calls - 1) WHERE bank_key = ? AND use = ?"
    connection.execute(sql, (bank_key, use))


def spend(connection: apsw.Connection, bank_key: int, use: str, tokens: int) -> None:
    """Count the tokens of a call."""
    sql = "UPDATE model_budgets SET tokens = tokens + ? WHERE bank_key = ? AND use = ?"
    connection.execute(sql, (tokens, bank_key, use))
