"""Driver ``json``: items of any HTTP endpoint that answers with JSON."""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncIterator, Mapping
from datetime import datetime
from typing import Annotated, Any, Literal

import httpx
from pydantic import Field, model_validator

from astrocyte.config.extraction import JSON_PATH, value_at
from astrocyte.errors import FailedPrecondition
from astrocyte.providers.ingest.protocols import PollItem, PollPage
from astrocyte.providers.ingest.requests import HttpOptions, PollClient, next_link
from astrocyte.providers.options import read_options

ROOT = "$"
ItemPath = Annotated[str, Field(max_length=512, pattern=JSON_PATH.pattern)]
ParameterName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.\[\]-]{1,128}$")]
# A service that always names a next page would be asked for ever.
MOST_PAGES = 10_000
MOST_ID_CHARS = 4_096


class JsonOptions(HttpOptions):
    """Options of the driver, from the keys of the source and its ``options``."""

    items: str = Field(ROOT, max_length=512, pattern=rf"^(\$|{JSON_PATH.pattern})$")
    id: ItemPath
    updated: ItemPath | None = None
    paging: Literal["none", "link", "next", "cursor", "page"] = "none"
    next: ItemPath | None = None
    page_parameter: ParameterName | None = None
    first_page: int = Field(1, ge=0)
    size_parameter: ParameterName | None = None
    since_parameter: ParameterName | None = None

    @model_validator(mode="after")
    def _check_paging(self) -> JsonOptions:
        if (self.next is not None) != (self.paging in {"next", "cursor"}):
            raise ValueError("set next with the paging next or cursor, and only with these")
        if (self.page_parameter is not None) != (self.paging in {"cursor", "page"}):
            raise ValueError("set page_parameter with the paging cursor or page, and only with these")
        if self.since_parameter is not None and self.updated is None:
            raise ValueError("since_parameter needs updated, the path of the time that is sent")
        if self.paging != "page" and self.first_page != 1:
            raise ValueError("first_page has an effect with the paging page only")
        return self


