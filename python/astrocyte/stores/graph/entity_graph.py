"""The protocol of a store of entity graphs: derived rows of memories, changes of callers, and reads of one state."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from astrocyte.errors import AstrocyteError
from astrocyte.model import (
    Bank,
    Entity,
    EntityLink,
    GraphEntity,
    GraphReading,
    GraphStats,
    KnownEntity,
    LinkOrigin,
    Metadata,
    NewEntityLink,
    Resolution,
)
from astrocyte.stores.graph.memory_links import MemoryLinks
from astrocyte.stores.knowledge.items import Standing
from astrocyte.stores.memory_filter import EVERYTHING, MemoryFilter
from astrocyte.stores.records import RequestKey

# Link types with a meaning of their own: the source is another name of the target; the two are different entities.
ALIAS_OF = "alias_of"
DISTINCT_FROM = "distinct_from"
# Type of the links between entities that one memory mentions; computed, never stored.
CO_OCCURS = "co_occurs_with"
RESERVED_TYPES = frozenset({ALIAS_OF, DISTINCT_FROM, CO_OCCURS})

# Decides on entities by key, each against the keys of those that share a word with it.
Resolve = Callable[[Mapping[int, KnownEntity], Mapping[int, Sequence[int]]], Sequence[Resolution]]


class SourceVersion(NamedTuple):
    """A version of a memory from which graph rows are derived.

    ``reading`` is what the language model ``read_by`` found in it; ``revision`` grows with every reading.
    """

    row_key: int
    bank_key: int
    content: str
    speaker: str | None
    entities: tuple[Entity, ...]
    bank_id: str = ""
    reading: GraphReading | None = None
    read_by: str | None = None
    revision: int = 0


class DerivedMention(NamedTuple):
    """A mention of an entity; ``words`` are those by which the entity is found."""

    entity_id: str
    entity_type: str
    name: str
    first_char: int
    end_char: int
    confidence: float
    words: frozenset[str]


class DerivedLink(NamedTuple):
    """A link that a version states; its evidence is the passage between the two characters."""

    source_id: str
    target_id: str
    link_type: str
    first_char: int
    end_char: int
    confidence: float
    origin: LinkOrigin = LinkOrigin.MEMORY


class DerivedVersion(NamedTuple):
    """The graph rows of a version.

    ``revision`` is that of the reading that they were derived with; ``unread`` lets a language model read the version.
    """

    row_key: int
    bank_key: int
    mentions: tuple[DerivedMention, ...]
    links: tuple[DerivedLink, ...]
    revision: int = 0
    unread: bool = False


class Unjudged(NamedTuple):
    """An entity of which no language model was asked for other names."""

    key: int
    bank_key: int
    bank_id: str
    entity: KnownEntity


class Rebuild(NamedTuple):
    """A rebuild in progress: versions up to ``row_key`` are done, the last one is ``until_row_key``."""

    bank_key: int
    row_key: int
    until_row_key: int


@dataclass(frozen=True, slots=True)
class GraphView:
    """The part of a graph that a call sees: what was known at ``as_of`` (None: now) and held at ``valid_at``.

    Of memories, and of what they state, it sees those alone that pass ``only``.
    """

    bank: Bank
    as_of: int | None = None
    valid_at: int | None = None
    only: MemoryFilter = EVERYTHING


class Group(NamedTuple):
    """An entity with the entities that are merged into it, by key; ``members`` begins with ``canonical``."""

    canonical: int
    members: tuple[int, ...]


class Edge(NamedTuple):
    """An edge of the traversal. ``link_key`` is None for co-occurrence; ``forward`` is True along the link."""

    origin: int
    target: int
    link_type: str
    weight: float
    link_key: int | None
    forward: bool


class GraphMemory(NamedTuple):
    """A memory that mentions entities: its row key, id and content."""

    row_key: int
    memory_id: str
    content: str


@dataclass(frozen=True, slots=True)
class ArchivedEntity:
    """An entity of an archive, with the fields that callers set; without any it is the end of a link."""

    entity_id: str
    entity_type: str
    name: str | None = None
    aliases: tuple[str, ...] = ()
    metadata: Metadata = field(default_factory=dict)

    @property
    def fields(self) -> tuple[str | None, tuple[str, ...], Metadata]:
        """The fields that callers set."""
        return self.name, self.aliases, self.metadata

    @property
    def is_changed(self) -> bool:
        """True if a caller set any field."""
        return bool(self.name or self.aliases or self.metadata)

    @property
    def names(self) -> tuple[str, ...]:
        """The names that callers gave."""
        return (*((self.name,) if self.name else ()), *self.aliases)


@dataclass(frozen=True, slots=True)
class ArchivedLink:
    """A link of a caller in an archive; times are milliseconds since the epoch."""

    entity_a: str
    entity_b: str
    link_type: str
    evidence: str
    confidence: float
    created_at: int
    valid_from: int | None = None
    valid_until: int | None = None
    metadata: Metadata = field(default_factory=dict)


class GraphReader(Protocol):
    """Reads of one committed state, by the internal keys of entities and links."""

    @property
    def memory_links(self) -> MemoryLinks:
        """Links between versions, in the same state."""

    def keys(self, entity_ids: Sequence[str]) -> dict[str, int]:
        """The keys of visible entities by id; unknown ids are left out."""

    def groups(self, keys: Sequence[int]) -> dict[int, Group]:
        """The group of each entity."""

    def entities(self, groups: Sequence[Group]) -> list[GraphEntity]:
        """The entities of groups, in their order."""

    def search(self, text: str, words: Sequence[str], entity_types: Sequence[str], limit: int) -> list[int]:
        """Keys of the entities whose names match, best first; of a group the best one."""

    def listed(self, after: str, entity_type: str | None, limit: int) -> list[tuple[str, int]]:
        """Ids and keys of visible entities that are merged into no other, by id."""

    def each(self, after: str, limit: int) -> list[GraphEntity]:
        """Visible entities by id, each by itself whatever it is merged with."""

    def edges(
        self, keys: Sequence[int], link_types: Sequence[str], memories: int, fan_out: int
    ) -> tuple[list[Edge], bool]:
        """Edges at entities, heaviest first, and whether a bound cut them.

        Args:
            keys: The entities.
            link_types: Only these; none for all. `CO_OCCURS` names co-occurrence.
            memories: Newest memories of each entity whose other entities count as co-occurring.
            fan_out: Most links in each direction, and most co-occurring entities, of each entity.
        """

    def ids(self, keys: Sequence[int]) -> dict[int, str]:
        """The ids of entities, each by itself."""

    def links(self, link_keys: Sequence[int]) -> dict[int, EntityLink]:
        """Visible links by key."""

    def all_links(self, after: int, limit: int) -> list[tuple[int, EntityLink]]:
        """Visible stored links of the bank by key."""

    def mentioning(self, keys: Sequence[int], limit: int) -> dict[int, tuple[tuple[int, ...], bool]]:
        """Row keys of the newest visible versions that mention each entity, and whether there are more."""

    def memories(self, row_keys: Sequence[int]) -> list[GraphMemory]:
        """Visible versions with these row keys, in ascending row key."""

    def mention_counts(self, entities: int | None = None) -> int:
        """Number of the current mentions of the bank; of so many entities that have any, where that is given."""

    def counts(self, keys: Sequence[int]) -> dict[int, int]:
        """Numbers of current mentions of entities, each by itself, by key."""

    def known_words(self, words: Collection[str]) -> set[str]:
        """Those of the words, in lower case, that the name of an entity of the bank has."""

    def stats(self) -> GraphStats:
        """Counts of the bank; those of work in progress are left at zero."""


class EntityGraphStore(Protocol):
    """The entity graphs of all banks."""

    def reader(self, view: GraphView) -> AbstractContextManager[GraphReader]:
        """Reads of one committed state.

        Raises:
            BankNotFound: The bank was deleted.
        """

    def progress(self) -> tuple[int, int]:
        """Row keys of the last version with graph rows, and of the last version."""

    def pending(self) -> int:
        """Number of versions, of all banks, without graph rows."""

    def sources(
        self, after: int, *, limit: int, until: int | None = None, bank_key: int | None = None
    ) -> Sequence[SourceVersion]:
        """Versions after a row key that may be derived, in ascending row key, forgotten ones included."""

    def unresolved(self) -> bool:
        """True if names of entities wait to be resolved."""

    def rebuilds(self) -> list[Rebuild]:
        """Rebuilds in progress, by bank."""

    async def put(self, versions: Sequence[DerivedVersion], *, through: int, rebuild: int | None = None) -> None:
        """Replace the graph rows of versions, and note in the same transaction that those up to ``through`` are done.

        Args:
            versions: Versions that were erased, or read by a language model, meanwhile are left out.
            through: Row key.
            rebuild: Key of the bank whose rebuild this belongs to; None for the live progress.
        """

    async def resolve(self, resolve: Resolve, *, limit: int) -> int:
        """Decide on the aliases of up to ``limit`` new entities; returns how many were looked at."""

    def unjudged(self, limit: int) -> list[Unjudged]:
        """Visible entities that are no alias and of which no language model was asked, oldest first."""

    def comparable(self, unjudged: Unjudged) -> dict[int, KnownEntity]:
        """Entities of the bank that may be the same one, by key: the most mentioned, and those that share a word."""

    def passages(self, keys: Sequence[int]) -> dict[int, tuple[str, ...]]:
        """Some passages of current memories that mention entities, the newest first, by key."""

    async def judge(self, unjudged: Unjudged, target: int | None, evidence: str, confidence: float) -> None:
        """Note that a language model was asked, and store the alias link that it found; None for none."""

    async def start_rebuild(self, bank: Bank, *, by: str, request: RequestKey | None = None) -> None:
        """Let the bank's derived rows be made again from its memories, and external graph stores begin it anew.

        Does nothing where that is in progress.
        """

    async def clear(self, bank: Bank) -> list[str]:
        """Delete the entities that have neither mentions nor links of callers; returns their ids.

        There are none but of an import that stored an entity, and of which nothing that names it came. None is deleted
        while a hold covers the whole bank.
        """

    async def create_links(
        self, bank: Bank, links: Sequence[NewEntityLink], *, by: str, request: RequestKey | None = None
    ) -> list[EntityLink]:
        """Store links of a caller, all or none; an equal earlier request gets its links that are left.

        Raises:
            NotFound: An entity is unknown.
            AlreadyExists: An equal link is stored.
            FailedPrecondition: A link of type `ALIAS_OF` would close a circle.
        """

    async def delete_link(self, bank: Bank, link_id: str, *, by: str, request: RequestKey | None = None) -> str:
        """Delete a link of a caller; returns its id.

        Raises:
            NotFound: There is no such link.
            FailedPrecondition: It was not made by a caller.
            LegalHoldActive: A hold covers the whole bank.
        """

    async def update_entity(  # noqa: PLR0913 - the fields of an entity, and the parts of a request
        self,
        bank: Bank,
        entity_id: str,
        *,
        name: str | None,
        aliases: Sequence[str] | None,
        metadata: Metadata | None,
        words: Mapping[str, frozenset[str]],
        expected_etag: str | None,
        by: str,
        request: RequestKey | None = None,
    ) -> int:
        """Change the fields that are not None; ``words`` has the words of each name. Returns the entity's key.

        Raises:
            NotFound: The entity is unknown.
            Conflict: ``expected_etag`` is not the entity's.
        """

    async def merge(
        self,
        bank: Bank,
        entity_ids: Sequence[str],
        into: str,
        *,
        reason: str,
        by: str,
        request: RequestKey | None = None,
    ) -> int:
        """Merge entities into another one; returns the key of that.

        Raises:
            NotFound: An entity is unknown.
            FailedPrecondition: The other one is merged into one of them.
        """

    async def split(
        self, bank: Bank, entity_id: str, *, reason: str, by: str, request: RequestKey | None = None
    ) -> int:
        """Undo the merge of an entity, whoever made it, and keep it apart; returns its key.

        Raises:
            NotFound: The entity is unknown.
            FailedPrecondition: It is not merged with another one.
        """

    async def record_export(self, bank: Bank, *, by: str) -> None:
        """Record in the audit log that the graph was exported."""

    def archived_entities(self, bank: Bank, *, after: str, limit: int) -> list[ArchivedEntity]:
        """Visible entities by id that have fields or links of callers."""

    def archived_links(self, bank: Bank, *, after: int, limit: int) -> tuple[list[ArchivedLink], int]:
        """Links of callers between visible entities after a key, and the key of the last one; 0 at the end."""

    def standings(
        self, bank: Bank, rows: Sequence[ArchivedEntity | ArchivedLink], *, overwrite: bool
    ) -> list[Standing]:
        """The relation of each row of an archive to what the bank has; ends, type and validity identify a link.

        Raises:
            LegalHoldActive: ``overwrite`` is set, one is other, and a hold covers the whole bank.
        """

    async def restore(
        self,
        bank: Bank,
        rows: Sequence[ArchivedEntity | ArchivedLink],
        words: Mapping[str, frozenset[str]],
        *,
        by: str,
        overwrite: bool,
    ) -> list[bool | AstrocyteError]:
        """Store rows of an archive in one transaction, with the words of each id and name.

        What the bank has is kept; with ``overwrite``, one that is other becomes what the archive has. Returns True for
        each that is new or changed, False for one that was kept, and the error of one that cannot be stored: a link
        without its entity, or one that would close a circle of aliases.

        Raises:
            LegalHoldActive: A hold covers the bank, and one would change; nothing was stored.
        """
