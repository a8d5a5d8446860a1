"""The proxies of deploy/, with the files, ports and servers of a test."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

from harness.certificates import certificates

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
# Configurations by the name of the file.
FILES = {"nginx.conf": "nginx", "nginx-postgres.conf": "nginx", "haproxy.cfg": "haproxy"}
POLL_SECONDS = 0.05
PATIENCE = 30.0


def needs(program: str) -> pytest.MarkDecorator:
    """Skip where a program is not installed; on a machine of CI it is, or something is wrong."""
    missing = shutil.which(program) is None and "CI" not in os.environ
    return pytest.mark.skipif(missing, reason=f"{program} is not installed")


NGINX, HAPROXY = needs("nginx"), needs("haproxy")


def configured(name: str, folder: Path, replaced: Mapping[str, str]) -> list[str]:
    """Write a configuration with other files, ports and servers; returns the command that runs its proxy."""
    files = certificates(folder)
    (folder / "haproxy.pem").write_bytes(files["server.pem"].read_bytes() + files["server.key"].read_bytes())
    text = (DEPLOY / FILES[name] / name).read_text(encoding="utf-8")
    # Nothing is written outside of the folder, whoever runs the tests.
    paths = "".join(
        f"    {kind}_temp_path {folder}/{kind};\n" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    given = {
        "/etc/astrocyte/": f"{folder}/",
        "/run/nginx.pid": f"{folder}/nginx.pid",
        "\nhttp {\n": f"\nhttp {{\n    access_log off;\n{paths}",
        **replaced,
    }
    for old, new in given.items():
        text = text.replace(old, new)
    path = folder / name
    path.write_text(text, encoding="utf-8")
    if FILES[name] == "nginx":
        return ["nginx", "-p", str(folder), "-e", "stderr", "-c", str(path)]
    return ["haproxy", "-f", str(path)]


async def started(command: list[str], port: int) -> asyncio.subprocess.Process:
    """Run a proxy, and wait until its port is open."""
    foreground = ["-g", "daemon off;"] if command[0] == "nginx" else ["-db"]
    process = await asyncio.create_subprocess_exec(
        *command, *foreground, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL
    )
    try:
        async with asyncio.timeout(PATIENCE):
            while process.returncode is None:
                try:
                    _, writer = await asyncio.open_connection("127.0.0.1", port)
                except OSError:
                    await asyncio.sleep(POLL_SECONDS)
                    continue
                writer.close()
                return process
    except TimeoutError:
        await stopped(process)
        raise
    raise AssertionError(f"ended with {process.returncode}")


async def stopped(process: asyncio.subprocess.Process) -> None:
    """End a proxy."""
    if process.returncode is None:
        process.terminate()
    await process.wait()
