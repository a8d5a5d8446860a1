"""The one door to the compiled core: the same classes and functions, with errors of our tree.

`Core` and `Bank` wrap the extension's classes and add nothing but the translation of errors; rows, requests, responses,
hits and the gRPC server are the extension's own, so that nothing is copied per hit. Code that makes a `Row` or a
`RecallRequest` from values that nobody has checked yet does it inside `translated_errors`.

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
from typing import NamedTuple, TypeAlias

from astrocyte import _core
from astrocyte._core import (
    CoreFault,
    CoreInvalid,
    Explanation,
    Fate,
    GrpcCall,
    GrpcServer,
    Hit,
    RecallRequest,
    RecallResponse,
    Row,
    build_info,
    encode_answer,
    encode_answers,
    encode_hits,
    encode_trace,
)  # fmt: skip
from astrocyte.errors import DimensionMismatch, StoreError, ValidationError

__all__ = [
    "ENGLISH",
    "Bank",
    "Core",
    "Explanation",
    "Fate",
    "GrpcCall",
    "GrpcServer",
    "Hit",
    "Label",
    "PiiScanner",
    "RecallRequest",
    "RecallResponse",
    "Row",
    "StaticEmbedder",
    "Written",
    "build_info",
    "bundled_embedder",
    "content_hash",
    "count_tokens",
    "count_tokens_many",
    "describe_checkpoint",
    "encode_answer",
    "encode_answers",
    "encode_hits",
    "encode_trace",
    "failpoint",
    "fuse_banks",
    "languages",
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
]

# Of one bank, as `fuse_banks` takes it; pipelines give its parts their names.
_BankList: TypeAlias = (
    "tuple[float, RecallResponse | Sequence[Hit], Sequence[tuple[str, float, int, float, float]] | None, str, "
    "Sequence[float], int]"
)

# The table that scripts/distill_static_embedder.py writes.
BUNDLED_TABLE = "static-minilm-256.bin"
# What the extension calls the field of a vector of the wrong length.
VECTOR_LENGTH_FIELD = "vector_length"
# The note that an argument which cannot be converted leaves on the exception.
ARGUMENT_NOTE = re.compile(r"while processing '(\w+)'")
# Bytes of a little-endian f32.
VALUE_BYTES = 4


def _translation(error: Exception) -> ValidationError | StoreError:
    """The error of our tree for one of the extension."""
    notes = " ".join(getattr(error, "__notes__", ()))
    argument = ARGUMENT_NOTE.search(notes)
    match error:
        case CoreFault():
            return StoreError(f"the retrieval core failed: {error}")
        case CoreInvalid(args=(str(field), str(message))) if field == VECTOR_LENGTH_FIELD:
            return DimensionMismatch(f"{message}; send vectors of the bank's embedding model", field="embedding")
        case CoreInvalid(args=(str(field), str(message))):
            return ValidationError(message, field=argument[1] if argument else field)
        case _:
            # Another type, or a number beyond 64 bits or below 0, where the stub says what is expected.
            return ValidationError(str(error), field=argument[1] if argument else "request")


# What the extension raises, `CoreInvalid` among the ValueErrors; anything else is not its error.
_CORE_ERRORS = (ValueError, CoreFault, OverflowError, TypeError)


@contextmanager
def translated_errors() -> Iterator[None]:
    """Raise the extension's errors as ours.

    Raises:
        DimensionMismatch: A vector has another length than the bank's.
        ValidationError: A value is wrong.
        StoreError: The core failed.
    """
    try:
        yield
    except _CORE_ERRORS as error:
        raise _translation(error) from error


# The language of banks that name none.
ENGLISH = "english"


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


class Bank:
    """The index of one bank. Safe to use from any thread; the interpreter lock is free while it works."""

    __slots__ = ("_bank",)

    def __init__(self, bank: _core.Bank) -> None:
        self._bank = bank

    def apply(
        self,
        position: int,
        upserts: Sequence[Row] = (),
        ended: Sequence[tuple[int, int]] = (),
        removed: Sequence[int] = (),
    ) -> None:
        """Apply one commit, whole or not at all.

        Args:
            position: The commit's position; one that was applied already changes nothing.
            upserts: Versions to add or to put in the place of their like.
            ended: Pairs of a version's key and the instant, in milliseconds, from which it no longer was the truth.
            removed: Keys of versions that must never be found again.

        Raises:
            ValidationError: A row is wrong; the message names its index.
            StoreError: The core failed.
        """
        try:
            self._bank.apply(position, upserts, ended, removed)
        except _CORE_ERRORS as error:
            raise _translation(error) from error

    def recall(self, request: RecallRequest) -> RecallResponse:
        """The ranked hits of one request.

        Raises:
            DimensionMismatch: The query vector has another length than the bank's.
            ValidationError: A part of the request is out of its range.
            StoreError: The core failed.
        """
        try:
            return self._bank.recall(request)
        except _CORE_ERRORS as error:
            raise _translation(error) from error

    def explain(self, request: RecallRequest, memory_ids: Sequence[bytes]) -> Explanation:
        """The answer of a scan, and what became of the memories in it.

        Raises:
            DimensionMismatch, ValidationError, StoreError: As `recall`.
        """
        try:
            return self._bank.explain(request, memory_ids)
        except _CORE_ERRORS as error:
            raise _translation(error) from error

    def near_duplicates(self, vectors: Sequence[bytes], threshold: float) -> list[list[tuple[int, bytes, float]]]:
        """Per vector up to four current memories at or above the threshold, nearest first: (key, memory id, cosine).

        Raises:
            DimensionMismatch: A vector has another length than the bank's.
            ValidationError: A vector cannot be compared, or the threshold is out of its range.
            StoreError: The core failed.
        """
        try:
            return self._bank.near_duplicates(vectors, threshold)
        except _CORE_ERRORS as error:
            raise _translation(error) from error

    def fold(self) -> None:
        """Build now, and without rests, all graphs that the background would build in time.

        Raises:
            StoreError: There is no memory for a graph.
        """
        try:
            self._bank.fold()
        except _CORE_ERRORS as error:
            raise _translation(error) from error

    def checkpoint(self, directory: str, label: Label, *, durable: bool = True) -> Written:
        """Write the bank into an empty directory, while it goes on, and read it back.

        Args:
            directory: Where to.
            label: Whose it is.
            durable: Without it the files are left to the system to write: sooner done, and after a loss of power they
                may be damaged, which whoever loads them finds out.

        Raises:
            StoreError: A file could not be written, or is not what was written.
        """
        try:
            return Written(*self._bank.checkpoint(directory, *label, durable))
        except _CORE_ERRORS as error:
            raise _translation(error) from error

    def keys_of(self, memory_ids: Sequence[bytes]) -> list[int]:
        """Keys of all versions of these memories.

        Raises:
            ValidationError: An id has not 16 bytes.
        """
        try:
            return self._bank.keys_of(memory_ids)
        except _CORE_ERRORS as error:
            raise _translation(error) from error

    def times(self) -> tuple[int, int] | None:
        """When the first and the last of what is held happened, or was stored where that is not known."""
        return self._bank.times()

    def contains_hashes(self, hashes: Sequence[bytes]) -> list[bytes | None]:
        """Per content hash the id of the current memory that has it, or None.

        Raises:
            ValidationError: A hash has not 16 bytes.
            StoreError: The core failed.
        """
        try:
            return self._bank.contains_hashes(hashes)
        except _CORE_ERRORS as error:
            raise _translation(error) from error

    @property
    def position(self) -> int:
        """Position of the last applied commit; 0 for a new bank."""
        return self._bank.position

    @property
    def unsaved_graph_rows(self) -> int:
        """Vectors in graphs that the newest checkpoint does not have."""
        return self._bank.unsaved_graph_rows

    @property
    def unsaved_word_rows(self) -> int:
        """Rows in indexes of tantivy that the newest checkpoint does not have."""
        return self._bank.unsaved_word_rows

    def scrub(self) -> None:
        """Drop what files of the index still have of removed rows: indexes of tantivy, which are built again."""
        self._bank.scrub()

    @property
    def dimensions(self) -> int:
        """Length of the bank's vectors."""
        return self._bank.dimensions

    def stats(self) -> dict[str, int]:
        """Counts and resident bytes by part; the names are in the stub of the extension."""
        return self._bank.stats()


