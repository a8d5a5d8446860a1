"""The format of a file or folder, by its name and its first bytes, and its entries."""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import tzinfo
from pathlib import Path
from typing import Any

from astrocyte.cli.portability.sources import chats, texts
from astrocyte.cli.portability.sources.entries import Entry, document, encoding_of

# Bytes that are looked at.
HEAD_BYTES = 65_536
FIRST_LINES = 20
# The zone is of times that have none.
Read = Callable[[Path, tzinfo | None], Iterator[Entry]]
JSON_BEGIN = re.compile(rb"\s*[\[{]")


@dataclass(frozen=True, slots=True)
class Source:
    """A format: its name in ``--format``, its name for people, and its entries."""

    name: str
    title: str
    read: Read


def _document(read: Callable[[Any], Iterator[Entry]]) -> Read:
    def entries(path: Path, _: tzinfo | None) -> Iterator[Entry]:
        yield from read(document(path))

    return entries


def _file(read: Callable[[Path], Iterator[Entry]]) -> Read:
    return lambda path, _: read(path)


SOURCES: Mapping[str, Source] = {
    source.name: source
    for source in (
        Source("chatgpt", "ChatGPT export (conversations.json)", _document(chats.chatgpt)),
        Source("claude", "Claude export (conversations.json)", _document(chats.claude)),
        Source("slack", "Slack export (folder)", _file(chats.slack)),
        Source("discord", "Discord channel (DiscordChatExporter)", _document(chats.discord)),
        Source("telegram", "Telegram Desktop export (result.json)", _document(chats.telegram)),
        Source("mem0", "mem0 export", _document(chats.mem0)),
        Source("zep", "Zep export", _document(chats.zep)),
        Source("whatsapp", "WhatsApp chat (text)", texts.whatsapp),
        Source("subtitles", "WebVTT or SubRip subtitles", _file(texts.subtitles)),
        Source("markdown", "Markdown notes", _file(texts.markdown)),
        Source("mail", "mails (mbox or eml)", _file(texts.mails)),
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


def recognised(path: Path) -> str:
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
    return "mail" if start.startswith(b"From ") else LINES


def _of_folder(path: Path) -> str:
    if (path / "users.json").is_file():
        return "slack"
    if next(path.rglob("*.md"), None) is not None:
        return "markdown"
    raise ValueError(f"{path} is neither a Slack export (no users.json) nor a folder with Markdown files")


def _is_lines(head: bytes) -> bool:
    """True if the first line is a JSON object by itself."""
    first = head.lstrip().split(b"\n", 1)[0].rstrip()
    return first.startswith(b"{") and first.endswith(b"}")


def _of_document(data: Any, path: Path) -> str:
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
        if isinstance(data, dict) and {"content", "text", "message"} & data.keys():
            return LINES
    raise ValueError(
        f"{path} is a JSON document of no known export; name its format with --format, or convert it to JSON Lines"
    )
