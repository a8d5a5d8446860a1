"""Two PostgreSQL nodes under Patroni with the configuration of deploy/, and etcd beside them."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from ports import free_port
from postgres_process import postgres_folder, process_user, programs
from proxies import DEPLOY

CONFIGURATION = DEPLOY / "patroni" / "patroni.yml"
# Not those of CI, whose runs would grow by minutes.
MISSING = [name for name in ("patroni", "etcd") if shutil.which(name) is None]
PATRONI = pytest.mark.skipif(bool(MISSING), reason=f"{' and '.join(MISSING)} not installed (apt: patroni, etcd-server)")
# Seconds in which a node must have been made, have joined, or have come back.
PATIENCE = 180.0
POLL_SECONDS = 0.1
# Patroni refuses 127.0.0.1 as the address of a node.
HOSTS = {"db1": "127.0.0.2", "db2": "127.0.0.3"}
# The newest that Patroni 3.0 knows.
POSTGRES = 16
PASSWORD = "not-a-secret"
ROLES = ("SUPERUSER", "REPLICATION", "REWIND")


class Node:
    """PostgreSQL under Patroni."""

    def __init__(self, folder: Path, name: str, etcd: str) -> None:
        self.folder = folder / name
        self.host, self.port = HOSTS[name], free_port()
        self._rest = f"{self.host}:{free_port()}"
        self._log = folder / f"{name}.log"
        self._process: subprocess.Popen[bytes] | None = None
        text = CONFIGURATION.read_text(encoding="utf-8")
        replaced = {
            "name: db1": f"name: {name}",
            "db1.internal:8008": self._rest,
            "db1.internal:5432": f"{self.host}:{self.port}",
            "etcd-1.internal:2379,etcd-2.internal:2379,etcd-3.internal:2379": etcd,
            "/var/lib/postgresql/16/astrocyte": str(self.folder),
            "/usr/lib/postgresql/16/bin": str(programs(POSTGRES)),
            "/run/postgresql": str(folder),
            "10.0.0.0/8": "127.0.0.0/8",
            # The user of the system is none of the database.
            "local all all peer": "local all all scram-sha-256",
        }
        for old, new in replaced.items():
            assert old in text, old
            text = text.replace(old, new)
        self._file = folder / f"{name}.yml"
        self._file.write_text(text, encoding="utf-8")

    def dsn(self, user: str = "postgres", database: str = "postgres") -> str:
        """Its address alone."""
        return f"postgresql://{user}:{PASSWORD}@{self.host}:{self.port}/{database}"

    def validate(self) -> subprocess.CompletedProcess[str]:
        """The judgement of Patroni about the file."""
        command = ["patroni", "--validate-config", str(self._file)]
        return subprocess.run(command, capture_output=True, text=True, check=False, env=_environment(self._file.parent))

    def start(self) -> None:
        """Start Patroni, which makes or starts the database."""
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                ["patroni", str(self._file)],
                stdout=log,
                stderr=log,
                user=process_user(),
                process_group=0,
                cwd=self._file.parent,
                env=_environment(self._file.parent),
            )

    def kill(self) -> None:
        """SIGKILL to Patroni, then to PostgreSQL, which nobody starts again."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
        with contextlib.suppress(OSError, ValueError, IndexError):
            os.kill(int((self.folder / "postmaster.pid").read_text().splitlines()[0]), signal.SIGKILL)

    def execute(self, sql: str) -> list[tuple[object, ...]]:
        """The rows of a statement outside of a transaction."""
        with psycopg.connect(self.dsn(), autocommit=True, connect_timeout=2) as connection:
            cursor = connection.execute(sql.encode())
            return cursor.fetchall() if cursor.description else []

    @property
    def promoted(self) -> bool:
        """True if it takes writes."""
        with contextlib.suppress(psycopg.OperationalError):
            return self.execute("SELECT pg_is_in_recovery()") == [(False,)]
        return False

    def roles(self) -> dict[str, str]:
        """Roles of the members that run, by their names, as this one sees them."""
        with contextlib.suppress(OSError, ValueError):
            with urllib.request.urlopen(f"http://{self._rest}/cluster", timeout=2) as answer:
                members: list[dict[str, Any]] = json.load(answer)["members"]
            # A standby that follows is `running` or `streaming`, by the version.
            return {one["name"]: one["role"] for one in members if one["state"] in {"running", "streaming"}}
        return {}

    def told(self) -> str:
        """The end of its log."""
        return self._log.read_text(errors="replace")[-3_000:]


