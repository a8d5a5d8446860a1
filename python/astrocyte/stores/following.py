"""The protocols of a store that external stores follow. The SQLite store implements them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, Protocol

from astrocyte.model import Bank
from astrocyte.stores.graph.entity_graph import ArchivedEntity, ArchivedLink
from astrocyte.stores.records import VersionRecord


class FollowedStore(Protocol):
    """The primary store for external stores. Reads are as those of `astrocyte.stores.protocols.MemoryStore`."""

    @property
    def installation(self) -> str:
        """The id of this store, constant while its files exist: 32 hex digits."""

    def banks(self, *, after: int, limit: int) -> list[Bank]:
        """Banks of all tenants whose key is above ``after``, by key."""

    def versions(self, bank: Bank, memory_ids: Sequence[str]) -> list[VersionRecord]:
        """All versions of these memories that recall may ever see, as they are now, by row key."""


class GraphChangeKind(StrEnum):
    """Subject of a change of an entity graph. ``REFILL``: a store begins the bank anew."""

    ENTITY = "entity"
    LINK = "link"
    REFILL = "refill"


class GraphChange(NamedTuple):
    """The last change of an entity or a link, by its key. Numbers ascend; those of a bank have gaps."""

    number: int
    kind: GraphChangeKind
    key: int


@dataclass(frozen=True, slots=True)
class FollowedEntity:
    """A visible entity with the fields that callers set, and the ids of the visible entities that it is an alias of."""

    key: int
    entity: ArchivedEntity
    alias_of: tuple[str, ...]


class FollowedLink(NamedTuple):
    """A link of a caller between visible entities."""

    key: int
    link: ArchivedLink


class FollowedGraphs(Protocol):
    """The entity graphs of the primary store for external stores: what does not follow from memories alone."""

    def subscribe(self, listener: Callable[[], None]) -> None:
        """Call the listener after transactions that may have changed a graph, on the event loop of their caller."""

    def changed(self, after: int) -> tuple[list[Bank], int]:
        """Banks with a change above a number, by key, and the number of the last change of all."""

    def last(self, bank: Bank) -> int:
        """The number of the bank's last change; 0 for none."""

    def changes(self, bank: Bank, *, after: int, limit: int) -> list[GraphChange]:
        """Changes of the bank above a number, in ascending order."""

    def entities(self, bank: Bank, keys: Sequence[int]) -> list[FollowedEntity]:
        """Of these entities those that an external store holds, as they are now.

        They are visible, and have fields of callers, an alias, or a link of a caller.
        """

    def links(self, bank: Bank, keys: Sequence[int]) -> list[FollowedLink]:
        """Of these links those that an external store holds, as they are now."""
