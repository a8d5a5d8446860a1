"""The protocol keeps its own rules: generated code, lint, annotations, and the fields that twins share."""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
from importlib import import_module, resources
from pathlib import Path

import grpc_tools
import pytest
from google.api import annotations_pb2
from google.protobuf.descriptor import Descriptor

from astrocyte.v1 import memory_pb2
from harness.calls import METHODS

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("program", [["generate.py", "--check"], ["lint.py"]])
def test_the_committed_code_and_the_rules(program: list[str]) -> None:
    command = [sys.executable, str(ROOT / "proto" / program[0]), *program[1:]]
    finished = subprocess.run(command, check=False, capture_output=True, text=True)
    assert finished.returncode == 0, finished.stdout + finished.stderr


@pytest.mark.parametrize("method", METHODS.values(), ids=lambda method: method.name)
def test_every_rpc_has_a_path_of_its_own(method: object) -> None:
    rules = {
        other.name: (rule.WhichOneof("pattern"), getattr(rule, rule.WhichOneof("pattern")))
        for other in METHODS.values()
        for rule in [other.GetOptions().Extensions[annotations_pb2.http]]
    }
    verb, path = rules[method.name]  # type: ignore[attr-defined]
    assert path.startswith("/v1/")
    assert list(rules.values()).count((verb, path)) == 1


def shape(message: Descriptor) -> dict[str, tuple[int, str | None, bool]]:
    return {
        field.name: (field.type, field.message_type.name if field.message_type else None, field.is_repeated)
        for field in message.fields
    }


def test_an_item_has_the_fields_of_the_request_that_holds_one() -> None:
    request = shape(memory_pb2.RetainRequest.DESCRIPTOR)
    for own in ("bank_id", "request_id", "validate_only"):
        del request[own]
    assert shape(memory_pb2.RetainItem.DESCRIPTOR) == request


def test_history_asks_with_fields_of_recall() -> None:
    recall = shape(memory_pb2.RecallRequest.DESCRIPTOR)
    history = shape(memory_pb2.HistoryRequest.DESCRIPTOR)
    assert history == {name: recall[name] for name in history}


MODULES = sorted(path.stem for path in (ROOT / "proto/astrocyte/v1").glob("*.proto"))


@pytest.mark.parametrize("module", [import_module(f"astrocyte.v1.{name}_pb2") for name in MODULES], ids=MODULES)
def test_each_language_has_a_namespace(module: object) -> None:
    options = module.DESCRIPTOR.GetOptions()  # type: ignore[attr-defined]
    assert options.java_multiple_files
    # An outer class with the name of a message would hide it.
    assert options.java_outer_classname.endswith("Proto")
    assert (options.go_package, options.java_package, options.csharp_namespace) == (
        "astrocyte.dev/go/astrocytev1",
        "dev.astrocyte.v1",
        "Astrocyte.V1",
    )
    assert (options.php_namespace, options.ruby_package, options.swift_prefix) == (
        "Astrocyte\\V1",
        "Astrocyte::V1",
        "Astrocyte",
    )


def test_the_checkout_compiles_without_python(tmp_path: Path) -> None:
    """With proto/ as the only folder beside the well-known types, which every protoc has."""
    names = sorted(str(path.relative_to(ROOT / "proto")) for path in (ROOT / "proto/astrocyte").rglob("*.proto"))
    well_known = Path(grpc_tools.__file__).parent / "_proto"
    isolated = shutil.copytree(ROOT / "proto", tmp_path / "proto", ignore=shutil.ignore_patterns("*.py", "__pycache__"))
    compiler = (
        "import sys; from grpc_tools import _protoc_compiler as c; sys.exit(c.run_main([a.encode() for a in sys.argv]))"
    )
    command = [
        sys.executable,
        "-c",
        compiler,
        f"-I{isolated}",
        f"-I{well_known}",
        f"--descriptor_set_out={tmp_path}/all",
        *names,
    ]
    done = subprocess.run(command, check=False, capture_output=True)
    assert done.returncode == 0, done.stderr
    assert (isolated / "google/LICENSE").is_file()


def test_googles_files_are_those_of_the_package() -> None:
    installed = Path(sysconfig.get_paths()["purelib"])
    for path in (ROOT / "proto/google").rglob("*.proto"):
        assert path.read_bytes() == (installed / path.relative_to(ROOT / "proto")).read_bytes(), path


def test_the_package_has_the_protocol_files(tmp_path: Path) -> None:
    """With the folder of installed packages as include path, as docs/api.md says."""
    packaged = resources.files("astrocyte.v1")
    names = sorted(path.name for path in (ROOT / "proto/astrocyte/v1").glob("*.proto"))
    assert len(names) > 3
    include = tmp_path / "site-packages"
    shutil.copytree(Path(sysconfig.get_paths()["purelib"]) / "google", include / "google")
    (include / "astrocyte/v1").mkdir(parents=True)
    for name in names:
        content = (packaged / name).read_bytes()
        assert content == (ROOT / "proto/astrocyte/v1" / name).read_bytes()
        (include / "astrocyte/v1" / name).write_bytes(content)
    command = [sys.executable, "-m", "grpc_tools.protoc", f"-I{include}", f"--python_out={tmp_path}"]
    done = subprocess.run([*command, *(f"astrocyte/v1/{name}" for name in names)], check=False, capture_output=True)
    assert done.returncode == 0, done.stderr
