"""Statistics of tables that have just grown: without them the database searches by the wrong index.

Autovacuum keeps statistics, but looks once a minute. A table that was empty when a statement was planned is searched as
an empty one until then, which takes time with the square of its rows.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import closing

import structlog

from astrocyte.stores.postgres.engine.connection import Connection
from astrocyte.stores.postgres.vacuum import TABLES
from astrocyte.stores.records import IndexBatch
from astrocyte.stores.sqlite.engine.error_translation import translate

log = structlog.get_logger(__name__)

# Versions after which the first statistics are made: with fewer, every plan takes about a millisecond.
FIRST_ROWS = 256
# So much larger is the table at the next ones, as the best plan depends on the order of magnitude.
GROWTH = 2
# Samples 300 rows for each unit: a few milliseconds a table. Autovacuum makes better ones later.
_SAMPLE = "SET default_statistics_target = 10"
_ANALYZE = f"ANALYZE {', '.join(TABLES)}"
_ROWS = "SELECT greatest(reltuples, 0)::bigint FROM pg_class WHERE oid = to_regclass('memories')"


class Statistics:
    """Makes statistics on a thread and a connection of its own whenever the versions have doubled.

    Args:
        connect: Makes a connection without a limit of time, which is closed after its use.
    """

    def __init__(self, connect: Callable[[], Connection]) -> None:
        self._connect = connect
        # Versions at the last statistics of which this server knows, and those that it has added since.
        with closing(connect()) as connection:
            self._known: int = connection.execute(_ROWS).get or 0
        self._added = 0
        self._working: threading.Thread | None = None

    def on_commit(self, batch: IndexBatch) -> None:
        """Count what was added; called on the writer's thread after each commit."""
        self._added += len(batch.upserts)
        if self._added < max(FIRST_ROWS, self._known * (GROWTH - 1)):
            return
        if self._working is None or not self._working.is_alive():
            self._known, self._added = self._known + self._added, 0
            self._working = threading.Thread(target=self._analyze, name="astrocyte-statistics", daemon=True)
            self._working.start()

    def close(self) -> None:
        """Wait for the statistics that are being made."""
        if self._working is not None:
            self._working.join()

    def _analyze(self) -> None:
        try:
            with closing(self._connect()) as connection:
                connection.command(_SAMPLE)
                connection.command(_ANALYZE)
        except Exception as error:  # noqa: BLE001 - autovacuum makes them too, only later
            log.warning("statistics_failed", error=type(translate(error)).__name__)
