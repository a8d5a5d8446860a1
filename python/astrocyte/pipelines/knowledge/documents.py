"""The document of a mental model: sections with blocks, as Markdown and as the JSON types of the store."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from astrocyte.model import BlockKind, ModelBlock, ModelSection

# The section of text before the first heading.
OVERVIEW = "Overview"
SECTION_LEVEL = 2
# Characters of an id that is made of a heading.
ID_CHARS = 64

HEADING = re.compile(r" {0,3}(#{1,6})[ \t]+(.+?)[ \t]*#*[ \t]*$")
RULE = re.compile(r" {0,3}([-*_])(?:[ \t]*\1){2,}[ \t]*$")
FENCE = re.compile(r" {0,3}(`{3,}|~{3,})[ \t]*([^`\s]*)[^`]*$")
BULLET = re.compile(r" {0,3}[-*+][ \t]+(.*)$")
NUMBERED = re.compile(r" {0,3}\d{1,9}[.)][ \t]+(.*)$")
_NOT_IN_ID = re.compile(r"[\W_]+")
_BACKTICKS = re.compile(r"`{3,}")


def slug(heading: str) -> str:
    """The id that is made of a heading: words in lower case with hyphens between; ``section`` where it has none."""
    return _NOT_IN_ID.sub("-", heading.casefold()).strip("-")[:ID_CHARS].strip("-") or "section"


def free_id(wanted: str, taken: Collection[str]) -> str:
    """The id, with the first free number from 2 on behind it where it is taken."""
    number, name = 1, wanted
    while name in taken:
        number += 1
        name = f"{wanted}-{number}"
    return name


def with_ids(sections: Iterable[ModelSection]) -> tuple[ModelSection, ...]:
    """The sections, each with an id that no other one has."""
    made: list[ModelSection] = []
    taken: set[str] = set()
    for section in sections:
        name = free_id(section.section_id or slug(section.heading), taken)
        taken.add(name)
        made.append(replace(section, section_id=name))
    return tuple(made)


def parse(markdown: str) -> tuple[ModelSection, ...]:
    """The sections of a Markdown text, without horizontal rules. Text before a heading gets the section Overview."""
    sections: list[ModelSection] = []
    heading, level, lines = OVERVIEW, SECTION_LEVEL, list[str]()
    fence = ""
    for line in markdown.splitlines():
        opened = FENCE.match(line)
        if opened and not fence:
            fence = opened[1]
        elif opened and not opened[2] and opened[1].startswith(fence):
            fence = ""
        found = None if fence else HEADING.match(line)
        if found is None:
            lines.append(line)
            continue
        sections += _section(heading, level, lines, named=bool(sections) or heading != OVERVIEW)
        heading, level, lines = found[2], len(found[1]), []
    sections += _section(heading, level, lines, named=heading != OVERVIEW or bool(sections))
    return with_ids(sections)


def _section(heading: str, level: int, lines: Sequence[str], *, named: bool) -> list[ModelSection]:
    blocks = parse_blocks("\n".join(lines))
    return [ModelSection("", heading, blocks, level)] if blocks or named else []


def parse_blocks(markdown: str) -> tuple[ModelBlock, ...]:
    """The blocks of a Markdown text without headings: paragraphs, lists of one level, fenced code."""
    return tuple(_blocks(markdown.splitlines()))


def _blocks(lines: Sequence[str]) -> Iterator[ModelBlock]:
    at = 0
    while at < len(lines):
        line = lines[at]
        if not line.strip() or RULE.match(line):
            at += 1
        elif (fence := FENCE.match(line)) is not None:
            end = at + 1
            while end < len(lines) and lines[end].strip() != fence[1]:
                end += 1
            yield ModelBlock(BlockKind.CODE, "\n".join(lines[at + 1 : end]), language=fence[2])
            at = end + 1
        elif BULLET.match(line) or NUMBERED.match(line):
            kind, item = (BlockKind.BULLET_LIST, BULLET) if BULLET.match(line) else (BlockKind.ORDERED_LIST, NUMBERED)
            items, at = _items(lines, at, item)
            yield ModelBlock(kind, items=items)
        else:
            end = at + 1
            while end < len(lines) and lines[end].strip() and not _begins(lines[end]):
                end += 1
            yield ModelBlock(BlockKind.PARAGRAPH, "\n".join(part.strip() for part in lines[at:end]))
            at = end


def _items(lines: Sequence[str], at: int, item: re.Pattern[str]) -> tuple[tuple[str, ...], int]:
    items: list[str] = []
    while at < len(lines) and lines[at].strip():
        found = item.match(lines[at])
        if found is not None and not RULE.match(lines[at]):
            items.append(found[1].strip())
        elif _begins(lines[at]):
            break
        else:
            items[-1] = f"{items[-1]} {lines[at].strip()}".strip()
        at += 1
    return tuple(items), at


def _begins(line: str) -> bool:
    """True if a line begins another block."""
    return any(pattern.match(line) for pattern in (RULE, FENCE, BULLET, NUMBERED))


def render(sections: Iterable[ModelSection]) -> str:
    """The Markdown of sections; equal sections give equal text."""
    return "\n\n".join(
        part
        for section in sections
        for part in (f"{'#' * section.level} {section.heading}", *map(render_block, section.blocks))
    )


def render_block(block: ModelBlock) -> str:
    """The Markdown of a block."""
    if block.kind is BlockKind.CODE:
        longest = max((len(run) for run in _BACKTICKS.findall(block.text)), default=2)
        fence = "`" * (longest + 1)
        return f"{fence}{block.language}\n{block.text}\n{fence}"
    if block.kind is BlockKind.BULLET_LIST:
        return "\n".join(f"- {item}" for item in block.items)
    if block.kind is BlockKind.ORDERED_LIST:
        return "\n".join(f"{number}. {item}" for number, item in enumerate(block.items, 1))
    return block.text


def encode(sections: Iterable[ModelSection]) -> list[dict[str, Any]]:
    """Sections as the store holds them."""
    return [
        {
            "section_id": section.section_id,
            "heading": section.heading,
            "level": section.level,
            "blocks": [
                {
                    "kind": str(block.kind),
                    "text": block.text,
                    "items": list(block.items),
                    "language": block.language,
                    "source_ids": list(block.source_ids),
                }
                for block in section.blocks
            ],
        }
        for section in sections
    ]


def decode(sections: Iterable[Mapping[str, Any]]) -> tuple[ModelSection, ...]:
    """The inverse of `encode`."""
    return tuple(
        ModelSection(
            section["section_id"],
            section["heading"],
            tuple(
                ModelBlock(
                    BlockKind(block["kind"]),
                    block["text"],
                    tuple(block["items"]),
                    block["language"],
                    tuple(block["source_ids"]),
                )
                for block in section["blocks"]
            ),
            section["level"],
        )
        for section in sections
    )


def cited_ids(sections: Iterable[ModelSection]) -> tuple[str, ...]:
    """The memories that blocks cite, without repeats, in the order of the document."""
    return tuple(dict.fromkeys(one for section in sections for block in section.blocks for one in block.source_ids))
