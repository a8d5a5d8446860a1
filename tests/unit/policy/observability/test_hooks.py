"""Hooks hear of everything, and nothing that they do reaches the call."""

import asyncio
import importlib.metadata
import queue
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest
import structlog

from astrocyte import Astrocyte, HookEvent, HookKind, connect
from astrocyte.api.requests import Retain
from astrocyte.app import App
from astrocyte.config import HookSettings, Settings
from astrocyte.errors import CapabilityNotSupported, ConfigError, LimitReached, ValidationError
from astrocyte.model import POLICY_KINDS, Caller
from astrocyte.policy import events
from astrocyte.policy.gate import Gate
from astrocyte.policy.observability import hooks
from astrocyte.policy.observability.hooks import Hooks
from harness.serving import serving

SECONDS = 5


class Ear:
    """Keeps what it hears, and waits for it."""

    def __init__(self) -> None:
        self.heard: queue.Queue[HookEvent] = queue.Queue()

    def __call__(self, event: HookEvent) -> None:
        self.heard.put(event)

    def next(self) -> HookEvent:
        return self.heard.get(timeout=SECONDS)


@pytest.fixture
async def brain() -> AsyncIterator[Astrocyte]:
    async with Astrocyte.from_config_dict({"vector_store": "in_memory"}) as brain:
        yield brain


@pytest.fixture
def ear() -> Ear:
    return Ear()


@pytest.fixture
def told() -> Iterator[list[tuple[str, dict[str, Any]]]]:
    """Events of policies."""
    seen: list[tuple[str, dict[str, Any]]] = []

    def listen(event: str, fields: events.Fields) -> None:
        seen.append((event, dict(fields)))

    events.subscribe(listen)
    yield seen
    events.unsubscribe(listen)


async def test_without_hooks_nothing_is_laid_around_the_gate(brain: Astrocyte) -> None:
    assert type(brain._backend) is Gate
    end = brain.on("on_retain", print)
    assert type(brain._backend) is not Gate
    end()


async def test_each_call_is_heard_with_ids_and_no_content(brain: Astrocyte, ear: Ear) -> None:
    for kind in HookKind:
        brain.on(kind, ear)
    kept = await brain.retain("canary sings", bank_id="family", tags=["canary"], metadata={"canary": "canary"})
    event = ear.next()
    assert (event.type, event.bank_id, event.tenant, event.principal) == ("on_retain", "family", "default", "local")
    assert event.data == {
        "memory_id": kept.memory_id,
        "stored": True,
        "retention_action": "created",
        "deduplicated": False,
        "position": kept.position,
    }
    await brain.recall("who sings?", bank_id="family")
    event = ear.next()
    assert (event.type, event.bank_id) == ("on_recall", "family")
    assert event.data == {"memory_ids": (kept.memory_id,), "truncated": False}
    answer = await brain.reflect("who sings, the canary?", bank_id="family")
    event = ear.next()
    assert event.type == "on_reflect"
    assert event.data["abstained"] is answer.abstained
    assert kept.memory_id
    await brain.update(kept.memory_id, bank_id="family", content="canary sleeps")
    assert ear.next().data == {"memory_id": kept.memory_id, "version": 2}
    await brain.forget("family", memory_ids=[kept.memory_id])
    event = ear.next()
    assert event.type == "on_forget"
    assert event.data == {"count": 1, "memory_ids": (kept.memory_id,), "compliance": False}
    await brain.undelete(kept.memory_id, bank_id="family")
    assert ear.next().type == "on_undelete"
    await brain.delete_bank("family")
    event = ear.next()
    assert (event.type, event.data) == ("on_bank_deleted", {"count": 1})
    assert "canary" not in repr(event)


async def test_what_changed_nothing_is_not_heard(brain: Astrocyte, ear: Ear) -> None:
    brain.on("on_forget", ear)
    brain.on("on_bank_deleted", ear)
    await brain.retain("Mara plays the oboe.", bank_id="family")
    await brain.forget("family", scope="all", dry_run=True)
    await brain.delete_bank("family")
    assert ear.next().type == "on_bank_deleted"


async def test_each_item_of_a_batch_is_heard(brain: Astrocyte, ear: Ear) -> None:
    brain.on("on_retain", ear)
    results = await brain.retain_many([{"content": "one boat"}, {"content": ""}, {"content": "two boats"}], "family")
    assert [ear.next().data["memory_id"] for _ in range(2)] == [results[0].memory_id, results[2].memory_id]


