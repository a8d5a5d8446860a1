"""Proposals of external stores in a recall: lists of memories, which the core fuses with its own.

The core takes of a list only memories that it has and that pass the filter, and the truth decides on each of them as on
any other hit; so a store decides at most in which order what may be seen is shown.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterable, Sequence
from functools import partial
from time import perf_counter

from astrocyte.config import RecallSettings
from astrocyte.errors import ProviderUnavailable
from astrocyte.pipelines.external_stores.adapters import Guarded
from astrocyte.pipelines.external_stores.items import filters_of, name_of
from astrocyte.pipelines.index.rows import id_to_bytes
from astrocyte.pipelines.search.plan import ExternalList, Plan
from astrocyte.providers.storage import StoreHit


class Asker:
    """Queries the external stores concurrently.

    Args:
        stores: Who is asked.
        installation: Whose banks.
        settings: How many candidates an arm has.
        seconds: How long to wait for them.
    """

    def __init__(self, stores: Sequence[Guarded], installation: str, settings: RecallSettings, seconds: float) -> None:
        self._stores = stores
        self._installation = installation
        self._settings = settings
        self._seconds = seconds

    async def ask(self, plans: Iterable[Plan]) -> None:
        """Set in the plans the proposals of the stores, and the names of those that did not answer."""
        await asyncio.gather(*[self._ask(plan) for plan in plans if plan.outside is None])

    async def _ask(self, plan: Plan) -> None:
        found = await asyncio.gather(*[self._proposed(plan, store) for store in self._stores])
        plan.outside = [one for one in found if one is not None]
        for store, one in zip(self._stores, found, strict=True):
            if one is None:
                plan.missed(store.kind.name)
        plan.asked = perf_counter()

    async def _proposed(self, plan: Plan, store: Guarded) -> ExternalList | None:
        """The store's list, or None where it did not answer."""
        query, kind = plan.query, store.kind
        depth = max(self._settings.depth, self._settings.overfetch * query.max_results)
        name = name_of(self._installation, plan.bank)
        start = perf_counter()
        work = partial(kind.ask, query.query, plan.vector, name, depth, filters_of(query))
        try:
            return kind.name, kind.weight, _memories(await store.call(work, self._seconds), depth)
        except ProviderUnavailable:
            return None
        finally:
            plan.proposing = {**plan.proposing, kind.name: (perf_counter() - start) * 1e3}


def _memories(hits: Sequence[StoreHit], most: int) -> list[tuple[bytes, float]]:
    """Memories by their best item, best first; invalid ids and scores are left out."""
    best: dict[bytes, float] = {}
    for hit in hits[:most]:
        identity = id_to_bytes(hit.memory_id)
        if identity is not None and math.isfinite(hit.score):
            best[identity] = max(hit.score, best.get(identity, hit.score))
    return sorted(best.items(), key=lambda one: (-one[1], one[0]))
