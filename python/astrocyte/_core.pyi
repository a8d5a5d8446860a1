"""The compiled retrieval core. Only `astrocyte.core` imports it.

Ids are 16 bytes, hashes 16 bytes, keys are unsigned 63-bit integers, vectors are little-endian f32 `bytes`, times are
integer milliseconds since the epoch. All classes are frozen and may be shared by threads; the interpreter lock is
released while they work.

Wrong values raise `astrocyte.errors.ValidationError`, vectors of another length than the bank's
`astrocyte.errors.DimensionMismatch`, and failures of the core (a scratch file, a damaged table, a caught panic)
`astrocyte.errors.StoreError`. A value of another type than the one declared is a TypeError, a number that does not fit
its 64 bits an OverflowError, as in Python; `astrocyte.core.translated_errors` makes validation errors of these.
"""

from collections.abc import Mapping, Sequence
from typing import Literal, final

__all__ = [
    "Answer",
    "AnswerTrace",
    "Bank",
    "Core",
    "Explanation",
    "Fate",
    "GrpcCall",
    "GrpcServer",
    "Hit",
    "PiiScanner",
    "RecallRequest",
    "Row",
    "StaticEmbedder",
    "build_info",
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
]

def build_info() -> dict[str, str]:
    """version, profile ("release" or "debug"), simd (the kernel chosen at run time), token_table."""

def content_hash(text: str) -> bytes:
    """16 bytes of BLAKE3 over the text with white space collapsed, canonically composed (NFC).

    Case and compatibility forms count, because equal hashes drop a memory without a further look: "the password is
    Hunter2" is not "hunter2", and 10² is not 102. What is nearly the same is the business of `Bank.near_duplicates`.

    Raises:
        ValidationError: The text has a lone surrogate.
    """

def count_tokens(text: str) -> int:
    """Tokens of ``text`` in the cl100k_base table (byte-pair encoding, bundled); special tokens count as text.

    Raises:
        ValidationError: The text has a lone surrogate.
    """

def count_tokens_many(texts: Sequence[str]) -> list[int]:
    """`count_tokens` of each text."""

def relevance_at_rank(relevance: float, rank: int) -> float:
    """The probability that the hit of a rank, from 1, is relevant, from that of its evidence at the first rank."""

def text_relevance(query: str, text: str) -> float:
    """Calibrated relevance of a text that no bank holds, from 0 to 1, by the share of the query's stems in it.

    Raises:
        ValidationError: A text has a lone surrogate.
    """

def describe_checkpoint(directory: str) -> tuple[int, str]:
    """Position and note of a checkpoint, by its manifest alone.

    Raises:
        StoreError: There is none, it is damaged, or of another format.
    """

def failpoint(name: str) -> None:
    """Die here if the environment variable ASTROCYTE_FAILPOINT, read once, names this point: ``NAME`` or ``NAME:3``."""

def holds_phrases(texts: Sequence[str], phrases: Sequence[str]) -> list[bool]:
    """Per text, True if it holds the words of each phrase one after the other.

    Words are compared folded and in lower case, without stems. Stop words count, punctuation between words does not.

    Raises:
        ValidationError: A text has a lone surrogate.
    """

def languages() -> list[str]:
    """Names of the languages whose Latin words can be stemmed; the default is the first."""

def stemmed_words(text: str) -> list[tuple[str, str | None]]:
    """Words of ``text`` in order, in the spelling that search compares, each with its stem; None for a stop word.

    Latin words are stemmed as English, those of scripts that one language mostly uses as that language's. Scripts
    without spaces come as pairs of characters.

    Raises:
        ValidationError: The text has a lone surrogate.
    """

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

def split_words(text: str, most_chars: int) -> list[str]:
    """Words of ``text`` with the white space before them; joined they are the text.

    Args:
        text: Text of any script.
        most_chars: A longer run without white space is cut, at a word boundary of UAX #29 where there is one, never
            inside a grapheme cluster.

    Raises:
        ValidationError: The text has a lone surrogate.
    """

def phrase_word_count(phrase: str) -> int:
    """The number of words that `holds_phrases` compares."""

def pii_kinds() -> list[tuple[str, str]]:
    """Kinds of personal data and secrets as (name, country); country is empty for a kind of all countries."""

