"""Removing what ``secure_delete`` leaves behind.

SQLite zeroes a cell that it deletes. But when it balances a B-tree it moves cells to a neighbouring page and may leave
their old bytes in the unallocated gap of the page they came from; deleting the row later zeroes only the place where
it is by then. So after an erasure every page of the database file is looked at, a block at a time, with the log empty
and writers shut out, and a gap that is not zero is zeroed. Between two blocks others may write: what was erased has no
cell left that a balance could move, so it cannot come back into a block that is done. Nothing reads a gap, so a reader
beside this, or a crash within it, does no harm.

Source:
    https://www.sqlite.org/fileformat2.html, section 1.6, for the layout of a B-tree page.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

# Bytes read at once; a multiple of every page size.
BLOCK_BYTES = 4 << 20
# The first page begins with the file's header.
FILE_HEADER_BYTES = 100
# First byte of a B-tree page: interior index, interior table, leaf index, leaf table; interior headers are longer.
_HEADER_BYTES = {2: 12, 5: 12, 10: 8, 13: 8}
# An overflow page begins with the number of the next, so from this number on it could be taken for a B-tree page.
PAGES_LIMIT = 2 << 24


class Scrubber:
    """Keeps the database file open: closing any descriptor of it would drop the locks that SQLite holds on it."""

    def __init__(self, path: Path, page_size: int) -> None:
        self._fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        self._page_size = page_size

    @property
    def usable(self) -> bool:
        """True if the file is small enough that its pages can be told apart."""
        return os.fstat(self._fd).st_size // self._page_size < PAGES_LIMIT

    def run(self, start: int) -> tuple[int, int | None]:
        """Zero every gap of one block and make that durable.

        The caller has emptied the log and holds the write lock, now and not only at the first block: a page that was
        written since could bring its gap back from the log.

        Args:
            start: Where in the file the block begins: 0, or what the call before returned.

        Returns:
            How many pages had a gap to zero, and where the next block begins, None at the end of the file.
        """
        block = os.pread(self._fd, BLOCK_BYTES, start)
        pages = 0
        for offset, length in self._gaps(block, start):
            os.pwrite(self._fd, bytes(length), offset)
            pages += 1
        if pages:
            os.fsync(self._fd)
        return pages, start + len(block) if len(block) == BLOCK_BYTES else None

    def close(self) -> None:
        """Let go of the file; only after SQLite has."""
        os.close(self._fd)

    def _gaps(self, block: bytes, offset: int) -> Iterator[tuple[int, int]]:
        """Where a gap is not zero: its place in the file and its length."""
        for page in range(0, len(block), self._page_size):
            start, end = gap(block, page, first=offset + page == 0)
            if start < end and block.count(0, start, end) != end - start:
                yield offset + start, end - start


def gap(block: bytes, page: int, *, first: bool) -> tuple[int, int]:
    """The unallocated bytes of a page, between its cell pointers and its cells; empty for a page of another kind.

    Args:
        block: Whole pages.
        page: Where in the block the page begins.
        first: Whether it is the file's first page.
    """
    header = page + (FILE_HEADER_BYTES if first else 0)
    size = _HEADER_BYTES.get(block[header])
    if size is None:
        return 0, 0
    cells = int.from_bytes(block[header + 3 : header + 5], "big")
    content = int.from_bytes(block[header + 5 : header + 7], "big") or 1 << 16
    return header + size + 2 * cells, page + content
