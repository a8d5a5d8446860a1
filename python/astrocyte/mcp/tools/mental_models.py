"""Tools on mental models."""

from __future__ import annotations

from collections.abc import Iterable

from astrocyte.api.requests import (
    CreateMentalModel,
    DeleteMentalModel,
    GetMentalModel,
    ListMentalModels,
    RefreshMentalModel,
    UpdateMentalModel,
)
from astrocyte.mcp.arguments.common import OneBank
from astrocyte.mcp.arguments.mental_models import (
    Block,
    CreateMentalModelArguments,
    DeltaOperationArguments,
    ListMentalModelsArguments,
    MentalModelArguments,
    RefreshMentalModelArguments,
    UpdateMentalModelArguments,
)
from astrocyte.mcp.results.common import Deleted
from astrocyte.mcp.results.mental_models import MentalModelItem, MentalModelList, MentalModelUpdated
from astrocyte.mcp.tools.row import Target, Tool, knowledge_deletion_exposed, knowledge_exposed
from astrocyte.model import DeltaOperation, ModelBlock, ModelSection


def _block(given: Block) -> ModelBlock:
    return ModelBlock(given.kind, given.text, tuple(given.items), given.language, tuple(given.source_ids))


def _blocks(given: Iterable[Block]) -> tuple[ModelBlock, ...]:
    return tuple(_block(one) for one in given)


def _operation(given: DeltaOperationArguments) -> DeltaOperation:
    return DeltaOperation(
        op=given.op,
        section_id=given.section_id,
        block_index=given.block_index,
        block=None if given.block is None else _block(given.block),
        blocks=_blocks(given.blocks),
        heading=given.heading,
        level=given.level,
        after_section_id=given.after_section_id,
        new_section_id=given.new_section_id,
    )


def _create(given: CreateMentalModelArguments, target: Target) -> CreateMentalModel:
    sections = tuple(
        ModelSection(one.section_id, one.heading, _blocks(one.blocks), one.level) for one in given.sections
    )
    return CreateMentalModel(
        target.bank_id, given.name, sections, given.content, given.scope, tuple(given.source_ids), given.model_id
    )


def _get(given: MentalModelArguments, target: Target) -> GetMentalModel:
    return GetMentalModel(target.bank_id, given.model_id)


def _list(given: ListMentalModelsArguments, target: Target) -> ListMentalModels:
    return ListMentalModels(target.bank_id, given.scope, given.page_size, given.page_token)


def _update(given: UpdateMentalModelArguments, target: Target) -> UpdateMentalModel:
    operations = tuple(_operation(one) for one in given.operations)
    return UpdateMentalModel(target.bank_id, given.model_id, operations, given.atomic, given.etag)


def _refresh(given: RefreshMentalModelArguments, target: Target) -> RefreshMentalModel:
    return RefreshMentalModel(target.bank_id, given.model_id, given.content, tuple(given.source_ids), given.etag)


def _delete(given: MentalModelArguments, target: Target) -> DeleteMentalModel:
    return DeleteMentalModel(target.bank_id, given.model_id)


MENTAL_MODEL_TOOLS = (
    Tool(
        "memory_create_mental_model",
        "Create a mental model",
        "Store a structured summary of a subject, in sections or in Markdown, with the memories that it rests on. "
        "memory_recall finds its sections.",
        CreateMentalModel,
        CreateMentalModelArguments,
        OneBank,
        _create,
        MentalModelItem,
        read_only=False,
        idempotent=False,
        exposed=knowledge_exposed,
    ),
    Tool(
        "memory_get_mental_model",
        "Read a mental model",
        "Read one mental model, with its sections and blocks.",
        GetMentalModel,
        MentalModelArguments,
        OneBank,
        _get,
        MentalModelItem,
        exposed=knowledge_exposed,
    ),
    Tool(
        "memory_list_mental_models",
        "List mental models",
        "List the mental models of a bank, oldest first, without their content.",
        ListMentalModels,
        ListMentalModelsArguments,
        OneBank,
        _list,
        MentalModelList,
        exposed=knowledge_exposed,
    ),
    Tool(
        "memory_update_mental_model",
        "Change a mental model",
        "Change single blocks and sections of a mental model; the others stay as they are. skipped_ops has the changes "
        "that could not be applied, and why.",
        UpdateMentalModel,
        UpdateMentalModelArguments,
        OneBank,
        _update,
        MentalModelUpdated,
        read_only=False,
        destructive=True,
        idempotent=False,
        exposed=knowledge_exposed,
    ),
    Tool(
        "memory_refresh_mental_model",
        "Rewrite a mental model",
        "Replace the content of a mental model by Markdown, or, without content, rewrite it from the memories of its "
        "scope.",
        RefreshMentalModel,
        RefreshMentalModelArguments,
        OneBank,
        _refresh,
        MentalModelItem,
        read_only=False,
        destructive=True,
        idempotent=False,
        exposed=knowledge_exposed,
    ),
    Tool(
        "memory_delete_mental_model",
        "Delete a mental model",
        "Delete one mental model; its memories stay. Call it only if the user asks for it.",
        DeleteMentalModel,
        MentalModelArguments,
        OneBank,
        _delete,
        Deleted,
        read_only=False,
        destructive=True,
        exposed=knowledge_deletion_exposed,
    ),
)
