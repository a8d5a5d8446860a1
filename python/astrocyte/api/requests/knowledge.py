"""Requests on observations, mental models and directives.

An empty ``bank_id`` of a request on one item means the one bank that has the item and that the caller may use.
`ValidationError` is raised where there are none or several.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from astrocyte.api.requests.base import Request
from astrocyte.model import (
    BANK_SCOPE,
    DeltaOperation,
    Directive,
    DirectivePage,
    KnowledgeRevision,
    MentalModel,
    MentalModelPage,
    MentalModelUpdate,
    ModelSection,
    Observation,
    ObservationPage,
    Operation,
    RevisionDiff,
    RevisionPage,
    Trend,
)


@dataclass(slots=True)
class CreateDirective(Request[Directive]):
    """Create a rule that recall and reflect return before all memories.

    Raises:
        AccessDenied: The principal does not match `directives.allowed_principals`.
        AlreadyExists: There is a directive of that id.
        FailedPrecondition: The bank has `directives.max_per_bank` directives.
    """

    bank_id: str
    rule_text: str
    scope: str = BANK_SCOPE
    priority: int = 0
    directive_id: str | None = None
    request_id: str | None = None
    validate_only: bool = False


@dataclass(slots=True)
class ListDirectives(Request[DirectivePage]):
    """A page of directives by descending priority; equal ones by age. An empty ``scope`` is any."""

    bank_id: str
    scope: str = ""
    page_size: int = 0
    page_token: str = ""


@dataclass(slots=True)
class DeleteDirective(Request[bool]):
    """Delete a directive; returns True if there was one.

    Raises:
        AccessDenied: The principal does not match `directives.allowed_principals`.
        LegalHoldActive: A hold covers the bank.
    """

    bank_id: str
    directive_id: str
    request_id: str | None = None
    etag: str | None = None
    validate_only: bool = False


@dataclass(slots=True)
class CreateObservation(Request[Observation]):
    """Create an observation that rests on memories of its scope; None as ``confidence`` is 0.9.

    Raises:
        MemoryNotFound: The bank has no such memory.
        FailedPrecondition: A memory is outside of the scope, or the bank has `observations.max_per_bank` of them.
    """

    bank_id: str
    text: str
    evidence: Sequence[str]
    scope: str = BANK_SCOPE
    confidence: float | None = None
    valid_from: datetime | None = None
    valid_until: datetime | None = None
    request_id: str | None = None
    validate_only: bool = False


@dataclass(slots=True)
class GetObservation(Request[Observation]):
    """An observation as it is now.

    Raises:
        NotFound: There is none, or a source was forgotten.
    """

    bank_id: str
    observation_id: str


@dataclass(slots=True)
class ListObservations(Request[ObservationPage]):
    """A page of observations by age, of a scope and a trend, whose text contains ``text`` in any case."""

    bank_id: str
    scope: str = ""
    trend: Trend | None = None
    text: str = ""
    page_size: int = 0
    page_token: str = ""


@dataclass(slots=True)
class UpdateObservation(Request[Observation]):
    """Make a new revision from the fields that are given; an empty ``evidence`` is unchanged.

    Raises:
        NotFound: There is none.
        Conflict: ``etag`` is not the current one.
        LegalHoldActive: A hold covers the bank or a source.
    """

    bank_id: str
    observation_id: str
    text: str | None = None
    evidence: Sequence[str] = ()
    confidence: float | None = None
    etag: str | None = None
    request_id: str | None = None
    validate_only: bool = False


@dataclass(slots=True)
class DeleteObservation(Request[bool]):
    """Delete an observation with its revisions; returns True if there was one.

    Raises:
        Conflict: ``etag`` is not the current one.
        LegalHoldActive: A hold covers the bank or a source.
    """

    bank_id: str
    observation_id: str
    request_id: str | None = None
    etag: str | None = None
    validate_only: bool = False


@dataclass(slots=True)
class InvalidateObservations(Request[int]):
    """Delete all observations that rest on any of the memories; returns their number.

    Raises:
        LegalHoldActive: A hold covers the bank, or a source of one of them.
    """

    bank_id: str
    source_ids: Sequence[str]
    request_id: str | None = None
    validate_only: bool = False


@dataclass(slots=True)
class ListObservationRevisions(Request[RevisionPage]):
    """A page of an observation's revisions, newest first; those that rest on forgotten memories are left out."""

    bank_id: str
    observation_id: str
    page_size: int = 0
    page_token: str = ""


