"""An answer of sentences, chosen from the memories: relevant, not the same twice, the best one first.

No model, no network; the same question on the same memories always has the same answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from astrocyte.core import count_tokens, count_tokens_many
from astrocyte.model import Citation, MemoryHit
from astrocyte.pipelines.index.rows import date_words
from astrocyte.pipelines.query.time_windows import EPOCH, to_ms
from astrocyte.pipelines.reflect.draft import Draft
from astrocyte.pipelines.reflect.evidence import Evidence, Sentence
from astrocyte.pipelines.reflect.spoken_dates import with_dates
from astrocyte.pipelines.text import detail_levels

# Sentences of an answer: beyond these the answer of a question of one fact is not found more often.
MOST_SENTENCES = 6
# How much a sentence loses for the words that it shares with those chosen before: enough to pass over repetitions.
REDUNDANCY = 0.6
# Sentences that count for less than this share of the best one are left out, by literalism: a literal answer says only
# what comes closest to the words of the question, a free one also what is related to it.
LEAST_SHARES = {1: 0.05, 2: 0.2, 3: 0.35, 4: 0.6, 5: 0.85}


def compose(evidence: Evidence, *, max_tokens: int, by_time: bool, literalism: int = 3, events: bool = False) -> Draft:
    """Return the answer that the sentences give, without a confidence.

    Relative dates of a sentence are followed by the dates that they meant.

    Args:
        evidence: At least one sentence.
        max_tokens: Of the answer; the first sentence is cut to it rather than left out.
        by_time: Give the dates of the memories, and tell those behind the first one in the order of their time; else
            the best one first.
        literalism: 1 to 5; how close to the question a sentence must be.
        events: The question asks for whatever happened at a time; with `by_time`, the first memory is the earliest.
    """
    chosen = _choose(evidence.sentences, max_tokens, LEAST_SHARES[literalism])
    order = list(dict.fromkeys(sentence.hit for sentence in chosen))
    if by_time:
        led = 0 if events else 1
        order[led:] = sorted(order[led:], key=lambda number: _when(evidence.hits[number]))
    text, citations, truncated = "", [], False
    sources: list[MemoryHit] = []
    for number in order:
        hit = evidence.hits[number]
        said = " ".join(sentence.text for sentence in _ordered(chosen, number))
        part = f"{_opening(hit, dated=by_time)}{with_dates(said, hit.occurred_at, day_is_shown=by_time)}"
        joint = ("\n" if hit.speaker or by_time else " ") if text else ""
        whole = f"{text}{joint}{part}"
        # A token is a byte at the least, so that a short text need not be counted.
        if len(whole.encode()) > max_tokens and count_tokens(whole) > max_tokens:
            truncated = True
            if text:
                continue
            part = detail_levels.cut(part, max_tokens)
            if not part:
                break
        citations.append(Citation(len(text) + len(joint), len(text) + len(joint) + len(part), hit.memory_id or ""))
        text = f"{text}{joint}{part}"
        sources.append(hit)
    return Draft(text, tuple(citations), tuple(sources), remarks(evidence), truncated=truncated)


def remarks(evidence: Evidence) -> tuple[str, ...]:
    """Remarks on the evidence for readers."""
    said = [f"No memory that was found mentions {name}." for name in evidence.unknown]
    if evidence.speaker is not None and evidence.support < 0 and evidence.sentences:
        others = [sentence for sentence in evidence.sentences if sentence.owner < 0]
        speaker = evidence.hits[others[0].hit].speaker if others else None
        if speaker and speaker != evidence.speaker:
            said.append(f"What comes closest was said by {speaker}, not by {evidence.speaker}.")
    return tuple(said)


def _choose(sentences: Sequence[Sentence], max_tokens: int, least_share: float) -> list[Sentence]:
    """Sentences by score, each less what it repeats, while they fit."""
    tokens = count_tokens_many([sentence.text for sentence in sentences])
    floor = least_share * sentences[0].score if sentences and sentences[0].score > 0 else float("-inf")
    repeats = [0.0] * len(sentences)
    pool = list(range(len(sentences)))
    chosen: list[Sentence] = []
    left = max_tokens
    while pool and len(chosen) < MOST_SENTENCES:
        best = max(pool, key=lambda number: sentences[number].score - REDUNDANCY * repeats[number])
        pool.remove(best)
        sentence = sentences[best]
        if chosen and (sentence.score < floor or tokens[best] > left):
            continue
        chosen.append(sentence)
        left -= tokens[best]
        for number in pool:
            repeats[number] = max(repeats[number], _shared(sentences[number].words, sentence.words))
    return chosen


def _ordered(chosen: Sequence[Sentence], number: int) -> list[Sentence]:
    """The chosen sentences of a memory as it tells them, but the best of all sentences first."""
    own = [sentence for sentence in chosen if sentence.hit == number]
    return sorted(own, key=lambda sentence: (sentence is not chosen[0], sentence.place))


def _shared(one: frozenset[str], other: frozenset[str]) -> float:
    """Share of the smaller sentence's words that the two have in common."""
    return len(one & other) / max(1, min(len(one), len(other)))


def _when(hit: MemoryHit) -> datetime:
    """When it happened, or was stored; every hit has the latter."""
    return hit.occurred_at or hit.retained_at or EPOCH


def _opening(hit: MemoryHit, *, dated: bool) -> str:
    """The speaker and, on wish, the day: "Mara, 8 May 2023: "."""
    when = date_words(to_ms(hit.occurred_at)) if dated and hit.occurred_at is not None else None
    said = ", ".join(part for part in (hit.speaker, when) if part)
    return f"{said}: " if said else ""
