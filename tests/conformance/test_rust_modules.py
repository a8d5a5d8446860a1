"""The modules of each Rust crate depend on each other in one direction."""

from __future__ import annotations

import re
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

CRATES = sorted(path.parent for path in (Path(__file__).parents[2] / "rust_core").glob("*/Cargo.toml"))


def module_of(path: Path, sources: Path) -> str:
    return path.relative_to(sources).parts[0].removesuffix(".rs")


def edges_of(sources: Path) -> dict[str, set[str]]:
    """The modules that each top-level module of a crate names, its tests left out."""
    paths = [path for path in sources.rglob("*.rs") if path.name not in {"lib.rs", "tests.rs"}]
    edges: dict[str, set[str]] = {module_of(path, sources): set() for path in paths}
    for path in paths:
        code, *_ = path.read_text(encoding="utf-8").split("#[cfg(test)]\nmod ")
        own = module_of(path, sources)
        plain = re.findall(r"\bcrate::(\w+)", code)
        grouped = [name for group in re.findall(r"\bcrate::\{([^;]*)\};", code) for name in re.findall(r"\w+", group)]
        edges[own] |= {name for name in (*plain, *grouped) if name in edges and name != own}
    return edges


@pytest.mark.parametrize("crate", CRATES, ids=lambda path: path.name)
def test_modules_depend_on_each_other_in_one_direction(crate: Path) -> None:
    try:
        TopologicalSorter(edges_of(crate / "src")).prepare()
    except CycleError as error:
        pytest.fail(f"modules of {crate.name} form a circle: {' -> '.join(reversed(error.args[1]))}")


def test_the_core_has_the_modules_that_are_meant() -> None:
    core = next(path for path in CRATES if path.name == "core")
    edges = edges_of(core / "src")
    assert {"api", "bank", "graph", "index", "recall"} <= edges.keys()
    # The lowest modules know nothing of what is built on them.
    assert edges["api"] == set()
    assert "recall" not in edges["index"] | edges["graph"] | edges["dense"] | edges["lexical"]
