"""Index rows of versions: one deterministic function per indexed part of a memory."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from functools import lru_cache

from astrocyte.core import Row
from astrocyte.model import Metadata, MetadataValue
from astrocyte.pipelines.index.turn_kinds import is_address, is_question, is_role
from astrocyte.pipelines.query.time_windows import DAY_MS, EPOCH
from astrocyte.stores.records import NewMemory, VersionRecord

# Raised with every change of what is indexed of a memory: checkpoints that were written before are not used then.
RECIPE = 3
ID_PREFIX = "mem_"
ID_BYTES = 16
ID_CHARS = len(ID_PREFIX) + 2 * ID_BYTES
# The labels by which the core knows who said it, by whole and by first name, and what kind of turn it is; see
# rust_core/core/src/api/turns.rs. Values of metadata begin with a letter there, so that none is like them.
SPEAKER = "speaker"
WHOLE_NAME, FIRST_NAME = "@", "~"
QUESTION, ADDRESS = ("turn", "@question"), ("turn", "@address")
# English and independent of the locale: the index must not change with the machine.
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)


@lru_cache(maxsize=4096)
def _words_of_day(day: int) -> str:
    date = EPOCH + timedelta(days=day)
    return f"{DAYS[date.weekday()]} {date.day} {MONTHS[date.month - 1]} {date.year}"


def date_words(milliseconds: int) -> str:
    """The UTC day in words: ``Monday 8 May 2023``."""
    return _words_of_day(milliseconds // DAY_MS)


def indexed_text(text: str, speaker: str | None, occurred_at: int | None) -> str:
    """The text of the keyword arm: speaker, text, and the day it happened in words."""
    if speaker:
        text = f"{speaker} {text}"
    return text if occurred_at is None else f"{text} {date_words(occurred_at)}"


def embedded_text(text: str, speaker: str | None) -> str:
    """The text of the semantic arm: the text, with its speaker before it."""
    return f"{speaker}: {text}" if speaker else text


def id_to_bytes(memory_id: str) -> bytes | None:
    """The sixteen bytes of a memory id, or None if it does not have the form of one."""
    if len(memory_id) != ID_CHARS or not memory_id.startswith(ID_PREFIX):
        return None
    try:
        identity = bytes.fromhex(memory_id[len(ID_PREFIX) :])
    except ValueError:
        return None
    # Space between digits is passed over.
    return identity if len(identity) == ID_BYTES else None


def bytes_to_id(identity: bytes) -> str:
    """The memory id of sixteen bytes."""
    return f"{ID_PREFIX}{identity.hex()}"


def metadata_pairs(metadata: Metadata) -> list[tuple[str, str]]:
    """Pairs for filters by equality in type and value."""
    return [(key, _typed(value)) for key, value in metadata.items()]


def speaker_label(name: str) -> tuple[str, str]:
    """The label of what a speaker said, by the name in lower case."""
    return SPEAKER, f"{WHOLE_NAME}{name}"


def _typed(value: MetadataValue) -> str:
    match value:
        case None:
            return "n"
        case bool():
            return "t" if value else "f"
        case str():
            return f"s{value}"
        case int():
            return f"i{value}"
        case _:
            # -0.0 equals 0.0.
            return f"d{value + 0.0!r}"


def row_of(version: VersionRecord) -> Row:
    """The index row of a version."""
    memory = version.memory
    identity = id_to_bytes(memory.memory_id)
    if identity is None:
        raise ValueError(f"row {version.row_key} has a memory id of unknown format")
    speaker, occurred_at = memory.speaker, memory.occurred_at
    return Row(
        version.row_key,
        identity,
        memory.content_hash,
        indexed_text(memory.content, speaker, occurred_at),
        memory.vector,
        tokens=memory.token_count,
        known_from=version.known_from,
        retained_at=version.retained_at,
        known_until=version.known_until,
        occurred_at=occurred_at,
        valid_from=memory.valid_from,
        valid_until=memory.valid_until,
        fact_type=memory.fact_type,
        layer=memory.memory_layer,
        tags=memory.tags,
        metadata=_labels(memory),
        session=memory.session_id,
        chunks=list(_chunks(version)) if memory.chunks else (),
    )


def _labels(memory: NewMemory) -> list[tuple[str, str]]:
    labels = metadata_pairs(memory.metadata) if memory.metadata else []
    if memory.speaker:
        labels += _turn_labels(memory.speaker.lower(), memory)
    return labels


def _turn_labels(speaker: str, memory: NewMemory) -> Iterator[tuple[str, str]]:
    yield speaker_label(speaker)
    if is_role(speaker):
        # An assistant's questions are as good an answer as what is said to them.
        return
    first, *others = speaker.split() or [""]
    if others:
        yield SPEAKER, f"{FIRST_NAME}{first}"
    if memory.session_id is not None and is_question(memory.content):
        yield QUESTION
    if is_address(memory.content):
        yield ADDRESS


def _chunks(version: VersionRecord) -> Iterator[tuple[str, bytes | None, int]]:
    memory = version.memory
    for chunk in memory.chunks:
        yield indexed_text(chunk.text, memory.speaker, memory.occurred_at), chunk.vector, chunk.tokens


def event_time(version: VersionRecord) -> int:
    """The time of the event, or of the storage if that is unknown."""
    occurred_at = version.memory.occurred_at
    return version.retained_at if occurred_at is None else occurred_at
