"""Base class and shared types of settings."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

# A similarity threshold; at 0 everything would be similar.
Cosine = Annotated[float, Field(gt=0.0, le=1.0)]
Weight = Annotated[float, Field(ge=0.0, le=1e6, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1)]
Seconds = Annotated[float, Field(gt=0.0, allow_inf_nan=False)]


class Section(BaseModel):
    """Base of all sections: frozen; unknown keys are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid")
