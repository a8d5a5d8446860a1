"""Arguments of the tools on memories and banks."""

from __future__ import annotations

from pydantic import AwareDatetime, Field

from astrocyte.mcp.arguments.common import Arguments, Scalar, Sized, Tagged


class RetainArguments(Arguments):
    """Arguments of memory_retain."""

    content: str = Field(description="Content to store: one self-contained statement, message or text.")
    tags: list[str] = Field(default_factory=list, description="Labels to filter on later.")
    metadata: dict[str, Scalar] = Field(
        default_factory=dict, description="Key-value pairs that come back with the memory; values are scalars."
    )
    occurred_at: AwareDatetime | None = Field(None, description="Time of the event, ISO 8601 with a time zone.")
    speaker: str | None = Field(None, description="Person or agent that said it.")
    session_id: str | None = Field(None, description="Conversation that it belongs to.")
    source: str | None = Field(None, description="Origin, such as a URL or a file name.")


class RecallArguments(Tagged, Sized):
    """Arguments of memory_recall."""

    query: str = Field(description="Question in natural language.")
    session_id: str | None = Field(None, description="Only memories of this conversation.")
    since: AwareDatetime | None = Field(None, description="Only events at this time or later.")
    until: AwareDatetime | None = Field(None, description="Only events at this time or earlier.")
    max_tokens: int | None = Field(None, ge=1, description="Token budget of all hits together.")


class HistoryArguments(Tagged, Sized):
    """Arguments of memory_history."""

    query: str = Field(description="Question in natural language.")
    as_of: AwareDatetime = Field(description="Instant, ISO 8601 with a time zone.")


class ReflectArguments(Tagged):
    """Arguments of memory_reflect."""

    query: str = Field(description="Question in natural language.")
    max_tokens: int | None = Field(None, ge=1, description="Token budget of the answer.")


class ForgetArguments(Arguments):
    """Arguments of memory_forget."""

    memory_ids: list[str] = Field(default_factory=list, description="Ids of the memories.")
    tags: list[str] = Field(
        default_factory=list, description="Memories with at least one of these tags; with memory_ids, both must hold."
    )
    reason: str | None = Field(None, description="Reason, kept with the deletion.")
    dry_run: bool = Field(False, description="Report the matching memories and change nothing.")


class BanksArguments(Arguments):
    """Arguments of memory_banks."""

    page_token: str = Field("", description="Token of the next page; empty for the first.")
