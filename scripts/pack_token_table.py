"""Packs a tiktoken table into the form that the token counter bundles.

Usage: ``python scripts/pack_token_table.py cl100k_base.tiktoken rust_core/text/src/tokens/cl100k_base.bin``

The input holds one token a line, "base64 rank", and is published with OpenAI's tiktoken (MIT licence). The output holds
each token in order of rank: one byte of length, then the bytes.
"""

from __future__ import annotations

import base64
import hashlib
import sys
from pathlib import Path

# The table as published; another one would count otherwise than the models do.
SHA256 = "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7"


def pack(table: bytes) -> bytes:
    """Returns the packed form of ``table``; raises ValueError unless it is the published cl100k_base."""
    digest = hashlib.sha256(table).hexdigest()
    if digest != SHA256:
        message = f"the table has SHA-256 {digest}, expected {SHA256}: get cl100k_base.tiktoken as published"
        raise ValueError(message)
    rows = [line.split() for line in table.splitlines()]
    if [int(rank) for _, rank in rows] != list(range(len(rows))):
        message = "the ranks are not 0, 1, 2, ...: the packed form could not hold them"
        raise ValueError(message)
    tokens = [base64.b64decode(token) for token, _ in rows]
    return b"".join(bytes([len(token)]) + token for token in tokens)


if __name__ == "__main__":
    source, target = map(Path, sys.argv[1:3])
    target.write_bytes(pack(source.read_bytes()))
