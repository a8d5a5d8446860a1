"""HTTP servers that poll sources ask: any answers, and one that answers as GitHub does."""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from astrocyte.errors import RateLimited
from astrocyte.providers.ingest.protocols import PollPage

TOKEN = "ghp_test-token"
LOCAL = ["127.0.0.0/8"]


@dataclass(frozen=True)
class Asked:
    """A request: path with query, and headers by lower-case name."""

    target: str
    headers: dict[str, str]

    @property
    def path(self) -> str:
        return urlsplit(self.target).path

    @property
    def query(self) -> dict[str, str]:
        return {name: values[-1] for name, values in parse_qs(urlsplit(self.target).query).items()}


@dataclass(frozen=True)
class Answered:
    """A response."""

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)


Answer = Callable[[Asked], Answered]


def answered(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Answered:
    """A response of JSON."""
    return Answered(status, json.dumps(value).encode(), {"Content-Type": "application/json", **(headers or {})})


def always(answer: Answered) -> Answer:
    """The same response to every request."""
    return lambda _: answer


@contextmanager
def http_server(answer: Answer, asked: list[Asked] | None = None) -> Iterator[str]:
    """A server in a thread; yields its address, and notes what it was asked."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            request = Asked(self.path, {name.lower(): value for name, value in self.headers.items()})
            if asked is not None:
                asked.append(request)
            found = answer(request)
            self.send_response_only(found.status)
            for name, value in {"Date": formatdate(usegmt=True), **found.headers}.items():
                self.send_header(name, value)
            if found.status != 304:
                self.send_header("Content-Length", str(len(found.body)))
            self.end_headers()
            if found.status != 304:
                self.wfile.write(found.body)

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            self.do_GET()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def instant(seconds: int) -> str:
    """A time as GitHub writes it."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class Github:
    """The issues of one repository, listed as GitHub's REST API documents it.

    Order, ``since`` (inclusive), pages with Link, tags, 304 without a count against the limit, and both kinds of
    limits. ``limits`` are answered one after the other, each in place of the request whose number it has.
    """

    def __init__(self, repository: str = "octo/ships") -> None:
        self.repository = repository
        self.issues: list[dict[str, Any]] = []
        self.comments: list[dict[str, Any]] = []
        self.limits: dict[int, Answered] = {}
        self.asked: list[Asked] = []
        self.limited = 0
        self.remaining: int | None = None
        self.base = ""
        self._lock = threading.Lock()

    def issue(self, number: int, title: str, at: int, body: str | None = "", **values: Any) -> dict[str, Any]:
        issue = {
            "id": 10_000 + number,
            "number": number,
            "title": title,
            "body": body,
            "state": "open",
            "user": {"login": "ann"},
            "labels": [{"name": "bug"}],
            "html_url": f"https://github.com/{self.repository}/issues/{number}",
            "created_at": instant(at),
            "updated_at": instant(at),
            **values,
        }
        with self._lock:
            self.issues.append(issue)
        return issue

    def comment(self, number: int, of: int, body: str, at: int, kind: str = "issues") -> dict[str, Any]:
        comment = {
            "id": 20_000 + number,
            "body": body,
            "user": {"login": "bob"},
            "html_url": f"https://github.com/{self.repository}/{kind}/{of}#issuecomment-{number}",
            "created_at": instant(at),
            "updated_at": instant(at),
        }
        with self._lock:
            self.comments.append(comment)
        return comment

    def change(self, issue: dict[str, Any], at: int, **values: Any) -> None:
        with self._lock:
            issue.update(values, updated_at=instant(at))

    def answer(self, asked: Asked) -> Answered:
        with self._lock:
            self.asked.append(asked)
            limit = self.limits.pop(len(self.asked), None)
            if limit is not None:
                self.limited += 1
                return limit
            if asked.headers.get("authorization") != f"Bearer {TOKEN}":
                return answered({"message": "Bad credentials"}, 401)
            return self._listed(asked)

    def _listed(self, asked: Asked) -> Answered:
        owner = f"/repos/{self.repository}"
        lists = {f"{owner}/issues": self.issues, f"{owner}/issues/comments": self.comments}
        # As on GitHub, the next page is named by the id of the repository.
        lists |= {"/repositories/7/issues": self.issues, "/repositories/7/issues/comments": self.comments}
        if asked.path not in lists:
            return answered({"message": "Not Found"}, 404)
        query = asked.query
        rows = [dict(row) for row in lists[asked.path] if row["updated_at"] >= self._since(query)]
        if query.get("state", "open") != "all" and "comments" not in asked.path:
            rows = [row for row in rows if row["state"] == query.get("state", "open")]
        if "labels" in query:
            wanted = set(query["labels"].split(","))
            rows = [row for row in rows if wanted <= {label["name"] for label in row["labels"]}]
        rows.sort(key=lambda row: row[f"{query.get('sort', 'created')}_at"], reverse=query.get("direction") != "asc")
        size, page = min(int(query.get("per_page", 30)), 100), int(query.get("page", 1))
        part = rows[(page - 1) * size : page * size]
        body = json.dumps(part).encode()
        tag = f'W/"{hashlib.sha256(body).hexdigest()}"'
        headers = {"ETag": tag, "Content-Type": "application/json; charset=utf-8"}
        if asked.headers.get("if-none-match") == tag:
            return Answered(304, b"", headers)
        if self.remaining is not None:
            self.remaining -= 1
            headers |= {"X-RateLimit-Remaining": str(self.remaining), "X-RateLimit-Reset": str(int(time.time()) + 1)}
        if page * size < len(rows):
            following = urlencode({**query, "page": page + 1})
            path = "/repositories/7/issues" + ("/comments" if "comments" in asked.path else "")
            headers["Link"] = f'<{self.base}{path}?{following}>; rel="next", <{self.base}{path}?page=99>; rel="last"'
        return Answered(200, body, headers)

    @staticmethod
    def _since(query: dict[str, str]) -> str:
        if "since" not in query:
            return ""
        return instant(int(datetime.fromisoformat(query["since"]).timestamp()))


def primary_limit(seconds: int) -> Answered:
    """The hourly limit is used up: 403, and the time at which it begins anew."""
    return Answered(
        403,
        b'{"message": "API rate limit exceeded for user ID 1."}',
        {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": str(int(time.time()) + seconds)},
    )


def secondary_limit(status: int, seconds: int) -> Answered:
    """Too much at once: 403 or 429, and a time to wait."""
    body = b'{"message": "You have exceeded a secondary rate limit."}'
    return Answered(status, body, {"Retry-After": str(seconds)})


@contextmanager
def github_server(github: Github) -> Iterator[str]:
    """Serve a repository; yields the address."""
    with http_server(github.answer) as base:
        github.base = base
        yield base


async def polled(driver: Any, cursor: dict[str, Any] | None = None, limit: int = 100) -> tuple[list[Any], Any, int]:
    """The items of one poll, the last cursor, and the number of refused ones."""
    items: list[Any] = []
    refused = 0
    after: Any = cursor or {}
    async for page in driver.pages(after, limit):
        assert len(page.items) <= limit
        items += page.items
        refused += page.refused
        # As the store keeps it.
        after = json.loads(json.dumps(page.cursor))
    return items, after, refused


async def until_limited(driver: Any, limit: int) -> list[PollPage]:
    """The pages of a first poll up to a limit, which has to come."""
    pages: list[PollPage] = []
    try:
        async for page in driver.pages({}, limit):
            pages.append(page)  # noqa: PERF401 - the end is an error
    except RateLimited:
        return pages
    raise AssertionError("no limit came")


def ids(items: Sequence[Any]) -> list[str]:
    return [item.item_id for item in items]
