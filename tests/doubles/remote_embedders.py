"""An embedder that stands for one far away, and does what a test tells it."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Sequence
from typing import Any

import pytest

from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.errors import ProviderUnavailable

DIMENSIONS = 8


class RemoteEmbedder:
    """Answers by the letters of a text, fails while ``down``, hangs while ``hung``."""

    model_id, dimensions, local = "remote/8", DIMENSIONS, False

    def __init__(self, *, down: bool = False) -> None:
        self.down, self.hung = down, False
        self.calls = 0

    def embed_now(self, texts: Sequence[str]) -> list[bytes]:
        raise AssertionError("a remote embedder has no vectors at once")

    async def embed(self, texts: Sequence[str]) -> list[bytes]:
        self.calls += 1
        await asyncio.sleep(0)
        if self.hung:
            await asyncio.Event().wait()
        if self.down:
            raise ProviderUnavailable("the endpoint is down")
        return [vector(text) for text in texts]

    async def close(self) -> None:
        return


def vector(text: str) -> bytes:
    values = [1e-3] * DIMENSIONS
    for place, letter in enumerate(text.encode()):
        values[(letter + place) % DIMENSIONS] += letter
    return struct.pack(f"<{DIMENSIONS}f", *values)


def remote_app(patch: pytest.MonkeyPatch, embedder: RemoteEmbedder, **settings: Any) -> App:
    """An application in memory, unless the settings say otherwise, whose embedder this is."""
    patch.setattr("astrocyte.wiring.providers.create_embedder", lambda *_: embedder)
    return App(Settings.from_mapping({"vector_store": "in_memory", **settings}))
