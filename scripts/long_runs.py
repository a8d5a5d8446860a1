"""The runs that take too long for every commit, one after the other: kills, fuzz, machines and models at full length.

    python scripts/long_runs.py                        all of them
    python scripts/long_runs.py failpoints --cycles 400
    python scripts/long_runs.py --list

Each run writes to a file of its own under ``long-runs/`` and gets one line here: whether it held, how long it took and
the last line that it wrote. The exit code is 1 when one did not hold. The others of the machine go first.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SEED = "7"
HOUR = 3_600
# What a run that is stopped has to end its servers.
ENDING_SECONDS = 60
# Below everything else that wants a processor; Linux shares them by session first.
NICE = 19


@dataclass(frozen=True)
class Run:
    """A command, what it shows, and how long it may take. With ``cycles`` it is told how often to do it."""

    name: str
    shows: str
    command: Sequence[str]
    seconds: int
    cycles: int | None = None


def _slow(*tests: str) -> Sequence[str]:
    """The slow tests among these, with what they print."""
    return "-m", "pytest", "-m", "slow", "-q", "-rA", *tests


RUNS = (
    Run("ledger", "kill -9 at any time loses and repeats nothing", ("tests/ledger.py", "--seed", SEED), 3 * HOUR, 200),
    Run(
        "failpoints",
        "neither does a death at each named step of commits, index and checkpoints",
        ("tests/failpoints.py", "--seed", SEED),
        12 * HOUR,
        2_000,
    ),
    Run(
        "queue",
        "5,000 retains while the provider is down, two kills: each stored once, in order, what was forgotten never",
        _slow("tests/integration/crashes/test_kill_queue.py"),
        HOUR,
    ),
    Run(
        "knowledge",
        "201 kills at any moment of consolidations, compilations and lifecycles: the outcome of an uninterrupted run",
        _slow(
            "tests/integration/crashes/test_consolidation_kill.py",
            "tests/integration/crashes/test_wiki_kill.py",
            "tests/integration/crashes/test_lifecycle_kill.py",
        ),
        3 * HOUR,
    ),
    Run(
        "isolation",
        "20,000 steps of tenants, banks, principals and grants, at the gate and over the wire: nothing foreign is seen",
        _slow("tests/property/test_isolation.py"),
        4 * HOUR,
    ),
    Run(
        "models",
        "rates and breaker equal their models over 1,000,000 steps each",
        _slow("tests/unit/policy/limits/test_token_bucket.py", "tests/unit/providers/test_circuit_breaker.py"),
        HOUR,
    ),
    Run(
        "fuzz",
        "10,000 malformed payloads for every call: no crash, no internal error, the next call is answered",
        _slow("tests/integration/server/test_server_fuzz.py"),
        6 * HOUR,
    ),
    Run(
        "explain",
        "10,000 explanations name the stage that a re-run shows",
        _slow("tests/property/test_explain.py"),
        3 * HOUR,
    ),
    Run(
        "agents",
        "20,000 steps of agents' memories equal the model of their decisions, and no agent sees another's",
        _slow("tests/property/test_agent_memory.py"),
        HOUR,
    ),
    Run(
        "freshness",
        "100,000 writes in one worker, each read at once in another one: none is missed",
        ("tests/freshness.py", "workers"),
        3 * HOUR,
        100_000,
    ),
    Run(
        "freshness-servers",
        "the same with two servers on one PostgreSQL",
        ("tests/freshness.py", "servers"),
        4 * HOUR,
        100_000,
    ),
    Run(
        "failures",
        "Patroni promotes a standby, and hosts are cut off: nothing acknowledged is lost, and no answer is stale",
        _slow(
            "tests/integration/crashes/test_servers_patroni.py",
            "tests/integration/crashes/test_servers_partition.py",
            "tests/integration/crashes/test_servers_host_loss.py",
        ),
        HOUR,
    ),
    Run("banks", "2,000 banks under a budget of 1 GiB", ("-m", "benches.banks"), HOUR),
)


def hold(run: Run, folder: Path, cycles: int | None) -> bool:
    """True if it held; its output goes to a file."""
    command = [sys.executable, *run.command]
    if run.cycles is not None:
        command += ["--cycles", str(cycles or run.cycles)]
    path = folder / f"{run.name}.log"
    started = time.monotonic()
    with path.open("w", encoding="utf-8") as out:
        child = subprocess.Popen(command, cwd=ROOT, stdout=out, stderr=subprocess.STDOUT, start_new_session=True)
        _let_others_go_first(child.pid)
        try:
            outcome = "held" if child.wait(run.seconds) == 0 else "DID NOT HOLD"
        except subprocess.TimeoutExpired:
            outcome = "TOOK TOO LONG"
            # As Ctrl-C does: it ends its servers.
            os.killpg(child.pid, signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(ENDING_SECONDS)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
    lines = path.read_text(encoding="utf-8", errors="replace").split("\n")
    last = next((line for line in reversed(lines) if line.strip()), "")
    print(f"{run.name}: {outcome} after {time.monotonic() - started:,.0f} s: {last}", flush=True)
    return outcome == "held"


def _let_others_go_first(pid: int) -> None:
    """Lower a session's share of the processors, where the system knows such shares."""
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, pid, NICE)
        Path(f"/proc/{pid}/autogroup").write_text(str(NICE), encoding="ascii")


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="which; all without any")
    parser.add_argument("--cycles", type=int, help="kills or pairs, instead of their full number")
    parser.add_argument("--folder", type=Path, default=ROOT / "long-runs", help="where their output goes")
    parser.add_argument("--list", action="store_true", help="say what there is")
    options = parser.parse_args()
    unknown = set(options.names) - {run.name for run in RUNS}
    if unknown:
        parser.error(f"there is no {', '.join(sorted(unknown))}; there are {', '.join(run.name for run in RUNS)}")
    chosen = [run for run in RUNS if not options.names or run.name in options.names]
    if options.list:
        for run in chosen:
            print(f"{run.name:<19}{run.shows}")
        return
    options.folder.mkdir(parents=True, exist_ok=True)
    # All of them, whatever becomes of the first.
    held = [hold(run, options.folder, options.cycles) for run in chosen]
    sys.exit(0 if all(held) else 1)


if __name__ == "__main__":
    main()
