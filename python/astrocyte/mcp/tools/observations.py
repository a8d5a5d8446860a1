"""Tools on observations."""

from __future__ import annotations

from astrocyte.api.requests import (
    CreateObservation,
    DeleteObservation,
    GetObservation,
    InvalidateObservations,
    ListObservations,
    UpdateObservation,
)
from astrocyte.mcp.arguments.common import OneBank
from astrocyte.mcp.arguments.observations import (
    CreateObservationArguments,
    InvalidateObservationsArguments,
    ListObservationsArguments,
    ObservationArguments,
    UpdateObservationArguments,
)
from astrocyte.mcp.results.common import Deleted
from astrocyte.mcp.results.observations import Invalidated, ObservationItem, ObservationList
from astrocyte.mcp.tools.row import Target, Tool, knowledge_deletion_exposed, knowledge_exposed


def _create(given: CreateObservationArguments, target: Target) -> CreateObservation:
    return CreateObservation(
        target.bank_id,
        given.text,
        tuple(given.evidence),
        given.scope,
        given.confidence,
        given.valid_from,
        given.valid_until,
    )


def _get(given: ObservationArguments, target: Target) -> GetObservation:
    return GetObservation(target.bank_id, given.observation_id)


def _list(given: ListObservationsArguments, target: Target) -> ListObservations:
    return ListObservations(target.bank_id, given.scope, given.trend, given.text, given.page_size, given.page_token)


def _update(given: UpdateObservationArguments, target: Target) -> UpdateObservation:
    return UpdateObservation(
        target.bank_id, given.observation_id, given.text, tuple(given.evidence), given.confidence, given.etag
    )


def _delete(given: ObservationArguments, target: Target) -> DeleteObservation:
    return DeleteObservation(target.bank_id, given.observation_id)


def _invalidate(given: InvalidateObservationsArguments, target: Target) -> InvalidateObservations:
    return InvalidateObservations(target.bank_id, tuple(given.source_ids))


OBSERVATION_TOOLS = (
    Tool(
        "memory_create_observation",
        "Create an observation",
        "Store a statement that several memories show, such as a habit or a preference, with these memories as "
        "evidence. It is found by memory_recall, and forgotten with its evidence.",
        CreateObservation,
        CreateObservationArguments,
        OneBank,
        _create,
        ObservationItem,
        read_only=False,
        idempotent=False,
        exposed=knowledge_exposed,
    ),
    Tool(
        "memory_get_observation",
        "Read an observation",
        "Read one observation, with its evidence.",
        GetObservation,
        ObservationArguments,
        OneBank,
        _get,
        ObservationItem,
        exposed=knowledge_exposed,
    ),
    Tool(
        "memory_list_observations",
        "List observations",
        "List the observations of a bank, oldest first, without their evidence.",
        ListObservations,
        ListObservationsArguments,
        OneBank,
        _list,
        ObservationList,
        exposed=knowledge_exposed,
    ),
    Tool(
        "memory_update_observation",
        "Change an observation",
        "Change the text, the evidence or the confidence of an observation.",
        UpdateObservation,
        UpdateObservationArguments,
        OneBank,
        _update,
        ObservationItem,
        read_only=False,
        destructive=True,
        idempotent=False,
        exposed=knowledge_exposed,
    ),
    Tool(
        "memory_delete_observation",
        "Delete an observation",
        "Delete one observation with its revisions; its memories stay. Call it only if the user asks for it.",
        DeleteObservation,
        ObservationArguments,
        OneBank,
        _delete,
        Deleted,
        read_only=False,
        destructive=True,
        exposed=knowledge_deletion_exposed,
    ),
    Tool(
        "memory_invalidate_observations",
        "Invalidate observations",
        "Delete all observations that rest on any of some memories; the memories stay. Call it only if the user says "
        "that these memories no longer hold.",
        InvalidateObservations,
        InvalidateObservationsArguments,
        OneBank,
        _invalidate,
        Invalidated,
        read_only=False,
        destructive=True,
        exposed=knowledge_deletion_exposed,
    ),
)
