"""Texts: WhatsApp chats, subtitles, Markdown folders and mails."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from datetime import UTC, date, datetime, tzinfo
from email import message_from_bytes
from email.message import Message
from email.utils import parseaddr
from typing import Any

import yaml

from astrocyte.cli.portability.sources.entries import Entry, SourcePath, files_in, moment, parts_of, text_of
from astrocyte.model import RetainItem
from astrocyte.pipelines.text import mail

# Halves of a day: a. m., ص, 上午, 午前, 오전, ÖÖ, π.μ.; and the second ones.
FIRST_HALF = ("am", "ص", "上午", "午前", "오전", "öö", "πμ")
SECOND_HALF = ("pm", "م", "下午", "午後", "오후", "ös", "μμ")
_HALVES = rf"[AaPp]\.?\s?[Mm]\.?|[πμ]\.?μ\.?|{'|'.join((*FIRST_HALF[1:-1], *SECOND_HALF[1:-1]))}"
# [12.03.24, 10:32:05] Name: text; 12/03/2024, 10:32 - Name: text; 14.3.2024 klo 21.05 - Name: text;
# 2024. 3. 14. 오후 9:05, Name : text. Marks of direction stand before the line and around the name.
WHATSAPP = re.compile(
    r"^[\u200e\u200f]*\[?(?P<one>\d{1,4})\u200f?[./年년-][ \u200f]?(?P<two>\d{1,2})\u200f?[./月월-][ \u200f]?"
    r"(?P<three>\d{1,4})[.日일]?[,،]?\s"
    rf"(?:(?P<before>{_HALVES})\s?|[^\W\d_]{{1,8}}\s)?"
    r"(?P<hour>\d{1,2})[:.](?P<minute>\d{2})(?:[:.](?P<second>\d{2}))?"
    rf"(?:\s?(?P<half>{_HALVES}))?[\u200e\u200f]*\]?(?:\s-|,)?\s(?:(?P<name>[^:\n]{{1,64}}?)\s?: )?(?P<text>.*)$",
    re.IGNORECASE,
)
DIRECTIONS = "\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
CUE = re.compile(r"^(?:(?P<hours>\d+):)?(?P<minutes>\d{1,2}):(?P<seconds>\d{2})[.,]\d{1,3} -->")
VOICE = re.compile(r"<v(?:\.[^\s>]*)?[ \t]+(?P<name>[^>\n]{1,64})>")
MARKUP = re.compile(r"</?[a-z][^>]*>")
LABEL = re.compile(r"^(?P<name>[A-Z][^:\n.!?]{0,40}): +(?=\S)")
FRONT_MATTER = re.compile(r"\A---\n(.{0,65536}?)\n---\n", re.DOTALL)
# A speech is cut behind so many characters, at the end of a sentence.
SPEECH_CHARS = 400
# The larger number of a day and a month tells which is which.
MONTHS = 12
FULL_YEAR_DIGITS = 4
NOON = 12


def whatsapp(path: SourcePath, zone: tzinfo | None) -> Iterator[Entry]:
    """The messages of an exported chat. Lines that no person wrote are left out."""
    # Only line feeds end a line: other signs that would are part of messages.
    lines = text_of(path).removesuffix("\n").split("\n")
    day_first = _is_day_first(lines)
    found: re.Match[str] | None = None
    begun, text = 0, ""
    for number, line in enumerate([*lines, ""], start=1):
        match = WHATSAPP.match(line)
        if match is None and number <= len(lines):
            text += f"\n{line}"
            continue
        if found is not None and found["name"]:
            yield _message(path, begun, found, text.strip(), zone or UTC, day_first=day_first)
        found, begun, text = match, number, match["text"] if match is not None else ""


def _message(path: SourcePath, number: int, found: re.Match[str], text: str, zone: tzinfo, *, day_first: bool) -> Entry:
    place = f"line {number}"
    if not text:
        return Entry(place, None, "the message is empty")
    try:
        when = _whatsapp_time(found, zone, day_first=day_first)
    except ValueError:
        return Entry(place, None, f"{found.group(0)[:40]!r} has no valid date")
    item = RetainItem(
        text,
        content_type="conversation",
        speaker=found["name"].strip(f"{DIRECTIONS}~\u00a0 ") or None,
        session_id=f"{path.stem}/{when.date().isoformat()}",
        occurred_at=when,
        source=f"whatsapp:{path.name}"[:200],
    )
    return Entry(place, item)


def _is_day_first(lines: list[str]) -> bool:
    """True if dates begin with the day: some day is above 12, or no month is and times have 24 hours."""
    matches = [match for line in lines if (match := WHATSAPP.match(line)) is not None]
    if any(int(match["one"]) > MONTHS for match in matches):
        return True
    if any(int(match["two"]) > MONTHS for match in matches):
        return False
    return not any(_half(match) for match in matches)


def _half(found: re.Match[str]) -> str:
    """The half of the day as it is written, without dots and blanks; empty where times have 24 hours."""
    return re.sub(r"[.\s]", "", found["before"] or found["half"] or "").casefold()


def _whatsapp_time(found: re.Match[str], zone: tzinfo, *, day_first: bool) -> datetime:
    one, two, three = int(found["one"]), int(found["two"]), int(found["three"])
    if len(found["one"]) == FULL_YEAR_DIGITS:
        year, month, day = one, two, three
    else:
        day, month = (one, two) if day_first else (two, one)
        year = three if len(found["three"]) == FULL_YEAR_DIGITS else 2_000 + three
    hour = int(found["hour"])
    if half := _half(found):
        hour = hour % NOON + (NOON if half in SECOND_HALF else 0)
    return datetime(year, month, day, hour, int(found["minute"]), int(found["second"] or 0), tzinfo=zone)


def subtitles(path: SourcePath) -> Iterator[Entry]:
    """The speeches of a WebVTT or SubRip file: cues of one speaker, joined to sentences."""
    speaker: str | None = None
    begun, text = 0, ""
    for seconds, name, line in _cues(path):
        is_other = name is not None and name != speaker
        if text and (is_other or (len(text) >= SPEECH_CHARS and text[-1] in ".!?…")):
            yield _speech(path, begun, speaker, text)
            text = ""
        if not text:
            begun = seconds
        speaker = name or speaker
        text = f"{text} {line}".strip()
    if text:
        yield _speech(path, begun, speaker, text)


def _speech(path: SourcePath, seconds: int, speaker: str | None, text: str) -> Entry:
    clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    item = RetainItem(
        text,
        content_type="transcript",
        speaker=speaker,
        session_id=path.stem[:200],
        source=path.name[:200],
        metadata={"start": clock},
    )
    return Entry(f"{path.name}, {clock}", item)


def _cues(path: SourcePath) -> Iterator[tuple[int, str | None, str]]:
    """Second, speaker and text of each line of a cue."""
    seconds: int | None = None
    for line in text_of(path).split("\n"):
        cue = CUE.match(line.strip())
        if cue is not None:
            seconds = int(cue["hours"] or 0) * 3_600 + int(cue["minutes"]) * 60 + int(cue["seconds"])
        elif not line.strip():
            # What follows, up to the next time, is a number or a note.
            seconds = None
        elif seconds is not None:
            voice = VOICE.search(line)
            plain = MARKUP.sub("", line).strip()
            label = None if voice is not None else LABEL.match(plain)
            name = voice["name"] if voice is not None else label["name"] if label is not None else None
            yield seconds, name, plain[label.end() :] if label is not None else plain


def markdown(path: SourcePath, zone: tzinfo | None) -> Iterator[Entry]:
    """The notes of a folder, or one note; long ones in parts."""
    files: list[tuple[str, SourcePath]] = files_in(path, "*.md") if path.is_dir() else [(path.name, path)]
    for name, file in files:
        try:
            text = text_of(file)
        except ValueError as error:
            yield Entry(name, None, str(error))
            continue
        matter = FRONT_MATTER.match(text)
        try:
            tags, when = _front_matter(matter[1], zone) if matter is not None else ((), None)
        except (yaml.YAMLError, ValueError) as error:
            yield Entry(name, None, f"front matter: {' '.join(str(error).split())[:200]}")
            continue
        body = text[matter.end() :] if matter is not None else text
        for number, part in enumerate(parts_of(body), start=1):
            item = RetainItem(
                part,
                content_type="document",
                source=name[-200:],
                tags=tags,
                occurred_at=when,
                metadata={"part": number},
            )
            yield Entry(f"{name}, part {number}", item)


def _front_matter(text: str, zone: tzinfo | None) -> tuple[tuple[str, ...], datetime | None]:
    values: Any = yaml.safe_load(text)
    if not isinstance(values, dict):
        return (), None
    tags = values.get("tags") or []
    tags = re.split(r"[,\s]+", tags) if isinstance(tags, str) else tags
    given = values.get("date")
    if isinstance(given, date) and not isinstance(given, datetime):
        # A day needs no zone.
        when: datetime | None = datetime(given.year, given.month, given.day, tzinfo=zone or UTC)
    else:
        when = None if given is None else moment(given.isoformat() if isinstance(given, datetime) else given, zone)
    return tuple(dict.fromkeys(str(tag).strip()[:100] for tag in tags if str(tag).strip())), when


def mails(path: SourcePath, zone: tzinfo | None) -> Iterator[Entry]:
    """The mails of an mbox or .eml file; long ones in parts, attachments left out."""
    if path.suffix.lower() == ".eml":
        yield from _mail(path.name, path.read_bytes(), zone)
        return
    for number, raw in enumerate(_box(path), start=1):
        yield from _mail(f"{path.name}, mail {number}", raw, zone)


def _box(path: SourcePath) -> Iterator[bytes]:
    """The mails of an mbox file, each without the line that begins it.

    Raises:
        ValueError: The file has text, and no mail.
    """
    lines: list[bytes] | None = None
    is_blank, has_text = True, False
    with path.open("rb") as file:
        for number, line in enumerate(file):
            text = line.removeprefix(codecs.BOM_UTF8) if number == 0 else line
            if is_blank and text.startswith(b"From "):
                if lines is not None:
                    yield b"".join(lines)
                lines = []
            elif lines is not None:
                lines.append(text)
            is_blank = not text.strip()
            has_text = has_text or not is_blank
    if lines is not None:
        yield b"".join(lines)
    elif has_text:
        raise ValueError(f"{path} has no mail: no line begins with 'From '")


def _mail(place: str, raw: bytes, zone: tzinfo | None) -> Iterator[Entry]:
    if raw.lower().count(b"content-type:") > mail.MOST_PARTS:
        yield Entry(place, None, f"the mail has more than {mail.MOST_PARTS} parts")
        return
    message = message_from_bytes(raw)
    try:
        when = moment(str(message["date"]), zone) if message["date"] else None
    except ValueError as error:
        yield Entry(place, None, f"Date: {error}")
        return
    name, address = parseaddr(mail.decoded(f"From: {message['from']}\nSubject: x\n\n").split("\n")[0][6:])
    text = mail.decoded(_unicode(raw, message)).replace("\r\n", "\n").replace("\r", "\n")
    if not text.strip():
        yield Entry(place, None, "the mail has no text")
        return
    for part in parts_of(text):
        item = RetainItem(
            part,
            content_type="email",
            speaker=" ".join((name or address).split())[:200] or None,
            session_id=_thread(message),
            occurred_at=when,
            source=place[-200:],
        )
        yield Entry(place, item)


def _unicode(raw: bytes, message: Message) -> str:
    """The bytes of a mail as text: UTF-8, else the first character set of its parts that fits."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        pass
    for part in message.walk():
        try:
            return raw.decode(part.get_content_charset() or "")
        except (LookupError, UnicodeDecodeError):
            continue
    return raw.decode("utf-8", "replace")


def _thread(message: Message) -> str | None:
    """The first mail of the thread."""
    ids = str(message["references"] or message["in-reply-to"] or message["message-id"] or "").split()
    return ids[0][:200] if ids else None
