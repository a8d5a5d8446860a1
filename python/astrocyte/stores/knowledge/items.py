"""The protocol of a store of observations, mental models, directives and wiki pages, and how sources hide them.

An item has revisions. Each revision has a body, in JSON types, and the memories that it rests on. A memory counts as
gone while it is forgotten, or while it has left the scope of the item: what rests on it is not shown, and comes back
when the memory does. An erasure deletes it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Protocol

from astrocyte.errors import AstrocyteError
from astrocyte.model import Bank, RevisionCause
from astrocyte.stores.records import RequestKey

Body = Mapping[str, Any]


class ItemKind(StrEnum):
    """The kind of an item of knowledge."""

    OBSERVATION = "observation"
    MENTAL_MODEL = "mental_model"
    DIRECTIVE = "directive"
    WIKI_PAGE = "wiki_page"


# Keys of the body of a consolidated observation that say what it claims; one that somebody rewrote has none of them.
CLAIM_KEYS = ("words", "object", "frequency", "denied", "relation")
# Kinds that have sections of blocks.
DOCUMENTS = frozenset({ItemKind.MENTAL_MODEL, ItemKind.WIKI_PAGE})


@dataclass(frozen=True, slots=True)
class NewItem:
    """An item to store. ``most`` bounds the items of its kind in the bank; ``topic`` is that of a consolidation."""

    kind: ItemKind
    item_id: str
    scope: str
    body: Body
    most: int
    source_ids: tuple[str, ...] = ()
    priority: int = 0
    topic: bytes | None = None
    cause: RevisionCause = RevisionCause.CREATED


@dataclass(frozen=True, slots=True)
class Change:
    """A new revision of an item. ``expected_etag`` None changes whatever is there."""

    body: Body
    source_ids: tuple[str, ...]
    cause: RevisionCause
    expected_etag: str | None = None


@dataclass(frozen=True, slots=True)
class Removal:
    """A deletion of an item, which is hidden until ``purge_after`` where that is given.

    ``expected_etag`` None deletes whatever is there.
    """

    expected_etag: str | None = None
    purge_after: int | None = None


@dataclass(frozen=True, slots=True)
class SourceRecord:
    """A source: the version that was cited, the memory's time, and its current version with its row key.

    Both are None while the memory is gone. ``archived`` is True while it is archived.
    """

    memory_id: str
    version: int
    observed_at: int
    current: int | None
    row_key: int | None
    archived: bool = False

    @property
    def is_changed(self) -> bool:
        """True if the memory has another version than was cited, or is gone."""
        return self.current != self.version


@dataclass(frozen=True, slots=True)
class RevisionRecord:
    """A revision with its sources, in the order of their ids."""

    revision: int
    cause: RevisionCause
    body: Body
    changed_by: str
    changed_at: int
    sources: tuple[SourceRecord, ...] = ()


@dataclass(frozen=True, slots=True)
class ItemRecord:
    """An item in its current revision."""

    key: int
    bank_id: str
    kind: ItemKind
    item_id: str
    scope: str
    priority: int
    topic: bytes | None
    created_by: str
    created_at: int
    updated_at: int
    current: RevisionRecord

    @property
    def is_outdated(self) -> bool:
        """True if a source changed, or is gone."""
        return any(source.is_changed for source in self.current.sources)

    @property
    def lacks_source(self) -> bool:
        """True if a source is gone: an observation is then not shown."""
        return any(source.current is None for source in self.current.sources)

    @property
    def etag(self) -> str:
        """The etag of this revision."""
        return item_etag(self.key, self.current.revision)


@dataclass(frozen=True, slots=True)
class ItemHistory:
    """An item with its revisions, oldest first, out of an archive or for one.

    The last revision is the current one. ``topic`` is that of a consolidation. Of sources, ``current`` and ``row_key``
    have no meaning.
    """

    kind: ItemKind
    item_id: str
    scope: str
    priority: int
    topic: bytes | None
    created_by: str
    created_at: int
    revisions: tuple[RevisionRecord, ...]


class Standing(StrEnum):
    """The relation of a row of an archive to what the bank has under its id.

    ABSENT: nothing. EQUAL: the same. OTHER: something else. HIDDEN: something that is deleted, or that rests on
    memories which are gone.
    """

    ABSENT = "absent"
    EQUAL = "equal"
    OTHER = "other"
    HIDDEN = "hidden"


def item_etag(key: int, revision: int) -> str:
    """The etag of a revision: no other item, and no other revision, ever has it."""
    return f"{key:x}-{revision:x}"


def shown(kind: ItemKind, record: RevisionRecord) -> RevisionRecord | None:
    """The part of a revision that rests on no memory which is gone; None where nothing is left."""
    gone = frozenset(source.memory_id for source in record.sources if source.current is None)
    if not gone:
        return record
    body = remaining(kind, record.body, gone)
    return None if body is None else replace(record, body=body)


def remaining(kind: ItemKind, body: Body, gone: Collection[str]) -> Body | None:
    """The part of a body that does not rest on memories which are gone; None where nothing is left.

    The text of an observation rests on all its sources. A block of a mental model or wiki page rests on those that it
    cites; without any, on the sources of the whole. A title of a page stays while one memory says it.
    """
    if kind not in DOCUMENTS:
        return None
    whole_is_gone = not gone_free(body["source_ids"], gone)

    def stays(block: Mapping[str, Any]) -> bool:
        own = block["source_ids"]
        return gone_free(own, gone) if own else not whole_is_gone

    sections = []
    for section in body["sections"]:
        blocks = [block for block in section["blocks"] if stays(block)]
        if blocks or not section["blocks"]:
            sections.append({**section, "blocks": blocks})
    if not any(section["blocks"] for section in sections):
        return None
    left = [one for one in body["source_ids"] if one not in gone]
    named = {"titles": _without(body["titles"], gone)} if kind is ItemKind.WIKI_PAGE else {}
    return {**body, "sections": sections, "source_ids": left, **named}


def _without(titles: Iterable[Mapping[str, Any]], gone: Collection[str]) -> list[Mapping[str, Any]]:
    """The titles that a memory says which is there."""
    left = [{**title, "source_ids": [one for one in title["source_ids"] if one not in gone]} for title in titles]
    return [title for title in left if title["source_ids"]]


def gone_free(source_ids: Iterable[str], gone: Collection[str]) -> bool:
    """True if none of the sources is gone."""
    return not any(one in gone for one in source_ids)


def is_stale_page(sources: Iterable[SourceRecord]) -> bool:
    """True if a memory of a wiki page has a newer version, is archived or is gone: a compilation would change it."""
    return any(one.archived or one.current != one.version for one in sources)


def superseders(body: Body) -> list[tuple[str, int | None]]:
    """The observations that supersede one, by time, each with its first evidence against it."""
    if not body["superseded_by"]:
        return []
    # One of an archive may name the last alone.
    found = body.get("superseders") or [[body["superseded_by"], body["valid_until"]]]
    return [(item_id, at) for item_id, at in found]


def superseded_by(body: Body, present: Collection[str]) -> Body:
    """The body of an observation that those supersede which are present; without any it holds."""
    known = superseders(body)
    left = [one for one in known if one[0] in present]
    if len(left) == len(known):
        return body
    until = min((at for _, at in left if at is not None), default=None)
    last = left[-1][0] if left else ""
    return {**body, "superseders": [list(one) for one in left], "superseded_by": last, "valid_until": until}


class KnowledgeStore(Protocol):
    """Items by bank. Reads and writes are as those of `astrocyte.stores.protocols.MemoryStore`.

    An item whose sources are gone is absent from every read, as far as `shown` says, and supersedes no other one. Its
    sources are in its scope when it is written. A change of an item, or its deletion, is refused while a hold covers
    the bank or one of its sources.
    """

    async def create(self, bank: Bank, item: NewItem, *, by: str, request: RequestKey | None = None) -> ItemRecord:
        """Store an item; an equal earlier request gets its item as it is now.

        Raises:
            AlreadyExists: The bank has an item of this kind and id.
            MemoryNotFound: A source does not exist.
            FailedPrecondition: A source is not in the scope, or the bank has as many items as it may have.
            NotFound: The item of an equal earlier request is gone.
        """

    async def revise(  # noqa: PLR0913 - the parts of one transaction
        self,
        bank: Bank,
        kind: ItemKind,
        item_id: str,
        change: Change,
        *,
        by: str,
        request: RequestKey | None = None,
        note: str = "",
    ) -> tuple[ItemRecord, str]:
        """Make a new revision; returns the item, and ``note``, or that of an equal earlier request.

        ``note`` outlives an erasure, and so holds no content.

        Raises:
            NotFound: The bank has no such item.
            Conflict: The etag is not the current one.
            LegalHoldActive: A hold covers the bank, or a source.
            MemoryNotFound, FailedPrecondition: As `create`.
        """

    async def delete(
        self,
        bank: Bank,
        kind: ItemKind,
        item_id: str,
        removal: Removal,
        *,
        by: str,
        request: RequestKey | None = None,
    ) -> bool:
        """Delete an item, or hide it; returns True if there was one.

        Raises:
            Conflict: The etag is not the current one.
            LegalHoldActive: A hold covers the bank, or a source.
        """

    def changeable(self, bank: Bank, kind: ItemKind, item_id: str, expected_etag: str | None) -> bool:
        """True if there is an item, and it may be changed or deleted now; raises as `delete`."""

    async def undelete(
        self, bank: Bank, kind: ItemKind, item_id: str, *, by: str, request: RequestKey | None = None
    ) -> ItemRecord:
        """Show a hidden item again; one that is not hidden is not changed.

        Raises:
            NotFound: There is none.
        """

    def hidden(self, bank: Bank, kind: ItemKind, item_id: str) -> ItemRecord | None:
        """The item of an id, hidden or not, as `undelete` returns it; None for none."""

    async def invalidate(
        self, bank: Bank, memory_ids: Sequence[str], *, by: str, request: RequestKey | None = None
    ) -> int:
        """Delete the observations that rest on any of the memories; returns their number.

        Raises:
            LegalHoldActive: A hold covers the bank, or a source of one of them.
        """

    def invalidated(self, bank: Bank, memory_ids: Sequence[str]) -> int:
        """The number of observations that `invalidate` would delete; raises as it does."""

    def sources(self, bank: Bank, scope: str, memory_ids: Sequence[str]) -> tuple[SourceRecord, ...]:
        """The memories as an item of the scope would cite them, without repeats.

        Raises:
            MemoryNotFound, FailedPrecondition: As `create`.
        """

    def naming(self, bank: Bank, name: str, limit: int) -> list[str]:
        """Ids of the newest current memories that name an entity, at most ``limit``."""

    def get(self, bank: Bank, kind: ItemKind, item_id: str) -> ItemRecord | None:
        """The item, or None."""

    def listed(self, bank: Bank, kind: ItemKind, *, scope: str, after: int, limit: int) -> list[ItemRecord]:
        """The first items after a key, by key; of a scope, or "" of all.

        There may be fewer than ``limit`` before the end, but never none: items that are not shown are passed over.
        """

    def of_keys(self, bank: Bank, keys: Sequence[int]) -> list[ItemRecord]:
        """The items of these keys that are shown, in the order of the keys."""

    def texts(self, bank: Bank, keys: Sequence[int]) -> list[tuple[int, ItemKind, int, Body]]:
        """Key, kind, revision and body of these items, hidden parts included. For an index: hits are read back."""

    def revisions(self, bank: Bank, kind: ItemKind, item_id: str, *, before: int, limit: int) -> list[RevisionRecord]:
        """The revisions before a number, newest first."""

    def histories(
        self, bank: Bank, kind: ItemKind, *, after: int, limit: int, at_position: int
    ) -> tuple[list[ItemHistory], int]:
        """The items after a key with the revisions that are shown, and the key of the last one; 0 at the end.

        What rests on memories that came after a position of the bank is treated as if these were gone.
        """

    def standings(self, bank: Bank, items: Sequence[ItemHistory], *, overwrite: bool) -> list[Standing]:
        """The relation of each item of an archive to what the bank has.

        Raises:
            LegalHoldActive: ``overwrite`` is set, and a hold covers one that is other.
        """

    async def restore(
        self, bank: Bank, items: Sequence[tuple[ItemHistory, int]], *, by: str, overwrite: bool
    ) -> list[bool | AstrocyteError]:
        """Store items of an archive in one transaction, each with the most items of its kind that the bank may have.

        What the bank has under an id is kept. With ``overwrite``, one that is other gets the last revision of the
        archive as its next one. Returns True for each that is new or changed, False for one that was kept, and the
        error of one that cannot be stored: a source is missing or outside of the scope, or the bank has too many.

        Raises:
            LegalHoldActive: A hold covers one that would change; nothing was stored.
        """

    def current_revisions(self, bank: Bank, kinds: Collection[ItemKind]) -> dict[int, int]:
        """The current revision of each item of some kinds of a bank, by key."""

    def banks_with(self, tenant: str, kind: ItemKind, item_id: str) -> list[Bank]:
        """The banks of a tenant that have such an item, by id; at most a hundred."""

    @property
    def itemless(self) -> AbstractSet[int]:
        """Keys of banks that were found to have no items, and got none since."""

    def kinds(self, bank: Bank) -> frozenset[ItemKind]:
        """The kinds of items that a bank has; hidden ones may count."""

    def epoch(self, bank: Bank) -> int:
        """A number that grows with each change of a bank's items in this process."""
