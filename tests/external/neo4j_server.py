"""A Neo4j server for tests, from the harness of its makers: started at the first use, stopped with the process.

Its packages come from Maven Central. Without Java 17 or Maven the tests are skipped, unless TEST_NEO4J_REQUIRED is set.
"""

from __future__ import annotations

import atexit
import os
import queue
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from threading import Thread

import pytest

PASSWORD = 'a-test\'s "password"'
REQUIRED = "TEST_NEO4J_REQUIRED"
_SOURCES = Path(__file__).parent / "java"
# The first start loads the packages; after that it is the start of a database on a busy machine.
_SECONDS = 300.0


def missing() -> str:
    """The reason why the server cannot run on this machine; empty if it can."""
    absent = [program for program in ("java", "mvn") if shutil.which(program) is None]
    if absent:
        return f"needs {' and '.join(absent)} to start a Neo4j server"
    said = subprocess.run(["java", "-version"], capture_output=True, text=True, check=False).stderr
    version = said.partition('version "')[2].partition(".")[0].partition('"')[0]
    return "" if version.isdigit() and int(version) >= 17 else f"needs Java 17 to start a Neo4j server, found {version}"


def or_skip() -> None:
    """Skip the test where the server cannot run; fail it where that is not allowed."""
    lack = missing()
    if lack and os.environ.get(REQUIRED):
        pytest.fail(f"{lack}, and {REQUIRED} is set")
    if lack:
        pytest.skip(lack)


def options(prefix: str) -> dict[str, object]:
    """Options of a store whose labels begin with the prefix. Skips the test where there is no server."""
    or_skip()
    return {"uri": address(), "user": "neo4j", "password": PASSWORD, "label_prefix": prefix, "connect_seconds": 60}


@cache
def address() -> str:
    """The address of the server."""
    directory = Path(tempfile.mkdtemp(prefix="astrocyte-neo4j-"))
    packages = directory / "packages"
    subprocess.run(
        ["mvn", "-q", "-B", "-f", _SOURCES / "pom.xml", "dependency:build-classpath", f"-Dmdep.outputFile={packages}"],
        check=True,
        timeout=_SECONDS,
    )
    # It ends when its standard input does, so with this process, however that ends.
    server = subprocess.Popen(
        [
            *("java", "-Xmx512m", "-XX:TieredStopAtLevel=1", "-cp", packages.read_text()),
            *(str(_SOURCES / "Neo4jServer.java"), str(directory / "data"), PASSWORD),
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    output = server.stdout
    assert output is not None
    lines: queue.Queue[str] = queue.Queue()
    Thread(target=lambda: lines.put(output.readline()), daemon=True).start()
    uri = lines.get(timeout=_SECONDS).strip()
    assert uri.startswith("bolt://"), uri
    atexit.register(_stop, server, directory)
    return uri.rstrip("/")


def _stop(server: subprocess.Popen[str], directory: Path) -> None:
    server.kill()
    server.communicate()
    shutil.rmtree(directory, ignore_errors=True)
