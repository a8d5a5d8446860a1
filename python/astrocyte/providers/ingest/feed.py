"""Driver ``rss``: entries of an RSS or Atom feed."""

from __future__ import annotations

import asyncio
import hashlib
import json
from calendar import timegm
from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime
from io import BytesIO
from typing import Any

import feedparser
import httpx

from astrocyte.providers.http.html_text import text_of
from astrocyte.providers.ingest.fields import clean, label, value, values
from astrocyte.providers.ingest.protocols import PollItem, PollPage
from astrocyte.providers.ingest.requests import HttpOptions, PollClient
from astrocyte.providers.options import read_options

ACCEPT = "application/atom+xml, application/rss+xml, application/rdf+xml, application/xml;q=0.9, */*;q=0.8"
# Headers of an answer, and of the request that asks whether it is still the same.
TAGS = (("etag", "If-None-Match"), ("last-modified", "If-Modified-Since"))
# More than readers of feeds keep.
MOST_ENTRIES = 10_000
MOST_TAGS = 32
MOST_TAG_CHARS = 128


class RssOptions(HttpOptions):
    """Options of the driver, from the keys of the source and its ``options``."""


class Feed:
    """Implements `PollDriver`; see there for what each method does.

    A feed has the last entries only: what comes and goes between two polls is never seen.
    """

    def __init__(self, options: RssOptions, client: PollClient | None = None) -> None:
        self._options = options
        self._client = client or PollClient(options, ACCEPT)

    @property
    def place(self) -> str:
        """The address."""
        # A secret can be in it, and the store keeps it.
        return hashlib.sha256(self._options.address.encode()).hexdigest()

    async def open(self) -> None:
        """Nothing to prepare."""

    async def pages(self, cursor: Mapping[str, Any], limit: int) -> AsyncIterator[PollPage]:
        """The entries of the feed, the newest last; none if the feed is unchanged."""
        headers = {asks: str(cursor[tag]) for tag, asks in TAGS if cursor.get(tag)}
        reply = await self._client.get(self._options.address, headers)
        if reply.status == httpx.codes.NOT_MODIFIED:
            return
        # Parsing takes seconds for the largest answers.
        items = await asyncio.to_thread(entries, reply.body, reply.headers.get("content-type", ""))
        if items is None:
            raise self._client.failure("answered with something else than a feed")
        found = [item for item in reversed(items[:MOST_ENTRIES]) if item is not None]
        after = {tag: reply.headers[tag] for tag, _ in TAGS if tag in reply.headers}
        for start in range(0, max(len(found), 1), limit):
            last = start + limit >= len(found)
            # All but the last part keep the cursor before them, so that a crash repeats the feed.
            yield PollPage(
                found[start : start + limit], after if last else cursor, len(items) - len(found) if last else 0
            )

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()


def entries(body: bytes, content_type: str) -> list[PollItem | None] | None:
    """The entries of a feed, None in place of one without text; None if it is no feed. Blocks."""
    # Text is made of the markup here, so that nothing has to be made safe to show: that takes quadratic time.
    parsed = feedparser.parse(
        BytesIO(body), response_headers={"content-type": content_type}, sanitize_html=False, resolve_relative_uris=False
    )
    if not parsed.get("version") and not parsed.get("entries"):
        return None
    feed = parsed.get("feed") or {}
    return [_item(entry, feed) for entry in parsed.get("entries") or []]


def _item(entry: dict[str, Any], feed: Mapping[str, Any]) -> PollItem | None:
    html = _html(entry)
    text, title = clean(text_of(html)), clean(text_of(_string(entry.get("title"))))
    if not text and not title:
        return None
    link = _string(entry.get("link"))
    found = [_string(tag.get("term")).strip() for tag in entry.get("tags") or () if isinstance(tag, Mapping)]
    tags = [tag for tag in dict.fromkeys(found) if 0 < len(tag) <= MOST_TAG_CHARS and tag.isprintable()][:MOST_TAGS]
    # Not by the entry's own method, which looks for one time in place of the other.
    times = {name: _time(dict.get(entry, f"{name}_parsed")) for name in ("published", "updated")}
    message: dict[str, Any] = {
        "content": title if not text or text == title else f"{title}\n\n{text}".strip(),
        "tags": tags,
        "occurred_at": times["published"] or times["updated"],
        "source": label(link),
        "metadata": values(feed=feed.get("title"), author=entry.get("author"), title=title, link=link),
    }
    shown = hashlib.sha256(json.dumps(message, sort_keys=True).encode()).hexdigest()
    item_id = _string(entry.get("id")) or link or shown
    document = {
        "id": item_id,
        "title": title,
        "text": text,
        "html": html,
        "link": link,
        "author": _string(entry.get("author")),
        "tags": tags,
        "feed": {"title": value(feed.get("title")), "link": _string(feed.get("link"))},
        **times,
    }
    return PollItem(item_id, shown, document, message)


def _html(entry: Mapping[str, Any]) -> str:
    """The longest text of an entry; a feed may have a summary besides it."""
    contents = [_string(content.get("value")) for content in entry.get("content") or () if isinstance(content, Mapping)]
    return max([*contents, _string(entry.get("summary"))], key=len)


def _string(text: object) -> str:
    return text if isinstance(text, str) else ""


def _time(parsed: Any) -> str | None:  # noqa: ANN401 - as the parser has it
    """A time in UTC as ISO 8601; None if there is none."""
    try:
        return None if parsed is None else datetime.fromtimestamp(timegm(parsed), UTC).isoformat()
    except (TypeError, ValueError, OverflowError, OSError):
        return None


def create(options: Mapping[str, Any]) -> Feed:
    """The driver of these options.

    Raises:
        ConfigError: They cannot be used.
    """
    return Feed(read_options(RssOptions, options, "sources.options"))
