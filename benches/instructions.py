"""Instructions of the hot kernels, counted by callgrind and held against what is stored.

    python -m benches.instructions            compare; ends with 1 when a kernel takes more than it may
    python -m benches.instructions --update   store what is counted now
    python -m benches.instructions --calls 2  call each kernel twice: a slowdown that the comparison must find

Counts do not depend on what else the machine does, so that they can be held to a few in a hundred where times cannot be
held at all. They do depend on the compiler and on the instruction set, and so does what is stored
(benches/instructions.json). Valgrind knows no AVX-512: what is counted is the way for AVX2.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
STORED = Path(__file__).with_suffix(".json")
# Two runs differ by less than one in a thousand (seeds of hash tables), two releases of one C library in how they copy
# by one or two in a hundred; what is worth a look is more.
TOLERANCE = 0.03
# By itself, the C library moves its limit for blocks of their own pages with what the process freed before, and a table
# that grows is then copied on one machine and remapped on another: 4% of `apply`. Bytes, the largest limit allowed.
TUNABLES = f"glibc.malloc.mmap_threshold={32 * 1024 * 1024}"
# The function of rust_core/core/benches/instructions.rs whose calls are counted; its symbol has more around the name.
COUNTED = "*counted_call*"
SECONDS = 600

Counts = dict[str, int]


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--update", action="store_true", help="store the counts for this compiler")
    parser.add_argument("--calls", type=int, default=1, help="calls of each kernel, 1 to compare")
    options = parser.parse_args()
    for tool, package in (("cargo", "rustup"), ("valgrind", "valgrind")):
        if shutil.which(tool) is None:
            sys.exit(f"No {tool} was found: install {package}.")
    program = build()
    simd, kernels = listed(program)
    key = f"{compiler()}, {simd}"
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        counted = dict(
            zip(kernels, threads.map(lambda name: count(program, name, options.calls), kernels), strict=True)
        )
    stored: dict[str, Counts] = json.loads(STORED.read_text(encoding="utf-8"))
    print(f"{key}: instructions of one call, {TOLERANCE:.0%} more are too many")
    slower = compare(stored.get(key, {}), counted)
    if options.update:
        stored[key] = counted
        STORED.write_text(json.dumps(stored, indent=2, sort_keys=True) + "\n", encoding="utf-8")
        print(f"stored in {STORED.relative_to(ROOT)}")
    elif key not in stored:
        print("nothing is stored for this compiler and instruction set, so nothing was compared; --update stores it")
    elif slower:
        sys.exit(f"too many instructions: {', '.join(slower)}; --update where that is meant, and say why")


def build() -> Path:
    """Compile the kernels as a benchmark, and return the program."""
    command = ["cargo", "bench", "--locked", "--package", "astrocyte-core", "--bench", "instructions", "--no-run"]
    built = subprocess.run(
        [*command, "--message-format", "json"],
        cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    messages = [json.loads(line) for line in built.stdout.splitlines()]
    programs = [
        message["executable"] for message in messages if message.get("target", {}).get("name") == "instructions"
    ]
    return Path(programs[-1])


def compiler() -> str:
    """Release and host of the compiler."""
    told = subprocess.run(["rustc", "-vV"], check=True, stdout=subprocess.PIPE, text=True).stdout  # noqa: S607 - as above
    parts = dict(line.split(": ", 1) for line in told.splitlines() if ": " in line)
    return f"rustc {parts['release']}, {parts['host']}"


def listed(program: Path) -> tuple[str, list[str]]:
    """The instruction set that the kernels choose under valgrind, and their names."""
    told = valgrind("--tool=none", str(program)).stdout
    pairs = [line.split(" ", 1) for line in told.splitlines()]
    return next(name for kind, name in pairs if kind == "simd"), [name for kind, name in pairs if kind == "kernel"]


def count(program: Path, kernel: str, calls: int) -> int:
    """Instructions of ``calls`` calls of one kernel."""
    options = (
        "--tool=callgrind",
        "--callgrind-out-file=/dev/null",
        "--collect-atstart=no",
        f"--toggle-collect={COUNTED}",
    )
    told = valgrind(*options, str(program), kernel, str(calls)).stderr
    found = re.search(r"Collected : (\d+)", told)
    # Nothing is counted where the function has another name.
    if found is None or int(found[1]) == 0:
        sys.exit(f"valgrind counted nothing for {kernel}:\n{told}")
    return int(found[1])


def valgrind(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run valgrind to its end."""
    command = ["valgrind", *arguments]
    environment = {**os.environ, "GLIBC_TUNABLES": TUNABLES}
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=SECONDS, env=environment)


def compare(stored: Counts, counted: Counts) -> list[str]:
    """Print every kernel beside what is stored; return those that take more than they may, or that are not stored."""
    slower = []
    for name, now in counted.items():
        before = stored.get(name)
        told = "not stored" if before is None else f"{before:>12,} stored  {now / before - 1:+.2%}"
        if before is None or now > before * (1 + TOLERANCE):
            slower.append(name)
        print(f"  {name:<16} {now:>12,}  {told}")
    return slower


if __name__ == "__main__":
    main()
