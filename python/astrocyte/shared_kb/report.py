"""The result of indexing a folder."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class KbReport:
    """Files by what was done with them.

    ``unchanged``, ``created``, ``updated``, ``moved`` and ``removed`` are numbers of files. ``ignored`` are paths that
    were left out: symbolic links, generated indexes and empty files. ``failures`` has a sentence by path; the bank
    keeps the earlier version of such a file.
    """

    unchanged: int = 0
    created: int = 0
    updated: int = 0
    moved: int = 0
    removed: int = 0
    ignored: tuple[str, ...] = ()
    failures: dict[str, str] = field(default_factory=dict)

    @property
    def changed(self) -> int:
        """Number of files whose rows were written or forgotten."""
        return self.created + self.updated + self.moved + self.removed
