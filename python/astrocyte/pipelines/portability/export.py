"""Export: the lines of an archive, a few memories at a time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from concurrent.futures import Executor
from contextlib import aclosing
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from astrocyte.model import ArchiveCursor, Bank, Grant
from astrocyte.pipelines.portability.archive import (
    Chain,
    Parts,
    footer,
    grant_line,
    header,
    tombstone_line,
    version_line,
)
from astrocyte.pipelines.portability.graph_lines import Tell, entity_lines, link_lines
from astrocyte.pipelines.portability.knowledge_lines import item_lines
from astrocyte.stores.graph.entity_graph import EntityGraphStore
from astrocyte.stores.knowledge.items import ItemKind, KnowledgeStore
from astrocyte.stores.protocols import MemoryStore
from astrocyte.stores.records import VersionRecord

# Memories that are read at once.
BATCH_MEMORIES = 256
# Items of knowledge that are read at once, with all their revisions.
BATCH_ITEMS = 16
# Bytes of a part: far below the limits of messages.
PART_BYTES = 128 * 1_024


@dataclass(frozen=True, slots=True)
class Screening:
    """The rules for what leaves: versions that may, as they may, and other texts without what is withheld."""

    versions: Callable[[list[VersionRecord]], list[VersionRecord]]
    texts: Tell


class ExportPipeline:
    """Reads banks as archives.

    Args:
        store: The truth.
        knowledge: Observations, mental models, directives and wiki pages.
        graph: The entity graphs.
        executor: Where reading and encoding run.
        provider: Name and version of this server, for the header.
    """

    def __init__(
        self,
        store: MemoryStore,
        knowledge: KnowledgeStore,
        graph: EntityGraphStore,
        executor: Executor,
        provider: str,
    ) -> None:
        self._store = store
        self._knowledge = knowledge
        self._graph = graph
        self._executor = executor
        self._provider = provider

    async def run(
        self,
        bank: Bank,
        parts: Parts,
        grants: Sequence[Grant],
        after: ArchiveCursor | None,
        exported_at: datetime,
        screening: Screening,
    ) -> AsyncIterator[bytes]:
        """The archive in parts, from the start or after a place.

        Args:
            bank: As it is now; its position is that of the archive.
            parts: What the archive has.
            grants: The grants on the bank.
            after: The place of an interrupted export.
            exported_at: The time in the header.
            screening: What may leave.
        """
        run = asyncio.get_running_loop().run_in_executor
        position = bank.position if after is None else after.position
        chain = Chain() if after is None else Chain(after.digest, after.lines)
        memories = 0 if after is None else after.memories
        if after is None:
            stats = await run(self._executor, self._store.bank_stats, bank)
            yield _chained(
                chain,
                [
                    header(
                        bank.bank_id,
                        parts,
                        exported_at=exported_at,
                        provider=self._provider,
                        memories=stats.memory_count,
                        position=position,
                    )
                ],
            )
        last = "" if after is None else after.memory_id
        while True:
            ids, lines, found = await run(self._executor, self._memories, bank, parts, last, position, screening)
            memories += found
            for part in _parts(chain, lines):
                yield part
            if not ids:
                break
            last = ids[-1]
        if parts.forgotten:
            last = ""
            while tombstones := await run(self._executor, self._tombstones, bank, last):
                yield _chained(chain, [tombstone_line(*one) for one in tombstones])
                last = tombstones[-1][0]
        if grants:
            yield _chained(chain, [grant_line(one) for one in grants])
        async with aclosing(self._other_lines(bank, parts, position, screening.texts)) as batches:
            async for lines in batches:
                for part in _parts(chain, lines):
                    yield part
        yield footer(chain, memories)

    async def _other_lines(
        self, bank: Bank, parts: Parts, position: int, tell: Tell
    ) -> AsyncGenerator[list[bytes], None]:
        """The lines of the graph and of knowledge, a few rows at a time."""
        run = partial(asyncio.get_running_loop().run_in_executor, self._executor)
        if parts.graph:
            name = ""
            while entities := await run(partial(self._graph.archived_entities, bank, after=name, limit=BATCH_MEMORIES)):
                yield entity_lines(entities, tell)
                name = entities[-1].entity_id
            key = 0
            while True:
                links, key = await run(partial(self._graph.archived_links, bank, after=key, limit=BATCH_MEMORIES))
                if not key:
                    break
                yield link_lines(links, tell)
        wanted = {
            ItemKind.OBSERVATION: parts.observations,
            ItemKind.MENTAL_MODEL: parts.mental_models,
            ItemKind.DIRECTIVE: parts.directives,
            ItemKind.WIKI_PAGE: parts.wiki_pages,
        }
        for kind in (kind for kind, is_wanted in wanted.items() if is_wanted):
            key = 0
            while True:
                items, key = await run(
                    partial(self._knowledge.histories, bank, kind, after=key, limit=BATCH_ITEMS, at_position=position)
                )
                if not key:
                    break
                yield list(item_lines(items, tell))

    def _memories(
        self, bank: Bank, parts: Parts, after: str, position: int, screening: Screening
    ) -> tuple[list[str], list[bytes], int]:
        """The next memories: their ids, the lines of their versions, and how many of them have lines."""
        ids = self._store.memory_ids(bank, after=after, limit=BATCH_MEMORIES, at_position=position)
        if not ids:
            return [], [], 0
        records = self._store.version_records(bank, ids, at_position=position)
        if not parts.versions:
            records = [one for one in records if one.known_until is None or one.archived_at is not None]
        records = screening.versions(records)
        records.sort(key=lambda record: (record.memory.memory_id, record.version))
        return ids, [version_line(one, parts) for one in records], len({one.memory.memory_id for one in records})

    def _tombstones(self, bank: Bank, after: str) -> list[tuple[str, int]]:
        return self._store.tombstones(bank, after=after, limit=BATCH_MEMORIES)


def _chained(chain: Chain, lines: Sequence[bytes]) -> bytes:
    """Lines as one part, added to the chain."""
    for line in lines:
        chain.add(line)
    return b"".join(lines)


def _parts(chain: Chain, lines: Sequence[bytes]) -> list[bytes]:
    """Lines as parts of at most `PART_BYTES`, cut anywhere, added to the chain."""
    data = _chained(chain, lines)
    return [data[start : start + PART_BYTES] for start in range(0, len(data), PART_BYTES)]
