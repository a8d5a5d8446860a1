"""From mappings of the Python API to sections, blocks and delta operations of mental models."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any, TypeVar

from astrocyte.errors import ValidationError
from astrocyte.facade import keywords
from astrocyte.model import BlockKind, DeltaOperation, ModelBlock, ModelSection
from astrocyte.pipelines.knowledge.documents import SECTION_LEVEL, parse_blocks

T = TypeVar("T")
# Other names of fields, as the API reference has them.
SECTION_NAMES = {"title": "heading", "id": "section_id"}
OPERATION_NAMES = {"index": "block_index", "title": "heading", "new_id": "new_section_id"}
SECTION_FIELDS = ("section_id", "heading", "level", "blocks", "content")
BLOCK_FIELDS = tuple(field.name for field in fields(ModelBlock))
OPERATION_FIELDS = frozenset(field.name for field in fields(DeltaOperation)) - {"unknown_fields"}
# Fields of a block, or of blocks, as Markdown.
BLOCK_TEXTS = ("new_content", "content")


def sections_of(values: Sequence[ModelSection | Mapping[str, Any]] | None) -> tuple[ModelSection, ...]:
    """Sections from `ModelSection`, or from mappings: ``{"title": ..., "content": Markdown}`` or ``blocks``."""
    return _each(values, "sections", _section)


def operations_of(values: Sequence[DeltaOperation | Mapping[str, Any]]) -> tuple[DeltaOperation, ...]:
    """Operations from `DeltaOperation`, or from mappings. Fields that no operation has are named in the result."""
    return _each(values, "operations", _operation)


def _each(values: Any, path: str, convert: Callable[[Any, str], T]) -> tuple[T, ...]:  # noqa: ANN401 - what a caller gave
    if values is None:
        return ()
    if isinstance(values, (str, bytes, Mapping)) or not isinstance(values, Sequence):
        raise ValidationError(f"expected a list, got {type(values).__name__}", field=path)
    return tuple(convert(value, f"{path}[{index}]") for index, value in enumerate(values))


def _renamed(value: Any, names: Mapping[str, str], path: str) -> dict[str, Any]:  # noqa: ANN401 - what a caller gave
    if not isinstance(value, Mapping):
        raise ValidationError(f"expected a mapping, got {type(value).__name__}", field=path)
    return {names.get(key, key): one for key, one in value.items()}


def _known(values: Mapping[str, Any], known: Sequence[str], path: str) -> None:
    for name in values:
        if name not in known:
            raise ValidationError(f"{ascii(name)[:64]} is not one of {', '.join(known)}", field=path)


def _section(value: Any, path: str) -> ModelSection:  # noqa: ANN401 - what a caller gave
    if isinstance(value, ModelSection):
        return value
    given = _renamed(value, SECTION_NAMES, path)
    _known(given, SECTION_FIELDS, path)
    if "content" in given and "blocks" in given:
        raise ValidationError("set one of content and blocks", field=f"{path}.content")
    if "content" in given:
        blocks = parse_blocks(_text(given["content"], f"{path}.content"))
    else:
        blocks = _each(given.get("blocks"), f"{path}.blocks", _block)
    return ModelSection(
        given.get("section_id", ""), given.get("heading", ""), blocks, given.get("level", SECTION_LEVEL)
    )


def _block(value: Any, path: str) -> ModelBlock:  # noqa: ANN401 - what a caller gave
    if isinstance(value, ModelBlock):
        return value
    if isinstance(value, str):
        return _of_text(value)
    given = _renamed(value, {"type": "kind"}, path)
    _known(given, BLOCK_FIELDS, path)
    return ModelBlock(
        keywords.choice(BlockKind, given.get("kind", BlockKind.PARAGRAPH), f"{path}.kind"),
        given.get("text", ""),
        keywords.texts(given.get("items"), f"{path}.items"),
        given.get("language", ""),
        keywords.texts(given.get("source_ids"), f"{path}.source_ids"),
    )


def _of_text(text: str) -> ModelBlock:
    """The block of a Markdown text; a text of several blocks is one paragraph."""
    blocks = parse_blocks(text)
    return blocks[0] if len(blocks) == 1 else ModelBlock(text=text)


def _text(value: Any, path: str) -> str:  # noqa: ANN401 - what a caller gave
    if not isinstance(value, str):
        raise ValidationError(f"expected text, got {type(value).__name__}", field=path)
    return value


def _operation(value: Any, path: str) -> DeltaOperation:  # noqa: ANN401 - what a caller gave
    if isinstance(value, DeltaOperation):
        return value
    given = _renamed(value, OPERATION_NAMES, path)
    op = _text(given.get("op", ""), f"{path}.op")
    for name in BLOCK_TEXTS:
        if isinstance(given.get(name), str):
            if op in {"add_section", "replace_section_blocks"}:
                given.setdefault("blocks", parse_blocks(given.pop(name)))
            else:
                given.setdefault("block", given.pop(name))
    unknown = tuple(sorted(str(name) for name in given if name not in OPERATION_FIELDS))
    known: dict[str, Any] = {name: one for name, one in given.items() if name in OPERATION_FIELDS and one is not None}
    if "block" in known:
        known["block"] = _block(known["block"], f"{path}.block")
    if "blocks" in known:
        known["blocks"] = _each(known["blocks"], f"{path}.blocks", _block)
    return DeltaOperation(**{"op": op, **known, "unknown_fields": unknown})
