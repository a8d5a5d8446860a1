"""The test package with a step of each kind is installed for every test here."""

import sys
from pathlib import Path

import pytest

from doubles import third_party


@pytest.fixture(autouse=True)
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    third_party.install(tmp_path / "site", monkeypatch)
    # Each importlib mode of pytest has its own module; the entry points shall find this one.
    monkeypatch.setitem(sys.modules, "third_party", third_party)
    third_party.LAST.clear()