class Cluster:
    """Two nodes; the first one is the primary at first."""

    def __init__(self, folder: Path, etcd: str) -> None:
        self.nodes = [Node(folder, name, etcd) for name in HOSTS]

    @property
    def dsn(self) -> str:
        """The address that servers use, with the hosts of both."""
        hosts = ",".join(f"{node.host}:{node.port}" for node in self.nodes)
        return f"postgresql://astrocyte:{PASSWORD}@{hosts}/astrocyte"

    def start(self) -> None:
        """Make the cluster, the role of the servers and their database."""
        first, second = self.nodes
        first.start()
        wait_until(lambda: first.promoted, first)
        second.start()
        self.wait_for_standby(first)
        first.execute(f"CREATE ROLE astrocyte LOGIN PASSWORD '{PASSWORD}'")
        first.execute("CREATE DATABASE astrocyte OWNER astrocyte")

    def wait_for_standby(self, primary: Node) -> None:
        """Return once the other node is the synchronous standby."""
        wait_until(lambda: sorted(primary.roles().values()) == ["leader", "sync_standby"], *self.nodes)


@contextmanager
def patroni_cluster() -> Iterator[Cluster]:
    """A cluster that runs, with a synchronous standby."""
    with postgres_folder() as folder, _etcd(folder) as address:
        cluster = Cluster(folder, address)
        try:
            cluster.start()
            yield cluster
        finally:
            for node in cluster.nodes:
                node.kill()


@contextmanager
def patroni_node() -> Iterator[Node]:
    """A node that does not run, beside an etcd that does."""
    with postgres_folder() as folder, _etcd(folder) as address:
        yield Node(folder, "db1", address)


def wait_until(true: Callable[[], bool], *nodes: Node) -> None:
    """Return once it is true."""
    end = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < end, "\n".join(node.told() for node in nodes)
        time.sleep(POLL_SECONDS)


@contextmanager
def _etcd(folder: Path) -> Iterator[str]:
    client, peer = free_port(), free_port()
    command = ["etcd", "--data-dir", str(folder / "etcd"), "--unsafe-no-fsync", "--log-level", "error"]
    for option, port in (("client", client), ("peer", peer)):
        command += [f"--listen-{option}-urls", f"http://127.0.0.1:{port}"]
    command += ["--advertise-client-urls", f"http://127.0.0.1:{client}"]
    command += ["--initial-advertise-peer-urls", f"http://127.0.0.1:{peer}"]
    command += ["--initial-cluster", f"default=http://127.0.0.1:{peer}"]
    with (folder / "etcd.log").open("ab") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, process_group=0)
    try:
        end = time.monotonic() + PATIENCE
        while not _healthy(client):
            assert process.poll() is None, (folder / "etcd.log").read_text()
            assert time.monotonic() < end
            time.sleep(POLL_SECONDS)
        yield f"127.0.0.1:{client}"
    finally:
        process.kill()
        process.wait()


def _healthy(port: int) -> bool:
    with contextlib.suppress(OSError, ValueError), urllib.request.urlopen(f"http://127.0.0.1:{port}/health") as answer:
        return bool(json.load(answer)["health"] == "true")
    return False


def _environment(home: Path) -> dict[str, str]:
    """Nothing of this Python's: Patroni runs with that of the system."""
    passwords = {f"PATRONI_{role}_PASSWORD": PASSWORD for role in ROLES}
    return {"PATH": os.environ["PATH"], "HOME": str(home), "LANG": "C.UTF-8", **passwords}
