"""Zip files as folders: read in place, never unpacked to the disk."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from io import BytesIO
from lzma import LZMAError
from pathlib import Path, PurePosixPath
from typing import IO
from zipfile import BadZipFile, ZipFile, ZipInfo
from zlib import error as ZlibError  # noqa: N812 - an exception

# Documents are read as a whole.
MOST_DOCUMENT_BYTES = 1 << 30
# An export with pictures has tens of thousands of entries. The table of entries is in memory.
MOST_ENTRIES = 200_000
# Text of all files together. Pictures and films, which are not read, do not count.
MOST_TEXT_BYTES = 4 << 30
TEXTS = frozenset({".json", ".jsonl", ".ndjson", ".md", ".markdown", ".txt", ".vtt", ".srt", ".mbox", ".eml"})
ENCRYPTED = 0x1


@dataclass(frozen=True, slots=True)
class Size:
    """The part of a file status that readers look at."""

    st_size: int


@dataclass(frozen=True)
class ZipPath:
    """A file or folder in a zip file, with the methods of `pathlib.Path` that readers of exports use.

    A read is bounded by the size that the zip file states: `zipfile` reads no further.
    """

    archive: ZipFile
    files: Mapping[PurePosixPath, ZipInfo]
    inner: PurePosixPath = field(default_factory=PurePosixPath)

    @property
    def name(self) -> str:
        """Last part; of the whole archive its file name."""
        return self.inner.name or Path(self.archive.filename or "").name

    @property
    def stem(self) -> str:
        """Name without suffix."""
        return PurePosixPath(self.name).stem

    @property
    def suffix(self) -> str:
        """Suffix with its dot."""
        return PurePosixPath(self.name).suffix

    @property
    def parent(self) -> ZipPath:
        """The folder that holds it."""
        return self / ".."

    @cached_property
    def below(self) -> list[PurePosixPath]:
        """Files in the folder, at any depth, relative to it, sorted."""
        depth = len(self.inner.parts)
        return sorted(PurePosixPath(*path.parts[depth:]) for path in self.files if self.inner in path.parents)

    def __truediv__(self, name: str) -> ZipPath:
        """A path in the folder; ``..`` is the folder above."""
        inner = self.inner.parent if name == ".." else self.inner / name
        return ZipPath(self.archive, self.files, inner)

    def __str__(self) -> str:
        """File name of the archive and path in it."""
        return f"{self.archive.filename}/{self.inner}" if self.inner.parts else str(self.archive.filename)

    def is_dir(self) -> bool:
        """True for a folder with files."""
        return self.inner not in self.files and bool(self.below)

    def is_file(self) -> bool:
        """True for a file."""
        return self.inner in self.files

    def glob(self, pattern: str) -> Iterator[ZipPath]:
        """Files whose path in the folder matches; a pattern has as many parts as the paths."""
        depth = len(PurePosixPath(pattern).parts)
        return (self / str(path) for path in self.below if len(path.parts) == depth and path.match(pattern))

    def rglob(self, pattern: str) -> Iterator[ZipPath]:
        """Files in the folder, at any depth, whose name matches."""
        return (self / str(path) for path in self.below if path.match(pattern))

    def relative_to(self, folder: ZipPath) -> PurePosixPath:
        """The path in a folder above."""
        return self.inner.relative_to(folder.inner)

    def stat(self) -> Size:
        """The unpacked size."""
        return Size(self.files[self.inner].file_size)

    def open(self, _: str = "rb") -> IO[bytes]:
        """The unpacked bytes as a stream."""
        return BytesIO(self.read_bytes())

    def read_bytes(self) -> bytes:
        """The unpacked bytes.

        Raises:
            ValueError: They are too many, damaged, or packed by an unknown method.
        """
        if self.stat().st_size > MOST_DOCUMENT_BYTES:
            raise ValueError(f"{self} has more than {MOST_DOCUMENT_BYTES:,} bytes; unpack the zip file first")
        try:
            return self.archive.read(self.files[self.inner])
        except (BadZipFile, NotImplementedError, EOFError, OSError, LZMAError, ZlibError) as error:
            raise ValueError(f"{self} cannot be unpacked: {error}") from None


def root_of(archive: ZipFile) -> ZipPath:
    """The folder with all files, without folders around it that hold nothing else.

    Raises:
        ValueError: There are too many files or too much text, one is encrypted, or a path leads out of the archive.
    """
    entries = [info for info in archive.infolist() if not info.is_dir()]
    if len(entries) > MOST_ENTRIES:
        raise ValueError(
            f"{archive.filename} has more than {MOST_ENTRIES:,} files; unpack it, and import a folder of it"
        )
    files: dict[PurePosixPath, ZipInfo] = {}
    for info in entries:
        path = PurePosixPath(info.filename)
        if path.is_absolute() or ".." in path.parts or "\\" in info.filename:
            raise ValueError(f"{archive.filename} has a file {info.filename!r:.100}, whose path leads out of it")
        if info.flag_bits & ENCRYPTED:
            raise ValueError(f"{archive.filename} is encrypted; unpack it first")
        # Programs of macOS put a second entry there for each file.
        if path.parts and path.parts[0] != "__MACOSX" and not path.name.startswith("."):
            files[path] = info
    text_bytes = sum(info.file_size for path, info in files.items() if path.suffix.lower() in TEXTS)
    if text_bytes > MOST_TEXT_BYTES:
        raise ValueError(
            f"{archive.filename} has more than {MOST_TEXT_BYTES:,} bytes of text; unpack it, and import parts"
        )
    root = ZipPath(archive, files)
    while len({path.parts[0] for path in root.below}) == 1 and len(root.below[0].parts) > 1:
        root = root / root.below[0].parts[0]
    return root