@final
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

    def __new__(
        cls, kinds: Sequence[str], patterns: Sequence[str] = ..., *, min_confidence: float = 0.5
    ) -> PiiScanner: ...
    def find(self, texts: Sequence[str]) -> list[tuple[int, int, int, int, float]]:
        """Findings: place of the text, place of the kind, first character, character after the last, confidence.

        In order, none overlapping another. Own patterns count on behind the kinds of `pii_kinds`.

        Raises:
            ValidationError: A text has a lone surrogate.
        """

@final
class StaticEmbedder:
    """Token vectors looked up and pooled: tens of microseconds a text, no model run.

    Args:
        table: A table as scripts/distill_static_embedder.py writes it.

    Raises:
        StoreError: The table is damaged, or of another format.
    """

    def __new__(cls, table: bytes) -> StaticEmbedder: ...
    @property
    def model_id(self) -> str: ...
    @property
    def dimensions(self) -> int: ...
    def embed(self, texts: Sequence[str]) -> list[bytes]:
        """Unit vectors as little-endian f32, in order.

        Raises:
            ValidationError: A text has a lone surrogate.
        """

@final
class Row:
    """One version of a memory, ready to be indexed.

    ``text`` is the text to index for keywords (with speaker and date), ``vector`` the whole's or None. ``chunks`` holds
    (text to index, vector or None, token count) per chunk, and is empty when the whole is the only chunk.
    """

    def __new__(
        cls,
        key: int,
        memory_id: bytes,
        content_hash: bytes,
        text: str,
        vector: bytes | None,
        *,
        tokens: int,
        known_from: int,
        retained_at: int | None = None,
        known_until: int | None = None,
        occurred_at: int | None = None,
        valid_from: int | None = None,
        valid_until: int | None = None,
        fact_type: str = "",
        layer: str = "",
        tags: Sequence[str] = (),
        metadata: Sequence[tuple[str, str]] = (),
        session: str | None = None,
        chunks: Sequence[tuple[str, bytes | None, int]] = (),
    ) -> Row: ...

@final
class RecallRequest:
    """Everything that one recall needs.

    The filter (``tags`` to ``memory_ids``) is compiled to a bitmap before any arm runs. ``occurred`` and ``retained``
    are (first, last) in milliseconds, both included, None open; ``occurred`` holds on occurred_at, or retained_at
    where there is none. Without ``as_of`` only current versions are seen. ``time_windows`` makes the temporal arm run.
    ``external`` holds (arm name, weight, [(memory id, score)]) lists, best first. ``weights`` is (semantic, keyword,
    temporal). Each of ``unions`` is a set of words, folded and in lower case, that counts as one word of the text.
    ``feedback`` is the weight, 0 to 1, of words that the first hits add to the query. ``budget`` is in
    tokens, counted for the hit's chunk or, with ``budget_whole``, for the whole memory.
    """

    def __new__(
        cls,
        *,
        text: str | None = None,
        unions: Sequence[Sequence[str]] = (),
        vector: bytes | None = None,
        k: int = 10,
        depth: int = 100,
        tags: Sequence[str] = (),
        tag_match: str = "any",
        fact_types: Sequence[str] = (),
        metadata: Sequence[tuple[str, str]] = (),
        session: str | None = None,
        occurred: tuple[int | None, int | None] | None = None,
        retained: tuple[int | None, int | None] | None = None,
        as_of: int | None = None,
        valid_at: int | None = None,
        memory_ids: Sequence[bytes] | None = None,
        time_windows: Sequence[tuple[int, int]] = (),
        time_tail_ms: int = 2_592_000_000,
        external: Sequence[tuple[str, float, Sequence[tuple[bytes, float]]]] = (),
        fusion: str = "dbsf",
        rank_constant: float = 60.0,
        weights: tuple[float, float, float] = (1.0, 1.0, 1.0),
        feedback: float = 0.0,
        context_windows: bool = True,
        layer_weights: Sequence[tuple[str, float]] = (),
        dedup_threshold: float | None = None,
        budget: int | None = None,
        budget_whole: bool = False,
        lift: tuple[str, Sequence[tuple[str, str]], float, float, int, int] | None = None,
        turns: tuple[Sequence[str], float, float, float, Sequence[tuple[int, int]], float, float] | None = None,
    ) -> RecallRequest: ...

