"""Metrics, question sets and the runner of benches/quality, with a fake in the product's place."""

import gzip
import json
import math
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from astrocyte.errors import ConfigError
from benches.quality import metrics
from benches.quality.__main__ import main
from benches.quality.data import QuestionSet, read_run, read_set, write_run
from benches.quality.metrics import METRICS, mean, paired_interval, score
from benches.quality.reflecting import Answered, area, opening, risks, share_of_words
from benches.quality.report import OVERALL, evaluate, table, timing_lines
from benches.quality.runner import answer

SET = {
    "dataset": "tiny",
    "banks": [
        {
            "bank": "b",
            "memories": [
                {"id": 1, "text": "the cat sat", "speaker": "Ann", "time": "2024-05-08T10:00:00", "session": 3},
                {"id": 2, "text": "the dog ran", "time": "2024-05-08T10:00:00+02:00"},
                {"id": 3, "text": "the cat sat"},
            ],
            "queries": [
                {"id": "q1", "text": "cat", "category": "single", "evidence": ["3"], "asked_at": "2024-06"},
                {"id": "q2", "text": "dog", "category": "adversarial", "evidence": ["2", "gone"]},
                {"id": "q3", "text": "no evidence", "category": "single", "evidence": ["gone"]},
            ],
        }
    ],
}


class FakeBrain:
    """Finds memories that share a word with the query; keeps equal contents once."""

    def __init__(self) -> None:
        self.contents: dict[str, str] = {}
        self.items: list[dict[str, object]] = []
        self.references: list[datetime | None] = []

    async def retain_many(self, items: Sequence[dict[str, Any]], bank_id: str) -> list[Any]:
        self.items += items
        results: list[Any] = []
        for item in items:
            known = {content: key for key, content in self.contents.items()}
            key = known.get(item["content"], f"{bank_id}/{len(self.contents)}")
            self.contents[key] = item["content"]
            results.append(SimpleNamespace(memory_id=key))
        return results

    async def recall(
        self, query: str, bank_id: str, *, max_results: int, detail_level: str, query_reference_date: datetime | None
    ) -> SimpleNamespace:
        self.references.append(query_reference_date)
        assert bank_id == "bank-0"
        assert max_results == 20
        hits = [SimpleNamespace(memory_id=key) for key, content in self.contents.items() if query in content]
        return SimpleNamespace(hits=hits)


@pytest.fixture
def tiny(tmp_path: Path) -> QuestionSet:
    path = tmp_path / "tiny.json.gz"
    path.write_bytes(gzip.compress(json.dumps(SET).encode()))
    return read_set(path)


def test_perfect_ranking_scores_one() -> None:
    assert score(["a", "b", "x"], {"a", "b"}) == dict.fromkeys(METRICS, 1.0)


def test_nothing_found_scores_zero() -> None:
    assert score(["x", "y"], {"a"}) == dict.fromkeys(METRICS, 0.0)
    assert score([], {"a"}) == dict.fromkeys(METRICS, 0.0)


def test_values_of_a_mixed_ranking() -> None:
    # Evidence at ranks 3 and 12, a third piece missing.
    ranked = [f"x{i}" for i in range(20)]
    ranked[2], ranked[11] = "a", "b"
    scores = score(ranked, {"a", "b", "c"})
    assert scores["R@5"] == scores["R@10"] == pytest.approx(1 / 3)
    assert scores["R@20"] == pytest.approx(2 / 3)
    assert scores["Hit@10"] == 1.0
    assert scores["MRR"] == pytest.approx(1 / 3)
    # DCG 1/log2(4); the best order has ranks 1 to 3: 1 + 1/log2(3) + 1/2.
    assert scores["nDCG@10"] == pytest.approx(0.5 / (1.5 + 1 / math.log2(3)))


def test_an_id_that_comes_twice_counts_once() -> None:
    assert score(["a", "a", "b"], {"a", "b"})["nDCG@10"] == 1.0


