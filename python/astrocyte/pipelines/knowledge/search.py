"""The search of a bank's observations, mental models and wiki pages.

Each bank with such items has a small index of its own in memory: one row per observation, and per section of a mental
model or page. It follows the database by the current revision of each item. Whatever it proposes is read back, so that
nothing leaves that rests on a forgotten memory.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, auto

from astrocyte.core import Bank as CoreBank
from astrocyte.core import Core, RecallRequest, Row, bundled_embedder, content_hash, count_tokens, vector_values
from astrocyte.model import Bank, ModelSection, RecallQuery
from astrocyte.pipelines.knowledge import documents
from astrocyte.pipelines.knowledge.wiki_pages import title_of
from astrocyte.pipelines.query.time_windows import to_ms
from astrocyte.pipelines.recall.row_filter import compile_filter
from astrocyte.pipelines.text.content_words import content_words
from astrocyte.stores.knowledge.items import Body, ItemKind, ItemRecord, KnowledgeStore
from astrocyte.stores.protocols import MemoryStore
from astrocyte.stores.records import Visibility

# Candidates of a bank that are read back; an answer has room for fewer.
MOST_CANDIDATES = 24
# Indexes kept; that of another bank is built again in well under a second.
KEPT_INDEXES = 64
# Items read from the database at once.
READ_AT_ONCE = 512
ID_BYTES = 16
# Shares of the cosine and of the question's words in the relevance.
MEANING, WORDS = 0.6, 0.4
# What is less relevant shares a name with the question, and has another subject.
LEAST_RELEVANCE = 0.4


@dataclass(frozen=True, slots=True)
class Found:
    """An item that is relevant to a question: the whole observation, or a section of a mental model.

    ``relevance`` is from 0 to 1, before any weight.
    """

    record: ItemRecord
    text: str
    heading: str
    relevance: float


class Verdict(Enum):
    """The judgement of a search on an item that its index proposes.

    INVALID: it does not hold at the time of the query. FILTERED: a memory that it rests on, or its layer, does not pass
    the filter. IRRELEVANT: its relevance is below `LEAST_RELEVANCE`.
    """

    RELEVANT = auto()
    INVALID = auto()
    FILTERED = auto()
    IRRELEVANT = auto()


@dataclass(slots=True)
class _Index:
    """The index of one bank."""

    core: CoreBank
    epoch: int = -1
    position: int = 0
    next_row: int = 1
    revisions: dict[int, int] = field(default_factory=dict)
    rows_of: dict[int, list[int]] = field(default_factory=dict)
    # Key and section of the item of each row.
    items: dict[int, tuple[int, str]] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)


class KnowledgeSearch:
    """Searches items of some kinds.

    Args:
        store: The items.
        kinds: Those that are searched.
        memories: Reads sources back, where a query filters by what they are.
        core: Makes indexes.
        language_of: Language of a bank's text.
    """

    def __init__(
        self,
        store: KnowledgeStore,
        kinds: Collection[ItemKind],
        memories: MemoryStore,
        core: Core,
        language_of: Callable[[str], str],
    ) -> None:
        self._store = store
        self._kinds = frozenset(kinds)
        self._memories = memories
        self._core = core
        self._language_of = language_of
        self._embedder = bundled_embedder()
        self._indexes: OrderedDict[int, _Index] = OrderedDict()
        self._lock = threading.Lock()

    def drop(self, bank: Bank) -> None:
        """Keep nothing of a bank that was deleted."""
        with self._lock:
            self._indexes.pop(bank.key, None)

    def search(self, bank: Bank, query: RecallQuery, now: int) -> list[Found]:
        """The relevant items that pass the query's filter, best first; equal ones by age.

        An item passes a filter if all memories do that it rests on. An observation that was superseded, or whose
        validity ended, is left out unless the query asks for a time at which it was valid.

        Args:
            bank: Where to look.
            query: A query with text, as of now.
            now: Milliseconds since the epoch.
        """
        judged = self._judged(bank, query, now, every=False)
        return [found for found, verdict in judged if verdict is Verdict.RELEVANT]

    def judged(self, bank: Bank, query: RecallQuery, now: int) -> list[tuple[Found, Verdict]]:
        """Each item that the index proposes, with its best passage, and the judgement on it; ordered as `search`."""
        return self._judged(bank, query, now, every=True)

    def _judged(self, bank: Bank, query: RecallQuery, now: int, *, every: bool) -> list[tuple[Found, Verdict]]:
        """As `judged`; without ``every`` only items that are valid and pass the filter."""
        vector = self._embedder.embed([query.query])[0]
        keys = self._proposed(bank, query.query, vector)
        records = {record.key: record for record in self._store.of_keys(bank, list(dict.fromkeys(k for k, _ in keys)))}
        proposed = [(records[key], section) for key, section in keys if key in records]
        at = now if query.valid_at is None else to_ms(query.valid_at)
        valid = {record.key: record for record, _ in proposed if _is_valid(record, at)}
        passing = self._passing(bank, query, list(valid.values()))
        texts = [
            (record, heading, text)
            for record, section in proposed
            if (every or record.key in passing) and (shown := _text(record, section)) is not None
            for heading, text in (shown,)
        ]
        scores = self.relevances(query.query, [f"{heading} {text}" for _, heading, text in texts])
        found = [
            Found(record, text, heading, relevance)
            for (record, heading, text), relevance in zip(texts, scores, strict=True)
        ]
        found.sort(key=lambda one: (-one.relevance, one.record.key))
        best: dict[int, tuple[Found, Verdict]] = {}
        for one in found:
            verdict = Verdict.RELEVANT if one.relevance >= LEAST_RELEVANCE else Verdict.IRRELEVANT
            if one.record.key not in passing:
                verdict = Verdict.FILTERED if one.record.key in valid else Verdict.INVALID
            best.setdefault(one.record.key, (one, verdict))
        return list(best.values())

    def relevances(self, question: str, texts: Sequence[str]) -> list[float]:
        """The relevance of each text to a question, from 0 to 1: its cosine, and its share of the question's words."""
        if not texts:
            return []
        ours, *others = [vector_values(vector) for vector in self._embedder.embed([question, *texts])]
        words = frozenset(content_words(question))
        scores = []
        for text, vector in zip(texts, others, strict=True):
            cosine = max(0.0, sum(map(float.__mul__, ours, vector)))
            shared = len(words.intersection(content_words(text))) / len(words) if words else cosine
            scores.append(min(1.0, MEANING * cosine + WORDS * shared))
        return scores

    def _proposed(self, bank: Bank, text: str, vector: bytes) -> list[tuple[int, str]]:
        """Keys and sections of the items that the index proposes, best first."""
        index = self._index(bank)
        with index.lock:
            self._follow(bank, index)
            if not index.items:
                return []
            request = RecallRequest(
                text=text,
                vector=vector if any(vector) else None,
                k=MOST_CANDIDATES,
                depth=MOST_CANDIDATES,
                context_windows=False,
            )
            return [index.items[hit.key] for hit in index.core.recall(request).hits]

    def _index(self, bank: Bank) -> _Index:
        with self._lock:
            index = self._indexes.get(bank.key)
            if index is None:
                made = self._core.bank(self._embedder.dimensions, self._language_of(bank.bank_id))
                index = self._indexes[bank.key] = _Index(made)
            self._indexes.move_to_end(bank.key)
            while len(self._indexes) > KEPT_INDEXES:
                self._indexes.popitem(last=False)
            return index

    def _follow(self, bank: Bank, index: _Index) -> None:
        """Bring an index to the current revisions of the bank's items."""
        epoch = self._store.epoch(bank)
        if index.epoch == epoch:
            return
        current = self._store.current_revisions(bank, self._kinds)
        changed = [key for key, revision in current.items() if index.revisions.get(key) != revision]
        leaving = [key for key in index.revisions if key not in current]
        removed = [row for key in (*leaving, *changed) for row in index.rows_of.pop(key, ())]
        for row in removed:
            del index.items[row]
        for key in leaving:
            del index.revisions[key]
        rows: list[Row] = []
        for start in range(0, len(changed), READ_AT_ONCE):
            for key, kind, revision, body in self._store.texts(bank, changed[start : start + READ_AT_ONCE]):
                rows += self._rows(index, key, kind, body)
                index.revisions[key] = revision
        if rows or removed:
            index.position += 1
            index.core.apply(index.position, rows, removed=removed)
        index.epoch = epoch

    def _rows(self, index: _Index, key: int, kind: ItemKind, body: Body) -> list[Row]:
        passages = _passages(kind, body)
        vectors = self._embedder.embed([text for _, text in passages])
        rows = []
        for (section, text), vector in zip(passages, vectors, strict=True):
            number = index.next_row
            index.next_row += 1
            index.items[number] = (key, section)
            index.rows_of.setdefault(key, []).append(number)
            rows.append(
                Row(
                    number,
                    number.to_bytes(ID_BYTES, "big"),
                    content_hash(f"{number}"),
                    text,
                    vector if any(vector) else None,
                    tokens=count_tokens(text),
                    known_from=0,
                )
            )
        return rows

    def _passing(self, bank: Bank, query: RecallQuery, records: Sequence[ItemRecord]) -> set[int]:
        """Keys of the items that pass the query's filter."""
        kinds = {"observation": ItemKind.OBSERVATION, "model": ItemKind.MENTAL_MODEL}
        allowed = {kinds.get(name) for name in query.fact_types} if query.fact_types else set(ItemKind)
        records = [record for record in records if record.kind in allowed]
        # The types are those of the items, not of their sources.
        meets = compile_filter(replace(query, fact_types=()) if query.fact_types else query)
        if meets is None and query.valid_at is None:
            return {record.key for record in records}
        keys = {source.row_key for record in records for source in record.current.sources if source.row_key is not None}
        visibility = Visibility(valid_at=None if query.valid_at is None else to_ms(query.valid_at))
        rows = self._memories.hydrate(bank, [(key, -1) for key in sorted(keys)], visibility)
        passing = {row.row_key for row in rows if meets is None or meets(row)}
        return {
            record.key
            for record in records
            # What rests on no memory passes no filter of memories.
            if record.current.sources and all(source.row_key in passing for source in record.current.sources)
        }


