"""Rates and daily quotas of operations: a call is admitted by all limits that it touches, or by none.

    await limits.admit([Demand("default", "bank-a", LimitKind.RECALL), Demand("default", "bank-b", LimitKind.RECALL)])

Nothing is consumed by a refusal. Without limits, as by default, a call costs a look-up or two.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from astrocyte.api import LimitKind
from astrocyte.config import BankSettings, Settings
from astrocyte.errors import LimitReached
from astrocyte.policy.events import emit
from astrocyte.policy.limits.daily_quotas import Quotas
from astrocyte.policy.limits.shared_buckets import SharedBuckets
from astrocyte.policy.limits.token_bucket import NANOSECONDS, Buckets, Draw
from astrocyte.policy.settings.bank_settings import Overrides
from astrocyte.stores.quotas import RateBook, Use

# The bucket of all together; no demand has such a key.
EVERYTHING = ()


class Demand(NamedTuple):
    """A number of operations in a bank."""

    tenant: str
    bank_id: str
    operation: LimitKind
    amount: int = 1


class Limits:
    """Rate limits and daily quotas of operations.

    Args:
        settings: The limit of all together.
        overrides: The limits of each bank.
        quotas: What is left of today; None where no bank has a daily quota.
        clock: Nanoseconds that never go back.
        rates: Levels of the buckets, where several processes draw from them.
    """

    def __init__(
        self,
        settings: Settings,
        overrides: Overrides,
        quotas: Quotas | None,
        clock: Callable[[], int] = time.monotonic_ns,
        rates: RateBook | None = None,
    ) -> None:
        self._overrides = overrides
        self._everything = settings.homeostasis.rate_limits.global_per_minute
        self._quotas = quotas
        self._rates = rates
        self._buckets = Buckets(clock) if rates is None else SharedBuckets(rates, clock)
        # LimitKinds that any limit may refuse. By default there are none, and callers ask for no admission.
        self.limited = frozenset(
            operation
            for operation in LimitKind
            if self._everything is not None or any(_is_limited(own, operation) for own in overrides.every)
        )

    async def admit_each(self, tenant: str, bank_ids: Sequence[str], operation: LimitKind) -> None:
        """As `admit` of the operation in every bank, one for each time that it is named."""
        if operation not in self.limited:
            return
        if self._everything is not None or any(_is_limited(own, operation) for own in self._overrides.each(bank_ids)):
            await self.admit([Demand(tenant, bank_id, operation) for bank_id in bank_ids])

    async def admit(self, demands: Sequence[Demand]) -> None:
        """Admit a call with these demands; several for the same bank and operation add up.

        Raises:
            LimitReached: A limit is reached; nothing was consumed of any.
        """
        draws: dict[object, Draw] = {}
        uses: dict[Use, tuple[int, int]] = {}
        known: tuple[BankSettings, LimitKind] | None = None
        rate = quota = None
        for demand in demands:
            tenant, bank_id, operation, amount = demand
            settings = self._overrides.of[bank_id]
            if known is None or settings is not known[0] or operation is not known[1]:
                # Most banks of a call have the same settings.
                known = settings, operation
                rate, quota = _rate(settings, operation), _quota(settings, operation)
            if rate is not None:
                key = (tenant, bank_id, operation)
                earlier = draws.get(key)
                draws[key] = Draw(key, rate, amount if earlier is None else earlier.tokens + amount)
            if quota is not None:
                use = Use(tenant, bank_id, operation)
                uses[use] = (amount + uses.get(use, (0, 0))[0], quota)
        if self._everything is not None:
            draws[EVERYTHING] = Draw(EVERYTHING, self._everything, sum(demand.amount for demand in demands))
        if draws or uses:
            await self._consume(draws, uses)

    async def close(self) -> None:
        """Return unused reservations."""
        if self._quotas is not None:
            await self._quotas.close()
        if self._rates is not None:
            self._rates.close()

    async def _consume(self, draws: dict[object, Draw], uses: dict[Use, tuple[int, int]]) -> None:
        if uses and self._quotas is not None:
            # The quota waits for the disk, so rates are looked at before, and drawn from after it.
            _check(self._buckets.wait(draws))
            refused = await self._quotas.take(uses)
            if refused is not None:
                use, seconds = refused
                raise _reached("day", uses[use][1], seconds, use.operation, use.bank_id)
        late = self._buckets.take(draws)
        if late is not None and uses and self._quotas is not None:
            self._quotas.give_back(uses)
        _check(late)


def _is_limited(settings: BankSettings, operation: LimitKind) -> bool:
    return _rate(settings, operation) is not None or _quota(settings, operation) is not None


def _rate(settings: BankSettings, operation: LimitKind) -> int | None:
    limits = settings.homeostasis.rate_limits
    match operation:
        case LimitKind.RETAIN:
            return limits.retain_per_minute
        case LimitKind.RECALL:
            return limits.recall_per_minute
        case LimitKind.REFLECT:
            return limits.reflect_per_minute


def _quota(settings: BankSettings, operation: LimitKind) -> int | None:
    quotas = settings.homeostasis.quotas
    match operation:
        case LimitKind.RETAIN:
            return quotas.retain_per_day
        case LimitKind.REFLECT:
            return quotas.reflect_per_day
        case LimitKind.RECALL:
            return None


def _check(refused: tuple[Draw, int] | None) -> None:
    if refused is not None:
        draw, wait = refused
        bank_id, operation = ("", "") if draw.key == EVERYTHING else (draw.key[1], draw.key[2])  # type: ignore[index]
        raise _reached("minute", draw.per_minute, wait / NANOSECONDS, operation, bank_id)


def _reached(kind: str, limit: int, seconds: float, operation: str, bank_id: str) -> LimitReached:
    emit("rate_limited", operation=operation, bank_id=bank_id, kind=kind, limit=limit, retry_after=round(seconds, 3))
    # The whole server has no operation; private memories of agents are in no bank.
    what = (
        f"{operation} in bank {bank_id!r}"
        if bank_id
        else f"{operation} of agents' memories"
        if operation
        else "this server"
    )
    return LimitReached(
        f"the limit of {limit} a {kind} for {what} is reached; try again in {seconds:.3f} s",
        retry_after=seconds,
        metadata={"kind": kind, "limit": str(limit), "operation": operation, "bank_id": bank_id},
    )