@final
class GrpcServer:
    """A gRPC server over HTTP/2 on a thread of its own, whose calls another thread answers.

    ``methods`` has by path whether a method takes one request, and the index of its kind among ``kinds``, each of which
    is a `astrocyte.services.transport.CallKind`. Of methods without a kind, known or not, there may be ``max_others``
    calls in all, and one that is not known takes small requests only. A status is code, message and trailers:
    ``deadline_exceeded`` ends calls whose deadline passed, or whose request did not arrive in time. A refused call that
    has no id gets one that begins with ``id_prefix``. ``fileno`` is readable while ``take`` has events. PEM files as
    bytes: with ``certificates`` and ``key`` the server speaks TLS, with ``client_roots`` clients must show a
    certificate. Times are seconds.

    Raises:
        ValueError: A file has no certificate or key; the message names its setting.
    """

    def __new__(
        cls,
        *,
        methods: Mapping[str, tuple[bool, int | None]],
        kinds: Sequence[tuple[int, int | None, bool, Sequence[tuple[int, str, Sequence[tuple[str, str | bytes]]]]]],
        deadline_exceeded: tuple[int, str, Sequence[tuple[str, str | bytes]]],
        id_prefix: str,
        max_message_bytes: int,
        max_others: int,
        max_connection_age: float | None,
        keepalive: float,
        keepalive_timeout: float,
        certificates: bytes | None = None,
        key: bytes | None = None,
        client_roots: bytes | None = None,
    ) -> GrpcServer: ...
    def bind(self, target: str, *, shared: bool = False) -> int:
        """Bind ``host:port`` or ``unix:path``; return the port, 0 for a path. OSError: it is in use.

        With ``shared``, other processes may listen at the same port.
        """
    def start(self) -> None: ...
    def fileno(self) -> int: ...
    def take(self) -> list[tuple[int, GrpcCall | str]]:
        """Events in order: the id of a call, and a new call, "readable", "writable" or "cancelled"."""
    def busy(self) -> tuple[int, int]:
        """Numbers of calls and connections."""
    def stop(self) -> None:
        """Close the listening sockets and send GOAWAY."""
    def close(self) -> None:
        """End everything."""

@final
class GrpcCall:
    """One call. None of its methods waits."""

    @property
    def path(self) -> str: ...
    def metadata(self) -> tuple[tuple[str, str | bytes], ...]: ...
    def seconds_left(self) -> float | None: ...
    def alternative_names(self) -> list[str]:
        """Of the client's verified certificate."""
    def common_names(self) -> list[str]:
        """Of the client's verified certificate."""
    def is_unverified(self) -> bool:
        """True if the rest of its requests waits for `accept`."""
    def accept(self, principal: str) -> None:
        """Read the rest of the requests, on account of a principal."""
    def read(self) -> bytes | Literal[False] | None:
        """The next request, None at their end; False where there is none yet, and "readable" follows."""
    def begin(self) -> None:
        """Let the caller know that the call is on."""
    def write(self, message: bytes) -> bool:
        """Send a response; False where there is no room for another, until "writable"."""
    def end(self, code: int, message: str, trailers: Sequence[tuple[str, str | bytes]]) -> None: ...
    def finish(self, message: bytes) -> None:
        """Send the only response, and end the call well."""

@final
class Hit:
    """A ranked version. ``ordinal`` is the best chunk, -1 when the whole is the only chunk.

    ``arms`` holds (arm index into `Answer.arm_names`, rank from 1, raw score) for the arms that proposed it.
    """

    def __new__(
        cls,
        key: int,
        memory_id: bytes,
        content_hash: bytes,
        arms: Sequence[tuple[int, int, float]],
        *,
        ordinal: int = -1,
        score: float = 0.0,
        relevance: float = 0.0,
        tokens: int = 0,
        layer: str = "",
    ) -> Hit: ...
    @property
    def key(self) -> int: ...
    @property
    def memory_id(self) -> bytes: ...
    @property
    def content_hash(self) -> bytes: ...
    @property
    def ordinal(self) -> int: ...
    @property
    def score(self) -> float:
        """The fused score."""
    @property
    def relevance(self) -> float:
        """The probability, from 0 to 1, that the memory answers the query, if it is the first hit."""
    @property
    def evidence(self) -> tuple[float | None, float | None, int]: ...
    @property
    def tokens(self) -> int: ...
    @property
    def layer(self) -> str: ...
    @property
    def arms(self) -> list[tuple[int, int, float]]: ...
    @property
    def boosts(self) -> list[tuple[str, float]]:
        """Additions to the score by ``turns`` and ``lift`` of `RecallRequest`."""

