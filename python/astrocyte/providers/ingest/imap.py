"""Driver ``imap``: the messages of a mailbox, over TLS."""

from __future__ import annotations

import asyncio
import contextlib
import imaplib
import re
import socket
import ssl
import threading
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator

from astrocyte.config.sources.polls import BasicAuth, PollAuth
from astrocyte.errors import ConfigError, FailedPrecondition
from astrocyte.providers.ingest.mail_items import mail_item
from astrocyte.providers.ingest.protocols import PollItem, PollPage
from astrocyte.providers.options import read_options

T = TypeVar("T")

# With TLS from the first byte, and with TLS from STARTTLS on. There is no other way.
PORTS = {"imaps": 993, "imap": 143}
# Numbers of messages that one search looks at: its answer is one line, of which the library takes a megabyte.
WINDOW = 50_000
# Of the messages of one page in memory.
MOST_PAGE_BYTES = 32 << 20
# Beyond the messages, which have a bound of their own: answers to all other commands.
MOST_ANSWER_BYTES = 1 << 20
# Of one command, so that its line stays within the limits of common servers.
MOST_NUMBERS = 500
# The largest number of a message in RFC 3501.
LAST_UID = 0xFFFF_FFFF
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
SIZE = re.compile(rb"\bRFC822\.SIZE (\d{1,20})\b")
UID = re.compile(rb"\bUID (\d{1,10})\b")


