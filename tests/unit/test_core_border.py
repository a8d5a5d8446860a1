"""Guards over the sources of the border: what a reader would have to check by eye."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from astrocyte import _core, core  # noqa: TID251 (the guard compares both)

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "rust_core"
BORDER = sorted((SOURCES / "python").rglob("*.rs"))
STUB = ROOT / "python" / "astrocyte" / "_core.pyi"
# Functions that Python calls and that do no work: they hand over what a frozen object holds.
PLAIN = {"build_info", "init"}


def test_every_class_is_frozen_and_names_its_module() -> None:
    declared = [line for path in BORDER for line in path.read_text().splitlines() if "#[pyclass" in line]
    assert len(declared) == 13
    assert set(declared) == {'#[pyclass(frozen, module = "astrocyte._core")]'}


def test_only_the_border_knows_python() -> None:
    others = [path for path in SOURCES.rglob("*.rs") if path not in BORDER]
    assert others
    assert [path for path in others if re.search(r"\bpyo3\b|\bPython<", path.read_text())] == []


@pytest.mark.parametrize("path", BORDER, ids=lambda path: path.name)
def test_what_takes_the_interpreter_runs_behind_the_guard(path: Path) -> None:
    functions = re.split(r"\n(?=    #\[|#\[|    fn |fn |pub\(super\) fn )", path.read_text())
    bare = [
        match[1]
        for text in functions
        if (match := re.search(r"fn (\w+)[^{]*py: Python", text)) and "detached(" not in text
    ]
    # These only turn what is there into Python objects, or Python's objects into bytes.
    assert set(bare) <= {
        *PLAIN,
        "new",
        "memory_id",
        "shares",
        "content_hash",
        "hits",
        "detached",
        "arm_candidates",
        "arm_millis",
        "by_arm",
        "encode",
        "encode_batch",
        "encode_hits",
        "response",
        "fates",
        "twin",
        "take",
        "metadata",
        "read",
    }


def test_the_stub_the_extension_and_the_door_hold_the_same_names() -> None:
    names = next(
        ast.literal_eval(node.value)
        for node in ast.parse(STUB.read_text()).body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
    )
    assert names == _core.__all__
    assert set(names) <= set(core.__all__)