@final
class Answer:
    """The answer to one recall: hits, best first, and what the trace tells; both are made when they are asked for."""

    @property
    def hits(self) -> list[Hit]: ...
    @property
    def trace(self) -> AnswerTrace: ...
    def encode(
        self,
        result: object,
        rows: Sequence[tuple[object, ...]],
        bank_id: str,
        include_sources: bool,
        windows: Sequence[bytes],
    ) -> bytes:
        """An `astrocyte.v1.RecallResponse`: the hits as `encode_hits` writes them, and the fields of a `RecallResult`.

        Fields stand in the order of their numbers, maps in that of their keys. Directives, and of the trace its banks,
        engines, date warnings and paths, are left out; ``windows`` are its time windows as messages.
        """
    def encode_hits(self, rows: Sequence[tuple[object, ...]], bank_id: str, include_sources: bool) -> bytes:
        """The hits whose passage is among ``rows``, as field 1 of `astrocyte.v1.RecallResponse`, repeated.

        A row is a `HydratedRow`; its chunk is the text.
        """
    @property
    def passages(self) -> list[tuple[int, int]]:
        """Key and ordinal of each hit."""
    @property
    def tokens(self) -> int:
        """Of all hits together."""
    @property
    def arm_names(self) -> list[str]:
        """Arms that ran, by the indices that hits name."""
    @property
    def lead(self) -> tuple[float | None, float | None, int] | None:
        """The evidence of the first candidate of the fusion, before any lift."""
    @property
    def subject(self) -> tuple[float, float] | None:
        """The shares of the query's stems in what is said of the one speaker whom it names, and of others."""
    @property
    def confidence(self) -> float | None:
        """The calibrated probability that the hits hold what was asked; None without a candidate."""
    @property
    def candidates(self) -> int:
        """Distinct memories proposed by any arm."""
    @property
    def allowed(self) -> int:
        """Memories that pass the filter."""
    @property
    def truncated(self) -> bool: ...
    @property
    def position(self) -> int: ...

@final
class AnswerTrace:
    """Times and counts of the search behind an answer. Dictionaries are by the arms' names, in their order."""

    @property
    def arm_millis(self) -> dict[str, float]: ...
    @property
    def arm_candidates(self) -> dict[str, int]: ...
    @property
    def arm_spreads(self) -> list[tuple[float, float]]:
        """Mean and deviation of each arm's scores over all memories that pass; zeros for outside lists."""
    @property
    def feedback_millis(self) -> float:
        """Time that `RecallRequest` ``feedback`` took, part of the keyword arm's."""
    @property
    def feedback_terms(self) -> int:
        """Words that the first hits added to the query."""
    @property
    def turn_millis(self) -> float:
        """Time that `RecallRequest` ``turns`` took."""
    @property
    def lift_millis(self) -> float:
        """Time that `RecallRequest` ``lift`` took."""
    @property
    def plan(self) -> str:
        """The plan for the filter: "scan" or "gather", with counts."""
    @property
    def unknown_external(self) -> int:
        """Ids of outside lists that the bank does not hold."""

@final
class Fate:
    """The outcome of one memory in a recall.

    ``step`` is where it fell out: "unknown" (the index holds no such memory), "filter", "arms" (none proposed it),
    "results" (enough hits were better), "duplicate", "budget"; or "hit". ``place`` counts hits as if there were no end
    of them, 0 where it never had a turn. ``shortage`` is the least by which a larger budget would let in one more of
    those up to it, 0 where none was kept out.
    """

    @property
    def memory_id(self) -> bytes: ...
    @property
    def step(self) -> str: ...
    @property
    def arms(self) -> list[tuple[int, float | None, bool]]:
        """By arm: rank among all that pass (0: none), raw score, whether it proposed it; empty outside the filter."""
    @property
    def shares(self) -> list[tuple[int, bytes, float, bool]]:
        """Place of the arm, neighbour, amount in the score, and True if the neighbour ranks above this memory."""
    @property
    def fused_rank(self) -> int: ...
    @property
    def fused_score(self) -> float | None: ...
    @property
    def boosts(self) -> list[tuple[str, float]]:
        """Additions to the fused score by ``turns`` of `RecallRequest`."""
    @property
    def place(self) -> int: ...
    @property
    def tokens(self) -> int: ...
    @property
    def left(self) -> int:
        """Tokens of the budget that were left at its turn."""
    @property
    def shortage(self) -> int: ...
    @property
    def twin(self) -> tuple[bytes, float | None] | None:
        """The better hit that it repeats, with the cosine where that is why."""

