"""Generate the committed parts of the clients from proto/.

    python clients/generate.py                     write the files of all languages
    python clients/generate.py --check             fail, and name the files, if they are out of date
    python clients/generate.py python go           only these languages

Needs the development environment of the repository (`make setup`), and for Go, TypeScript and Rust their toolchains;
the plugins of protoc are installed from the package registries, at pinned versions. Java generates messages in its own
build.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from generation import go, java, python, rust, service_config, typescript
from generation.protocol import Protocol

CLIENTS = Path(__file__).resolve().parent
LANGUAGES: dict[str, Callable[[Protocol, Path], None]] = {
    "python": python.generate,
    "go": go.generate,
    "java": java.generate,
    "typescript": typescript.generate,
    "rust": rust.generate,
}
# Folders with generated files only, in which a file that is left over is found.
WHOLE_FOLDERS = (
    "python/src/astrocyte_client/v1",
    "go/astrocytev1",
    "typescript/src/generated",
    "rust/src/generated",
)


def differences(expected: Path, languages: list[str]) -> list[str]:
    """Paths below `clients/` of files that are missing, left over or different, sorted."""
    wanted = {file.relative_to(expected).as_posix() for file in expected.rglob("*") if file.is_file()}
    wanted = {name for name in wanted if name.split("/")[0] in LANGUAGES}
    found = {
        file.relative_to(CLIENTS).as_posix()
        for folder in WHOLE_FOLDERS
        if folder.split("/")[0] in languages
        for file in (CLIENTS / folder).rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    }
    return sorted(name for name in wanted | found if _content(expected / name) != _content(CLIENTS / name))


def _content(file: Path) -> bytes | None:
    return file.read_bytes() if file.exists() else None


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    parser.add_argument("language", nargs="*", help=f"one of {', '.join(LANGUAGES)}; default: all")
    arguments = parser.parse_args()
    unknown = sorted(set(arguments.language) - set(LANGUAGES))
    if unknown:
        parser.error(f"unknown language {', '.join(unknown)}; expected {', '.join(LANGUAGES)}")
    languages = arguments.language or list(LANGUAGES)
    protocol = Protocol()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for language in languages:
            try:
                LANGUAGES[language](protocol, folder)
            except FileNotFoundError as error:
                sys.exit(
                    f"{language}: {error.filename} is not installed, and its generator needs it; see clients/README.md"
                )
            service_config.copy(CLIENTS, folder, language)
        stale = differences(folder, languages)
        if arguments.check:
            sys.exit(f"out of date, run python clients/generate.py: {', '.join(stale)}" if stale else 0)
        for path in stale:
            source, target = folder / path, CLIENTS / path
            if source.exists():
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(source.read_bytes())
            else:
                target.unlink()
            print(path)


if __name__ == "__main__":
    main()
