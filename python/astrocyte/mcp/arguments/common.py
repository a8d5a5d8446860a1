"""Arguments that tools share."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

Scalar = str | int | float | bool | None


class Arguments(BaseModel):
    """Base of all arguments; unknown names are errors."""

    model_config = ConfigDict(extra="forbid")


class OneBank(Arguments):
    """The bank of a call, where the session has no fixed bank."""

    bank_id: str | None = Field(None, description="Bank of the call. Without it, the default bank of the server.")


class Banks(OneBank):
    """The banks of a call, where the session has no fixed bank."""

    banks: list[str] = Field(default_factory=list, description="Several banks to search, in place of bank_id.")
    strategy: Literal["cascade", "parallel", "first_match"] | None = Field(
        None,
        description="Order of several banks: all at once (parallel), in order until enough hits (cascade), or until "
        "one bank has hits (first_match).",
    )


class Tagged(Arguments):
    """A filter by tags."""

    tags: list[str] = Field(default_factory=list, description="Only memories with at least one of these tags.")


class Sized(Arguments):
    """A number of hits. The server adds its maximum."""

    max_results: int = Field(10, ge=1, description="Maximum number of hits.")


class Paged(Arguments):
    """A page of a list. The server adds the maximum of its size."""

    page_size: int = Field(20, ge=1, description="Maximum number of items.")
    page_token: str = Field("", description="next_page_token of the page before; empty for the first page.")
