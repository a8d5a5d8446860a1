"""Mental models between callers and the store, and the checks of their parts."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from astrocyte.errors import ValidationError
from astrocyte.model import BlockKind, DeltaOperation, MentalModel, ModelBlock, ModelSection
from astrocyte.pipelines.knowledge import documents
from astrocyte.pipelines.query.time_windows import from_ms
from astrocyte.policy.operations.knowledge.items import ITEM_ID, Items, evidence_of, is_stale
from astrocyte.policy.requests import field_checks
from astrocyte.policy.requests.composed_text import composed_name
from astrocyte.stores.knowledge.items import Body, ItemRecord

MODEL_PREFIX = "model:"
MOST_LEVEL = 6
# Hexadecimal digits of an id that is made of a name without Latin letters.
DIGEST_CHARS = 16
# Left out of ids, and written shorter: names of models are often somebody's preferences.
POSSESSIVE = re.compile(r"['\u2019]s?\b")
SHORT_WORDS = {"preferences": "prefs"}
# Takes a text and its path, and returns it as it may be stored.
Screen = Callable[[str, str], Awaitable[str]]


def model_of(record: ItemRecord) -> MentalModel:
    """A mental model as callers see it."""
    body, sources = record.current.body, record.current.sources
    sections = documents.decode(body["sections"])
    return MentalModel(
        model_id=record.item_id,
        bank_id=record.bank_id,
        name=body["name"],
        scope=record.scope,
        sections=sections,
        content=documents.render(sections),
        sources=evidence_of(sources),
        revision=record.current.revision,
        etag=record.etag,
        created_by=record.created_by,
        created_at=from_ms(record.created_at),
        updated_at=from_ms(record.updated_at),
        is_stale=is_stale(sources),
    )


def body_of(name: str, sections: Sequence[ModelSection], source_ids: Sequence[str]) -> dict[str, Any]:
    """The body of a revision. ``source_ids`` are those of the whole model."""
    return {"name": name, "sections": documents.encode(sections), "source_ids": list(source_ids)}


def all_sources(body: Mapping[str, Any]) -> tuple[str, ...]:
    """The sources of the whole model, then those that blocks cite."""
    cited = documents.cited_ids(documents.decode(body["sections"]))
    return tuple(dict.fromkeys((*body["source_ids"], *cited)))


def content_of(body: Body) -> str:
    """The content of a revision as Markdown."""
    return documents.render(documents.decode(body["sections"]))


def generated_id(name: str) -> str:
    """The id that is made of a name, ``model:alice-prefs`` of "Alice's preferences"."""
    words = documents.slug(POSSESSIVE.sub("", name)).split("-")
    made = f"{MODEL_PREFIX}{'-'.join(SHORT_WORDS.get(word, word) for word in words)}"
    if ITEM_ID.fullmatch(made):
        return made
    return f"{MODEL_PREFIX}{hashlib.sha256(name.encode()).hexdigest()[:DIGEST_CHARS]}"


class ModelChecks:
    """Checks of the parts of mental models; every method raises `ValidationError` with the path of a wrong value.

    Args:
        items: The steps that all kinds of knowledge share.
        most_bytes: Of a model as Markdown.
    """

    def __init__(self, items: Items, most_bytes: int) -> None:
        self._items = items
        self._most_bytes = most_bytes
        self._limits = items.parts.settings.limits

    def name(self, value: object) -> str:
        """The name of a model."""
        return composed_name(field_checks.label(value, "name", self._limits.name_chars))

    def given(self, sections: Sequence[ModelSection], content: str) -> tuple[ModelSection, ...]:
        """The sections of a request that has either sections or Markdown."""
        if bool(sections) == bool(content):
            raise ValidationError("set exactly one of sections and content", field="sections")
        if content:
            made = documents.parse(composed_name(field_checks.text(content, "content", self._most_bytes)))
            path = "content"
        else:
            field_checks.count(sections, "sections", self._limits.batch_items)
            made = tuple(self.section(section, f"sections[{index}]") for index, section in enumerate(sections))
            made, path = documents.with_ids(made), "sections"
        if not any(section.blocks for section in made):
            raise ValidationError("has no text; send at least one block", field=path)
        self.size(made, path)
        return made

    def size(self, sections: Sequence[ModelSection], path: str) -> None:
        """The bytes of a whole model."""
        size = len(documents.render(sections).encode())
        if size > self._most_bytes:
            raise ValidationError(
                f"has {size:,} bytes as Markdown, the limit is {self._most_bytes:,}",
                field=path,
                metadata={"limit": str(self._most_bytes)},
            )

    def section(self, section: object, path: str) -> ModelSection:
        """A section; level 0 is the usual one."""
        if not isinstance(section, ModelSection):
            raise ValidationError(f"expected a ModelSection, got {type(section).__name__}", field=path)
        if section.section_id:
            field_checks.label(section.section_id, f"{path}.section_id", self._limits.tag_chars)
        heading = field_checks.label(section.heading, f"{path}.heading", self._limits.name_chars)
        level = section.level or documents.SECTION_LEVEL
        field_checks.integer(level, f"{path}.level", 1, MOST_LEVEL)
        return ModelSection(
            section.section_id, composed_name(heading), self.blocks(section.blocks, f"{path}.blocks"), level
        )

    def blocks(self, blocks: Sequence[ModelBlock], path: str) -> tuple[ModelBlock, ...]:
        """Blocks of a section."""
        field_checks.count(blocks, path, self._limits.batch_items)
        return tuple(self.block(block, f"{path}[{index}]") for index, block in enumerate(blocks))

    def block(self, block: object, path: str) -> ModelBlock:
        """A block with what its kind needs."""
        if not isinstance(block, ModelBlock):
            raise ValidationError(f"expected a ModelBlock, got {type(block).__name__}", field=path)
        field_checks.choice(block.kind, f"{path}.kind", BlockKind)
        is_list = block.kind in {BlockKind.BULLET_LIST, BlockKind.ORDERED_LIST}
        field_checks.text(block.text, f"{path}.text", self._most_bytes)
        field_checks.count(block.items, f"{path}.items", self._limits.batch_items)
        for index, item in enumerate(block.items):
            if not field_checks.text(item, f"{path}.items[{index}]", self._most_bytes).strip():
                raise ValidationError("is empty", field=f"{path}.items[{index}]")
        if is_list and (block.text or not block.items):
            raise ValidationError("a list needs items and no text", field=f"{path}.items")
        if not is_list and (block.items or not block.text.strip()):
            raise ValidationError(f"a block of kind {block.kind} needs text and no items", field=f"{path}.text")
        if block.language:
            if block.kind is not BlockKind.CODE:
                raise ValidationError("only code has a language", field=f"{path}.language")
            field_checks.label(block.language, f"{path}.language", self._limits.label_chars)
        return replace(
            block,
            text=composed_name(block.text),
            items=tuple(map(composed_name, block.items)),
            source_ids=self._items.source_ids(block.source_ids, f"{path}.source_ids"),
        )

    def operations(self, operations: Sequence[DeltaOperation]) -> tuple[DeltaOperation, ...]:
        """Operations whose values have the right shapes. Whether each can be applied is for the document to say."""
        field_checks.count(operations, "operations", self._limits.batch_items)
        if not operations:
            raise ValidationError("is empty; send at least one operation", field="operations")
        return tuple(self._operation(one, f"operations[{index}]") for index, one in enumerate(operations))

    def _operation(self, operation: object, path: str) -> DeltaOperation:
        if not isinstance(operation, DeltaOperation):
            raise ValidationError(f"expected a DeltaOperation, got {type(operation).__name__}", field=path)
        field_checks.label(operation.op, f"{path}.op", self._limits.label_chars)
        for name in ("section_id", "after_section_id", "new_section_id"):
            if value := getattr(operation, name):
                field_checks.label(value, f"{path}.{name}", self._limits.tag_chars)
        if operation.heading:
            field_checks.label(operation.heading, f"{path}.heading", self._limits.name_chars)
        field_checks.labels(
            operation.unknown_fields, f"{path}.unknown_fields", self._limits.tags, self._limits.name_chars
        )
        for name in ("block_index", "level"):
            if (value := getattr(operation, name)) is not None:
                field_checks.integer(value, f"{path}.{name}", -(2**31), 2**31 - 1)
        return replace(
            operation,
            heading=composed_name(operation.heading),
            block=None if operation.block is None else self.block(operation.block, f"{path}.block"),
            blocks=self.blocks(operation.blocks, f"{path}.blocks"),
        )


async def screened_block(block: ModelBlock, screen: Screen, path: str) -> ModelBlock:
    """A block as it may be stored."""
    items = [await screen(item, f"{path}.items[{index}]") for index, item in enumerate(block.items)]
    return replace(block, text=await screen(block.text, f"{path}.text"), items=tuple(items))


async def screened_blocks(blocks: Sequence[ModelBlock], screen: Screen, path: str) -> tuple[ModelBlock, ...]:
    """Blocks as they may be stored."""
    return tuple([await screened_block(block, screen, f"{path}[{index}]") for index, block in enumerate(blocks)])


async def screened_sections(sections: Sequence[ModelSection], screen: Screen) -> tuple[ModelSection, ...]:
    """Sections as they may be stored."""
    return tuple(
        [
            replace(
                section,
                heading=await screen(section.heading, f"sections[{index}].heading"),
                blocks=await screened_blocks(section.blocks, screen, f"sections[{index}].blocks"),
            )
            for index, section in enumerate(sections)
        ]
    )


async def screened_operation(operation: DeltaOperation, screen: Screen, path: str) -> DeltaOperation:
    """An operation whose texts may be stored."""
    block = operation.block
    return replace(
        operation,
        heading=await screen(operation.heading, f"{path}.heading"),
        block=None if block is None else await screened_block(block, screen, f"{path}.block"),
        blocks=await screened_blocks(operation.blocks, screen, f"{path}.blocks"),
    )
