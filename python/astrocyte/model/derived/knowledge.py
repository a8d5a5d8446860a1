"""Knowledge that is derived from memories, or rules for their use: observations, mental models and directives."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

# The scope of a whole bank, and the prefixes of the others.
BANK_SCOPE = "bank"
TAG_SCOPE = "tag:"
ENTITY_SCOPE = "entity:"


class Trend(StrEnum):
    """The trend of an observation, computed from the times of its evidence."""

    NEW = "new"
    STRENGTHENING = "strengthening"
    STABLE = "stable"
    WEAKENING = "weakening"
    STALE = "stale"


class ObservationKind(StrEnum):
    """The kind of statement that an observation makes. STATEMENT is any other, such as a manual one."""

    STATEMENT = "statement"
    PREFERENCE = "preference"
    HABIT = "habit"
    STATE = "state"
    EVENT = "event"


@dataclass(frozen=True, slots=True)
class Evidence:
    """A source of an observation or a mental model: a memory, its version when it was cited, and the memory's time.

    ``observed_at`` is when the memory happened, or was retained where that is not known. ``is_changed`` is True if the
    memory has a newer version, and ``is_archived`` if it is archived.
    """

    memory_id: str
    version: int
    observed_at: datetime
    is_changed: bool = False
    is_archived: bool = False


@dataclass(frozen=True, slots=True)
class Observation:
    """A statement that rests on memories.

    ``proof_count`` is the number of distinct sources. ``valid_from`` and ``valid_until`` bound when the statement was
    true; None is open. ``superseded_by`` is the observation that contradicts this one and is newer; "" for none.
    ``is_stale`` is True if a source has a newer version. A new observation has revision 1.
    """

    observation_id: str
    bank_id: str
    scope: str
    text: str
    kind: ObservationKind
    confidence: float
    proof_count: int
    trend: Trend
    evidence: tuple[Evidence, ...]
    revision: int
    etag: str
    created_by: str
    created_at: datetime
    updated_at: datetime
    valid_from: datetime | None = None
    valid_until: datetime | None = None
    superseded_by: str = ""
    is_stale: bool = False

    @property
    def source_ids(self) -> tuple[str, ...]:
        """Ids of the memories that it rests on."""
        return tuple(one.memory_id for one in self.evidence)


@dataclass(frozen=True, slots=True)
class ObservationPage:
    """A page of observations, which can be iterated over; an empty token ends the list."""

    observations: tuple[Observation, ...]
    next_page_token: str

    def __iter__(self) -> Iterator[Observation]:
        return iter(self.observations)

    def __len__(self) -> int:
        return len(self.observations)


class BlockKind(StrEnum):
    """The kind of a block of a mental model."""

    PARAGRAPH = "paragraph"
    BULLET_LIST = "bullet_list"
    ORDERED_LIST = "ordered_list"
    CODE = "code"


@dataclass(frozen=True, slots=True)
class ModelBlock:
    """A block of a mental model: ``text`` of a paragraph or code, ``items`` of a list.

    ``source_ids`` name the memories that the block rests on. A block without any rests on the sources of its model.
    """

    kind: BlockKind = BlockKind.PARAGRAPH
    text: str = ""
    items: tuple[str, ...] = ()
    language: str = ""
    source_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ModelSection:
    """A section of a mental model. ``section_id`` is generated from the heading where it is empty; level is 1 to 6."""

    section_id: str
    heading: str
    blocks: tuple[ModelBlock, ...] = ()
    level: int = 2


@dataclass(frozen=True, slots=True)
class MentalModel:
    """A curated, structured summary.

    ``content`` is the sections as Markdown. ``sources`` are the memories that it rests on. ``is_stale`` is True if one
    of them has a newer version, was forgotten, or left the scope; blocks that rest on a forgotten memory are left out.
    """

    model_id: str
    bank_id: str
    name: str
    scope: str
    sections: tuple[ModelSection, ...]
    content: str
    sources: tuple[Evidence, ...]
    revision: int
    etag: str
    created_by: str
    created_at: datetime
    updated_at: datetime
    is_stale: bool = False

    @property
    def title(self) -> str:
        """The name."""
        return self.name

    @property
    def kind(self) -> str:
        """The kind of model, other than a directive."""
        return "general"

    @property
    def source_ids(self) -> tuple[str, ...]:
        """Ids of the memories that it rests on."""
        return tuple(one.memory_id for one in self.sources)


@dataclass(frozen=True, slots=True)
class MentalModelPage:
    """A page of mental models, which can be iterated over; an empty token ends the list."""

    models: tuple[MentalModel, ...]
    next_page_token: str

    def __iter__(self) -> Iterator[MentalModel]:
        return iter(self.models)

    def __len__(self) -> int:
        return len(self.models)


class RevisionCause(StrEnum):
    """The call that made a revision."""

    CREATED = "created"
    UPDATED = "updated"
    REFRESHED = "refreshed"
    CONSOLIDATED = "consolidated"
    COMPILED = "compiled"


@dataclass(frozen=True, slots=True)
class KnowledgeRevision:
    """A revision of an observation or a mental model: its text, or its content as Markdown, and its sources."""

    revision: int
    cause: RevisionCause
    text: str
    source_ids: tuple[str, ...]
    changed_by: str
    changed_at: datetime


@dataclass(frozen=True, slots=True)
class RevisionPage:
    """A page of revisions, newest first; an empty token ends the list."""

    revisions: tuple[KnowledgeRevision, ...]
    next_page_token: str

    def __iter__(self) -> Iterator[KnowledgeRevision]:
        return iter(self.revisions)

    def __len__(self) -> int:
        return len(self.revisions)


@dataclass(frozen=True, slots=True)
class RevisionDiff:
    """The difference of two revisions of a mental model: ids of sections, and a unified diff of the Markdown."""

    from_revision: int
    to_revision: int
    sections_added: tuple[str, ...]
    sections_removed: tuple[str, ...]
    sections_changed: tuple[str, ...]
    unified_diff: str


@dataclass(frozen=True, slots=True)
class DeltaOperation:
    """A change of one place of a mental model; see docs/knowledge.md for the fields of each ``op``.

    ``unknown_fields`` names fields of the caller's operation that no operation has; such an operation is skipped.
    """

    op: str
    section_id: str = ""
    block_index: int | None = None
    block: ModelBlock | None = None
    blocks: tuple[ModelBlock, ...] = ()
    heading: str = ""
    level: int | None = None
    after_section_id: str = ""
    new_section_id: str = ""
    unknown_fields: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AppliedOperation:
    """An operation that was applied, by its index in the request."""

    index: int
    op: str


@dataclass(frozen=True, slots=True)
class SkippedOperation:
    """An operation that was not applied, and the reason."""

    index: int
    op: str
    reason: str


@dataclass(frozen=True, slots=True)
class MentalModelUpdate:
    """The result of delta operations. Without an applied operation there is no new revision."""

    model: MentalModel
    applied_ops: tuple[AppliedOperation, ...] = field(default=())
    skipped_ops: tuple[SkippedOperation, ...] = field(default=())


@dataclass(frozen=True, slots=True)
class Directive:
    """A rule for readers of the bank, written by a trusted principal; a higher priority comes first."""

    directive_id: str
    bank_id: str
    rule_text: str
    scope: str
    priority: int
    created_by: str
    created_at: datetime
    etag: str

    @property
    def kind(self) -> str:
        """The kind of a mental model that it would be."""
        return "directive"


@dataclass(frozen=True, slots=True)
class DirectivePage:
    """A page of directives, which can be iterated over; an empty token ends the list."""

    directives: tuple[Directive, ...]
    next_page_token: str

    def __iter__(self) -> Iterator[Directive]:
        return iter(self.directives)

    def __len__(self) -> int:
        return len(self.directives)