@final
class Explanation:
    """A recall's answer and what became of some memories in it, in the order in which they were asked about."""

    @property
    def response(self) -> Answer: ...
    @property
    def fates(self) -> list[Fate]: ...
    @property
    def arm_cuts(self) -> list[float | None]:
        """By arm the score of the last memory that it proposed; None where it proposed all that it knows."""

def fuse_banks(
    lists: Sequence[
        tuple[
            float,
            Answer | Sequence[Hit],
            Sequence[tuple[str, float, int, float, float]] | None,
            str,
            Sequence[float],
            int,
        ]
    ],
    *,
    weights: tuple[float, float, float],
    fusion: str,
    rank_constant: float,
    dedup: bool,
    most: int,
    budget: int | None = None,
    gone: Sequence[tuple[int, int, int]] = (),
) -> tuple[list[tuple[int, int, Hit, float, float, list[int]]], bool, bool, list[int]]:
    """The hits of several banks that leave, best first; whether one was left out, whether the first must be cut, parts.

    Of each bank ``lists`` has its weight, its hits, its arms as (name, weight, memories, mean, deviation) or None for
    those of the answer, its embedding space, what was added to each hit or nothing, and the place of the list that it
    is a part of or -1.

    A hit comes as (place of its bank, rank there from 1, hit, relevance, score, places of the banks that repeat it).
    ``weights`` are those of the semantic, the keyword and the temporal arm. With a ``budget`` the hits are those that
    `split_budget` takes, without one the first ``most``, and there are no parts. ``gone`` are hits that are passed
    over: place of the bank, key, ordinal.
    """

def split_budget(
    sizes: Sequence[tuple[int, int]], weights: Sequence[float], budget: int, most: int
) -> tuple[list[int], bool, bool, list[int]]:
    """Places of the hits that are taken, whether one was left out, whether the first must be cut, each bank's part.

    ``sizes`` are (place of the bank in ``weights``, tokens), best first.
    """

def summarise(
    answers: Sequence[Answer],
) -> tuple[int, bool, list[tuple[str, int, float]], list[tuple[int, int]], list[float]]:
    """Candidates, whether any was truncated, (name, candidates, microseconds) by arm, (hits, position) by bank.

    And the confidence of each bank that has one.
    """

def encode_batch(responses: Sequence[bytes]) -> bytes:
    """An `astrocyte.v1.BatchRecallResponse` of results that are `RecallResponse` in bytes each."""

@final
class Core:
    """The owner of scratch space and of the threads that build graphs. ``scratch_dir`` None keeps vectors in memory.

    Rows beyond ``graph_rows`` become a graph (0: never), built with ``build_share`` processor cores. A walk keeps
    ``graph_candidates``; up to ``scan_rows`` passing rows all are read (0: where that costs less). The share
    ``sampling`` of walks is compared with a scan; below ``recall_floor`` walks are widened, then given up. The first
    core of a process makes the ``threads`` that all share (0: one per processor). ``dense`` and ``lexical`` are the
    methods that search vectors (auto, scan, graph, usearch) and words (postings, tantivy). ``tier`` (auto, memory,
    disk) is that of banks without one of their own; auto goes to disk beyond ``disk_rows`` rows or an estimate of
    ``disk_bytes`` in memory (0: no limit).
    """

    def __new__(
        cls,
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
    ) -> Core: ...
    def bank(self, dimensions: int, language: str, tier: str | None = None) -> Bank: ...
    def load(
        self,
        directory: str,
        dimensions: int,
        bank: str,
        model: str,
        recipe: str,
        language: str,
        tier: str | None = None,
    ) -> Bank:
        """The bank of a checkpoint, at its position. A StoreError says why it is not used."""
    def release_memory(self) -> None:
        """Give freed memory back to the system, as far as the allocator can."""
    def recall_many(self, requests: Sequence[tuple[Bank, RecallRequest]]) -> list[Answer]:
        """Each result equals the single call's; all processors work on them."""

