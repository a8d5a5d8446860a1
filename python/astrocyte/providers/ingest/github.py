"""Driver ``github``: issues of a repository, and their comments, from GitHub or a GitHub Enterprise server."""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncIterator, Mapping
from datetime import datetime
from typing import Any, Literal
from urllib.parse import quote, urlencode

import httpx
from pydantic import Field, SecretStr, field_validator

from astrocyte.errors import RateLimited
from astrocyte.providers.ingest.protocols import PollItem, PollPage
from astrocyte.providers.ingest.requests import DEFAULT_WAIT_SECONDS, HttpOptions, PollClient, next_link, reset_of
from astrocyte.providers.options import read_options

# The largest page of the service.
MOST_PER_PAGE = 100
ISSUES, COMMENTS = "issues", "comments"
# The version of the service's interface that this module is written for.
VERSION = {"X-GitHub-Api-Version": "2022-11-28"}


class GithubOptions(HttpOptions):
    """Options of the driver, from the keys of the source and its ``options``."""

    url: SecretStr = SecretStr("https://api.github.com")
    path: str = Field(pattern=r"^[A-Za-z0-9_.-]{1,100}/[A-Za-z0-9_.-]{1,100}$")
    state: Literal["open", "closed", "all"] = "all"
    labels: tuple[str, ...] = ()
    since: datetime | None = None
    comments: bool = False

    @field_validator("since")
    @classmethod
    def _check_since(cls, since: datetime | None) -> datetime | None:
        if since is not None and since.tzinfo is None:
            raise ValueError("expected a time with a time zone")
        return since

    @field_validator("labels")
    @classmethod
    def _check_labels(cls, labels: tuple[str, ...]) -> tuple[str, ...]:
        # The service separates them by it.
        if any("," in label for label in labels):
            raise ValueError("expected labels without commas")
        return labels


class GithubIssues:
    """Implements `PollDriver`; see there for what each method does.

    Items are asked for in the order of their last update, from the last one known on. A page is not asked for by its
    number but by the time of the last item before it: an item that is updated meanwhile moves to the end, and pages by
    number would then leave one out. Only where a whole page has one time, the next one is that of the header Link.
    """

    def __init__(self, options: GithubOptions, client: PollClient | None = None) -> None:
        self._options = options
        self._client = client or PollClient(options, "application/vnd.github+json")
        self._base = options.address.rstrip("/")

    @property
    def place(self) -> str:
        """The repository."""
        options = self._options
        return f"{self._base} {options.path} {options.state} {','.join(options.labels)} {options.since or ''}"

    async def open(self) -> None:
        """Nothing to prepare."""

    async def pages(self, cursor: Mapping[str, Any], limit: int) -> AsyncIterator[PollPage]:
        """Issues, then comments."""
        cursors = dict(cursor)
        for part in (ISSUES, COMMENTS) if self._options.comments else (ISSUES,):
            async for items, after, refused in self._part(part, cursors.get(part) or {}, min(limit, MOST_PER_PAGE)):
                cursors[part] = after
                yield PollPage(items, dict(cursors), refused)

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()

    async def _part(
        self, part: str, cursor: Mapping[str, Any], per_page: int
    ) -> AsyncIterator[tuple[list[PollItem], dict[str, Any], int]]:
        since, tag = cursor.get("since"), cursor.get("etag")
        url = first = self._listing(part, since, per_page)
        while True:
            reply = await self._client.get(url, {**VERSION, **({"If-None-Match": tag} if tag else {})})
            if reply.status == httpx.codes.NOT_MODIFIED:
                return
            rows = self._rows(reply.body, per_page)
            link = next_link(reply.headers)
            last = next((row["updated_at"] for row in reversed(rows) if isinstance(row.get("updated_at"), str)), since)
            # A tag is that of one address: it is of use where the next poll asks for the same.
            tag = reply.headers.get("etag") if link is None and last == since and url == first else None
            items = [_item(row, part, self._options.path) for row in rows]
            found = [item for item in items if isinstance(item, PollItem)]
            yield found, {"since": last, **({"etag": tag} if tag else {})}, items.count(None)
            if link is None:
                return
            if reply.headers.get("x-ratelimit-remaining", "").strip() == "0":
                # The next request would be refused.
                wait = reset_of(reply.headers, self._client.now())
                wait = DEFAULT_WAIT_SECONDS if wait is None else wait
                raise RateLimited("the limit of requests is used up", retry_after=wait)
            if last != since:
                since, tag = last, None
                url = first = self._listing(part, since, per_page)
            else:
                url = self._client.joined(url, link)

    def _listing(self, part: str, since: str | None, per_page: int) -> str:
        options = self._options
        query: dict[str, str | int] = {"sort": "updated", "direction": "asc", "per_page": per_page}
        if part == ISSUES:
            query["state"] = options.state
            if options.labels:
                query["labels"] = ",".join(options.labels)
        if since is None and options.since is not None:
            since = options.since.isoformat()
        if since is not None:
            query["since"] = since
        listing = "issues" if part == ISSUES else "issues/comments"
        return f"{self._base}/repos/{quote(options.path)}/{listing}?{urlencode(query)}"

    def _rows(self, body: bytes, per_page: int) -> list[dict[str, Any]]:
        try:
            rows = json.loads(body)
        except (ValueError, RecursionError):
            rows = None
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            raise self._client.failure("answered with something else than a list of issues")
        if len(rows) > per_page:
            raise self._client.failure("answered with more items than it was asked for")
        return rows


def _item(row: Mapping[str, Any], part: str, repository: str) -> PollItem | Literal[False] | None:
    """An issue or a comment; False if it belongs to a pull request, None if it is neither."""
    address, user = row.get("html_url"), row.get("user")
    updated, number = row.get("updated_at"), row.get("id")
    if not isinstance(address, str) or not isinstance(updated, str) or not isinstance(number, int):
        return None
    if "pull_request" in row or "/pull/" in address:
        return False
    author = user.get("login") if isinstance(user, dict) else None
    issue = address.partition("#")[0].rpartition("/")[2]
    message: dict[str, Any] = {
        "content": _text(row, part),
        "source": address,
        "occurred_at": row.get("created_at"),
        "session_id": f"{repository}#{issue}",
        "tags": _labels(row),
        "metadata": {"repository": repository, "issue": issue, "updated_at": updated, "author": author},
    }
    if isinstance(author, str) and author:
        message["speaker"] = author
    if part == ISSUES:
        message["metadata"] |= {"title": row.get("title"), "state": row.get("state")}
    # Times of the service are whole seconds, in which an item can change twice.
    shown = json.dumps(message, sort_keys=True).encode()
    return PollItem(f"{part}/{number}", f"{updated} {hashlib.sha256(shown).hexdigest()}", row, message)


def _text(row: Mapping[str, Any], part: str) -> object:
    """The text of an item; of an issue with its title."""
    title, body = row.get("title"), row.get("body")
    if part == COMMENTS:
        return body
    whole = isinstance(title, str) and isinstance(body, str) and bool(body.strip())
    return f"{title}\n\n{body}" if whole else title


def _labels(row: Mapping[str, Any]) -> list[str]:
    labels = row.get("labels")
    found = labels if isinstance(labels, list) else []
    names = [label.get("name") if isinstance(label, dict) else label for label in found]
    return [name for name in names if isinstance(name, str) and name]


def create(options: Mapping[str, Any]) -> GithubIssues:
    """The driver of these options.

    Raises:
        ConfigError: They cannot be used.
    """
    return GithubIssues(read_options(GithubOptions, options, "sources.options"))
