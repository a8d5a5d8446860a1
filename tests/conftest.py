"""What holds for every test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import structlog


@pytest.fixture(autouse=True)
def _logs_as_at_the_start() -> Iterator[None]:
    """A command that ran in this process has set the logs up for itself; the next test sees them as they were."""
    yield
    structlog.reset_defaults()
