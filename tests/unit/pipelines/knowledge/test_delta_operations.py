"""Delta operations change what they name, and say why they were not applied."""

from __future__ import annotations

import pytest

from astrocyte.model import DeltaOperation, ModelBlock, ModelSection
from astrocyte.pipelines.knowledge.delta_operations import NO_BLOCK, NO_SECTION, apply

ONE, TWO, NEW = ModelBlock(text="one"), ModelBlock(text="two"), ModelBlock(text="new")
SECTIONS = (ModelSection("a", "A", (ONE, TWO)), ModelSection("b", "B", (ONE,), 3))


def applied(operation: DeltaOperation) -> tuple[ModelSection, ...]:
    sections, done, skipped = apply(SECTIONS, [operation])
    assert [(one.index, one.op) for one in done] == [(0, operation.op)]
    assert skipped == ()
    return sections


def test_each_operation_changes_its_place_alone() -> None:
    cases = {
        DeltaOperation("append_block", "a", block=NEW): (ONE, TWO, NEW),
        DeltaOperation("insert_block", "a", 0, NEW): (NEW, ONE, TWO),
        DeltaOperation("insert_block", "a", 2, NEW): (ONE, TWO, NEW),
        DeltaOperation("replace_block", "a", 1, NEW): (ONE, NEW),
        DeltaOperation("remove_block", "a", 0): (TWO,),
        DeltaOperation("replace_section_blocks", "a", blocks=(NEW,)): (NEW,),
        DeltaOperation("replace_section_blocks", "a"): (),
    }
    for operation, blocks in cases.items():
        sections = applied(operation)
        assert sections[0].blocks == blocks
        assert sections[1] is SECTIONS[1]


def test_sections_come_go_and_change_their_names() -> None:
    added = applied(DeltaOperation("add_section", heading="A", blocks=(NEW,), after_section_id="a"))
    assert added == (SECTIONS[0], ModelSection("a-2", "A", (NEW,), 2), SECTIONS[1])
    last = applied(DeltaOperation("add_section", heading="C", level=6, new_section_id="c1"))
    assert last == (*SECTIONS, ModelSection("c1", "C", (), 6))
    assert applied(DeltaOperation("remove_section", "a")) == SECTIONS[1:]
    assert applied(DeltaOperation("rename_section", "a", heading="Z"))[0] == ModelSection("a", "Z", (ONE, TWO))


@pytest.mark.parametrize(
    ("operation", "reason"),
    [
        (DeltaOperation("append_block", "z", block=NEW), NO_SECTION),
        (DeltaOperation("remove_section", "z"), NO_SECTION),
        (DeltaOperation("add_section", heading="C", after_section_id="z"), NO_SECTION),
        (DeltaOperation("insert_block", "a", 3, NEW), NO_BLOCK),
        (DeltaOperation("replace_block", "a", 2, NEW), NO_BLOCK),
        (DeltaOperation("remove_block", "a", -1), NO_BLOCK),
        (DeltaOperation("remove_block", "a"), "needs block_index"),
        (DeltaOperation("replace_block", "", 0), "needs block, section_id"),
        (DeltaOperation("remove_section", "a", 0), "does not take block_index"),
        (DeltaOperation("add_section", heading="C", level=7), "expected level to be 1 to 6"),
        (DeltaOperation("burn", "a"), "expected op to be one of"),
        (DeltaOperation("remove_section", "a", unknown_fields=("why",)), "has fields that no operation has"),
    ],
)
def test_an_operation_that_cannot_be_applied_changes_nothing(operation: DeltaOperation, reason: str) -> None:
    sections, done, skipped = apply(SECTIONS, [operation])
    assert sections == SECTIONS
    assert done == ()
    assert [(one.index, one.op) for one in skipped] == [(0, operation.op)]
    assert reason in skipped[0].reason


def test_later_operations_see_the_earlier_ones() -> None:
    sections, done, skipped = apply(
        SECTIONS,
        [
            DeltaOperation("remove_block", "a", 0),
            DeltaOperation("replace_block", "a", 1, NEW),
            DeltaOperation("replace_block", "a", 0, NEW),
        ],
    )
    assert sections[0].blocks == (NEW,)
    assert [one.index for one in done] == [0, 2]
    assert [one.index for one in skipped] == [1]
