"""Controls of the regression gate: a product that has lost one of its parts does not pass it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from astrocyte.model import RecallResult
from astrocyte.pipelines.recall.result_assembly import ResultAssembly
from astrocyte.pipelines.reflect import evidence, extractive
from benches.quality.data import QuestionSet
from benches.quality.gate.__main__ import main
from benches.quality.gate.floors import below
from benches.quality.gate.measure import ABSTAINS, AREA, OPENS, Measured, figures, gate_set, measure
from benches.quality.product import open_brain
from benches.quality.runner import Stored, store

Store = tuple[Path, QuestionSet, Stored]


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Store:
    folder, questions = tmp_path_factory.mktemp("gate"), gate_set()

    async def fill() -> Stored:
        async with open_brain(folder) as brain:
            return await store(brain, questions)

    return folder, questions, asyncio.run(fill())


def failures(stored: Store, settings: Mapping[str, Any]) -> set[str]:
    folder, questions, names = stored

    async def ask() -> Measured:
        async with open_brain(folder, settings) as brain:
            return await measure(brain, questions, names)

    return set(below(figures(asyncio.run(ask()))))


def recalling(**settings: Any) -> Mapping[str, Any]:
    return {"recall": settings}


@pytest.mark.parametrize(
    ("settings", "lost"),
    [
        pytest.param(recalling(weights={"semantic": 0.0}), {"R@1", "R@10", "MRR, paraphrase"}, id="dense arm"),
        pytest.param(recalling(weights={"keyword": 0.0}), {"R@1", "R@10", "MRR, update"}, id="keyword arm"),
        pytest.param(recalling(weights={"temporal": 0.0}), {"R@1", "MRR, relative"}, id="temporal arm"),
        pytest.param(recalling(boosts={"turns": {"speaker": 0.0}}), {"MRR, speaker"}, id="speaker boost"),
        pytest.param(recalling(boosts={"turns": {"question": 0.0}}), {"R@1", "MRR"}, id="reply boost"),
        pytest.param(recalling(context_windows=False), {"R@10", "MRR, speaker"}, id="context windows"),
        pytest.param(recalling(feedback=0.0), {"R@10"}, id="feedback"),
        pytest.param(recalling(fusion_method="rrf"), {"R@10"}, id="score fusion"),
        pytest.param({"adversarial_defense": {"abstention_enabled": False}}, {ABSTAINS}, id="abstention"),
        pytest.param({"adversarial_defense": {"abstention_floor": 0.9}}, {OPENS}, id="answers"),
    ],
)
def test_the_gate_fails_without(stored: Store, settings: Mapping[str, Any], lost: set[str]) -> None:
    assert lost <= failures(stored, settings)


def test_the_unchanged_product_passes_on_the_same_store(stored: Store) -> None:
    assert not failures(stored, {})


def test_the_gate_fails_on_a_constant_confidence(stored: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    assemble = ResultAssembly._result

    def constant(self: ResultAssembly, *args: Any) -> RecallResult:
        return replace(assemble(self, *args), confidence=0.5)

    monkeypatch.setattr(ResultAssembly, "_result", constant)
    assert AREA in failures(stored, {})


@pytest.mark.parametrize("weight", ["TYPE", "RANK"])
def test_the_gate_fails_without_a_weight_of_sentences(
    stored: Store, weight: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evidence, weight, 0.0)
    assert OPENS in failures(stored, {})


def test_the_gate_fails_without_dates_for_relative_ones(stored: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extractive, "with_dates", lambda text, *_, **__: text)
    assert OPENS in failures(stored, {})


def test_the_gate_fails_if_the_best_sentence_does_not_lead(stored: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extractive, "_as_told", lambda own, _: sorted(own, key=lambda one: one.place))
    assert OPENS in failures(stored, {})


def test_the_command_fails_below_a_floor(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = tmp_path / "settings.yaml"
    settings.write_text("recall: {weights: {semantic: 0}}\n", encoding="utf-8")
    assert main(["--config", str(settings), "--quiet"]) == 1
    assert "R@10 is 0." in capsys.readouterr().out