@dataclass(slots=True)
class ConsolidateBank(Request[Operation]):
    """Make observations of all memories of a bank, in the background; see `WaitOperation`.

    With ``validate_only`` nothing is started; the operation is as it would be, pending and without an id.

    Raises:
        FailedPrecondition: Another operation on the bank is not done.
    """

    bank_id: str
    request_id: str | None = None
    validate_only: bool = False


@dataclass(slots=True)
class CreateMentalModel(Request[MentalModel]):
    """Create a mental model of ``sections``, or of ``content`` in Markdown; None as ``model_id`` is made of the name.

    Raises:
        AlreadyExists: There is a model of that id.
        MemoryNotFound: The bank has no such memory.
        FailedPrecondition: A memory is outside of the scope, or the bank has `mental_models.max_per_bank` of them.
    """

    bank_id: str
    name: str
    sections: Sequence[ModelSection] = ()
    content: str = ""
    scope: str = BANK_SCOPE
    source_ids: Sequence[str] = ()
    model_id: str | None = None
    request_id: str | None = None
    validate_only: bool = False


@dataclass(slots=True)
class GetMentalModel(Request[MentalModel]):
    """A mental model as it is now.

    Raises:
        NotFound: There is none, or nothing of it rests on memories that are there.
    """

    bank_id: str
    model_id: str


@dataclass(slots=True)
class ListMentalModels(Request[MentalModelPage]):
    """A page of mental models by age. An empty ``scope`` is any."""

    bank_id: str
    scope: str = ""
    page_size: int = 0
    page_token: str = ""


@dataclass(slots=True)
class UpdateMentalModel(Request[MentalModelUpdate]):
    """Apply delta operations in order. One that cannot be applied is skipped; with ``atomic`` it fails the call.

    Raises:
        NotFound: There is none.
        Conflict: ``etag`` is not the current one.
        LegalHoldActive: A hold covers the bank or a source.
    """

    bank_id: str
    model_id: str
    operations: Sequence[DeltaOperation]
    atomic: bool = False
    etag: str | None = None
    request_id: str | None = None
    validate_only: bool = False


@dataclass(slots=True)
class RefreshMentalModel(Request[MentalModel]):
    """Replace the content; without ``content``, rewrite it from the memories of the scope.

    A rewrite keeps blocks without sources as they are, and replaces the others by sentences that cite memories: by the
    language model, or, without one, taken from the memories.

    Raises:
        NotFound: There is none.
        Conflict: ``etag`` is not the current one.
        LegalHoldActive: A hold covers the bank or a source.
        ProviderUnavailable: The language model failed, and no fallback is configured.
    """

    bank_id: str
    model_id: str
    content: str = ""
    source_ids: Sequence[str] = ()
    etag: str | None = None
    request_id: str | None = None
    validate_only: bool = False


@dataclass(slots=True)
class DeleteMentalModel(Request[bool]):
    """Hide a mental model until it is undeleted, or purged later; returns True if there was one.

    Raises:
        Conflict: ``etag`` is not the current one.
        LegalHoldActive: A hold covers the bank or a source.
    """

    bank_id: str
    model_id: str
    request_id: str | None = None
    etag: str | None = None
    validate_only: bool = False


@dataclass(slots=True)
class UndeleteMentalModel(Request[MentalModel]):
    """Restore a deleted mental model; one that is not deleted is not changed.

    Raises:
        NotFound: There is none, or it was purged.
    """

    bank_id: str
    model_id: str
    request_id: str | None = None
    validate_only: bool = False


@dataclass(slots=True)
class ListMentalModelRevisions(Request[RevisionPage]):
    """A page of a mental model's revisions, newest first."""

    bank_id: str
    model_id: str
    page_size: int = 0
    page_token: str = ""


@dataclass(slots=True)
class GetMentalModelRevision(Request[KnowledgeRevision]):
    """One revision of a mental model.

    Raises:
        NotFound: There is none.
    """

    bank_id: str
    model_id: str
    revision: int


@dataclass(slots=True)
class DiffMentalModelRevisions(Request[RevisionDiff]):
    """The difference of two revisions; 0 as ``to_revision`` is the current one.

    Raises:
        NotFound: There is no such revision.
    """

    bank_id: str
    model_id: str
    from_revision: int
    to_revision: int = 0
