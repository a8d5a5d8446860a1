"""Base of results that have the fields of a value of the API, and results that tools share."""

from __future__ import annotations

from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field


class ValueResult(BaseModel):
    """A result whose fields are attributes of a value of the API."""

    model_config = ConfigDict(from_attributes=True)

    @classmethod
    def of(cls, value: Any) -> Self:  # noqa: ANN401 - a value of the API
        """Convert a value of the API."""
        return cls.model_validate(value)


class PageResult(ValueResult):
    """A page of a list."""

    next_page_token: str = Field(description="Token of the next page; empty at the end.")


class Deleted(BaseModel):
    """Result of the tools that delete one item."""

    deleted: bool = Field(description="False if there was no such item.")

    @classmethod
    def of(cls, deleted: bool) -> Deleted:  # noqa: FBT001 - the answer of the API
        """Convert the answer of a deletion."""
        return cls(deleted=deleted)
