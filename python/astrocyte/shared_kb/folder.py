"""The Markdown files of a folder, read without leaving it."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from astrocyte.shared_kb.digests import digest

# A document for people; larger files are generated.
MOST_FILE_BYTES = 1 << 20
MOST_FILES = 10_000
MOST_TOTAL_BYTES = 256 << 20
MOST_DEPTH = 32
# With the other metadata of a memory, a path has to fit into its 4,096 bytes.
MOST_PATH_BYTES = 512
SUFFIXES = (".md", ".markdown")
# Folders of tools. Other hidden folders are read: decisions are often kept in one.
LEFT_OUT = frozenset({".git", ".hg", ".svn", ".venv", "venv", "node_modules", "__pycache__", ".tox", ".cache"})
# Generated indexes describe the documents, and are none.
INDEX_NAME = "index.md"
# A symbolic link in the place of a file or folder is not followed, and a pipe does not block.
_FILE_FLAGS = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
_FOLDER_FLAGS = _FILE_FLAGS | getattr(os, "O_DIRECTORY", 0)


class FolderTooLargeError(ValueError):
    """The folder has more or larger files than can be indexed."""


class UnreadableFileError(ValueError):
    """A file is too large, not UTF-8, or not a file."""


@dataclass(slots=True)
class Survey:
    """The files of a folder.

    Attributes:
        hashes: Digest of each file by its path.
        problems: Sentence for each file that cannot be read.
        ignored: Paths that were left out: symbolic links, generated indexes and empty files.
    """

    hashes: dict[str, str] = field(default_factory=dict)
    problems: dict[str, str] = field(default_factory=dict)
    ignored: list[str] = field(default_factory=list)


class Folder:
    """A folder. Neither symbolic links nor ``..`` lead out of it.

    Args:
        root: The folder itself, which can be reached by a link.

    Raises:
        NotADirectoryError: It is no folder.
    """

    def __init__(self, root: Path) -> None:
        self.root = root.resolve(strict=True)
        if not self.root.is_dir():
            raise NotADirectoryError(f"{root} is not a folder")

    def survey(self) -> Survey:
        """Find and digest the files.

        Raises:
            FolderTooLargeError: There are more than `MOST_FILES` files or `MOST_TOTAL_BYTES` bytes.
        """
        found = Survey()
        total = 0
        for path in self.paths(found):
            try:
                data = self._data(path)
            except (OSError, UnreadableFileError) as error:
                found.problems[path] = _sentence(error)
                continue
            total += len(data)
            if total > MOST_TOTAL_BYTES:
                raise FolderTooLargeError(f"{self.root} has more than {MOST_TOTAL_BYTES:,} bytes of Markdown")
            if data.strip():
                found.hashes[path] = digest(data)
            else:
                found.ignored.append(path)
        return found

    def paths(self, survey: Survey | None = None) -> list[str]:
        """Paths of the Markdown files, sorted, with slashes; what is left out is added to the survey.

        Raises:
            FolderTooLargeError: There are more than `MOST_FILES`.
        """
        survey = Survey() if survey is None else survey
        paths = []
        for path in self._walk("", MOST_DEPTH, survey):
            paths.append(path)
            if len(paths) > MOST_FILES:
                raise FolderTooLargeError(f"{self.root} has more than {MOST_FILES:,} Markdown files")
        return sorted(paths)

    def stamps(self) -> dict[str, tuple[int, int, int]]:
        """Time of change, size and inode of each file: they differ if a file was changed."""
        found = {}
        for path in self.paths():
            try:
                known = os.lstat(self.root / path)
            except OSError:
                continue
            found[path] = (known.st_mtime_ns, known.st_size, known.st_ino)
        return found

    def text(self, path: str) -> tuple[str, str]:
        """The text of a file and its digest. Line ends become line feeds.

        Raises:
            OSError: It cannot be opened.
            UnreadableFileError: It is too large, not UTF-8, or not a file.
        """
        data = self._data(path)
        text = data.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
        return text, digest(data)

    def _walk(self, inside: str, depth: int, survey: Survey) -> Iterator[str]:
        try:
            folder = self._open_folder(inside)
        except OSError as error:
            survey.problems[inside or "."] = _sentence(error)
            return
        try:
            with os.scandir(folder) as scan:
                entries = sorted(scan, key=lambda entry: entry.name)
            # The kinds are asked for while the folder is open: names are looked up in it.
            kinds = [_kind(entry) for entry in entries]
        finally:
            os.close(folder)
        for entry, kind in zip(entries, kinds, strict=True):
            path = f"{inside}/{entry.name}" if inside else entry.name
            is_document = entry.name.lower().endswith(SUFFIXES)
            if kind == "folder" and entry.name not in LEFT_OUT:
                if depth:
                    yield from self._walk(path, depth - 1, survey)
                else:
                    survey.problems[_shown(path)] = f"is deeper than {MOST_DEPTH} folders"
            elif kind == "link" and (is_document or "." not in entry.name):
                survey.ignored.append(_shown(path))
            elif kind != "folder" and is_document:
                yield from self._document(path, entry.name, survey)

    @staticmethod
    def _document(path: str, name: str, survey: Survey) -> Iterator[str]:
        if name.lower() == INDEX_NAME:
            survey.ignored.append(_shown(path))
        elif not path.isprintable() or _shown(path) != path:
            survey.problems[_shown(path)] = "has a name with characters that are not printable UTF-8"
        elif len(path.encode()) > MOST_PATH_BYTES:
            survey.problems[path] = f"has a path of more than {MOST_PATH_BYTES} bytes"
        else:
            yield path

    def _open_folder(self, path: str) -> int:
        """Open a folder below the root, one name after the other, so that no link is followed."""
        opened = os.open(self.root, _FOLDER_FLAGS)
        for name in filter(None, path.split("/")):
            try:
                if name in {".", ".."}:
                    raise NotADirectoryError(f"{path} leads out of the folder")
                below = os.open(name, _FOLDER_FLAGS, dir_fd=opened)
            finally:
                os.close(opened)
            opened = below
        return opened

    def _data(self, path: str) -> bytes:
        """The bytes of a file: UTF-8 without NUL, and no more than may be."""
        inside, _, name = path.rpartition("/")
        folder = self._open_folder(inside)
        try:
            opened = os.open(name, _FILE_FLAGS, dir_fd=folder)
        finally:
            os.close(folder)
        with os.fdopen(opened, "rb") as file:
            known = os.fstat(file.fileno())
            if not stat.S_ISREG(known.st_mode):
                raise UnreadableFileError("is not a file")
            # It may grow while it is read.
            data = file.read(MOST_FILE_BYTES + 1)
        if len(data) > MOST_FILE_BYTES:
            raise UnreadableFileError(f"has more than {MOST_FILE_BYTES:,} bytes; split it")
        try:
            data.decode()
        except UnicodeDecodeError as error:
            raise UnreadableFileError(f"is not UTF-8, by its byte {error.start:,}; convert it") from None
        if b"\0" in data:
            raise UnreadableFileError("has a NUL character; remove it")
        return data


def _kind(entry: os.DirEntry[str]) -> str:
    if entry.is_symlink():
        return "link"
    return "folder" if entry.is_dir(follow_symlinks=False) else "file"


def _shown(path: str) -> str:
    """A path as it can be printed: bytes that are not UTF-8 are replaced."""
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _sentence(error: Exception) -> str:
    return (error.strerror or "cannot be read") if isinstance(error, OSError) else str(error)
