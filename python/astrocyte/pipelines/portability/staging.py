"""A received archive in an unnamed file: verified as a whole, then read memory by memory."""

from __future__ import annotations

import errno
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from astrocyte.errors import DiskFull, MessageTooLarge, StoreError, ValidationError
from astrocyte.pipelines.portability.archive import (
    FOOTER_KEY,
    MOST_LINE_BYTES,
    PLAIN_VERSION,
    SECTIONS,
    VERSION,
    VERSION_KEY,
    Chain,
    parsed,
    wrong,
)
from astrocyte.pipelines.portability.knowledge_lines import ArchivedRevision
from astrocyte.pipelines.portability.reading import ArchivedVersion, Record, plain_record, record_of
from astrocyte.stores.knowledge.items import ItemHistory

# All versions of a memory, oldest first.
History = list[ArchivedVersion]


@dataclass(frozen=True, slots=True)
class ArchivedItem:
    """An item of knowledge with its revisions, and the number of its first line."""

    line: int
    history: ItemHistory


@dataclass(frozen=True, slots=True)
class Rejected:
    """A line of an archive without checksum that cannot be read."""

    line: int
    memory_id: str
    error: str


@dataclass(frozen=True, slots=True)
class Verified:
    """A whole archive: its memories, and the bytes of their last versions."""

    memories: int
    content_bytes: int


class Staging:
    """The bytes of an archive. Not safe for several threads at once.

    Args:
        folder: Where the file is; None for the folder of temporary files. It has no name, so nothing of it is left when
            it is closed, or when the process dies.
        most_bytes: Size that is refused.
    """

    def __init__(self, folder: Path | None, most_bytes: int) -> None:
        self.size = 0
        self._most_bytes = most_bytes
        self._plain = False
        self._provider = ""
        self._sections: frozenset[str] = frozenset()
        # Closed by `close`.
        self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115

    def add(self, data: bytes) -> None:
        """Take the next bytes.

        Raises:
            MessageTooLarge: The archive is larger than allowed.
            DiskFull, StoreError: The file cannot be written.
        """
        self.size += len(data)
        if self.size > self._most_bytes:
            raise MessageTooLarge(
                f"the archive has more than {self._most_bytes:,} bytes (limits.archive_bytes); nothing was stored",
                metadata={"limit": str(self._most_bytes)},
            )
        try:
            self._file.write(data)
        except OSError as error:
            kind = DiskFull if error.errno == errno.ENOSPC else StoreError
            raise kind(f"the archive cannot be kept while it is received: {error.strerror}") from error

    def verify(self) -> Verified:
        """Read the whole archive, and check its form, its counts and its checksum.

        Raises:
            ValidationError: It is truncated, was changed, or has another format.
        """
        lines = self._lines()
        first = next(lines, None)
        if first is None:
            raise wrong("the archive is empty")
        head = self._header(first)
        return self._verify_plain(head, lines) if self._plain else self._verify(first, lines)

    def records(self) -> Iterator[History | ArchivedItem | Record | Rejected]:
        """The histories of memories and of items, and the other rows of a verified archive, in its order."""
        history: History = []
        revisions: list[ArchivedRevision] = []
        for number, line in enumerate(self._lines(), start=1):
            if number == 1:
                continue
            record = self._record(line, number)
            if history and not (isinstance(record, ArchivedVersion) and history[-1].memory_id == record.memory_id):
                yield history
                history = []
            if revisions and not (isinstance(record, ArchivedRevision) and _same_item(revisions[-1], record)):
                yield _item(revisions)
                revisions = []
            if isinstance(record, ArchivedVersion):
                history.append(record)
            elif isinstance(record, ArchivedRevision):
                revisions.append(record)
            elif record is not None:
                yield record
        if history:
            yield history
        if revisions:
            yield _item(revisions)

    def close(self) -> None:
        """Drop the file."""
        self._file.close()

    def _lines(self) -> Iterator[bytes]:
        self._file.seek(0)
        while line := self._file.readline(MOST_LINE_BYTES):
            if len(line) == MOST_LINE_BYTES:
                raise wrong(f"a line has more than {MOST_LINE_BYTES:,} bytes")
            yield line

    def _header(self, line: bytes) -> dict[str, Any]:
        head = parsed(line, 1)
        version = head.get(VERSION_KEY)
        if version not in {PLAIN_VERSION, VERSION} or isinstance(version, bool):
            raise wrong(
                f"the first line is no header of version {PLAIN_VERSION} or {VERSION}, got {ascii(version)[:64]} as "
                f"{VERSION_KEY}"
            )
        self._plain = version == PLAIN_VERSION
        provider, sections = head.get("provider", ""), head.get("sections", [])
        if not isinstance(provider, str) or not isinstance(sections, list):
            raise wrong("the header has a value of another type")
        self._provider = provider[:64] or "unknown"
        unknown = [one for one in sections if one not in SECTIONS]
        if unknown:
            raise wrong(
                f"the archive has the section {ascii(unknown[0])[:64]}, which this version cannot import; expected any "
                f"of {', '.join(SECTIONS)}"
            )
        self._sections = frozenset(sections)
        return head

    def _verify(self, first: bytes, lines: Iterator[bytes]) -> Verified:
        chain, order = Chain(), _Order()
        chain.add(first)
        for number, line in enumerate(lines, start=2):
            if not line.endswith(b"\n"):
                raise wrong(f"the archive is truncated in line {number}")
            values = parsed(line, number)
            if FOOTER_KEY in values:
                self._check_footer(values, chain, order.memories)
                if next(lines, None) is not None:
                    raise wrong("the archive goes on after its footer")
                return order.end()
            try:
                record = record_of(values, number)
            except ValidationError as error:
                raise wrong(f"line {number}: {error.message}") from None
            if values["section"] not in self._sections:
                raise wrong(f"line {number} is of a section that the header does not name")
            order.add(record)
            chain.add(line)
        raise wrong("the archive has no footer: it is truncated")

    @staticmethod
    def _check_footer(values: dict[str, Any], chain: Chain, memories: int) -> None:
        if values.get("sha256") != chain.digest.hex():
            raise wrong("the checksum of the archive does not match: it was changed or damaged")
        if (values.get("lines"), values.get("memory_count")) != (chain.lines, memories):
            raise wrong("the counts in the footer are not those of the archive")

    def _verify_plain(self, head: dict[str, Any], lines: Iterator[bytes]) -> Verified:
        """Check an archive of version 1, whose only check is the number of its memories."""
        expected = head.get("memory_count")
        if not isinstance(expected, int) or isinstance(expected, bool) or not isinstance(head.get("bank_id"), str):
            raise wrong("the header lacks bank_id or memory_count")
        count = size = 0
        for number, line in enumerate(lines, start=2):
            if line.strip():
                count += 1
                record = self._record(line, number)
                size += len(record.item.content.encode()) if isinstance(record, ArchivedVersion) else 0
        if count != expected:
            raise wrong(f"the header announces {expected} memories and the archive has {count}: it is incomplete")
        return Verified(count, size)

    def _record(self, line: bytes, number: int) -> Record | Rejected | None:
        """The record of a line; None for a footer or a blank line."""
        if not line.strip():
            return None
        if not self._plain:
            values = parsed(line, number)
            return None if FOOTER_KEY in values else record_of(values, number)
        memory_id = ""
        try:
            values = parsed(line, number)
            memory_id = str(values.get("id", ""))[:64]
            return plain_record(values, number, self._provider)
        except ValidationError as error:
            return Rejected(number, memory_id, error.message.removesuffix("; nothing was stored"))


