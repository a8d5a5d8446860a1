"""Mail: decoded from its transfer form, and without envelope and signatures.

`decoded` comes before anything reads the content, such as the search for personal data, which a transfer encoding would
hide.
"""

from __future__ import annotations

import codecs
import email
import re
from collections.abc import Iterator
from email.errors import HeaderParseError
from email.header import decode_header
from email.message import Message

from astrocyte.providers.http.html_text import text_of

# Of contents that are read as mail.
CONTENT_TYPE = "email"
# Two lines that look like headers make a block a mail header; one could be "Note: ..." in prose.
LEAST_HEADERS = 2
HEADER = re.compile(r"[A-Za-z][A-Za-z0-9-]{0,63}:(?:[ \t]|$)")
ONLY_SUBJECT = re.compile(r"(?i)subject:[^\n]*")
SUBJECT = re.compile(r"(?im)^subject:[ \t]*(\S.*)$")
# What a mail in transfer form has, and one that somebody copied has not.
ENCODED = re.compile(r"(?im)^(?:content-(?:type|transfer-encoding)|mime-version):|=\?[^?\s]+\?[BbQq]\?")
HTML = re.compile(r"(?i)\s*<(?:!doctype html|html)\b")
# Shown above the text of a decoded mail.
SHOWN = ("from", "to", "cc", "date", "subject")
# A mail of more parts is not taken apart: the parser calls itself for each that lies inside another.
MOST_PARTS = 200
TRANSFER_ENCODINGS = frozenset({"base64", "quoted-printable", "x-uuencode", "uuencode", "uue", "x-uue"})
# Charsets whose text is ASCII, by the names of their codecs. Others of 7 bits have escape characters.
ASCII_FORMS = frozenset({"utf-7", "hz"})
CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")

# The delimiter of RFC 3676.
SIGNATURE = re.compile(r"(?m)^-- $")
# Signatures of a digest; what follows the last is kept.
MOST_SIGNATURES = 100
# Begins the next mail of a digest, an answer's quotation, or a forwarded mail.
NEXT_MAIL = re.compile(
    r"(?im)^(?:>|[-_=*]{5,}|-+ ?[^\n-]{3,60} ?-{3,}[ \t]*$|begin forwarded message|message[: ]+#?\d+"
    r"|(?:from|sent|date|subject|to|von|gesendet|datum|betreff|an|de|envoyé|objet|para|asunto|fecha|enviado|da|data"
    r"|oggetto|inviato|assunto|van|onderwerp|verzonden|från|ämne|fra|emne|od|temat|кому|от|тема|дата"
    r"|\u53d1\u4ef6\u4eba|\u4e3b\u9898|\u5dee\u51fa\u4eba|\u4ef6\u540d|\ubcf4\ub0b8 \uc0ac\ub78c|\uc81c\ubaa9)"
    r"[ \u00a0]?[:\uff1a][ \t]"
    r"|[^\n]{5,200}\b(?:wrote|schrieb|écrit|escribió|scritto|schreef|escreveu|skrev|napsal|napisał\(?a?\)?|написал[аи]?"
    r"|пишет)\b[^\n]{0,60}:[ \t]*$|[^\n]{5,200}\u5199\u9053[:\uff1a])"
)
LABEL = re.compile(r"(?m)^([^\W\d_][\w -]{0,30}):[ \t]")


def decoded(text: str) -> str:
    """A mail as text: header lines and body, without MIME parts, transfer encodings and markup.

    Text parts are joined, the plain one of alternatives is taken, and attachments are left out. What is no mail in
    transfer form comes back as it is, so that decoding twice is decoding once.
    """
    source = text.lstrip("\ufeff\r\n").replace("\r\n", "\n").replace("\r", "\n")
    head, _, body = source.partition("\n\n")
    if not (ENCODED.search(head) or HTML.match(body)) or not _is_header(head, least=1):
        return text
    if source.lower().count("content-type:") > MOST_PARTS or CONTROLS.search(source):
        return text
    return _with_header(email.message_from_bytes(source.encode())) or text


def plain(text: str) -> str:
    """The subject and the text of a mail; empty where nothing is left.

    Left out are the header and, from its delimiter to the end of that mail, each signature.
    """
    head, blank, body = text.lstrip("\n").partition("\n\n")
    if blank and (_is_header(head, least=LEAST_HEADERS) or ONLY_SUBJECT.fullmatch(head)):
        subject = SUBJECT.search(head)
        text = f"{subject.group(1).strip()}\n\n{body}" if subject else body
    return _unsigned(text).strip()


def _is_header(head: str, *, least: int) -> bool:
    """True if a block is the header of a mail, but for one line."""
    # A folded header continues on a line that starts with white space.
    lines = [line for line in head.split("\n") if not line.startswith((" ", "\t"))]
    headers = sum(1 for line in lines if HEADER.match(line))
    return headers >= least and len(lines) - headers <= 1


