"""Check the clients: generated files, linters, tests, the conformance test, and the commands of README.md.

    python clients/check.py                 all languages
    python clients/check.py go rust         only these
    python clients/check.py --only readme   only this part: generated, lint, tests, conformance or readme

Needs the development environment of the repository and the toolchains of the languages; run by `make clients`.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from pathlib import Path

CLIENTS = Path(__file__).resolve().parent
ROOT = CLIENTS.parent
sys.path.insert(0, str(ROOT / "tests"))

from harness.processes import running_server  # noqa: E402 - of the tests of the repository

LANGUAGES = ("python", "go", "java", "typescript", "rust")
# Tests of each client, against the server at $ASTROCYTE_ADDRESS where they need one.
TESTS: Mapping[str, tuple[str, ...]] = {
    "python": (sys.executable, "-m", "pytest", "--quiet", "--import-mode=importlib", "clients/python/tests"),
    "go": ("go", "-C", "clients/go", "test", "-count=1", "./..."),
    "java": ("mvn", "--batch-mode", "--quiet", "-f", "clients/java", "test"),
    "typescript": ("npm", "--prefix", "clients/typescript", "test", "--silent"),
    "rust": (
        "cargo",
        "test",
        "--quiet",
        "--locked",
        "--manifest-path",
        "clients/rust/Cargo.toml",
        "--",
        "--include-ignored",
    ),
}
HEADINGS = {"python": "Python", "go": "Go", "java": "Java", "typescript": "TypeScript", "rust": "Rust"}
# The commands that each language begins with: the environment exists when this runs, and the server is started below.
SERVER = ["make setup", ".venv/bin/astrocyte serve &"]
MOST_COMMANDS = 5
# Languages that are tested, or tried as README.md says, at the same time.
AT_ONCE = 2
# What the examples recall first.
ANSWER = "Mara is allergic to sesame, not to nuts."


def environment(**more: str) -> dict[str, str]:
    """The environment of the programs that are run."""
    paths = os.pathsep.join(str(path) for path in (CLIENTS, CLIENTS / "python/src", ROOT / "python", ROOT / "tests"))
    return {**os.environ, "PYTHONPATH": paths, **more}


def run(*command: str, **more: str) -> None:
    """Run a command in the repository.

    Raises:
        subprocess.CalledProcessError: It failed.
    """
    subprocess.run(command, cwd=ROOT, check=True, env=environment(**more))


def together(check: Callable[[str], None], languages: list[str]) -> None:
    """Check several languages at a time: most wait for a compiler or a registry that uses one processor.

    Raises:
        subprocess.CalledProcessError: One failed; it waits for those that were begun.
    """
    with ThreadPoolExecutor(AT_ONCE) as threads:
        checks = [threads.submit(check, language) for language in languages]
        try:
            for one in as_completed(checks):
                one.result()
        except BaseException:
            threads.shutdown(cancel_futures=True)
            raise


def generated(languages: list[str]) -> None:
    """Compare the generated files with the protocol."""
    run(sys.executable, "clients/generate.py", "--check", *languages)


def lint(languages: list[str]) -> None:
    """Run the linters of Go and Rust; those of Python are the repository's, and compilers check Java and TypeScript."""
    if "go" in languages:
        run("go", "-C", "clients/go", "vet", "./...")
        loose = subprocess.run(["gofmt", "-l", "."], cwd=CLIENTS / "go", check=True, capture_output=True, text=True)
        if loose.stdout:
            sys.exit(f"not formatted, run gofmt -w: {loose.stdout.split()}")
    if "rust" in languages:
        manifest = ("--manifest-path", "clients/rust/Cargo.toml")
        run("cargo", "fmt", *manifest, "--all", "--check")
        run("cargo", "clippy", "--quiet", "--locked", *manifest, "--workspace", "--all-targets", "--", "-D", "warnings")


def tests(languages: list[str]) -> None:
    """Run the tests of each client against a server."""
    if "typescript" in languages:
        run("npm", "--prefix", "clients/typescript", "ci", "--no-audit", "--no-fund", "--silent")
    together(tests_of, languages)


def tests_of(language: str) -> None:
    """Run the tests of one client, and print their output in one piece."""
    with server() as address, step(f"tests of {language}"):
        command, variables = TESTS[language], environment(ASTROCYTE_ADDRESS=address)
        done = subprocess.run(
            command, cwd=ROOT, check=False, env=variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        sys.stdout.write(done.stdout.decode(errors="replace"))
        sys.stdout.flush()
        done.check_returncode()


def conformance(languages: list[str]) -> None:
    """Take the same steps with every client."""
    drivers = [*languages, *(["python-asyncio"] if "python" in languages else [])]
    run(sys.executable, "-m", "conformance.run", *drivers)


def readme(languages: list[str]) -> None:
    """Run the commands of README.md for a first recall."""
    together(readme_of, languages)


def readme_of(language: str) -> None:
    """Run the commands for one language."""
    text = (CLIENTS / "README.md").read_text(encoding="utf-8")
    found = re.search(rf"^### {HEADINGS[language]}\n.*?^```sh\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    commands = found[1].splitlines() if found else []
    if commands[: len(SERVER)] != SERVER or len(commands) > MOST_COMMANDS:
        sys.exit(f"README.md, {language}: expected {SERVER} and at most {MOST_COMMANDS} commands, got {commands}")
    script = "\n".join(commands[len(SERVER) :])
    with server() as address, step(f"first recall in {language}"):
        shell = ["bash", "-euo", "pipefail", "-c", script]
        # Without the packages of the repository, as a user has none.
        plain = {**os.environ, "ASTROCYTE_ADDRESS": address}
        plain.pop("PYTHONPATH", None)
        done = subprocess.run(shell, cwd=ROOT, check=True, env=plain, stdout=subprocess.PIPE, text=True)
        scores = [line for line in done.stdout.splitlines() if re.match(r"-?\d+\.\d\d  ", line)]
        if not scores or not scores[0].endswith(ANSWER):
            sys.exit(f"README.md, {language}: expected {ANSWER!r} first, got {done.stdout!r}")


@contextmanager
def server() -> Iterator[str]:
    """Address of a server of its own."""
    with tempfile.TemporaryDirectory() as folder, running_server(Path(folder)) as address:
        yield address


@contextmanager
def step(title: str) -> Iterator[None]:
    """Print how long a step takes."""
    began = time.monotonic()
    yield
    print(f"-- {title}: passed in {time.monotonic() - began:.0f} s", flush=True)


PARTS: dict[str, Callable[[list[str]], None]] = {
    "generated": generated,
    "lint": lint,
    "tests": tests,
    "conformance": conformance,
    "readme": readme,
}


def main() -> None:
    """Run from the command line; ends with 1 at the first failure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("language", nargs="*", help=f"one of {', '.join(LANGUAGES)}; default: all")
    parser.add_argument("--only", choices=list(PARTS), help="run only this part")
    arguments = parser.parse_args()
    unknown = sorted(set(arguments.language) - set(LANGUAGES))
    if unknown:
        parser.error(f"unknown language {', '.join(unknown)}; expected {', '.join(LANGUAGES)}")
    # The server process is started with the paths of this one.
    os.environ.setdefault("PYTHONPATH", str(ROOT / "python"))
    for name in [arguments.only] if arguments.only else PARTS:
        with step(f"{name} of {', '.join(arguments.language or LANGUAGES)}"):
            try:
                PARTS[name](list(arguments.language or LANGUAGES))
            except subprocess.CalledProcessError as error:
                sys.exit(f"failed ({error.returncode}): {' '.join(map(str, error.cmd))}")


if __name__ == "__main__":
    main()
