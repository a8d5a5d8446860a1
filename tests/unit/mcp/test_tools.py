"""Rows of the table of tools."""

from typing import Any

import pytest
from jsonschema import Draft202012Validator

from astrocyte.api import RPCS
from astrocyte.config import Settings
from astrocyte.mcp.server import offers
from astrocyte.mcp.tools import TOOLS
from astrocyte.model import Permission

ROWS = {tool.name: tool for tool in TOOLS}
READING = {Permission.READ}
# They replace content, or forget without a permission of a bank.
REPLACING = {
    "agent_memory_remember",
    "agent_memory_forget",
    "memory_update_observation",
    "memory_update_mental_model",
    "memory_refresh_mental_model",
}
# Of the administration: they forget by age, and end a protection.
REMOVING_ADMIN = {"memory_lifecycle", "memory_hold_release"}
ADMINISTERING = {"memory_bank_health", "memory_operation", "memory_hold_set"} | REMOVING_ADMIN
# Reads of an administrator.
READING_ADMIN = {"memory_operation"}
OPEN = {"expose_forget": True, "expose_directives": True, "expose_admin": True}
CREATING = {"memory_create_directive", "memory_delete_directive"}
AGENT = {"agent_memory_recall", "agent_memory_remember", "canonical_terms_lookup", "canonical_terms_propose"}


def offered(*, fixed_bank: bool = False, **mcp: Any) -> dict[str, Any]:
    settings = Settings.from_mapping({"mcp": {**OPEN, **mcp}})
    return {name: offer.listed for name, offer in offers(settings, fixed_bank=fixed_bank).items()}


@pytest.mark.parametrize("name", list(ROWS))
def test_annotations_follow_the_rpc(name: str) -> None:
    row, listed = ROWS[name], offered()[name]
    rpc = RPCS[row.request]
    assert listed.annotations.read_only_hint is not rpc.mutates
    assert listed.annotations.destructive_hint is (
        Permission.FORGET in rpc.permissions or name in REPLACING | REMOVING_ADMIN
    )
    assert row.read_only is ((set(rpc.permissions) <= READING or name in READING_ADMIN) and not rpc.mutates)
    assert listed.annotations.open_world_hint is False


@pytest.mark.parametrize("name", list(ROWS))
@pytest.mark.parametrize("fixed_bank", [False, True])
def test_schemas_are_valid_and_described(name: str, fixed_bank: bool) -> None:
    listed = offered(fixed_bank=fixed_bank).get(name)
    if listed is None:
        assert fixed_bank
        assert ROWS[name].chosen_by is None
        return
    Draft202012Validator.check_schema(listed.input_schema)
    Draft202012Validator.check_schema(listed.output_schema)
    assert listed.input_schema["type"] == listed.output_schema["type"] == "object"
    assert listed.input_schema["additionalProperties"] is False
    for argument in listed.input_schema["properties"].values():
        assert argument["description"]


@pytest.mark.parametrize(
    ("name", "argument"),
    [
        ("memory_recall", "max_results"),
        ("agent_memory_recall", "k"),
        ("memory_list_observations", "page_size"),
        ("memory_list_mental_models", "page_size"),
        ("memory_list_directives", "page_size"),
    ],
)
def test_the_maximum_of_a_count_is_in_the_schema(name: str, argument: str) -> None:
    count = offered(max_results_limit=7)[name].input_schema["properties"][argument]
    assert (count["maximum"], count["default"]) == (7, 7)


def test_settings_offer_groups_of_tools() -> None:
    def names(**mcp: Any) -> set[str]:
        return set(offered(**mcp))

    everything = set(ROWS)
    assert names() == everything
    removing = {name for name, row in ROWS.items() if row.destructive} - REPLACING - REMOVING_ADMIN
    removing |= {"agent_memory_forget"}
    assert names(expose_forget=False) == everything - removing
    assert names(expose_agent_memory=False) == everything - AGENT - {"agent_memory_forget"}
    assert names(expose_directives=False) == everything - CREATING
    assert names(expose_admin=False) == everything - ADMINISTERING
    knowledge = {name for name in everything if "observation" in name or "mental_model" in name}
    assert len(knowledge) == 12
    knowledge |= {name for name in everything if "page" in name} | {"memory_compile", "memory_audit"}
    knowledge |= {"shared_kb_search", "shared_kb_list", "shared_kb_index"}
    knowledge |= {"memory_graph_search", "memory_graph_neighbors"}
    assert len(knowledge) == 22
    assert names(expose_knowledge=False) == everything - knowledge
    assert names(expose_knowledge=False, expose_directives=False) == everything - knowledge - CREATING - {
        "memory_list_directives"
    }


def test_by_default_no_tool_removes_or_makes_instructions() -> None:
    default = {name: offer.tool for name, offer in offers(Settings(), fixed_bank=False).items()}
    assert set(default) >= AGENT
    assert (CREATING | ADMINISTERING).isdisjoint(default)
    assert {name for name, tool in default.items() if tool.destructive} == REPLACING - {"agent_memory_forget"}


def test_a_session_with_a_fixed_bank_has_no_tools_beyond_it() -> None:
    assert set(offered(fixed_bank=True)) == set(ROWS) - AGENT - {"agent_memory_forget", "memory_banks", "memory_health"}
