"""Driver json: forms of paging, times, and answers of another form."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from astrocyte.errors import ConfigError, FailedPrecondition, ProviderUnavailable
from astrocyte.providers.ingest.json_endpoint import create
from external.polled import LOCAL, Answered, Asked, always, answered, http_server, ids, polled, until_limited


def ship(number: int, **values: Any) -> dict[str, Any]:
    return {"key": number, "content": f"Ship {number}", "changed": f"2026-01-01T00:00:{number:02}Z", **values}


@asynccontextmanager
async def driver(base: str, **options: Any) -> AsyncIterator[Any]:
    made = create({"url": f"{base}/ships?of=octo", "id": "$.key", "allow_networks": LOCAL, **options})
    try:
        yield made
    finally:
        await made.close()


def paged(asked: Asked, base: str, count: int, size: int = 4) -> tuple[list[dict[str, Any]], int | None]:
    """A page of ships, and the number of the next one."""
    number = int(asked.query.get("page", 1))
    rows = [ship(one) for one in range(count)][(number - 1) * size : number * size]
    return rows, number + 1 if number * size < count else None


@pytest.mark.parametrize("paging", ["link", "next", "cursor", "page"])
async def test_all_pages_are_read(paging: str) -> None:
    def answer(asked: Asked) -> Answered:
        assert asked.query["of"] == "octo"
        rows, following = paged(asked, base, 10)
        target = f"/ships?of=octo&page={following}"
        match paging:
            case "link":
                return answered(rows, headers={"Link": f'<{target}>; rel="next"'} if following else None)
            case "next":
                return answered({"ships": rows, "more": {"next": f"{base}{target}" if following else None}})
            case "cursor":
                return answered({"ships": rows, "more": {"next": following}})
            case _:
                return answered({"ships": rows})

    options: dict[str, Any] = {"paging": paging}
    if paging != "link":
        options["items"] = "$.ships"
    if paging in {"next", "cursor"}:
        options["next"] = "$.more.next"
    if paging in {"cursor", "page"}:
        options["page_parameter"] = "page"
    with http_server(answer) as base:
        async with driver(base, **options) as found:
            for limit in (3, 100):
                items, _, refused = await polled(found, limit=limit)
                assert (ids(items), refused) == ([str(number) for number in range(10)], 0)


async def test_a_poll_goes_on_at_its_page_and_then_at_its_time() -> None:
    asked: list[Asked] = []

    def answer(request: Asked) -> Answered:
        if len(asked) == 2:
            return Answered(429, b"", {"Retry-After": "1"})
        rows, following = paged(request, base, 10)
        return answered({"ships": rows, "next": following})

    options = {
        "items": "$.ships",
        "paging": "cursor",
        "next": "$.next",
        "page_parameter": "page",
        "updated": "$.changed",
        "since_parameter": "after",
        "size_parameter": "size",
    }
    with http_server(answer, asked) as base:
        async with driver(base, **options) as found:
            cursor = dict((await until_limited(found, 50))[-1].cursor)
            assert cursor == {"since": None, "at": 2, "latest": "2026-01-01T00:00:03Z"}
            items, cursor, _ = await polled(found, cursor, limit=50)
            assert ids(items) == [str(number) for number in range(4, 10)]
            assert cursor == {"since": "2026-01-01T00:00:09Z"}
            await polled(found, cursor, limit=50)
    assert [one.query.get("page") for one in asked] == [None, "2", "2", "3", None, "2", "3"]
    assert asked[4].query == {"of": "octo", "after": "2026-01-01T00:00:09Z", "size": "50"}


async def test_a_page_that_is_gone_begins_the_poll_anew() -> None:
    def answer(asked: Asked) -> Answered:
        return Answered(410) if "page" in asked.query else answered({"ships": [ship(1)]})

    options = {"items": "$.ships", "paging": "cursor", "next": "$.next", "page_parameter": "page"}
    with http_server(answer) as base:
        async with driver(base, **options) as found:
            items, _, _ = await polled(found, {"since": None, "at": "old", "latest": None})
            assert ids(items) == ["1"]
    with http_server(always(Answered(404))) as base:
        async with driver(base, **options) as found:
            with pytest.raises(FailedPrecondition):
                await polled(found, {"since": None, "at": "old", "latest": None})


async def test_versions_follow_the_time_or_the_whole_item() -> None:
    rows = [ship(1)]
    with http_server(lambda _: answered(rows)) as base:
        async with driver(base) as whole, driver(base, updated="$.changed") as timed:

            async def versions() -> tuple[str, str]:
                return (await polled(whole))[0][0].version, (await polled(timed))[0][0].version

            first = await versions()
            rows[0] = ship(1, views=7)
            second = await versions()
            rows[0] = ship(1, changed="2026-02-01T00:00:00Z")
            third = await versions()
    assert len({first[0], second[0], third[0]}) == 3
    assert (first[1], second[1], third[1]) == (first[1], first[1], "2026-02-01T00:00:00Z")


async def test_an_unchanged_answer_is_not_sent_again() -> None:
    asked: list[Asked] = []

    def answer(request: Asked) -> Answered:
        if request.headers.get("if-none-match") == '"1"':
            return Answered(304)
        return answered([ship(1)], headers={"ETag": '"1"'})

    with http_server(answer, asked) as base:
        async with driver(base, updated="$.changed") as found:
            items, cursor, _ = await polled(found)
            assert len(items) == 1
            items, again, _ = await polled(found, cursor)
            assert (items, again) == ([], cursor)
    assert len(asked) == 2


async def test_items_that_are_none_are_refused() -> None:
    rows: list[Any] = [ship(1), 5, None, [], {}, {"key": None}, {"key": {"a": 1}}, {"key": True}, {"key": "x" * 5_000}]
    with http_server(always(answered(rows))) as base:
        async with driver(base) as found:
            items, _, refused = await polled(found)
    assert (ids(items), refused) == (["1"], 8)


async def test_answers_of_another_form_are_refused() -> None:
    bodies = (b"", b"no json", b"[" * 100_000, b'{"ships": 5}', b"null", b'"text"', b"\xff\xfe")
    for body in bodies:
        with http_server(always(Answered(200, body))) as base:
            async with driver(base, items="$.ships") as found:
                with pytest.raises(ProviderUnavailable):
                    await polled(found)
    for following in ({"a": 1}, [1], 1.5, True):
        with http_server(always(answered({"ships": [], "next": following}))) as base:
            async with driver(base, items="$.ships", paging="next", next="$.next") as found:
                with pytest.raises(ProviderUnavailable):
                    await polled(found)


async def test_a_next_page_on_a_private_address_is_refused() -> None:
    for target in ("http://10.0.0.1/", "http://169.254.169.254/", "file:///etc/passwd"):
        with http_server(always(answered({"ships": [], "next": target}))) as base:
            async with driver(base, items="$.ships", paging="next", next="$.next") as found:
                with pytest.raises(ProviderUnavailable, match=r"not allowed|not valid"):
                    await polled(found)


async def test_times_that_are_none_are_left_out() -> None:
    times: list[Any] = [None, "yesterday", "2026-01-01", True, 10**400, "2026-01-01T00:00:05+01:00", {}]
    rows = [ship(number, changed=time) for number, time in enumerate(times)]
    with http_server(always(answered(rows))) as base:
        async with driver(base, updated="$.changed", since_parameter="after") as found:
            items, cursor, refused = await polled(found)
    assert (len(items), refused, cursor) == (7, 0, {"since": "2026-01-01T00:00:05+01:00"})


def test_options_that_are_wrong_are_named() -> None:
    for options, message in (
        ({"paging": "next"}, "set next"),
        ({"next": "$.a"}, "set next"),
        ({"paging": "page"}, "set page_parameter"),
        ({"since_parameter": "a"}, "needs updated"),
        ({"first_page": 0}, "first_page"),
        ({"items": "ships"}, r"sources\.options\.items"),
        ({"id": None}, r"sources\.options\.id"),
    ):
        with pytest.raises(ConfigError, match=message):
            create({"url": "https://a", "id": "$.id", **options})
