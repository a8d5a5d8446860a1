"""A working directory for each test: the command opens `astrocyte-data` in it unless it is told another one."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def working_directory(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Tests of other processes have the same one otherwise."""
    folder = tmp_path_factory.mktemp("working")
    monkeypatch.chdir(folder)
    return folder
