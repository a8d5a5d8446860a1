"""Asks a language model whether two names mean one entity, where rules do not decide, within an hourly budget."""

from __future__ import annotations

import time
from array import array
from collections.abc import Mapping, Sequence
from math import hypot
from operator import mul

from astrocyte.config import EntityResolutionSettings
from astrocyte.model import KnownEntity
from astrocyte.pipelines.graph.llm.budget import ModelBudget
from astrocyte.pipelines.graph.llm.resolution import Described, candidates_of, resolve_by_model
from astrocyte.pipelines.text.model_calls import Withheld
from astrocyte.providers.protocols import Embedder, LanguageModel
from astrocyte.stores.graph.entity_graph import EntityGraphStore, Unjudged

HOUR_SECONDS = 3_600.0
# The model's own words may quote a memory that is erased later, while the two entities remain.
EVIDENCE = "language model"


class ModelJudgement:
    """Judges entities one by one.

    Args:
        graph: Holds the entities.
        model: The language model.
        embedder: Makes the vectors of names.
        settings: Thresholds and budget.
        withheld: Removes what must not leave from passages.
    """

    def __init__(
        self,
        graph: EntityGraphStore,
        model: LanguageModel,
        embedder: Embedder,
        settings: EntityResolutionSettings,
        withheld: Withheld,
    ) -> None:
        self._graph = graph
        self._model = model
        self._embedder = embedder
        self._settings = settings
        self._withheld = withheld
        self._budget = ModelBudget(0, 0)
        self._renewed = -HOUR_SECONDS

    @property
    def affordable(self) -> bool:
        """True if a call is left of the budget of this hour."""
        now = time.monotonic()
        if now - self._renewed >= HOUR_SECONDS:
            self._renewed = now
            self._budget = ModelBudget(self._settings.calls_per_hour, self._settings.tokens_per_hour)
        return not self._budget.spent

    async def judge(self, one: Unjudged, known: Mapping[int, KnownEntity]) -> None:
        """Ask for another name of an entity, and store the answer. Without candidates no call is made.

        Raises:
            ProviderUnavailable: The model or the embedder failed.
            DeadlineExceeded: The model did not answer in time.
        """
        settings = self._settings
        vectors = await self._vectors([one.entity, *known.values()])

        def similarity(left: str, right: str) -> float:
            return float(sum(map(mul, vectors[left], vectors[right])))

        found = candidates_of(one.entity, list(known.values()), similarity, settings.similarity_threshold)
        key_of = {entity.id: key for key, entity in known.items()}
        passages = self._graph.passages([one.key, *(key_of[entity.id] for entity in found)]) if found else {}
        resolution = await resolve_by_model(
            self._model,
            self._described(one, one.entity, passages.get(one.key, ())),
            [self._described(one, entity, passages[key_of[entity.id]]) for entity in found],
            confirmation_threshold=settings.confirmation_threshold,
            budget=self._budget,
            deadline=time.monotonic() + settings.deadline_seconds,
        )
        target = None if resolution is None else key_of[resolution.alias_of]
        await self._graph.judge(one, target, EVIDENCE, 0.0 if resolution is None else resolution.confidence)

    def _described(self, one: Unjudged, entity: KnownEntity, passages: Sequence[str]) -> Described:
        names = (entity.name, *entity.aliases)
        told = self._withheld(one.bank_id, [*names, *passages])
        known = entity._replace(name=told[0], aliases=tuple(told[1 : len(names)]))
        return Described(known, tuple(told[len(names) :]))

    async def _vectors(self, entities: Sequence[KnownEntity]) -> dict[str, Sequence[float]]:
        """Unit vectors of the names, by id; zeros for a name without direction."""
        made = await self._embedder.embed([entity.name for entity in entities])
        return {entity.id: _unit(vector) for entity, vector in zip(entities, made, strict=True)}


def _unit(vector: bytes) -> Sequence[float]:
    values = array("f", vector)
    length = hypot(*values) or 1.0
    return [value / length for value in values]
