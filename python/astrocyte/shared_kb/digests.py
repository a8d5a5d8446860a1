"""Digests of paths, files and texts."""

from __future__ import annotations

import hashlib

# Part of each digest of a file: a change of how files are read makes all files be indexed again.
FORMAT = b"1\n"
# 128 bits: no two files of a bank have the same digest by chance.
HEX_DIGITS = 32
# Letters only, because numbers in metadata can look like personal data.
_LETTERS = str.maketrans("0123456789abcdef", "abcdefghijklmnop")


def digest(data: bytes) -> str:
    """The digest of bytes: 32 letters from a to p."""
    return hashlib.sha256(FORMAT + data).hexdigest()[:HEX_DIGITS].translate(_LETTERS)


def path_digest(folder: str, path: str) -> str:
    """The digest of a path in a folder. It names a file where a barrier redacts its path."""
    return digest(f"{folder}\n{path}".encode())
