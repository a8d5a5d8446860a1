"""Refreshing mental models, and reading and comparing their revisions."""

from __future__ import annotations

import difflib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from astrocyte.api.requests import (
    DiffMentalModelRevisions,
    GetMentalModelRevision,
    ListMentalModelRevisions,
    RefreshMentalModel,
)
from astrocyte.errors import FailedPrecondition, NotFound, ValidationError
from astrocyte.model import (
    BANK_SCOPE,
    ENTITY_SCOPE,
    TAG_SCOPE,
    Bank,
    BankStrategy,
    Caller,
    KnowledgeRevision,
    MentalModel,
    ModelSection,
    RecallQuery,
    RecallResult,
    RevisionCause,
    RevisionDiff,
    RevisionPage,
)
from astrocyte.pipelines.knowledge import documents
from astrocyte.pipelines.knowledge.refresh import ModelRefresher
from astrocyte.policy.operations.knowledge.items import Items, revision_of
from astrocyte.policy.operations.knowledge.mental_models import KIND, MentalModels
from astrocyte.policy.operations.knowledge.model_values import (
    ModelChecks,
    all_sources,
    body_of,
    content_of,
    screened_sections,
)
from astrocyte.policy.operations.parts import OperationParts
from astrocyte.policy.requests import field_checks
from astrocyte.policy.requests.request_keys import key_of
from astrocyte.stores.knowledge.items import Change, ItemRecord, RevisionRecord

# Finds the memories of a bank for a caller by a call.
Recall = Callable[[Caller, str, BankStrategy | None, Sequence[Bank], RecallQuery], Awaitable[RecallResult]]
# Memories of an entity that a refresh looks at.
MOST_OF_ENTITY = 1_000
# Positions of revisions in one diff.
MOST_REVISION = 2**31 - 1