def test_more_evidence_than_places_can_still_reach_one() -> None:
    evidence = [f"e{i}" for i in range(30)]
    assert score(evidence, evidence)["nDCG@10"] == pytest.approx(1.0)
    assert score(evidence, evidence)["R@10"] == pytest.approx(1 / 3)


def test_the_first_place_counts_as_a_whole() -> None:
    assert score(["a", "x"], {"a", "b"})["R@1"] == 1.0
    assert score(["x", "a"], {"a", "b"})["R@1"] == 0.0


def test_no_evidence_is_an_error() -> None:
    with pytest.raises(ValueError, match="evidence"):
        score(["a"], [])


def test_area_counts_equal_values_half_and_wants_both_sides() -> None:
    assert metrics.area([0.9, 0.5], [0.5, 0.1]) == 0.875
    assert metrics.area([0.1], [0.9]) == 0.0
    with pytest.raises(ValueError, match="got 1 and 0"):
        metrics.area([0.1], [])


def test_mean_is_by_metric() -> None:
    both = [score(["a"], {"a"}), score(["x"], {"a"})]
    assert mean(both) == dict.fromkeys(METRICS, 0.5)
    assert mean([]) == {}


def test_interval_of_a_constant_difference_is_a_point() -> None:
    assert paired_interval([0.75] * 9, [0.25] * 9, seed=1) == (0.5, 0.5, 0.5)


def test_interval_holds_the_difference_and_follows_the_seed() -> None:
    new, old = [1.0, 0.0, 1.0, 1.0, 0.0] * 20, [0.0, 0.0, 1.0, 0.0, 1.0] * 20
    first = paired_interval(new, old, seed=5)
    assert first == paired_interval(new, old, seed=5)
    difference, lower, upper = first
    assert difference == pytest.approx(0.2)
    assert lower < difference < upper
    # Standard error of a mean of 100 differences with variance .56 is .075.
    assert upper - lower == pytest.approx(2 * 1.96 * 0.0748, rel=0.15)


def test_interval_wants_pairs() -> None:
    with pytest.raises(ValueError, match="equal length"):
        paired_interval([1.0], [], seed=1)


def test_a_set_is_read_with_its_gaps(tiny: QuestionSet) -> None:
    (bank,) = tiny.banks
    first, second, third = bank.turns
    assert (first.id, first.speaker, first.session) == ("1", "Ann", "3")
    assert first.occurred_at == datetime(2024, 5, 8, 10, tzinfo=UTC)
    assert second.occurred_at == datetime(2024, 5, 8, 8, tzinfo=UTC)
    assert (third.speaker, third.occurred_at, third.session) == (None, None, None)
    assert [(q.id, q.evidence) for q in bank.questions] == [("q1", ("3",)), ("q2", ("2",))]


def test_traps_are_read_beside_the_questions(tmp_path: Path) -> None:
    path = tmp_path / "traps.json"
    bank = SET["banks"][0] | {
        "traps": [{"id": "t", "text": "which bird?", "category": "absent", "asked_at": "2024-07"}]
    }  # type: ignore[operator]
    path.write_text(json.dumps({"banks": [bank]}), encoding="utf-8")
    (trap,) = read_set(path).banks[0].traps
    assert (trap.id, trap.evidence, trap.answer) == ("t", (), None)
    assert trap.asked_at == datetime(2024, 7, 31, tzinfo=UTC)


