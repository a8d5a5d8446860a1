"""The clients: versions, dependencies and lock files; their own tests are `make clients`."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CLIENTS = ROOT / "clients"
SERVER = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PYTHON = tomllib.loads((CLIENTS / "python/pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_versions_agree() -> None:
    pom = (CLIENTS / "java/pom.xml").read_text(encoding="utf-8")
    versions = {
        "python": PYTHON["version"],
        "java": re.findall(r"<version>([^<]+)</version>", pom)[0],
        "typescript": json.loads((CLIENTS / "typescript/package.json").read_text(encoding="utf-8"))["version"],
        "rust": tomllib.loads((CLIENTS / "rust/Cargo.toml").read_text(encoding="utf-8"))["package"]["version"],
    }
    assert set(versions.values()) == {SERVER["version"]}, versions


def test_each_client_has_the_license_beside_its_manifest() -> None:
    text = (ROOT / "LICENSE").read_text(encoding="utf-8")
    for name in ("go", "java", "python", "rust", "typescript"):
        assert (CLIENTS / name / "LICENSE").read_text(encoding="utf-8") == text, name
    # Go, npm and hatchling put it into packages without being told to.
    package = tomllib.loads((CLIENTS / "rust/Cargo.toml").read_text(encoding="utf-8"))["package"]
    assert "LICENSE" in package["include"]
    assert "<include>LICENSE</include>" in (CLIENTS / "java/pom.xml").read_text(encoding="utf-8")


def test_the_python_client_takes_the_libraries_of_the_generated_code() -> None:
    assert set(PYTHON["dependencies"]) <= set(SERVER["dependencies"])


def test_the_python_client_needs_nothing_of_the_server() -> None:
    found = set()
    for path in (CLIENTS / "python/src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                found |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                found.add(node.module.split(".")[0])
    assert found - set(sys.stdlib_module_names) == {"astrocyte_client", "google", "grpc"}


def test_client_and_server_can_be_imported_together() -> None:
    program = (
        "import sys; sys.path[:0] = sys.argv[1:]; "
        "from astrocyte.v1 import memory_pb2 as ours; from astrocyte_client.v1 import memory_pb2 as theirs; "
        "theirs.RecallRequest.FromString(ours.RecallRequest(query='q').SerializeToString())"
    )
    command = [sys.executable, "-c", program, str(ROOT / "python"), str(CLIENTS / "python/src")]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_lock_of_packages_names_no_host() -> None:
    lock = json.loads((CLIENTS / "typescript/package-lock.json").read_text(encoding="utf-8"))
    packages = {name: package for name, package in lock["packages"].items() if name}
    assert len(packages) > 10
    assert [name for name, package in packages.items() if "resolved" in package] == []
    assert [name for name, package in packages.items() if "integrity" not in package] == []


def test_the_conformance_test_makes_every_call() -> None:
    protocol = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "proto/astrocyte/v1").glob("*.proto"))
    steps = "".join(path.read_text(encoding="utf-8") for path in (CLIENTS / "conformance/steps").glob("*.py"))
    calls = set(re.findall(r"^  rpc (\w+)\(", protocol, re.MULTILINE))
    assert len(calls) > 90
    assert calls == set(re.findall(r"\bstep\(\s*\"(\w+)\"", steps))


def test_each_client_has_the_same_errors() -> None:
    errors = (ROOT / "proto/astrocyte/v1/errors.proto").read_text(encoding="utf-8")
    reasons = [reason for reason in re.findall(r"ERROR_REASON_(\w+) =", errors) if reason != "UNSPECIFIED"]
    sources = {
        "python/src/astrocyte_client/reasons.py": "class {}Error(",
        "go/reasons.go": "Err{} ",
        "java/src/main/java/dev/astrocyte/client/Reasons.java": "new {}Exception(",
        "typescript/src/reasons.ts": "class {}Error ",
        "rust/src/reason.rs": "Self::{} =>",
    }
    for name, form in sources.items():
        text = (CLIENTS / name).read_text(encoding="utf-8")
        names = ["".join(part.capitalize() for part in reason.split("_")) for reason in reasons]
        assert [found for found in names if form.format(found) not in text] == [], name
