"""Fixtures of every test."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest
import structlog

from astrocyte.api.reasons import reasons_of
from astrocyte.errors import AstrocyteError
from astrocyte.services import interceptors
from astrocyte.services.transport import Context
from harness.calls import ROWS
from harness.distribution import group

# Programs that run as another user are started by a fork, in whose child the threads of gRPC would start again and
# crash it. Read when gRPC begins.
os.environ["GRPC_ENABLE_FORK_SUPPORT"] = "0"


# Of a plugin that the guards do without.
@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """With `--dist loadfile`, the tests of a server that takes long to start stay together too."""
    if config.getvalue("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling  # type: ignore[import-untyped]

    scheduling = LoadFileScheduling(config, log)
    scheduling._split_scope = group
    return scheduling


@pytest.fixture(autouse=True)
def _logs_as_at_the_start() -> Iterator[None]:
    """A command that ran in this process has set the logs up for itself; the next test sees them as they were."""
    yield
    structlog.reset_defaults()


@pytest.fixture(autouse=True)
def _errors_are_documented(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Each error that a server in this process sends has a reason that docs/errors.md lists for its call."""
    undocumented: set[tuple[str, str]] = set()
    fail = interceptors._fail

    async def recording(error: Exception, method: str, request_id: str, context: Context) -> None:
        rpc = ROWS.get(method.rpartition(".")[2])
        reason = error.reason if isinstance(error, AstrocyteError) else AstrocyteError.reason
        if rpc is not None and reason not in reasons_of(rpc):
            undocumented.add((rpc.name, reason))
        await fail(error, method, request_id, context)

    monkeypatch.setattr(interceptors, "_fail", recording)
    yield
    assert undocumented == set(), "add a rule to astrocyte/api/reasons.py, then run make reference"
