"""Arguments of the tools on mental models."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from astrocyte.mcp.arguments.common import Arguments, Paged
from astrocyte.mcp.arguments.observations import ETAG, SCOPE
from astrocyte.model import BANK_SCOPE, BlockKind

SOURCES = "Ids of the memories that it rests on. It is removed with them."


class Block(Arguments):
    """Block of a section."""

    kind: BlockKind = Field(BlockKind.PARAGRAPH, description="Kind of the block.")
    text: str = Field("", description="Text of a paragraph or of code.")
    items: list[str] = Field(default_factory=list, description="Items of a list.")
    language: str = Field("", description="Language of code.")
    source_ids: list[str] = Field(default_factory=list, description=SOURCES)


class Section(Arguments):
    """Section of a mental model."""

    heading: str = Field(description="Heading.")
    section_id: str = Field("", description="Id; made of the heading if empty.")
    level: int = Field(2, ge=1, le=6, description="Level of the heading.")
    blocks: list[Block] = Field(default_factory=list, description="Blocks in their order.")


class DeltaOperationArguments(Arguments):
    """Change of one place of a mental model."""

    op: Literal[
        "append_block",
        "insert_block",
        "replace_block",
        "remove_block",
        "add_section",
        "remove_section",
        "replace_section_blocks",
        "rename_section",
    ] = Field(description="Kind of the change.")
    section_id: str = Field("", description="Section to change, or to remove.")
    block_index: int | None = Field(None, ge=0, description="Index of the block in its section, from 0.")
    block: Block | None = Field(None, description="New block of append_block, insert_block and replace_block.")
    blocks: list[Block] = Field(
        default_factory=list, description="New blocks of add_section and replace_section_blocks."
    )
    heading: str = Field("", description="Heading of add_section and rename_section.")
    level: int | None = Field(None, ge=1, le=6, description="Level of the heading of add_section.")
    after_section_id: str = Field("", description="Section that the new one of add_section follows; else the last.")
    new_section_id: str = Field("", description="Id of the new section; made of the heading if empty.")


class CreateMentalModelArguments(Arguments):
    """Arguments of memory_create_mental_model."""

    name: str = Field(description="Name.")
    sections: list[Section] = Field(default_factory=list, description="Sections, in place of content.")
    content: str = Field("", description="Content in Markdown, in place of sections.")
    scope: str = Field(BANK_SCOPE, description=f"Part of the bank that it is about: {SCOPE}")
    source_ids: list[str] = Field(
        default_factory=list, description="Ids of the memories on which blocks without source_ids rest."
    )
    model_id: str | None = Field(None, description="Id; made of the name if absent.")


class MentalModelArguments(Arguments):
    """Arguments of memory_get_mental_model and memory_delete_mental_model."""

    model_id: str = Field(description="Id of the mental model.")


class ListMentalModelsArguments(Paged):
    """Arguments of memory_list_mental_models."""

    scope: str = Field("", description=f"Only this scope: {SCOPE} Empty for all scopes.")


class UpdateMentalModelArguments(MentalModelArguments):
    """Arguments of memory_update_mental_model."""

    operations: list[DeltaOperationArguments] = Field(min_length=1, description="Changes, applied in this order.")
    atomic: bool = Field(False, description="Apply all changes or none. Else those that cannot be applied are skipped.")
    etag: str | None = Field(None, description=ETAG)


class RefreshMentalModelArguments(MentalModelArguments):
    """Arguments of memory_refresh_mental_model."""

    content: str = Field("", description="New content in Markdown. Without it, it is rewritten from the memories.")
    source_ids: list[str] = Field(
        default_factory=list, description="Ids of the memories that the new content rests on."
    )
    etag: str | None = Field(None, description=ETAG)
