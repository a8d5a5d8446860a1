"""Graph rows of a version: mentions of its entities and links that its content states."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

import structlog

from astrocyte.errors import frames
from astrocyte.model import Entity, GraphExtraction, GraphReading, LinkOrigin, Mention, Relation
from astrocyte.model.derived.entity import NAME
from astrocyte.pipelines.graph.extraction import extract
from astrocyte.pipelines.graph.resolution import blocking_keys
from astrocyte.stores.graph.entity_graph import DerivedLink, DerivedMention, DerivedVersion, SourceVersion

log = structlog.get_logger(__name__)

# Kinds that are no nodes: a day or an identifier connects what has nothing to do with each other.
LEFT_OUT = frozenset({"DATE", "CODE"})
# Bounds of a version: a memory that names more is a list, and would connect everything with everything.
MOST_MENTIONS = 64
MOST_LINKS = 32
# Of an entity that the memory was retained with, and whose words its content holds or does not.
GIVEN_CONFIDENCE = 0.9
# Of a name that only a language model took for one: it is in the text, but its type is the model's word alone.
READ_CONFIDENCE = 0.8
# Places of one entity in one version that are kept.
MOST_PLACES = 4
# Longer names are sentences, as in the extraction of entities at retain.
MOST_NAME_CHARS = 128


def derive(version: SourceVersion) -> DerivedVersion:
    """The graph rows of a version: a function of its content, speaker, entities and reading, and of nothing else."""
    extraction = extract(version.content, speaker=version.speaker)
    read: Sequence[Relation] = ()
    if version.reading is not None:
        extraction, read = _with_reading(version, version.reading, extraction)
    mentions: dict[tuple[str, int], DerivedMention] = {}
    ids: dict[str, str] = {}
    places: dict[str, int] = {}
    for mention in (*extraction.mentions, *_given(version, extraction)):
        entity = Entity(mention.name, mention.entity_type)
        known = ids.setdefault(mention.name, entity.id)
        if entity.entity_type in LEFT_OUT or known.endswith(":") or len(mention.name) > MOST_NAME_CHARS:
            continue
        if len(mentions) == MOST_MENTIONS or places.get(known, 0) == MOST_PLACES:
            continue
        if mentions.setdefault((known, mention.start), _mention(known, mention)).name == mention.name:
            places[known] = places.get(known, 0) + 1
    named = {mention.entity_id for mention in mentions.values()}
    ids = {name: entity_id for name, entity_id in ids.items() if entity_id in named}
    links: dict[tuple[str, str, str], DerivedLink] = {}
    # What the rules found comes first, and stays where a language model found it too.
    for link in (*_links(extraction.relations, ids, LinkOrigin.MEMORY), *_links(read, ids, LinkOrigin.MODEL)):
        if len(links) < MOST_LINKS:
            links.setdefault(link[:3], link)
    return DerivedVersion(
        version.row_key, version.bank_key, tuple(mentions.values()), tuple(links.values()), version.revision
    )


def derive_or_none(version: SourceVersion) -> DerivedVersion:
    """As `derive`; no rows if the rules fail on the version, for one text must not stop the graphs of all banks."""
    try:
        return derive(version)
    except Exception as error:  # noqa: BLE001 - a fault in the rules; a rebuild by a later version tries again
        # No traceback: it could show the values of variables, which are content.
        log.error("entity_graph_skipped", row_key=version.row_key, error=type(error).__name__, frames=frames(error))  # noqa: TRY400
        return DerivedVersion(version.row_key, version.bank_key, (), (), version.revision)


@lru_cache(maxsize=4_096)
def words_of(name: str) -> frozenset[str]:
    """The words by which an entity of this name is found: those of the name, and those of names it may stand for."""
    folded = frozenset(name.casefold().replace("-", " ").split())
    return folded | blocking_keys(name)


def slug_name(entity_id: str) -> str:
    """The words of an entity's id, which every way of writing its name shares."""
    return entity_id.partition(":")[2].replace("-", " ")


def _links(relations: Sequence[Relation], ids: Mapping[str, str], origin: LinkOrigin) -> Iterator[DerivedLink]:
    """The links of relations between entities that are mentioned, by the ids of their names."""
    for source, target, link_type, start, end, confidence in relations:
        ends = ids.get(source), ids.get(target)
        if ends[0] is not None and ends[1] is not None and ends[0] != ends[1]:
            yield DerivedLink(ends[0], ends[1], link_type, start, end, confidence, origin)


def _with_reading(
    version: SourceVersion, reading: GraphReading, extraction: GraphExtraction
) -> tuple[GraphExtraction, list[Relation]]:
    """An extraction with the names that a language model read, and the relations that it read.

    A name at the place of one that the rules found, or with the same words, is that one, and gives it a type if it has
    none.
    """
    names: list[str] = []
    kinds: dict[str, str] = {}
    found: list[Mention] = []
    for kind, places in reading.names:
        name = _known(version, places, extraction.mentions)
        if name is None:
            name = " ".join(version.content[slice(*places[0])].split()) if places else ""
            found += [Mention(name, kind, start, end, READ_CONFIDENCE) for start, end in places]
        elif kind != NAME:
            kinds[name] = kind
        names.append(name)
    mentions = [
        one._replace(entity_type=kinds[one.name]) if one.entity_type == NAME and one.name in kinds else one
        for one in extraction.mentions
    ]
    relations = [
        Relation(names[link.source], names[link.target], link.link_type, link.start, link.end, link.confidence)
        for link in reading.links
    ]
    return extraction._replace(mentions=(*mentions, *found)), relations


def _known(version: SourceVersion, places: Sequence[tuple[int, int]], mentions: Sequence[Mention]) -> str | None:
    """The name of a mention at one of the places, or with the same words; that of the speaker where there is none."""
    for start, end in places:
        for mention in mentions:
            if mention.start < end and start < mention.end:
                return mention.name
    words = version.content[slice(*places[0])] if places else version.speaker or ""
    folded = " ".join(words.casefold().split())
    return next((mention.name for mention in mentions if mention.name.casefold() == folded), None)


def _mention(entity_id: str, mention: Mention) -> DerivedMention:
    return DerivedMention(
        entity_id,
        mention.entity_type,
        mention.name,
        mention.start,
        mention.end,
        mention.confidence,
        words_of(slug_name(entity_id)),
    )


def _given(version: SourceVersion, extraction: GraphExtraction) -> Iterator[Mention]:
    """Mentions of the entities that the memory was retained with, where the rules did not find them."""
    found = {mention.name.casefold() for mention in extraction.mentions}
    for name, kind in version.entities:
        folded = name.casefold()
        # A name without a type adds nothing to one with a type.
        if folded in found and kind == NAME:
            continue
        at = _place(name, version.content)
        yield Mention(name, kind, at, at + len(name) if at >= 0 else -1, GIVEN_CONFIDENCE)


def _place(name: str, content: str) -> int:
    """The first place of a name as words of its own; -1 if the content does not hold it."""
    at = content.find(name)
    if at < 0:
        return -1
    found = re.search(rf"(?<!\w){re.escape(name)}(?!\w)", content)
    return found.start() if found else -1
