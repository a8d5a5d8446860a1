from __future__ import annotations

from typing import Any

import pytest

from astrocyte.api import Concurrency
from astrocyte.config import Settings
from astrocyte.errors import ConfigError
from astrocyte.server import check_exposure, is_local
from astrocyte.services.method_limits import PLACES

KEY = {"name": "ci", "sha256": "0" * 64, "principal": "ci"}
TLS = {"tls_cert_file": "c.pem", "tls_key_file": "k.pem"}


@pytest.mark.parametrize(
    ("host", "local"),
    [
        ("127.0.0.1", True),
        ("127.8.8.8", True),
        ("::1", True),
        ("localhost", True),
        ("unix:/run/astrocyte.sock", True),
        ("0.0.0.0", False),  # noqa: S104 - what is refused
        ("::", False),
        ("10.0.0.1", False),
        ("localhost.example.com", False),
        ("127.0.0.1.example.com", False),
        ("*", False),
    ],
)
def test_what_only_this_machine_reaches(host: str, local: bool) -> None:
    assert is_local(host) is local


@pytest.mark.parametrize(
    ("server", "keys", "missing"),
    [
        ({}, [], "no TLS .* and no credentials"),
        (TLS, [], "has no credentials"),
        ({}, [KEY], "has no TLS"),
    ],
)
def test_an_exposed_address_is_refused(server: dict[str, Any], keys: list[Any], missing: str) -> None:
    settings = Settings.from_mapping({"server": {"host": "0.0.0.0", **server}, "auth": {"api_keys": keys}})  # noqa: S104
    with pytest.raises(ConfigError, match=missing):
        check_exposure(settings)


@pytest.mark.parametrize(
    "settings",
    [
        {"server": {"host": "0.0.0.0", **TLS}, "auth": {"api_keys": [KEY]}},  # noqa: S104
        {"server": {"host": "0.0.0.0", **TLS, "tls_client_ca_file": "ca.pem"}},  # noqa: S104
        {"server": {"host": "0.0.0.0", "insecure": True}},  # noqa: S104
        {"server": {"host": "::1"}},
        {},
    ],
)
def test_a_guarded_or_local_address_passes(settings: dict[str, Any]) -> None:
    check_exposure(Settings.from_mapping(settings))


def test_every_kind_of_call_has_its_limits() -> None:
    assert set(PLACES) == set(Concurrency)
