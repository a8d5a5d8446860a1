"""Settings of the index, of reindexing and of embedders."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from astrocyte.config.loading.section import Count, Seconds, Section

# Methods that search vectors and words, as the core names them.
DenseMethod = Literal["auto", "scan", "graph", "usearch"]
LexicalMethod = Literal["postings", "tantivy"]
# Where the index of a bank lies, as the core names it.
Tier = Literal["auto", "memory", "disk"]


class IndexSettings(Section):
    """Index of a bank, derived from the database."""

    threads: int = Field(
        0,
        ge=0,
        le=256,
        description="Threads of the core, shared by all applications of the process and set by the first. "
        "Interactive calls use up to this number, batches one fewer. 0 is one per processor.",
    )
    memory_bytes: int = Field(
        0,
        ge=0,
        description="Memory limit of all bank indexes together. Least recently used indexes are evicted and reloaded "
        "on next use. 0 is half of the memory of the machine or its control group.",
    )
    tier: Tier = Field(
        "auto",
        description="Where the index of a bank lies. memory: in memory. disk: in mapped files, which the system reads "
        "as they are used; vectors are searched by graphs of usearch, words by indexes of tantivy. auto: in memory up "
        "to index.disk_rows rows and an estimate of half of index.memory_bytes. A bank moves in the background while "
        "it answers.",
    )
    disk_rows: int = Field(
        2_000_000,
        ge=0,
        le=1 << 28,
        description="Rows (memories and chunks) of a bank beyond which tier: auto is disk. It returns to memory below "
        "three quarters. 0 sets no limit of rows.",
    )
    scratch: bool = Field(
        True,
        description="Keep exact vectors of large banks, graphs of usearch, indexes of tantivy and rows of the disk "
        "tier in unlinked temporary files instead of memory.",
    )
    # A floor: below this size a scan of any dimensions takes about as long as a graph search, or less. Above it the
    # planner decides. A larger bank may have as many rows outside its graphs, which are scanned in every recall.
    graph_rows: int = Field(
        100_000,
        ge=0,
        le=1 << 28,
        description="Rows outside all graphs from which a graph is built in the background; fewer rows are scanned. "
        "0 disables graphs.",
    )
    graph_candidates: int = Field(
        160,
        ge=10,
        le=4_096,
        description="Candidates kept during a graph search; more raise recall and latency. Beyond 600,000 vectors "
        "the number grows with the square root of the graph's size: 207 at a million. In the disk tier each of several "
        "equal graphs is searched with as many divided by the cube root of their number: 101 in each of four.",
    )
    build_share: float = Field(
        0.5,
        gt=0,
        le=256,
        description="Processor cores of the single graph build: 0.5 is half the time of one core, 2 is two threads.",
    )
    scan_rows: int = Field(
        0,
        ge=0,
        le=1 << 28,
        description="Number of rows passing the filter up to which a scan is used instead of graphs. 0 decides by "
        "the bytes to read, at costs measured at startup.",
    )
    dense: DenseMethod = Field(
        "auto",
        description="Method that searches vectors. auto: graphs where they cost less than a scan. scan: an exact scan; "
        "no graphs are built. graph: graphs wherever a bank has them, unless reading the rows that pass a filter costs "
        "less. usearch: as graph, with HNSW graphs of usearch. They hold a copy of the quantised vectors in mapped "
        "files and are part of checkpoints.",
    )
    lexical: LexicalMethod = Field(
        "postings",
        description="Method that searches words. postings: the index's own postings. tantivy: inverted indexes of "
        "tantivy in mapped files, in addition to the own postings; scores are the same. They are built in the "
        "background from index.graph_rows rows and are part of checkpoints; the rows outside are searched by own "
        "postings.",
    )
    sampling: float = Field(
        0.01,
        ge=0,
        le=1,
        description="Share of graph searches that are compared with a full scan in the background. Of new graphs, the "
        "first 64 are compared. 0 compares none.",
    )
    recall_floor: float = Field(
        0.98,
        ge=0,
        le=1,
        description="Required share of the ten nearest rows in these comparisons. Below it, the bank's graph "
        "searches double their candidates, up to three times; then its rows are scanned until its graphs "
        "change.",
    )
    checkpoints: bool = Field(
        True,
        description="Write the indexes of large banks to files in the data directory. A restart reads them and later "
        "changes instead of all rows.",
    )
    checkpoint_rows: int = Field(
        20_000,
        ge=1,
        le=1 << 28,
        description="Rows (memories and chunks) from which a bank has a checkpoint.",
    )
    checkpoint_evicted_rows: int = Field(
        500,
        ge=1,
        le=1 << 28,
        description="Rows (memories and chunks) from which a smaller bank gets a checkpoint on eviction. It then "
        "loads in an eighth of the time and takes about 2 KB of disk per row.",
    )
    checkpoint_generations: int = Field(
        2,
        ge=1,
        le=8,
        description="Number of checkpoints of a large bank, each as large as its index and vectors. A damaged "
        "checkpoint is replaced by the one before, or by the rows.",
    )

    @model_validator(mode="after")
    def _check_tier(self) -> IndexSettings:
        if self.tier == "disk" and not self.scratch:
            raise ValueError("index.tier: disk needs index.scratch: true, since its rows lie in temporary files")
        return self

    @model_validator(mode="after")
    def _check_methods(self) -> IndexSettings:
        built = {f"index.dense: {self.dense}": self.dense in {"graph", "usearch"}}
        built[f"index.lexical: {self.lexical}"] = self.lexical == "tantivy"
        for setting, needs_rows in built.items():
            if needs_rows and self.graph_rows == 0:
                raise ValueError(f"{setting} needs index.graph_rows above 0, from which on it builds")
        return self


# From 0 to 1, inclusive.
Share = Annotated[float, Field(ge=0.0, le=1.0)]


class ReindexSettings(Section):
    """Reindexing to another embedding model, in the background."""

    share: float = Field(0.5, gt=0.0, le=1.0, description="Share of time that a reindex works; it pauses for the rest.")
    batch_texts: Count = Field(64, description="Texts per embedding request.")
    attempts: Count = Field(5, description="Attempts per text before the reindex fails.")
    retry_seconds: Seconds = Field(
        1.0, description="Delay before the second attempt; it doubles with each further attempt."
    )
    sample: int = Field(
        64,
        ge=0,
        le=1_000,
        description="Memories in the comparison of both indexes before the cutover, unless the request sets it; 0 "
        "skips it.",
    )
    min_overlap: Share = Field(
        0.0,
        description="Required mean overlap of the top ten of both indexes, unless the request sets it. Below it, the "
        "reindex fails.",
    )
    keep_hours: float = Field(
        168.0,
        ge=0.0,
        le=876_000.0,
        description="Hours for which the previous vectors are kept for a rollback; 0 drops them immediately.",
    )


# Name in the settings; banks refer to an embedder by its model.
EmbedderName = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,62}$")]


class EmbeddingSettings(Section):
    """Default embedder."""

    provider: str = Field("static", min_length=1, description="static, openai, fastembed, or another entry point.")
    options: dict[str, Any] = Field(
        default_factory=dict, repr=False, description="Options of the provider, which validates them."
    )


class EmbedderSettings(Section):
    """Additional embedder, for banks of its model."""

    provider: str = Field(min_length=1, description="static, openai, fastembed, or another entry point.")
    options: dict[str, Any] = Field(
        default_factory=dict, repr=False, description="Options of the provider, which validates them."
    )
