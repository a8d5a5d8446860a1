"""Ingest sources: how each of them is."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class SourceState(StrEnum):
    """The state of a source: it waits for messages, stores some, rests after a failure, or does not run."""

    WAITING = "waiting"
    RUNNING = "running"
    RESTING = "resting"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class SourceInfo:
    """An ingest source of the configuration, and how it is.

    ``target`` is its bank or the template of its banks. ``healthy`` is False after a failure that is not the sender's,
    until a message is stored; ``detail`` is then the failure's reason. Counts are of messages since the server
    started: ``stored``, ``duplicates`` that were stored before, ``refused`` for what they are, and ``failed`` for
    reasons of the server. ``lag`` is the number of messages that wait at the source, None where it is not known.
    """

    source_id: str
    type: str
    driver: str
    target: str
    state: SourceState
    healthy: bool
    detail: str = ""
    stored: int = 0
    duplicates: int = 0
    refused: int = 0
    failed: int = 0
    lag: int | None = None
    last_stored_at: datetime | None = None
