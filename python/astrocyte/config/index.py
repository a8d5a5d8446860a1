"""Settings of the derived index."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from astrocyte.config.section import Count, Seconds, Section


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


# A share of something, both ends included.
Share = Annotated[float, Field(ge=0.0, le=1.0)]


class ReindexSettings(Section):
    """How banks move to another embedding model, in the background."""

    share: float = Field(
        0.5, gt=0.0, le=1.0, description="Share of the time that a reindex works; for the rest of it, it rests."
    )
    batch_texts: Count = Field(64, description="Texts that are embedded at once.")
    attempts: Count = Field(5, description="How often a text is sent to an embedder that fails, before the move fails.")
    retry_seconds: Seconds = Field(1.0, description="Rest before the second attempt; it doubles with each.")
    sample: int = Field(
        64,
        ge=0,
        le=1_000,
        description="Memories whose words both indexes are asked before a move, unless the request says; 0 asks none.",
    )
    min_overlap: Share = Field(
        0.0,
        description="Mean share of the first ten memories that both answers must hold, or the bank stays as it is; a "
        "request may say otherwise.",
    )
    keep_hours: float = Field(
        168.0,
        ge=0.0,
        le=876_000.0,
        description="How long the former vectors are kept to go back to; 0 drops them at once.",
    )


# What an embedder is called in the settings; banks know it by its model.
EmbedderName = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,62}$")]


class EmbeddingSettings(Section):
    """What turns text into vectors: the embedder of banks that name no other model."""

    provider: str = Field("static", min_length=1, description="static, openai, fastembed, or another entry point.")
    options: dict[str, Any] = Field(
        default_factory=dict, repr=False, description="Handed to the provider, which checks them."
    )


class EmbedderSettings(Section):
    """Another embedder, for banks of its model."""

    provider: str = Field(min_length=1, description="static, openai, fastembed, or another entry point.")
    options: dict[str, Any] = Field(
        default_factory=dict, repr=False, description="Handed to the provider, which checks them."
    )
