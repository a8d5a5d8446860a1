"""Reasons by RPC: complete, and different where the rows differ."""

from __future__ import annotations

import pytest

from astrocyte.api.reasons import COMMON, HELD, OTHER_IDS, PROVIDED, RULES, further_reasons, reasons_of
from astrocyte.services.status import CODES
from harness.calls import ROWS

# Reasons with which a server does not start.
STARTUP = {"CONFIG_INVALID", "SCHEMA_TOO_NEW", "STORE_LOCKED"}


def test_each_reason_is_of_some_call_or_of_the_start() -> None:
    listed = {kind.reason for kind in COMMON} | {kind.reason for kind, _ in RULES}
    assert listed == {kind.reason for kind in CODES} - STARTUP


@pytest.mark.parametrize("reason", [kind.reason for kind, _ in RULES])
def test_a_rule_tells_calls_apart(reason: str) -> None:
    with_it = {name for name, rpc in ROWS.items() if reason in further_reasons(rpc)}
    assert with_it
    assert with_it != set(ROWS)


def test_names_in_rules_are_of_rpcs_and_fields() -> None:
    assert set(ROWS) >= (HELD | PROVIDED)
    assert {field for rpc in ROWS.values() for field in rpc.fields} >= OTHER_IDS


@pytest.mark.parametrize(
    ("call", "with_it", "without"),
    [
        ("GetMemory", {"MEMORY_NOT_FOUND", "BANK_NOT_FOUND"}, {"DISK_FULL", "LIMIT_REACHED"}),
        ("Retain", {"QUOTA_EXCEEDED", "PII_REJECTED", "DISK_FULL"}, {"ALREADY_EXISTS", "NOT_FOUND"}),
        ("CreateBank", {"ALREADY_EXISTS"}, {"PII_REJECTED", "LEGAL_HOLD_ACTIVE"}),
        ("GetServerInfo", {"UNAUTHENTICATED", "ACCESS_DENIED"}, {"BANK_NOT_FOUND"}),
        ("ReleaseHold", {"NOT_FOUND"}, {"MEMORY_NOT_FOUND"}),
    ],
)
def test_reasons_follow_from_the_row(call: str, with_it: set[str], without: set[str]) -> None:
    reasons = reasons_of(ROWS[call])
    assert with_it <= reasons
    assert not without & reasons
