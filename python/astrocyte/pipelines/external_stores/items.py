"""Items of external stores: passages of memories, under names that are unique per server."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Literal, NamedTuple, cast

from astrocyte.model import Bank, Entity, RecallQuery
from astrocyte.pipelines.index.rows import indexed_text, metadata_pairs
from astrocyte.pipelines.query.time_windows import optional_ms
from astrocyte.pipelines.search.core_request import known_at
from astrocyte.providers.storage import Attributes, Document, EntityLink, Span, StoreFilters, VectorItem
from astrocyte.stores.records import WHOLE, VersionRecord


class NamedEntity(NamedTuple):
    """An entity that a version names: its id in the entity graph, the name as it stands there, and the type."""

    entity_id: str
    name: str
    entity_type: str

    @property
    def folded(self) -> str:
        """The name as it is looked for."""
        return Entity(self.name).folded


# Tells the entities of a version.
Naming = Callable[[VersionRecord], Sequence[NamedEntity]]


def name_of(installation: str, bank: Bank) -> str:
    """The bank's name in external stores; its key distinguishes it from a later bank of the same id."""
    return f"{installation}/{bank.tenant}/{bank.bank_id}/{bank.key:x}"


def vectors_of(versions: Sequence[VersionRecord], name: str) -> list[VectorItem]:
    """The vectors of versions: of their wholes and of their chunks."""
    return [
        VectorItem(_id(version, ordinal), name, vector, attributes)
        for version in versions
        for attributes in (_attributes(version),)
        for ordinal, vector in _vectors(version)
    ]


def documents_of(versions: Sequence[VersionRecord], name: str) -> list[Document]:
    """The texts of versions, as the keyword arm sees them: their chunks, or the whole where it is the only one."""
    documents = []
    for version in versions:
        memory, attributes = version.memory, _attributes(version)
        texts = list(enumerate(chunk.text for chunk in memory.chunks)) or [(WHOLE, memory.content)]
        for ordinal, text in texts:
            shown = indexed_text(text, memory.speaker, memory.occurred_at)
            documents.append(Document(_id(version, ordinal), name, shown, attributes))
    return documents


def links_of(versions: Sequence[VersionRecord], name: str, named: Naming) -> list[EntityLink]:
    """The entity links of versions; ``named`` tells the entities of each."""
    return [
        EntityLink(_id(version, place), name, one.entity_id, one.name, one.folded, one.entity_type, attributes)
        for version in versions
        for attributes in (_attributes(version),)
        for place, one in enumerate(named(version))
    ]


def filters_of(query: RecallQuery) -> StoreFilters:
    """A query's filter, for a store."""
    return StoreFilters(
        tags=tuple(query.tags),
        tag_match=cast("Literal['any', 'all', 'none']", str(query.tag_match)),
        fact_types=tuple(query.fact_types),
        memory_ids=tuple(query.memory_ids),
        session_id=query.session_id,
        metadata=dict(metadata_pairs(query.metadata)),
        time_range=_span(query, "time_range"),
        retained_range=_span(query, "retained_range"),
        as_of=known_at(query),
        valid_at=optional_ms(query.valid_at),
    )


def _vectors(version: VersionRecord) -> Iterator[tuple[int, bytes]]:
    memory = version.memory
    if memory.vector is not None:
        yield WHOLE, memory.vector
    for ordinal, chunk in enumerate(memory.chunks):
        if chunk.vector is not None:
            yield ordinal, chunk.vector


def _id(version: VersionRecord, ordinal: int) -> str:
    return f"{version.row_key:x}.{ordinal}"


def _attributes(version: VersionRecord) -> Attributes:
    memory = version.memory
    return Attributes(
        memory_id=memory.memory_id,
        retained_at=version.retained_at,
        known_from=version.known_from,
        known_until=version.known_until,
        occurred_at=memory.occurred_at,
        valid_from=memory.valid_from,
        valid_until=memory.valid_until,
        fact_type=memory.fact_type,
        session_id=memory.session_id,
        tags=memory.tags,
        metadata=dict(metadata_pairs(memory.metadata)),
    )


def _span(query: RecallQuery, name: Literal["time_range", "retained_range"]) -> Span | None:
    value = getattr(query, name)
    return None if value is None else (optional_ms(value.start), optional_ms(value.end))
