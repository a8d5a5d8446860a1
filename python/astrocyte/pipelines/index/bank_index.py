"""The index of one bank, as the registry keeps it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from threading import Lock

import structlog

from astrocyte.core import Bank as CoreBank
from astrocyte.core import Row
from astrocyte.model import Bank, BankIndexStats
from astrocyte.pipelines.index.rows import event_time, row_of
from astrocyte.stores.records import IndexBatch, VersionRecord

log = structlog.get_logger(__name__)

# What is measured walks the bank's labels and conversations, so it is done when this share of the rows is new.
MEASURED_SHARE = 16
# What a version raises whose id or time is none.
MALFORMED = (ValueError, TypeError, AttributeError, LookupError, OverflowError)
# What a loaded bank holds besides its core's bytes: the registry's objects, and the sizes that allocators round up to.
BYTES_PER_BANK = 8 << 10


class BankIndex:
    """The index of one bank, with the span of the times of its memories.

    The span only grows: it says which years the bank is about, and a forgotten memory does not unsay that.

    Args:
        core: The bank, empty or from a checkpoint.
        model: The embedding model of all its vectors.
    """

    __slots__ = ("core", "earliest", "latest", "measured_rows", "model", "pieces", "row_count", "spelling")

    def __init__(self, core: CoreBank, model: str) -> None:
        self.core = core
        self.model = model
        self.measured_rows = 0
        self.row_count = 0
        # Held by who gives the core the words of all texts.
        self.spelling = Lock()
        # Rows of a memory on the average, its whole among them.
        self.pieces = 1.0
        self.earliest: int | None = None
        self.latest: int | None = None
        if core.position:
            self.row_count = core.stats()["rows"]
            self.earliest, self.latest = core.times() or (None, None)

    def apply(self, batch: IndexBatch) -> None:
        """Take one commit."""
        self.core.apply(batch.position, self.rows(batch.upserts), batch.ended, batch.removed)
        self._count(self.core.stats())

    def space_of(self, bank: Bank) -> Bank:
        """The bank with the model of this index, which may be the bank's previous or next one."""
        if bank.embedding_model == self.model:
            return bank
        return replace(bank, embedding_model=self.model, dimensions=self.core.dimensions)

    def small(self, rows: int) -> bool:
        """True if so few rows were ever added that work on them is sure to be short."""
        return self.row_count <= rows

    def measure(self) -> int:
        """The memory that the index uses, in bytes."""
        self.measured_rows = self.row_count
        stats = self.core.stats()
        self._count(stats)
        return stats["bytes"] + BYTES_PER_BANK

    def stats(self) -> BankIndexStats:
        """The statistics of the index."""
        stats = self.core.stats()
        return BankIndexStats(
            rows=stats["rows"],
            dead_rows=stats["dead_rows"],
            terms=stats["terms"],
            sessions=stats["sessions"],
            vector_bytes=stats["bytes_vectors"],
            keyword_bytes=stats["bytes_lexical"],
            column_bytes=stats["bytes_columns"],
            scratch_bytes=stats["bytes_scratch"],
            segments=stats["segments"],
            graph_rows=stats["graph_rows"],
            graph_bytes=stats["bytes_graphs"],
            sampled_walks=stats["sampled"],
            sampled_recall=stats["sampled_found"] / stats["sampled_wanted"] if stats["sampled_wanted"] else None,
            widened=stats["widened"],
            tier="disk" if stats["on_disk"] else "memory",
            disk_rows=stats["disk_rows"],
            mapped_bytes=stats["bytes_mapped"],
            resident_bytes=stats["bytes"],
        )

    @property
    def grown(self) -> bool:
        """True if enough was added since the last measurement for another one."""
        return (self.row_count - self.measured_rows) * MEASURED_SHARE > self.row_count

    def rows(self, versions: tuple[VersionRecord, ...] | list[VersionRecord]) -> list[Row]:
        """Return index rows of the versions, whose times widen the span. Malformed versions are left out."""
        rows = []
        for version in versions:
            row = _row_or_none(version)
            if row is None:
                continue
            time = event_time(version)
            if self.earliest is None or time < self.earliest:
                self.earliest = time
            if self.latest is None or time > self.latest:
                self.latest = time
            self.row_count += 1 + len(version.memory.chunks)
            rows.append(row)
        return rows

    def _count(self, stats: Mapping[str, int]) -> None:
        self.pieces = stats["rows"] / max(stats["versions"], 1)


def _row_or_none(version: VersionRecord) -> Row | None:
    try:
        return row_of(version)
    except MALFORMED as error:
        log.error("row_skipped", row_key=version.row_key, error=type(error).__name__)  # noqa: TRY400 - no content
        return None
