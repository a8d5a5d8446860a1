"""The format of a file or folder, by its name and its first bytes, and its entries."""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import tzinfo
from itertools import islice
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile

from astrocyte.cli.portability.sources import chats, texts
from astrocyte.cli.portability.sources.entries import Entry, SourcePath, document, encoding_of
from astrocyte.cli.portability.sources.json_lines import TEXT_KEYS, json_array
from astrocyte.cli.portability.sources.zips import TEXTS, root_of

# Bytes that are looked at.
HEAD_BYTES = 65_536
FIRST_LINES = 20
# The zone is of times that have none.
Read = Callable[[SourcePath, tzinfo | None], Iterator[Entry]]
JSON_BEGIN = re.compile(rb"\s*[\[{]")
ZIP_BEGIN = b"PK\x03\x04"
# The files with all conversations in the folders that ChatGPT, Claude and Telegram export.
DOCUMENTS = ("conversations.json", "result.json")
LINE_SUFFIXES = frozenset({".jsonl", ".ndjson"})


@dataclass(frozen=True, slots=True)
class Source:
    """A format: its name in ``--format``, its name for people, and its entries."""

    name: str
    title: str
    read: Read


def _document(read: Callable[[Any, tzinfo | None], Iterator[Entry]]) -> Read:
    def entries(path: SourcePath, zone: tzinfo | None) -> Iterator[Entry]:
        yield from read(document(path), zone)

    return entries


def _without_times(read: Callable[[SourcePath], Iterator[Entry]]) -> Read:
    return lambda path, _: read(path)


SOURCES: Mapping[str, Source] = {
    source.name: source
    for source in (
        Source("chatgpt", "ChatGPT export (conversations.json)", _document(chats.chatgpt)),
        Source("claude", "Claude export (conversations.json)", _document(chats.claude)),
        Source("slack", "Slack export (folder)", chats.slack),
        Source("discord", "Discord channel (DiscordChatExporter)", _document(chats.discord)),
        Source("telegram", "Telegram Desktop export (result.json)", _document(chats.telegram)),
        Source("mem0", "mem0 export", _document(chats.mem0)),
        Source("zep", "Zep export", _document(chats.zep)),
        Source("json", "JSON array of messages", _document(json_array)),
        Source("whatsapp", "WhatsApp chat (text)", texts.whatsapp),
        Source("subtitles", "WebVTT or SubRip subtitles", _without_times(texts.subtitles)),
        Source("markdown", "Markdown notes", texts.markdown),
        Source("mail", "mails (mbox or eml)", texts.mails),
    )
}
# Of JSON Lines, which are read by the command itself.
LINES = "jsonl"
BY_SUFFIX = {
    ".vtt": "subtitles",
    ".srt": "subtitles",
    ".md": "markdown",
    ".markdown": "markdown",
    ".mbox": "mail",
    ".eml": "mail",
}


@contextmanager
def opened(path: Path) -> Iterator[SourcePath]:
    """The file or folder to read: of a folder or zip file that a program exported, the file with the conversations.

    Raises:
        ValueError: It is a zip file that cannot be read.
    """
    if not path.is_file() or not _begins_as_zip(path):
        yield _main_file(path)
        return
    try:
        archive = ZipFile(path)
    except BadZipFile as error:
        raise ValueError(f"{path} is a damaged zip file: {error}") from None
    with archive:
        yield _main_file(root_of(archive))


def _begins_as_zip(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(ZIP_BEGIN)) == ZIP_BEGIN


def _main_file(path: SourcePath) -> SourcePath:
    if not path.is_dir():
        return path
    for name in DOCUMENTS:
        if (path / name).is_file():
            return path / name
    # A chat of WhatsApp lies beside its pictures.
    found = (file for file in path.rglob("*") if file.suffix.lower() in TEXTS and file.is_file())
    first = list(islice(found, 2))
    return first[0] if len(first) == 1 else path


def recognised(path: SourcePath) -> str:
    """The name of the format of a file or folder.

    Raises:
        ValueError: It is none of the known ones.
    """
    if path.is_dir():
        return _of_folder(path)
    by_suffix = BY_SUFFIX.get(path.suffix.lower())
    if by_suffix is not None:
        return by_suffix
    with path.open("rb") as file:
        head = file.read(HEAD_BYTES)
    begin = head.decode(encoding_of(head), "replace").removeprefix("\ufeff").splitlines()[:FIRST_LINES]
    if any(texts.WHATSAPP.match(line) for line in begin):
        return "whatsapp"
    start = head.removeprefix(codecs.BOM_UTF8)
    if path.suffix.lower() == ".json" or (JSON_BEGIN.match(start) and not _is_lines(start)):
        return _of_document(document(path), path)
    if start.startswith(b"From "):
        return "mail"
    if path.suffix.lower() in LINE_SUFFIXES or JSON_BEGIN.match(start) or not start.strip():
        return LINES
    raise ValueError(
        f"{path} is a text of no known format: neither a WhatsApp chat nor JSON Lines; name its format with --format, "
        "such as markdown for a note"
    )


def _of_folder(path: SourcePath) -> str:
    if (path / "users.json").is_file():
        return "slack"
    if next(path.rglob("*.md"), None) is not None:
        return "markdown"
    raise ValueError(
        f"{path} is no export of a known program: it has no conversations.json (ChatGPT, Claude), result.json "
        "(Telegram), users.json (Slack), and no Markdown files; name a file in it"
    )


def _is_lines(head: bytes) -> bool:
    """True if the first line is a JSON object by itself."""
    first = head.lstrip().split(b"\n", 1)[0].rstrip()
    return first.startswith(b"{") and first.endswith(b"}")


def _of_document(data: Any, path: SourcePath) -> str:
    first = data[0] if isinstance(data, list) and data else data
    if isinstance(first, dict):
        for name, keys in (
            ("chatgpt", {"mapping"}),
            ("claude", {"chat_messages"}),
            ("discord", {"channel", "messages"}),
            ("telegram", {"chats"}),
            ("telegram", {"name", "type", "messages"}),
            ("mem0", {"memory", "id"}),
            ("mem0", {"results"}),
            ("zep", {"facts"}),
            ("zep", {"edges"}),
            ("zep", {"messages"}),
        ):
            if keys <= first.keys():
                return name
        if TEXT_KEYS & first.keys():
            return "json" if isinstance(data, list) else LINES
    raise ValueError(
        f"{path} is a JSON document of no known export; name its format with --format, or convert it to JSON Lines"
    )
