"""The one door to the compiled core.

Classes and functions are the extension's own, with its errors, which are those of `astrocyte.errors`; `_core.pyi`
documents them. `Core` names the options. Code that makes a `Row` or a `RecallRequest` from values that nobody has
checked yet does it inside `translated_errors`.

Example:
    >>> core = Core()
    >>> bank = core.bank(2)
    >>> row = Row(1, bytes(16), content_hash("tea"), "tea", vector_bytes([1.0, 0.0]), tokens=1, known_from=0)
    >>> bank.apply(1, [row])
    >>> [hit.key for hit in bank.recall(RecallRequest(text="tea")).hits]
    [1]
"""

from __future__ import annotations

import re
import struct
import sys
from array import array
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from importlib import resources
from typing import NamedTuple

from astrocyte import _core
from astrocyte._core import (
    Answer,
    AnswerTrace,
    Bank,
    Explanation,
    Fate,
    GrpcCall,
    GrpcServer,
    Hit,
    PiiScanner,
    RecallRequest,
    Row,
    StaticEmbedder,
    build_info,
    content_hash,
    count_tokens,
    count_tokens_many,
    describe_checkpoint,
    encode_batch,
    failpoint,
    fuse_banks,
    holds_phrases,
    languages,
    phrase_word_count,
    pii_kinds,
    relevance_at_rank,
    split_budget,
    split_sentences,
    split_words,
    stemmed_words,
    summarise,
    text_relevance,
)
from astrocyte.errors import DimensionMismatch, ValidationError

__all__ = [
    "ENGLISH",
    "Answer",
    "AnswerTrace",
    "Bank",
    "Core",
    "Explanation",
    "Fate",
    "GrpcCall",
    "GrpcServer",
    "Hit",
    "IndexOptions",
    "Label",
    "PiiScanner",
    "RecallRequest",
    "Row",
    "StaticEmbedder",
    "Written",
    "build_info",
    "bundled_embedder",
    "content_hash",
    "count_tokens",
    "count_tokens_many",
    "describe_checkpoint",
    "encode_batch",
    "failpoint",
    "fuse_banks",
    "holds_phrases",
    "languages",
    "phrase_word_count",
    "pii_kinds",
    "relevance_at_rank",
    "split_budget",
    "split_sentences",
    "split_words",
    "stemmed_words",
    "summarise",
    "text_relevance",
    "translated_errors",
    "vector_bytes",
    "vector_values",
    "write_checkpoint",
]

# The table that scripts/distill_static_embedder.py writes.
BUNDLED_TABLE = "static-minilm-256.bin"
# The note that an argument which cannot be converted leaves on the exception.
ARGUMENT_NOTE = re.compile(r"while processing '(\w+)'")
# Bytes of a little-endian f32.
VALUE_BYTES = 4
# The language of banks that name none.
ENGLISH = "english"


@contextmanager
def translated_errors() -> Iterator[None]:
    """Raise what the extension raises about an argument as a ValidationError whose field is the argument.

    Raises:
        DimensionMismatch: A vector has another length than the bank's.
        ValidationError: A value is wrong, of another type, or a number beyond 64 bits or below 0.
        StoreError: The core failed.
    """
    try:
        yield
    except DimensionMismatch:
        raise
    except ValidationError as error:
        argument = _argument(error)
        if argument is None or argument == error.field:
            raise
        raise ValidationError(error.description, field=argument) from error
    except (ValueError, OverflowError, TypeError) as error:
        raise ValidationError(str(error), field=_argument(error) or "request") from error


def _argument(error: Exception) -> str | None:
    """The argument that could not be converted, if that is what the error is about."""
    found = ARGUMENT_NOTE.search(" ".join(getattr(error, "__notes__", ())))
    return found[1] if found else None


class Label(NamedTuple):
    """The identity of a checkpoint: its bank, embedding model and row format, and a note of the writer."""

    bank: str
    model: str
    recipe: str
    note: str = ""


class Written(NamedTuple):
    """A checkpoint: the position from which to replay, its bytes, and the longest wait of a commit, in seconds."""

    position: int
    bytes: int
    longest_hold: float


def write_checkpoint(bank: Bank, directory: str, label: Label, *, durable: bool = True) -> Written:
    """Write a bank into an empty directory, while it goes on, and read it back.

    Args:
        bank: The bank.
        directory: Where to.
        label: Whose it is.
        durable: Without it the files are left to the system to write: sooner done, and after a loss of power they may
            be damaged, which whoever loads them finds out.

    Raises:
        StoreError: A file could not be written, or is not what was written.
    """
    return Written(*bank.checkpoint(directory, *label, durable))


