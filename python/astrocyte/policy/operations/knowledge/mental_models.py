"""Mental models: created, read, changed by delta operations, deleted and undeleted."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict

from astrocyte.api.requests import (
    CreateMentalModel,
    DeleteMentalModel,
    GetMentalModel,
    ListMentalModels,
    UndeleteMentalModel,
    UpdateMentalModel,
)
from astrocyte.errors import Conflict, ValidationError
from astrocyte.model import (
    AppliedOperation,
    Bank,
    Caller,
    DeltaOperation,
    MentalModel,
    MentalModelPage,
    MentalModelUpdate,
    RevisionCause,
    SkippedOperation,
)
from astrocyte.pipelines.knowledge import delta_operations, documents
from astrocyte.pipelines.knowledge.trends import DAY_MILLISECONDS
from astrocyte.policy.operations.knowledge.items import Items
from astrocyte.policy.operations.knowledge.model_values import (
    ModelChecks,
    Screen,
    all_sources,
    body_of,
    generated_id,
    model_of,
    screened_operation,
    screened_sections,
)
from astrocyte.policy.operations.parts import OperationParts
from astrocyte.policy.requests import field_checks
from astrocyte.policy.requests.page_tokens import decode_place, encode_token
from astrocyte.policy.requests.pages import cut_page
from astrocyte.policy.requests.request_keys import key_of
from astrocyte.stores.knowledge.items import Change, ItemKind, ItemRecord, NewItem, Removal, RevisionRecord
from astrocyte.stores.records import RequestKey

KIND = ItemKind.MENTAL_MODEL
# Times that an update without an etag is applied again to a model that changed meanwhile.
MOST_TRIES = 5


class MentalModels:
    """Handlers of the RPCs that create, read and change mental models.

    Args:
        parts: What the operations share.
        clock: Milliseconds since the epoch.
    """

    def __init__(self, parts: OperationParts, clock: Callable[[], int]) -> None:
        settings = parts.settings.mental_models
        self._items = Items(parts)
        self._checks = ModelChecks(self._items, settings.max_bytes)
        self._memories = parts.store
        self._store = parts.knowledge
        self._banks = parts.banks
        self._access = parts.access
        self._check = parts.check
        self._settings = settings
        self._clock = clock

    async def create_mental_model(self, caller: Caller, request: CreateMentalModel) -> MentalModel:
        """Create a mental model."""
        bank_id, name = request.bank_id, "CreateMentalModel"
        self._banks.require(caller, name, bank_id)
        await self._items.admit(caller, bank_id)
        title = self._checks.name(request.name)
        sections = self._checks.given(request.sections, request.content)
        scope = self._items.scope(request.scope)
        source_ids = self._items.source_ids(request.source_ids, "source_ids")
        if request.model_id is not None:
            self._items.item_id(request.model_id, "model_id")
        self._check.request_id(request.request_id)
        bank = self._banks.expected(caller, name, bank_id)
        key = key_of(
            request.request_id, "create_mental_model", bank_id, title, sections, scope, source_ids, request.model_id
        )
        screen = self.screen(bank_id, name, quiet=request.validate_only)
        title, sections = await screen(title, "name"), await screened_sections(sections, screen)
        body = body_of(title, sections, source_ids)
        item_id = request.model_id or generated_id(title)
        new = NewItem(KIND, item_id, scope, body, self._settings.max_per_bank, all_sources(body))
        by = self._access.name(caller)
        if request.validate_only:
            now = self._clock()
            sources = self._store.sources(bank, scope, new.source_ids)
            current = RevisionRecord(1, new.cause, body, by, now, sources)
            return self.shown(ItemRecord(0, bank_id, KIND, item_id, scope, 0, None, by, now, now, current))
        bank = await self._banks.ready(caller, name, bank)
        return self.shown(await self._store.create(bank, new, by=by, request=key))

    async def get_mental_model(self, caller: Caller, request: GetMentalModel) -> MentalModel:
        """One mental model."""
        bank = self.named(caller, "GetMentalModel", request.bank_id, request.model_id)
        return self.shown(self._items.found(bank, KIND, request.model_id))

    async def list_mental_models(self, caller: Caller, request: ListMentalModels) -> MentalModelPage:
        """A page of mental models."""
        self._banks.require(caller, "ListMentalModels", request.bank_id)
        scope = self._items.scope(request.scope) if request.scope else ""
        limit = self._check.page_limit(request.page_size)
        bank = self._banks.current(caller, "ListMentalModels", request.bank_id)
        listing = ("mental_models", caller.tenant, bank.key, scope)
        after = decode_place(request.page_token, listing)
        rows: list[ItemRecord] = []
        wanted = limit.entries + 1
        while len(rows) < wanted:
            records = self._store.listed(bank, KIND, scope=scope, after=after, limit=wanted - len(rows))
            if not records:
                break
            rows += records
            after = records[-1].key
        entries, last = cut_page([(row.key, self.shown(row)) for row in rows], limit)
        return MentalModelPage(entries, "" if last is None else encode_token(listing, [last]))

    async def update_mental_model(self, caller: Caller, request: UpdateMentalModel) -> MentalModelUpdate:
        """Apply delta operations."""
        name, item_id = "UpdateMentalModel", request.model_id
        bank_id = self._items.bank_id(caller, name, request.bank_id, KIND, item_id)
        self._banks.require(caller, name, bank_id)
        await self._items.admit(caller, bank_id)
        operations = self._checks.operations(request.operations)
        self._check.request_id(request.request_id)
        bank = self._banks.handle(caller, name, bank_id)
        record = self._items.found(bank, KIND, item_id)
        key = key_of(
            request.request_id, "update_mental_model", bank_id, item_id, operations, request.atomic, request.etag
        )
        earlier = None if key is None else self._memories.find_response(caller.tenant, key)
        if earlier is not None:
            applied, skipped = _decoded(json.loads(earlier)[1])
            return MentalModelUpdate(self.shown(record), applied, skipped)
        screen = self.screen(bank_id, name, quiet=request.validate_only)
        operations = tuple(
            [await screened_operation(one, screen, f"operations[{index}]") for index, one in enumerate(operations)]
        )
        for last in range(MOST_TRIES - 1, -1, -1):
            try:
                return await self._apply(bank, record, request, operations, self._access.name(caller), key)
            except Conflict:
                if request.etag or not last:
                    raise
                record = self._items.found(bank, KIND, item_id)
        raise AssertionError("the last try returns or raises")

    async def _apply(
        self,
        bank: Bank,
        record: ItemRecord,
        request: UpdateMentalModel,
        operations: tuple[DeltaOperation, ...],
        by: str,
        key: RequestKey | None,
    ) -> MentalModelUpdate:
        body = record.current.body
        before = documents.decode(body["sections"])
        sections, applied, skipped = delta_operations.apply(before, operations)
        if request.atomic and skipped:
            first = skipped[0]
            raise ValidationError(first.reason, field=f"operations[{first.index}]")
        if request.etag not in {None, record.etag}:
            raise Conflict(
                f"mental model {record.item_id!r} has etag {record.etag!r}, not {request.etag!r}; "
                "read it again and retry",
                metadata={"model_id": record.item_id, "etag": record.etag},
            )
        self._checks.size(sections, "operations")
        if not any(section.blocks for section in sections):
            raise ValidationError("leave the model without text; delete it instead", field="operations")
        changed = body_of(body["name"], sections, body["source_ids"])
        if request.validate_only or not applied:
            self._store.sources(bank, record.scope, all_sources(changed))
            return MentalModelUpdate(self.shown(record), applied, skipped)
        change = Change(changed, all_sources(changed), RevisionCause.UPDATED, record.etag)
        note = json.dumps([[asdict(one) for one in applied], [asdict(one) for one in skipped]])
        revised, note = await self._store.revise(bank, KIND, record.item_id, change, by=by, request=key, note=note)
        applied, skipped = _decoded(note)
        return MentalModelUpdate(self.shown(revised), applied, skipped)

    async def delete_mental_model(self, caller: Caller, request: DeleteMentalModel) -> bool:
        """Hide a mental model."""
        item_id = request.model_id
        bank = self.named(caller, "DeleteMentalModel", request.bank_id, item_id)
        self._check.request_id(request.request_id)
        if request.validate_only:
            return self._store.changeable(bank, KIND, item_id, request.etag)
        key = key_of(request.request_id, "delete_mental_model", bank.bank_id, item_id, *filter(None, [request.etag]))
        removal = Removal(request.etag, self._clock() + round(self._settings.keep_deleted_days * DAY_MILLISECONDS))
        by = self._access.name(caller)
        return await self._store.delete(bank, KIND, item_id, removal, by=by, request=key)

    async def undelete_mental_model(self, caller: Caller, request: UndeleteMentalModel) -> MentalModel:
        """Restore a deleted mental model."""
        item_id = request.model_id
        self._banks.require(caller, "UndeleteMentalModel", request.bank_id)
        field_checks.label(item_id, "model_id", field_checks.MOST_NAME_CHARS)
        self._check.request_id(request.request_id)
        bank = self._banks.handle(caller, "UndeleteMentalModel", request.bank_id)
        if request.validate_only:
            return self.shown(self._items.found(bank, KIND, item_id, hidden=True))
        key = key_of(request.request_id, "undelete_mental_model", bank.bank_id, item_id)
        by = self._access.name(caller)
        return self.shown(await self._store.undelete(bank, KIND, item_id, by=by, request=key))

    def named(self, caller: Caller, operation: str, bank_id: str, item_id: str) -> Bank:
        """The bank of a request on one model, which the caller may use for this."""
        bank_id = self._items.bank_id(caller, operation, bank_id, KIND, item_id)
        self._banks.require(caller, operation, bank_id)
        field_checks.label(item_id, "model_id", field_checks.MOST_NAME_CHARS)
        return self._banks.handle(caller, operation, bank_id)

    def shown(self, record: ItemRecord) -> MentalModel:
        """A mental model as it may leave."""
        return model_of(self._items.shown(record))

    def screen(self, bank_id: str, operation: str, *, quiet: bool = False) -> Screen:
        """Screens the texts of a call."""

        async def screen(text: str, path: str) -> str:
            return await self._items.screened(bank_id, operation, text, path, quiet=quiet)

        return screen


def _decoded(note: str) -> tuple[tuple[AppliedOperation, ...], tuple[SkippedOperation, ...]]:
    applied, skipped = json.loads(note)
    return tuple(AppliedOperation(**one) for one in applied), tuple(SkippedOperation(**one) for one in skipped)
