"""Retains of a stream, stored together where they can be, and each for itself where one of them spoils that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from astrocyte.api import LimitKind
from astrocyte.api.requests import StreamRetain
from astrocyte.errors import (
    AstrocyteError,
    Conflict,
    MemoryNotFound,
    MessageTooLarge,
    PiiRejected,
    ValidationError,
)
from astrocyte.model import Caller, RetainItem, RetainResult
from astrocyte.pipelines.retain.pipeline import Replay
from astrocyte.policy.limits.rate_limits import Demand
from astrocyte.policy.operations.parts import OperationParts
from astrocyte.policy.operations.retain import EMPTY, Retaining, replay_of
from astrocyte.policy.operations.retain_results import Warnings, retelling, with_warnings
from astrocyte.policy.quality.signal_quality import with_refusals

# Failures of one item for what it is. Others are the server's, and the items after such a one in its group are not
# tried: what is stored is then a beginning of the group, and its sender goes on from there.
OF_THE_ITEM = (Conflict, MemoryNotFound, MessageTooLarge, PiiRejected, ValidationError)


class GroupRetaining:
    """Handler of StreamRetain: stores what can be stored of several items.

    Args:
        parts: What the operations share.
        retaining: Stores items.
    """

    def __init__(self, parts: OperationParts, retaining: Retaining) -> None:
        self._retaining = retaining
        self._engines = parts.engine_writes
        self._overrides = parts.policies.overrides
        self._limits = parts.policies.limits
        self._barriers = parts.policies.barriers
        self._quality = parts.policies.signal_quality
        self._activity = parts.policies.activity
        self._store = parts.store
        self._banks = parts.banks
        self._check = parts.check

    async def stream_retain(self, caller: Caller, request: StreamRetain) -> list[RetainResult | AstrocyteError]:
        """Store what can be stored."""
        bank_id, items, request_ids = request.bank_id, request.items, request.request_ids
        self._banks.require(caller, "StreamRetain", bank_id)
        if request_ids and len(request_ids) != len(items):
            raise ValidationError(f"has {len(request_ids)} entries for {len(items)} items", field="request_ids")
        ids = request_ids or [None] * len(items)
        most_bytes = self._overrides.of[bank_id].homeostasis.retain_max_content_bytes
        results: dict[int, RetainResult | AstrocyteError] = {}
        group: dict[int, Replay | None] = {}
        for index, (item, request_id) in enumerate(zip(items, ids, strict=True)):
            try:
                await self._limits.admit((Demand(caller.tenant, bank_id, LimitKind.RETAIN),))
                if self._barriers.skips(bank_id, item):
                    results[index] = EMPTY
                    continue
                self._check.item(item, most_bytes)
                self._check.request_id(request_id)
            except OF_THE_ITEM as error:
                results[index] = error
                continue
            except AstrocyteError as error:
                results |= dict.fromkeys(range(index, len(items)), error)
                break
            replay = replay_of(request_id, "retain", bank_id, item)
            if replay is not None and any(one and one.key.request_id == request_id for one in group.values()):
                # It is answered by what became of the first one.
                results |= await self._together(caller, bank_id, items, group)
                group = {}
            group[index] = replay
        results |= await self._together(caller, bank_id, items, group)
        return [await self._kept(caller, bank_id, results[index]) for index in range(len(items))]

    async def _kept(
        self, caller: Caller, bank_id: str, outcome: RetainResult | AstrocyteError
    ) -> RetainResult | AstrocyteError:
        """The outcome of one item, with that at an engine beside the bank."""
        if isinstance(outcome, AstrocyteError):
            return outcome
        try:
            return (await self._engines.copy(caller, bank_id, [outcome]))[0]
        except AstrocyteError as error:
            return error

    async def _together(
        self, caller: Caller, bank_id: str, items: Sequence[RetainItem], group: Mapping[int, Replay | None]
    ) -> dict[int, RetainResult | AstrocyteError]:
        """The outcomes of the chosen items, stored in one commit; each for itself where one of them spoils it.

        They are judged once: what is stored again for itself has passed the barriers, and counts as one.
        """
        results: dict[int, RetainResult | AstrocyteError] = {}
        passed: dict[int, tuple[RetainItem, Warnings]] = {}
        for index, replay in group.items():
            try:
                response = None if replay is None else self._store.find_response(caller.tenant, replay.key)
                if replay is not None and response is not None:
                    results[index] = replay.decode(response)[0]
                    continue
                (placed,), (warnings,) = await self._retaining.screened(caller, bank_id, [(items[index], "")])
            except OF_THE_ITEM as error:
                results[index] = error
            except AstrocyteError as error:
                results |= {later: error for later in group if later >= index}
                break
            else:
                passed[index] = placed[0], warnings
        try:
            return results | await self._judged(caller, bank_id, passed, group)
        except AstrocyteError as error:
            return results | dict.fromkeys(passed, error)

    async def _judged(
        self,
        caller: Caller,
        bank_id: str,
        passed: Mapping[int, tuple[RetainItem, Warnings]],
        group: Mapping[int, Replay | None],
    ) -> dict[int, RetainResult | AstrocyteError]:
        """The outcomes of items that passed the barriers."""
        if not passed:
            return {}
        kept, refused = await self._quality.judge(caller.tenant, bank_id, [(item, "") for item, _ in passed.values()])
        places = [index for place, index in enumerate(passed) if place not in refused]
        warnings = {index: said for index, (_, said) in passed.items()}
        told = {
            index: retelling(replay, [warnings[index]], {}) for index in places if (replay := group[index]) is not None
        }
        results: dict[int, RetainResult | AstrocyteError] = {
            index: with_refusals((), {0: refused[place]})[0] for place, index in enumerate(passed) if place in refused
        }
        try:
            replays = [
                replace(replay, place=places.index(index)) for index, replay in told.items() if replay is not None
            ]
            stored = await self._retaining.store_or_wait(caller, bank_id, kept, replays) if kept else []
            results |= zip(places, stored, strict=True)
        except (ValidationError, MemoryNotFound, Conflict):
            failure: AstrocyteError | None = None
            for index, one in zip(places, kept, strict=True):
                outcome = failure or await self._alone(caller, bank_id, one, told.get(index))
                results[index] = outcome
                if isinstance(outcome, AstrocyteError) and not isinstance(outcome, OF_THE_ITEM):
                    failure = outcome
        fresh = [
            (one, result)
            for index, one in zip(places, kept, strict=True)
            if isinstance(result := results[index], RetainResult)
        ]
        kept, came = [one for one, _ in fresh], [result for _, result in fresh]
        self._quality.note(caller.tenant, bank_id, kept, came)
        self._activity.retained(caller.tenant, bank_id, [item for item, _ in kept], came)
        return {
            index: with_warnings([result], [warnings[index]])[0] if isinstance(result, RetainResult) else result
            for index, result in results.items()
        }

    async def _alone(
        self, caller: Caller, bank_id: str, item: tuple[RetainItem, str], replay: Replay | None
    ) -> RetainResult | AstrocyteError:
        """The outcome of an item that was judged before."""
        try:
            response = None if replay is None else self._store.find_response(caller.tenant, replay.key)
            if replay is not None and response is not None:
                return replay.decode(response)[0]
            return (await self._retaining.store_or_wait(caller, bank_id, [item], [] if replay is None else [replay]))[0]
        except AstrocyteError as error:
            return error
