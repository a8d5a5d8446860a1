"""Counts the Python files and function calls of the package that one plain Recall and one plain Retain pass through.

A server with default settings runs in this process and listens on loopback. Every thread that belongs to it is traced;
the client sends bytes from a thread that is not. Counts do not depend on what else the machine does, so that a test
holds them to targets. `--list` prints the calls in order.

Example:
    python -m benches.profile_calls --list
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import grpc

import astrocyte
from astrocyte.app import App
from astrocyte.config import load_settings
from astrocyte.server import server_of
from astrocyte.v1 import memory_pb2
from benches.corpus import english_texts

PACKAGE = str(Path(astrocyte.__file__).parent) + "/"
# Calls of each method before the first that is counted, and how many are counted. The shortest of them is the plain
# call: the others also have what happens now and then, such as the measurement of an index that has grown.
WARM_CALLS = 60
COUNTED_CALLS = 9
# A call's last frames return after its answer was sent.
SETTLE_SECONDS = 0.05
BANK = "profile"
# Near duplicates would be compared with each other, which a plain retain is not.
WORDS_OF_A_TEXT = 8
SEED = 7
# A memory answers the question: one that nobody can answer is noted for audits of coverage.
ANSWER = "Ada lives in Lisbon."
QUESTION = "where does Ada live?"


@dataclass(slots=True)
class Profile:
    """Calls of the package's functions during one RPC, in the order in which they began."""

    calls: list[tuple[str, str]] = field(default_factory=list)

    @property
    def files(self) -> list[str]:
        """The distinct files, in the order in which they were entered first."""
        return list(dict.fromkeys(file for file, _ in self.calls))


class Tracer:
    """Records the calls of package functions on every thread that starts after `installed` was entered."""

    def __init__(self) -> None:
        self._profile: Profile | None = None
        self._seen: set[int] = set()
        # Frames are kept until the end of a recording, so that an id names one frame.
        self._frames: list[FrameType] = []

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Trace threads that start in here."""
        threading.setprofile(self._event)
        try:
            yield
        finally:
            threading.setprofile(None)

    def record(self, call: Callable[[], object]) -> Profile:
        """The calls of the package while ``call`` runs on this thread, which is not traced."""
        self._seen.clear()
        self._frames.clear()
        profile = self._profile = Profile()
        call()
        time.sleep(SETTLE_SECONDS)
        self._profile = None
        return profile

    def _event(self, frame: FrameType, event: str, _: Any) -> None:  # noqa: ANN401 - sys.setprofile's own type
        profile = self._profile
        if profile is None or event != "call":
            return
        code = frame.f_code
        if not code.co_filename.startswith(PACKAGE) or id(frame) in self._seen:
            # A coroutine or generator that goes on is the same call.
            return
        self._seen.add(id(frame))
        self._frames.append(frame)
        profile.calls.append((code.co_filename.removeprefix(PACKAGE), code.co_qualname))


class _Server:
    """A server with default settings in a thread of its own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._stop = asyncio.Event()
        self.address = ""
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="profiled-server", daemon=True)

    def start(self) -> None:
        self._thread.start()
        self._ready.wait()
        if self._failure is not None:
            raise self._failure

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._serve())
        except BaseException as error:  # noqa: BLE001 - it is raised again by `start`
            self._failure = error
        finally:
            self._ready.set()
            self._loop.close()

    async def _serve(self) -> None:
        app = App(
            # The entity graph follows in the background, after the answer.
            load_settings(
                overrides={
                    "data_dir": str(self._folder),
                    "server": {"port": 0},
                    "entity_graph": {"enabled": False},
                }
            )
        )
        try:
            server = server_of(app)
            self.address = await server.start()
            app.start_purging()
            self._ready.set()
            await self._stop.wait()
            await server.stop(0.0)
        finally:
            await app.close()


def profiles() -> dict[str, Profile]:
    """Profiles of a warm Recall and a warm Retain: of several calls, the one with the fewest calls of functions."""
    tracer = Tracer()
    with tempfile.TemporaryDirectory() as folder:
        with tracer.installed():
            server = _Server(Path(folder))
            server.start()
        try:
            with grpc.insecure_channel(server.address) as channel:
                return _measured(tracer, channel)
        finally:
            server.stop()


def _measured(tracer: Tracer, channel: grpc.Channel) -> dict[str, Profile]:
    retain: Any = channel.unary_unary("/astrocyte.v1.MemoryService/Retain")
    recall: Any = channel.unary_unary("/astrocyte.v1.MemoryService/Recall")
    question = memory_pb2.RecallRequest(bank_id=BANK, query=QUESTION).SerializeToString()
    texts = [ANSWER, *english_texts(WARM_CALLS + COUNTED_CALLS - 1, words=WORDS_OF_A_TEXT, seed=SEED)]
    items = [memory_pb2.RetainRequest(bank_id=BANK, content=text).SerializeToString() for text in texts]
    for item in items[:WARM_CALLS]:
        retain(item)
        recall(question)
    retained = [tracer.record(partial(retain, item)) for item in items[WARM_CALLS:]]
    recall(question)
    recalled = [tracer.record(partial(recall, question)) for _ in range(COUNTED_CALLS)]
    return {"Recall": _shortest(recalled), "Retain": _shortest(retained)}


def _shortest(found: list[Profile]) -> Profile:
    return min(found, key=lambda profile: len(profile.calls))


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true", help="print every call in order, and the calls of each file")
    wanted = parser.parse_args()
    print(f"Python {sys.version.split()[0]}")
    for name, profile in profiles().items():
        print(f"{name}: {len(profile.files)} files, {len(profile.calls)} calls")
        if wanted.list:
            for file, function in profile.calls:
                print(f"  {file}  {function}")
            for file, count in Counter(file for file, _ in profile.calls).most_common():
                print(f"  {count:4} {file}")


if __name__ == "__main__":
    main()
