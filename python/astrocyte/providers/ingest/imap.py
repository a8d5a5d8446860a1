"""Driver ``imap``: the messages of a mailbox, over TLS."""

from __future__ import annotations

import asyncio
import imaplib
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
from astrocyte.providers.ingest.imap_session import ImapSession
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
# Of one command, so that its line stays within the limits of common servers.
MOST_NUMBERS = 500


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
        self._session: ImapSession | None = None
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
        try:
            validity, following = await self._run(self._connect)
            last = int(cursor.get("uid", 0)) if cursor.get("uidvalidity") == validity else 0
            # Above the last one that there is, a mailbox has no windows.
            while last < following - 1:
                end = min(last + WINDOW, following - 1)
                numbers = await self._run(partial(self._live.search, last + 1, end, self._options.since))
                while numbers:
                    items, taken = await self._run(partial(self._fetch, numbers[:limit]))
                    numbers = numbers[taken:]
                    last = numbers[0] - 1 if numbers else end
                    found = [item for item in items if item is not None]
                    yield PollPage(found, {"uidvalidity": validity, "uid": last}, len(items) - len(found))
                last = end
            if last != cursor.get("uid") or validity != cursor.get("uidvalidity"):
                yield PollPage([], {"uidvalidity": validity, "uid": last})
            await self._run(self._live.logout)
        finally:
            await self.close()

    async def close(self) -> None:
        """Leave; a command that is waited for ends with an error."""
        session, self._session = self._session, None
        if session is not None:
            await asyncio.to_thread(session.close)

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

    @property
    def _live(self) -> ImapSession:
        """The session of the poll."""
        if self._session is None:
            raise ConnectionError("the mailbox was closed")
        return self._session

    def _connect(self) -> tuple[int, int]:
        """Log in and open the mailbox; returns the validity of its numbers, and the next number."""
        options, auth, plain = self._options, self._options.auth, self._url.scheme == "imap"
        assert isinstance(auth, BasicAuth)  # noqa: S101 - checked with the options
        host = str(self._url.hostname)
        self._session = ImapSession(host, self._port, self._tls, options.timeout_seconds, begins_plain=plain)
        self._session.login(auth.username, auth.password.get_secret_value())
        return self._session.select(options.path)

    def _fetch(self, numbers: Sequence[int]) -> tuple[list[PollItem | None], int]:
        """Items of the first messages, None in place of what cannot be read; and the number of messages looked at."""
        session, most_bytes = self._live, self._options.max_message_bytes
        numbers = numbers[:MOST_NUMBERS]
        sizes = session.sizes(numbers)
        items: list[PollItem | None] = []
        total = 0
        for place, number in enumerate(numbers):
            size = sizes.get(number)
            if size is None:
                # It was removed since the search.
                continue
            if size > most_bytes:
                items.append(None)
                continue
            if total and total + size > MOST_PAGE_BYTES:
                return items, place
            total += size
            raw = session.message(number, most_bytes)
            if raw is not None:
                items.append(mail_item(raw, self._options.path))
        return items, len(numbers)


def create(options: Mapping[str, Any]) -> Mailbox:
    """The driver of these options.

    Raises:
        ConfigError: They cannot be used.
    """
    return Mailbox(read_options(ImapOptions, options, "sources.options"))
