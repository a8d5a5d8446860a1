"""With a stand-in for the package, whose models are too large for a test."""

import struct
import sys
from collections.abc import Iterator
from pathlib import Path
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

    def embed(self, texts: list[str], batch_size: int = 256) -> Iterator[list[float]]:
        assert [len(text) for text in texts] == sorted(len(text) for text in texts)
        self.batch_size = batch_size
        for text in texts:
            if text == "boom":
                raise RuntimeError("out of memory")
            if text == "none":
                continue
            yield [0.0, 0.0] if text == "zero" else [3.0, 4.0] if text.islower() else [1.0, 0.0]


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


async def test_texts_are_read_by_length_and_answered_in_order() -> None:
    made: Any = create_embedder("fastembed", {"model": "m", "batch_size": 8})
    lower, upper = struct.pack("<2f", 0.6, 0.8), struct.pack("<2f", 1.0, 0.0)
    assert await made.embed(["a long one", "UP", "a", "AND DOWN"]) == [lower, upper, lower, upper]
    assert made._model.batch_size == 8
    assert await made.embed([]) == []
    await made.close()


@pytest.mark.parametrize("text", ["boom", "zero", "none"])
async def test_a_model_that_fails(text: str) -> None:
    embedder = create_embedder("fastembed", {"model": "m"})
    with pytest.raises(ProviderUnavailable, match="m/2"):
        await embedder.embed([text])
    await embedder.close()


def test_a_model_that_is_none() -> None:
    with pytest.raises(ConfigError, match="not supported"):
        create_embedder("fastembed", {"model": "none"})


def test_a_folder_is_loaded_and_nothing_is_fetched(tmp_path: Path) -> None:
    made: Any = create_embedder("fastembed", {"model": "m", "model_path": str(tmp_path), "threads": 1})
    assert made._model.options == {
        "cache_dir": None,
        "threads": 1,
        "local_files_only": True,
        "specific_model_path": str(tmp_path),
    }
    with pytest.raises(ConfigError, match=f"from {tmp_path}: Model none is not supported"):
        create_embedder("fastembed", {"model": "none", "model_path": str(tmp_path)})


def test_without_a_folder_fastembed_looks_for_it() -> None:
    made: Any = create_embedder("fastembed", {"model": "m"})
    assert made._model.options["local_files_only"] is False
    assert made._model.options["specific_model_path"] is None


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"model_path": "/nowhere/at/all"}, "model_path: there is no folder"),
        ({"model_path": "/", "cache_dir": "/"}, "cache_dir: cannot be combined with model_path; set one of them"),
        ({"modle_path": "/"}, "did you mean model_path"),
    ],
)
def test_a_folder_that_cannot_be_used(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        create_embedder("fastembed", options)
