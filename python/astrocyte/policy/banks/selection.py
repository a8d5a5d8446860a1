"""The banks of a call and its strategy: from the request, a group of the configuration, and the caller's identity.

No bank is looked up here: the gate decides on each of them, whether it exists or not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from functools import lru_cache
from typing import Any, NamedTuple

from astrocyte.config import BankGroupSettings, MultiBankSettings
from astrocyte.errors import ValidationError
from astrocyte.model import (
    ACTOR_TYPES,
    BankGroup,
    BankStrategy,
    Caller,
    FusionMethod,
    MultiBankMode,
    MultiBankStrategy,
    RecallQuery,
    ReflectQuery,
)
from astrocyte.model.multi_bank import OPEN_STRATEGY
from astrocyte.policy.requests import field_checks

# Far beyond what any caller can be given.
MOST_RESULTS = 2**31 - 1
LARGEST_SCORE = 1e9
_PARTS = tuple(part.name for part in fields(MultiBankStrategy))


class BankSet(NamedTuple):
    """The banks of a call in their order, with the strategy; None where it names one bank."""

    bank_ids: tuple[str, ...]
    strategy: BankStrategy | None = None


class BankSets:
    """Resolves the banks and strategies of calls on several banks.

    Args:
        settings: The groups, and what holds where a call says nothing.
    """

    def __init__(self, settings: MultiBankSettings) -> None:
        self._settings = settings
        self._defaults = {"mode": settings.default_strategy, "fusion_method": settings.fusion_method}
        # Of calls that say nothing of it.
        self._plain = BankStrategy(
            mode=MultiBankMode(settings.default_strategy), fusion_method=FusionMethod(settings.fusion_method)
        )

    def resolve(self, caller: Caller, query: RecallQuery | ReflectQuery, at: str = "") -> BankSet:
        """The banks that a query names: one by ``bank_id``, or several by ``banks`` or ``bank_group``.

        Raises:
            ValidationError: It names banks in two ways, a name is wrong, twice there, or unknown, or the strategy says
                something impossible; the field is prefixed by ``at``.
        """
        if not query.banks and query.bank_group is None:
            if query.strategy is not None:
                raise ValidationError("has no effect on one bank; name several banks in banks", field=f"{at}strategy")
            if not isinstance(query.bank_id, str):
                field_checks.bank_id(query.bank_id, f"{at}bank_id")
            return _alone(query.bank_id, f"{at}bank_id")
        _check_exclusive(query, at)
        bank_ids = query.banks
        group: dict[str, Any] = {}
        if query.bank_group is not None:
            bank_ids, group = self._group(caller, query.bank_group, f"{at}bank_group")
        field_checks.count(bank_ids, f"{at}banks", self._settings.most_banks)
        field_checks.bank_ids(bank_ids, f"{at}banks")
        if query.strategy is None and query.bank_group is None:
            return BankSet(tuple(bank_ids), self._plain)
        asked = {} if query.strategy is None else _said(query.strategy, f"{at}strategy")
        strategy = _strategy({**self._defaults, **group, **asked}, bank_ids, f"{at}strategy")
        first = strategy.cascade_order
        rest = [bank_id for bank_id in bank_ids if bank_id not in first] if first else bank_ids
        return BankSet((*first, *rest), strategy)

    def groups(self) -> list[BankGroup]:
        """The groups of the configuration, with unfilled placeholders."""
        return [
            BankGroup(name, group.banks, replace(OPEN_STRATEGY, **_of_group(group, {one: one for one in group.banks})))
            for name, group in self._settings.bank_groups.items()
        ]

    def _group(self, caller: Caller, name: object, path: str) -> tuple[tuple[str, ...], dict[str, Any]]:
        """The banks of a group, with placeholders filled, and the group's strategy."""
        group = self._settings.bank_groups.get(name) if isinstance(name, str) else None
        if group is None:
            there = ", ".join(sorted(self._settings.bank_groups)) or "none"
            raise ValidationError(f"there is no bank group {ascii(name)[:64]}; expected one of: {there}", field=path)
        known = identity_values(caller)
        filled = {bank: _filled(bank, known, path) for bank in group.banks}
        return tuple(filled.values()), _of_group(group, filled)


@lru_cache(maxsize=1024)
def _alone(bank_id: str, path: str) -> BankSet:
    """The set of one bank, whose name was looked at; most calls name the banks of calls before."""
    field_checks.bank_id(bank_id, path)
    return BankSet((bank_id,))


