"""Chunks of drafts: where contents of a kind are cut, by rules or by a custom chunker."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence

from astrocyte.config import ExtractionProfileSettings, Settings
from astrocyte.core import count_tokens_many
from astrocyte.pipelines.custom.chunking import CustomChunking
from astrocyte.pipelines.extraction.profiles import Profiles
from astrocyte.pipelines.retain.drafts import Draft
from astrocyte.pipelines.text.chunking import Chunk, split

# A content a little above the chunk size stays whole: a short last piece finds less than the whole does.
SLACK = 1.25
# Strategies: of another, and where that gives nothing.
CUSTOM, SENTENCE = "custom", "sentence"
# Contents of a batch that another cuts at once.
PARALLEL = 8
# Room above an even share, so that pieces end at boundaries without one more piece for the rest.
EVEN_SHARE = 1.15


class DraftChunks:
    """Cuts drafts.

    Args:
        settings: Strategies and sizes.
        profiles: The profiles of items, which may say others.
        custom: Cuts where a strategy is custom; None where none is.
    """

    def __init__(self, settings: Settings, profiles: Profiles, custom: CustomChunking | None) -> None:
        self._settings = settings.retain
        self._chunking = settings.pipeline.chunking
        self._profiles = profiles
        self.custom = custom
        # Contents of at most so many tokens stay whole, unless sizes are in characters.
        self.whole_tokens = SLACK * settings.retain.chunk_tokens
        self.counts_chars = settings.pipeline.chunking.max_chunk_size is not None
        self._places = asyncio.Semaphore(PARALLEL)

    def cut(
        self, draft: Draft, kind: str, profile: ExtractionProfileSettings, strategy: str | None = None
    ) -> list[Chunk]:
        """Chunks of about equal size; none where the whole is short enough, no boundary was found, or another cuts.

        Sizes are in tokens, or in characters where the profile, or the settings of the pipeline, say one.
        """
        settings = self._settings
        content, most, length, count = draft.content, settings.chunk_tokens, draft.tokens, count_tokens_many
        chars = profile.chunk_size or self._chunking.max_chunk_size
        if chars is not None:
            most, length, count = chars, len(content), _lengths
        if length <= SLACK * most:
            return []
        strategy = strategy or self._strategy(kind, profile)
        pieces = math.ceil(length / most)
        size = min(most, math.ceil(EVEN_SHARE * length / pieces))
        overlap = min(most * settings.overlap_tokens // settings.chunk_tokens, size // 2)
        if strategy == CUSTOM:
            draft.uncut = (kind, most if chars is not None else len(content) * most // length)
            return []
        chunks = split(content, strategy, size=size, overlap=overlap, count_tokens=count)
        if len(chunks) < 2:  # noqa: PLR2004 - one piece is the whole
            return []
        if chars is None:
            return chunks
        tokens = count_tokens_many([chunk.text for chunk in chunks])
        return [Chunk(chunk.text, number) for chunk, number in zip(chunks, tokens, strict=True)]

    async def cut_by_others(self, bank_id: str, drafts: Sequence[Draft]) -> None:
        """Give drafts the chunks of the custom chunker, where that is to cut them, or else those of sentences."""
        if self.custom is not None:
            waiting = [draft for draft in drafts if draft.uncut is not None]
            await asyncio.gather(*[self._ask(self.custom, bank_id, draft) for draft in waiting])

    async def _ask(self, custom: CustomChunking, bank_id: str, draft: Draft) -> None:
        kind, size = draft.uncut or ("", 0)
        async with self._places:
            pieces, problem = await custom.split(bank_id, draft.content, size, kind)
        draft.uncut = None
        if problem:
            draft.warnings += (f"chunking: the custom chunker gave none ({problem}); it was cut by sentence",)
            draft.chunks = self.cut(draft, kind, self._profiles.of(bank_id, draft.item), SENTENCE)
        elif len(pieces) > 1:
            draft.chunks = [Chunk(*one) for one in zip(pieces, count_tokens_many(pieces), strict=True)]

    def _strategy(self, kind: str, profile: ExtractionProfileSettings) -> str:
        """Where contents of a kind are cut: text, and what has no joints of its own, as the pipeline says."""
        named = profile.chunking_strategy
        if named is None and kind != "text":
            named = self._settings.chunking.get(kind)
        rule = named or self._chunking.strategy or self._settings.chunking.get("text")
        return rule or SENTENCE


def _lengths(texts: Sequence[str]) -> list[int]:
    return [len(text) for text in texts]
