"""Scans of the files of a data directory for words that must be in none of them."""

from __future__ import annotations

import re
from pathlib import Path


def files_with(folder: Path, word: str) -> list[str]:
    """The names of the files below a folder that hold a word, in any case and in both encodings of a database file."""
    pattern = re.compile(re.escape(word.encode()) + b"|" + re.escape(word.encode("utf-16-le")), re.IGNORECASE)
    return [path.name for path in sorted(folder.rglob("*")) if path.is_file() and pattern.search(path.read_bytes())]
