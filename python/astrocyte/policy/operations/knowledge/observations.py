"""Observations: created, read, changed and deleted by call."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from datetime import datetime

from astrocyte.api.requests import (
    ConsolidateBank,
    CreateObservation,
    DeleteObservation,
    GetObservation,
    InvalidateObservations,
    ListObservationRevisions,
    ListObservations,
    UpdateObservation,
)
from astrocyte.errors import ValidationError
from astrocyte.model import (
    Bank,
    Caller,
    Observation,
    ObservationKind,
    ObservationPage,
    Operation,
    RevisionCause,
    RevisionPage,
    Trend,
)
from astrocyte.pipelines.knowledge.trends import TrendThresholds, trend_of
from astrocyte.pipelines.query.time_windows import from_ms, optional_ms
from astrocyte.policy.operations.knowledge.items import Items, evidence_of, is_stale
from astrocyte.policy.operations.parts import OperationParts
from astrocyte.policy.requests import field_checks
from astrocyte.policy.requests.page_tokens import decode_place, encode_token
from astrocyte.policy.requests.pages import cut_page
from astrocyte.policy.requests.request_keys import key_of
from astrocyte.stores.knowledge.items import Change, ItemKind, ItemRecord, NewItem, Removal, RevisionRecord

KIND = ItemKind.OBSERVATION
# Of an observation that somebody wrote by hand and gave none.
MANUAL_CONFIDENCE = 0.9
# Observations read at once where a filter passes over most of them.
READ_AT_ONCE = 256


def observation_of(record: ItemRecord, now: int, thresholds: TrendThresholds) -> Observation:
    """An observation as callers see it."""
    body, sources = record.current.body, record.current.sources
    return Observation(
        observation_id=record.item_id,
        bank_id=record.bank_id,
        scope=record.scope,
        text=body["text"],
        kind=ObservationKind(body["kind"]),
        confidence=body["confidence"],
        proof_count=len(sources),
        trend=trend_of((source.observed_at for source in sources), now, thresholds),
        evidence=evidence_of(sources),
        revision=record.current.revision,
        etag=record.etag,
        created_by=record.created_by,
        created_at=from_ms(record.created_at),
        updated_at=from_ms(record.updated_at),
        valid_from=_instant(body["valid_from"]),
        valid_until=_instant(body["valid_until"]),
        superseded_by=body["superseded_by"],
        is_stale=is_stale(sources),
    )


def _instant(value: int | None) -> datetime | None:
    return None if value is None else from_ms(value)


class Observations:
    """Handlers of the RPCs on observations.

    Args:
        parts: What the operations share.
        clock: Milliseconds since the epoch.
    """

    def __init__(self, parts: OperationParts, clock: Callable[[], int]) -> None:
        self._items = Items(parts)
        self._store = parts.knowledge
        self._banks = parts.banks
        self._access = parts.access
        self._check = parts.check
        self._settings = parts.settings.observations
        self._clock = clock
        self._consolidations = parts.consolidations
        self._consolidator = parts.pipelines.consolidator

    async def create_observation(self, caller: Caller, request: CreateObservation) -> Observation:
        """Create an observation."""
        bank_id, name = request.bank_id, "CreateObservation"
        self._banks.require(caller, name, bank_id)
        await self._items.admit(caller, bank_id)
        text = self._items.text(request.text, "text")
        evidence = self._items.source_ids(request.evidence, "evidence")
        if not evidence:
            raise ValidationError("is empty; name the memories that the observation rests on", field="evidence")
        scope = self._items.scope(request.scope)
        confidence = MANUAL_CONFIDENCE if request.confidence is None else request.confidence
        field_checks.number(confidence, "confidence", 0.0, 1.0)
        valid_from, valid_until = _validity(request.valid_from, request.valid_until)
        self._check.request_id(request.request_id)
        bank = self._banks.handle(caller, name, bank_id)
        key = key_of(
            request.request_id,
            "create_observation",
            bank_id,
            text,
            evidence,
            scope,
            confidence,
            valid_from,
            valid_until,
        )
        text = await self._items.screened(bank_id, name, text, "text", quiet=request.validate_only)
        body = {
            "text": text,
            "kind": str(ObservationKind.STATEMENT),
            "confidence": float(confidence),
            "valid_from": valid_from,
            "valid_until": valid_until,
            "superseded_by": "",
        }
        new = NewItem(KIND, f"obs-{uuid.uuid4().hex}", scope, body, self._settings.max_per_bank, evidence)
        by = self._access.name(caller)
        if request.validate_only:
            return self._told(self._draft(bank, new, by))
        return self._told(await self._store.create(bank, new, by=by, request=key))

    async def get_observation(self, caller: Caller, request: GetObservation) -> Observation:
        """One observation."""
        bank = self._named(caller, "GetObservation", request.bank_id, request.observation_id)
        return self._told(self._items.found(bank, KIND, request.observation_id))

    async def list_observations(self, caller: Caller, request: ListObservations) -> ObservationPage:
        """A page of observations."""
        self._banks.require(caller, "ListObservations", request.bank_id)
        scope = self._items.scope(request.scope) if request.scope else ""
        if request.trend is not None:
            field_checks.choice(request.trend, "trend", Trend)
        wanted = field_checks.text(request.text, "text", 4 * self._items.parts.settings.limits.text_chars).casefold()
        limit = self._check.page_limit(request.page_size)
        bank = self._banks.current(caller, "ListObservations", request.bank_id)
        listing = ("observations", caller.tenant, bank.key, scope, str(request.trend or ""), wanted)
        after = decode_place(request.page_token, listing)
        rows: list[tuple[int, Observation]] = []
        read = limit.entries + 1 if request.trend is None and not wanted else READ_AT_ONCE
        while len(rows) <= limit.entries:
            records = self._store.listed(bank, KIND, scope=scope, after=after, limit=read)
            if not records:
                break
            after = records[-1].key
            told = [(record.key, self._told(record)) for record in records]
            rows += [
                (key, one) for key, one in told if request.trend in {None, one.trend} and wanted in one.text.casefold()
            ]
        entries, last = cut_page(rows[: limit.entries + 1], limit)
        return ObservationPage(entries, "" if last is None else encode_token(listing, [last]))

    async def update_observation(self, caller: Caller, request: UpdateObservation) -> Observation:
        """Make a new revision."""
        name, item_id = "UpdateObservation", request.observation_id
        bank_id = self._items.bank_id(caller, name, request.bank_id, KIND, item_id)
        self._banks.require(caller, name, bank_id)
        await self._items.admit(caller, bank_id)
        evidence = self._items.source_ids(request.evidence, "evidence")
        if request.text is None and not evidence and request.confidence is None:
            raise ValidationError("is missing; change text, evidence or confidence", field="text")
        if request.confidence is not None:
            field_checks.number(request.confidence, "confidence", 0.0, 1.0)
        text = None if request.text is None else self._items.text(request.text, "text")
        self._check.request_id(request.request_id)
        bank = self._banks.handle(caller, name, bank_id)
        record = self._items.found(bank, KIND, item_id)
        key = key_of(
            request.request_id, "update_observation", bank_id, item_id, text, evidence, request.confidence, request.etag
        )
        body = dict(record.current.body)
        if text is not None:
            # What somebody rewrote is no longer what the rules found.
            body.pop("words", None)
            body["text"] = await self._items.screened(bank_id, name, text, "text", quiet=request.validate_only)
        if request.confidence is not None:
            body["confidence"] = float(request.confidence)
        sources = evidence or tuple(source.memory_id for source in record.current.sources)
        if request.validate_only:
            self._store.sources(bank, record.scope, sources)
            self._store.changeable(bank, KIND, item_id, request.etag)
            return self._told(record)
        # What was not given is of the revision that was read, so that no change in between is undone.
        change = Change(body, sources, RevisionCause.UPDATED, request.etag or record.etag)
        changed, _ = await self._store.revise(bank, KIND, item_id, change, by=self._access.name(caller), request=key)
        return self._told(changed)

    async def delete_observation(self, caller: Caller, request: DeleteObservation) -> bool:
        """Delete an observation."""
        item_id = request.observation_id
        self._check.request_id(request.request_id)
        if not request.bank_id and not self._items.banks_with(caller, "DeleteObservation", KIND, item_id):
            return False
        bank = self._named(caller, "DeleteObservation", request.bank_id, item_id)
        if request.validate_only:
            return self._store.changeable(bank, KIND, item_id, request.etag)
        key = key_of(request.request_id, "delete_observation", bank.bank_id, item_id, *filter(None, [request.etag]))
        by = self._access.name(caller)
        return await self._store.delete(bank, KIND, item_id, Removal(request.etag), by=by, request=key)

    async def invalidate_observations(self, caller: Caller, request: InvalidateObservations) -> int:
        """Delete the observations that rest on memories."""
        name = "InvalidateObservations"
        self._banks.require(caller, name, request.bank_id)
        memory_ids = self._items.source_ids(request.source_ids, "source_ids")
        if not memory_ids:
            raise ValidationError("is empty; name the memories that changed", field="source_ids")
        self._check.request_id(request.request_id)
        bank = self._banks.handle(caller, name, request.bank_id)
        if request.validate_only:
            return self._store.invalidated(bank, memory_ids)
        key = key_of(request.request_id, "invalidate_observations", request.bank_id, memory_ids)
        return await self._store.invalidate(bank, memory_ids, by=self._access.name(caller), request=key)

    async def consolidate_bank(self, caller: Caller, request: ConsolidateBank) -> Operation:
        """Make observations of all memories of a bank, in the background."""
        name = "ConsolidateBank"
        self._banks.require(caller, name, request.bank_id)
        self._check.request_id(request.request_id)
        bank = self._banks.current(caller, name, request.bank_id)
        key = key_of(request.request_id, "consolidate_bank", request.bank_id)
        by = self._access.name(caller)
        started = await self._consolidations.start(bank, f"op-{uuid.uuid4().hex}", by=by, request=key)
        self._consolidator.notify()
        return started

    async def list_observation_revisions(self, caller: Caller, request: ListObservationRevisions) -> RevisionPage:
        """A page of revisions."""
        item_id = request.observation_id
        bank = self._named(caller, "ListObservationRevisions", request.bank_id, item_id)
        page = (request.page_size, request.page_token)
        return self._items.revision_page(bank, KIND, item_id, lambda body: str(body["text"]), page)

    def _named(self, caller: Caller, operation: str, bank_id: str, item_id: str) -> Bank:
        bank_id = self._items.bank_id(caller, operation, bank_id, KIND, item_id)
        self._banks.require(caller, operation, bank_id)
        field_checks.label(item_id, "observation_id", field_checks.MOST_NAME_CHARS)
        return self._banks.handle(caller, operation, bank_id)

    def _told(self, record: ItemRecord) -> Observation:
        return observation_of(self._items.shown(record), self._clock(), self._settings.trends)

    def _draft(self, bank: Bank, new: NewItem, by: str) -> ItemRecord:
        """The item as it would be; raises what creating it would."""
        now = self._clock()
        sources = self._store.sources(bank, new.scope, new.source_ids)
        current = RevisionRecord(1, new.cause, new.body, by, now, sources)
        return ItemRecord(0, bank.bank_id, KIND, new.item_id, new.scope, 0, None, by, now, now, current)


def _validity(valid_from: datetime | None, valid_until: datetime | None) -> tuple[int | None, int | None]:
    """The ends of a validity in milliseconds.

    Raises:
        ValidationError: One has no time zone, or they are not in order.
    """
    for value, path in ((valid_from, "valid_from"), (valid_until, "valid_until")):
        if value is not None:
            field_checks.instant(value, path)
    if valid_from is not None and valid_until is not None and valid_from > valid_until:
        raise ValidationError("ends before valid_from", field="valid_until")
    return optional_ms(valid_from), optional_ms(valid_until)
