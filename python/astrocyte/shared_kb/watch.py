"""Watching a folder: indexes it again when a file changed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

from astrocyte.errors import AstrocyteError
from astrocyte.shared_kb.folder import FolderTooLargeError
from astrocyte.shared_kb.indexer import FolderIndexer, Progress
from astrocyte.shared_kb.report import KbReport

Outcome = KbReport | AstrocyteError | FolderTooLargeError | OSError


async def watched(indexer: FolderIndexer, seconds: float, progress: Progress | None = None) -> AsyncGenerator[Outcome]:
    """Index a folder now and after each change, until the caller stops.

    Files are looked at by time of change and size, so that an unchanged folder is not read. A run that fails is tried
    again after the same time, because a server may be back.

    Args:
        indexer: Indexes the folder.
        seconds: Time between two looks.
        progress: As in `FolderIndexer.run`.

    Yields:
        The report of each run, or why it failed.
    """
    seen: object = None
    while True:
        stamps: object = None
        try:
            # Before the run: a file that changes during it is found by the next look.
            stamps = await asyncio.to_thread(indexer.folder.stamps)
            if stamps != seen:
                yield await indexer.run(progress)
            seen = stamps
        except (AstrocyteError, FolderTooLargeError, OSError) as error:
            seen = None
            yield error
        await asyncio.sleep(seconds)
