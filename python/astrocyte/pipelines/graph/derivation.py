"""Graph rows of a version: mentions of its entities and links that its content states."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

import structlog

from astrocyte.errors import frames
from astrocyte.model import Entity, GraphExtraction, Mention
from astrocyte.model.derived.entity import NAME
from astrocyte.pipelines.graph.extraction import extract
from astrocyte.pipelines.graph.resolution import blocking_keys
from astrocyte.stores.entity_graph import DerivedLink, DerivedMention, DerivedVersion, SourceVersion

log = structlog.get_logger(__name__)

# Kinds that are no nodes: a day or an identifier connects what has nothing to do with each other.
LEFT_OUT = frozenset({"DATE", "CODE"})
# Bounds of a version: a memory that names more is a list, and would connect everything with everything.
MOST_MENTIONS = 64
MOST_LINKS = 32
# Of an entity that the memory was retained with, and whose words its content holds or does not.
GIVEN_CONFIDENCE = 0.9
# Places of one entity in one version that are kept.
MOST_PLACES = 4
# Longer names are sentences, as in the extraction of entities at retain.
MOST_NAME_CHARS = 128


def derive(version: SourceVersion) -> DerivedVersion:
    """The graph rows of a version: a function of its content, its speaker and its entities, and of nothing else."""
    extraction = extract(version.content, speaker=version.speaker)
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
    links: dict[tuple[str, str, str], DerivedLink] = {}
    for relation in extraction.relations:
        source, target = ids.get(relation.source_name), ids.get(relation.target_name)
        if source is None or target is None or source == target or not {source, target} <= named:
            continue
        if len(links) < MOST_LINKS:
            link = DerivedLink(source, target, relation.link_type, relation.start, relation.end, relation.confidence)
            links.setdefault(link[:3], link)
    return DerivedVersion(version.row_key, version.bank_key, tuple(mentions.values()), tuple(links.values()))


def derive_or_none(version: SourceVersion) -> DerivedVersion:
    """As `derive`; no rows if the rules fail on the version, for one text must not stop the graphs of all banks."""
    try:
        return derive(version)
    except Exception as error:  # noqa: BLE001 - a fault in the rules; a rebuild by a later version tries again
        # No traceback: it could show the values of variables, which are content.
        log.error("entity_graph_skipped", row_key=version.row_key, error=type(error).__name__, frames=frames(error))  # noqa: TRY400
        return DerivedVersion(version.row_key, version.bank_key, (), ())


@lru_cache(maxsize=4_096)
def words_of(name: str) -> frozenset[str]:
    """The words by which an entity of this name is found: those of the name, and those of names it may stand for."""
    folded = frozenset(name.casefold().replace("-", " ").split())
    return folded | blocking_keys(name)


def slug_name(entity_id: str) -> str:
    """The words of an entity's id, which every way of writing its name shares."""
    return entity_id.partition(":")[2].replace("-", " ")


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
