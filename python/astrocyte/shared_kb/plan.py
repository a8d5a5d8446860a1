"""The difference between a folder and a bank."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from astrocyte.model import KbDocument
from astrocyte.shared_kb.digests import path_digest


@dataclass(slots=True)
class Plan:
    """Work by path, sorted.

    Attributes:
        unchanged: Number of files that the bank has as they are.
        created: Files that the bank does not have.
        updated: Rows of files that changed, or of which the bank does not have all rows.
        moved: Rows of files that the bank has under another path.
        removed: Rows of files that are gone.
    """

    unchanged: int = 0
    created: list[str] = field(default_factory=list)
    updated: dict[str, list[KbDocument]] = field(default_factory=dict)
    moved: dict[str, list[KbDocument]] = field(default_factory=dict)
    removed: dict[str, list[KbDocument]] = field(default_factory=dict)


def plan_of(folder: str, hashes: Mapping[str, str], kept: Iterable[str], rows: Iterable[KbDocument]) -> Plan:
    """The work that makes a bank equal to a folder.

    Args:
        folder: Name of the folder.
        hashes: Digest of each file by path.
        kept: Paths of files and folders that cannot be read, "." for all; their rows stay.
        rows: The bank's rows of the folder.
    """
    stored: dict[str, list[KbDocument]] = {}
    for row in rows:
        stored.setdefault(row.path_hash, []).append(row)
    stored = _without(stored, folder, set(kept))
    plan = Plan()
    for path in sorted(hashes):
        known = stored.pop(path_digest(folder, path), None)
        if known is None:
            plan.created.append(path)
        elif is_whole(known, hashes[path]):
            plan.unchanged += 1
        else:
            plan.updated[path] = known
    gone = sorted(stored.values(), key=lambda one: one[0].path)
    # What is left of the bank is gone, or is a new file under its earlier path.
    whole = {known[0].file_hash: known for known in reversed(gone) if is_whole(known, known[0].file_hash)}
    for path in list(plan.created):
        known = whole.pop(hashes[path], None)
        if known is not None:
            plan.created.remove(path)
            plan.moved[path] = known
    moved = {id(known) for known in plan.moved.values()}
    plan.removed = {known[0].path: known for known in gone if id(known) not in moved}
    return plan


def _without(stored: Mapping[str, list[KbDocument]], folder: str, kept: set[str]) -> dict[str, list[KbDocument]]:
    """The files that are neither of these paths nor below one."""
    digests = {path_digest(folder, path) for path in kept}
    return {
        name: known
        for name, known in stored.items()
        if name not in digests and kept.isdisjoint(map(str, PurePosixPath(known[0].path).parents))
    }


def is_whole(rows: list[KbDocument], file_hash: str) -> bool:
    """True if these are all rows of a file, each once: an interrupted run can leave others."""
    counts = {row.row_count for row in rows}
    names = {row.row for row in rows}
    return {row.file_hash for row in rows} == {file_hash} and counts == {len(rows)} and len(names) == len(rows)
