"""Spans as they were made, for tests that read them."""

from __future__ import annotations

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from astrocyte.app import App

# Settings with spans; no exporter is named then.
TRACED = {"otel_enabled": True}


class Spans:
    """All spans of an application that have ended.

    Args:
        app: One that makes spans.
    """

    def __init__(self, app: App) -> None:
        tracing = app.telemetry.tracing
        assert tracing is not None
        assert isinstance(tracing._own, TracerProvider)
        self._exporter = InMemorySpanExporter()
        tracing._own.add_span_processor(SimpleSpanProcessor(self._exporter))

    @property
    def ended(self) -> list[ReadableSpan]:
        """In the order in which they ended."""
        return list(self._exporter.get_finished_spans())

    def clear(self) -> None:
        """Forget them."""
        self._exporter.clear()

    def named(self, name: str) -> ReadableSpan:
        """The only one of that name."""
        (span,) = [span for span in self.ended if span.name == name]
        return span

    def tree(self) -> dict[str, str | None]:
        """The name of each span's parent, by its name."""
        names = {span.context.span_id: span.name for span in self.ended if span.context}
        return {span.name: names.get(span.parent.span_id) if span.parent else None for span in self.ended}


def no_exporter(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make spans that go nowhere, unless a test reads them."""
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "none")
