"""The calls of a language model that consolidates: its budget and its failures."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from astrocyte.api.requests import (
    CancelOperation,
    ConsolidateBank,
    GetOperation,
    WaitOperation,
)
from astrocyte.errors import DeadlineExceeded, ProviderUnavailable
from astrocyte.model import (
    OperationState,
)
from astrocyte.pipelines.knowledge.model_writer import ModelWriter
from astrocyte.pipelines.text.model_calls import MOST_ATTEMPTS
from astrocyte.providers.messages import Completion
from doubles.model_consolidations import BANK, ME, Opened, kept, observed, spent, until, until_observed
from doubles.observing_models import TOKENS, Observer


async def test_the_budget_of_a_day_is_kept_over_restarts_and_for_each_bank(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = Observer()
    app = opened(model, calls_per_day=2, enabled=True)
    for number in range(4):
        await kept(app, f"I came round to thing{number}.")
    await until(lambda: len(model.asked) == 2)
    await kept(app, "I came round to tea.", bank="other")
    await until(lambda: spent(app) == [(2, 200), (1, 100)])
    await app.close()
    app = opened(model, calls_per_day=2, enabled=True)
    started = await app.gate.call(ME, ConsolidateBank(BANK))
    await asyncio.sleep(0.3)
    operation = await app.gate.call(ME, GetOperation(BANK, started.operation_id))
    assert (len(model.asked), operation.done) == (3, False)
    ended = await app.gate.call(ME, CancelOperation(BANK, started.operation_id))
    assert ended.state is OperationState.CANCELLED
    await app.close()
    # The next day.
    app = opened(model, calls_per_day=2, enabled=True)
    (writer,) = [part._writer for part in app.pipelines.consolidator._parts if isinstance(part._writer, ModelWriter)]
    clock = app.storage.clock
    monkeypatch.setattr(writer, "_clock", lambda: clock() + 86_400_000)
    await kept(app, "It rains.")
    await until(lambda: len(model.asked) == 5)
    await asyncio.sleep(0.1)
    assert len(model.asked) == 5
    await app.close()


async def test_tokens_are_counted_too(opened: Opened) -> None:
    model = Observer()
    app = opened(model, tokens_per_day=150, enabled=True)
    for number in range(4):
        await kept(app, f"I came round to thing{number}.")
    await until(lambda: spent(app) == [(2, 200)])
    await asyncio.sleep(0.2)
    assert (len(model.asked), len(await observed(app))) == (2, 2)
    await app.close()


def unavailable() -> Completion:
    raise ProviderUnavailable("away")


def late() -> Completion:
    raise DeadlineExceeded("late")


@pytest.mark.parametrize("fault", [unavailable, late, lambda: Completion("nonsense", usage=TOKENS)])
async def test_a_failing_model_is_waited_for_and_loses_nothing(opened: Opened, fault: Callable[[], Completion]) -> None:
    model = Observer()
    model.fault = fault
    app = opened(model)
    await kept(app, "I came round to pottery.")
    started = await app.gate.call(ME, ConsolidateBank(BANK))
    await until(lambda: model.asked)
    assert not (await app.gate.call(ME, GetOperation(BANK, started.operation_id))).done
    model.fault = None
    await app.gate.call(ME, WaitOperation(BANK, started.operation_id, timeout=60.0))
    assert set(await observed(app)) == {"Mara came round to pottery."}
    await app.close()


async def test_an_outage_costs_no_budget_and_gives_no_memory_up(opened: Opened) -> None:
    model = Observer()
    model.fault = unavailable
    app = opened(model, calls_per_day=1, enabled=True)
    await kept(app, "I came round to pottery.")
    await until(lambda: len(model.asked) > MOST_ATTEMPTS)
    model.fault = None
    await until_observed(app, 1)
    assert spent(app) == [(1, TOKENS.total)]
    await app.close()


async def test_a_memory_that_the_model_cannot_read_is_left_to_the_rules(opened: Opened) -> None:
    model = Observer()
    model.fault = lambda: Completion("nonsense", usage=TOKENS)
    app = opened(model, enabled=True)
    await kept(app, "I love tea. I came round to pottery.")
    await until_observed(app, 1)
    assert set(await observed(app)) == {"Mara loves tea."}
    assert (len(model.asked), spent(app)) == (MOST_ATTEMPTS, [(MOST_ATTEMPTS, MOST_ATTEMPTS * TOKENS.total)])
    model.fault = None
    await kept(app, "I came round to chess.")
    await until_observed(app, 2)
    assert len(model.asked) == MOST_ATTEMPTS + 1
    await app.close()
