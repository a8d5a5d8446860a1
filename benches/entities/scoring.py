"""Scores of extraction and of resolution against the labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from astrocyte.model.derived.graph import KnownEntity
from astrocyte.pipelines.graph.extraction import extract
from astrocyte.pipelines.graph.resolution import blocking_keys, resolve
from benches.entities.pairs import Pair
from benches.entities.sentences import Sentence

# In the confusion table: a name that was not found, and words that are no name.
MISSED, INVENTED = "(missed)", "(no name)"


@dataclass
class Counts:
    """Decisions that were right, wrong, and left out."""

    right: int = 0
    wrong: int = 0
    missed: int = 0

    @property
    def precision(self) -> float:
        """Share of right decisions."""
        return self.right / (self.right + self.wrong) if self.right else 0.0

    @property
    def recall(self) -> float:
        """Share of labels that were found."""
        return self.right / (self.right + self.missed) if self.right else 0.0

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall."""
        both = self.precision + self.recall
        return 2 * self.precision * self.recall / both if both else 0.0


@dataclass
class ExtractionScore:
    """Figures of a split.

    Attributes:
        names: Names by exact place.
        typed: Names found, of which the type is right.
        links: Relations by both names and the type.
        types: Label and found type of each name.
        link_types: Label and found type of each relation, by its names.
        errors: A line for each sentence with an error.
    """

    names: Counts = field(default_factory=Counts)
    typed: int = 0
    links: Counts = field(default_factory=Counts)
    types: Counter[tuple[str, str]] = field(default_factory=Counter)
    link_types: Counter[tuple[str, str]] = field(default_factory=Counter)
    errors: list[str] = field(default_factory=list)

    @property
    def type_accuracy(self) -> float:
        """Share of right types among the names found."""
        return self.typed / self.names.right if self.names.right else 0.0


def score_extraction(sentences: Iterable[Sentence]) -> ExtractionScore:
    """The figures of some sentences."""
    score = ExtractionScore()
    for sentence in sentences:
        found = extract(sentence.text, speaker=sentence.speaker)
        placed = {(one.start, one.end): one.entity_type for one in found.mentions if one.start >= 0}
        labels = {(one.start, one.end): one.entity_type for one in sentence.labels}
        errors = _names(score, placed, labels, sentence.text)
        errors += _links(score, {one[:3] for one in found.relations}, sentence.relations)
        if errors:
            score.errors.append(f"{sentence.text}\n      {'; '.join(errors)}")
    return score


def _names(
    score: ExtractionScore, placed: dict[tuple[int, int], str], labels: dict[tuple[int, int], str], text: str
) -> list[str]:
    errors = []
    for place in sorted(placed.keys() | labels.keys()):
        label, kind = labels.get(place, INVENTED), placed.get(place, MISSED)
        score.types[label, kind] += 1
        if label != kind:
            errors.append(f"{text[slice(*place)]!r} {label} -> {kind}")
    both = placed.keys() & labels.keys()
    score.names.right += len(both)
    score.names.wrong += len(placed.keys() - labels.keys())
    score.names.missed += len(labels.keys() - placed.keys())
    score.typed += sum(placed[place] == labels[place] for place in both)
    return errors


def _links(
    score: ExtractionScore, found: set[tuple[str, str, str]], stated: frozenset[tuple[str, str, str]]
) -> list[str]:
    # As sentences label them, source and link and target.
    read = {(source, link, target) for source, target, link in found}
    score.links.right += len(read & stated)
    score.links.wrong += len(read - stated)
    score.links.missed += len(stated - read)
    for _, link, _ in read & stated:
        score.link_types[link, link] += 1
    for source, link, target in read - stated:
        label = next((other[1] for other in stated if {other[0], other[2]} == {source, target}), INVENTED)
        score.link_types[label, link] += 1
    for source, link, target in stated - read:
        if not any({other[0], other[2]} == {source, target} for other in read):
            score.link_types[link, MISSED] += 1
    return [f"+ {' '.join(one)}" for one in sorted(read - stated)] + [
        f"- {' '.join(one)}" for one in sorted(stated - read)
    ]


@dataclass
class ResolutionScore:
    """Figures of pairs of names.

    Attributes:
        same: Pairs that are one entity.
        different: Number of pairs that are two, and were kept apart.
        reasons: Number of right and wrong decisions by reason.
        errors: A line for each pair that went wrong.
    """

    same: Counts = field(default_factory=Counts)
    different: int = 0
    reasons: Counter[tuple[str, bool]] = field(default_factory=Counter)
    errors: list[str] = field(default_factory=list)


def score_resolution(pairs: Iterable[Pair]) -> ResolutionScore:
    """The figures of some pairs, each as a bank of these two entities."""
    score = ResolutionScore()
    for pair in pairs:
        left = KnownEntity("x:1", pair.left, pair.left_type)
        right = KnownEntity("x:2", pair.right, pair.right_type)
        both = (left, right)
        met = bool(blocking_keys(pair.left) & blocking_keys(pair.right))
        decisions = [*resolve([left], both), *resolve([right], both)] if met else []
        for decision in decisions[:1]:
            score.reasons[decision.reason, pair.same] += 1
        if decisions and pair.same:
            score.same.right += 1
        elif decisions:
            score.same.wrong += 1
        elif pair.same:
            score.same.missed += 1
        else:
            score.different += 1
        if bool(decisions) != pair.same:
            reason = decisions[0].reason if decisions else "kept apart"
            score.errors.append(f"{pair.left} ({pair.left_type}) / {pair.right} ({pair.right_type}): {reason}")
    return score