def _with_header(message: Message) -> str:
    """The header lines that are shown, and the text; empty without a subject and a text."""
    body = "\n\n".join(part for part in _texts(message) if part)
    values = {name.lower(): _header(str(value)) for name, value in reversed(list(message.raw_items()))}
    lines = [f"{name.capitalize()}: {values[name]}" for name in SHOWN if values.get(name)]
    return "\n".join([*lines, "", body]) if lines and (body or values.get("subject")) else body


def _texts(message: Message) -> Iterator[str]:
    """The texts of a mail, in order; of alternatives the plainest that has one."""
    kind = message.get_content_type()
    if message.is_multipart():
        parts = [part for part in message.get_payload() if isinstance(part, Message)]
        if kind == "message/rfc822":
            yield from map(_with_header, parts)
        elif kind == "multipart/alternative":
            texts = {part.get_content_type(): text for part in reversed(parts) if (text := "\n\n".join(_texts(part)))}
            yield texts.get("text/plain") or next(iter(texts.values()), "")
        else:
            for part in parts:
                yield from _texts(part)
    elif message.get_content_disposition() != "attachment" and kind in {"text/plain", "text/html", "text/enriched"}:
        yield _text(message, kind)


def _text(part: Message, kind: str) -> str:
    """The text of a part without parts."""
    encoding = str(part.get("content-transfer-encoding", "")).strip().lower()
    if encoding:
        # The library does not know a name that a folded header has on its second line.
        part.replace_header("content-transfer-encoding", encoding)
    data = part.get_payload(decode=True)
    if not isinstance(data, bytes):
        return ""
    charset = part.get_content_charset("utf-8")
    if encoding not in TRANSFER_ENCODINGS and not _is_ascii_form(charset):
        # What was not encoded for transfer came as Unicode text, whatever charset it had before.
        charset = "utf-8"
    text = _decoded(data, charset).replace("\r\n", "\n").replace("\r", "\n")
    if kind == "text/html" or HTML.match(text):
        text = text_of(text)
    elif str(part.get_param("format", "")).lower() == "flowed":
        text = _unflowed(text, joined=str(part.get_param("delsp", "")).lower() == "yes")
    return text.strip("\n")


def _is_ascii_form(charset: str) -> bool:
    """True if a charset writes all its characters in ASCII, so that no transfer encoding is needed."""
    try:
        return codecs.lookup(charset).name in ASCII_FORMS
    except (LookupError, ValueError):
        return False


def _decoded(data: bytes, charset: str) -> str:
    """Bytes of a charset, or of the likeliest where it is unknown or wrong; without controls and lone surrogates."""
    for name in (charset, "utf-8", "cp1252"):
        try:
            return CONTROLS.sub("", data.decode(name))
        except (LookupError, ValueError):
            continue
    return CONTROLS.sub("", data.decode("latin-1"))


def _header(value: str) -> str:
    """The text of a header's value, of which RFC 2047 may have encoded parts, on one line."""
    value = value.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    try:
        parts = decode_header(value)
    except (HeaderParseError, ValueError):
        return " ".join(value.split())
    # Parts without a charset come escaped, with the spaces around them.
    shown = [
        _decoded(part, charset or "raw-unicode-escape") if isinstance(part, bytes) else part for part, charset in parts
    ]
    return " ".join("".join(shown).split())


def _unflowed(text: str, *, joined: bool) -> str:
    """Paragraphs of which a space at the end of a line continues on the next, as RFC 3676 says."""
    lines: list[str] = []
    flows = False
    for stuffed in text.split("\n"):
        line = stuffed.removeprefix(" ")
        if flows:
            lines[-1] = (lines[-1][:-1] if joined else lines[-1]) + line
        else:
            lines.append(line)
        flows = line.endswith(" ") and line != "-- " and not line.startswith(">")
    return "\n".join(lines)


def _unsigned(text: str) -> str:
    """A text without signatures. Each goes on to the next mail in the text, or to its end."""
    marks = list(SIGNATURE.finditer(text))[:MOST_SIGNATURES]
    if not marks:
        return text
    mails = [match.start() for match in NEXT_MAIL.finditer(text)]
    labels = [(match.start(), match[1].casefold()) for match in LABEL.finditer(text)]
    kept: list[str] = []
    at = 0
    for mark, following in zip(marks, [*(match.start() for match in marks[1:]), None], strict=True):
        if mark.start() < at:
            continue
        kept.append(text[at : mark.start()])
        ends = [start for start in mails if start > mark.end()][:1]
        # Another mail of a digest begins with a label that one before it began with.
        known = {name for start, name in labels if start < mark.start()}
        ends += [start for start, name in labels if start > mark.end() and name in known][:1]
        if following is not None and not (ends and min(ends) < following):
            blank = text.find("\n\n", mark.end(), following)
            ends += [blank] if blank >= 0 else []
        at = min(ends, default=len(text))
    kept.append(text[at:])
    return "\n\n".join(part.strip("\n") for part in kept if part.strip())
