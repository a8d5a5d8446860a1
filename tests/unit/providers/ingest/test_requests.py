"""Requests of poll drivers: redirects, addresses, credentials, bounds, and what headers say."""

from __future__ import annotations

import json
import zlib
from typing import Any

import pytest

from astrocyte.errors import FailedPrecondition, ProviderUnavailable, RateLimited
from astrocyte.providers.ingest.requests import HttpOptions, PollClient, next_link, reset_of, wait_of
from astrocyte.providers.proxy.egress import Reply
from external.polled import LOCAL, Answered, Asked, always, answered, http_server

NOW = 1_700_000_000.0


async def got(base: str, path: str = "/", **options: Any) -> Any:
    options = {"allow_networks": LOCAL, **options}
    client = PollClient(HttpOptions(url=base, **options), "application/json")
    try:
        return json.loads((await client.get(base + path)).body)
    finally:
        await client.close()


def moved(target: str, status: int = 302) -> Answered:
    return Answered(status, b"", {"Location": target})


async def test_redirects_are_followed() -> None:
    answers = {"/": moved("/b?c=1", 301), "/b?c=1": moved("d", 308), "/d": answered("here")}
    with http_server(lambda asked: answers[asked.target]) as base:
        assert await got(base) == "here"


async def test_redirects_without_end_are_an_error() -> None:
    with (
        http_server(always(moved("/"))) as base,
        pytest.raises(ProviderUnavailable, match="redirects more than 5 times"),
    ):
        await got(base)


@pytest.mark.parametrize(
    "target",
    [
        "http://10.0.0.1/",
        "http://169.254.169.254/latest/meta-data",
        "http://[::1]/",
        "http://[::ffff:10.0.0.1]/",
        "file:///etc/passwd",
        "gopher://127.0.0.1/",
        "http://user:pass@127.0.0.1/",
        "http://127.0.0.1:99999/",
    ],
)
async def test_redirects_to_what_is_not_allowed_are_refused(target: str) -> None:
    with (
        http_server(always(moved(target))) as base,
        pytest.raises(ProviderUnavailable, match=r"not allowed|not valid"),
    ):
        await got(base)


async def test_private_addresses_are_refused_unless_allowed() -> None:
    with http_server(always(answered(1))) as base:
        assert await got(base) == 1
        with pytest.raises(ProviderUnavailable, match="not allowed"):
            await got(base, allow_networks=())


async def test_credentials_and_headers_stay_with_their_origin() -> None:
    here: list[Asked] = []
    there: list[Asked] = []
    with http_server(always(answered(1)), there) as other, http_server(always(moved(other)), here) as base:
        for auth in (
            {"token": "secret"},
            {"type": "api_key", "key": "secret"},
            {"type": "basic", "username": "ann", "password": "secret"},
        ):
            assert await got(base, auth=auth, headers={"X-More": "secret"}) == 1
    assert here[0].headers["authorization"] == "Bearer secret"
    assert here[1].headers["x-api-key"] == "secret"
    assert here[2].headers["authorization"] == "Basic YW5uOnNlY3JldA=="
    assert all(asked.headers["x-more"] == "secret" for asked in here)
    for asked in there:
        assert not {"authorization", "x-api-key", "x-more"} & asked.headers.keys()


async def test_an_access_token_is_requested_and_renewed() -> None:
    tokens = iter(["old", "new"])

    def answer(asked: Asked) -> Answered:
        if asked.path == "/token":
            return answered({"access_token": next(tokens), "expires_in": 3_600})
        return answered("here") if asked.headers.get("authorization") == "Bearer new" else answered({}, 401)

    with http_server(answer) as base:
        auth = {
            "type": "oauth2_client_credentials",
            "token_url": f"{base}/token",
            "client_id": "me",
            "client_secret": "secret",
        }
        assert await got(base, auth=auth) == "here"


async def test_bodies_are_bounded_as_sent_and_as_unpacked() -> None:
    packed = zlib.compress(b" " * 2_000_000)
    for answer in (Answered(200, b" " * 100_000), Answered(200, packed, {"Content-Encoding": "deflate"})):
        with http_server(always(answer)) as base, pytest.raises(ProviderUnavailable, match="more than"):
            await got(base, max_response_bytes=50_000)


async def test_statuses_say_whose_fault_it_is() -> None:
    for status, kind in ((400, FailedPrecondition), (404, FailedPrecondition), (500, ProviderUnavailable)):
        with http_server(always(Answered(status))) as base, pytest.raises(kind):
            await got(base)
    with http_server(always(Answered(429, b"", {"Retry-After": "3"}))) as base:
        with pytest.raises(RateLimited) as caught:
            await got(base)
        assert caught.value.retry_after == 3.0


def wait(status: int, body: bytes = b"", **headers: str) -> float | None:
    return wait_of(Reply(status, body, {name.replace("_", "-"): text for name, text in headers.items()}), NOW)


def test_waits_of_all_kinds() -> None:
    assert wait(429, retry_after="5") == 5.0
    assert wait(429, retry_after="Tue, 14 Nov 2023 22:15:00 GMT") == 100.0
    assert wait(429, retry_after="Tue, 14 Nov 2000 22:15:00 GMT") == 0.0
    assert wait(429, retry_after="soon") == 60.0
    assert wait(429, retry_after="9" * 5_000) == 999_999_999_999_999.0
    assert wait(403) is None
    assert wait(403, b'{"message": "Secondary Rate Limit"}') == 60.0
    assert wait(403, x_ratelimit_remaining="0", x_ratelimit_reset="1700000030") == 30.0
    assert wait(403, x_ratelimit_remaining="0", x_ratelimit_reset="never") == 60.0
    # A service whose clock is an hour ahead: what counts is the difference.
    date = "Tue, 14 Nov 2023 23:13:20 GMT"
    assert wait(403, x_ratelimit_remaining="0", x_ratelimit_reset="1700003630", date=date) == 30.0
    assert wait(503) is None
    assert wait(503, retry_after="1") == 1.0
    assert wait(200, x_ratelimit_remaining="0") is None
    assert wait(401, retry_after="1") is None
    assert reset_of({"x-ratelimit-reset": "9" * 400}, NOW) is None


def test_the_next_link_is_found_among_others() -> None:
    for link, target in (
        ('<https://a/?page=2>; rel="next", <https://a/?page=9>; rel="last"', "https://a/?page=2"),
        ('<https://a/1>; rel="prev", <https://a/?q=a,b;c>; title="x"; rel=next', "https://a/?q=a,b;c"),
        ('<https://a/1>; rel="first next"', "https://a/1"),
        ('<https://a/1>; rel="nextish"', None),
        ("<https://a/1>; rel=next-archive", None),
        ("<https://a/1>", None),
        ("<" * 5_000, None),
        ("<a>" + " " * 50_000, None),
        ("<a>" + '; rel="' + " " * 50_000, None),
        ("<a>" + "; rel = x" * 10_000, None),
        ("", None),
    ):
        assert next_link({"link": link}) == target
