"""Arguments of the tools on the agent's private memory and on canonical terms."""

from __future__ import annotations

from pydantic import Field

from astrocyte.mcp.arguments.common import Arguments, Scalar

USER = "User that the memory is about, where the agent has several users."


class AgentRecallArguments(Arguments):
    """Arguments of agent_memory_recall."""

    query: str = Field(description="Topic or question in natural language.")
    k: int = Field(10, ge=1, description="Maximum number of hits.")
    user_id: str | None = Field(None, description="Only memories about this user, and memories about no user.")
    expected: bool = Field(
        False, description="True if memory should hold an answer; an empty answer is then reported to the operator."
    )


class RememberArguments(Arguments):
    """Arguments of agent_memory_remember."""

    topic_raw: str = Field(description="Topic in the words of the conversation. A canonical term replaces it.")
    content: str = Field(description="Content to remember: one self-contained statement.")
    source: dict[str, Scalar] = Field(
        default_factory=dict, description="Origin as key-value pairs, such as platform and channel; values are scalars."
    )
    user_id: str | None = Field(None, description=USER)


class AgentForgetArguments(Arguments):
    """Arguments of agent_memory_forget."""

    memory_id: str = Field(description="Id of a private memory of the agent.")
    reason: str = Field("", description="Reason, kept in the audit log.")


class LookupArguments(Arguments):
    """Arguments of canonical_terms_lookup."""

    text: str = Field(description="Name or phrase to look up.")


class ProposeArguments(Arguments):
    """Arguments of canonical_terms_propose."""

    name: str = Field(description="Proposed canonical term.")
    aliases: list[str] = Field(default_factory=list, description="Other names of the same thing.")
    definition: str = Field("", description="Definition in one sentence.")
    memory_id: str | None = Field(None, description="Private memory that needs the term, for the reviewer.")
