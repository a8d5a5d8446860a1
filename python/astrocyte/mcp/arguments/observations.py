"""Arguments of the tools on observations."""

from __future__ import annotations

from pydantic import AwareDatetime, Field

from astrocyte.mcp.arguments.common import Arguments, Paged
from astrocyte.model import BANK_SCOPE, Trend

SCOPE = "bank, tag: with a tag, or entity: with a name."
ETAG = "etag of the version that was read; the call is refused if there is a newer one."


class CreateObservationArguments(Arguments):
    """Arguments of memory_create_observation."""

    text: str = Field(description="Statement, complete without its evidence.")
    evidence: list[str] = Field(min_length=1, description="Ids of the memories that it rests on.")
    scope: str = Field(BANK_SCOPE, description=f"Part of the bank that it is about: {SCOPE}")
    confidence: float | None = Field(None, ge=0, le=1, description="Confidence from 0 to 1; 0.9 if absent.")
    valid_from: AwareDatetime | None = Field(None, description="Start of the time in which it is true.")
    valid_until: AwareDatetime | None = Field(None, description="End of the time in which it is true.")


class ObservationArguments(Arguments):
    """Arguments of memory_get_observation and memory_delete_observation."""

    observation_id: str = Field(description="Id of the observation.")


class ListObservationsArguments(Paged):
    """Arguments of memory_list_observations."""

    scope: str = Field("", description=f"Only this scope: {SCOPE} Empty for all scopes.")
    trend: Trend | None = Field(None, description="Only observations with this trend.")
    text: str = Field("", description="Only observations whose text contains this, in any case.")


class UpdateObservationArguments(ObservationArguments):
    """Arguments of memory_update_observation."""

    text: str | None = Field(None, description="New statement; unchanged if absent.")
    evidence: list[str] = Field(
        default_factory=list, description="New evidence, in place of the former; unchanged if empty."
    )
    confidence: float | None = Field(None, ge=0, le=1, description="New confidence; unchanged if absent.")
    etag: str | None = Field(None, description=ETAG)


class InvalidateObservationsArguments(Arguments):
    """Arguments of memory_invalidate_observations."""

    source_ids: list[str] = Field(min_length=1, description="Ids of memories that no longer hold.")