@final
class Bank:
    """The index of one bank: int8 scan or graphs with f32 rescoring, BM25, columns and bitmaps."""

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
    def recall(self, request: RecallRequest) -> Answer:
        """The answer to one request.

        Raises:
            DimensionMismatch: The query vector has another length than the bank's.
            ValidationError: A part of the request is out of its range.
            StoreError: The core failed.
        """
    def explain(self, request: RecallRequest, memory_ids: Sequence[bytes]) -> Explanation:
        """The answer of a scan of all rows that pass, and what became of the memories in it; raises as `recall`."""
    def phrase_candidates(
        self, request: RecallRequest, phrases: Sequence[str], most: int
    ) -> tuple[list[tuple[int, bytes]], int]:
        """Up to ``most`` versions (key, memory id) that pass the request's filter and hold all words of each phrase.

        The words may be in any order; `holds_phrases` tells of the texts. The best keyword score of the words comes
        first. The number is that of all such versions.

        Raises:
            ValidationError: A phrase has stop words alone.
        """

    def begin_spellings(self) -> int:
        """Begin to keep the words of the bank in memory: of later commits, and of what `add_spellings` gets.

        Returns:
            The generation of the words. `scrub` drops them.
        """

    def add_spellings(self, generation: int, texts: Sequence[str]) -> bool:
        """Add the words of texts; False if the words of this generation were dropped.

        Raises:
            ValidationError: A text has a lone surrogate.
        """

    def finish_spellings(self, generation: int) -> bool:
        """Say that all texts of the bank were added; False if the words of this generation were dropped."""

    def has_spellings(self) -> bool:
        """True if the words of all texts of the bank are kept."""

    def expand(self, prefix: str, most: int, *, past: bool = False) -> tuple[list[str], int, bool] | None:
        """Up to ``most`` words of the bank that begin with the prefix, those that most memories hold first.

        Args:
            prefix: Folded and in lower case, as `stemmed_words` has words.
            most: How many are wanted.
            past: Whether words count that no current memory holds.

        Returns:
            The words, the number of all such words, and whether the bank has more words than are kept; None where the
            words of the bank are not kept.
        """

    def near_duplicates(self, vectors: Sequence[bytes], threshold: float) -> list[list[tuple[int, bytes, float]]]:
        """Per vector up to four current memories at or above the threshold, nearest first: (key, memory id, cosine).

        Raises:
            DimensionMismatch: A vector has another length than the bank's.
            ValidationError: A vector cannot be compared, or the threshold is out of its range.
            StoreError: The core failed.
        """
    def contains_hashes(self, hashes: Sequence[bytes]) -> list[bytes | None]:
        """Per content hash the id of the current memory that has it, or None.

        Raises:
            ValidationError: A hash has not 16 bytes.
        """
    def checkpoint(
        self, directory: str, bank: str, model: str, recipe: str, note: str, durable: bool
    ) -> tuple[int, int, float]:
        """Position, bytes and longest wait of a commit, in seconds; see `astrocyte.core.write_checkpoint`."""
    def keys_of(self, memory_ids: Sequence[bytes]) -> list[int]:
        """Keys of all versions of these memories.

        Raises:
            ValidationError: An id has not 16 bytes.
        """
    def times(self) -> tuple[int, int] | None:
        """When the first and the last of what is held happened, or was stored where that is not known."""
    def set_tier(self, tier: str) -> None:
        """Move the bank to a tier (auto, memory, disk) in the background; recalls go on.

        Raises:
            ValidationError: There is no such tier.
        """
    def fold(self) -> None:
        """Build now, and without rests, all graphs that the background would build in time.

        Raises:
            StoreError: There is no memory for a graph.
        """
    @property
    def position(self) -> int:
        """Position of the last applied commit; 0 for a new bank."""
    @property
    def unsaved_graph_rows(self) -> int:
        """Vectors in graphs that the newest checkpoint does not have."""
    @property
    def unsaved_word_rows(self) -> int:
        """Rows in indexes of tantivy that the newest checkpoint does not have."""
    def scrub(self) -> None:
        """Drop what files of the index still have of removed rows: indexes of tantivy, which are built again."""
    @property
    def dimensions(self) -> int:
        """Length of the bank's vectors."""
    def stats(self) -> dict[str, int]:
        """Counts and bytes by part.

        memories, versions, rows, dead_rows, terms, sessions; bytes_vectors, bytes_lexical, bytes_columns,
        bytes_scratch, bytes_mapped of files that the system can drop from memory, and bytes: all that is resident.
        on_disk is 1 in the disk tier, on the way to it too; disk_rows of its rows are in files.
        """
