"""Functions of others that are told what happened."""

from __future__ import annotations

from pydantic import Field

from astrocyte.config.section import Count, Seconds, Section


class HookSettings(Section):
    """Functions of others that are told what happened, on a thread of their own."""

    enabled: tuple[str, ...] = Field(
        (),
        description="Entry points of the group `astrocyte.hooks`, each of which registers its functions at the start.",
    )
    queue_size: Count = Field(1_000, description="Events that wait for functions that are slow; further ones are lost.")
    timeout_seconds: Seconds = Field(10.0, description="Then an `async` function is given up.")
