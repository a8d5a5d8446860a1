"""The product end to end, on a conversation of ten months: ask, look back, erase, prove it, stop in order.

Starts a real server on a directory of its own, fills it with the command line, and then speaks to it only through the
stub that protoc generated, as a program in any language would. Exits with 1 when an answer is missing or an erased
memory comes back.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import grpc
from google.protobuf.field_mask_pb2 import FieldMask
from google.protobuf.timestamp_pb2 import Timestamp
from google.rpc import error_details_pb2
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_status import rpc_status
from rich.console import Console
from rich.table import Table
from rich.text import Text

from astrocyte.v1 import memory_pb2 as pb
from astrocyte.v1 import types_pb2
from astrocyte.v1.memory_pb2_grpc import MemoryServiceStub

CONVERSATION = Path(__file__).resolve().parent / "conversation.jsonl"
BANK = "friends"
# What counts as found: among the first five, as an agent would read them.
TOP = 5
# Seconds in which the server has to come up, and to drain; both take well under one.
PATIENCE = 20.0
# The secret that Callum asks Ines to forget.
DOOR_CODE = "4471"
OUT = Console(highlight=False, width=None if sys.stdout.isatty() else 110)


@dataclass(frozen=True)
class Question:
    """A question, what kind it is, and words that the right memory holds."""

    kind: str
    text: str
    answer: str
    filters: dict[str, object] = field(default_factory=dict)


def day(text: str) -> Timestamp:
    """Midnight UTC of an ISO date."""
    stamp = Timestamp()
    stamp.FromDatetime(datetime.fromisoformat(text).replace(tzinfo=UTC))
    return stamp


AUGUST = types_pb2.TimeRange(start=day("2025-08-01"), end=day("2025-09-01"))

QUESTIONS = (
    Question("a name", "What is Ines's pottery workshop called?", "Barro Lento"),
    Question("a negation", "Is Mara allergic to nuts?", "not allergic to nuts"),
    Question("a number", "How much did the second-hand kiln from Aveiro cost?", "1,900 euros"),
    Question("a date", "When was Teresa's baby born?", "on Friday, the 18th"),
    Question("a plan that changed", "What is the new date and place of Freya's wedding?", "6th of September"),
    Question("other words", "Which illness does the cat have?", "it's her kidneys"),
    Question("a time in the question", "Where did Kittiwake go in May 2025?", "Bass Rock"),
    Question("a person", "Who mended the workshop's roof?", "Graça Mendes"),
    Question("only one label", "Which drug makes Callum's throat swell?", "Penicillin", {"tags": ["health"]}),
    Question(
        "only one month", "Which moment does Ines still dream about?", "dream about the choir", {"time_range": AUGUST}
    ),
)


def say(title: str) -> None:
    """Announce a part."""
    OUT.print()
    OUT.rule(Text(title, style="bold"), align="left")


def expect(holds: bool, claim: str) -> None:  # noqa: FBT001 - the claim beside it says what it is
    """Print a claim that holds, or end with the one that does not."""
    if not holds:
        OUT.print(Text(f"  FAILED: {claim}", style="bold red"))
        sys.exit(1)
    OUT.print(Text(f"  ✓ {claim}", style="green"))


@contextmanager
def server(folder: Path) -> Iterator[str]:
    """A server process of its own on a free port; yields its address, then drains it."""
    command = [sys.executable, "-m", "astrocyte", "--data-dir", str(folder), "serve", "--port", "0"]
    log = folder.with_suffix(".log")
    with (
        log.open("w") as events,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=events, text=True) as process,
    ):
        try:
            assert process.stdout is not None  # noqa: S101 - asked for above
            listening = process.stdout.readline()
            expect(listening.startswith("Listening on "), "the server listens")
            yield listening.split()[-1]
            say("Draining the server")
            started = time.perf_counter()
            process.send_signal(signal.SIGTERM)
            code = process.wait(PATIENCE)
            expect(code == 0, f"SIGTERM: exit code 0 after {time.perf_counter() - started:.2f} s")
        finally:
            if process.poll() is None:
                process.kill()
            if process.returncode:
                OUT.print(Text(log.read_text(encoding="utf-8")))
            log.unlink()


def fill(address: str) -> None:
    """Import the conversation with the command line."""
    command = [sys.executable, "-m", "astrocyte", "--json", "--server", address, "import", BANK, str(CONVERSATION)]
    OUT.print(Text(f"  $ astrocyte --server {address} import {BANK} {CONVERSATION.name}", style="cyan"))
    started = time.perf_counter()
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    elapsed = time.perf_counter() - started
    lines = sum(1 for _ in CONVERSATION.open(encoding="utf-8"))
    report = json.loads(done.stdout or "{}")
    expect(report.get("created") == lines, f"{lines} turns, all durable, in {elapsed:.2f} s with the start of Python")


def ask(memories: MemoryServiceStub) -> None:
    """Put the ten questions and check the answers."""
    for question in QUESTIONS:
        request = pb.RecallRequest(bank_id=BANK, query=question.text, max_results=TOP, **question.filters)  # type: ignore[arg-type] # filters are fields
        started = time.perf_counter()
        response = memories.Recall(request)
        elapsed = (time.perf_counter() - started) * 1e3
        found = [index for index, hit in enumerate(response.hits) if question.answer in hit.text]
        show(question, response, found, elapsed)
        expect(bool(found), f"“{question.answer}” is among the first {TOP}")


def reflect(memories: MemoryServiceStub) -> None:
    """Put one question for an answer, and one that the bank has no answer to."""
    for query, answer in (("What is Ines's pottery workshop called?", "Barro Lento"), ("Who won in Reykjavik?", "")):
        response = memories.Reflect(pb.ReflectRequest(bank_id=BANK, query=query))
        OUT.print()
        OUT.print(Text.assemble(("? ", "bold cyan"), (query, "bold")))
        OUT.print(Text(f"  {response.answer}"))
        OUT.print(Text(f"  confidence {response.confidence:.2f}, {len(response.citations)} citations", style="dim"))
        expect(response.abstained == (not answer), "it answers" if answer else "it says that memory does not hold this")
        expect(answer in response.answer, f"the answer holds “{answer}”, cited" if answer else "and cites nothing")


def show(question: Question, response: pb.RecallResponse, found: list[int], elapsed: float) -> None:
    """A table of the hits with the arms' ranks, and where the time went."""
    trace = response.trace
    OUT.print()
    OUT.print(Text.assemble(("? ", "bold cyan"), (question.text, "bold"), (f"   {question.kind}", "dim")))
    table = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2, 0, 0), expand=True)
    for justify in ("right", "right", "left", "left", "left"):
        table.add_column(justify=justify, overflow="ellipsis", no_wrap=True)
    # The text takes what the other columns leave.
    table.columns[3].ratio = 1
    for index, hit in enumerate(response.hits[:3]):
        when = hit.occurred_at.ToDatetime().strftime("%d %b")
        arms = ", ".join(f"{arm.arm} {arm.rank}" for arm in hit.arms)
        style = "green" if index in found else ""
        table.add_row(f"{index + 1}", f"{hit.score:.2f}", when, Text(f"{hit.speaker}: {hit.text}", style=style), arms)
    OUT.print(table)
    stages = ", ".join(f"{name} {value:.2f}" for name, value in sorted(trace.stage_timings_ms.items()))
    OUT.print(
        Text(
            f"  {elapsed:.2f} ms for the caller, {trace.latency_ms:.2f} ms in the server ({stages}); "
            f"{response.total_available} candidates",
            style="dim",
        ),
        soft_wrap=True,
    )