class Core:
    """The owner of scratch space and of the threads that build graphs, from which banks come.

    Args:
        scratch_dir: Where large banks keep their original vectors, graphs of usearch and indexes of tantivy, in files
            that have no name and go with the process. None keeps them in memory.
        graph_rows: Rows outside all graphs from which on one is built of them; 0 never builds.
        build_share: Processor cores that a build may take, above 0 and at most 256; below 1 it rests between.
        graph_candidates: Candidates that a walk of a graph keeps; beyond 600,000 vectors more, and in each of several
            graphs of the disk tier fewer.
        scan_rows: Rows that pass a filter up to which all are read; 0 lets measured costs decide.
        sampling: Share of walks that are compared with a scan of all rows, in the background.
        recall_floor: Share of the ten nearest rows that walks must find, or they are widened and in the end given up.
        threads: Threads that all cores of the process share, and the first one makes; 0 takes one per processor.
        dense: Method that searches vectors: ``auto``, ``scan``, ``graph`` or ``usearch``.
        lexical: Method that searches words: ``postings`` or ``tantivy``.
        tier: Tier of banks without one of their own: ``auto``, ``memory`` or ``disk``.
        disk_rows: Rows of a bank beyond which ``auto`` is the disk tier; 0 sets no limit.
        disk_bytes: Estimated bytes in memory beyond which it is; 0 sets no limit.

    Raises:
        StoreError: The scratch file cannot be made.
        ValidationError: A number is out of its range, or there is no such method.
    """

    __slots__ = ("_core",)

    def __init__(  # noqa: PLR0913 - one parameter per option
        self,
        scratch_dir: str | None = None,
        *,
        graph_rows: int = 0,
        build_share: float = 0.5,
        graph_candidates: int = 160,
        scan_rows: int = 0,
        sampling: float = 0.01,
        recall_floor: float = 0.98,
        threads: int = 0,
        dense: str = "auto",
        lexical: str = "postings",
        tier: str = "auto",
        disk_rows: int = 0,
        disk_bytes: int = 0,
    ) -> None:
        with translated_errors():
            self._core = _core.Core(
                scratch_dir,
                graph_rows=graph_rows,
                build_share=build_share,
                graph_candidates=graph_candidates,
                scan_rows=scan_rows,
                sampling=sampling,
                recall_floor=recall_floor,
                threads=threads,
                dense=dense,
                lexical=lexical,
                tier=tier,
                disk_rows=disk_rows,
                disk_bytes=disk_bytes,
            )

    def bank(self, dimensions: int, language: str = ENGLISH, tier: str | None = None) -> Bank:
        """A new and empty bank.

        Args:
            dimensions: Values of a vector.
            language: Language of the Latin words, of `languages`.
            tier: ``auto``, ``memory`` or ``disk``; None takes that of this owner.

        Raises:
            ValidationError: The number is out of its range, or there is no such language or tier.
        """
        with translated_errors():
            return self._core.bank(dimensions, language, tier)

    def load(
        self, directory: str, dimensions: int, label: Label, language: str = ENGLISH, tier: str | None = None
    ) -> Bank:
        """The bank of a checkpoint, at the checkpoint's position; what came later is to be applied.

        Raises:
            StoreError: It is another bank's, model's, text analysis' or version's, or not what was written.
            ValidationError: The number of dimensions is out of its range.
        """
        with translated_errors():
            return self._core.load(directory, dimensions, *label[:3], language, tier)

    def release_memory(self) -> None:
        """Give freed memory back to the system, as far as the allocator can: after evictions, not after each drop."""
        self._core.release_memory()

    def recall_many(self, requests: Sequence[tuple[Bank, RecallRequest]]) -> list[Answer]:
        """The answers to all requests, each equal to the single call's; over all of the processor's cores.

        Raises:
            DimensionMismatch, ValidationError, StoreError: As `Bank.recall`, of the first request that fails.
        """
        return self._core.recall_many(requests)


class IndexOptions(NamedTuple):
    """Options of a bank's index."""

    # Of the Latin words, one of `languages`.
    language: str = ENGLISH
    # auto, memory or disk; None takes that of the core.
    tier: str | None = None


@cache
def bundled_embedder() -> StaticEmbedder:
    """The embedder that ships with the package, loaded once per process."""
    table = resources.files("astrocyte.models").joinpath(BUNDLED_TABLE)
    return StaticEmbedder(table.read_bytes())


def vector_bytes(values: Sequence[float]) -> bytes:
    """``values``, a list of numbers or a one-dimensional array, as little-endian f32.

    Raises:
        ValidationError: A value is no number, or too large for f32.
    """
    try:
        return struct.pack(f"<{len(values)}f", *values)
    except (struct.error, OverflowError, TypeError) as error:
        raise ValidationError(f"expected a list of 32-bit floats: {error}", field="embedding") from error


def vector_values(vector: bytes) -> array[float]:
    """The values of little-endian f32 bytes.

    Raises:
        ValidationError: The length is no multiple of four.
    """
    if len(vector) % VALUE_BYTES:
        raise ValidationError(
            f"expected little-endian f32 values, {VALUE_BYTES} bytes each, got {len(vector)} bytes", field="embedding"
        )
    values = array("f", vector)
    if sys.byteorder == "big":
        values.byteswap()
    return values
