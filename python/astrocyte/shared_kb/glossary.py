"""Terms of a glossary in Markdown: rows of tables with the columns term and definition, and entries of lists."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from astrocyte.shared_kb.front_matter import line, split
from astrocyte.shared_kb.tables import plain_lines, tables_of, without_markup

# As of a term on the wire.
MOST_NAME_CHARS = 256
MOST_DEFINITION_CHARS = 1_024
MOST_ALIASES = 64
NAME_COLUMNS = ("term", "word")
DEFINITION_COLUMNS = ("definition", "meaning", "description")
ALIAS_COLUMNS = ("aliases", "alias", "synonyms", "also")
# - **term**: definition; the mark before the definition can be a colon or a dash, inside or after the emphasis.
_ENTRY = re.compile(
    r"[ ]{0,3}[-*+][ \t]+(?:\*\*|__)(?P<name>[^*_]{1,256}?)[ \t]{0,9}:?(?:\*\*|__)"
    r"[ \t]*[:\u2013\u2014-]?[ \t]*(?P<text>.*)"
)


@dataclass(frozen=True, slots=True)
class GlossaryEntry:
    """A term with its definition and other names."""

    name: str
    definition: str
    aliases: tuple[str, ...] = ()


def entries_of(text: str) -> tuple[GlossaryEntry, ...]:
    """The terms of a glossary in the order of the text, each once: the first definition counts.

    Raises:
        FrontMatterError: Its front matter cannot be read.
    """
    _, body = split(text)
    found: dict[str, GlossaryEntry] = {}
    for entry in (*_of_tables(body), *_of_lists(body)):
        if entry.name:
            found.setdefault(entry.name.casefold(), entry)
    return tuple(found.values())


def _of_tables(body: str) -> Iterator[GlossaryEntry]:
    columns = {"name": NAME_COLUMNS, "definition": DEFINITION_COLUMNS, "aliases": ALIAS_COLUMNS}
    for row in tables_of(body, columns, {"name", "definition"}):
        named = [line(one, MOST_NAME_CHARS) for one in re.split(r"[,;]", row.get("aliases", ""))]
        aliases = tuple(dict.fromkeys(filter(None, named)))[:MOST_ALIASES]
        yield GlossaryEntry(line(row["name"], MOST_NAME_CHARS), line(row["definition"], MOST_DEFINITION_CHARS), aliases)


def _of_lists(body: str) -> Iterator[GlossaryEntry]:
    for content in plain_lines(body):
        entry = _ENTRY.fullmatch(content)
        if entry is not None:
            text = without_markup(entry["text"])
            yield GlossaryEntry(line(entry["name"], MOST_NAME_CHARS), line(text, MOST_DEFINITION_CHARS))