def look_back(memories: MemoryServiceStub) -> None:
    """Update a memory; today's recall has the new version, history the old one."""
    query = "At what time does Ines land?"
    hits = memories.Recall(pb.RecallRequest(bank_id=BANK, query=query, max_results=TOP)).hits
    landing = next(hit for hit in hits if "17:40" in hit.text)
    before = Timestamp()
    before.GetCurrentTime()
    # History is told apart by milliseconds.
    time.sleep(0.01)
    memories.UpdateMemory(
        pb.UpdateMemoryRequest(
            bank_id=BANK,
            memory_id=landing.memory_id,
            update_mask=FieldMask(paths=["content"]),
            content=landing.text.replace("17:40", "19:05"),
        )
    )
    now = memories.Recall(pb.RecallRequest(bank_id=BANK, query=query, max_results=TOP)).hits
    then = memories.History(pb.HistoryRequest(bank_id=BANK, query=query, max_results=TOP, as_of=before)).hits
    for label, answers in (("now ", now), ("then", then)):
        hit = next(hit for hit in answers if hit.memory_id == landing.memory_id)
        OUT.print(Text(f"  {label}  version {hit.version}: {hit.text}"))
    expect(any("19:05" in hit.text for hit in now), "recall knows the new time")
    expect(not any("17:40" in hit.text for hit in now), "and not the old one")
    expect(any("17:40" in hit.text for hit in then), "history, as of before the update, knows the old time")


