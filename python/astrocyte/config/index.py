"""Settings of the derived index."""

from __future__ import annotations

from pydantic import Field

from astrocyte.config.section import Section


class IndexSettings(Section):
    """The derived index."""

    threads: int = Field(
        0,
        ge=0,
        le=256,
        description="Threads of the core, which all applications of a process share and the first one makes, as many "
        "that call it, and one fewer for batches; 0 takes one per processor.",
    )
    memory_bytes: int = Field(
        0,
        ge=0,
        description="Bytes that the indexes of all banks may hold in memory together; beyond it the least recently "
        "used go, and come back at their next use. 0 takes half of what the machine, or its control group, has.",
    )
    scratch: bool = Field(True, description="Keep original vectors of large banks in an unlinked file, not in memory.")
    # At 100,000 rows of 384 dimensions a scan takes as long as a walk, and with words of the first hits, as by default,
    # 1.2 to 1.6 times as long. As many rows may be outside the graphs of a larger bank, and are scanned every time.
    graph_rows: int = Field(
        100_000,
        ge=0,
        le=1 << 28,
        description="Rows of a bank outside all graphs from which on a graph is built of them, in the background; "
        "fewer are scanned. 0 never builds one.",
    )
    graph_candidates: int = Field(
        160,
        ge=10,
        le=4_096,
        description="Candidates that a walk of a graph keeps: more finds more and takes longer. Beyond 600,000 vectors "
        "they grow with the root of the graph's size: 207 at a million.",
    )
    build_share: float = Field(
        0.5,
        gt=0,
        le=256,
        description="Processor cores that the one build at a time may take: 0.5 is half the time of one, 2 are two "
        "threads.",
    )
    scan_rows: int = Field(
        0,
        ge=0,
        le=1 << 28,
        description="Rows that pass a filter up to which all of them are read, and beyond which graphs are walked; 0 "
        "lets costs decide that are measured at the start.",
    )
    sampling: float = Field(
        0.01,
        ge=0,
        le=1,
        description="Share of walks that are compared with a scan of all rows, after the answer, in the background.",
    )
    recall_floor: float = Field(
        0.98,
        ge=0,
        le=1,
        description="Share of the ten nearest rows that walks must find, by these comparisons: below it a bank's walks "
        "keep twice the candidates, three times at most, then its rows are scanned until its graphs change.",
    )
    checkpoints: bool = Field(
        True,
        description="Keep the indexes of large banks in files of the data directory as well, so that a restart reads "
        "these and what changed since, in place of all rows.",
    )
    checkpoint_rows: int = Field(
        20_000,
        ge=1,
        le=1 << 28,
        description="Wholes and chunks from which on a bank is worth a checkpoint; a smaller one is read from rows.",
    )
    checkpoint_evicted_rows: int = Field(
        500,
        ge=1,
        le=1 << 28,
        description="Wholes and chunks from which on a smaller bank gets a checkpoint too, when it is evicted for want "
        "of memory: it is loaded in an eighth of the time, for about 2 KB of the disk a row.",
    )
    checkpoint_generations: int = Field(
        2,
        ge=1,
        le=8,
        description="Checkpoints that are kept of a large bank, each as large as its index and its vectors: where the "
        "disk has damaged the newest, the one before is used, and at last the rows.",
    )
