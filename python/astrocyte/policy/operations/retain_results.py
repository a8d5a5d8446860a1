"""Adds the warnings of profiles and barriers to RetainResults, and to the answers that repeated requests get."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from astrocyte.model import RetainResult
from astrocyte.pipelines.retain.pipeline import Replay
from astrocyte.policy.quality.signal_quality import with_refusals
from astrocyte.policy.requests.request_keys import encode_results

Warnings = tuple[str, ...]


def with_warnings(results: Sequence[RetainResult], warnings: Sequence[Warnings]) -> list[RetainResult]:
    """Results with what profiles and barriers say about each, before what the pipeline says."""
    return [
        replace(result, warnings=(*said, *result.warnings)) if said else result
        for result, said in zip(results, warnings, strict=True)
    ]


def retelling(replay: Replay, warnings: Sequence[Warnings], refused: Mapping[int, str]) -> Replay | None:
    """A replay for what is left of its request; its answer, when it is given again, says what the first one said.

    None for a request whose only item was refused: it is judged anew when it comes again.
    """
    place = replay.place
    if place is None:
        if not (refused or any(warnings)):
            return replay
        return replace(
            replay, encode=lambda results: encode_results(with_warnings(with_refusals(results, refused), warnings))
        )
    if place in refused:
        return None
    said = warnings[place : place + 1]
    before = sum(other < place for other in refused)
    encode = (lambda results: encode_results(with_warnings(results, said))) if any(said) else replay.encode
    return replace(replay, encode=encode, place=place - before)
