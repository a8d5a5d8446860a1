"""Mailboxes: a real server, a mailbox that is made anew, and servers that are hostile."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from astrocyte.errors import ConfigError, FailedPrecondition
from astrocyte.providers.ingest.imap import create
from external.imap_server import PASSWORD, USER, Imap, imap_server, needs_dovecot
from external.polled import polled
from harness.certificates import certificates
from harness.poll_servers import Gateway, polling_server, wait_until

pytestmark = pytest.mark.process

AUTH = {"type": "basic", "username": USER, "password": PASSWORD}


@pytest.fixture(scope="module")
def imap() -> Iterator[Imap]:
    with imap_server() as found:
        yield found


@pytest.fixture
def mailbox(imap: Imap, request: pytest.FixtureRequest) -> str:
    """An empty mailbox of the test's own."""
    name = f"{request.node.name[:60]} box".replace("[", ".").replace("]", "")
    with imap.login() as session:
        session.create(f'"{name}"')
    return name


def mail(number: int, text: str = "") -> bytes:
    text = text or f"Ship {number} was seen in port {number * 7}."
    return (
        f"Subject: Ship {number}\r\nFrom: Ann <ann@port.example>\r\nMessage-ID: <{number}@port.example>\r\n"
        f"Date: Tue, 14 Nov 2023 22:13:{number % 60:02} +0000\r\n\r\n{text}\r\n"
    ).encode()


@asynccontextmanager
async def driver(imap: Imap, mailbox: str, **options: Any) -> AsyncIterator[Any]:
    values = {"url": imap.tls_url, "path": mailbox, "auth": AUTH, "tls_roots_file": imap.roots, **options}
    made = create(values)
    try:
        yield made
    finally:
        await made.close()


def subjects(items: list[Any]) -> list[str]:
    return [item.document["subject"] for item in items]


@needs_dovecot
@pytest.mark.parametrize("tls", ["implicit", "starttls"])
async def test_messages_come_in_order_and_once(imap: Imap, mailbox: str, tls: str) -> None:
    imap.append(*(mail(number) for number in range(7)), mailbox=f'"{mailbox}"')
    url = imap.tls_url if tls == "implicit" else imap.starttls_url
    async with driver(imap, mailbox, url=url) as found:
        items, cursor, refused = await polled(found, limit=3)
        assert (subjects(items), refused) == ([f"Ship {number}" for number in range(7)], 0)
        assert cursor["uid"] == 7
        assert (await polled(found, cursor))[0] == []
        imap.append(mail(7), mailbox=f'"{mailbox}"')
        items, _, _ = await polled(found, cursor)
        assert subjects(items) == ["Ship 7"]
    # They are as unread as they were.
    with imap.login() as session:
        session.select(f'"{mailbox}"', readonly=True)
        assert session.search(None, "UNSEEN")[1] == [b"1 2 3 4 5 6 7 8"]


@needs_dovecot
async def test_removed_messages_and_large_ones_are_passed_over(imap: Imap, mailbox: str) -> None:
    imap.append(mail(0), mail(1), mail(2, "x" * 5_000), mail(3), mailbox=f'"{mailbox}"')
    with imap.login() as session:
        session.select(f'"{mailbox}"')
        session.store("2", "+FLAGS", r"(\Deleted)")
        session.expunge()
    async with driver(imap, mailbox, max_message_bytes=4_096) as found:
        items, cursor, refused = await polled(found, limit=1)
        assert (subjects(items), refused, cursor["uid"]) == (["Ship 0", "Ship 3"], 1, 4)


@needs_dovecot
async def test_a_mailbox_that_is_made_anew_is_read_again_under_the_same_ids(imap: Imap, mailbox: str) -> None:
    imap.append(mail(0), mail(1), mailbox=f'"{mailbox}"')
    async with driver(imap, mailbox) as found:
        first, cursor, _ = await polled(found)
        with imap.login() as session:
            session.delete(f'"{mailbox}"')
            session.create(f'"{mailbox}"')
        imap.append(mail(1), mailbox=f'"{mailbox}"')
        again, after, _ = await polled(found, cursor)
        assert [item.item_id for item in again] == [first[1].item_id]
        assert after["uidvalidity"] != cursor["uidvalidity"]


@needs_dovecot
async def test_the_first_day_is_asked_for(imap: Imap, mailbox: str) -> None:
    imap.append(mail(0), mailbox=f'"{mailbox}"')
    for since, count in ((date(2001, 1, 1), 1), (date(2100, 1, 1), 0)):
        async with driver(imap, mailbox, since=since) as found:
            items, cursor, _ = await polled(found)
            assert (len(items), cursor["uid"]) == (count, 1)


@needs_dovecot
async def test_a_wrong_password_or_mailbox_is_refused(imap: Imap, mailbox: str) -> None:
    for options in ({"auth": {**AUTH, "password": "wrong"}}, {"path": "none"}, {"path": 'no" box'}):
        async with driver(imap, mailbox, **options) as found:
            with pytest.raises(FailedPrecondition):
                await polled(found)


@needs_dovecot
async def test_a_certificate_that_is_not_trusted_ends_the_connection(imap: Imap, mailbox: str) -> None:
    for url in (imap.tls_url, imap.starttls_url):
        async with driver(imap, mailbox, tls_roots_file=None, url=url) as found:
            with pytest.raises(ssl.SSLCertVerificationError):
                await polled(found)


def has(server: Gateway, least: int) -> bool:
    return len(server.memories("mails")) >= least