async def test_policies_are_heard_with_who_called(ear: Ear) -> None:
    limits = {"rate_limits": {"recall_per_minute": 1}}
    async with Astrocyte.from_config_dict({"vector_store": "in_memory", "homeostasis": limits}) as brain:
        brain.on("on_pii_detected", ear)
        brain.on("on_rate_limited", ear)
        await brain.retain("Write to mara@example.org.", bank_id="family")
        event = ear.next()
        assert (event.type, event.bank_id, event.principal) == ("on_pii_detected", "family", "local")
        assert event.data["pattern"] == "email"
        assert event.data["action"] == "redact"
        await brain.recall("who?", bank_id="family")
        with pytest.raises(LimitReached):
            await brain.recall("who?", bank_id="family")
        assert ear.next().data["operation"] == "recall"


async def test_another_memory_of_the_process_is_not_heard(brain: Astrocyte, ear: Ear) -> None:
    other = Ear()
    async with Astrocyte.from_config_dict({"vector_store": "in_memory"}) as second:
        brain.on("on_pii_detected", ear)
        second.on("on_pii_detected", other)
        await second.retain("Write to mara@example.org.", bank_id="theirs")
        await brain.retain("Write to ivo@example.org.", bank_id="ours")
        assert ear.next().bank_id == "ours"
        assert other.next().bank_id == "theirs"
        # A circuit that changes in the background is everybody's.
        brain.on("on_circuit_changed", ear)
        events.emit("circuit_opened", provider="openai", wait_seconds=1)
        assert ear.next().data["event"] == "circuit_opened"


async def test_a_handler_may_be_async(brain: Astrocyte, ear: Ear) -> None:
    async def handler(event: HookEvent) -> None:
        await asyncio.sleep(0)
        ear(event)

    brain.on("on_retain", handler)
    await brain.retain("Mara plays the oboe.", bank_id="family")
    assert ear.next().type == "on_retain"


@pytest.mark.parametrize("failure", [ValueError("canary"), SystemExit(3), asyncio.CancelledError()])
async def test_a_failing_handler_fails_nothing_and_is_told_of(
    brain: Astrocyte, ear: Ear, told: list[tuple[str, dict[str, Any]]], failure: BaseException
) -> None:
    def fail(_: HookEvent) -> None:
        raise failure

    brain.on("on_retain", fail)
    brain.on("on_retain", ear)
    with structlog.testing.capture_logs() as lines:
        for number in range(3):
            kept = await brain.retain(f"boat number {number}", bank_id="family")
            assert kept.stored
            assert ear.next().data["memory_id"] == kept.memory_id
    failed = [fields for event, fields in told if event == "hook_failed"]
    assert failed == [{"hook": "on_retain", "error": type(failure).__name__}] * 3
    assert "canary" not in repr(lines)
    assert [line["event"] for line in lines].count("astrocyte.policy.hook_failed") == 3


async def test_a_hanging_handler_delays_nothing_and_what_is_lost_is_told_of(
    ear: Ear, told: list[tuple[str, dict[str, Any]]]
) -> None:
    settings = {"vector_store": "in_memory", "hooks": {"queue_size": 2}}
    async with Astrocyte.from_config_dict(settings) as brain:
        free = threading.Event()
        begun = threading.Event()

        def hang(event: HookEvent) -> None:
            begun.set()
            free.wait(SECONDS)
            ear(event)

        brain.on("on_retain", hang)
        await brain.retain("the first boat", bank_id="family")
        assert begun.wait(SECONDS)
        for number in range(6):
            # The loop goes on: a handler that held it would hang here for good.
            await brain.retain(f"boat {number} of six", bank_id="family")
        assert [fields["amount"] for event, fields in told if event == "hook_events_lost"] == [1]
        free.set()
        assert len([ear.next() for _ in range(3)]) == 3
    assert ear.heard.empty()
    assert sum(int(fields["amount"]) for event, fields in told if event == "hook_events_lost") == 4


async def test_an_async_handler_is_given_up_in_time(told: list[tuple[str, dict[str, Any]]], ear: Ear) -> None:
    async def hang(_: HookEvent) -> None:
        await asyncio.Event().wait()

    settings = {"vector_store": "in_memory", "hooks": {"timeout_seconds": 0.01}}
    async with Astrocyte.from_config_dict(settings) as brain:
        brain.on("on_retain", hang)
        brain.on("on_retain", ear)
        await brain.retain("Mara plays the oboe.", bank_id="family")
        ear.next()
    assert ("hook_failed", {"hook": "on_retain", "error": "TimeoutError"}) in told


async def test_what_waits_is_heard_before_the_end(ear: Ear) -> None:
    brain = Astrocyte.from_config_dict({"vector_store": "in_memory"})
    brain.on("on_retain", ear)
    for number in range(20):
        await brain.retain(f"boat {number} of twenty", bank_id="family")
    await brain.close()
    assert ear.heard.qsize() == 20
    assert not [thread for thread in threading.enumerate() if thread.name == "astrocyte-hooks"]


