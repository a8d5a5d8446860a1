"""Chunks where another says."""

from __future__ import annotations

from collections.abc import Sequence

from astrocyte.pipelines.custom.bounded_call import BoundedStage, UnusableError
from astrocyte.providers.stages import Chunker

STAGE = "chunking"
# More pieces than this are words.
MOST_PIECES = 4_096


class CustomChunking:
    """Calls a custom chunker within bounds.

    Args:
        chunker: Whom.
        stage: How.
    """

    def __init__(self, chunker: Chunker, stage: BoundedStage) -> None:
        self.chunker = chunker
        self._stage = stage

    async def split(self, bank_id: str, text: str, size: int, content_type: str) -> tuple[list[str], str]:
        """The chunks of a text, or the reason for none."""
        outcome = await self._stage.call(
            bank_id,
            lambda deadline: self.chunker.split(text, size=size, content_type=content_type, deadline=deadline),
            lambda pairs: _pieces(text, pairs),
        )
        return outcome.value or [], outcome.problem


def _pieces(text: str, pairs: object) -> list[str]:
    """The pieces at these places.

    Raises:
        UnusableError: They are no places, too many, or out of order.
    """
    if not isinstance(pairs, Sequence) or not 0 < len(pairs) <= MOST_PIECES:
        raise UnusableError
    last = 0
    for pair in pairs:
        if not (isinstance(pair, Sequence) and len(pair) == 2 and all(type(place) is int for place in pair)):  # noqa: PLR2004 - start and end
            raise UnusableError
        start, end = pair
        if not last <= start < end <= len(text):
            raise UnusableError
        last = start
    pieces = [piece for start, end in pairs if (piece := text[start:end].strip())]
    if not pieces:
        raise UnusableError
    return pieces
