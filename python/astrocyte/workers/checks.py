"""Refuses at the start what several processes on one data directory cannot share yet."""

from __future__ import annotations

from astrocyte.config import Settings
from astrocyte.providers.registry import SQLITE
from astrocyte.wiring.shared_store import refused

UNIX_PREFIX = "unix:"
REMEDY = "set server.workers to 1, or change this"


def check_workers(settings: Settings) -> None:
    """Refuse settings that several processes would disagree about.

    Raises:
        ConfigError: There is one; the first is named.
    """
    if settings.store.backend != SQLITE:
        raise settings.refusal(("store", "backend"), "workers share a SQLite store; start one process for each server")
    if settings.server.host.startswith(UNIX_PREFIX):
        raise settings.refusal(("server", "host"), f"workers cannot share a Unix socket; {REMEDY}")
    for path, problem in refused(settings):
        raise settings.refusal(path, f"{problem}; {REMEDY}")
