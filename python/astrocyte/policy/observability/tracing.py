"""Spans of OpenTelemetry: their creation, attributes and export.

An attribute is an id of a bank, a number, a yes or no, or a word of ours. Content, queries, metadata and messages of
exceptions never are: a span that fails says the reason of its error.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from importlib.metadata import entry_points

from opentelemetry import propagate, trace
from opentelemetry.context import Context
from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter
from opentelemetry.trace import Span, SpanKind, StatusCode

from astrocyte.config.loading.environment import package_version, span_exporters
from astrocyte.errors import AstrocyteError, ConfigError
from astrocyte.policy import events
from astrocyte.policy.observability.span_attributes import Taken, Value

SERVICE = "astrocyte"
EXPORTERS = "opentelemetry_traces_exporter"
# What the SDK calls a service that nobody named.
UNNAMED = "unknown_service"
# Policies tell of these when a provider is back, which no call may be waiting for.
RECOVERY = frozenset({"circuit_closed", "queue_drained"})
# Which policies did something in the operation that runs here.
_taken: ContextVar[Taken | None] = ContextVar("astrocyte_actions_taken", default=None)


class Tracing:
    """Creates spans.

    A program that has set up OpenTelemetry itself gets them where its own go. Otherwise they go where the variables
    ``OTEL_*`` say.

    Args:
        provider: What spans call the memory provider.
        tracers: Where they go instead.

    Raises:
        ConfigError: The variables name an exporter that there is not.
    """

    def __init__(self, provider: str, tracers: trace.TracerProvider | None = None) -> None:
        self.provider = provider
        self._own: TracerProvider | None = None
        if tracers is None:
            tracers = trace.get_tracer_provider()
            if isinstance(tracers, trace.ProxyTracerProvider):
                tracers = self._own = _provider(span_exporters())
        self._tracer = tracers.get_tracer(SERVICE, package_version())
        events.subscribe(self._on_event)

    @contextmanager
    def span(self, name: str, attributes: Mapping[str, Value] | None = None) -> Iterator[Span]:
        """A span around what runs in here, below the one that is current."""
        with self._within(self._tracer.start_span(name, attributes=attributes)) as span:
            yield span

    @contextmanager
    def call(self, name: str, attributes: Mapping[str, Value], headers: Mapping[str, str]) -> Iterator[Span]:
        """A span around a call that came from elsewhere, below the span that its headers name."""
        parent = propagate.extract(headers, Context())
        started = self._tracer.start_span(name, parent, SpanKind.SERVER, attributes)
        with self._within(started) as span:
            yield span

    @contextmanager
    def operation(self, name: str) -> Iterator[tuple[Span, Taken]]:
        """A span around an operation of the gate, and the list of what policies did in it, which grows."""
        taken = Taken()
        span = self.begin(name)
        try:
            with self.inside(span, taken):
                yield span, taken
        finally:
            end(span, taken)

    def begin(self, name: str, attributes: Mapping[str, Value] | None = None) -> Span:
        """A span that its maker ends; for what runs in pieces, of which each is put `inside`."""
        return self._tracer.start_span(name, attributes=attributes)

    @contextmanager
    def inside(self, span: Span, taken: Taken | None = None) -> Iterator[None]:
        """Make a span current for a piece of what it is about; a failure is noted on it.

        ``taken`` gets what policies do meanwhile; without it the operation around this does.
        """
        token = None if taken is None else _taken.set(taken)
        try:
            with trace.use_span(span, record_exception=False, set_status_on_exception=False):
                yield
        except BaseException as error:
            _failed(span, error)
            raise
        finally:
            if token is not None:
                _taken.reset(token)

    def stages(self, parent: Span, began: int, stages: Mapping[str, float]) -> None:
        """Spans of stages that ran one after the other below ``parent``, from ``began`` (nanoseconds) on.

        Args:
            parent: Whose stages they are.
            began: When the first began.
            stages: Milliseconds by name, in their order.
        """
        below = trace.set_span_in_context(parent, Context())
        for name, milliseconds in stages.items():
            ended = began + round(milliseconds * 1e6)
            self._tracer.start_span(name, below, start_time=began).end(ended)
            began = ended

    def close(self) -> None:
        """Flush the queued spans, if the exporter is this server's. A second call does nothing."""
        events.unsubscribe(self._on_event)
        if self._own is not None:
            self._own.shutdown()
            self._own = None

    @contextmanager
    def _within(self, span: Span) -> Iterator[Span]:
        try:
            with self.inside(span):
                yield span
        finally:
            span.end()

    def _on_event(self, event: str, fields: events.Fields) -> None:
        taken = _taken.get()
        if taken is not None:
            taken.append(event)
        attributes = {name: value for name, value in fields.items() if value is not None}
        current = trace.get_current_span()
        if current.is_recording():
            current.add_event(f"{events.PREFIX}{event}", attributes)
        elif event in RECOVERY:
            # In the background: whatever call began it has ended long since.
            span = self._tracer.start_span(f"{SERVICE}.recovery", Context())
            span.add_event(f"{events.PREFIX}{event}", attributes)
            span.end()


def end(span: Span, taken: Sequence[str]) -> None:
    """End the span of an operation, in which policies did this."""
    span.set_attribute("astrocyte.policy.actions_taken", tuple(dict.fromkeys(taken)))
    span.end()


def answered(*, native: bool) -> None:
    """Note who answers the operation that runs here: an engine by itself, or the pipeline."""
    taken = _taken.get()
    if taken is not None:
        taken.native = native


def recording() -> bool:
    """True if a recorded span is current; background work has none."""
    return trace.get_current_span().is_recording()


def now() -> int:
    """The time as spans count it, in nanoseconds."""
    return time.time_ns()


def _failed(span: Span, error: BaseException) -> None:
    """Record the reason of a failure without its message, which may hold a caller's text."""
    if isinstance(error, GeneratorExit):
        # Who asked has heard enough.
        return
    reason = error.reason if isinstance(error, AstrocyteError) else type(error).__name__
    span.set_attribute("error.type", reason)
    span.set_status(StatusCode.ERROR, reason)


def _provider(names: Sequence[str]) -> TracerProvider:
    """Spans to these exporters, in batches, from a thread; sampled and limited as ``OTEL_*`` says."""
    resource = Resource.create({SERVICE_VERSION: package_version()})
    if str(resource.attributes.get(SERVICE_NAME, UNNAMED)).startswith(UNNAMED):
        resource = resource.merge(Resource({SERVICE_NAME: SERVICE}))
    provider = TracerProvider(resource=resource)
    for name in names:
        provider.add_span_processor(BatchSpanProcessor(_exporter(name)))
    return provider


def _exporter(name: str) -> SpanExporter:
    found = {point.name: point for point in entry_points(group=EXPORTERS)}
    if name not in found:
        raise ConfigError(
            f"OTEL_TRACES_EXPORTER: there is no exporter {name[:64]!r}; expected one of none, otlp, "
            f"{', '.join(sorted(found))}",
            metadata={"key": "OTEL_TRACES_EXPORTER"},
        )
    made: SpanExporter = found[name].load()()
    return made
