"""The programs of README.md run against a real server at $ASTROCYTE_ADDRESS."""

from __future__ import annotations

import os
import re
import runpy
from pathlib import Path

import pytest

ADDRESS = os.environ.get("ASTROCYTE_ADDRESS", "")
README = (Path(__file__).resolve().parents[1] / "README.md").read_text(encoding="utf-8")
PROGRAMS = re.findall(r"^```python\n(.*?)^```", README, re.DOTALL | re.MULTILINE)


@pytest.mark.skipif(not ADDRESS, reason="ASTROCYTE_ADDRESS is not set: there is no server")
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_runs(program: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "program.py"
    file.write_text(program.replace("localhost:50051", ADDRESS), encoding="utf-8")
    runpy.run_path(str(file), run_name="__main__")
    assert capsys.readouterr().out
