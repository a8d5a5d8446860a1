"""Vectors of questions: each text is embedded once for all banks of a model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from time import perf_counter

from astrocyte.errors import AstrocyteError
from astrocyte.pipelines.index.embedding_spaces import EmbeddingSpaces, usable
from astrocyte.pipelines.search.plan import Plan
from astrocyte.providers.protocols import Embedder


class QueryVectors:
    """Sets the query vectors of plans.

    Args:
        spaces: The embedders.
        external_search: True if external stores or custom arms search by vectors too.
    """

    def __init__(self, spaces: EmbeddingSpaces, *, external_search: bool) -> None:
        self._spaces = spaces
        self._external_search = external_search

    def waits(self, plan: Plan) -> bool:
        """True if a plan needs a vector that the server can make, and has none yet.

        A query that silences the semantic arm needs none, unless an external store or a custom arm searches by it.
        """
        if plan.vector is not None or plan.index.model not in self._spaces.by_model:
            return False
        return self._external_search or plan.query.weights.get("semantic", 1.0) > 0.0

    async def embed(self, plans: Sequence[Plan]) -> None:
        """Embed the texts of the plans that wait for that.

        Raises:
            ProviderUnavailable: An embedder failed; the plans of other models have their vectors.
        """
        failure: AstrocyteError | None = None
        for embedder, texts, waiting in self._waiting(plans):
            try:
                found = embedder.embed_now(texts) if embedder.local else await embedder.embed(texts)
            except AstrocyteError as error:
                failure = failure or error
                continue
            vectors = dict(zip(texts, map(usable, found), strict=True))
            for plan in waiting:
                plan.vector = vectors[plan.query.query]
        if failure is not None:
            raise failure

    def embed_now(self, plans: Sequence[Plan]) -> None:
        """As `embed`, on the thread that asks for the plans, where all models are local."""
        for embedder, texts, waiting in self._waiting(plans):
            vectors = dict(zip(texts, map(usable, embedder.embed_now(texts)), strict=True))
            embedded = perf_counter()
            for plan in waiting:
                plan.vector = vectors[plan.query.query]
                # As if it had not been queued.
                plan.embedded = embedded - plan.queued

    def _waiting(self, plans: Sequence[Plan]) -> Iterator[tuple[Embedder, list[str], list[Plan]]]:
        """The plans that wait for vectors, by embedder, with each text once."""
        waiting = [plan for plan in plans if self.waits(plan)]
        for model in dict.fromkeys([plan.index.model for plan in waiting]):
            alike = [plan for plan in waiting if plan.index.model == model]
            yield self._spaces.by_model[model], list(dict.fromkeys([plan.query.query for plan in alike])), alike
