"""One round trip: several messages to the database, their answers, and a limit on its silence."""

from __future__ import annotations

import select
from collections.abc import Callable, Sequence
from typing import Any

import psycopg
from psycopg import pq

# Sends one message in pipeline mode.
Message = Callable[[pq.abc.PGconn], None]

_BINARY = 1
_MILLISECONDS = 1_000
_GOOD = frozenset({pq.ExecStatus.TUPLES_OK, pq.ExecStatus.COMMAND_OK})


class SilentError(Exception):
    """The database said nothing for too long."""


def command(sql: str) -> Message:
    """A statement without values."""
    return lambda pg: pg.send_query_params(sql.encode(), None)


def query(name: bytes, values: list[Any] | None, formats: list[int]) -> Message:
    """An execution of a prepared statement; its rows come in the binary format."""
    return lambda pg: pg.send_query_prepared(name, values, formats, _BINARY)


def preparation(name: bytes, sql: str) -> list[Message]:
    """Messages that prepare a statement and ask for the types of its values."""
    return [lambda pg: pg.send_prepare(name, sql.encode()), lambda pg: pg.send_describe_prepared(name)]


def failure(results: Sequence[pq.abc.PGresult]) -> pq.abc.PGresult | None:
    """The first result that is an error."""
    return next((result for result in results if result.status not in _GOOD), None)


def exchange(pg: pq.abc.PGconn, messages: Sequence[Message], silence_seconds: float | None) -> list[pq.abc.PGresult]:
    """Send messages, and wait for the answers to all of them.

    Args:
        pg: A connection that is idle. It is not to be used any more after an exception.
        messages: What follows one that fails is not carried out.
        silence_seconds: How long the database may say nothing; None for no limit.

    Returns:
        A result for each message, fewer where the connection was lost.

    Raises:
        SilentError: The database said nothing for so long.
    """
    results: list[pq.abc.PGresult] = []
    try:
        pg.enter_pipeline_mode()
        for message in messages:
            message(pg)
        pg.pipeline_sync()
        _flush(pg, silence_seconds)
        while True:
            while pg.is_busy():
                _wait(pg, select.POLLIN, silence_seconds)
                pg.consume_input()
            result = pg.get_result()
            if result is None:
                # Between two messages, or at the end of a connection.
                if pg.status != pq.ConnStatus.OK:
                    break
            elif result.status == pq.ExecStatus.PIPELINE_SYNC:
                pg.exit_pipeline_mode()
                break
            else:
                results.append(result)
    except psycopg.OperationalError:
        # The connection is lost, and has that status; what came before is the reason.
        return results
    return results


def _flush(pg: pq.abc.PGconn, silence_seconds: float | None) -> None:
    """Hand everything to the system, and read meanwhile: each end may wait for the other one to read."""
    while pg.flush():
        if _wait(pg, select.POLLIN | select.POLLOUT, silence_seconds) & ~select.POLLOUT:
            pg.consume_input()


def _wait(pg: pq.abc.PGconn, events: int, silence_seconds: float | None) -> int:
    """Return the events of the socket once there are some."""
    poll = select.poll()
    poll.register(pg.socket, events)
    ready = poll.poll(None if silence_seconds is None else silence_seconds * _MILLISECONDS)
    if not ready:
        raise SilentError
    return ready[0][1]
