"""Records and links of graph stores: what callers made of a bank's entity graph, and which entities are one."""

from __future__ import annotations

from collections.abc import Sequence

from astrocyte.model import Entity, Metadata
from astrocyte.pipelines.index.rows import metadata_pairs
from astrocyte.providers.storage import EntityRecord, LinkRecord
from astrocyte.stores.following import FollowedEntity, FollowedLink
from astrocyte.stores.graph.entity_graph import RESERVED_TYPES


def item_id(key: int) -> str:
    """The id of a record or a link."""
    return f"{key:x}"


def records_of(entities: Sequence[FollowedEntity], name: str) -> list[EntityRecord]:
    """The records of entities, in the bank of that name."""
    return [
        EntityRecord(
            item_id(one.key),
            name,
            one.entity.entity_id,
            one.entity.entity_type,
            one.entity.name,
            one.entity.aliases,
            tuple(dict.fromkeys(Entity(name).folded for name in one.entity.names)),
            one.alias_of,
            _typed(one.entity.metadata),
        )
        for one in entities
    ]


def links_of_callers(links: Sequence[FollowedLink], name: str) -> list[LinkRecord]:
    """The links of callers, in the bank of that name."""
    return [
        LinkRecord(
            item_id(key),
            name,
            link.entity_a,
            link.entity_b,
            link.link_type,
            link.evidence,
            link.confidence,
            link.created_at,
            link.valid_from,
            link.valid_until,
            link.link_type not in RESERVED_TYPES,
            _typed(link.metadata),
        )
        for key, link in links
    ]


def _typed(metadata: Metadata) -> dict[str, str]:
    return dict(metadata_pairs(metadata))
