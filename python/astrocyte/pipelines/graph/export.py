"""The graph as text: JSON lines or GraphML, read in pieces of one committed state each."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import fields
from datetime import datetime
from functools import partial
from typing import Any, Protocol, TypeVar
from xml.sax.saxutils import escape, quoteattr

from astrocyte.model import EntityLink, GraphEntity, GraphFormat
from astrocyte.stores.graph.entity_graph import GraphReader

T = TypeVar("T")
# Entities or links of one piece: some tens of kilobytes of text.
AT_ONCE = 200

# Attributes of GraphML and their types; other fields are text.
_NODE_TYPES = {"mention_count": "long"}
_EDGE_TYPES = {"confidence": "double"}
_NODE = tuple(field.name for field in fields(GraphEntity) if field.name not in {"id", "etag"})
_EDGE = tuple(field.name for field in fields(EntityLink) if field.name not in {"entity_a", "entity_b", "link_id"})
# What XML 1.0 cannot hold.
_CONTROLS = {code: None for code in (*range(0x20), 0x7F, 0xFFFE, 0xFFFF) if code not in {0x09, 0x0A, 0x0D}}


class Read(Protocol):
    """Runs a read of the graph."""

    def __call__(self, read: Callable[[GraphReader], T], /) -> Awaitable[T]:
        """The result of a read."""


async def export_pieces(
    read: Read,
    kind: GraphFormat,
    told_entities: Callable[[Sequence[GraphEntity]], Sequence[GraphEntity]],
    told_links: Callable[[Sequence[EntityLink]], Sequence[EntityLink]],
) -> AsyncIterator[str]:
    """The pieces of the document.

    Args:
        read: Runs reads of the graph, each on one committed state.
        kind: Format.
        told_entities: Makes entities as they may leave.
        told_links: Makes links as they may leave.
    """
    graphml = kind is GraphFormat.GRAPHML
    if graphml:
        yield _head()
    node, edge = (_node, _edge) if graphml else (_entity_line, _link_line)
    after, entities = "", await read(partial(_entities, after=""))
    while entities:
        yield "".join(map(node, told_entities(entities)))
        after = entities[-1].id
        entities = await read(partial(_entities, after=after))
    place = 0
    while links := await read(partial(_links, after=place)):
        yield "".join(map(edge, told_links([link for _, link in links])))
        place = links[-1][0]
    if graphml:
        yield "</graph>\n</graphml>\n"


def _entities(reader: GraphReader, after: str) -> list[GraphEntity]:
    # Each entity by itself: the alias links say which are merged.
    return reader.each(after, AT_ONCE)


def _links(reader: GraphReader, after: int) -> list[tuple[int, EntityLink]]:
    return reader.all_links(after, AT_ONCE)


def _plain(value: Any) -> Any:  # noqa: ANN401 - values of fields
    return value.isoformat() if isinstance(value, datetime) else value


def _line(kind: str, value: GraphEntity | EntityLink) -> str:
    named = {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    return json.dumps({"kind": kind, **named}, ensure_ascii=False, separators=(",", ":")) + "\n"


def _entity_line(entity: GraphEntity) -> str:
    return _line("entity", entity)


def _link_line(link: EntityLink) -> str:
    return _line("link", link)


def _head() -> str:
    keys = [
        f'<key id={quoteattr(f"{kind}.{name}")} for="{kind}" attr.name="{name}"'
        f' attr.type="{types.get(name, "string")}"/>\n'
        for kind, names, types in (("node", _NODE, _NODE_TYPES), ("edge", _EDGE, _EDGE_TYPES))
        for name in names
    ]
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n<graphml xmlns="http://graphml.graphdrawing.org/xmlns">\n'
        f'{"".join(keys)}<graph edgedefault="directed">\n'
    )


def _node(entity: GraphEntity) -> str:
    return f"<node id={_attribute(entity.id)}>{_data('node', _NODE, entity)}</node>\n"


def _edge(link: EntityLink) -> str:
    ends = f"source={_attribute(link.entity_a)} target={_attribute(link.entity_b)}"
    return f"<edge id={_attribute(link.link_id)} {ends}>{_data('edge', _EDGE, link)}</edge>\n"


def _data(kind: str, names: Sequence[str], value: GraphEntity | EntityLink) -> str:
    parts = []
    for name in names:
        plain = _plain(getattr(value, name))
        if plain is None or plain in ({}, ()):
            continue
        text = plain if isinstance(plain, str) else json.dumps(plain, ensure_ascii=False)
        parts.append(f'<data key="{kind}.{name}">{escape(text.translate(_CONTROLS))}</data>')
    return "".join(parts)


def _attribute(text: str) -> str:
    return quoteattr(text.translate(_CONTROLS))