class _Order:
    """Checks that the versions of a memory, and the revisions of an item, follow each other; counts the memories."""

    def __init__(self) -> None:
        self.memories = 0
        self._bytes = 0
        self._version: ArchivedVersion | None = None
        self._revision: ArchivedRevision | None = None

    def add(self, record: Record) -> None:
        """Check the next record."""
        if isinstance(record, ArchivedVersion):
            before = self._version
            if before is None or before.memory_id != record.memory_id:
                self.memories += 1
                self._bytes += 0 if before is None else _check_end(before)
            else:
                _check_order(before, record)
            self._version = record
        elif isinstance(record, ArchivedRevision):
            _check_revisions(self._revision, record)
            self._revision = record

    def end(self) -> Verified:
        """The counts of the whole archive."""
        last = 0 if self._version is None else _check_end(self._version)
        return Verified(self.memories, self._bytes + last)


def _same_item(one: ArchivedRevision, other: ArchivedRevision) -> bool:
    return (one.item.kind, one.item.item_id) == (other.item.kind, other.item.item_id)


def _item(revisions: Sequence[ArchivedRevision]) -> ArchivedItem:
    history = replace(revisions[-1].item, revisions=tuple(one.revision for one in revisions))
    return ArchivedItem(revisions[0].line, history)


def _check_revisions(before: ArchivedRevision | None, after: ArchivedRevision) -> None:
    """Check that a revision follows the one before it, where both are of one item."""
    if before is not None and _same_item(before, after):
        if after.revision.revision <= before.revision.revision:
            raise wrong(f"line {after.line}: the revisions of an item are not in order")
        # The topic goes with the text, which a rule for outgoing texts may have changed in one revision only.
        if replace(after.item, topic=None) != replace(before.item, topic=None):
            raise wrong(f"line {after.line}: the revisions of an item differ in scope, priority or creation")


def _check_end(last: ArchivedVersion) -> int:
    """Check that a version is the last one of its memory; returns the bytes of its content."""
    if last.known_until is not None:
        raise wrong(f"line {last.line}: the last version of a memory has an end")
    return len(last.item.content.encode())


def _check_order(before: ArchivedVersion, after: ArchivedVersion) -> None:
    """Check that one version follows the other."""
    began, ended, begins = before.known_from, before.known_until, after.known_from
    if began is None or ended is None or begins is None or not began <= ended <= begins:
        raise wrong(f"line {after.line}: the times of a memory's versions are not in order")
    if after.version <= before.version:
        raise wrong(f"line {after.line}: the versions of a memory are not in order")
