"""What the machine has that settings are measured by."""

from __future__ import annotations

import os
from pathlib import Path

# The limit of this process's control group, second and first version; "max" or a huge number where there is none.
CGROUP_FILES = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))


def memory_limit(cgroup_files: tuple[Path, ...] = CGROUP_FILES) -> int:
    """Bytes of memory that this process may use: the machine's, or less where its control group says so."""
    limit = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for file in cgroup_files:
        try:
            text = file.read_text(encoding="ascii").strip()
        except OSError:
            continue
        if text.isdecimal():
            limit = min(limit, int(text))
    return limit
