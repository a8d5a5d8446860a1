"""API keys: shown once, kept as a digest, two of a name, and ended from the next call on."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from astrocyte.api.requests import CreateApiKey, ListApiKeys, RevokeApiKey
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.errors import (
    AccessDenied,
    AuthorizationError,
    FailedPrecondition,
    NotFound,
    RequestIdReused,
    ValidationError,
)
from astrocyte.model import Caller
from oracles.byte_scans import files_with
from samples.memories import Clock

ROOT, ALICE = Caller(principal="user:root"), Caller(principal="user:alice")
OPERATOR = Caller(operator=True)
SETTINGS = {
    "access_control": {"enabled": True, "default_policy": "deny"},
    "access_grants": [
        {"bank_id": "*", "principal": "user:root", "permissions": ["admin"]},
        {"bank_id": "b*", "principal": "user:alice", "permissions": ["*"]},
    ],
}


def opened(data_dir: Path | None = None, clock: Clock | None = None, **sections: Any) -> App:
    where = {"vector_store": "in_memory"} if data_dir is None else {"data_dir": str(data_dir)}
    return App(Settings.from_mapping({**where, **SETTINGS, **sections}), clock=clock or Clock())


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def app(clock: Clock) -> AsyncIterator[App]:
    app = opened(clock=clock)
    yield app
    await app.close()


async def test_a_key_stands_for_its_principal_until_it_is_revoked(app: App) -> None:
    made, secret = await app.gate.call(ROOT, CreateApiKey("assistant", "agent:a"))
    assert secret.startswith(f"astro_{made.key_id}_")
    assert app.gate.keys.caller(secret) == Caller("default", "agent:a")
    (kept,) = await app.gate.call(ROOT, ListApiKeys())
    assert (kept.name, kept.principal, kept.created_by, kept.revoked_at) == ("assistant", "agent:a", "user:root", None)
    ended = await app.gate.call(ROOT, RevokeApiKey(made.key_id))
    assert ended.revoked_by == "user:root"
    with pytest.raises(AuthorizationError, match="was revoked"):
        app.gate.keys.caller(secret)
    assert (await app.gate.call(OPERATOR, RevokeApiKey(made.key_id))).revoked_by == "user:root"


@pytest.mark.parametrize("change", [lambda key: key[:-1], lambda key: key + "A", lambda key: "astro_", str.upper])
async def test_another_key_is_refused(app: App, change: Any) -> None:
    _, secret = await app.gate.call(ROOT, CreateApiKey("assistant", "agent:a"))
    if change(secret).startswith("astro_"):
        with pytest.raises(AuthorizationError):
            app.gate.keys.caller(change(secret))
    else:
        assert app.gate.keys.caller(change(secret)) is None


async def test_a_secret_of_one_key_does_not_open_another(app: App) -> None:
    (first, _), (_, secret) = [await app.gate.call(ROOT, CreateApiKey(name, f"agent:{name}")) for name in ("a", "b")]
    with pytest.raises(AuthorizationError):
        app.gate.keys.caller(f"astro_{first.key_id}_{secret.rpartition('_')[2]}")


async def test_a_key_expires(app: App, clock: Clock) -> None:
    until = datetime.fromtimestamp(clock.now / 1_000, UTC) + timedelta(seconds=10)
    _, secret = await app.gate.call(ROOT, CreateApiKey("assistant", "agent:a", expires_at=until))
    clock.now += 9_999
    app.gate.keys.caller(secret)
    clock.now += 1
    with pytest.raises(AuthorizationError, match="expired"):
        app.gate.keys.caller(secret)
    with pytest.raises(ValidationError, match="is in the past"):
        await app.gate.call(ROOT, CreateApiKey("assistant", "agent:a", expires_at=until))


async def test_two_live_keys_of_a_name_make_a_rotation(app: App) -> None:
    (first, old), (_, new) = [await app.gate.call(ROOT, CreateApiKey("assistant", "agent:a")) for _ in range(2)]
    with pytest.raises(FailedPrecondition, match="2 live keys"):
        await app.gate.call(ROOT, CreateApiKey("assistant", "agent:a"))
    assert app.gate.keys.caller(old) == app.gate.keys.caller(new)
    await app.gate.call(ROOT, RevokeApiKey(first.key_id))
    await app.gate.call(ROOT, CreateApiKey("assistant", "agent:a"))
    await app.gate.call(ROOT, CreateApiKey("another", "agent:a"))


async def test_a_repeated_request_makes_one_key_and_shows_it_once(app: App) -> None:
    made, secret = await app.gate.call(ROOT, CreateApiKey("assistant", "agent:a", request_id="k"))
    again, shown = await app.gate.call(ROOT, CreateApiKey("assistant", "agent:a", request_id="k"))
    assert (again, bool(secret), shown) == (made, True, "")
    assert len(await app.gate.call(ROOT, ListApiKeys())) == 1
    with pytest.raises(RequestIdReused):
        await app.gate.call(ROOT, CreateApiKey("assistant", "agent:b", request_id="k"))


async def test_only_who_has_admin_everywhere_makes_keys_and_for_its_tenant(app: App) -> None:
    made, _ = await app.gate.call(ROOT, CreateApiKey("assistant", "agent:a"))
    for caller in (
        ALICE,
        Caller(),
        Caller("acme", "user:root"),
        Caller(principal="user:root", on_behalf_of="user:alice"),
    ):
        with pytest.raises(AccessDenied):
            await app.gate.call(caller, CreateApiKey("assistant", "agent:a"))
        with pytest.raises(AccessDenied):
            await app.gate.call(caller, ListApiKeys())
        with pytest.raises(AccessDenied):
            await app.gate.call(caller, RevokeApiKey(made.key_id))
    acme = Caller("acme", operator=True)
    assert await app.gate.call(acme, ListApiKeys()) == []
    with pytest.raises(NotFound):
        await app.gate.call(acme, RevokeApiKey(made.key_id))


async def test_without_access_control_only_the_operator_makes_keys() -> None:
    app = opened(access_control={"enabled": False})
    with pytest.raises(FailedPrecondition, match="access control is off"):
        await app.gate.call(Caller(), CreateApiKey("assistant", "agent:a"))
    _, secret = await app.gate.call(OPERATOR, CreateApiKey("assistant", "agent:a"))
    assert app.gate.keys.caller(secret) == Caller("default", "agent:a")
    await app.close()


async def test_keys_survive_a_restart_without_being_on_the_disk(tmp_path: Path) -> None:
    app = opened(tmp_path)
    _, secret = await app.gate.call(OPERATOR, CreateApiKey("assistant", "agent:a"))
    ended, gone = await app.gate.call(OPERATOR, CreateApiKey("assistant", "agent:a"))
    await app.gate.call(OPERATOR, RevokeApiKey(ended.key_id))
    assert app.gate.keys.caller(secret) is not None
    await app.close()
    random_part = secret.split("_", 2)[2]
    assert files_with(tmp_path, random_part) == []
    app = opened(tmp_path)
    assert app.gate.keys.caller(secret) == Caller("default", "agent:a")
    with pytest.raises(AuthorizationError):
        app.gate.keys.caller(gone)
    last_used = [key.last_used_at is not None for key in await app.gate.call(OPERATOR, ListApiKeys())]
    assert sorted(last_used) == [False, True]
    await app.close()


@pytest.mark.parametrize(
    ("name", "principal", "field"), [("", "p", "name"), ("n", "", "principal"), ("n", "local", "principal")]
)
async def test_wrong_keys_are_not_made(app: App, name: str, principal: str, field: str) -> None:
    with pytest.raises(ValidationError) as refusal:
        await app.gate.call(ROOT, CreateApiKey(name, principal))
    assert refusal.value.field == field
    assert await app.gate.call(ROOT, ListApiKeys()) == []
