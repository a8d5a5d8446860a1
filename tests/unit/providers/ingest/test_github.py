"""Driver github against a server that answers as GitHub does."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from astrocyte.errors import ConfigError, FailedPrecondition, ProviderUnavailable, RateLimited
from astrocyte.providers.ingest.github import create
from external.polled import (
    LOCAL,
    TOKEN,
    Answered,
    Github,
    always,
    answered,
    github_server,
    http_server,
    ids,
    polled,
    secondary_limit,
    until_limited,
)

DAY = 1_700_000_000


@pytest.fixture
def github() -> Github:
    return Github()


@pytest.fixture
def base(github: Github) -> Iterator[str]:
    with github_server(github) as address:
        yield address


@asynccontextmanager
async def driver(base: str, **options: Any) -> AsyncIterator[Any]:
    auth = {"token": TOKEN}
    made = create({"url": base, "path": "octo/ships", "auth": auth, "allow_networks": LOCAL, **options})
    try:
        yield made
    finally:
        await made.close()


async def test_issues_become_items_and_pull_requests_do_not(github: Github, base: str) -> None:
    github.issue(1, "Leak", DAY, "The hull of ship 1 leaks.")
    github.issue(2, "Fix", DAY + 1, pull_request={"url": "https://api.github.com/pulls/2"})
    github.issue(3, "Paint", DAY + 2, None, state="closed")
    async with driver(base) as found:
        items, cursor, refused = await polled(found)
    assert (ids(items), refused) == (["issues/10001", "issues/10003"], 0)
    assert items[0].message == {
        "content": "Leak\n\nThe hull of ship 1 leaks.",
        "source": "https://github.com/octo/ships/issues/1",
        "occurred_at": "2023-11-14T22:13:20Z",
        "session_id": "octo/ships#1",
        "speaker": "ann",
        "tags": ["bug"],
        "metadata": {
            "repository": "octo/ships",
            "issue": "1",
            "updated_at": "2023-11-14T22:13:20Z",
            "author": "ann",
            "title": "Leak",
            "state": "open",
        },
    }
    assert items[1].message["content"] == "Paint"
    assert cursor["issues"]["since"] == "2023-11-14T22:13:22Z"
    assert github.asked[0].headers["x-github-api-version"] == "2022-11-28"
    assert github.asked[0].headers["accept"] == "application/vnd.github+json"


async def test_a_poll_without_news_is_a_304_that_counts_against_no_limit(github: Github, base: str) -> None:
    github.issue(1, "Leak", DAY)
    github.remaining = 10
    async with driver(base) as found:
        _, cursor, _ = await polled(found)
        _, cursor, _ = await polled(found, cursor)
        assert "etag" in cursor["issues"]
        before = github.remaining
        items, again, _ = await polled(found, cursor)
        assert (items, again, github.remaining) == ([], cursor, before)
        # An issue that changes in the same second is found nevertheless.
        github.change(github.issues[0], DAY, title="Large leak")
        items, _, _ = await polled(found, cursor)
        assert items[0].message["content"] == "Large leak"


async def test_all_pages_are_read_in_the_order_of_changes(github: Github, base: str) -> None:
    for number in range(250):
        github.issue(number, f"Ship {number}", DAY + number)
    async with driver(base) as found:
        items, cursor, _ = await polled(found)
        assert list(dict.fromkeys(ids(items))) == [f"issues/{10_000 + number}" for number in range(250)]
        github.change(github.issues[7], DAY + 900)
        items, _, _ = await polled(found, cursor)
        # The last one comes again, since its second may not be over.
        assert ids(items) == ["issues/10249", "issues/10007"]


async def test_a_change_between_pages_leaves_no_issue_out(github: Github, base: str) -> None:
    for number in range(250):
        github.issue(number, f"Ship {number}", DAY + number)
    async with driver(base) as found:
        seen = set()
        async for page in found.pages({}, 100):
            seen |= set(ids(page.items))
            if len(seen) == 100:
                # They move to the end, and all behind them by ten places.
                for issue in github.issues[:10]:
                    github.change(issue, DAY + 800)
    assert seen == {f"issues/{10_000 + number}" for number in range(250)}


async def test_many_issues_of_one_second_are_read_by_the_header_link(github: Github, base: str) -> None:
    for number in range(250):
        github.issue(number, f"Ship {number}", DAY)
    github.issue(300, "Last", DAY + 1)
    async with driver(base) as found:
        items, _, _ = await polled(found)
    assert set(ids(items)) == {f"issues/{10_000 + number}" for number in (*range(250), 300)}
    assert any(asked.path == "/repositories/7/issues" for asked in github.asked)


async def test_comments_of_issues_are_items_of_the_same_session(github: Github, base: str) -> None:
    github.issue(1, "Leak", DAY)
    github.comment(1, 1, "It is the pump.", DAY + 5)
    github.comment(2, 2, "Looks good.", DAY + 6, kind="pull")
    async with driver(base, comments=True) as found:
        items, cursor, _ = await polled(found)
        assert ids(items) == ["issues/10001", "comments/20001"]
        assert (items[1].message["content"], items[1].message["session_id"]) == ("It is the pump.", "octo/ships#1")
        assert items[1].message["speaker"] == "bob"
        github.comment(3, 1, "Fixed.", DAY + 9)
        items, _, _ = await polled(found, cursor)
        assert "comments/20003" in ids(items)


async def test_state_labels_and_since_are_asked_for(github: Github, base: str) -> None:
    github.issue(1, "Old", DAY)
    github.issue(2, "Closed", DAY + 100, state="closed")
    github.issue(3, "Other", DAY + 100, labels=[{"name": "docs"}])
    github.issue(4, "Wanted", DAY + 100)
    async with driver(base, state="open", labels=["bug"], since="2023-11-14T22:14:00+00:00") as found:
        items, _, _ = await polled(found)
    assert ids(items) == ["issues/10004"]


# By the clock of the service, which is years behind this one.
USED_UP = {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": f"{DAY + 90}", "Date": "Tue, 14 Nov 2023 22:13:20 GMT"}


@pytest.mark.parametrize(
    ("limit", "seconds"),
    [
        (secondary_limit(403, 7), 7),
        (secondary_limit(429, 8), 8),
        (Answered(403, b'{"message": "API rate limit exceeded for user ID 1."}', USED_UP), 90),
        (Answered(403, b'{"message": "You have exceeded a secondary rate limit"}'), 60),
        (Answered(429), 60),
        (Answered(503, b"", {"Retry-After": "5"}), 5),
    ],
)
async def test_limits_say_how_long_to_wait(github: Github, base: str, limit: Answered, seconds: float) -> None:
    github.issue(1, "Leak", DAY)
    github.limits = {1: limit}
    async with driver(base) as found:
        with pytest.raises(RateLimited) as caught:
            await polled(found)
        assert caught.value.retry_after == seconds
        assert len((await polled(found))[0]) == 1


async def test_a_limit_that_is_used_up_stops_a_poll_after_the_page(github: Github, base: str) -> None:
    for number in range(150):
        github.issue(number, f"Ship {number}", DAY + number)
    github.remaining = 1
    async with driver(base) as found:
        pages = await until_limited(found, 100)
        assert (len(pages), len(github.asked)) == (1, 1)
        github.remaining = None
        items, _, _ = await polled(found, dict(pages[0].cursor))
        assert len(items) == 51


async def test_a_wrong_token_or_repository_is_refused_with_its_status(github: Github, base: str) -> None:
    async with driver(base, auth={"token": "other"}) as found:
        with pytest.raises(FailedPrecondition) as caught:
            await polled(found)
        assert caught.value.metadata["status"] == "401"
    async with driver(base, path="octo/none") as found:
        with pytest.raises(FailedPrecondition) as caught:
            await polled(found)
        assert caught.value.metadata["status"] == "404"


HOSTILE_ROWS: list[Any] = [
    {},
    {"id": True, "updated_at": 5, "html_url": []},
    {"id": "x", "updated_at": "2023-11-14T22:13:20Z", "html_url": "https://a/issues/1"},
]


async def test_answers_of_another_form_are_refused() -> None:
    bodies: list[Any] = [{"message": "hello"}, "text", 5, None, [1, 2], [[]], [{}] * 101]
    for body in bodies:
        with http_server(always(answered(body))) as base:
            async with driver(base) as found:
                with pytest.raises(ProviderUnavailable):
                    await polled(found)
    with http_server(always(answered(HOSTILE_ROWS))) as base:
        async with driver(base) as found:
            assert await polled(found) == ([], {"issues": {"since": "2023-11-14T22:13:20Z"}}, 3)


async def test_fields_of_other_types_make_items_that_are_refused_later() -> None:
    row = {
        "id": 1,
        "updated_at": "x",
        "html_url": "https://a/issues/1",
        "title": {"a": 1},
        "body": 5,
        "labels": 7,
        "user": [],
        "created_at": {},
    }
    with http_server(always(answered([row]))) as base:
        async with driver(base) as found:
            (item,), _, _ = await polled(found)
    assert item.message["content"] == {"a": 1}


def test_options_that_are_wrong_are_named() -> None:
    for options, message in (
        ({"path": "octo"}, r"sources\.options\.path"),
        ({"path": "a/../b"}, r"sources\.options\.path"),
        ({"stat": "all"}, r"sources\.options\.stat is not an option; did you mean state"),
        ({"since": "2023-11-14"}, "time zone"),
        ({"labels": ["a,b"]}, "without commas"),
        ({"url": "ftp://a"}, "http"),
        ({"url": "http://a", "auth": {"token": "t"}}, "unencrypted"),
        ({"headers": {"Host": "b"}}, "set by the server"),
        ({"tls_roots_file": "/nowhere"}, "tls_roots_file"),
    ):
        with pytest.raises(ConfigError, match=message):
            create({"path": "octo/ships", **options})
