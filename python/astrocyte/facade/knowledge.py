"""The part of the Python API on observations, mental models and directives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from astrocyte.api import Backend, requests
from astrocyte.facade import keywords
from astrocyte.facade.keywords import Texts
from astrocyte.facade.knowledge_keywords import operations_of, sections_of
from astrocyte.model import (
    BANK_SCOPE,
    AstrocyteContext,
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


class Knowledge:
    """The calls of `Astrocyte` on observations, mental models and directives.

    ``scope`` is ``bank``, ``tag:`` and a tag, or ``entity:`` and a name. Calls on one item need no ``bank_id`` where
    one bank alone has the item. ``context`` names the caller, the local user by default.
    """

    _backend: Backend

    async def create_directive(  # noqa: PLR0913 - the parts of a directive
        self,
        bank_id: str,
        rule_text: str,
        *,
        scope: str = BANK_SCOPE,
        priority: int = 0,
        directive_id: str | None = None,
        request_id: str | None = None,
        validate_only: bool = False,
        context: AstrocyteContext | None = None,
    ) -> Directive:
        """Create a rule that recall and reflect return before all memories.

        Raises:
            AccessDenied: `directives.allowed_principals` does not name the caller.
        """
        request = requests.CreateDirective(bank_id, rule_text, scope, priority, directive_id, request_id, validate_only)
        return await self._backend.call(keywords.caller_of(context), request)

    async def list_directives(
        self,
        bank_id: str,
        *,
        scope: str = "",
        page_size: int = 0,
        page_token: str = "",
        context: AstrocyteContext | None = None,
    ) -> DirectivePage:
        """A page of directives, the highest priority first."""
        request = requests.ListDirectives(bank_id, scope, page_size, page_token)
        return await self._backend.call(keywords.caller_of(context), request)

    async def delete_directive(
        self,
        directive_id: str,
        bank_id: str | None = None,
        *,
        etag: str | None = None,
        request_id: str | None = None,
        validate_only: bool = False,
        context: AstrocyteContext | None = None,
    ) -> bool:
        """Delete a directive; returns True if there was one."""
        request = requests.DeleteDirective(bank_id or "", directive_id, request_id, etag, validate_only)
        return await self._backend.call(keywords.caller_of(context), request)

    async def create_observation(  # noqa: PLR0913 - the parts of an observation
        self,
        bank_id: str,
        text: str,
        evidence: Texts,
        *,
        scope: str = BANK_SCOPE,
        confidence: float | None = None,
        valid_from: datetime | None = None,
        valid_until: datetime | None = None,
        request_id: str | None = None,
        validate_only: bool = False,
        context: AstrocyteContext | None = None,
    ) -> Observation:
        """Create an observation that rests on the memories of ``evidence``.

        Raises:
            MemoryNotFound: The bank has no such memory.
            FailedPrecondition: A memory is outside of the scope.
        """
        request = requests.CreateObservation(
            bank_id,
            text,
            keywords.texts(evidence, "evidence"),
            scope,
            confidence,
            valid_from,
            valid_until,
            request_id,
            validate_only,
        )
        return await self._backend.call(keywords.caller_of(context), request)

    async def get_observation(
        self, observation_id: str, bank_id: str | None = None, *, context: AstrocyteContext | None = None
    ) -> Observation:
        """One observation."""
        request = requests.GetObservation(bank_id or "", observation_id)
        return await self._backend.call(keywords.caller_of(context), request)

    async def list_observations(  # noqa: PLR0913 - a filter and the bounds of a page
        self,
        bank_id: str,
        *,
        scope: str = "",
        trend: Trend | str | None = None,
        text: str = "",
        page_size: int = 0,
        page_token: str = "",
        context: AstrocyteContext | None = None,
    ) -> ObservationPage:
        """A page of observations, oldest first, of a scope and a trend, whose text contains ``text``."""
        chosen = None if trend is None else keywords.choice(Trend, trend, "trend")
        request = requests.ListObservations(bank_id, scope, chosen, text, page_size, page_token)
        return await self._backend.call(keywords.caller_of(context), request)

    async def update_observation(  # noqa: PLR0913 - the parts of an observation
        self,
        observation_id: str,
        bank_id: str | None = None,
        *,
        text: str | None = None,
        evidence: Texts | None = None,
        confidence: float | None = None,
        etag: str | None = None,
        request_id: str | None = None,
        validate_only: bool = False,
        context: AstrocyteContext | None = None,
    ) -> Observation:
        """Make a new revision of an observation from what is given."""
        request = requests.UpdateObservation(
            bank_id or "",
            observation_id,
            text,
            keywords.texts(evidence, "evidence"),
            confidence,
            etag,
            request_id,
            validate_only,
        )
        return await self._backend.call(keywords.caller_of(context), request)

    async def delete_observation(
        self,
        observation_id: str,
        bank_id: str | None = None,
        *,
        etag: str | None = None,
        request_id: str | None = None,
        validate_only: bool = False,
        context: AstrocyteContext | None = None,
    ) -> bool:
        """Delete an observation; returns True if there was one."""
        request = requests.DeleteObservation(bank_id or "", observation_id, request_id, etag, validate_only)
        return await self._backend.call(keywords.caller_of(context), request)

    async def invalidate_observations(
        self,
        bank_id: str,
        source_ids: Texts,
        *,
        request_id: str | None = None,
        validate_only: bool = False,
        context: AstrocyteContext | None = None,
    ) -> int:
        """Delete the observations that rest on any of these memories; returns their number."""
        request = requests.InvalidateObservations(
            bank_id, keywords.texts(source_ids, "source_ids"), request_id, validate_only
        )
        return await self._backend.call(keywords.caller_of(context), request)

    async def list_observation_revisions(
        self,
        observation_id: str,
        bank_id: str | None = None,
        *,
        page_size: int = 0,
        page_token: str = "",
        context: AstrocyteContext | None = None,
    ) -> RevisionPage:
        """A page of an observation's revisions, newest first."""
        request = requests.ListObservationRevisions(bank_id or "", observation_id, page_size, page_token)
        return await self._backend.call(keywords.caller_of(context), request)

    async def consolidate(
        self,
        bank_id: str,
        *,
        request_id: str | None = None,
        validate_only: bool = False,
        context: AstrocyteContext | None = None,
    ) -> Operation:
        """Make observations of all memories of a bank, in the background; `wait_operation` waits for it."""
        request = requests.ConsolidateBank(bank_id, request_id, validate_only)
        return await self._backend.call(keywords.caller_of(context), request)

    async def create_mental_model(  # noqa: PLR0913 - the parts of a mental model
        self,
        bank_id: str,
        name: str,
        *,
        sections: Sequence[ModelSection | Mapping[str, Any]] | None = None,
        content: str = "",
        scope: str = BANK_SCOPE,
        source_ids: Texts | None = None,
        model_id: str | None = None,
        request_id: str | None = None,
        validate_only: bool = False,
        context: AstrocyteContext | None = None,
    ) -> MentalModel:
        """Create a mental model of sections, or of ``content`` in Markdown.

        Args:
            bank_id: Where.
            name: Its name; its id is made of it unless ``model_id`` is given.
            sections: `ModelSection`, or mappings with ``title`` and ``content``.
            content: Markdown instead of sections.
            scope: The part of the bank that it is about.
            source_ids: Memories that it rests on.
            model_id: Its id.
            request_id: The same id with the same request answers what it answered before.
            validate_only: Check and create nothing.
            context: Who calls.
        """
        request = requests.CreateMentalModel(
            bank_id,
            name,
            sections_of(sections),
            content,
            scope,
            keywords.texts(source_ids, "source_ids"),
            model_id,
            request_id,
            validate_only,
        )
        return await self._backend.call(keywords.caller_of(context), request)

    async def get_mental_model(
        self, model_id: str, bank_id: str | None = None, *, context: AstrocyteContext | None = None
    ) -> MentalModel:
        """One mental model."""
        return await self._backend.call(keywords.caller_of(context), requests.GetMentalModel(bank_id or "", model_id))

    async def list_mental_models(
        self,
        bank_id: str,
        *,
        scope: str = "",
        page_size: int = 0,
        page_token: str = "",
        context: AstrocyteContext | None = None,
    ) -> MentalModelPage:
        """A page of mental models, oldest first."""
        request = requests.ListMentalModels(bank_id, scope, page_size, page_token)
        return await self._backend.call(keywords.caller_of(context), request)

    async def update_mental_model(  # noqa: PLR0913 - the parts of an update
        self,
        model_id: str,
        operations: Sequence[DeltaOperation | Mapping[str, Any]],
        bank_id: str | None = None,
        *,
        atomic: bool = False,
        etag: str | None = None,
        request_id: str | None = None,
        validate_only: bool = False,
        context: AstrocyteContext | None = None,
    ) -> MentalModelUpdate:
        """Apply delta operations: `DeltaOperation`, or mappings with ``op`` and its fields (docs/knowledge.md).

        An operation that cannot be applied is skipped, and the result says why; with ``atomic`` none is applied then.
        """
        request = requests.UpdateMentalModel(
            bank_id or "", model_id, operations_of(operations), atomic, etag, request_id, validate_only
        )
        return await self._backend.call(keywords.caller_of(context), request)

    async def refresh_mental_model(  # noqa: PLR0913 - the parts of a refresh
        self,
        model_id: str,
        bank_id: str | None = None,
        *,
        content: str = "",
        source_ids: Texts | None = None,
        etag: str | None = None,
        request_id: str | None = None,
        validate_only: bool = False,
        context: AstrocyteContext | None = None,
    ) -> MentalModel:
        """Replace the content by Markdown; without ``content``, rewrite it from the memories of the scope."""
        request = requests.RefreshMentalModel(
            bank_id or "", model_id, content, keywords.texts(source_ids, "source_ids"), etag, request_id, validate_only
        )
        return await self._backend.call(keywords.caller_of(context), request)

    async def delete_mental_model(
        self,
        model_id: str,
        bank_id: str | None = None,
        *,
        etag: str | None = None,
        request_id: str | None = None,
        validate_only: bool = False,
        context: AstrocyteContext | None = None,
    ) -> bool:
        """Hide a mental model until it is undeleted, or purged later; returns True if there was one."""
        request = requests.DeleteMentalModel(bank_id or "", model_id, request_id, etag, validate_only)
        return await self._backend.call(keywords.caller_of(context), request)

    async def undelete_mental_model(
        self,
        model_id: str,
        bank_id: str,
        *,
        request_id: str | None = None,
        validate_only: bool = False,
        context: AstrocyteContext | None = None,
    ) -> MentalModel:
        """Restore a deleted mental model."""
        request = requests.UndeleteMentalModel(bank_id, model_id, request_id, validate_only)
        return await self._backend.call(keywords.caller_of(context), request)

    async def list_mental_model_revisions(
        self,
        model_id: str,
        bank_id: str | None = None,
        *,
        page_size: int = 0,
        page_token: str = "",
        context: AstrocyteContext | None = None,
    ) -> RevisionPage:
        """A page of a mental model's revisions, newest first."""
        request = requests.ListMentalModelRevisions(bank_id or "", model_id, page_size, page_token)
        return await self._backend.call(keywords.caller_of(context), request)

    async def get_mental_model_revision(
        self, model_id: str, revision: int, bank_id: str | None = None, *, context: AstrocyteContext | None = None
    ) -> KnowledgeRevision:
        """One revision of a mental model."""
        request = requests.GetMentalModelRevision(bank_id or "", model_id, revision)
        return await self._backend.call(keywords.caller_of(context), request)

    async def diff_mental_model_revisions(
        self,
        model_id: str,
        from_revision: int,
        to_revision: int = 0,
        bank_id: str | None = None,
        *,
        context: AstrocyteContext | None = None,
    ) -> RevisionDiff:
        """The difference of two revisions of a mental model; 0 is the current one."""
        request = requests.DiffMentalModelRevisions(bank_id or "", model_id, from_revision, to_revision)
        return await self._backend.call(keywords.caller_of(context), request)
