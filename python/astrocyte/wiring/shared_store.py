"""Refuses at the start what several processes on one store cannot share yet."""

from __future__ import annotations

from collections.abc import Iterator

from astrocyte.config import Settings
from astrocyte.policy.settings.bank_settings import Overrides
from astrocyte.providers.registry import SQLITE

# Of the sources, only webhooks store in the process that takes the delivery, by ordinary calls.
WEBHOOK = "webhook"


def check_shared(settings: Settings) -> None:
    """Refuse settings that servers on one PostgreSQL database would disagree about.

    Raises:
        ConfigError: There is one; the first is named.
    """
    for path, problem in refused(settings):
        raise settings.refusal(path, f"{problem}; set store.backend to sqlite, or change this")
    for own in Overrides(settings).every:
        quotas = own.homeostasis.quotas
        if quotas.retain_per_day is not None or quotas.reflect_per_day is not None:
            raise settings.refusal(
                ("homeostasis", "quotas"),
                "daily quotas are counted in a file of one server; set store.backend to sqlite, or remove them",
            )


def refused(settings: Settings) -> Iterator[tuple[tuple[str, ...], str]]:
    """Settings that several processes on one store would disagree about, by their paths, and why."""
    yield from _stores(settings)
    if settings.read_only:
        yield ("read_only",), "workers are for a store that is written; start read-only servers beside each other"
    for name, source in settings.sources.items():
        if source.type != WEBHOOK:
            yield ("sources", name), "consumers and polled sources run in one process"
    if settings.tiered_retrieval.enabled:
        yield ("tiered_retrieval", "enabled"), "the newest memories that it looks at first are those of one process"
    recall = settings.recall
    if recall.utility.enabled or recall.boosts.frequency.weight > 0.0 or recall.boosts.utility.weight > 0.0:
        yield ("recall", "utility"), "recalls are counted in one process, so that workers would rank differently"
    for own in Overrides(settings).every:
        if own.homeostasis.quotas.storage_bytes_per_bank is not None:
            yield (
                ("homeostasis", "quotas", "storage_bytes_per_bank"),
                "writes of two workers at once could take the same room",
            )


def _stores(settings: Settings) -> Iterator[tuple[tuple[str, ...], str]]:
    if settings.vector_store != SQLITE:
        yield ("vector_store",), "workers share the embedded SQLite store alone"
    for name in ("document_store", "graph_store"):
        if getattr(settings, name) != "none":
            yield (name,), "external stores follow the store of one process"
    if settings.provider is not None:
        yield ("provider",), "copies for engines are delivered by one process"
    if settings.agent_memory.dsn is not None:
        yield ("agent_memory", "dsn"), "the database of agents' memories is for one process"
    if settings.engines:
        yield ("engines",), "copies for engines are delivered by one process"
