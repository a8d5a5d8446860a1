"""The refresh token of a source, as its endpoint last gave it: a file of mode 0600 that survives a crash."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

# A token of the largest known providers has some 2,000 characters.
MOST_BYTES = 65_536


class TokenFile:
    """Keeps the replacement of a first refresh token.

    Args:
        path: The file; None keeps it in this process only.
        first: The refresh token of the settings. The file holds a hash of it, so that another one in the settings wins.
    """

    def __init__(self, path: Path | None, first: str) -> None:
        self._path = path
        self._first = first
        self._of = hashlib.sha256(first.encode()).hexdigest()
        self._token = self._kept() or first

    @property
    def token(self) -> str:
        """The current refresh token."""
        return self._token

    def replace(self, token: str) -> None:
        """Keep a new token; it is on disk when this returns. Blocks.

        Raises:
            OSError: It could not be written; the token is current in this process nevertheless.
        """
        self._token = token
        if self._path is None:
            return
        self._path.parent.mkdir(mode=0o700, exist_ok=True)
        beside = self._path.with_suffix(".new")
        # Left by a crash; its mode could be another's choice.
        beside.unlink(missing_ok=True)
        file = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            os.write(file, json.dumps({"first": self._of, "token": token}).encode())
            os.fsync(file)
        finally:
            os.close(file)
        beside.replace(self._path)
        directory = os.open(self._path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)

    def _kept(self) -> str | None:
        """The token of the file, unless it replaced another first one."""
        if self._path is None:
            return None
        try:
            with self._path.open("rb") as file:
                kept = json.loads(file.read(MOST_BYTES))
            return str(kept["token"]) if kept["first"] == self._of else None
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError):
            # It is replaced whole, so this is no crash; the settings may still have a token that works.
            return None
