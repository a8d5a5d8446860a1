"""A second recall for a question about a relative, by the name that the first recall found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from astrocyte.model import MemoryHit, ReflectQuery
from astrocyte.pipelines.reflect.chains import Link, asked_of, chain_of, link_of
from astrocyte.pipelines.reflect.evidence import Evidence, Sentence
from astrocyte.pipelines.text.content_words import content_words


class Hop(NamedTuple):
    """The question with the name in the place of the relative, and the sentence that has the name."""

    question: str
    link: Link


def of(query: ReflectQuery, hits: Sequence[MemoryHit]) -> Hop | None:
    """The second question after a first recall; None for most questions.

    A caller who brings the vector of the question has none for another one.
    """
    if query.embedding is not None or (chain := chain_of(query.query)) is None:
        return None
    link = link_of(chain, query.query, hits)
    return None if link is None else Hop(asked_of(chain, query.query, link.name), link)


def with_link(evidence: Evidence, link: Link, hits: Sequence[MemoryHit]) -> Evidence:
    """Evidence of the second recall with the sentence that names the relative.

    Args:
        evidence: Evidence for the question with the name.
        link: The sentence, from a memory of the first recall.
        hits: The memories of the first recall.
    """
    hit = hits[link.hit]
    for sentence in evidence.sentences:
        if evidence.hits[sentence.hit].memory_id == hit.memory_id and sentence.text == link.text:
            return replace(evidence, links=(sentence,))
    known = [number for number, one in enumerate(evidence.hits) if one.memory_id == hit.memory_id]
    number = known[0] if known else len(evidence.hits)
    told = Sentence(link.text, number, 0, frozenset(content_words(link.text)))
    return replace(evidence, hits=evidence.hits if known else (*evidence.hits, hit), links=(told,))
