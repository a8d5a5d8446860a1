"""Generate python/astrocyte/v1 from proto/astrocyte/v1, with a copy of each .proto file for users of the wheel.

    python proto/generate.py            write the files
    python proto/generate.py --check    fail, and name the files, when they are not what would be written

The compiler is grpcio-tools; Google's annotation files are in proto/google. The comments of the protocol, which
generated code does not have, go to comments.json, for the OpenAPI document.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc_tools
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from grpc_tools import protoc

ROOT = Path(__file__).resolve().parent
OUTPUT = ROOT.parent / "python"
PACKAGE = Path("astrocyte/v1")
# Where grpcio-tools keeps the well-known types.
INCLUDES = (Path(grpc_tools.__file__).parent / "_proto",)
# The stub generators live beside the interpreter, which need not be on the search path.
BIN = Path(sys.executable).parent
# Generated files; the hand-written __init__.py beside them is left alone.
PATTERNS = ("*_pb2*.py*", "*.proto", "comments.json")
COMMENTS = PACKAGE / "comments.json"


def generate(output: Path) -> None:
    """Write messages and a copy for all files, and stubs for those that declare a service, below ``output``."""
    files = sorted((ROOT / PACKAGE).glob("*.proto"))
    services = [file for file in files if "\nservice " in file.read_text(encoding="utf-8")]
    _run(files, f"--python_out={output}", f"--mypy_out=quiet:{output}")
    # A file without a service would get an empty stub that still checks versions at import.
    _run(services, f"--grpc_python_out={output}", f"--mypy_grpc_out=quiet:{output}")
    for file in files:
        shutil.copyfile(file, output / PACKAGE / file.name)
    with tempfile.TemporaryDirectory() as folder:
        described = Path(folder) / "described"
        _run(files, f"--descriptor_set_out={described}", "--include_source_info")
        found = FileDescriptorSet.FromString(described.read_bytes())
    comments = dict(sorted(pair for file in found.file for pair in _comments(file)))
    (output / COMMENTS).write_text(json.dumps(comments, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _comments(file: FileDescriptorProto) -> Iterator[tuple[str, str]]:
    """Full name and comment of each declaration of a file; paragraphs are kept, lines are joined."""
    for place in file.source_code_info.location:
        if place.leading_comments:
            name = _name(file, list(place.path))
            if name:
                paragraphs = place.leading_comments.strip().split("\n\n")
                yield f"{file.package}.{name}", "\n\n".join(" ".join(one.split()) for one in paragraphs)


def _name(file: FileDescriptorProto, path: list[int]) -> str:
    """The dotted name at a path of field numbers and indexes; "" where no declaration is."""
    names: list[str] = []
    node: Any = file
    for number, index in zip(path[::2], path[1::2], strict=False):
        field = node.DESCRIPTOR.fields_by_number[number]
        if not field.is_repeated:
            # Options, which are no declarations.
            return ""
        node = getattr(node, field.name)[index]
        names.append(getattr(node, "name", ""))
    return ".".join(names) if all(names) else ""


def _run(files: list[Path], *outputs: str) -> None:
    paths = [f"-I{path}" for path in (ROOT, *INCLUDES)]
    plugins = [f"--plugin={BIN / name}" for name in ("protoc-gen-mypy", "protoc-gen-mypy_grpc")]
    names = [file.relative_to(ROOT).as_posix() for file in files]
    if protoc.main(["protoc", *paths, *plugins, *outputs, *names]) != 0:
        sys.exit("protoc failed")


def differences(expected: Path, actual: Path) -> list[str]:
    """Names of generated files that are missing, left over or different, sorted."""
    wanted, found = (
        {file.name: file.read_bytes() for pattern in PATTERNS for file in (folder / PACKAGE).glob(pattern)}
        for folder in (expected, actual)
    )
    return sorted(name for name in wanted.keys() | found.keys() if wanted.get(name) != found.get(name))


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    check = parser.parse_args().check
    with tempfile.TemporaryDirectory() as folder:
        generate(Path(folder))
        stale = differences(Path(folder), OUTPUT)
        if check and stale:
            sys.exit(f"not what proto/ says, run python proto/generate.py: {', '.join(stale)}")
        if check:
            return
        for name in stale:
            source, target = Path(folder) / PACKAGE / name, OUTPUT / PACKAGE / name
            if source.exists():
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(source.read_bytes())
            else:
                target.unlink()


if __name__ == "__main__":
    main()
