"""Extraction of names and relations from a text by rules."""

from __future__ import annotations

from collections.abc import Iterable

from astrocyte.model.derived.entity import NAME
from astrocyte.model.derived.graph import GraphExtraction, Mention
from astrocyte.pipelines.graph.names.candidates import Candidate, candidates
from astrocyte.pipelines.graph.names.contact_names import contact_names
from astrocyte.pipelines.graph.names.entity_types import Typed, evidence
from astrocyte.pipelines.graph.names.gazetteers import fold, gazetteers
from astrocyte.pipelines.graph.names.script_names import script_names
from astrocyte.pipelines.graph.names.type_words import PERSON
from astrocyte.pipelines.graph.relations import relations

# The beginning names what a text is about; more costs time with every retain.
READ_CHARS = 20_000
# As many as a page of prose names.
MOST_MENTIONS = 256
LONGEST_NAME = 128
# Speakers that are roles in a dialogue with a program.
PROGRAMS = frozenset({"assistant", "system", "bot", "ai", "tool", "agent", "model"})


def extract(text: str, *, speaker: str | None = None) -> GraphExtraction:
    """The names in a text with their types and places, and the relations that it states.

    Args:
        text: Of which the first `READ_CHARS` characters are read.
        speaker: Author of the text; "I" stands for this person.
    """
    text = text[:READ_CHARS]
    said = _speaker(speaker)
    found = [*said, *contact_names(text), *script_names(text)]
    found += _names(text, [mention for mention in found if mention.start >= 0])
    mentions = sorted(_one_type(found), key=lambda mention: (mention.start, -mention.end))[:MOST_MENTIONS]
    return GraphExtraction(tuple(mentions), relations(text, mentions, said[0].name if said else None))


def _speaker(speaker: str | None) -> list[Mention]:
    name = " ".join(speaker.split()) if speaker else ""
    if not (0 < len(name) <= LONGEST_NAME and name.isprintable()):
        return []
    return [Mention(name, NAME if name.lower() in PROGRAMS else PERSON, -1, -1, 1.0)]


def _names(text: str, taken: list[Mention]) -> list[Mention]:
    """The capitalised names of a text, each with the type of all its places and its fullest form."""
    kept: list[Candidate] = []
    inner = {place for mention in taken for place in range(mention.start, mention.end)}
    for found in candidates(text):
        if len(kept) == MOST_MENTIONS:
            break
        if found.start not in inner and found.end - 1 not in inner:
            kept.append(found)
    lists = gazetteers()
    sure = {found.key for found in kept if found.sure}
    for words in [key.split() for key in sure]:
        if len(words) > 1 and (words[0] in lists.given or words[-1] in lists.family):
            sure |= {words[0], words[-1]}
    kept = [found for found in kept if found.sure or found.key in sure]
    keys = [found.key for found in kept]
    typed: dict[str, Typed] = {}
    for key, found in zip(keys, kept, strict=True):
        weights = typed.setdefault(key, Typed({})).weights
        for kind, weight in evidence(text, found).weights.items():
            weights[kind] = weights.get(kind, 0.0) + weight
    best = {key: weights.best() for key, weights in typed.items()}
    full = _full_forms(best)
    shown = {key: " ".join(found.words) for key, found in zip(reversed(keys), reversed(kept), strict=True)}
    mentions = []
    for key, found in zip(keys, kept, strict=True):
        main = full.get(key, key)
        kind, confidence = best[main]
        mentions.append(Mention(shown[main], kind, found.start, found.end, confidence))
    return mentions


def _full_forms(best: dict[str, tuple[str, float]]) -> dict[str, str]:
    """The full name of each name of one word that one person of the text has as first or last word."""
    fuller: dict[str, set[str]] = {}
    for key, (kind, _) in best.items():
        if kind == PERSON and " " in key:
            for word in (key.split()[0], key.split()[-1]):
                fuller.setdefault(word, set()).add(key)
    return {
        word: next(iter(names))
        for word, names in fuller.items()
        if len(names) == 1 and word in best and best[word][0] in {PERSON, NAME}
    }


def _one_type(found: Iterable[Mention]) -> list[Mention]:
    """The mentions, those of one name with one type and one spelling."""
    first: dict[str, Mention] = {}
    mentions: list[Mention] = []
    for mention in found:
        known = first.setdefault(fold(mention.name), mention)
        mentions.append(mention._replace(name=known.name, entity_type=known.entity_type))
    return mentions
