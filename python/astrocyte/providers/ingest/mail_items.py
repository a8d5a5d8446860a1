"""A message of a mailbox as an item: its text, and its headers as metadata."""

from __future__ import annotations

import hashlib
import re
from datetime import UTC
from email import message_from_bytes
from email.errors import HeaderParseError
from email.header import decode_header
from email.message import Message
from email.utils import parseaddr, parsedate_to_datetime
from typing import Any

from astrocyte.providers.http.html_text import text_of
from astrocyte.providers.ingest.fields import clean, label, values
from astrocyte.providers.ingest.protocols import PollItem

# A message of more parts is not taken apart: the parser calls itself for each that lies inside another.
MOST_PARTS = 200
# Lines that can begin a part. Parts without headers are cheap to write and dear to keep.
MOST_DELIMITERS = 10_000
# Codecs of names, which take quadratic time.
NO_CHARSETS = frozenset({"idna", "punycode"})
# Of the headers that are read; others are as long as they like.
MOST_HEADER_CHARS = 8_192
MESSAGE_ID = re.compile(r"<([^<>\s]{1,998})>")


def mail_item(raw: bytes, mailbox: str) -> PollItem | None:
    """The item of a message in transfer form; None where it cannot be read, or has no text.

    Its id is the digest of its bytes and not its Message-ID, which anybody can repeat in another message.
    """
    if raw.lower().count(b"content-type:") > MOST_PARTS or raw.count(b"\n--") > MOST_DELIMITERS:
        return None
    try:
        message = message_from_bytes(raw)
        body = _body(message)
    except (RecursionError, ValueError, LookupError, AssertionError):
        # The parser is lenient, but not with everything.
        return None
    headers = {name: _header(message, name) for name in ("subject", "from", "to", "message-id", "references")}
    subject = headers["subject"]
    if not subject and not body:
        return None
    references = MESSAGE_ID.findall(headers["references"] or _header(message, "in-reply-to"))
    own = MESSAGE_ID.search(headers["message-id"])
    message_id = own[1] if own else None
    thread = references[0] if references else message_id
    document: dict[str, Any] = {
        "message_id": message_id,
        "subject": subject,
        "from": headers["from"],
        "to": headers["to"],
        "date": _date(message),
        "text": body,
        "mailbox": mailbox,
        "thread": thread,
    }
    fields: dict[str, Any] = {
        # The form in which the pipeline knows a mail, and leaves out its signature.
        "content": f"Subject: {subject}\n\n{body}" if subject else body,
        "content_type": "email",
        "occurred_at": document["date"],
        "source": None if message_id is None else label(f"mid:{message_id}"),
        # A digest, since ids look like addresses, and often have some.
        "session_id": None if thread is None else f"mail-{hashlib.sha256(thread.encode()).hexdigest()[:32]}",
        "speaker": label(_sender(headers["from"])),
        "metadata": values(
            message_id=message_id, subject=subject, mailbox=mailbox, **{"from": headers["from"], "to": headers["to"]}
        ),
    }
    digest = hashlib.sha256(raw).hexdigest()
    return PollItem(digest, "1", document, fields)


def _body(message: Message) -> str:
    """The first plain text of a message, else the text of its first HTML."""
    html = ""
    for part in message.walk():
        kind = part.get_content_type()
        if part.is_multipart() or part.get_content_disposition() == "attachment":
            continue
        if kind == "text/plain" and (text := _text(part).strip()):
            return text
        if kind == "text/html" and not html:
            html = text_of(_text(part))
    return html


def _text(part: Message) -> str:
    data = part.get_payload(decode=True)
    if not isinstance(data, bytes):
        return ""
    for charset in (part.get_content_charset("utf-8"), "utf-8", "cp1252"):
        if charset in NO_CHARSETS:
            continue
        try:
            return clean(data.decode(charset))
        except (LookupError, ValueError):
            continue
    return clean(data.decode("latin-1"))


def _header(message: Message, name: str) -> str:
    """The first header of a name on one line, with what RFC 2047 encodes; empty if there is none."""
    found = message.get(name)
    if found is None:
        return ""
    text = str(found)[:MOST_HEADER_CHARS].encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    try:
        parts = [
            part.decode(charset if charset and charset not in NO_CHARSETS else "latin-1", "replace")
            if isinstance(part, bytes)
            else part
            for part, charset in decode_header(text)
        ]
    except (HeaderParseError, ValueError, LookupError):
        parts = [text]
    return " ".join(clean("".join(parts)).split())


def _sender(header: str) -> str:
    """The name of a sender, else the address."""
    try:
        name, address = parseaddr(header)
    except RecursionError:
        # Comments inside comments.
        return ""
    return name or address


def _date(message: Message) -> str | None:
    """The time of sending in UTC, which is also meant by no zone; None where it is missing or no time."""
    try:
        date = parsedate_to_datetime(_header(message, "date"))
        return (date.replace(tzinfo=UTC) if date.tzinfo is None else date.astimezone(UTC)).isoformat()
    except (ValueError, OverflowError, TypeError, IndexError):
        return None
