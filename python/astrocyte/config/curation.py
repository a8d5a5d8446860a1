"""Retain by a language model's decision."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from astrocyte.config.section import Count, Seconds, Section


class CuratedRetainSettings(Section):
    """Let the language model decide what becomes of each content: add, update, merge, skip or delete. Off by default.

    It sees the content and the memories nearest to it. What it may not do, or says in the wrong form, and whatever goes
    wrong on the way, leaves a plain retain.
    """

    enabled: bool = Field(False, description="Ask it; a call of the model for every content.")
    context_recall_limit: Annotated[int, Field(ge=0, le=20)] = Field(
        5, description="Memories that it sees beside the content; none where the caller may not read the bank."
    )
    max_tokens: Count = Field(1_024, description="Tokens of its decision, a merged content among them.")
    deadline_seconds: Seconds = Field(5.0, description="How long it may take.")
