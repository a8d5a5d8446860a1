"""Lines of observations, mental models, directives and wiki pages.

There is one for each revision, those of an item together, by number.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from astrocyte.errors import ValidationError
from astrocyte.model import BlockKind, ObservationKind, PageKind, PageWriter, RevisionCause
from astrocyte.pipelines.portability.archive import (
    DIRECTIVES,
    MENTAL_MODELS,
    OBSERVATIONS,
    WIKI_PAGES,
    line_of,
    time_text,
)
from astrocyte.pipelines.portability.graph_lines import Tell
from astrocyte.pipelines.portability.line_values import LineValues, own_id
from astrocyte.stores.knowledge.items import CLAIM_KEYS, Body, ItemHistory, ItemKind, RevisionRecord, SourceRecord

SECTION_OF = {
    ItemKind.OBSERVATION: OBSERVATIONS,
    ItemKind.MENTAL_MODEL: MENTAL_MODELS,
    ItemKind.DIRECTIVE: DIRECTIVES,
    ItemKind.WIKI_PAGE: WIKI_PAGES,
}
_COMMON = frozenset(
    {"section", "id", "revision", "cause", "scope", "created_by", "created_at", "changed_by", "changed_at", "sources"}
)
REVISION_KEYS = {
    ItemKind.OBSERVATION: _COMMON
    | {"text", "kind", "confidence", "valid_from", "valid_until", "superseded_by", "topic", "statement"},
    ItemKind.MENTAL_MODEL: _COMMON | {"name", "parts", "source_ids"},
    ItemKind.DIRECTIVE: _COMMON | {"rule_text", "priority"},
    ItemKind.WIKI_PAGE: _COMMON | {"kind", "titles", "writer", "parts", "source_ids"},
}
_SOURCE_KEYS = frozenset({"id", "version", "observed_at"})
_PART_KEYS = frozenset({"section_id", "heading", "level", "blocks"})
_BLOCK_KEYS = frozenset({"kind", "text", "items", "language", "source_ids"})
_TITLE_KEYS = frozenset({"text", "source_ids"})
# What the rules of the consolidation noted about a statement; gone once somebody rewrote it.
_STATEMENT_KEYS = frozenset({"base_confidence", "superseders", *CLAIM_KEYS})
_SUPERSEDER_KEYS = frozenset({"id", "at"})
# A topic is a digest.
TOPIC_BYTES = 32
# The largest priority either way that a line may have; the calls allow less.
MOST_PRIORITY = 1 << 30


@dataclass(frozen=True, slots=True)
class ArchivedRevision:
    """A revision of an item, with the number of its line. The values of ``item`` are of the item, without revisions."""

    line: int
    item: ItemHistory
    revision: RevisionRecord


def item_lines(items: Sequence[ItemHistory], tell: Tell) -> Iterator[bytes]:
    """The lines of items, with texts as they may leave."""
    for item in items:
        for revision in item.revisions:
            texts = texts_of(item.kind, revision.body)
            body = with_texts(item.kind, revision.body, tell(texts))
            topic = item.topic if body == revision.body else None
            yield _revision_line(replace(item, topic=topic), replace(revision, body=body))


def texts_of(kind: ItemKind, body: Body) -> list[str]:
    """The texts of a body that may hold personal data, in the order of `with_texts`."""
    if kind is ItemKind.DIRECTIVE:
        return [body["rule_text"]]
    if kind is ItemKind.OBSERVATION:
        return [body["text"]]
    texts = [title["text"] for title in body["titles"]] if kind is ItemKind.WIKI_PAGE else [body["name"]]
    for section in body["sections"]:
        texts.append(section["heading"])
        for block in section["blocks"]:
            texts += [block["text"], *block["items"]]
    return texts


def with_texts(kind: ItemKind, body: Body, texts: Sequence[str]) -> Body:
    """The body with these texts. Of an observation that changed, the words of its statement are left out."""
    if kind is ItemKind.DIRECTIVE:
        return {**body, "rule_text": texts[0]}
    if kind is ItemKind.OBSERVATION:
        if texts[0] == body["text"]:
            return body
        return {**{key: value for key, value in body.items() if key not in _STATEMENT_KEYS}, "text": texts[0]}
    rest = iter(texts)
    named: dict[str, Any]
    if kind is ItemKind.WIKI_PAGE:
        named = {"titles": [{**title, "text": next(rest)} for title in body["titles"]]}
    else:
        named = {"name": next(rest)}
    sections = []
    for section in body["sections"]:
        heading = next(rest)
        blocks = [
            {**block, "text": next(rest), "items": [next(rest) for _ in block["items"]]} for block in section["blocks"]
        ]
        sections.append({**section, "heading": heading, "blocks": blocks})
    return {**body, **named, "sections": sections}


def revision_of(kind: ItemKind, values: Mapping[str, Any], line: int) -> ArchivedRevision:
    """The revision of a line.

    Raises:
        ValidationError: A key is unknown, or a value has another type; ``field`` is the key.
    """
    read = LineValues(values, REVISION_KEYS[kind])
    priority = read.integer("priority", -MOST_PRIORITY) if read.has("priority") else 0
    topic = _topic(read) if read.has("topic") else None
    created_by, created_at = read.text("created_by"), read.moment("created_at")
    item = ItemHistory(kind, read.text("id"), read.text("scope"), priority, topic, created_by, created_at, ())
    sources = tuple(
        SourceRecord(own_id(one.text("id")), one.integer("version", 1), one.moment("observed_at"), None, None)
        for one in read.objects("sources", _SOURCE_KEYS)
    )
    revision = RevisionRecord(
        read.integer("revision", 1),
        read.word("cause", RevisionCause),
        _BODIES[kind](read),
        read.text("changed_by"),
        read.moment("changed_at"),
        sources,
    )
    return ArchivedRevision(line, item, revision)


def _topic(read: LineValues) -> bytes:
    text = read.text("topic")
    try:
        topic = bytes.fromhex(text)
    except ValueError:
        topic = b""
    if not topic or len(topic) > TOPIC_BYTES:
        raise ValidationError(f"expected 1 to {TOPIC_BYTES} bytes as hexadecimal digits", field="topic")
    return topic


def _observation(read: LineValues) -> Body:
    body: dict[str, Any] = {
        "text": read.text("text"),
        "kind": str(read.word("kind", ObservationKind)),
        "confidence": read.number("confidence"),
        "valid_from": read.milliseconds("valid_from"),
        "valid_until": read.milliseconds("valid_until"),
        "superseded_by": read.optional("superseded_by") or "",
    }
    if (statement := read.object("statement", _STATEMENT_KEYS)) is not None:
        if statement.has("base_confidence"):
            body["base_confidence"] = statement.number("base_confidence")
        if statement.has("words"):
            body["words"] = list(statement.texts("words"))
        if statement.has("denied"):
            body["denied"] = statement.truth("denied")
        for key in ("object", "frequency", "relation"):
            if statement.has(key):
                body[key] = statement.text(key)
        if statement.has("superseders"):
            told = statement.objects("superseders", _SUPERSEDER_KEYS)
            body["superseders"] = [[one.text("id"), one.moment("at")] for one in told]
    return body


def _model(read: LineValues) -> Body:
    return {"name": read.text("name"), "sections": _sections(read), "source_ids": _ids(read)}


def _page(read: LineValues) -> Body:
    return {
        "kind": str(read.word("kind", PageKind)),
        "titles": [
            {"text": title.text("text"), "source_ids": _ids(title)} for title in read.objects("titles", _TITLE_KEYS)
        ],
        "writer": str(read.word("writer", PageWriter)),
        # Made of row keys, which are other ones in each bank: the next compilation writes the page again.
        "fingerprint": "",
        "sections": _sections(read),
        "source_ids": _ids(read),
    }


def _sections(read: LineValues) -> list[dict[str, Any]]:
    return [
        {
            "section_id": part.text("section_id"),
            "heading": part.text("heading"),
            "level": part.integer("level", 1),
            "blocks": [_block(block) for block in part.objects("blocks", _BLOCK_KEYS)],
        }
        for part in read.objects("parts", _PART_KEYS)
    ]


def _block(read: LineValues) -> dict[str, Any]:
    return {
        "kind": str(read.word("kind", BlockKind)),
        "text": read.optional("text") or "",
        "items": list(read.texts("items")),
        "language": read.optional("language") or "",
        "source_ids": _ids(read),
    }


def _ids(read: LineValues) -> list[str]:
    return [own_id(one) for one in read.texts("source_ids")]


def _directive(read: LineValues) -> Body:
    return {"rule_text": read.text("rule_text")}


_BODIES = {
    ItemKind.OBSERVATION: _observation,
    ItemKind.MENTAL_MODEL: _model,
    ItemKind.DIRECTIVE: _directive,
    ItemKind.WIKI_PAGE: _page,
}


def _revision_line(item: ItemHistory, revision: RevisionRecord) -> bytes:
    values: dict[str, Any] = {
        "section": SECTION_OF[item.kind],
        "id": item.item_id,
        "revision": revision.revision,
        "cause": str(revision.cause),
        "scope": item.scope,
        "created_by": item.created_by,
        "created_at": time_text(item.created_at),
        "changed_by": revision.changed_by,
        "changed_at": time_text(revision.changed_at),
        **_values(item, revision.body),
    }
    sources = [
        {"id": one.memory_id, "version": one.version, "observed_at": time_text(one.observed_at)}
        for one in revision.sources
        if one.current is not None
    ]
    return line_of(values | ({"sources": sources} if sources else {}))


def _values(item: ItemHistory, body: Body) -> dict[str, Any]:
    """The values of a line that only its kind has."""
    if item.kind is ItemKind.DIRECTIVE:
        return {"rule_text": body["rule_text"], **({"priority": item.priority} if item.priority else {})}
    if item.kind is ItemKind.MENTAL_MODEL:
        return {"name": body["name"], "parts": body["sections"], "source_ids": body["source_ids"]}
    if item.kind is ItemKind.WIKI_PAGE:
        page = {key: body[key] for key in ("kind", "titles", "writer", "source_ids")}
        return page | {"parts": body["sections"]}
    optional = {
        "valid_from": time_text(body["valid_from"]),
        "valid_until": time_text(body["valid_until"]),
        "superseded_by": body["superseded_by"],
        "topic": None if item.topic is None else item.topic.hex(),
    }
    values = {"text": body["text"], "kind": body["kind"], "confidence": body["confidence"]}
    statement = {key: body[key] for key in sorted(_STATEMENT_KEYS & body.keys())}
    if "superseders" in statement:
        statement["superseders"] = [{"id": one, "at": time_text(at)} for one, at in body["superseders"]]
    return (
        values
        | {key: value for key, value in optional.items() if value}
        | ({"statement": statement} if statement else {})
    )