def identity_values(caller: Caller) -> dict[str, str]:
    """Values of placeholders: tenant_id, user_id, agent_id and so on, from the caller and its principal."""
    values = {"tenant_id": caller.tenant}
    for principal in (caller.principal, caller.on_behalf_of):
        kind, colon, name = (principal or "").partition(":")
        if colon and name and kind in ACTOR_TYPES:
            values.setdefault(f"{kind}_id", name)
    return values


def _filled(pattern: str, values: Mapping[str, str], path: str) -> str:
    """The bank id after the placeholders of a name are filled."""
    try:
        return pattern.format_map(dict(values))
    except KeyError as error:
        missing = str(error.args[0])
        raise ValidationError(
            f"needs {missing}, which this caller does not have; use a principal such as "
            f"{missing.removesuffix('_id')}:42",
            field=path,
        ) from error


def _of_group(group: BankGroupSettings, filled: Mapping[str, str]) -> dict[str, Any]:
    """The strategy fields of a group, with its banks by their ids."""
    return _given(
        {
            "mode": group.strategy,
            "min_results_to_stop": group.min_results_to_stop,
            "min_score_to_stop": group.min_score_to_stop,
            "cascade_order": None if group.cascade_order is None else [filled[name] for name in group.cascade_order],
            "bank_weights": {filled[name]: weight for name, weight in group.bank_weights.items()} or None,
            "dedup_across_banks": group.dedup_across_banks,
            "require_all": group.require_all,
        }
    )


def _said(strategy: object, path: str) -> dict[str, Any]:
    if not isinstance(strategy, MultiBankStrategy):
        raise ValidationError(f"expected a MultiBankStrategy, got {type(strategy).__name__}", field=path)
    return _given({name: getattr(strategy, name) for name in _PARTS})


def _given(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _check_exclusive(query: RecallQuery | ReflectQuery, at: str) -> None:
    """Check that banks are named in one way only, without parameters of a single bank."""
    if query.bank_id:
        other = "banks" if query.banks else "bank_group"
        raise ValidationError(f"cannot be combined with {other}; name either one bank or several", field=f"{at}bank_id")
    if query.banks and query.bank_group is not None:
        raise ValidationError("cannot be combined with banks; set one of them", field=f"{at}bank_group")
    if query.min_position:
        raise ValidationError(
            "applies to one bank, and the call names several; leave it out", field=f"{at}min_position"
        )


def _strategy(values: dict[str, Any], bank_ids: tuple[str, ...], path: str) -> BankStrategy:
    """The whole strategy, checked against the banks of the call."""
    values["mode"] = field_checks.named(values["mode"], f"{path}.mode", MultiBankMode)
    values["fusion_method"] = field_checks.named(values["fusion_method"], f"{path}.fusion_method", FusionMethod)
    for name in ("dedup_across_banks", "require_all"):
        if not isinstance(values.get(name, False), bool):
            raise ValidationError(f"expected true or false, got {values[name]!r}", field=f"{path}.{name}")
    field_checks.count(values.get("cascade_order", ()), f"{path}.cascade_order", len(bank_ids))
    field_checks.mapping(values.get("bank_weights", {}), f"{path}.bank_weights")
    values["cascade_order"] = tuple(values.get("cascade_order", ()))
    strategy = BankStrategy(**values)
    field_checks.integer(strategy.min_results_to_stop, f"{path}.min_results_to_stop", 1, MOST_RESULTS)
    if strategy.min_score_to_stop is not None:
        field_checks.number(strategy.min_score_to_stop, f"{path}.min_score_to_stop", -LARGEST_SCORE, LARGEST_SCORE)
        if strategy.mode is MultiBankMode.PARALLEL:
            raise ValidationError("has no effect on 'parallel'; leave it out", field=f"{path}.min_score_to_stop")
    field_checks.weights(strategy.bank_weights, f"{path}.bank_weights")
    _check_banks(strategy, bank_ids, path)
    return strategy


def _check_banks(strategy: BankStrategy, bank_ids: tuple[str, ...], path: str) -> None:
    """The banks that a strategy names are those of the call, and at least one may have hits."""
    order = strategy.cascade_order
    for name, given in (("bank_weights", strategy.bank_weights), ("cascade_order", order)):
        strange = next((bank_id for bank_id in given if bank_id not in bank_ids), None)
        if strange is not None:
            raise ValidationError(f"names {ascii(strange)[:64]}, which is not among the banks", field=f"{path}.{name}")
    if len(set(order)) != len(order):
        raise ValidationError("names a bank twice; name each bank once", field=f"{path}.cascade_order")
    if not any(strategy.bank_weights.get(bank_id, 1.0) for bank_id in bank_ids):
        raise ValidationError(
            "has no bank with a weight above 0; give one bank a positive weight", field=f"{path}.bank_weights"
        )