def erase(memories: MemoryServiceStub, folder: Path) -> None:
    """Erase a memory and look for it everywhere."""
    query = "What is the code of the street door?"
    hits = memories.Recall(pb.RecallRequest(bank_id=BANK, query=query, max_results=TOP)).hits
    secret = next(hit for hit in hits if DOOR_CODE in hit.text)
    before = Timestamp()
    before.GetCurrentTime()
    time.sleep(0.01)
    OUT.print(Text(f"  {secret.speaker}: {secret.text}"))
    forgotten = memories.Forget(
        pb.ForgetRequest(bank_id=BANK, memory_ids=[secret.memory_id], compliance=True, reason="Callum asked for it")
    )
    expect(forgotten.deleted_count == 1, f"one memory erased; root hash {forgotten.receipt.root_hash_after[:16]}…")
    wide = pb.RecallRequest(bank_id=BANK, query=query, max_results=200)
    expect(
        not any(DOOR_CODE in hit.text for hit in memories.Recall(wide).hits), "recall, 200 hits deep, does not have it"
    )
    past = pb.HistoryRequest(bank_id=BANK, query=query, max_results=200, as_of=before)
    expect(
        not any(DOOR_CODE in hit.text for hit in memories.History(past).hits),
        "history before the erasure does not either",
    )
    try:
        memories.GetMemory(pb.GetMemoryRequest(bank_id=BANK, memory_id=secret.memory_id))
        reason = "it was returned"
    except grpc.RpcError as error:
        reason = reason_of(error)
    expect(reason == "MEMORY_NOT_FOUND", f"reading it by its id fails with {reason}")
    needle = secret.text.encode()
    files = [path for path in folder.rglob("*") if path.is_file() and needle in path.read_bytes()]
    expect(not files, "no file of the data directory holds its text")


def reason_of(error: grpc.RpcError) -> str:
    """The reason in the ErrorInfo of a failed call."""
    status = rpc_status.from_call(error)
    info = error_details_pb2.ErrorInfo()
    details = status.details if status else ()
    return next((info.reason for detail in details if detail.Unpack(info)), "no ErrorInfo")


def main() -> None:
    """Run all parts."""
    started = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="astrocyte-demo-") as name:
        folder = Path(name) / "data"
        say("Starting a server")
        with server(folder) as address, grpc.insecure_channel(address) as channel:
            health = health_pb2_grpc.HealthStub(channel)
            answer = health.Check(health_pb2.HealthCheckRequest(), timeout=PATIENCE, wait_for_ready=True)
            expect(answer.status == health_pb2.HealthCheckResponse.SERVING, f"serving on {address}")
            memories = MemoryServiceStub(channel)
            say("Importing a conversation of ten months")
            fill(address)
            say("Asking ten questions")
            ask(memories)
            say("Two questions for an answer, without a language model")
            reflect(memories)
            say("Looking back")
            look_back(memories)
            say("Erasing the door code, as asked in August")
            erase(memories, folder)
    OUT.print(Text(f"\nEverything held, in {time.perf_counter() - started:.1f} s.", style="bold green"))


if __name__ == "__main__":
    os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
    main()
