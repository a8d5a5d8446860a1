"""An OpenSearch server of one node for tests: started at the first use, stopped with the process.

Its packages come from Maven Central. Without Java 17 or Maven the tests are skipped, unless TEST_OPENSEARCH_REQUIRED is
set.
"""

from __future__ import annotations

import atexit
import os
import queue
import shutil
import socket
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from threading import Thread
from typing import IO

import pytest

from external.neo4j_server import missing

REQUIRED = "TEST_OPENSEARCH_REQUIRED"
_SOURCES = Path(__file__).parent / "java" / "opensearch"
# The first start loads the packages; after that it is the start of a server on a busy machine.
_SECONDS = 300.0


def options(index: str) -> dict[str, object]:
    """Options of a store whose indexes begin with the name. Skips the test where there is no server."""
    lack = missing().replace("Neo4j", "OpenSearch")
    if lack and os.environ.get(REQUIRED):
        pytest.fail(f"{lack}, and {REQUIRED} is set")
    if lack:
        pytest.skip(lack)
    return {"url": address(), "index": index, "replicas": 0, "refresh": "true", "timeout_seconds": 60}


@cache
def address() -> str:
    """The address of the server."""
    directory = Path(tempfile.mkdtemp(prefix="astrocyte-opensearch-"))
    packages = directory / "packages"
    subprocess.run(
        ["mvn", "-q", "-B", "-f", _SOURCES / "pom.xml", "dependency:build-classpath", f"-Dmdep.outputFile={packages}"],
        check=True,
        timeout=_SECONDS,
    )
    with socket.create_server(("127.0.0.1", 0)) as held:
        port = held.getsockname()[1]
    # It ends when its standard input does, so with this process, however that ends.
    server = subprocess.Popen(
        [
            *("java", "-Xmx512m", "-XX:TieredStopAtLevel=1", "-cp", packages.read_text()),
            *(str(_SOURCES / "OpenSearchServer.java"), str(directory / "data"), str(port)),
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    output = server.stdout
    assert output is not None
    lines: queue.Queue[str] = queue.Queue()
    Thread(target=lambda: _tell(output, lines), daemon=True).start()
    url = lines.get(timeout=_SECONDS)
    assert url.startswith("http://"), url
    atexit.register(_stop, server, directory)
    return url


def _tell(output: IO[str], lines: queue.Queue[str]) -> None:
    """Pass on the address, or the last line before the end; what is logged before and after is read and dropped."""
    line = ""
    for line in output:
        if line.startswith("http://"):
            lines.put(line.strip())
    lines.put(line)


def _stop(server: subprocess.Popen[str], directory: Path) -> None:
    server.kill()
    server.communicate()
    shutil.rmtree(directory, ignore_errors=True)
