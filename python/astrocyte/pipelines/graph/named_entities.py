"""The entities that a version of a memory names, under the ids that they have in the entity graph."""

from __future__ import annotations

from astrocyte.pipelines.external_stores.items import NamedEntity
from astrocyte.pipelines.graph.derivation import LEFT_OUT, derive_or_none
from astrocyte.stores.graph.entity_graph import SourceVersion
from astrocyte.stores.records import VersionRecord


def named_entities(version: VersionRecord) -> list[NamedEntity]:
    """The entities of a version for external graph stores, each spelling once.

    Beside those of the graph these are dates and identifiers that the memory was retained with: they are no nodes of
    the graph, but a question that has one finds the memory.
    """
    memory = version.memory
    # The key of the bank is of no account: nothing is stored.
    derived = derive_or_none(SourceVersion(version.row_key, 0, memory.content, memory.speaker, memory.entities))
    found = [NamedEntity(one.entity_id, one.name, one.entity_type) for one in derived.mentions]
    found += [NamedEntity(one.id, one.name, one.entity_type) for one in memory.entities if one.entity_type in LEFT_OUT]
    return list({(one.entity_id, one.folded): one for one in reversed(found)}.values())[::-1]