async def test_run_is_judged_under_the_kept_id(tiny: QuestionSet, tmp_path: Path) -> None:
    brain = FakeBrain()
    answers = await answer(brain, tiny)
    assert "occurred_at" not in brain.items[2]
    # The third memory was stored as the first: its evidence is met by the first's id.
    assert answers.kept["b", "3"] == "1"
    assert answers.ranked == {("b", "q1"): ["1"], ("b", "q2"): ["2"]}
    # When the question was asked, or else the time of the newest memory.
    assert brain.references == [datetime(2024, 6, 30, tzinfo=UTC), datetime(2024, 5, 8, 10, tzinfo=UTC)]
    found = evaluate(tiny, answers.ranked, answers.kept)
    assert mean(found[OVERALL])["R@5"] == 1.0
    assert len(found[OVERALL]) == 1, "adversarial stays apart"
    write_run(tmp_path / "runs" / "tiny.jsonl", answers.ranked)
    assert read_run(tmp_path / "runs" / "tiny.jsonl") == answers.ranked
    lines = list(table("tiny", found, evaluate(tiny, {}, answers.kept), seed=1))
    assert any("adversarial (apart)" in line for line in lines)
    assert "R@10 +1.000 [+1.000, +1.000]" in lines[-1]
    first, second = timing_lines(answers.timings, 3)
    assert first.startswith("retain 3 in ")
    assert second.startswith("processor time: 0.")


async def test_refused_evidence_counts_as_not_found(tiny: QuestionSet, capsys: pytest.CaptureFixture[str]) -> None:
    class Forgetful(FakeBrain):
        async def retain_many(self, items: Sequence[dict[str, Any]], bank_id: str) -> list[Any]:
            results = await super().retain_many(items, bank_id)
            return [SimpleNamespace(memory_id=None, error="too long"), results[1], ValueError("no")]

    answers = await answer(Forgetful(), tiny)
    assert answers.refused == 2
    assert "memory 1: not stored" in capsys.readouterr().err
    assert mean(evaluate(tiny, answers.ranked, answers.kept)[OVERALL])["R@20"] == 0.0


async def test_a_bank_without_any_memory_stops_the_run(tiny: QuestionSet) -> None:
    class Full(FakeBrain):
        async def retain_many(self, items: Sequence[dict[str, Any]], bank_id: str) -> list[Any]:
            return [SimpleNamespace(memory_id=None, error="full") for _ in items]

    with pytest.raises(RuntimeError, match="expected 3 memories"):
        await answer(Full(), tiny)


def answered(category: str, confidence: float, words: float = 1.0) -> Answered:
    return Answered(category, words, words == 1.0, False, confidence, 10, 0.001, 0.002)


def test_share_of_words_goes_by_stems_of_words_with_content() -> None:
    assert share_of_words("the black cats", "A black cat sat.") == 1.0
    assert share_of_words("black dogs", "a black cat") == 0.5
    assert share_of_words("it is", "anything") is None


def test_the_opening_is_the_first_sentence_with_its_speaker() -> None:
    assert opening("Ann: I sold it. It was old.\nBob: Why?") == "Ann: I sold it."
    assert not opening("")


def test_risk_is_what_is_wrong_among_the_most_confident() -> None:
    right, trap = [answered("single-hop", 0.9)] * 5, [answered("adversarial", 0.1)] * 5
    assert risks(right + trap)[:5] == [0.0] * 5
    assert risks(right + trap)[-1] == 0.5
    assert area(right + trap) == 1.0
    assert area([answered("single-hop", 0.5), answered("adversarial", 0.5)]) == 0.5
    assert risks([answered("single-hop", 0.9, 0.5)]) == [1.0] * 10


def test_a_run_with_settings_of_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, config = tmp_path / "tiny.json", tmp_path / "settings.yaml"
    data.write_text(json.dumps(SET), encoding="utf-8")
    config.write_text("embedding: {options: {dimensions: 64}}\nrecall: {weights: {keyword: 0}}\n", encoding="utf-8")
    assert main(["--data", str(data), "--config", str(config)]) == 0
    assert " MiB" in capsys.readouterr().out
    config.write_text("recal: {}", encoding="utf-8")
    with pytest.raises(ConfigError, match="recal"):
        main(["--data", str(data), "--config", str(config)])


@pytest.mark.parametrize("other", ["--ablate", "--routes"])
def test_settings_beside_what_chooses_its_own_are_refused(other: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--data", "a.json", "--config", "b.yaml", other])
    assert "--config: expected neither" in capsys.readouterr().err
