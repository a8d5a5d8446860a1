"""Cost of telemetry in a recall: the same recalls without it, with metrics, with spans, and with a hook, in turn.

    python -m benches.telemetry --memories 300

Each round asks each of the applications once, so that what else the machine does meets all alike. Told is the processor
time of the process for one recall, which depends less on what else runs, and its ratio to the first column. The last
column asks the first application once more: what differs there is noise. Spans go to an exporter that keeps none.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Any

import structlog
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ALWAYS_ON
from rich.console import Console

from astrocyte.api import Backend
from astrocyte.api.requests import BatchRetain, Recall
from astrocyte.app import App
from astrocyte.config import HookSettings, Settings
from astrocyte.model import Caller, RecallQuery, RetainItem
from astrocyte.policy.observability.hooks import Hooks
from astrocyte.policy.observability.hooks_middleware import HooksMiddleware
from astrocyte.policy.observability.middleware import MiddlewareBackend
from benches.machine import describe
from benches.turns import WARM_ROUNDS, by_turns, table

CALLER = Caller()
SEED = 20_261_122
WORDS = ("Mara", "Ivo", "oboe", "boats", "bees", "sesame", "garden", "letters", "trains", "winter", "paints", "plays")


class Nowhere(SpanExporter):
    """Takes spans and forgets them."""

    def export(self, spans: Sequence[Any]) -> SpanExportResult:
        """Do nothing."""
        del spans
        return SpanExportResult.SUCCESS


async def _application(memories: int, *enabled: str) -> App:
    observability = dict.fromkeys(enabled, True)
    app = App(Settings.from_mapping({"vector_store": "in_memory", "observability": observability}))
    texts = [f"{WORDS[n % 12]} {WORDS[n % 11]} {WORDS[n % 7]} on day {n} with {WORDS[n % 9]}." for n in range(memories)]
    for start in range(0, memories, 100):
        await app.gate.call(CALLER, BatchRetain("family", [RetainItem(text) for text in texts[start : start + 100]]))
    return app


async def _measure(memories: int, rounds: int) -> dict[str, list[float]]:
    providers = [TracerProvider(sampler=sampler) for sampler in (ALWAYS_ON, ALWAYS_OFF)]
    providers[0].add_span_processor(BatchSpanProcessor(Nowhere()))
    plain = await _application(memories)
    apps = {"nothing": plain, "metrics": await _application(memories, "prometheus_enabled")}
    for name, provider in zip(("spans", "spans, none sampled"), providers, strict=True):
        # As a program that has set up tracing before.
        trace.get_tracer_provider = lambda provider=provider: provider  # type: ignore[misc]
        apps[name] = await _application(memories, "otel_enabled")
    asked: dict[str, Backend] = {name: app.backend for name, app in apps.items()}
    hooks = Hooks(HookSettings())
    hooks.on("on_recall", lambda _: None)
    asked["a hook"] = MiddlewareBackend(plain.backend, HooksMiddleware(hooks))
    asked["nothing, again"] = plain.backend
    ways = {name: partial(backend.call, CALLER) for name, backend in asked.items()}
    queries = [
        Recall(RecallQuery(f"who {WORDS[number % 12]} {WORDS[number % 5]}?", "family", include_trace=False))
        for number in range(WARM_ROUNDS + rounds)
    ]
    spent = await by_turns(ways, queries, seed=SEED)
    hooks.close()
    for app in apps.values():
        await app.close()
    return spent


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--memories", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=3_000)
    options = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    console = Console()
    console.print(describe())
    console.print(f"{options.memories:,} memories, {options.rounds:,} rounds")
    console.print(table(asyncio.run(_measure(options.memories, options.rounds))))


if __name__ == "__main__":
    main()