@needs_dovecot
@pytest.mark.timeout(300)
def test_a_server_that_is_killed_stores_each_message_once(imap: Imap, mailbox: str, tmp_path: Path) -> None:
    imap.append(*(mail(number) for number in range(60)), mailbox=f'"{mailbox}"')
    source = {
        "type": "poll",
        "driver": "imap",
        "url": imap.tls_url,
        "path": mailbox,
        "auth": AUTH,
        "target_bank": "mails",
        "batch_size": 5,
        "interval_seconds": 1,
        "options": {"tls_roots_file": str(imap.roots)},
    }
    for least in (10, 30):
        with polling_server(tmp_path, {"mails": source}) as server:
            wait_until(partial(has, server, least))
            server.kill()
    with polling_server(tmp_path, {"mails": source}) as server:
        wait_until(lambda: len(server.memories("mails")) >= 60)
        imap.append(mail(60), mailbox=f'"{mailbox}"')
        wait_until(lambda: len(server.memories("mails")) >= 61)
        wanted = [f"Ship {number}\n\nShip {number} was seen in port {number * 7}." for number in range(61)]
        memories = server.memories("mails")
        assert [memory["content"] for memory in memories] == wanted
        assert (memories[0]["speaker"], memories[0]["metadata"]["subject"]) == ("Ann", "Ship 0")


Script = Callable[[ssl.SSLSocket], None]


@contextmanager
def scripted(folder: Path, script: Script) -> Iterator[dict[str, Any]]:
    """A server that says what it is told; yields options that reach it."""
    files = certificates(folder / "tls")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(files["server.pem"], files["server.key"])
    with closing(socket.create_server(("127.0.0.1", 0))) as listening:

        def serve() -> None:
            try:
                connection, _ = listening.accept()
                with context.wrap_socket(connection, server_side=True) as wrapped:
                    script(wrapped)
            except OSError:
                # The client has seen enough.
                return

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        port = listening.getsockname()[1]
        yield {"url": f"imaps://localhost:{port}", "auth": AUTH, "tls_roots_file": files["ca.pem"]}
        thread.join(30)


def conversation(wrapped: ssl.SSLSocket, answers: dict[bytes, bytes]) -> None:
    """Answer each command by its name; the tag of the command stands for %T."""
    wrapped.sendall(b"* OK ready\r\n")
    lines = wrapped.makefile("rb")
    for line in lines:
        tag, name, *rest = line.split()
        key = name + b" " + rest[0] if name == b"UID" else name
        wrapped.sendall(answers.get(key, b"%T OK done\r\n").replace(b"%T", tag))


SELECTED = b"* 1 EXISTS\r\n* OK [UIDVALIDITY 5] ok\r\n* OK [UIDNEXT 9] ok\r\n%T OK done\r\n"
CAPABLE = b"* CAPABILITY IMAP4rev1\r\n%T OK done\r\n"
GOOD = {b"CAPABILITY": CAPABLE, b"EXAMINE": SELECTED, b"SELECT": SELECTED}


def endless(wrapped: ssl.SSLSocket) -> None:
    while True:
        wrapped.sendall(b"* OK still here " + b"x" * 1_000 + b"\r\n")


@pytest.mark.parametrize(
    "answers",
    [
        {b"UID SEARCH": b"* SEARCH {4000000000}\r\n"},
        {b"UID SEARCH": b"* SEARCH " + b"1 " * 600_000 + b"\r\n%T OK done\r\n"},
        {b"UID SEARCH": b"* OK hello\r\n" * 200_000 + b"%T OK done\r\n"},
        {b"UID SEARCH": b"* SEARCH 1\r\n%T OK done\r\n", b"UID FETCH": b"* 1 FETCH (UID 1 BODY[] {4000000000}\r\n"},
        {b"UID SEARCH": b"%T BAD no\r\n"},
        {b"UID SEARCH": b"what?\r\n"},
        {b"LOGIN": b"%T NO no\r\n"},
        {b"CAPABILITY": b"%T OK nothing\r\n"},
    ],
)
async def test_answers_without_measure_end_the_poll(tmp_path: Path, answers: dict[bytes, bytes]) -> None:
    with scripted(tmp_path, lambda wrapped: conversation(wrapped, {**GOOD, **answers})) as options:
        made = create(options)
        with pytest.raises((ConnectionError, FailedPrecondition)):
            await polled(made)
        await made.close()


async def test_a_greeting_without_end_ends_the_poll(tmp_path: Path) -> None:
    with scripted(tmp_path, endless) as options:
        made = create(options)
        with pytest.raises((OSError, FailedPrecondition)):
            await polled(made)
        await made.close()


async def test_numbers_that_were_not_asked_for_are_left(tmp_path: Path) -> None:
    answers = {
        b"UID SEARCH": b"* SEARCH 99 5 x -1 0 5\r\n%T OK done\r\n",
        b"UID FETCH": b"* 1 FETCH (UID 77 RFC822.SIZE 10)\r\n* 2 FETCH (UID 5)\r\n%T OK done\r\n",
    }
    with scripted(tmp_path, lambda wrapped: conversation(wrapped, {**GOOD, **answers})) as options:
        made = create(options)
        assert await polled(made) == ([], {"uidvalidity": 5, "uid": 8}, 0)
        await made.close()


def test_options_that_are_wrong_are_named() -> None:
    for options, message in (
        ({"url": "http://a"}, "expected imaps"),
        ({"url": "imaps://user@a"}, "expected imaps"),
        ({"url": "imaps://a/INBOX"}, "expected imaps"),
        ({"path": "gr\xf6\xdfe"}, "printable ASCII"),
        ({"path": "a\r\nb"}, "printable ASCII"),
        ({"auth": {"token": "a"}}, "type basic"),
        ({"auth": {**AUTH, "password": "\xe4"}}, "ASCII"),
        ({"tls_roots_file": "/nowhere"}, "tls_roots_file"),
    ):
        with pytest.raises(ConfigError, match=message):
            create({"url": "imaps://a", "auth": AUTH, **options})
