"""Documents: what a Markdown file is, by its front matter, name and text, and the rows that it becomes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from typing import Any

from astrocyte.model import KbDocument
from astrocyte.pipelines.shared_kb.rows import COMPONENT_ROW, COMPONENT_TYPE, FIRST_ROW, TAG
from astrocyte.shared_kb.digests import digest, path_digest
from astrocyte.shared_kb.front_matter import FrontMatterError, line, list_of, split, text_of
from astrocyte.shared_kb.tables import plain_lines
from astrocyte.shared_kb.topology import MOST_NAME_CHARS, Component, components_of

# Below the default limit of a memory (homeostasis.retain_max_content_bytes), with room for the heading of a part.
PART_BYTES = 64_000
# A value of metadata has at most 1,024 bytes, and a character at most four.
MOST_TITLE_CHARS = 200
MOST_SUMMARY_CHARS = 250
MOST_ID_CHARS = 64
# A memory has at most 64 tags of 128 characters, one of which marks shared documents.
MOST_TAGS = 63
MOST_TAG_CHARS = 128
INDEX_TYPE = "index"
DEFAULT_TYPE = "document"
ARCHITECTURE_TYPE = "architecture"
# Other spellings of types in front matter.
TYPE_NAMES = {
    "decision": "adr",
    "decision-record": "adr",
    "architecture-decision-record": "adr",
    "specification": "spec",
    "topology": ARCHITECTURE_TYPE,
}
# Types by the name of a folder, and by the beginning of a file name.
TYPE_FOLDERS = {
    "adr": "adr", "adrs": "adr", "decision": "adr", "decisions": "adr",
    "spec": "spec", "specs": "spec", "specifications": "spec",
}  # fmt: skip
TYPE_FILES = {"adr": "adr", "spec": "spec", "architecture": ARCHITECTURE_TYPE, "topology": ARCHITECTURE_TYPE,
              "glossary": "glossary", "template": "template"}  # fmt: skip
# States by the name of a folder.
STATUS_FOLDERS = {
    "approved": "approved", "accepted": "accepted", "proposed": "proposed", "draft": "draft", "drafts": "draft",
    "rejected": "rejected", "deprecated": "deprecated", "superseded": "superseded", "archived": "archived",
}  # fmt: skip
_WORD = re.compile(r"[a-z0-9]+(?:[-_][a-z0-9]+)*")
# The section of a decision record in which its state is one word.
_STATUS_SECTION = re.compile(r"^##[ \t]+status[ \t#]*\n+[ \t]*[*_]*([a-z]+)", re.MULTILINE | re.IGNORECASE)
_FILE_ID = re.compile(r"(adr|spec|rfc)[-_ ]?([0-9]{1,6})(?![0-9])", re.IGNORECASE)
_FILE_NUMBER = re.compile(r"([0-9]{1,6})(?:[-_ .]|$)")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?![0-9])")


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a file: its document without a memory, its text, tags and time."""

    document: KbDocument
    text: str
    tags: tuple[str, ...]
    occurred_at: datetime | None


def rows_of(folder: str, path: str, text: str, file_hash: str) -> tuple[Row, ...]:
    """The rows of a Markdown file; none for an index.

    Args:
        folder: Name of the indexed folder.
        path: Path of the file in it, with slashes.
        text: Its text.
        file_hash: Its digest.

    Raises:
        FrontMatterError: Its front matter cannot be read.
    """
    values, body = split(text)
    head = _head(folder, path, values, body, file_hash)
    if head.type == INDEX_TYPE:
        return ()
    tags = (TAG, *(tag for tag in list_of(values, "tags", MOST_TAGS, MOST_TAG_CHARS) if tag != TAG))
    when = None if not head.date else datetime.combine(date.fromisoformat(head.date), datetime.min.time(), UTC)
    components = components_of(values, body) if head.type == ARCHITECTURE_TYPE else ()
    texts = [(head, text) for head, text in _parts(head, body)]
    texts += [_component(head, one) for one in components]
    return tuple(
        Row(replace(document, row_count=len(texts), text_hash=digest(text.encode())), text, tags, when)
        for document, text in texts
    )


def _head(folder: str, path: str, values: dict[str, Any], body: str, file_hash: str) -> KbDocument:
    """The document of a file, as its first row."""
    *folders, name = path.split("/")
    stem = name.rpartition(".")[0]
    kind = _word(values, "type") or _type_of(folders, stem)
    kind = TYPE_NAMES.get(kind, kind)
    if kind == COMPONENT_TYPE:
        raise FrontMatterError("type component is for components of an architecture document; name another type")
    given = values if "title" in values else {**values, "title": _heading(body)}
    return KbDocument(
        memory_id="",
        folder=folder,
        path=path,
        type=kind,
        document_id=text_of(values, ("id", f"{kind}_id", f"{kind}-id"), MOST_ID_CHARS) or _id_of(kind, stem),
        title=text_of(given, ("title",), MOST_TITLE_CHARS) or line(stem, MOST_TITLE_CHARS),
        status=_word(values, "status") or _status_of(folders, body),
        date=_date(values),
        summary=text_of(values, ("summary", "description", "abstract"), MOST_SUMMARY_CHARS),
        depends_on=(),
        row=FIRST_ROW,
        row_count=1,
        path_hash=path_digest(folder, path),
        file_hash=file_hash,
        text_hash="",
    )


