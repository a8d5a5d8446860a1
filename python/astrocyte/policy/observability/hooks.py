"""Hooks: registered functions that receive events, outside of the call that caused them.

An event is put on a queue, which costs the call a few microseconds, and functions are called from a thread of their
own, one after the other. What they raise is counted and logged by its class. Where they are so slow that the queue is
full, events are lost, and counted.
"""

from __future__ import annotations

import asyncio
import difflib
import inspect
import queue
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from importlib.metadata import entry_points
from typing import TypeAlias

from astrocyte.config import HookSettings
from astrocyte.errors import ConfigError, ValidationError
from astrocyte.model import Caller, HookEvent, HookKind, HookValue
from astrocyte.policy import events

Handler: TypeAlias = Callable[[HookEvent], object]
Register: TypeAlias = Callable[[str, Handler], Callable[[], None]]

GROUP = "astrocyte.hooks"
# How long the end waits for events that were put on the queue.
CLOSE_SECONDS = 5.0
POLICY_EVENTS = {
    **dict.fromkeys(events.PII_EVENTS, HookKind.PII_DETECTED),
    "rate_limited": HookKind.RATE_LIMITED,
    "degraded": HookKind.DEGRADED,
    "circuit_opened": HookKind.CIRCUIT_CHANGED,
    "circuit_half_open": HookKind.CIRCUIT_CHANGED,
    "circuit_closed": HookKind.CIRCUIT_CHANGED,
}
# Whose hooks are told of what policies do here, and who calls.
_within: ContextVar[tuple[Hooks, Caller] | None] = ContextVar("astrocyte_hooks", default=None)


class Hooks:
    """Registered functions, and the thread that calls them, which starts with the first registration.

    Args:
        settings: How many events may wait, and how long an ``async`` function may take.
    """

    def __init__(self, settings: HookSettings) -> None:
        self._timeout_seconds = settings.timeout_seconds
        # Replaced, never changed, so that the thread sees one or the other.
        self._handlers: dict[HookKind, tuple[Handler, ...]] = {}
        self._queue: queue.Queue[HookEvent | None] = queue.Queue(settings.queue_size)
        self._thread: threading.Thread | None = None
        self._lost = 0
        self._closed = False

    def on(self, event: str, handler: Handler) -> Callable[[], None]:
        """Call the handler with each event of a kind from now on; returns what ends that.

        Raises:
            ValidationError: There is no such kind, the handler cannot be called, or the hooks are closed.
        """
        if event not in set(HookKind):
            near = difflib.get_close_matches(str(event), list(HookKind), n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(HookKind)}"
            raise ValidationError(f"there is no event {ascii(event)[:64]}; {hint}", field="event")
        if not callable(handler):
            raise ValidationError("expected a callable that takes an event", field="handler")
        if self._closed:
            raise ValidationError("cannot be registered after close(); register it before", field="handler")
        kind = HookKind(event)
        self._handlers[kind] = (*self._handlers.get(kind, ()), handler)
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="astrocyte-hooks", daemon=True)
            self._thread.start()
            events.subscribe(self._on_event)

        def end() -> None:
            self._handlers[kind] = tuple(one for one in self._handlers[kind] if one is not handler)

        return end

    def wants(self, kind: HookKind) -> bool:
        """True if any function is registered for the event."""
        return bool(self._handlers.get(kind))

    def fire(self, kind: HookKind, bank_id: str | None, caller: Caller | None, data: Mapping[str, HookValue]) -> None:
        """Queue an event without waiting; never raises."""
        current = events.current_trace()
        event = HookEvent(
            uuid.uuid4().hex,
            kind,
            datetime.now(UTC),
            bank_id,
            None if caller is None else caller.tenant,
            None if caller is None else caller.principal,
            data,
            None if current is None else current[0],
        )
        try:
            self._queue.put_nowait(event)
        except queue.Full:
            self._lost += 1
            if self._lost == 1:
                # The others are told of together, when the queue moves again: each for itself would flood the log.
                events.emit("hook_events_lost", hook=str(kind), amount=1)

    @contextmanager
    def within(self, caller: Caller) -> Iterator[None]:
        """Send policy events within the block to these hooks only."""
        token = _within.set((self, caller))
        try:
            yield
        finally:
            _within.reset(token)

    def close(self) -> None:
        """Stop the hooks after the queued events had their time. A second call does nothing."""
        events.unsubscribe(self._on_event)
        self._closed = True
        thread, self._thread = self._thread, None
        if thread is None:
            return
        try:
            self._queue.put(None, timeout=CLOSE_SECONDS)
        except queue.Full:
            return
        # A function that hangs does not keep the process: the thread is a daemon.
        thread.join(CLOSE_SECONDS)

    def _run(self) -> None:
        with asyncio.Runner() as runner:
            while (event := self._queue.get()) is not None:
                for handler in self._handlers.get(event.type, ()):
                    self._call(runner, handler, event)
                if self._lost > 1:
                    events.emit("hook_events_lost", hook=str(event.type), amount=self._lost - 1)
                self._lost = 0

    def _call(self, runner: asyncio.Runner, handler: Handler, event: HookEvent) -> None:
        try:
            result = handler(event)
            if inspect.isawaitable(result):
                runner.run(asyncio.wait_for(_awaited(result), self._timeout_seconds))
        except BaseException as error:  # noqa: BLE001 - whatever it is, it is not ours, and the next one is to be called
            events.emit("hook_failed", hook=str(event.type), error=type(error).__name__)

    def _on_event(self, event: str, fields: events.Fields) -> None:
        kind = POLICY_EVENTS.get(event)
        if kind is None or not self.wants(kind):
            return
        whose = _within.get()
        if whose is not None and whose[0] is not self:
            return
        bank_id = fields.get("bank_id")
        data = {name: value for name, value in fields.items() if name != "bank_id"}
        caller = None if whose is None else whose[1]
        self.fire(kind, None if bank_id is None else str(bank_id), caller, {"event": event, **data})


def load(hooks: Hooks, names: tuple[str, ...]) -> None:
    """Let entry points register their functions: each is called with `Hooks.on`.

    Raises:
        ConfigError: There is none of a name, it cannot be loaded, or it cannot register.
    """
    found = {point.name: point for point in entry_points(group=GROUP)}
    for name in names:
        if name not in found:
            known = ", ".join(sorted(found)) or "none installed"
            raise ConfigError(
                f"hooks.enabled: there is no hook {name[:64]!r}; expected one of {known}", metadata={"hook": name}
            )
        try:
            register: Callable[[Register], object] = found[name].load()
            register(hooks.on)
        except Exception as error:
            raise ConfigError(
                f"hooks.enabled: {name!r} ({found[name].value}) cannot be used: {error}", metadata={"hook": name}
            ) from error


async def _awaited(result: object) -> None:
    await result  # type: ignore[misc]  # the caller has looked
