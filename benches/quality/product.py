"""The product as a run uses it: in process, on disk, with its default configuration."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from astrocyte import Astrocyte


@asynccontextmanager
async def open_brain(folder: Path, settings: Mapping[str, Any] | None = None) -> AsyncIterator[Astrocyte]:
    """The store in `folder`, made if it is not there, with settings beside the default ones; closed at the end."""
    brain = Astrocyte.from_config_dict({**(settings or {}), "data_dir": str(folder)})
    try:
        yield brain
    finally:
        await brain.close()
