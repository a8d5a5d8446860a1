"""Header of every benchmark: machine, versions, build."""

from __future__ import annotations

import os
import platform
import resource
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from astrocyte.core import build_info

PROCESSORS = os.cpu_count() or 1


def describe(*packages: str, **parameters: object) -> str:
    """The machine, the build of the core, versions of ``packages``, and ``parameters``, in three lines."""
    build = build_info()
    versions = ", ".join(f"{name} {_version(name)}" for name in ("astrocyte-grpc", *packages))
    given = ", ".join(f"{name} {value}" for name, value in parameters.items())
    return (
        f"machine   {_processor()}, {PROCESSORS} threads, {platform.system()} {platform.release()}, "
        f"CPython {platform.python_version()}\n"
        f"build     core {build['version']} ({build['profile']}, {build['simd']}); {versions}\n"
        f"run       {given}"
    )


def native_float() -> str:
    """The shortest float type for which the processor has instructions of its own: bf16, f16 or f32."""
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    flags = {flag for line in lines if line.startswith(("flags", "Features")) for flag in line.split(":", 1)[1].split()}
    if flags & {"avx512_bf16", "amx_bf16", "bf16"}:
        return "bf16"
    return "f16" if flags & {"f16c", "avx512_fp16", "asimdhp"} else "f32"


def resident_bytes(pid: int | str = "self") -> int:
    """Resident memory of a process, from /proc."""
    pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def peak_resident_bytes() -> int:
    """The most resident memory that this process has had."""
    # Linux counts kibibytes.
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def processor_seconds(pid: int) -> float:
    """Time that the threads of a process, those that live, have run so far, from /proc.

    In nanoseconds since each thread last slept, where /proc/PID/stat counts ticks of 10 ms, which a call of half a
    millisecond is easily charged or spared.
    """
    tasks = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(task.read_text(encoding="ascii").split()[0]) for task in tasks) / 1e9


def waiting_seconds(pid: int) -> float:
    """Time in which the main thread of a process could have run and had no processor, so far, from /proc."""
    return int(Path(f"/proc/{pid}/task/{pid}/schedstat").read_text(encoding="ascii").split()[1]) / 1e9


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "missing"