class Core:
    """The owner of scratch space and of the threads that build graphs, from which banks come.

    Args:
        scratch_dir: Where large banks keep their original vectors, graphs of usearch and indexes of tantivy, in files
            that have no name and go with the process. None keeps them in memory.
        graph_rows: Rows outside all graphs from which on one is built of them; 0 never builds.
        build_share: Processor cores that a build may take, above 0 and at most 256; below 1 it rests between.
        graph_candidates: Candidates that a walk of a graph keeps, at least; beyond 600,000 vectors more.
        scan_rows: Rows that pass a filter up to which all are read; 0 lets measured costs decide.
        sampling: Share of walks that are compared with a scan of all rows, in the background.
        recall_floor: Share of the ten nearest rows that walks must find, or they are widened and in the end given up.
        threads: Threads that all cores of the process share, and the first one makes; 0 takes one per processor.
        dense: Method that searches vectors: ``auto``, ``scan``, ``graph`` or ``usearch``.
        lexical: Method that searches words: ``postings`` or ``tantivy``.

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
            )

    def bank(self, dimensions: int, language: str = ENGLISH) -> Bank:
        """A new and empty bank.

        Args:
            dimensions: Values of a vector.
            language: Language of the Latin words, of `languages`.

        Raises:
            ValidationError: The number is out of its range, or there is no such language.
        """
        with translated_errors():
            return Bank(self._core.bank(dimensions, language))

    def load(self, directory: str, dimensions: int, label: Label, language: str = ENGLISH) -> Bank:
        """The bank of a checkpoint, at the checkpoint's position; what came later is to be applied.

        Raises:
            StoreError: It is another bank's, model's, text analysis' or version's, or not what was written.
            ValidationError: The number of dimensions is out of its range.
        """
        with translated_errors():
            return Bank(self._core.load(directory, dimensions, *label[:3], language))

    def release_memory(self) -> None:
        """Give freed memory back to the system, as far as the allocator can: after evictions, not after each drop."""
        self._core.release_memory()

    def recall_many(self, requests: Sequence[tuple[Bank, RecallRequest]]) -> list[RecallResponse]:
        """The answers to all requests, each equal to the single call's; over all of the processor's cores.

        Raises:
            DimensionMismatch, ValidationError, StoreError: As `Bank.recall`, of the first request that fails.
        """
        with translated_errors():
            asked = [(bank._bank, request) for bank, request in requests]  # noqa: SLF001 (own class)
            return self._core.recall_many(asked)


class StaticEmbedder:
    """Token vectors looked up and pooled: tens of microseconds a text, no model run.

    Args:
        table: A table as scripts/distill_static_embedder.py writes it.

    Raises:
        StoreError: The table is damaged, or of another format.
    """

    __slots__ = ("_embedder", "dimensions", "model_id")

    def __init__(self, table: bytes) -> None:
        with translated_errors():
            self._embedder = _core.StaticEmbedder(table)
        self.model_id = self._embedder.model_id
        self.dimensions = self._embedder.dimensions

    def embed(self, texts: Sequence[str]) -> list[bytes]:
        """Unit vectors as little-endian f32, in order.

        Raises:
            ValidationError: A text has a lone surrogate.
        """
        try:
            return self._embedder.embed(texts)
        except _CORE_ERRORS as error:
            raise _translation(error) from error


class PiiScanner:
    """Looks for personal data, secrets and own patterns, in time linear in the text.

    Args:
        kinds: Names out of `pii_kinds`.
        patterns: Own patterns, in the syntax of Rust's regex; matches of up to 1,024 bytes.
        min_confidence: How sure a finding must be, 0 to 1. Own patterns are sure.

    Raises:
        ValidationError: There is no such kind, or a pattern cannot be run in linear time; it says why.

    Example:
        >>> PiiScanner(["email"]).find(["write to ana@example.org"])
        [(0, 5, 9, 24, 0.95)]
    """

    __slots__ = ("_scanner",)

    def __init__(self, kinds: Sequence[str], patterns: Sequence[str] = (), *, min_confidence: float = 0.5) -> None:
        with translated_errors():
            self._scanner = _core.PiiScanner(kinds, patterns, min_confidence=min_confidence)

    def find(self, texts: Sequence[str]) -> list[tuple[int, int, int, int, float]]:
        """Findings: place of the text, place of the kind, first character, character after the last, confidence.

        In order, none overlapping another. Own patterns count on behind the kinds of `pii_kinds`.

        Raises:
            ValidationError: A text has a lone surrogate.
        """
        try:
            return self._scanner.find(texts)
        except _CORE_ERRORS as error:
            raise _translation(error) from error


def describe_checkpoint(directory: str) -> tuple[int, str]:
    """The position and the note of a checkpoint, by its manifest alone.

    Raises:
        StoreError: There is none, it is damaged, or of another format.
    """
    with translated_errors():
        return _core.describe_checkpoint(directory)


def failpoint(name: str) -> None:
    """Die here, at once, if the environment variable ``ASTROCYTE_FAILPOINT`` names this point; else do nothing."""
    _core.failpoint(name)


def fuse_banks(  # noqa: PLR0913 - one argument per part of the call
    lists: Sequence[_BankList],
    *,
    weights: tuple[float, float, float],
    fusion: str,
    rank_constant: float,
    dedup: bool,
    most: int,
    budget: int | None = None,
    gone: Sequence[tuple[int, int, int]] = (),
) -> tuple[list[tuple[int, int, Hit, float, float, list[int]]], bool, bool, list[int]]:
    """The hits of several banks that leave, and what became of the token budget; see `pipelines.bank_fusion`.

    Raises:
        ValidationError: A list does not fit its hits, or a value is of another type.
        StoreError: The core failed.
    """
    with translated_errors():
        return _core.fuse_banks(
            lists,
            weights=weights,
            fusion=fusion,
            rank_constant=rank_constant,
            dedup=dedup,
            most=most,
            budget=budget,
            gone=gone,
        )


def split_budget(
    sizes: Sequence[tuple[int, int]], weights: Sequence[float], budget: int, most: int
) -> tuple[list[int], bool, bool, list[int]]:
    """Places of the hits that a budget lets through, and what became of it; see `pipelines.bank_fusion`.

    Raises:
        ValidationError: A hit is of a bank without a weight, or a value is of another type.
    """
    with translated_errors():
        return _core.split_budget(sizes, weights, budget, most)


def summarise(
    answers: Sequence[RecallResponse],
) -> tuple[int, bool, list[tuple[str, int, float]], list[tuple[int, int]], list[float]]:
    """Statistics over several answers, in one pass; see `pipelines.bank_parts.Summary`."""
    return _core.summarise(answers)


def pii_kinds() -> list[tuple[str, str]]:
    """The kinds of the scanner: pairs of a name and a country, which is empty for kinds of all countries."""
    return _core.pii_kinds()


@cache
def bundled_embedder() -> StaticEmbedder:
    """The embedder that ships with the package, loaded once per process."""
    table = resources.files("astrocyte.models").joinpath(BUNDLED_TABLE)
    return StaticEmbedder(table.read_bytes())


def content_hash(text: str) -> bytes:
    """Sixteen bytes that are equal for contents that differ only in canonical composition or white space.

    Raises:
        ValidationError: The text has a lone surrogate.
    """
    try:
        return _core.content_hash(text)
    except _CORE_ERRORS as error:
        raise _translation(error) from error


def count_tokens(text: str) -> int:
    """Tokens of ``text`` in the cl100k_base vocabulary.

    Raises:
        ValidationError: The text has a lone surrogate.
    """
    try:
        return _core.count_tokens(text)
    except _CORE_ERRORS as error:
        raise _translation(error) from error


def relevance_at_rank(relevance: float, rank: int) -> float:
    """The probability that the hit of a rank, from 1, is relevant, from that of its evidence at the first rank."""
    return _core.relevance_at_rank(relevance, rank)


def text_relevance(query: str, text: str) -> float:
    """Calibrated relevance of a text that no bank holds, from 0 to 1, by the share of the query's stems in it.

    Raises:
        ValidationError: A text has a lone surrogate.
    """
    try:
        return _core.text_relevance(query, text)
    except _CORE_ERRORS as error:
        raise _translation(error) from error


def count_tokens_many(texts: Sequence[str]) -> list[int]:
    """`count_tokens` of each text, in one crossing."""
    try:
        return _core.count_tokens_many(texts)
    except _CORE_ERRORS as error:
        raise _translation(error) from error


def languages() -> list[str]:
    """Names of the languages whose Latin words can be stemmed; the default is the first."""
    return _core.languages()


def stemmed_words(text: str) -> list[tuple[str, str | None]]:
    """Words of ``text`` in order, in the spelling that search compares, each with its stem; None for a stop word.

    Latin words are stemmed as English, those of scripts that one language mostly uses as that language's. Scripts
    without spaces come as pairs of characters.

    Raises:
        ValidationError: The text has a lone surrogate.
    """
    try:
        return _core.stemmed_words(text)
    except _CORE_ERRORS as error:
        raise _translation(error) from error


def split_sentences(text: str, *, every_stop: bool = False) -> list[str]:
    """Sentences and lines of ``text``, by UAX #29; joined they are the text.

    White space belongs to the piece that follows it, as it does for tokens, so that the token counts of pieces add up.
    Abbreviations, initials and list numbers end no sentence.

    Args:
        text: Text of any script.
        every_stop: Whether a stop before a lower-case letter ends a sentence too, for texts without capitals.

    Raises:
        ValidationError: The text has a lone surrogate.
    """
    try:
        return _core.split_sentences(text, every_stop=every_stop)
    except _CORE_ERRORS as error:
        raise _translation(error) from error


def split_words(text: str, most_chars: int) -> list[str]:
    """Words of ``text`` with the white space before them; joined they are the text.

    Args:
        text: Text of any script.
        most_chars: A longer run without white space is cut, at a word boundary of UAX #29 where there is one, never
            inside a grapheme cluster.

    Raises:
        ValidationError: The text has a lone surrogate.
    """
    try:
        return _core.split_words(text, most_chars)
    except _CORE_ERRORS as error:
        raise _translation(error) from error


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