class ImapOptions(BaseModel):
    """Options of the driver, from the keys of the source and its ``options``."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    url: SecretStr
    path: str = Field("INBOX", min_length=1, max_length=1_024)
    auth: PollAuth
    since: date | None = None
    tls_roots_file: Path | None = None
    timeout_seconds: float = Field(30.0, gt=0.0, le=600.0)
    max_message_bytes: int = Field(8_388_608, ge=1_024, le=67_108_864)

    @field_validator("url")
    @classmethod
    def _check_url(cls, url: SecretStr) -> SecretStr:
        parts = urlsplit(url.get_secret_value())
        whole = parts.scheme in PORTS and parts.hostname and not (parts.path.strip("/") or parts.query)
        if not whole or parts.username is not None or parts.port == 0:
            raise ValueError("expected imaps://host or imap://host, with or without a port")
        return url

    @field_validator("path")
    @classmethod
    def _check_path(cls, path: str) -> str:
        if not path.isascii() or not path.isprintable():
            raise ValueError("expected printable ASCII; other names are written in modified UTF-7")
        return path

    @field_validator("auth")
    @classmethod
    def _check_auth(cls, auth: PollAuth) -> PollAuth:
        if not isinstance(auth, BasicAuth):
            raise ValueError("expected the type basic, with username and password")  # noqa: TRY004 - pydantic takes this one
        if not (auth.username + auth.password.get_secret_value()).isascii():
            raise ValueError("expected username and password in ASCII")
        return auth


class Mailbox:
    """Implements `PollDriver`; see there for what each method does.

    The mailbox is opened for reading only, so that messages stay as they are, unread ones too. A cursor is the number
    of the last message, and the validity of the numbers: a mailbox that is made anew is read from its first message on,
    and messages that are known are known by their bytes.
    """

    def __init__(self, options: ImapOptions) -> None:
        self._options = options
        self._url = urlsplit(options.url.get_secret_value())
        try:
            roots = options.tls_roots_file
            self._tls = ssl.create_default_context(cafile=None if roots is None else str(roots))
        except OSError as error:
            raise ConfigError(
                f"sources.options.tls_roots_file: cannot be used ({type(error).__name__})",
                metadata={"key": "sources.options.tls_roots_file"},
            ) from error
        self._connection: _Plain | _Tls | None = None
        # One command at a time: a poll that is given up may still wait for an answer.
        self._lock = threading.Lock()

    @property
    def place(self) -> str:
        """The account and its mailbox."""
        auth = self._options.auth
        username = auth.username if isinstance(auth, BasicAuth) else ""
        return f"{username}@{self._url.hostname}:{self._port} {self._options.path}"

    async def open(self) -> None:
        """Nothing to prepare: each poll connects."""

    async def pages(self, cursor: Mapping[str, Any], limit: int) -> AsyncIterator[PollPage]:
        """Messages in the order of their numbers."""
        validity, following = await self._run(self._connect)
        last = int(cursor.get("uid", 0)) if cursor.get("uidvalidity") == validity else 0
        try:
            # Above the last one that there is, a mailbox has no windows.
            while last < following - 1:
                end = min(last + WINDOW, following - 1)
                numbers = await self._run(partial(self._search, last + 1, end))
                while numbers:
                    items, taken = await self._run(partial(self._fetch, numbers[:limit]))
                    numbers = numbers[taken:]
                    last = numbers[0] - 1 if numbers else end
                    found = [item for item in items if item is not None]
                    yield PollPage(found, {"uidvalidity": validity, "uid": last}, len(items) - len(found))
                last = end
            if last != cursor.get("uid") or validity != cursor.get("uidvalidity"):
                yield PollPage([], {"uidvalidity": validity, "uid": last})
            await self._run(lambda: self._live().logout())
        finally:
            await self.close()

    async def close(self) -> None:
        """Leave; a command that is waited for ends with an error."""
        connection, self._connection = self._connection, None
        if connection is not None:
            await asyncio.to_thread(_left, connection)

    @property
    def _port(self) -> int:
        return self._url.port or PORTS[self._url.scheme]

    async def _run(self, work: Callable[[], T]) -> T:
        """Run commands in a thread, and tell what failed."""

        def run() -> T:
            with self._lock:
                return work()

        try:
            return await asyncio.to_thread(run)
        except imaplib.IMAP4.abort as error:
            raise ConnectionError("the mailbox cannot be read: the connection ended") from error
        except imaplib.IMAP4.error as error:
            # The text of the server may repeat the user's name.
            raise FailedPrecondition("the server refused a command, or answered with something else") from error

    def _connect(self) -> tuple[int, int]:
        """Log in and open the mailbox; returns the validity of its numbers, and the next number."""
        options, auth = self._options, self._options.auth
        assert isinstance(auth, BasicAuth)  # noqa: S101 - checked with the options
        host = str(self._url.hostname)
        connection: _Plain | _Tls
        if self._url.scheme == "imaps":
            connection = _Tls(host, self._port, ssl_context=self._tls, timeout=options.timeout_seconds)
        else:
            connection = _Plain(host, self._port, timeout=options.timeout_seconds)
        self._connection = connection
        if self._url.scheme == "imap":
            connection.starttls(self._tls)
        # The library quotes the second one itself.
        connection.login(_quoted(auth.username), auth.password.get_secret_value())
        _checked(connection.select(_quoted(options.path), readonly=True))
        validity, following = _number(connection, "UIDVALIDITY"), _number(connection, "UIDNEXT")
        return validity or 0, LAST_UID if following is None else following

    def _search(self, low: int, high: int) -> list[int]:
        criteria = [f"UID {low}:{high}"]
        since = self._options.since
        if since is not None:
            criteria.append(f"SINCE {since.day}-{MONTHS[since.month - 1]}-{since.year}")
        data = _checked(self._live().uid("SEARCH", *criteria))
        found = b" ".join(part for part in data if isinstance(part, bytes)).split()
        # A server answers a range beyond its last message with the last one.
        return sorted({int(number) for number in found if number.isdigit() and low <= int(number) <= high})

    def _fetch(self, numbers: Sequence[int]) -> tuple[list[PollItem | None], int]:
        """Items of the first messages, None in place of what cannot be read; and the number of messages looked at."""
        numbers = numbers[:MOST_NUMBERS]
        data = _checked(self._live().uid("FETCH", ",".join(map(str, numbers)), "(UID RFC822.SIZE)"))
        sizes: dict[int, int] = {}
        for line in data:
            if isinstance(line, bytes) and (uid := UID.search(line)) and (size := SIZE.search(line)):
                sizes[int(uid[1])] = int(size[1])
        items: list[PollItem | None] = []
        total = 0
        for place, number in enumerate(numbers):
            size_known = sizes.get(number)
            if size_known is None:
                # It was removed since the search.
                continue
            if size_known > self._options.max_message_bytes:
                items.append(None)
                continue
            if total and total + size_known > MOST_PAGE_BYTES:
                return items, place
            total += size_known
            raw = self._message(number)
            if raw is not None:
                items.append(mail_item(raw, self._options.path))
        return items, len(numbers)

    def _message(self, number: int) -> bytes | None:
        most_bytes = self._options.max_message_bytes + MOST_ANSWER_BYTES
        data = _checked(self._live(most_bytes).uid("FETCH", str(number), "(BODY.PEEK[])"))
        return next((part[1] for part in data if isinstance(part, tuple) and b"BODY[]" in part[0]), None)

    def _live(self, most_bytes: int = MOST_ANSWER_BYTES) -> imaplib.IMAP4:
        """The connection, for a command whose answer has at most so many bytes."""
        if self._connection is None:
            raise imaplib.IMAP4.abort("closed")
        self._connection.renew(most_bytes)
        return self._connection


class _Limit:
    """Ends a connection whose answer to one command is beyond a number of bytes; stands before the library's class."""

    most_bytes = MOST_ANSWER_BYTES
    received = 0

    def renew(self, most_bytes: int) -> None:
        """Begin to count anew, for the next command."""
        self.most_bytes, self.received = most_bytes, 0

    def read(self, size: int) -> bytes:
        """Read so many bytes, as the server announced them."""
        self._count(size)
        data: bytes = super().read(size)  # type: ignore[misc]  # of the library's class
        return data

    def readline(self) -> bytes:
        """Read a line, which the library bounds."""
        line: bytes = super().readline()  # type: ignore[misc]  # as above
        self._count(len(line))
        return line

    def _count(self, size: int) -> None:
        self.received += size
        if self.received > self.most_bytes:
            raise imaplib.IMAP4.abort("the answer is too large")


class _Plain(_Limit, imaplib.IMAP4):
    """A connection that begins without TLS."""


class _Tls(_Limit, imaplib.IMAP4_SSL):
    """A connection with TLS from the first byte."""


def _checked(answer: tuple[str, list[Any]]) -> list[Any]:
    """The data of an answer that is OK."""
    status, data = answer
    if status != "OK":
        raise imaplib.IMAP4.error("refused")
    return data


def _number(connection: imaplib.IMAP4, code: str) -> int | None:
    """The number of a response code of the answer to SELECT."""
    _, data = connection.response(code)
    text = data[-1] if data else None
    return int(text) if isinstance(text, bytes) and text.isdigit() and len(text) <= 10 else None  # noqa: PLR2004 - 32 bits


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _left(connection: imaplib.IMAP4) -> None:
    """Close the socket; nothing was changed that a farewell would finish."""
    # First this, which ends a read in another thread.
    with contextlib.suppress(OSError):
        connection.sock.shutdown(socket.SHUT_RDWR)
    with contextlib.suppress(OSError, imaplib.IMAP4.error):
        connection.shutdown()


def create(options: Mapping[str, Any]) -> Mailbox:
    """The driver of these options.

    Raises:
        ConfigError: They cannot be used.
    """
    return Mailbox(read_options(ImapOptions, options, "sources.options"))
