"""Archives for tests: exports as lines, imports of bytes."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable
from typing import Any

from astrocyte.api import Backend
from astrocyte.api.requests import ExportBank, ImportBank
from astrocyte.model import Caller, ImportProgress, ImportResult, OnConflict
from astrocyte.pipelines.portability.archive import Chain, footer

ME = Caller()


class Pieces:
    """The bytes of an archive, which may be read several times."""

    def __init__(self, data: bytes, size: int = 1_000) -> None:
        self._data = data
        self._size = size

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for start in range(0, len(self._data), self._size):
            yield self._data[start : start + self._size]


async def export(backend: Backend, bank_id: str = "b", caller: Caller = ME, **parts: Any) -> bytes:
    """The archive of a bank."""
    return b"".join([part async for part in backend.stream(caller, ExportBank(bank_id, **parts))])


async def states(
    backend: Backend, data: bytes, bank_id: str = "b", caller: Caller = ME, **options: Any
) -> list[ImportProgress]:
    """The reports of an import. ``on_conflict`` may be a word."""
    action = options.pop("on_conflict", OnConflict.SKIP)
    options["on_conflict"] = OnConflict(action) if action in set(OnConflict) else action
    return [state async for state in backend.stream(caller, ImportBank(bank_id, Pieces(data), **options))]


async def load(backend: Backend, data: bytes, bank_id: str = "b", caller: Caller = ME, **options: Any) -> ImportResult:
    """The result of an import."""
    result = (await states(backend, data, bank_id, caller, **options))[-1].result
    assert result is not None
    return result


def lines_of(data: bytes) -> list[dict[str, Any]]:
    """The lines of an archive."""
    return [json.loads(line) for line in data.splitlines()]


def archive_of(lines: Iterable[dict[str, Any]], **header: Any) -> bytes:
    """A whole archive of these lines between a header and a footer."""
    head = {"_ama_version": 2, "bank_id": "b", "sections": ["memories", "forgotten", "grants"], **header}
    chain, parts = Chain(), []
    ids: list[str] = []
    for values in (head, *lines):
        line = json.dumps(values).encode() + b"\n"
        chain.add(line)
        parts.append(line)
        if values.get("section") == "memories" and values["id"] not in ids[-1:]:
            ids.append(values["id"])
    return b"".join([*parts, footer(chain, len(ids))])


def id_of(name: object) -> str:
    """A memory id with a name in it."""
    return f"mem_{str(name).encode().hex():0>32}"


def memory_line(memory_id: str, text: str, **values: Any) -> dict[str, Any]:
    """The line of a memory with one version."""
    return {"section": "memories", "id": memory_id, "version": 1, "text": text, "content_type": "text", **values}
