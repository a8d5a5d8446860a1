"""Driver rss: feeds of both kinds, entries that change, and answers that are hostile."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from html import escape
from typing import Any

import pytest

from astrocyte.errors import ConfigError, ProviderUnavailable, RateLimited
from astrocyte.providers.ingest.feed import create, entries
from external.polled import LOCAL, Answered, Asked, always, http_server, ids, polled

RSS = """<?xml version="1.0" encoding="utf-8"?>
<rss version="2.0" xmlns:content="http://purl.org/rss/1.0/modules/content/"><channel>
<title>Port news</title><link>https://port.example/</link>
{items}
</channel></rss>"""
ATOM = """<?xml version="1.0" encoding="utf-8"?>
<feed xmlns="http://www.w3.org/2005/Atom"><title>Port log</title><id>urn:port</id>
<entry><id>urn:port:2</id><title>Second &amp; last</title><updated>2026-01-02T10:00:00+02:00</updated>
<link href="https://port.example/2"/><author><name>Ann</name></author><category term="crane"/>
<content type="html">&lt;p&gt;Crane 2 is &lt;b&gt;broken&lt;/b&gt;.&lt;/p&gt;&lt;p&gt;Again.&lt;/p&gt;</content></entry>
<entry><id>urn:port:1</id><title>First</title><updated>2026-01-01T10:00:00Z</updated>
<summary>Crane 1 works.</summary></entry>
</feed>"""


def rss(*items: str) -> bytes:
    return RSS.format(items="".join(f"<item>{item}</item>" for item in items)).encode()


def entry(number: int, text: str = "") -> str:
    text = text or f"&lt;p&gt;Ship {number} &lt;i&gt;arrived&lt;/i&gt;.&lt;/p&gt;"
    return (
        f"<title>Ship {number}</title><guid>ship-{number}</guid><description>{text}</description>"
        f"<link>https://port.example/{number}</link><category>arrival</category>"
        f"<pubDate>Tue, 14 Nov 2023 22:13:{number:02} GMT</pubDate>"
    )


@asynccontextmanager
async def driver(base: str, **options: Any) -> AsyncIterator[Any]:
    made = create({"url": f"{base}/feed", "allow_networks": LOCAL, **options})
    try:
        yield made
    finally:
        await made.close()


async def test_entries_of_rss_come_oldest_first_as_text() -> None:
    items: list[Any] = []
    with http_server(always(Answered(200, rss(entry(2), entry(1))))) as base:
        async with driver(base) as found:
            for limit in (1, 10):
                items, _, refused = await polled(found, limit=limit)
                assert (ids(items), refused) == (["ship-1", "ship-2"], 0)
    assert items[0].message == {
        "content": "Ship 1\n\nShip 1 arrived.",
        "tags": ["arrival"],
        "occurred_at": "2023-11-14T22:13:01+00:00",
        "source": "https://port.example/1",
        "metadata": {"feed": "Port news", "title": "Ship 1", "link": "https://port.example/1"},
    }
    assert items[0].document["feed"] == {"title": "Port news", "link": "https://port.example/"}


async def test_entries_of_atom() -> None:
    with http_server(always(Answered(200, ATOM.encode()))) as base:
        async with driver(base) as found:
            first, second = (await polled(found))[0]
    assert (first.item_id, first.message["content"]) == ("urn:port:1", "First\n\nCrane 1 works.")
    assert second.message["content"] == "Second & last\n\nCrane 2 is broken.\n\nAgain."
    assert second.message["occurred_at"] == "2026-01-02T08:00:00+00:00"
    assert (second.message["tags"], second.message["metadata"]["author"]) == (["crane"], "Ann")


async def test_a_feed_that_is_as_it_was_is_not_sent_again() -> None:
    tags = {"ETag": '"7"', "Last-Modified": "Tue, 14 Nov 2023 22:13:20 GMT"}

    def answer(asked: Asked) -> Answered:
        if asked.headers.get("if-none-match") == '"7"' and asked.headers.get("if-modified-since"):
            return Answered(304)
        return Answered(200, rss(entry(1)), tags)

    with http_server(answer) as base:
        async with driver(base) as found:
            items, cursor, _ = await polled(found)
            assert (len(items), cursor) == (1, {"etag": '"7"', "last-modified": tags["Last-Modified"]})
            assert await polled(found, cursor) == ([], cursor, 0)


async def test_an_entry_that_changed_has_another_version() -> None:
    versions = []
    for body in (rss(entry(1)), rss(entry(2), entry(1)), rss(entry(1, "Ship 1 sank."))):
        with http_server(always(Answered(200, body))) as base:
            async with driver(base) as found:
                versions.append((await polled(found))[0][0].version)
    assert versions[0] == versions[1] != versions[2]


async def test_limits_and_other_answers() -> None:
    for answer, error in (
        (Answered(429, b"", {"Retry-After": "9"}), RateLimited),
        (Answered(200, b"<html><body>Log in</body></html>"), ProviderUnavailable),
        (Answered(200, b""), ProviderUnavailable),
        (Answered(200, b"{}"), ProviderUnavailable),
        (Answered(200, b"\x00\xff" * 1_000), ProviderUnavailable),
        (Answered(200, rss(entry(1, "x" * 100_000))), ProviderUnavailable),
    ):
        with http_server(always(answer)) as base:
            async with driver(base, max_response_bytes=50_000) as found:
                with pytest.raises(error):
                    await polled(found)


BOMB = b"""<?xml version="1.0"?><!DOCTYPE rss [<!ENTITY a0 "ha">%s<!ENTITY out SYSTEM "file:///etc/passwd">]>
<rss version="2.0"><channel>
<item><title>&out;</title><guid>1</guid><description>&a30;</description></item>
</channel></rss>
""" % b"".join(b'<!ENTITY a%d "&a%d;&a%d;">' % (number, number - 1, number - 1) for number in range(1, 31))


def test_entities_are_neither_multiplied_nor_read_from_files() -> None:
    for item in entries(BOMB, "") or ():
        assert item is None or ("root:" not in str(item.message) and len(str(item.document)) < 10_000_000)


@pytest.mark.parametrize("unit", ["<!--", "<a ", "<![CDATA[", "<b>", '<a href="', "&#", "<script>"])
def test_hostile_markup_becomes_an_item_or_none(unit: str) -> None:
    (item,) = entries(rss(entry(1, escape(unit * 100_000))), "") or (None,)
    assert item is not None
    assert item.item_id == "ship-1"


def test_entries_without_an_id_or_a_text() -> None:
    no_id, no_text, long = entries(
        rss(
            "<title>Only a title</title>",
            "<guid>5</guid>",
            f"<guid>6</guid><title>{'t' * 2_000}</title><link>https://a/{'b' * 500}</link>"
            f"<category>{'c' * 500}</category>",
        ),
        "",
    ) or (None, None, None)
    assert no_text is None
    assert no_id is not None
    assert long is not None
    assert len(no_id.item_id) == 64
    assert long.message is not None
    assert (long.message["source"], long.message["tags"]) == (None, [])
    assert len(long.message["metadata"]["title"]) == 255


def test_options_that_are_wrong_are_named() -> None:
    for options, message in (
        ({}, r"sources\.options\.url"),
        ({"url": "https://a", "pth": "b"}, "pth is not an option"),
        ({"url": "https://user:pass@a/"}, "no credentials in the address"),
    ):
        with pytest.raises(ConfigError, match=message):
            create(options)
