"""Components and dependencies of an architecture document.

They are in the front matter, as ``components``, or in tables of the text with the columns component and depends on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from astrocyte.shared_kb.front_matter import FrontMatterError, line, list_of, text_of
from astrocyte.shared_kb.tables import tables_of

MOST_COMPONENTS = 256
MOST_DEPENDENCIES = 64
MOST_NAME_CHARS = 100
MOST_SUMMARY_CHARS = 250
# The names are one value of metadata, of at most 1,024 bytes.
MOST_DEPENDENCY_BYTES = 1_000
NAME_COLUMNS = ("component", "service", "module")
DEPENDS_COLUMNS = ("depends on", "dependencies", "depends_on")
SUMMARY_COLUMNS = ("description", "purpose", "responsibility")
# Cells of a component without dependencies.
_NONE = frozenset({"", "-", "\u2013", "\u2014", "none", "n/a"})


@dataclass(frozen=True, slots=True)
class Component:
    """A component of a system, and the names of those that it depends on."""

    name: str
    depends_on: tuple[str, ...]
    summary: str = ""


def components_of(values: Mapping[str, Any], text: str) -> tuple[Component, ...]:
    """The components of a document, each once: what is said of one in several places is joined.

    Raises:
        FrontMatterError: A value has another shape, or there are too many.
    """
    found: dict[str, Component] = {}
    for one in (*_of_front_matter(values.get("components", "")), *_of_tables(text)):
        known = found.get(one.name)
        if known is not None:
            depends_on = tuple(dict.fromkeys((*known.depends_on, *one.depends_on)))
            one = Component(one.name, depends_on, known.summary or one.summary)  # noqa: PLW2901 - both sayings in one
        size = len("\n".join(one.depends_on).encode())
        if len(one.depends_on) > MOST_DEPENDENCIES or size > MOST_DEPENDENCY_BYTES:
            raise FrontMatterError(
                f"component {one.name!r} depends on more than {MOST_DEPENDENCIES} others, or their names are too long"
            )
        found[one.name] = one
        if len(found) > MOST_COMPONENTS:
            raise FrontMatterError(f"there are more than {MOST_COMPONENTS} components; split the document")
    return tuple(found.values())


def _of_front_matter(given: object) -> Iterator[Component]:
    """A list of names or mappings with name and depends_on, or a mapping from names to dependencies."""
    if isinstance(given, Mapping):
        items = [(name, value) for name, value in given.items() if isinstance(name, str)]
    elif isinstance(given, list):
        items = [(one, "") if isinstance(one, str) else ("", one) for one in given]
    elif given == "":
        items = []
    else:
        raise FrontMatterError("components is not a list or a mapping")
    for key, value in items:
        values = value if isinstance(value, Mapping) else {"depends_on": value}
        name = line(key, MOST_NAME_CHARS) or text_of(values, ("name",), MOST_NAME_CHARS)
        if not name:
            raise FrontMatterError("a component has no name")
        depends_on = list_of(values, "depends_on", MOST_DEPENDENCIES, MOST_NAME_CHARS)
        yield Component(name, depends_on, text_of(values, ("description", "summary"), MOST_SUMMARY_CHARS))


def _of_tables(text: str) -> Iterator[Component]:
    """The components of tables."""
    columns = {"name": NAME_COLUMNS, "depends_on": DEPENDS_COLUMNS, "summary": SUMMARY_COLUMNS}
    for row in tables_of(text, columns, {"name", "depends_on"}):
        name = line(row["name"], MOST_NAME_CHARS)
        given = row["depends_on"]
        named = [] if given.casefold() in _NONE else re.split(r",|;|<br\s*/?>", given)
        depends_on = tuple(dict.fromkeys(filter(None, (line(one, MOST_NAME_CHARS) for one in named))))
        if name:
            yield Component(name, depends_on, line(row.get("summary", ""), MOST_SUMMARY_CHARS))