def _heading(body: str) -> str:
    """The first heading of a text, of the first level; "" for none."""
    lines = (content for content in plain_lines(body) if content.startswith(("# ", "#\t")))
    return next((content[1:].strip().rstrip("#").rstrip() for content in lines), "")


def _word(values: dict[str, Any], name: str) -> str:
    """A value that filters compare: lower case, hyphens for blanks."""
    given = text_of(values, (name,), MOST_ID_CHARS).casefold()
    word = "-".join(given.split())
    if word and not _WORD.fullmatch(word):
        raise FrontMatterError(f"{name} is {given!r:.40}; use letters, digits and hyphens")
    return word


def _type_of(folders: list[str], stem: str) -> str:
    word = re.split(r"[^a-z]", stem.casefold(), maxsplit=1)[0]
    if word in TYPE_FILES:
        return TYPE_FILES[word]
    return _by_folder(folders, TYPE_FOLDERS) or DEFAULT_TYPE


def _status_of(folders: list[str], body: str) -> str:
    named = _by_folder(folders, STATUS_FOLDERS)
    section = None if named else _STATUS_SECTION.search(body)
    return named if section is None else section[1].casefold()[:MOST_ID_CHARS]


def _by_folder(folders: list[str], names: Mapping[str, str]) -> str:
    """The name that the nearest folder stands for; "" for none."""
    return next((names[one.casefold()] for one in reversed(folders) if one.casefold() in names), "")


def _id_of(kind: str, stem: str) -> str:
    """The identifier in a file name: ADR-5 of adr-5-database.md, or of 5-database.md among decisions."""
    named = _FILE_ID.match(stem)
    if named is not None:
        return f"{named[1].upper()}-{named[2]}"
    number = _FILE_NUMBER.match(stem)
    return f"{kind.upper()}-{number[1]}" if number is not None and kind in {"adr", "spec"} else ""


def _date(values: dict[str, Any]) -> str:
    found = _DATE.match(text_of(values, ("date", "updated", "created"), MOST_ID_CHARS))
    try:
        return "" if found is None else date.fromisoformat(found[0]).isoformat()
    except ValueError:
        raise FrontMatterError(f"date {found[0] if found else ''} is no day of the calendar") from None


def _parts(head: KbDocument, body: str) -> Iterator[tuple[KbDocument, str]]:
    """The text of a document, long ones in parts. Each begins with the identifier and the title, which words find."""
    name = f"{head.document_id}: {head.title}" if head.document_id else head.title
    first = body.strip().partition("\n")[0]
    begun = head.title in first and head.document_id in first
    for number, part in enumerate(_pieces(body.strip()), 1):
        heading = "" if begun and number == 1 else name if number == 1 else f"{name}, part {number}"
        yield replace(head, row=str(number)), f"{heading}\n\n{part}".strip()


def _pieces(body: str) -> Iterator[str]:
    """A text in pieces of at most `PART_BYTES`, cut before headings, else at empty lines, at line ends, or anywhere."""
    if len(body.encode()) <= PART_BYTES:
        yield body
        return
    held = ""
    for block in _blocks(body):
        if held and len((held + block).encode()) > PART_BYTES:
            yield held.strip("\n")
            held = ""
        held += block
    if held.strip():
        yield held.strip("\n")


def _blocks(body: str) -> Iterator[str]:
    for section in re.split(r"^(?=#{1,6}[ \t])", body, flags=re.MULTILINE):
        if len(section.encode()) <= PART_BYTES:
            yield section
            continue
        for paragraph in re.split(r"(?<=\n\n)", section):
            if len(paragraph.encode()) <= PART_BYTES:
                yield paragraph
                continue
            # A character has at most four bytes.
            step = PART_BYTES // 4
            for content in paragraph.splitlines(keepends=True):
                yield from (content[start : start + step] for start in range(0, len(content), step))


def _component(head: KbDocument, one: Component) -> tuple[KbDocument, str]:
    """The row of a component."""
    depends = f"depends on {', '.join(one.depends_on)}" if one.depends_on else "depends on no other component"
    text = f"Component {one.name} of {head.title} {depends}."
    document = replace(
        head,
        type=COMPONENT_TYPE,
        document_id="",
        title=one.name[:MOST_NAME_CHARS],
        summary=one.summary,
        depends_on=one.depends_on,
        row=f"{COMPONENT_ROW}{one.name}",
    )
    return document, f"{text}\n\n{one.summary}".strip()
