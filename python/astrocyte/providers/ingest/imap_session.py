"""A session with an IMAP server: over TLS, for reading only, with answers of a bounded size. Its methods block."""

from __future__ import annotations

import contextlib
import imaplib
import re
import socket
import ssl
from collections.abc import Sequence
from datetime import date
from typing import Any

# Beyond a message, which has a bound of its own: answers to all other commands.
MOST_ANSWER_BYTES = 1 << 20
# The largest number of a message in RFC 3501.
LAST_UID = 0xFFFF_FFFF
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
SIZE = re.compile(rb"\bRFC822\.SIZE (\d{1,20})\b")
UID = re.compile(rb"\bUID (\d{1,10})\b")


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


class ImapSession:
    """A session in which one mailbox is open. Every method raises ``imaplib.IMAP4.error`` or ``OSError``.

    Args:
        host: The server.
        port: Its port.
        tls: Verifies its certificate.
        begins_plain: Begin without TLS, and with STARTTLS before the login.
        seconds: Of waiting for an answer.
    """

    def __init__(self, host: str, port: int, tls: ssl.SSLContext, seconds: float, *, begins_plain: bool) -> None:
        self._connection: _Plain | _Tls
        if begins_plain:
            self._connection = _Plain(host, port, timeout=seconds)
            try:
                self._connection.starttls(tls)
            except BaseException:
                self.close()
                raise
        else:
            self._connection = _Tls(host, port, ssl_context=tls, timeout=seconds)

    def login(self, username: str, password: str) -> None:
        """Log in."""
        # The library quotes the second one itself.
        self._within().login(_quoted(username), password)

    def select(self, mailbox: str) -> tuple[int, int]:
        """Open a mailbox for reading; returns the validity of its numbers, and the number of the next message."""
        connection = self._within()
        _checked(connection.select(_quoted(mailbox), readonly=True))
        validity, following = _number(connection, "UIDVALIDITY"), _number(connection, "UIDNEXT")
        return validity or 0, LAST_UID if following is None else following

    def search(self, low: int, high: int, since: date | None) -> list[int]:
        """The numbers of messages in a range, both ends included, that came on a day or after it; ascending."""
        criteria = [f"UID {low}:{high}"]
        if since is not None:
            criteria.append(f"SINCE {since.day}-{MONTHS[since.month - 1]}-{since.year}")
        data = _checked(self._within().uid("SEARCH", *criteria))
        found = b" ".join(part for part in data if isinstance(part, bytes)).split()
        # A server answers a range beyond its last message with the last one.
        return sorted({int(number) for number in found if number.isdigit() and low <= int(number) <= high})

    def sizes(self, numbers: Sequence[int]) -> dict[int, int]:
        """The bytes of messages by their numbers; those that were removed are left out."""
        data = _checked(self._within().uid("FETCH", ",".join(map(str, numbers)), "(UID RFC822.SIZE)"))
        sizes: dict[int, int] = {}
        for line in data:
            if isinstance(line, bytes) and (uid := UID.search(line)) and (size := SIZE.search(line)):
                sizes[int(uid[1])] = int(size[1])
        return sizes

    def message(self, number: int, most_bytes: int) -> bytes | None:
        """A message in transfer form, which stays as unread as it is; None if it was removed."""
        connection = self._within(most_bytes + MOST_ANSWER_BYTES)
        data = _checked(connection.uid("FETCH", str(number), "(BODY.PEEK[])"))
        return next((part[1] for part in data if isinstance(part, tuple) and b"BODY[]" in part[0]), None)

    def logout(self) -> None:
        """End the session in order."""
        self._within().logout()

    def close(self) -> None:
        """Close the socket, whatever the server thinks of it. Another thread may wait for an answer."""
        # First this, which ends a read in that thread.
        with contextlib.suppress(OSError):
            self._connection.sock.shutdown(socket.SHUT_RDWR)
        with contextlib.suppress(OSError, imaplib.IMAP4.error):
            self._connection.shutdown()

    def _within(self, most_bytes: int = MOST_ANSWER_BYTES) -> imaplib.IMAP4:
        """The connection, for a command whose answer has at most so many bytes."""
        self._connection.renew(most_bytes)
        return self._connection


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
