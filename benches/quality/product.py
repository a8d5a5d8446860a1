"""The product as a run uses it: in process, on disk, with its default configuration."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from astrocyte import Astrocyte
from benches.quality.runner import Brain


@asynccontextmanager
async def open_brain(folder: Path) -> AsyncIterator[Brain]:
    """A new store in `folder`, closed at the end."""
    brain = Astrocyte.from_config_dict({"data_dir": str(folder)})
    try:
        yield brain
    finally:
        await brain.close()
