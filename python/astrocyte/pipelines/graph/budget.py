"""The bounds of one search of an entity graph: links that are followed, and the time."""

from __future__ import annotations

import time

# Links of one search: a question of two anchors in a bank of hubs follows about half of them.
MOST_LINKS = 4_096


class Budget:
    """Counts what a search does, and says when it has done enough.

    Args:
        links: Links that it may follow.
        deadline: Instant of `time.monotonic` after which nobody waits for it any more; None for never.
    """

    def __init__(self, links: int = MOST_LINKS, deadline: float | None = None) -> None:
        self._left = links
        self._deadline = deadline

    @property
    def left(self) -> int:
        """Links that may still be followed."""
        return 0 if self.late else self._left

    @property
    def late(self) -> bool:
        """True if nobody waits any more."""
        return self._deadline is not None and time.monotonic() >= self._deadline

    def spend(self, links: int) -> None:
        """Count links that were followed."""
        self._left = max(0, self._left - links)