class JsonEndpoint:
    """Implements `PollDriver`; see there for what each method does.

    A cursor has the latest time of the items that are durable (``since``), the page to go on with in the middle of a
    poll (``at``), and the latest time before it (``latest``), from which the next poll begins.
    """

    def __init__(self, options: JsonOptions, client: PollClient | None = None) -> None:
        self._options = options
        self._client = client or PollClient(options, "application/json")

    @property
    def place(self) -> str:
        """The address and the list in it."""
        # A secret can be in it, and the store keeps it.
        return hashlib.sha256(f"{self._options.address} {self._options.items}".encode()).hexdigest()

    async def open(self) -> None:
        """Nothing to prepare."""

    async def pages(self, cursor: Mapping[str, Any], limit: int) -> AsyncIterator[PollPage]:
        """All pages; those before the page of the cursor are left out."""
        since, at, latest = cursor.get("since"), cursor.get("at"), cursor.get("latest", cursor.get("since"))
        tag = cursor.get("etag")
        for number in range(MOST_PAGES):
            url, again = self._address(since, at, limit), number == 0 and at is not None
            try:
                reply = await self._client.get(url, {"If-None-Match": tag} if tag else None)
            except FailedPrecondition:
                if not again:
                    raise
                # A page is not kept for ever: the poll begins anew, and knows what it had.
                at, latest = None, since
                continue
            if reply.status == httpx.codes.NOT_MODIFIED:
                return
            document = self._document(reply.body)
            rows = self._rows(document)
            items = [self._item(row) for row in rows]
            latest = _latest([latest, *(self._time(row) for row in rows)])
            at = self._next(url, document, dict(reply.headers), at, rows)
            done = at is None
            after: dict[str, Any] = {"since": latest if done else since}
            if not done:
                after |= {"at": at, "latest": latest}
            elif self._keeps_tag(since, latest) and (answered := reply.headers.get("etag")):
                after["etag"] = answered
            found = [item for item in items if item is not None]
            # All but the last part keep the cursor before the page, which a crash repeats.
            for start in range(0, max(len(found), 1), limit):
                last = start + limit >= len(found)
                refused = len(items) - len(found) if last else 0
                yield PollPage(found[start : start + limit], after if last else cursor, refused)
            cursor = after
            if done:
                return
        raise self._client.failure(f"has more than {MOST_PAGES} pages")

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()

    def _keeps_tag(self, since: object, latest: object) -> bool:
        """True if the next poll asks for the same address as this one, so that the tag of its answer holds."""
        return self._options.paging == "none" and (self._options.since_parameter is None or since == latest)

    def _address(self, since: object, at: object, limit: int) -> str:
        options = self._options
        if options.paging in {"link", "next"} and at is not None:
            return str(at)
        url = httpx.URL(options.address)
        parameters: dict[str, str] = {}
        if options.since_parameter is not None and since is not None:
            parameters[options.since_parameter] = str(since)
        if options.size_parameter is not None:
            parameters[options.size_parameter] = str(limit)
        if options.page_parameter is not None and (at is not None or options.paging == "page"):
            parameters[options.page_parameter] = str(options.first_page if at is None else at)
        return str(url.copy_merge_params(parameters))

    def _next(
        self, url: str, document: object, headers: Mapping[str, str], at: object, rows: list[object]
    ) -> str | int | None:
        """The page after this one; None after the last."""
        options = self._options
        match options.paging:
            case "link":
                link = next_link(headers)
                return None if link is None else self._client.joined(url, link)
            case "next" | "cursor":
                _, value = value_at(document, options.next or "")
                if value is None or value is False or value == "":
                    return None
                if not isinstance(value, str | int) or isinstance(value, bool):
                    raise self._client.failure("names the next page with something else than a text or a number")
                return value if options.paging == "cursor" else self._client.joined(url, str(value))
            case "page":
                page = at if isinstance(at, int) else options.first_page
                return page + 1 if rows else None
            case _:
                return None

    def _document(self, body: bytes) -> object:
        try:
            return json.loads(body)
        except (ValueError, RecursionError):
            raise self._client.failure("answered with something else than JSON") from None

    def _rows(self, document: object) -> list[object]:
        path = self._options.items
        rows = document if path == ROOT else value_at(document, path)[1]
        if not isinstance(rows, list):
            raise self._client.failure("answered without a list of items; see items")
        return rows

    def _item(self, row: object) -> PollItem | None:
        """An item; None if it is no object, or has no id."""
        if not isinstance(row, dict):
            return None
        _, item_id = value_at(row, self._options.id)
        if not isinstance(item_id, str | int) or isinstance(item_id, bool) or len(str(item_id)) > MOST_ID_CHARS:
            return None
        updated = self._time(row)
        try:
            digest = hashlib.sha256(json.dumps(row, sort_keys=True).encode()).hexdigest()
        except RecursionError:
            return None
        return PollItem(str(item_id), digest if updated is None else str(updated), row)

    def _time(self, row: object) -> str | int | float | None:
        """The time of an item as the service writes it; None if there is none."""
        if self._options.updated is None:
            return None
        _, value = value_at(row, self._options.updated)
        return value if _instant(value) is not None else None  # type: ignore[return-value]  # a text or a number then


def _latest(times: list[Any]) -> Any:  # noqa: ANN401 - as the service writes times
    found = [time for time in times if _instant(time) is not None]
    return max(found, key=lambda time: _instant(time) or 0.0, default=None)


def _instant(value: object) -> float | None:
    """Seconds since 1970 of a time with a zone, or a number as it is; None for anything else."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        # NaN is not even equal to itself.
        return float(value) if value == value and abs(value) < 1e18 else None  # noqa: PLR0124, PLR2004
    if not isinstance(value, str):
        return None
    try:
        time = datetime.fromisoformat(value)
        return time.timestamp() if time.tzinfo is not None else None
    except (ValueError, OverflowError):
        return None


def create(options: Mapping[str, Any]) -> JsonEndpoint:
    """The driver of these options.

    Raises:
        ConfigError: They cannot be used.
    """
    return JsonEndpoint(read_options(JsonOptions, options, "sources.options"))
