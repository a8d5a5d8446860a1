"""Paths by which an arm came to its proposals, for the trace of a recall."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from astrocyte.model import MemoryHit, MemoryPath
from astrocyte.pipelines.search.plan import NO_PATHS, Plan


class PathList(list[tuple[str, float]]):
    """The proposals of an arm, as every arm gives them, with the path of each memory in ``paths``."""

    paths: Mapping[str, MemoryPath] = NO_PATHS


def paths_of(proposals: object) -> Mapping[str, MemoryPath]:
    """The paths of an arm's proposals; none of an arm that tells no paths."""
    return proposals.paths if isinstance(proposals, PathList) else NO_PATHS


def proposed_paths(plans: Iterable[Plan], hits: Sequence[MemoryHit]) -> tuple[MemoryPath, ...]:
    """The paths by which the arm of each bank proposed the hits of an answer, in their order."""
    by_bank = {plan.bank.bank_id: plan.paths for plan in plans if plan.paths}
    if not by_bank:
        return ()
    found = [by_bank.get(hit.bank_id or "", NO_PATHS).get(hit.memory_id or "") for hit in hits]
    return tuple(dict.fromkeys(path for path in found if path is not None))


def paths_to(paths: Sequence[MemoryPath], hits: Sequence[MemoryHit]) -> tuple[MemoryPath, ...]:
    """The paths to the hits of an answer, in their order."""
    known = {(path.bank_id, path.memory_id): path for path in paths}
    found = [known.get((hit.bank_id or "", hit.memory_id or "")) for hit in hits] if known else []
    return tuple(dict.fromkeys(path for path in found if path is not None))
