"""Kill a server again and again under load, and see whether it keeps its word.

Sixteen clients retain, update, forget and recall; after a random time the server gets SIGKILL. It is started again,
half of the unanswered calls are repeated with their request ids, and everything is held against the book: nothing that
was acknowledged is lost, nothing forgotten returns, no request id has two effects, the index and the entity graph hold
what the rows say.

    python tests/ledger.py --cycles 200 --seed 7
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import apsw

from astrocyte.api.requests import Forget, Recall, Retain, UpdateMemory
from astrocyte.client import RemoteBackend
from astrocyte.errors import AstrocyteError, RateLimited, Unavailable
from astrocyte.model import DedupAction, ForgetSelector, MemoryUpdate, RecallQuery, RetainItem
from astrocyte.stores.sqlite.engine.data_directory import DATABASE
from ledger_book import ME, Book, Entry, Operation, check, company

LETTERS = "abcdefghijklmnopqrstuvwxyz"
# Seconds after the first acknowledgement in which the kill falls, at random.
EARLIEST, LATEST = 0.02, 2.0
# Slower traffic than this, in calls per second, says little about a kill: the cycle does not count. With 50, four
# kills of servers on one PostgreSQL took five minutes beside compilers, as most cycles did not.
LEAST_TRAFFIC = 20.0
# A bank's books are closed after so many cycles, or checking would take longer than killing.
CYCLES_PER_BANK = 10
# Pause of a client that goes on after a refusal, in seconds.
PAUSE = 0.05
# How many of the newest memories are looked for in the index after each kill; all are when the books are closed.
NEWEST = 600
# Seconds in which a server must have started, and clients must have noticed its death.
PATIENCE = 30.0

Tamper = Callable[[apsw.Connection], None]


@dataclass
class Report:
    """The result of a run."""

    seed: int
    cycles: int = 0
    void: int = 0
    acknowledged: Counter[str] = field(default_factory=Counter)
    unavailable: int = 0
    unknown: int = 0
    repeated: int = 0
    restart_seconds: list[float] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        slowest = max(self.restart_seconds, default=0.0)
        return (
            f"{self.cycles} kills (seed {self.seed}, {self.void} void): {dict(self.acknowledged)} acknowledged, "
            f"{self.unknown} unknown of which {self.repeated} repeated, slowest restart {slowest:.2f} s, "
            f"{len(self.violations)} violations"
        )


class DiedAtStartError(RuntimeError):
    """The server met its failpoint before it listened."""


@dataclass(frozen=True)
class Place:
    """A network namespace, and the address of a server within."""

    namespace: str
    host: str


class Server:
    """``astrocyte serve`` in a process group of its own, with variables added to the environment."""

    def __init__(self, folder: Path, variables: Mapping[str, str] | None = None, place: Place | None = None) -> None:
        self.data_dir = folder / "data"
        self._log = (folder / "server.log").open("a")
        command = [sys.executable, "-m", "astrocyte", "--data-dir", str(self.data_dir), "serve", "--port", "0"]
        if place is not None:
            command = ["ip", "netns", "exec", place.namespace, *command, "--host", place.host, "--insecure"]
        self._process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            process_group=0,
            env={**os.environ, **(variables or {})},
        )
        assert self._process.stdout is not None
        listening = self._process.stdout.readline()
        if not listening.startswith("Listening on "):
            died = self.died(PATIENCE)
            self.kill()
            kind = DiedAtStartError if died else RuntimeError
            raise kind(f"the server did not start; see {self._log.name}")
        self.address = listening.split()[-1]

    def died(self, seconds: float) -> bool:
        """True if it dies by itself within so many seconds, or has."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(seconds)
        return self._process.poll() == -signal.SIGABRT

    @property
    def ended(self) -> bool:
        """True if it runs no longer."""
        return self._process.poll() is not None

    def stop(self) -> None:
        """SIGTERM, and wait for a clean end."""
        self._process.terminate()
        code = self._process.wait(PATIENCE)
        self.kill()
        assert code == 0, code

    def kill(self) -> None:
        """SIGKILL to the whole group, and wait until it is gone."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._log.close()


class Client:
    """One caller at a time: it picks, calls, and writes down what it was told. It owns the memories that it made.

    Args:
        backend: Gets the calls that write.
        book: Gets what was asked and answered.
        chosen: Picks the calls.
        report: Gets their number.
        reader: Gets the recalls; ``backend`` if None.
        patient: Goes on after UNAVAILABLE.
    """

    def __init__(
        self,
        backend: RemoteBackend,
        book: Book,
        chosen: random.Random,
        report: Report,
        *,
        reader: RemoteBackend | None = None,
        patient: bool = False,
    ) -> None:
        self._backend = backend
        self._reader = reader or backend
        self._patient = patient
        self._book = book
        self._chosen = chosen
        self._report = report
        self._own: list[Entry] = []

    async def run(self) -> None:
        """Call without pause until the server is gone, or until cancelled where it is patient."""
        while True:
            kind = self._chosen.choices(("retain", "update", "forget", "recall"), (60, 14, 18, 8))[0]
            own = [entry for entry in self._own[-50:] if not entry.forgotten and entry.open is None]
            try:
                if kind == "retain" or not own:
                    await self.do(self._retain())
                elif kind == "recall":
                    await self._recall(self._chosen.choice(own))
                else:
                    await self.do(self._change(kind, self._chosen.choice(own)))
            except Unavailable:
                self._report.unavailable += 1
                if not self._patient:
                    return
                await asyncio.sleep(PAUSE)
            except AstrocyteError as error:
                self._book.violations.append(f"{kind} failed: {type(error).__name__}: {error}")
                return

    async def do(self, operation: Operation) -> None:
        """Send a call and note its answer; also for repeating one that was not answered."""
        self._book.begin(operation)
        try:
            memory_id = await self._send(operation)
        except RateLimited:
            self._book.refuse(operation)
            return
        self._book.acknowledge(operation, memory_id)
        self._report.acknowledged[operation.kind] += 1
        if operation.kind == "retain":
            self._own.append(operation.entry)

    async def _send(self, operation: Operation) -> str:
        backend, bank_id, memory_id = self._backend, self._book.bank_id, operation.entry.memory_id or ""
        if operation.kind == "retain":
            item = RetainItem(operation.content, tags=("ledger",), dedup_action=DedupAction.WARN)
            result = await backend.call(ME, Retain(bank_id, item, request_id=operation.request_id))
            return result.memory_id or ""
        if operation.kind == "update":
            update = MemoryUpdate(memory_id, frozenset({"content"}), content=operation.content)
            return (await backend.call(ME, UpdateMemory(bank_id, update, request_id=operation.request_id))).memory_id
        selector = ForgetSelector(memory_ids=(memory_id,))
        await backend.call(ME, Forget(bank_id, selector, request_id=operation.request_id))
        return memory_id

    async def _recall(self, entry: Entry) -> None:
        """A memory of our own is found, and nothing that was forgotten before the call."""
        gone = {one.memory_id for one in self._book.gone}
        result = await self._reader.call(ME, Recall(RecallQuery(entry.token, self._book.bank_id, max_results=50)))
        found = {hit.memory_id for hit in result.hits}
        self._report.acknowledged["recall"] += 1
        if found & gone:
            self._book.violations.append(f"resurrected: recall returned {sorted(map(str, found & gone))}")
        if entry.memory_id not in found:
            self._book.violations.append(f"not found after its acknowledgement: {entry.token}")

    def _retain(self) -> Operation:
        token = "".join(self._chosen.choices(LETTERS, k=14))
        content = f"Clerk {self._chosen.randrange(10**9)} stamped parcel {token} at {company(token)}."
        return Operation("retain", self._request_id(), Entry(token, content), content)

    def _change(self, kind: str, entry: Entry) -> Operation:
        content = f"Clerk {self._chosen.randrange(10**9)} moved parcel {entry.token} to {company(entry.token)}."
        return Operation(kind, self._request_id(), entry, content)

    def _request_id(self) -> str:
        return str(uuid.UUID(int=self._chosen.getrandbits(128), version=4))


class Run:
    """A number of cycles over one data directory."""

    def __init__(self, folder: Path, *, seed: int, clients: int = 16, latest: float = LATEST) -> None:
        self.folder = folder
        self.report = Report(seed)
        self._chosen = random.Random(seed)
        self._clients = clients
        self._latest = latest
        self._book = Book("ledger-0")

    async def run(self, cycles: int, *, progress: Callable[[str], None] = lambda _: None) -> Report:
        """Kill that many times; stops at the first violation."""
        server = self.start()
        try:
            while self.report.cycles < cycles and not self.report.violations:
                server = await self.cycle(server)
                progress(f"[{self.report.cycles:4d}] {self.report}")
        finally:
            server.kill()
        return self.report

    async def cycle(self, server: Server, tamper: Tamper | None = None) -> Server:
        """Load, kill, start again, check; returns the new server."""
        seconds, calls = await self.load_and_kill(server)
        self._tamper(server, tamper)
        started = time.monotonic()
        server = await asyncio.to_thread(self.start)
        self.report.restart_seconds.append(time.monotonic() - started)
        closing = (self.report.cycles + 1) % CYCLES_PER_BANK == 0
        server = await self.verify(server, closing=closing)
        self._quick_check(server)
        self.report.violations += self._book.violations
        if calls < LEAST_TRAFFIC * seconds:
            self.report.void += 1
        else:
            self.report.cycles += 1
            if closing:
                self._book = Book(f"ledger-{self.report.cycles}")
        return server

    def start(self) -> Server:
        """The next server."""
        return Server(self.folder)

    def connect(self, address: str) -> RemoteBackend:
        """A client that verifies."""
        return RemoteBackend(address)

    async def verify(self, server: Server, *, closing: bool) -> Server:
        """Hold a server against the book; returns it."""
        backend = self.connect(server.address)
        try:
            await self._repeat_some(backend)
            await check(backend, self._book, newest=None if closing else NEWEST)
        except BaseException:
            server.kill()
            raise
        finally:
            await backend.close()
        return server

    async def load_and_kill(self, server: Server) -> tuple[float, int]:
        """Returns how long there was traffic, and how many calls it was."""
        backend = RemoteBackend(server.address)
        before = self._book.acknowledged
        self._book.answered.clear()
        seeds = [random.Random(self._chosen.getrandbits(64)) for _ in range(self._clients)]
        tasks = [asyncio.create_task(Client(backend, self._book, one, self.report).run()) for one in seeds]
        try:
            async with asyncio.timeout(PATIENCE):
                await self._book.answered.wait()
            first = time.monotonic()
            await asyncio.sleep(self._chosen.uniform(EARLIEST, self._latest))
            seconds, calls = time.monotonic() - first, self._book.acknowledged - before
        finally:
            server.kill()
        async with asyncio.timeout(PATIENCE):
            await asyncio.gather(*tasks)
        await backend.close()
        self.report.unknown += len(self._book.unknown)
        return seconds, calls

    async def _repeat_some(self, backend: RemoteBackend) -> None:
        """Half of what was not answered is asked again with the same request id: it must have one effect."""
        client = Client(backend, self._book, self._chosen, self.report)
        for operation in self._book.unknown:
            if self._chosen.random() < 0.5:
                self.report.repeated += 1
                await client.do(operation)

    @staticmethod
    def _tamper(server: Server, tamper: Tamper | None) -> None:
        if tamper is not None:
            connection = apsw.Connection(str(server.data_dir / DATABASE))
            tamper(connection)
            connection.close()

    def _quick_check(self, server: Server) -> None:
        connection = apsw.Connection(str(server.data_dir / DATABASE), flags=apsw.SQLITE_OPEN_READONLY)
        found = connection.execute("PRAGMA quick_check").fetchall()
        connection.close()
        if found != [("ok",)]:
            self._book.violations.append(f"damaged: {found}")


def main() -> int:
    """Run from the command line; the exit code is 1 when the server broke its word."""
    parser = argparse.ArgumentParser(description="Kill a server under load and check what it kept.")
    parser.add_argument("--cycles", type=int, default=200, help="kills that count (default 200)")
    parser.add_argument("--seed", type=int, default=None, help="repeat a run's choices; times still differ")
    parser.add_argument("--clients", type=int, default=16, help="concurrent clients (default 16)")
    parser.add_argument("--latest", type=float, default=LATEST, help="latest kill after the first answer, in seconds")
    parser.add_argument("--dir", type=Path, default=None, help="keep the data here (default: a temporary directory)")
    options = parser.parse_args()
    seed = random.SystemRandom().randrange(1 << 32) if options.seed is None else options.seed
    with tempfile.TemporaryDirectory(prefix="astrocyte-ledger-") as temporary:
        folder = options.dir or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        run = Run(folder, seed=seed, clients=options.clients, latest=options.latest)
        report = asyncio.run(run.run(options.cycles, progress=lambda line: print(line, flush=True)))  # noqa: T201
    for violation in report.violations[:50]:
        print(violation)  # noqa: T201
    return 1 if report.violations else 0


if __name__ == "__main__":
    sys.exit(main())
