"""With a stand-in for the package, whose models are too large for a test."""

import struct
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

from astrocyte.errors import ConfigError, ProviderUnavailable
from astrocyte.providers.registry import create_embedder


class TextEmbedding:
    def __init__(self, name: str, **options: Any) -> None:
        if name == "none":
            raise ValueError("Model none is not supported")
        self.options = options

    def embed(self, texts: list[str]) -> Iterator[list[float]]:
        for text in texts:
            if text == "boom":
                raise RuntimeError("out of memory")
            yield [0.0, 0.0] if text == "zero" else [3.0, 4.0]


@pytest.fixture(autouse=True)
def package(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("fastembed")
    module.TextEmbedding = TextEmbedding  # type: ignore[attr-defined] # a stand-in
    monkeypatch.setitem(sys.modules, "fastembed", module)
    monkeypatch.delitem(sys.modules, "astrocyte.providers.fastembed", raising=False)


async def test_vectors_have_length_one() -> None:
    embedder = create_embedder("fastembed", {"model": "m"})
    assert (embedder.model_id, embedder.dimensions, embedder.local) == ("m/2", 2, False)
    assert await embedder.embed(["a", "b"]) == [struct.pack("<2f", 0.6, 0.8)] * 2
    await embedder.close()


@pytest.mark.parametrize("text", ["boom", "zero"])
async def test_a_model_that_fails(text: str) -> None:
    embedder = create_embedder("fastembed", {"model": "m"})
    with pytest.raises(ProviderUnavailable, match="m/2"):
        await embedder.embed([text])
    await embedder.close()


def test_a_model_that_is_none() -> None:
    with pytest.raises(ConfigError, match="not supported"):
        create_embedder("fastembed", {"model": "none"})
