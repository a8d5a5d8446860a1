"""The blocks of the pipeline load as they are printed, and each value in them is in force, or refused with a reason."""

from pathlib import Path
from typing import Any

import pytest

from astrocyte.api.requests import Recall, Retain
from astrocyte.app import App
from astrocyte.config import Settings, load_settings
from astrocyte.config.banks import at
from astrocyte.errors import ConfigError
from astrocyte.model import Caller, FusionMethod, RecallQuery, RetainItem
from astrocyte.pipelines.external_stores.adapters import Graph
from astrocyte.pipelines.graph.named_entities import named_entities
from astrocyte.providers.storage import StoreFilters

ME = Caller()
RETAIN = """
pipeline:
  chunking:
    strategy: sentence
    max_chunk_size: 512
  entity_extraction:
    mode: llm
  embedding:
    model: null
"""
RETRIEVAL = """
pipeline:
  retrieval:
    semantic_overfetch_multiplier: 3
    graph_max_depth: 2
    graph_max_results: 20
  fusion:
    rrf_k: 60
  reranking:
    mode: disabled
    top_n: 20
"""
REFLECT = """
pipeline:
  reflect:
    recall_max_results: 20
    synthesis_max_tokens: 2048
    temperature: 0.1
"""
CUSTOM = """
pipeline:
  entity_extraction:
    mode: custom
    custom_extractor: mypackage.extractors:MyEntityExtractor
"""


def loaded(text: str, folder: Path) -> Settings:
    path = folder / "astrocyte.yaml"
    path.write_text(text, encoding="utf-8")
    return load_settings(path, environ={})


@pytest.mark.parametrize("text", [RETAIN, RETRIEVAL, REFLECT, CUSTOM], ids=["retain", "retrieval", "reflect", "custom"])
def test_a_block_loads_as_printed(text: str, tmp_path: Path) -> None:
    import yaml

    found = loaded(text, tmp_path).model_dump(mode="json")

    def check(values: dict[str, Any], path: tuple[str, ...]) -> None:
        for key, value in values.items():
            if isinstance(value, dict):
                check(value, (*path, key))
            else:
                assert at(found, (*path, key)) == value, (*path, key)

    check(yaml.safe_load(text), ())


def test_all_together_are_a_server(tmp_path: Path) -> None:
    blocks = [text.removeprefix("\npipeline:\n") for text in (RETAIN, RETRIEVAL, REFLECT)]
    settings = loaded("vector_store: in_memory\nllm_provider: mock\npipeline:\n" + "".join(blocks), tmp_path)
    assert App(settings).healthy


def test_what_has_another_name_is_set_by_it(tmp_path: Path) -> None:
    text = RETRIEVAL.replace("multiplier: 3", "multiplier: 7").replace("rrf_k: 60", "rrf_k: 30")
    recall = loaded(text, tmp_path).recall
    assert (recall.overfetch, recall.rank_constant) == (7, 30.0)
    same = loaded("recall: {rank_constant: 30, overfetch: 7}\n" + text.lstrip(), tmp_path)
    assert (same.recall, same.pipeline.fusion.rrf_k) == (recall, 30.0)
    assert loaded("recall: {depth: 50}\n" + text.lstrip(), tmp_path).recall.rank_constant == 30.0


@pytest.mark.parametrize(
    ("key", "line"),
    [
        ("retrieval.semantic_overfetch_multiplier", "recall: {overfetch: 4}"),
        ("fusion.rrf_k", "recall: {rank_constant: 61}"),
    ],
)
def test_what_is_said_twice_differently_is_refused(key: str, line: str, tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError, match=f"line .*: pipeline.{key}: recall.* has the different value .*; set only one of them"
    ):
        loaded(f"{line}\n{RETRIEVAL.lstrip()}", tmp_path)


def test_a_wrong_block_under_the_other_name_is_still_wrong(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="recall"):
        loaded("recall: 5\n" + RETRIEVAL.lstrip(), tmp_path)


async def test_the_constant_of_ranks_is_that_of_the_scores(tmp_path: Path) -> None:
    scores = []
    for constant in ("60", "5"):
        text = "vector_store: in_memory\n" + RETRIEVAL.lstrip().replace("rrf_k: 60", f"rrf_k: {constant}")
        app = App(loaded(text, tmp_path))
        await app.gate.call(ME, Retain("b", RetainItem("Mara plays the oboe.")))
        query = RecallQuery("oboe", "b", fusion_method=FusionMethod.RRF)
        scores.append((await app.gate.call(ME, Recall(query))).hits[0].fused_score)
        await app.close()
    # Half the weight of the semantic arm's first place, and the keyword arm's: 1.5 / (k + 1).
    assert scores == pytest.approx([1.5 / 61, 1.5 / 6])


async def test_the_graph_is_walked_as_far_and_as_wide_as_it_says() -> None:
    asked: list[tuple[int, int]] = []

    class Store:
        async def query_entities(self, *_: Any) -> list[str]:
            return ["oboe"]

        async def query_neighbors(self, entities: Any, name: str, depth: int, limit: int, filters: Any) -> list[Any]:
            asked.append((depth, limit))
            return []

    store: Any = Store()
    for graph in (
        Graph(store, 1.0, named_entities, 3, 20),
        Graph(store, 1.0, named_entities, 1, None),
        Graph(store, 1.0, named_entities, 2, 900),
    ):
        await graph.ask("oboe", None, "name", 100, StoreFilters())
    assert asked == [(3, 20), (1, 100), (2, 100)]


def test_the_settings_of_the_graph_reach_the_store(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[tuple[Any, ...]] = []

    class Spy(Graph):
        def __init__(self, *arguments: Any) -> None:
            made.append(arguments[1:])
            super().__init__(*arguments)

    monkeypatch.setattr("astrocyte.wiring.providers.Graph", Spy)
    block = {"retrieval": {"graph_max_depth": 4, "graph_max_results": 9}}
    App(Settings.from_mapping({"vector_store": "in_memory", "graph_store": "reference", "pipeline": block}))
    assert made == [(0.5, named_entities, 4, 9)]
