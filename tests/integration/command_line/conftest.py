"""A command on a directory and on a server."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog

from harness.commands import Command, command
from harness.processes import running_server


@pytest.fixture(autouse=True)
def _logs_as_before() -> Iterator[None]:
    """A command says where this process logs to; the next test must not inherit it."""
    yield
    structlog.reset_defaults()


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with running_server(tmp_path_factory.mktemp("server")) as address:
        yield address


@pytest.fixture(params=["directory", "server"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> list[str]:
    if request.param == "server":
        return ["--server", request.getfixturevalue("address")]
    return ["--data-dir", str(tmp_path / "data")]


@pytest.fixture
def astrocyte(place: list[str]) -> Command:
    """A command, in process and over the wire."""
    return command(place)


@pytest.fixture
def bank(request: pytest.FixtureRequest) -> str:
    """A bank of the test's own, for the server outlives it."""
    return re.sub(r"\W", "-", request.node.name)
