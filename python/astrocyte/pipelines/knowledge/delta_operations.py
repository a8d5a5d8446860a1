"""Delta operations: changes of single blocks and sections of a document.

Operations apply in order, so that later ones see the effect of earlier ones. What no operation names is the same object
in the result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from astrocyte.model import (
    AppliedOperation,
    DeltaOperation,
    ModelBlock,
    ModelSection,
    SkippedOperation,
)
from astrocyte.pipelines.knowledge.documents import SECTION_LEVEL, free_id, slug

MOST_LEVEL = 6
# Reasons say nothing of a document's content: they are kept with the answer for retries.
NO_SECTION = "there is no section of this section_id"
NO_BLOCK = "block_index is beyond the blocks of the section"

Sections = list[ModelSection]


class _Skipped(Exception):  # noqa: N818 - it ends one operation, and is no error of the call
    """An operation that cannot be applied, and the reason."""


def apply(
    sections: Sequence[ModelSection], operations: Sequence[DeltaOperation]
) -> tuple[tuple[ModelSection, ...], tuple[AppliedOperation, ...], tuple[SkippedOperation, ...]]:
    """The sections after the operations, which operations were applied, and which ones were not, with the reason."""
    made = list(sections)
    applied: list[AppliedOperation] = []
    skipped: list[SkippedOperation] = []
    for index, operation in enumerate(operations):
        try:
            _check(operation)
            _OPERATIONS[operation.op](made, operation)
        except _Skipped as reason:
            skipped.append(SkippedOperation(index, operation.op, str(reason)))
        else:
            applied.append(AppliedOperation(index, operation.op))
    return tuple(made), tuple(applied), tuple(skipped)


# Fields of each operation, those that it needs first.
_FIELDS: dict[str, tuple[frozenset[str], frozenset[str]]] = {
    "append_block": (frozenset({"section_id", "block"}), frozenset()),
    "insert_block": (frozenset({"section_id", "block_index", "block"}), frozenset()),
    "replace_block": (frozenset({"section_id", "block_index", "block"}), frozenset()),
    "remove_block": (frozenset({"section_id", "block_index"}), frozenset()),
    "add_section": (frozenset({"heading"}), frozenset({"level", "blocks", "after_section_id", "new_section_id"})),
    "remove_section": (frozenset({"section_id"}), frozenset()),
    "replace_section_blocks": (frozenset({"section_id", "blocks"}), frozenset()),
    "rename_section": (frozenset({"section_id", "heading"}), frozenset()),
}
_EMPTY: dict[str, object] = {
    "section_id": "",
    "block_index": None,
    "block": None,
    "blocks": (),
    "heading": "",
    "level": None,
    "after_section_id": "",
    "new_section_id": "",
}


def _check(operation: DeltaOperation) -> None:
    known = _FIELDS.get(operation.op)
    if known is None:
        raise _Skipped(f"expected op to be one of {', '.join(_FIELDS)}")
    if operation.unknown_fields:
        raise _Skipped("has fields that no operation has")
    needed, optional = known
    given = {name for name, empty in _EMPTY.items() if getattr(operation, name) != empty}
    lacking = sorted(needed - given)
    # An empty list of blocks clears the section.
    lacking = [name for name in lacking if name != "blocks"]
    if lacking:
        raise _Skipped(f"needs {', '.join(lacking)}")
    further = sorted(given - needed - optional)
    if further:
        raise _Skipped(f"does not take {', '.join(further)}")


def _place(sections: Sections, section_id: str) -> int:
    for place, section in enumerate(sections):
        if section.section_id == section_id:
            return place
    raise _Skipped(NO_SECTION)


def _change_blocks(sections: Sections, operation: DeltaOperation, change: Callable[[list[ModelBlock]], None]) -> None:
    place = _place(sections, operation.section_id)
    blocks = list(sections[place].blocks)
    change(blocks)
    sections[place] = replace(sections[place], blocks=tuple(blocks))


def _index(operation: DeltaOperation, end: int) -> int:
    index = operation.block_index
    if index is None or not 0 <= index < end:
        raise _Skipped(NO_BLOCK)
    return index


def _block(operation: DeltaOperation) -> ModelBlock:
    if operation.block is None:
        raise _Skipped("needs block")
    return operation.block


def _append(sections: Sections, operation: DeltaOperation) -> None:
    _change_blocks(sections, operation, lambda blocks: blocks.append(_block(operation)))


def _insert(sections: Sections, operation: DeltaOperation) -> None:
    _change_blocks(
        sections, operation, lambda blocks: blocks.insert(_index(operation, len(blocks) + 1), _block(operation))
    )


def _replace(sections: Sections, operation: DeltaOperation) -> None:
    _change_blocks(
        sections, operation, lambda blocks: blocks.__setitem__(_index(operation, len(blocks)), _block(operation))
    )


def _remove(sections: Sections, operation: DeltaOperation) -> None:
    _change_blocks(sections, operation, lambda blocks: blocks.__delitem__(_index(operation, len(blocks))))


def _add_section(sections: Sections, operation: DeltaOperation) -> None:
    level = SECTION_LEVEL if operation.level is None else operation.level
    if not 1 <= level <= MOST_LEVEL:
        raise _Skipped(f"expected level to be 1 to {MOST_LEVEL}")
    after = len(sections)
    if operation.after_section_id:
        after = _place(sections, operation.after_section_id) + 1
    taken = {section.section_id for section in sections}
    name = free_id(operation.new_section_id or slug(operation.heading), taken)
    sections.insert(after, ModelSection(name, operation.heading, operation.blocks, level))


def _remove_section(sections: Sections, operation: DeltaOperation) -> None:
    del sections[_place(sections, operation.section_id)]


def _replace_blocks(sections: Sections, operation: DeltaOperation) -> None:
    _change_blocks(sections, operation, lambda blocks: blocks.__setitem__(slice(None), operation.blocks))


def _rename(sections: Sections, operation: DeltaOperation) -> None:
    place = _place(sections, operation.section_id)
    sections[place] = replace(sections[place], heading=operation.heading)


_OPERATIONS: dict[str, Callable[[Sections, DeltaOperation], None]] = {
    "append_block": _append,
    "insert_block": _insert,
    "replace_block": _replace,
    "remove_block": _remove,
    "add_section": _add_section,
    "remove_section": _remove_section,
    "replace_section_blocks": _replace_blocks,
    "rename_section": _rename,
}