class ModelRevisions:
    """Handlers of RefreshMentalModel and of the RPCs on revisions.

    Args:
        parts: What the operations share.
        models: The other handlers of mental models.
        recall: Finds what a refresh is made of.
    """

    def __init__(self, parts: OperationParts, models: MentalModels, recall: Recall) -> None:
        self._items = Items(parts)
        self._checks = ModelChecks(self._items, parts.settings.mental_models.max_bytes)
        self._models = models
        self._recall = recall
        self._refresher = ModelRefresher(parts.pipelines.reflect)
        self._memories = parts.store
        self._store = parts.knowledge
        self._policies = parts.policies
        self._banks = parts.banks
        self._access = parts.access
        self._check = parts.check

    async def refresh_mental_model(self, caller: Caller, request: RefreshMentalModel) -> MentalModel:
        """Replace the content, or rewrite it from memory."""
        name, item_id = "RefreshMentalModel", request.model_id
        bank_id = self._items.bank_id(caller, name, request.bank_id, KIND, item_id)
        self._banks.require(caller, name, bank_id)
        await self._items.admit(caller, bank_id)
        sections = self._checks.given((), request.content) if request.content else ()
        source_ids = self._items.source_ids(request.source_ids, "source_ids")
        if source_ids and not request.content:
            raise ValidationError("has no effect without content; leave it out", field="source_ids")
        self._check.request_id(request.request_id)
        bank = self._banks.handle(caller, name, bank_id)
        record = self._items.found(bank, KIND, item_id)
        key = key_of(
            request.request_id, "refresh_mental_model", bank_id, item_id, request.content, source_ids, request.etag
        )
        if key is not None and self._memories.find_response(caller.tenant, key) is not None:
            return self._models.shown(record)
        body = record.current.body
        if request.content:
            sections = await screened_sections(
                sections, self._models.screen(bank_id, name, quiet=request.validate_only)
            )
        else:
            source_ids = tuple(body["source_ids"])
            sections = await self._rewritten(caller, bank, record)
        self._checks.size(sections, "content")
        changed = body_of(body["name"], sections, source_ids)
        if request.validate_only:
            self._store.changeable(bank, KIND, item_id, request.etag)
            sources = self._store.sources(bank, record.scope, all_sources(changed))
            current = replace(record.current, body=changed, sources=sources)
            return self._models.shown(replace(record, current=current))
        change = Change(changed, all_sources(changed), RevisionCause.REFRESHED, request.etag or record.etag)
        revised, _ = await self._store.revise(bank, KIND, item_id, change, by=self._access.name(caller), request=key)
        return self._models.shown(revised)

    async def _rewritten(self, caller: Caller, bank: Bank, record: ItemRecord) -> tuple[ModelSection, ...]:
        """The sections of a model from the memories of its scope.

        Raises:
            FailedPrecondition: There is nothing to write.
        """
        barriers, authority = self._policies.barriers, self._policies.authority
        within = self._within(bank, record.scope)

        async def recall(query: RecallQuery) -> RecallResult:
            asked = within(query)
            if asked is None:
                return RecallResult((), 0, truncated=False)
            found = await self._recall(caller, "RefreshMentalModel", None, [bank], asked)
            found = replace(found, hits=tuple(hit for hit in found.hits if hit.bank_id == bank.bank_id))
            return authority.evidence(barriers.evidence([bank.bank_id], "RefreshMentalModel", found))

        body = record.current.body
        most = self._policies.overrides.of[bank.bank_id].homeostasis.reflect_max_tokens
        before = documents.decode(body["sections"])
        sections = await self._refresher.refreshed(body["name"], before, bank.bank_id, most, recall)
        if not any(section.blocks for section in sections):
            raise FailedPrecondition(
                f"bank {bank.bank_id!r} has no memories on mental model {record.item_id!r} in the scope "
                f"{record.scope!r}; retain some, or send content",
                metadata={"model_id": record.item_id, "scope": record.scope},
            )
        return sections

    def _within(self, bank: Bank, scope: str) -> Callable[[RecallQuery], RecallQuery | None]:
        """Limits queries to a scope; None where no memory is in it."""
        if scope == BANK_SCOPE:
            return lambda query: query
        if scope.startswith(TAG_SCOPE):
            tags = (scope[len(TAG_SCOPE) :],)
            return lambda query: replace(query, tags=tags)
        named = self._store.naming(bank, scope[len(ENTITY_SCOPE) :], MOST_OF_ENTITY)
        return lambda query: replace(query, memory_ids=tuple(named)) if named else None

    async def list_mental_model_revisions(self, caller: Caller, request: ListMentalModelRevisions) -> RevisionPage:
        """A page of revisions."""
        bank = self._models.named(caller, "ListMentalModelRevisions", request.bank_id, request.model_id)
        page = (request.page_size, request.page_token)
        return self._items.revision_page(bank, KIND, request.model_id, content_of, page)

    async def get_mental_model_revision(self, caller: Caller, request: GetMentalModelRevision) -> KnowledgeRevision:
        """One revision."""
        field_checks.integer(request.revision, "revision", 1, MOST_REVISION)
        bank = self._models.named(caller, "GetMentalModelRevision", request.bank_id, request.model_id)
        self._items.found(bank, KIND, request.model_id)
        revision = self._revision(bank, request.model_id, request.revision)
        return revision_of(self._items.shown_revision(bank.bank_id, revision), content_of)

    async def diff_mental_model_revisions(self, caller: Caller, request: DiffMentalModelRevisions) -> RevisionDiff:
        """The difference of two revisions."""
        field_checks.integer(request.from_revision, "from_revision", 1, MOST_REVISION)
        field_checks.integer(request.to_revision, "to_revision", 0, MOST_REVISION)
        bank = self._models.named(caller, "DiffMentalModelRevisions", request.bank_id, request.model_id)
        current = self._items.found(bank, KIND, request.model_id).current
        later = self._revision(bank, request.model_id, request.to_revision) if request.to_revision else current
        earlier = self._revision(bank, request.model_id, request.from_revision)
        shown = [self._items.shown_revision(bank.bank_id, one) for one in (earlier, later)]
        return difference(*shown)

    def _revision(self, bank: Bank, model_id: str, revision: int) -> RevisionRecord:
        found = self._store.revisions(bank, KIND, model_id, before=revision + 1, limit=1)
        if not found or found[0].revision != revision:
            raise NotFound(
                f"there is no revision {revision} of mental model {model_id!r}",
                metadata={"model_id": model_id, "revision": str(revision)},
            )
        return found[0]


def difference(earlier: RevisionRecord, later: RevisionRecord) -> RevisionDiff:
    """The difference of two revisions."""
    before = {section.section_id: section for section in documents.decode(earlier.body["sections"])}
    after = {section.section_id: section for section in documents.decode(later.body["sections"])}
    lines = difflib.unified_diff(
        content_of(earlier.body).splitlines(),
        content_of(later.body).splitlines(),
        f"revision {earlier.revision}",
        f"revision {later.revision}",
        lineterm="",
    )
    return RevisionDiff(
        earlier.revision,
        later.revision,
        tuple(one for one in after if one not in before),
        tuple(one for one in before if one not in after),
        tuple(one for one in after if one in before and after[one] != before[one]),
        "\n".join(lines),
    )
