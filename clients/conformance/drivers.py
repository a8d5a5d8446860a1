"""Programs that make calls by the client of a language, one call for each line of JSON."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

CLIENTS = Path(__file__).resolve().parents[1]
# What a client says about a call: its responses, or its error.
Outcome = dict[str, Any]
# Rust builds here unless the caller says otherwise.
RUST_TARGET = os.environ.get("CARGO_TARGET_DIR", str(CLIENTS / "rust/target"))

# How each driver is built; the builds themselves skip what is done.
BUILDS: Mapping[str, tuple[str, ...]] = {
    "go": ("go", "build", "-o", "../.tools/conformance-go", "./internal/conformance"),
    "java": (
        "mvn",
        "--batch-mode",
        "--quiet",
        "test-compile",
        "dependency:build-classpath",
        "-Dmdep.outputFile=target/classpath",
    ),
    "typescript": ("npm", "run", "--silent", "build"),
    "rust": ("cargo", "build", "--quiet", "--locked", "--package", "astrocyte-client-conformance"),
}


def _command(driver: str) -> list[str]:
    if driver.startswith("python"):
        program = [sys.executable, "tests/conformance_driver.py"]
        return [*program, "--asyncio"] if driver == "python-asyncio" else program
    if driver == "java":
        classpath = (CLIENTS / "java/target/classpath").read_text(encoding="utf-8").strip()
        classes = f"target/test-classes:target/classes:{classpath}"
        return ["java", "-XX:TieredStopAtLevel=1", "-cp", classes, "dev.astrocyte.client.ConformanceDriver"]
    return {
        "go": [str(CLIENTS / ".tools/conformance-go")],
        "typescript": ["node", "dist/test/conformance_driver.js"],
        "rust": [f"{RUST_TARGET}/debug/astrocyte-client-conformance"],
    }[driver]


# One for each client; Python has two.
DRIVERS = ("python", "python-asyncio", "go", "java", "typescript", "rust")


def build(driver: str) -> None:
    """Build a driver, if it has to be built."""
    if driver in BUILDS:
        subprocess.run(BUILDS[driver], cwd=CLIENTS / driver, check=True)


class Driver:
    """A running driver.

    Args:
        name: One of `DRIVERS`.
    """

    def __init__(self, name: str) -> None:
        environment = {**os.environ, "PYTHONPATH": str(CLIENTS / "python/src")}
        self._process = subprocess.Popen(
            _command(name),
            cwd=CLIENTS / name.partition("-")[0],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def call(self, step: Mapping[str, Any]) -> Outcome:
        """Make the call of a step.

        Raises:
            RuntimeError: The driver ended.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(step) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the driver ended with {self._process.wait()}")
        outcome: Outcome = json.loads(line)
        return outcome

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
