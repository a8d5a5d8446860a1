"""The wheel ships the package with its data and licences, and nothing else; installed, it has the command.

The wheel is made by maturin from the sources of the package and its configuration, with an empty extension: the real
one takes minutes to compile.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
MANIFEST = 'manifest-path = "rust_core/python/Cargo.toml"'
LICENSES = PROJECT["license-files"]
# An extension without code, and a library without code by whose name and features maturin knows the ABI.
EXTENSION = """[package]
name = "stand-in"
version = "0.0.0"
edition = "2021"
[lib]
name = "_core"
crate-type = ["cdylib"]
[dependencies]
pyo3 = { path = "pyo3", features = ["abi3-py311", "extension-module"] }
[workspace]
"""
LIBRARY = """[package]
name = "pyo3"
version = "0.27.0"
edition = "2021"
[features]
abi3-py311 = []
extension-module = []
"""
INIT = '#[no_mangle]\npub extern "C" fn PyInit__core() {}\n'
# What lies about in checkouts, and must not be shipped.
LITTER = ("__pycache__/memory.cpython-311.pyc", "_core.cpython-311-x86_64-linux-gnu.so", "gateway/__pycache__/x.pyc")
# Every file of the package besides modules and stubs.
DATA = re.compile(
    r"py\.typed|profiles/(extraction/)?\w+\.yaml|stores/(\w+/)*\w*schema/\d+_\w+\.sql|v1/(\w+\.proto|comments\.json)"
    r"|gateway/static/console/\w+\.(js|css|html)|gateway/static/docs/([\w.-]+/)?[\w.-]+"
    r"|models/(static-minilm-256\.(bin|json)|LICENSE|NOTICE)|pipelines/graph/names/data/(\w+\.txt|NOTICE|LICENSE\.faker)"
    r"|pipelines/recall/data/(kind_members\.txt|NOTICE|LICENSE\.wordnet)"
)

pytestmark = pytest.mark.process


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel."""
    tree = tmp_path_factory.mktemp("tree")
    for name in ("README.md", ".gitignore", *LICENSES):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tree / name)
    shutil.copytree(ROOT / "python", tree / "python", dirs_exist_ok=True)
    for name in LITTER:
        (tree / "python/astrocyte" / name).parent.mkdir(exist_ok=True)
        (tree / "python/astrocyte" / name).write_bytes(b"litter")
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert MANIFEST in text
    stand_in = text.replace(MANIFEST, 'manifest-path = "stand_in/Cargo.toml"').replace(
        "locked = true", "locked = false"
    )
    sources = {
        "pyproject.toml": stand_in,
        "stand_in/Cargo.toml": EXTENSION,
        "stand_in/src/lib.rs": INIT,
        "stand_in/pyo3/Cargo.toml": LIBRARY,
        "stand_in/pyo3/src/lib.rs": "",
    }
    for name, source in sources.items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(source, encoding="utf-8")
    # The rules of .gitignore hold in a repository.
    subprocess.run(["git", "init", "--quiet"], cwd=tree, check=True)
    command = [sys.executable, "-m", "maturin", "build", "--offline", "--out", "dist"]
    environment = {**os.environ, "CARGO_TARGET_DIR": str(tree / "target")}
    done = subprocess.run(command, cwd=tree, env=environment, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (made,) = (tree / "dist").glob("*.whl")
    return made


@pytest.fixture(scope="module")
def wheel(built: Path) -> dict[str, bytes]:
    """The files of the wheel by name."""
    with zipfile.ZipFile(built) as archive:
        return {name: archive.read(name) for name in archive.namelist() if not name.endswith("/")}


def below(wheel: dict[str, bytes], folder: str) -> dict[str, bytes]:
    """The files below a folder, by their names in it."""
    return {name.removeprefix(folder): text for name, text in wheel.items() if name.startswith(folder)}


def test_the_protocol_is_shipped(wheel: dict[str, bytes]) -> None:
    sources = {path.name: path.read_bytes() for path in (ROOT / "proto/astrocyte/v1").glob("*.proto")}
    assert sources
    shipped = below(wheel, "astrocyte/v1/")
    assert {name: text for name, text in shipped.items() if name.endswith(".proto")} == sources


def test_the_pages_of_the_gateway_are_shipped(wheel: dict[str, bytes]) -> None:
    static = ROOT / "python/astrocyte/gateway/static"
    sources = {str(path.relative_to(static)): path.read_bytes() for path in static.rglob("*") if path.is_file()}
    assert {"console/index.html", "console/main.js", "docs/index.html"} <= sources.keys()
    assert below(wheel, "astrocyte/gateway/static/") == sources


def test_every_module_is_shipped_with_the_marker_of_types(wheel: dict[str, bytes]) -> None:
    package = ROOT / "python/astrocyte"
    modules = {str(path.relative_to(package)) for kind in ("*.py", "*.pyi") for path in package.rglob(kind)}
    assert {name for name in below(wheel, "astrocyte/") if name.endswith((".py", ".pyi"))} == modules
    assert {"_core.pyi", "py.typed"} <= below(wheel, "astrocyte/").keys()


def test_the_licenses_are_shipped(wheel: dict[str, bytes]) -> None:
    licenses = below(wheel, f"astrocyte_grpc-{PROJECT['version']}.dist-info/licenses/")
    assert licenses == {name: (ROOT / name).read_bytes() for name in LICENSES}
    metadata = below(wheel, f"astrocyte_grpc-{PROJECT['version']}.dist-info/")["METADATA"].decode()
    assert "License-Expression: Apache-2.0\n" in metadata


def test_the_commands_of_the_readme_put_the_program_on_the_path(built: Path, tmp_path: Path) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    found = re.search(r"^## Install\n.*?^```sh\n(.*?)^```", readme, re.DOTALL | re.MULTILINE)
    assert found is not None
    assert found[1].count("pip install . ") == 1
    # The dependencies come from the network, which is not the matter here.
    commands = found[1].replace("pip install . ", f"pip install --quiet --no-index --no-deps '{built}' ")
    program = f"set -e; {commands}command -v astrocyte"
    done = subprocess.run(["bash", "-c", program], cwd=tmp_path, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == str(tmp_path / ".venv/bin/astrocyte")


def test_nothing_else_is_shipped(wheel: dict[str, bytes]) -> None:
    package = below(wheel, "astrocyte/")
    rest = [name for name in package if not name.endswith((".py", ".pyi")) and not DATA.fullmatch(name)]
    assert rest == ["_core.abi3.so"]
    meta = f"astrocyte_grpc-{PROJECT['version']}."
    others = [name for name in wheel if not name.startswith(("astrocyte/", f"{meta}dist-info/"))]
    assert others == []
    rest = [name for name in below(wheel, f"{meta}dist-info/") if not name.startswith("licenses/")]
    assert [name for name in rest if not name.startswith("sboms/")] == [
        "METADATA",
        "WHEEL",
        "entry_points.txt",
        "RECORD",
    ]
