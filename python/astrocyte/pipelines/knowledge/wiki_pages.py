"""Composing wiki pages by rules: sentences of a topic's memories, each with the memories that say it.

The overview has the sentences with the words that most sentences of the topic share; sections by time have the others.
Equal input gives an equal page. Nothing of a page comes from anywhere but the memories of the topic.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from astrocyte.core import split_sentences, stemmed_words
from astrocyte.model import ModelBlock, ModelSection, PageKind, PageWriter
from astrocyte.pipelines.knowledge import documents
from astrocyte.pipelines.text.content_words import LIGHT, content_words
from astrocyte.stores.knowledge.wiki import Member, Topic

# Changes when the rules do: pages of other rules are compiled again.
RULES_VERSION = b"1"
FINGERPRINT_BYTES = 16
# Sentences of a memory that are read, of an overview, and of a page in all.
MOST_READ, MOST_OVERVIEW, MOST_SENTENCES = 24, 3, 24
# Shorter ones say nothing by themselves, and longer ones are lists or code.
LEAST_WORDS, MOST_CHARS = 2, 400
# Addition to the score of a sentence that names the topic.
NAMED_BONUS = 0.25
# Span of the memories above which sections are years, not months.
MONTHS_OF_SECTIONS = 24
# Spellings of a title that are kept, for when the memories with the first one go.
MOST_TITLES = 3
ID_CHARS, DIGEST_CHARS = 80, 8
# Words in the title of a cluster, and the memories that must have them all.
TITLE_WORDS, LEAST_TITLED = 3, 2
_NOT_IN_ID = re.compile(r"[^a-z0-9:]+")


@dataclass(slots=True)
class _Sentence:
    """A sentence: its text as the page shows it, its words, the memories that say it, and the time of the first one."""

    text: str
    words: frozenset[str]
    source_ids: list[str]
    time: datetime
    named: bool
    score: float = 0.0


def page_id(topic: Topic) -> str:
    """The id of a topic's page: its kind and its name; with a digest where two names could have the same id.

    Words of tags and of ids of the entity graph are joined by hyphens, those of other names by spaces.
    """
    if topic.kind is PageKind.CLUSTER:
        return topic.name
    plain = _NOT_IN_ID.sub("-", topic.name.casefold()).strip("-")[:ID_CHARS]
    is_hyphened = topic.kind is PageKind.TOPIC or topic.entity_key
    if plain and topic.name == (plain if is_hyphened else plain.replace("-", " ")):
        return f"{topic.kind}:{plain}"
    digest = hashlib.sha256(topic.name.encode()).hexdigest()[:DIGEST_CHARS]
    return f"{topic.kind}:{'-'.join(filter(None, (plain, digest)))}"


def fingerprint(topic: Topic, row_keys: Sequence[int], writer: PageWriter) -> str:
    """A digest of what a page is made of: the versions of the memories, the rules, and the writer."""
    told = hashlib.blake2b(digest_size=FINGERPRINT_BYTES)
    told.update(b"\x1f".join((RULES_VERSION, writer.encode(), topic.scope.encode(), topic.name.encode(), b"")))
    told.update(b"".join(key.to_bytes(8, "big") for key in row_keys))
    return told.hexdigest()


def titles(topic: Topic, members: Sequence[Member]) -> list[dict[str, Any]]:
    """The spellings of the topic by descending number of memories, each with the memories that have it."""
    if topic.kind is PageKind.CLUSTER:
        return _common_words(members)
    spellings: dict[str, list[str]] = {}
    for member in members:
        for name in dict.fromkeys(member.names):
            spellings.setdefault(name, []).append(member.memory.memory_id)
    ranked = sorted(spellings.items(), key=lambda entry: (-len(entry[1]), -len(entry[0]), entry[0]))
    return [{"text": name, "source_ids": ids} for name, ids in ranked[:MOST_TITLES]]


def _common_words(members: Sequence[Member]) -> list[dict[str, Any]]:
    """Titles of a cluster: words that go together in most of its memories, each with the memories that have them all.

    So a title says nothing that one of its memories does not say.
    """
    words = [dict(_spelled(member.memory.content)) for member in members]
    left = list(range(len(members)))
    chosen: list[str] = []
    made: list[dict[str, Any]] = []
    while len(chosen) < TITLE_WORDS:
        counts = Counter(stem for place in left for stem in words[place] if stem not in chosen)
        # Of equal ones the longer word says more.
        best = min(counts.items(), key=lambda entry: (-entry[1], -len(entry[0]), entry[0]), default=("", 0))
        if best[1] < LEAST_TITLED:
            break
        chosen.append(best[0])
        left = [place for place in left if best[0] in words[place]]
        text = ", ".join(words[left[0]][stem] for stem in chosen)
        made.append(
            {"text": text[:1].upper() + text[1:], "source_ids": [members[place].memory.memory_id for place in left]}
        )
    return made[::-1][:MOST_TITLES]


def _spelled(text: str) -> list[tuple[str, str]]:
    """The stems of the words that carry content, each as the text first spells it."""
    return [(stem, word) for word, stem in reversed(stemmed_words(text)) if stem is not None and stem not in LIGHT]


def title_of(body: Any, page: str) -> str:  # noqa: ANN401 - the JSON types of the store
    """The title of a page as it is shown; its id where no memory is left that has a spelling."""
    return str(body["titles"][0]["text"]) if body["titles"] else page


def body_of(
    topic: Topic, members: Sequence[Member], sections: Sequence[ModelSection], told: str, writer: PageWriter
) -> dict[str, Any]:
    """The body of a page as the store holds it."""
    return {
        "kind": str(topic.kind),
        "titles": titles(topic, members),
        "writer": str(writer),
        "fingerprint": told,
        "sections": documents.encode(documents.with_ids(sections)),
        "source_ids": [member.memory.memory_id for member in members],
    }


def sections_of(members: Sequence[Member]) -> list[ModelSection]:
    """The sections of a page of these memories; empty where no memory has a sentence that says something."""
    sentences = _sentences(members)
    if not sentences:
        return []
    overview = _overview(sentences)
    rest = sorted((one for one in sentences if one not in overview), key=lambda one: -one.score)
    chosen = rest[: MOST_SENTENCES - len(overview)]
    made = [ModelSection("", documents.OVERVIEW, tuple(map(_block, overview)))]
    by_year = _months(chosen) > MONTHS_OF_SECTIONS
    parts: dict[str, list[_Sentence]] = {}
    for one in sorted(chosen, key=lambda one: (-one.time.year, 0 if by_year else -one.time.month)):
        parts.setdefault(f"{one.time:%Y}" if by_year else f"{one.time:%Y-%m}", []).append(one)
    for heading, found in parts.items():
        found.sort(key=lambda one: one.time)
        made.append(ModelSection("", heading, tuple(map(_block, found))))
    return made


def _sentences(members: Sequence[Member]) -> list[_Sentence]:
    """The sentences of memories in the order of time, equal ones once, with their scores."""
    found: dict[str, _Sentence] = {}
    short: dict[str, _Sentence] = {}
    for member in members:
        memory = member.memory
        names = [name.casefold() for name in member.names]
        time = memory.occurred_at or memory.retained_at
        for sentence in split_sentences(memory.content, every_stop=True)[:MOST_READ]:
            text = " ".join(sentence.split())
            if not text or text.endswith("?") or len(text) > MOST_CHARS:
                continue
            words = frozenset(content_words(text))
            told = f"{memory.speaker.strip()}: {text}" if memory.speaker and memory.speaker.strip() else text
            kept = found if len(words) >= LEAST_WORDS else short
            same = kept.get(told.casefold())
            if same is not None:
                if memory.memory_id not in same.source_ids:
                    same.source_ids.append(memory.memory_id)
                continue
            named = any(name in text.casefold() for name in names)
            kept[told.casefold()] = _Sentence(told, words, [memory.memory_id], time.astimezone(UTC), named)
    chosen = list((found or {key: one for key, one in short.items() if one.words}).values())
    counts = Counter(word for one in chosen for word in one.words)
    for one in chosen:
        shared = sum(counts[word] for word in one.words) / (len(chosen) * max(len(one.words), LEAST_WORDS))
        one.score = shared + (NAMED_BONUS if one.named else 0.0) + len(one.source_ids) / len(members)
    return chosen


def _overview(sentences: Sequence[_Sentence]) -> list[_Sentence]:
    """The best sentences that say different things, in the order of time."""
    left = sorted(sentences, key=lambda one: -one.score)
    said: set[str] = set()
    chosen: list[_Sentence] = []
    for one in left:
        if len(chosen) == MOST_OVERVIEW:
            break
        if len(one.words & said) * 2 <= len(one.words) or not chosen:
            chosen.append(one)
            said |= one.words
    return sorted(chosen, key=lambda one: one.time)


def _block(sentence: _Sentence) -> ModelBlock:
    return ModelBlock(text=sentence.text, source_ids=tuple(sentence.source_ids))


def _months(sentences: Sequence[_Sentence]) -> int:
    """Months from the first sentence to the last."""
    times = [one.time.year * 12 + one.time.month for one in sentences]
    return max(times) - min(times) if times else 0