async def test_a_handler_that_hangs_does_not_keep_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hooks, "CLOSE_SECONDS", 0.01)
    free = threading.Event()
    held = Hooks(HookSettings(queue_size=1))
    held.on("on_retain", lambda _: free.wait(SECONDS))
    for _ in range(3):
        held.fire(HookKind.RETAIN, None, None, {})
    began = time.monotonic()
    held.close()
    assert time.monotonic() - began < SECONDS / 2
    free.set()
    with pytest.raises(ValidationError):
        held.on("on_retain", print)


async def test_a_hook_ends_when_it_is_told_to(brain: Astrocyte, ear: Ear) -> None:
    last = Ear()
    end = brain.on("on_retain", ear)
    brain.on("on_retain", last)
    await brain.retain("Mara plays the oboe.", bank_id="family")
    last.next()
    end()
    await brain.retain("Ivo paints boats.", bank_id="family")
    last.next()
    assert ear.heard.qsize() == 1


@pytest.mark.parametrize(
    ("event", "handler", "field"),
    [("on_retian", print, "event"), ("retain", print, "event"), (3, print, "event"), ("on_retain", "print", "handler")],
)
async def test_what_cannot_be_registered_is_refused(brain: Astrocyte, event: Any, handler: Any, field: str) -> None:
    with pytest.raises(ValidationError) as refused:
        brain.on(event, handler)
    assert refused.value.field == field


async def test_over_the_wire_calls_are_heard_and_policies_refused(ear: Ear) -> None:
    async with serving() as served:
        brain = connect(served.address)
        brain.on("on_retain", ear)
        kept = await brain.retain("Mara plays the oboe.", bank_id="family")
        assert ear.next().data["memory_id"] == kept.memory_id
        for kind in POLICY_KINDS:
            with pytest.raises(CapabilityNotSupported, match="entry point of the group"):
                brain.on(kind, ear)
        await brain.close()


def point(monkeypatch: pytest.MonkeyPatch, load: Callable[[], Any]) -> None:
    """An installed entry point ``ear``."""

    class Point:
        name = "ear"
        value = "ears:register"

        def load(self) -> Any:
            return load()

    def found(*, group: str) -> list[Any]:
        return [Point()] if group == "astrocyte.hooks" else list(importlib.metadata.entry_points(group=group))

    monkeypatch.setattr(hooks, "entry_points", found)


async def test_entry_points_that_the_settings_name_register_themselves(
    monkeypatch: pytest.MonkeyPatch, ear: Ear
) -> None:
    point(monkeypatch, lambda: lambda on: (on("on_retain", ear), on("on_pii_detected", ear)))
    async with serving(hooks={"enabled": ["ear"]}, observability={"prometheus_enabled": True}) as served:
        await served.backend.call(Caller(), Retain("family", _item("Write to mara@example.org.")))
        assert {ear.next().type, ear.next().type} == {"on_retain", "on_pii_detected"}
        metrics = served.app.telemetry.metrics
        assert metrics
        events.emit("hook_failed", hook="on_retain", error="ValueError")
        events.emit("hook_events_lost", hook="on_retain", amount=3)
        for outcome, count in (("failed", 1), ("lost", 3)):
            labels = {"hook": "on_retain", "outcome": outcome}
            assert metrics.registry.get_sample_value("astrocyte_hook_failures_total", labels) == count


async def test_installed_but_not_named_they_are_not_called(monkeypatch: pytest.MonkeyPatch) -> None:
    point(monkeypatch, lambda: pytest.fail("it was loaded"))
    app = App(Settings.from_mapping({"vector_store": "in_memory"}))
    assert app.backend is app.gate
    await app.close()


def _broken() -> Any:
    raise ImportError("no module named ears")


def _register_wrongly() -> Any:
    return lambda on: on("on_nothing", print)


@pytest.mark.parametrize(
    ("name", "load", "message"),
    [
        ("nose", _broken, "there is no hook 'nose'; expected one of ear"),
        ("ear", _broken, r"'ear' \(ears:register\) cannot be used: no module"),
        ("ear", _register_wrongly, "there is no event 'on_nothing'"),
    ],
)
def test_a_hook_that_cannot_be_used_is_a_wrong_setting(
    monkeypatch: pytest.MonkeyPatch, name: str, load: Callable[[], Any], message: str
) -> None:
    point(monkeypatch, load)
    with pytest.raises(ConfigError, match=message):
        App(Settings.from_mapping({"vector_store": "in_memory", "hooks": {"enabled": [name]}}))


def _item(content: str) -> Any:
    from astrocyte.model import RetainItem

    return RetainItem(content)
