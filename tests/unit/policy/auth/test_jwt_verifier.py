"""Tokens: the good ones, and each forged one refused for its own reason."""

from __future__ import annotations

import asyncio
import datetime as dt
import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from astrocyte.config import JwtSettings, Settings
from astrocyte.errors import AuthorizationError, ConfigError, Unavailable
from astrocyte.model import Caller

pytest.importorskip("jwt", reason="an extra that is not installed")

import httpx

from astrocyte.policy.auth import jwks as key_sets
from astrocyte.policy.auth.jwks import KeySet
from astrocyte.policy.auth.jwt_verifier import Tokens
from external.dripping import HEAD, dripping
from harness.tokens import (
    AUDIENCE,
    ISSUER,
    NOW,
    OTHER_EC_KEY,
    OTHER_KEY,
    PUBLIC_PEM,
    WEAK_KEY,
    claims,
    encode,
    jwks,
    token,
)


class Clock:
    def __init__(self, now: float) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


@pytest.fixture(autouse=True)
def now(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The time of day, here and in PyJWT."""
    clock = Clock(NOW)

    class Datetime(dt.datetime):
        @classmethod
        def now(cls, tz: dt.tzinfo | None = None) -> Datetime:
            return cls.fromtimestamp(clock.now, tz)

    monkeypatch.setattr("jwt.api_jwt.datetime", Datetime)
    monkeypatch.setattr("astrocyte.policy.auth.jwt_verifier.time", SimpleNamespace(time=clock))
    return clock


@pytest.fixture
def monotonic(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Seconds that never go back, here and in PyJWT's cache of keys."""
    clock = Clock(1_000.0)
    for module in ("astrocyte.policy.auth.jwks", "jwt.jwk_set_cache", "jwt.api_jwk"):
        monkeypatch.setattr(f"{module}.time", SimpleNamespace(monotonic=clock))
    return clock


def verifier(tmp_path: Path, **changes: Any) -> Tokens:
    (tmp_path / "keys.json").write_bytes(jwks())
    values = {"issuer": ISSUER, "audience": (AUDIENCE,), "jwks_file": tmp_path / "keys.json", **changes}
    settings = JwtSettings(**values)
    return Tokens(settings, KeySet(settings))


def tampered(part: int, change: Callable[[str], str]) -> str:
    parts = token().split(".")
    parts[part] = change(parts[part])
    return ".".join(parts)


GOOD: dict[str, tuple[str, Caller]] = {
    "RS256": (token(), Caller("default", "user:ann")),
    "ES256": (token(alg="ES256", kid="ec"), Caller("default", "user:ann")),
    "one audience of many": (token(claims(aud=["x", AUDIENCE])), Caller("default", "user:ann")),
    "expired within the leeway": (token(claims(exp=NOW - 29)), Caller("default", "user:ann")),
    "begins within the leeway": (token(claims(nbf=NOW + 29)), Caller("default", "user:ann")),
    "no typ": (token(header={"typ": ...}), Caller("default", "user:ann")),
    "an access token": (token(header={"typ": "at+JWT"}), Caller("default", "user:ann")),
    "on behalf": (token(claims(act={"sub": "bot"})), Caller("default", "user:bot", "user:ann")),
}


@pytest.mark.parametrize("name", GOOD)
def test_a_good_token_stands_for_its_subject(tmp_path: Path, name: str) -> None:
    given, caller = GOOD[name]
    tokens = verifier(tmp_path)
    assert tokens.caller(given) == caller
    assert tokens.caller(given) == caller


def test_tenant_and_principal_come_from_the_claims_that_are_configured(tmp_path: Path) -> None:
    tokens = verifier(tmp_path, tenant_claim="org", principal_claim="azp", principal_prefix="service:")
    assert tokens.caller(token(claims(org="acme", azp="billing"))) == Caller("acme", "service:billing")
    with pytest.raises(AuthorizationError, match="claim 'org' must be"):
        tokens.caller(token(claims(azp="billing")))


FORGED: dict[str, tuple[str, str]] = {
    # Algorithms.
    "alg none": (token(alg="none", signer=OTHER_KEY), "algorithm"),
    "alg none without signature": (".".join([*token(header={"alg": "none"}).split(".")[:2], ""]), "malformed"),
    "alg nOnE": (token(header={"alg": "nOnE"}), "algorithm"),
    "no alg": (token(header={"alg": ...}), "algorithm"),
    "alg is a list": (token(header={"alg": ["RS256"]}), "algorithm"),
    "HS256 with the public key": (token(alg="HS256", signer=PUBLIC_PEM), "algorithm"),
    "HS256 with the key set": (token(alg="HS256", signer=jwks("rsa")), "algorithm"),
    "an algorithm that is not listed": (token(alg="RS512"), "algorithm"),
    "RS256 by the key of ES256": (token(kid="ec"), "key_mismatch"),
    "ES256 by the key of RS256": (token(alg="ES256", kid="rsa"), "key_mismatch"),
    "RS256 by a key for PS256": (token(kid="ps"), "key_mismatch"),
    # Signatures.
    "signed by another": (token(signer=OTHER_KEY), "signature"),
    "signed by another key of the curve": (token(alg="ES256", kid="ec", signer=OTHER_EC_KEY), "signature"),
    "other claims": (tampered(1, lambda _: encode(json.dumps(claims(sub="root")).encode())), "signature"),
    "other kid": (
        tampered(0, lambda _: encode(json.dumps({"alg": "RS256", "typ": "JWT", "kid": "other"}).encode())),
        "signature",
    ),
    "half a signature": (tampered(2, lambda part: part[: len(part) // 2]), "signature"),
    "a signature of zeros": (tampered(2, lambda part: "A" * len(part)), "signature"),
    # Keys.
    "an unknown kid": (token(kid="nobody"), "kid_unknown"),
    "a kid that is a path": (token(kid="../../../../dev/null"), "kid_unknown"),
    "a kid that is SQL": (token(kid="x' UNION SELECT 'rsa"), "kid_unknown"),
    "a kid that is a URL": (token(kid="https://evil.example/keys"), "kid_unknown"),
    "no kid where there are many": (token(kid=...), "kid_unknown"),
    "a kid that is a number": (token(kid=0), "kid_malformed"),
    "a kid that is empty": (token(kid=""), "kid_malformed"),
    "an endless kid": (token(kid="k" * 257), "kid_malformed"),
    "a key for encryption": (token(kid="enc"), "kid_unknown"),
    "a key that is too short": (token(kid="weak", signer=WEAK_KEY), "key_weak"),
    "jku": (token(header={"jku": "https://evil.example/keys"}), "header_jku"),
    "x5u": (token(header={"x5u": "https://evil.example/chain"}), "header_x5u"),
    "x5c": (token(header={"x5c": ["MIIB"]}), "header_x5c"),
    "jwk": (token(header={"jwk": json.loads(jwks("other"))["keys"][0]}, signer=OTHER_KEY), "header_jwk"),
    "crit": (token(header={"crit": ["exp"]}), "header_crit"),
    "b64": (token(header={"b64": False}), "header_b64"),
    "zip": (token(header={"zip": "DEF"}), "header_zip"),
    "another type": (token(header={"typ": "logout+jwt"}), "type"),
    # Times.
    "expired by 31 seconds": (token(claims(exp=NOW - 31)), "expired"),
    "expired long ago": (token(claims(exp=0)), "expired"),
    "no exp": (token(claims(exp=...)), "exp_missing"),
    "exp as text": (token(claims(exp=str(NOW + 60))), "exp_malformed"),
    "exp as a truth": (token(claims(exp=True)), "exp_malformed"),
    "exp as null": (token(claims(exp=None)), "exp_malformed"),
    "exp not a number": (token(claims(exp=float("nan"))), "exp_malformed"),
    "exp beyond all time": (token(claims(exp=float("inf"))), "exp_malformed"),
    "not good yet": (token(claims(nbf=NOW + 31)), "not_yet_valid"),
    "nbf as text": (token(claims(nbf="soon")), "nbf_malformed"),
    "issued in the future": (token(claims(iat=NOW + 31)), "issued_in_future"),
    # For whom, by whom.
    "another issuer": (token(claims(iss=f"{ISSUER}/")), "issuer"),
    "no issuer": (token(claims(iss=...)), "issuer"),
    "a list of issuers": (token(claims(iss=[ISSUER])), "issuer"),
    "another audience": (token(claims(aud="astrocyte-dev")), "audience"),
    "no audience": (token(claims(aud=...)), "audience"),
    "an audience that is an object": (token(claims(aud={AUDIENCE: 1})), "audience"),
    "an audience within another": (token(claims(aud=[[AUDIENCE]])), "audience"),
    "no subject": (token(claims(sub=...)), "sub_malformed"),
    "an empty subject": (token(claims(sub="")), "sub_malformed"),
    "a subject that is a number": (token(claims(sub=7)), "sub_malformed"),
    "a subject of two lines": (token(claims(sub="ann\nroot")), "sub_malformed"),
    "an endless subject": (token(claims(sub="a" * 257)), "sub_malformed"),
    "an actor that is a text": (token(claims(act="bot")), "act"),
    "an actor without a name": (token(claims(act={})), "sub_malformed"),
    # Forms.
    "a claim twice": (token(json.dumps(claims())[:-1].encode() + b', "sub": "root"}'), "claims_duplicate"),
    "a header twice": (token(header=b'{"alg": "none", "alg": "RS256", "kid": "rsa"}'), "header_duplicate"),
    "claims that are a list": (token(b"[]"), "malformed"),
    "claims that are not UTF-8": (token(b'{"sub": "\xff"}'), "malformed"),
    "claims without bottom": (token(b"[" * 4_000), "malformed"),
    "a header that is a text": (token(header=b'"RS256"'), "malformed"),
    "padding": (tampered(0, lambda part: f"{part}="), "malformed"),
    "letters of another base64": (tampered(1, lambda part: f"{part}+/"), "malformed"),
    "two parts": ("a.b", "malformed"),
    "five parts": ("a.b.c.d.e", "malformed"),
    "nothing": ("", "malformed"),
    "not ASCII": ("ä.b.c", "malformed"),
    "a line break": (f"{token()}\n", "malformed"),
    "a megabyte": (token(claims(pad="x" * 1_000_000)), "too_large"),
}


def test_there_are_enough() -> None:
    assert len(FORGED) >= 60


@pytest.mark.parametrize("name", FORGED)
def test_a_forged_token_is_refused_for_its_own_reason(tmp_path: Path, name: str) -> None:
    forged, cause = FORGED[name]
    with pytest.raises(AuthorizationError) as refusal:
        verifier(tmp_path).caller(forged)
    assert refusal.value.metadata == {"cause": f"token_{cause}"}
    assert "ann" not in str(refusal.value)


def test_a_name_without_prefix_cannot_be_that_of_callers_without_one(tmp_path: Path) -> None:
    with pytest.raises(AuthorizationError, match="callers without one"):
        verifier(tmp_path, principal_prefix="").caller(token(claims(sub="local")))


def test_a_remembered_token_expires(tmp_path: Path, now: Clock) -> None:
    tokens = verifier(tmp_path)
    given = token(claims(exp=NOW + 60))
    tokens.caller(given)
    now.now = NOW + 89
    tokens.caller(given)
    now.now = NOW + 90
    with pytest.raises(AuthorizationError, match="expired"):
        tokens.caller(given)


class Issuer:
    """Keys at a URL."""

    def __init__(self) -> None:
        self.keys = jwks("rsa")
        self.fetched = 0
        self.broken = False

    async def __call__(self, url: str, seconds: float) -> bytes:
        assert (url, seconds) == ("https://issuer.example/keys", 5.0)
        self.fetched += 1
        if self.broken:
            raise OSError("unreachable")
        return self.keys


@pytest.fixture
def fetched(monotonic: Clock) -> tuple[Tokens, Issuer, Clock]:
    issuer = Issuer()
    settings = JwtSettings(issuer=ISSUER, audience=(AUDIENCE,), jwks_url="https://issuer.example/keys")
    return Tokens(settings, KeySet(settings, fetch=issuer)), issuer, monotonic


async def ask(tokens: Tokens, given: str) -> Caller:
    answer = tokens.caller(given)
    return answer if isinstance(answer, Caller) else await answer


async def refused(tokens: Tokens, given: str) -> str:
    with pytest.raises(AuthorizationError) as refusal:
        await ask(tokens, given)
    return refusal.value.metadata["cause"]


async def test_keys_are_fetched_once_for_all_who_wait(fetched: tuple[Tokens, Issuer, Clock]) -> None:
    tokens, issuer, _ = fetched
    callers = await asyncio.gather(*(ask(tokens, token(claims(sub=f"s{number}"))) for number in range(20)))
    assert [caller.principal for caller in callers] == [f"user:s{number}" for number in range(20)]
    assert issuer.fetched == 1


async def test_ten_thousand_strange_kids_fetch_once(fetched: tuple[Tokens, Issuer, Clock]) -> None:
    tokens, issuer, clock = fetched
    await ask(tokens, token())
    given = token(kid="stranger")
    clock.now += 31
    for number in range(10_000):
        forged = f"{encode(json.dumps({'alg': 'RS256', 'kid': f'k{number}'}).encode())}.{given.split('.', 1)[1]}"
        assert await refused(tokens, forged) == "token_kid_unknown"
    assert issuer.fetched == 2
    assert await ask(tokens, token()) == Caller("default", "user:ann")


async def test_a_token_of_no_form_fetches_nothing(fetched: tuple[Tokens, Issuer, Clock]) -> None:
    tokens, issuer, _ = fetched
    for given in ("a.b.c", token(alg="none", signer=OTHER_KEY), token(header={"jku": "x"})):
        await refused(tokens, given)
    assert issuer.fetched == 0


async def test_a_new_key_is_found_and_an_old_one_goes(fetched: tuple[Tokens, Issuer, Clock]) -> None:
    tokens, issuer, clock = fetched
    old, new = token(), token(kid="other", signer=OTHER_KEY)
    await ask(tokens, old)
    issuer.keys = jwks("other")
    assert await refused(tokens, new) == "token_kid_unknown"
    clock.now += 30
    await ask(tokens, new)
    assert await refused(tokens, old) == "token_kid_unknown"


async def test_keys_outlive_a_failing_issuer_for_their_time_only(fetched: tuple[Tokens, Issuer, Clock]) -> None:
    tokens, issuer, clock = fetched
    await ask(tokens, token())
    issuer.broken = True
    clock.now += 1_801
    assert await ask(tokens, token()) == Caller("default", "user:ann")
    clock.now += 1_800
    with pytest.raises(Unavailable):
        await ask(tokens, token())
    issuer.broken = False
    clock.now += 30
    await ask(tokens, token())


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"issuer": "i", "audience": ["a"]}, "one of jwks_url and jwks_file"),
        ({"issuer": "i", "jwks_url": "https://i"}, "audience is required"),
        ({"audience": ["a"]}, "need an issuer"),
        ({"issuer": "i", "audience": ["a"], "jwks_url": "https://i", "algorithms": ["HS256"]}, "algorithms"),
        ({"issuer": "i", "audience": ["a"], "jwks_url": "https://i", "algorithms": ["none"]}, "algorithms"),
    ],
)
def test_settings_that_would_accept_too_much(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Settings.from_mapping({"auth": {"jwt": settings}})


@pytest.mark.parametrize("url", ["http://issuer.example/keys", "file:///etc/passwd", "ftp://x/y", "issuer.example"])
def test_keys_come_over_a_safe_way_only(url: str) -> None:
    with pytest.raises(ConfigError, match="https address"):
        KeySet(JwtSettings(issuer="i", audience=("a",), jwks_url=url))


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"keys": 1}', '{"keys": []}', '{"keys": [{"kty": "oct", "k": "AA"}]}']
)
def test_a_file_without_keys_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "keys.json").write_text(text)
    with pytest.raises(ConfigError, match="no usable signing key"):
        KeySet(JwtSettings(issuer="i", audience=("a",), jwks_file=tmp_path / "keys.json"))


