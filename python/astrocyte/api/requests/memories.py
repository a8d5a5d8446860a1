"""The requests of `MemoryService`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from astrocyte.api.requests.base import Request, StreamRequest
from astrocyte.errors import AstrocyteError
from astrocyte.model import (
    Change,
    ExplainQuery,
    ExplainResult,
    ForgetResult,
    ForgetSelector,
    HistoryResult,
    Memory,
    MemoryPage,
    MemoryUpdate,
    RecallQuery,
    RecallResult,
    ReflectQuery,
    ReflectResult,
    RetainItem,
    RetainResult,
)


@dataclass(slots=True)
class Retain(Request[RetainResult]):
    """Store one memory; durable, and found by the next recall, when the call returns."""

    bank_id: str
    item: RetainItem
    request_id: str | None = None
    validate_only: bool = False


@dataclass(slots=True)
class BatchRetain(Request[list[RetainResult]]):
    """Store all items in one transaction, or none; results are in the order of the items.

    Raises:
        ValidationError: An item is wrong; ``field`` starts with ``items[i].``.
    """

    bank_id: str
    items: Sequence[RetainItem]
    request_id: str | None = None
    validate_only: bool = False


@dataclass(slots=True)
class StreamRetain(Request[list[RetainResult | AstrocyteError]]):
    """Store what can be stored, each item for itself; an item's own failure stands in its place.

    ``request_ids`` is empty or has one entry, perhaps None, per item. Only what concerns all items is raised, such as a
    malformed bank id. On the wire the items and their results are a stream each.
    """

    bank_id: str
    items: Sequence[RetainItem]
    request_ids: Sequence[str | None] = ()


@dataclass(slots=True)
class GetMemory(Request[Memory]):
    """The current version of a memory.

    Raises:
        MemoryNotFound: There is none, or it was forgotten.
    """

    bank_id: str
    memory_id: str


@dataclass(slots=True)
class ListMemories(Request[MemoryPage]):
    """A page of the bank's memories in order of arrival, all pages as of the first one's position.

    A token is valid for the call that it came from, with the same filter. ``archived`` lists the archived memories
    instead.
    """

    bank_id: str
    tags: Sequence[str] = ()
    session_id: str | None = None
    page_size: int = 0
    page_token: str = ""
    archived: bool = False


@dataclass(slots=True)
class UpdateMemory(Request[Memory]):
    """Create a new version of a memory; the old one stays visible at an ``as_of`` before it ended.

    A repeated request returns the version that the first one created, whatever came after it.

    Raises:
        MemoryNotFound: There is none, or it was forgotten.
        Conflict: ``update.etag`` is not the current one.
    """

    bank_id: str
    update: MemoryUpdate
    request_id: str | None = None
    validate_only: bool = False


@dataclass(slots=True)
class Recall(Request[RecallResult]):
    """Rank the bank's memories for a query.

    Raises:
        FailedPrecondition: ``min_position`` was not reached in time.
        DimensionMismatch: The query's vector has another size or model than the bank's.
    """

    query: RecallQuery


@dataclass(slots=True)
class BatchRecall(Request[list[RecallResult]]):
    """Answer all queries; each result equals the single call's.

    Raises:
        ValidationError: A query is wrong; ``field`` starts with ``queries[i].``.
    """

    queries: Sequence[RecallQuery]


@dataclass(slots=True)
class History(Request[HistoryResult]):
    """Recall on the bank as it was known at ``query.as_of``, which is required."""

    query: RecallQuery


@dataclass(slots=True)
class Explain(Request[ExplainResult]):
    """Where each memory fell out of a recall, and the least change of the query that would return it.

    It counts as a recall, and raises what one does.

    Raises:
        ValidationError: A position is given and the query names several banks, which have one each.
    """

    query: ExplainQuery


@dataclass(slots=True)
class Reflect(Request[ReflectResult]):
    """Answer a question from the bank's memories.

    Raises:
        CapabilityNotSupported: The mode needs a language model, and none is configured.
        ProviderUnavailable: The language model failed, and no fallback is configured.
        DeadlineExceeded: It did not answer in time, and no fallback is configured.
    """

    query: ReflectQuery


@dataclass(slots=True)
class StreamReflect(StreamRequest[str | ReflectResult]):
    """As `Reflect`: the pieces of the answer as they come, and last of all the whole result."""

    query: ReflectQuery


@dataclass(slots=True)
class Forget(Request[ForgetResult]):
    """Forget the memories that the selector matches; with ``compliance`` erase them, with a receipt.

    A plain forget can be reversed by `UndeleteMemory` until ``purge_after``. ``dry_run`` counts and changes nothing.
    """

    bank_id: str
    selector: ForgetSelector
    compliance: bool = False
    reason: str | None = None
    dry_run: bool = False
    request_id: str | None = None


@dataclass(slots=True)
class UndeleteMemory(Request[Memory]):
    """Restore a forgotten memory.

    Raises:
        MemoryNotFound: There is none of that id, it was erased, or, on a repeated request, forgotten again.
    """

    bank_id: str
    memory_id: str
    request_id: str | None = None


@dataclass(slots=True)
class Watch(StreamRequest[Change]):
    """The bank's changes after a position (None: from now on), then each as it is committed, without end.

    Ends with `BankNotFound` when the bank is deleted.
    """

    bank_id: str
    after_position: int | None = None
