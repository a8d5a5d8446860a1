"""The protocol of a store of wiki pages: topics of a bank, their memories, and the pages that were made of them.

Pages are items (`astrocyte.stores.knowledge.items`), so that they are hidden, held and erased as those are.
A page is compiled again where its fingerprint is another one than that of its topic's memories.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from astrocyte.model import Bank, Memory, PageKind
from astrocyte.stores.knowledge.items import Body, ItemRecord
from astrocyte.stores.records import RequestKey


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic: the scope that its memories are in, and their versions by row key, ascending.

    ``name`` is what all of them share: the tag, or the normalised name; of a cluster it is the id of its page.
    ``entity_key`` is that of the entity graph, or 0 where the topic is not from there. The scope of a topic from the
    graph, and of a cluster, is the whole bank.
    """

    kind: PageKind
    name: str
    scope: str
    row_keys: array[int]
    entity_key: int = 0


@dataclass(frozen=True, slots=True)
class Member:
    """A memory of a topic: its row key, and the names by which it calls the topic."""

    row_key: int
    memory: Memory
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PageState:
    """A page as it is stored: its key, its revision, its scope, and the fingerprint of what it was compiled from."""

    key: int
    page_id: str
    revision: int
    scope: str
    fingerprint: str


@dataclass(frozen=True, slots=True)
class PageDraft:
    """A page to write; ``state`` is the page that it replaces, if there is one."""

    page_id: str
    scope: str
    body: Body
    source_ids: tuple[str, ...]
    state: PageState | None = None


class Outcome(StrEnum):
    """The outcome of writing or deleting a page.

    OUTDATED: a memory or the page changed since it was read. FULL: the bank has as many pages as it may have.
    """

    CREATED = "created"
    UPDATED = "updated"
    DELETED = "deleted"
    HELD = "held"
    OUTDATED = "outdated"
    FULL = "full"


class WikiStore(Protocol):
    """Pages by bank. Reads and writes are as those of `astrocyte.stores.protocols.MemoryStore`."""

    def topics(self, bank: Bank, scope: str) -> tuple[list[Topic], int]:
        """The topics of a scope, of the whole bank for ``bank``, and the number of memories of the bank.

        A tag or name is a topic if a current memory has it.
        """

    def members(self, bank: Bank, topic: Topic, row_keys: Sequence[int]) -> list[Member]:
        """The memories of these row keys that are current, by time."""

    def states(self, bank: Bank) -> list[PageState]:
        """The pages of a bank by key, hidden ones included."""

    def unnamed(self, bank: Bank, row_keys: Collection[int], limit: int) -> list[tuple[int, str, bytes]]:
        """Row key, id and vector of the newest current memories that are not among these, by row key.

        At most ``limit``; memories without a vector of the bank's model are left out.
        """

    def clusters(self, bank: Bank) -> dict[str, frozenset[int]]:
        """The current sources of the pages of clusters, by row key, by the id of the page."""

    def held(self, bank: Bank, states: Sequence[PageState]) -> set[str]:
        """Ids of those pages that a hold keeps as they are."""

    async def write(
        self, bank: Bank, drafts: Sequence[PageDraft], *, by: str, most: int, keep_revisions: int
    ) -> list[Outcome]:
        """Write pages in one transaction; one whose sources changed since they were read is left as it is.

        Args:
            bank: Where.
            drafts: The pages.
            by: Principal.
            most: Pages that the bank may have.
            keep_revisions: Revisions of a page that are kept; older ones are deleted.
        """

    async def remove(self, bank: Bank, states: Sequence[PageState], *, by: str) -> list[Outcome]:
        """Delete pages, those left out that a hold covers or that changed."""

    async def remember(self, bank: Bank, request: RequestKey, response: str) -> None:
        """Store the response to a request for its repetitions; it holds no content."""

    def linked(self, bank: Bank, key: int, limit: int) -> list[tuple[ItemRecord, int]]:
        """The pages that share current sources with a page, and how many, by descending number."""
