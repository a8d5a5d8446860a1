"""Generate python/astrocyte/v1 from proto/astrocyte/v1.

    python proto/generate.py            write the files
    python proto/generate.py --check    fail, and name the files, when they are not what would be written

The compiler is grpcio-tools; Google's annotation files come from the installed package googleapis-common-protos.
"""

from __future__ import annotations

import argparse
import sys
import sysconfig
import tempfile
from pathlib import Path

import grpc_tools
from grpc_tools import protoc

ROOT = Path(__file__).resolve().parent
OUTPUT = ROOT.parent / "python"
PACKAGE = Path("astrocyte/v1")
# Where pip put google/api/annotations.proto, and where grpcio-tools keeps the well-known types.
INCLUDES = (Path(sysconfig.get_paths()["purelib"]), Path(grpc_tools.__file__).parent / "_proto")
# The stub generators live beside the interpreter, which need not be on the search path.
BIN = Path(sys.executable).parent
# What protoc makes; the hand-written __init__.py beside it is left alone.
PATTERN = "*_pb2*.py*"


def generate(output: Path) -> None:
    """Write messages for all files, and stubs for those that declare a service, below ``output``."""
    files = sorted((ROOT / PACKAGE).glob("*.proto"))
    services = [file for file in files if "\nservice " in file.read_text(encoding="utf-8")]
    _run(files, f"--python_out={output}", f"--mypy_out=quiet:{output}")
    # A file without a service would get an empty stub that still checks versions at import.
    _run(services, f"--grpc_python_out={output}", f"--mypy_grpc_out=quiet:{output}")


def _run(files: list[Path], *outputs: str) -> None:
    paths = [f"-I{path}" for path in (ROOT, *INCLUDES)]
    plugins = [f"--plugin={BIN / name}" for name in ("protoc-gen-mypy", "protoc-gen-mypy_grpc")]
    names = [file.relative_to(ROOT).as_posix() for file in files]
    if protoc.main(["protoc", *paths, *plugins, *outputs, *names]) != 0:
        sys.exit("protoc failed")


def differences(expected: Path, actual: Path) -> list[str]:
    """Names of generated files that are missing, left over or different, sorted."""
    wanted = {file.name: file.read_bytes() for file in (expected / PACKAGE).glob(PATTERN)}
    found = {file.name: file.read_bytes() for file in (actual / PACKAGE).glob(PATTERN)}
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
