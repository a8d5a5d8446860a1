"""Metadata that says who calls: at most one value of each name."""

from __future__ import annotations

from typing import Any

import pytest

from astrocyte.config import Settings
from astrocyte.errors import AuthorizationError, ValidationError
from astrocyte.model import DEFAULT_PRINCIPAL, Caller
from astrocyte.services.authentication import CLAIMS, authenticator

NO_CONTEXT: Any = None
VALUES = {
    "x-astrocyte-tenant": "default",
    "x-astrocyte-principal": DEFAULT_PRINCIPAL,
    "x-astrocyte-on-behalf-of": "user:ann",
    "x-astrocyte-hops": "3",
}


def caller(*metadata: tuple[str, str | bytes]) -> Any:
    return authenticator(Settings())(metadata, NO_CONTEXT)


def test_each_name_may_come_once() -> None:
    assert VALUES.keys() == CLAIMS
    assert caller(*VALUES.items()) == Caller(on_behalf_of="user:ann", hops=3)


@pytest.mark.parametrize("name", sorted(CLAIMS))
@pytest.mark.parametrize("again", ["same", "user:bob", ""])
def test_a_name_that_comes_twice_is_refused(name: str, again: str) -> None:
    values = (VALUES[name], VALUES[name] if again == "same" else again)
    for first, second in (values, values[::-1]):
        with pytest.raises(ValidationError, match="expected once") as caught:
            caller((name, first), ("user-agent", "test"), (name, second))
        assert caught.value.field == name


def test_two_credentials_are_refused() -> None:
    with pytest.raises(AuthorizationError, match="two credentials"):
        caller(("authorization", "Bearer a"), ("authorization", "Bearer a"))