def test_a_key_of_another_curve_verifies_nothing(tmp_path: Path) -> None:
    entry = json.loads(jwks("ec"))["keys"][0]
    entry["crv"] = "P-384"
    (tmp_path / "odd.json").write_text(json.dumps({"keys": [entry, *json.loads(jwks("rsa"))["keys"]]}))
    tokens = verifier(tmp_path, jwks_file=tmp_path / "odd.json")
    with pytest.raises(AuthorizationError):
        tokens.caller(token(alg="ES256", kid="ec"))
    assert tokens.caller(token()) == Caller("default", "user:ann")


@pytest.mark.parametrize("name", ["alg", "kty", "use", "kid", "crv", "n", "e"])
@pytest.mark.parametrize("value", [5, None, ["RS256"], {"a": 1}])
async def test_an_entry_with_a_member_that_is_no_string_is_skipped(
    fetched: tuple[Tokens, Issuer, Clock], name: str, value: object
) -> None:
    tokens, issuer, _ = fetched
    entries = json.loads(issuer.keys)["keys"]
    issuer.keys = json.dumps({"keys": [{**entries[0], "kid": "odd", name: value}, *entries]}).encode()
    assert await ask(tokens, token()) == Caller("default", "user:ann")


@pytest.mark.parametrize(
    ("algorithms", "alg"), [(("PS256", "RS256"), "PS256"), (("RS512", "RS256"), "RS512"), (("RS256",), "RS256")]
)
def test_a_key_that_names_no_algorithm_verifies_all_of_its_kind(
    tmp_path: Path, algorithms: tuple[str, ...], alg: str
) -> None:
    assert verifier(tmp_path, algorithms=algorithms).caller(token(alg=alg)) == Caller("default", "user:ann")


@pytest.mark.parametrize(
    ("begin", "drop"), [(HEAD, b"X-A: b\r\n"), (HEAD + b"\r\n", b" "), (HEAD + b"\r\n" + b'{"keys": [', b"1,")]
)
async def test_keys_that_come_drop_by_drop_are_given_up(begin: bytes, drop: bytes) -> None:
    async with dripping(begin, drop, 0.05) as url:
        settings = JwtSettings(issuer=ISSUER, audience=(AUDIENCE,), jwks_url=url, jwks_timeout_seconds=0.3)
        started = asyncio.get_running_loop().time()
        with pytest.raises(Unavailable):
            await ask(Tokens(settings, KeySet(settings)), token())
        assert asyncio.get_running_loop().time() - started < 3


async def test_keys_without_end_are_cut() -> None:
    async with dripping(HEAD + b"\r\n", b" " * 65_536) as url:
        with pytest.raises(httpx.HTTPError, match="exceeds"):
            await key_sets._fetch(url, 30.0)


async def test_keys_that_are_moved_are_not_followed() -> None:
    moved = b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n"
    async with dripping(moved, b"") as url:
        with pytest.raises(httpx.HTTPStatusError):
            await key_sets._fetch(url, 5.0)