def _is_valid(record: ItemRecord, at: int) -> bool:
    """True if an item holds at an instant."""
    if record.kind is not ItemKind.OBSERVATION:
        return True
    body = record.current.body
    start, end = body["valid_from"], body["valid_until"]
    return (start is None or start <= at) and (end is None or at < end)


def _passages(kind: ItemKind, body: Body) -> list[tuple[str, str]]:
    """Section and text of each row of an item."""
    if kind is ItemKind.OBSERVATION:
        return [("", body["text"])]
    name = _name(kind, body, "")
    return [
        (section.section_id, f"{name}: {section.heading}\n{_blocks(section)}")
        for section in documents.decode(body["sections"])
        if section.blocks
    ]


def _text(record: ItemRecord, section_id: str) -> tuple[str, str] | None:
    """Heading and text of a passage as it is shown; None where nothing of it is."""
    body = record.current.body
    if record.kind is ItemKind.OBSERVATION:
        return "", body["text"]
    for section in documents.decode(body["sections"]):
        if section.section_id == section_id and section.blocks:
            return f"{_name(record.kind, body, record.item_id)}: {section.heading}", _blocks(section)
    return None


def _name(kind: ItemKind, body: Body, item_id: str) -> str:
    """The name of a mental model, or the title of a page."""
    return title_of(body, item_id) if kind is ItemKind.WIKI_PAGE else str(body["name"])


def _blocks(section: ModelSection) -> str:
    return "\n\n".join(map(documents.render_block, section.blocks))
