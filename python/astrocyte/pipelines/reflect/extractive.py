"""An answer of sentences that are quoted from the memories, the best one first, each with its citation.

No model, no network; the same question on the same memories always has the same answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC

from astrocyte.core import count_tokens
from astrocyte.model import Citation, MemoryHit
from astrocyte.pipelines.index.rows import date_words
from astrocyte.pipelines.query.time_windows import to_ms
from astrocyte.pipelines.reflect.contradictions import Superseded, when
from astrocyte.pipelines.reflect.draft import Draft
from astrocyte.pipelines.reflect.evidence import Evidence, Sentence, person_of
from astrocyte.pipelines.reflect.replies import Asked
from astrocyte.pipelines.reflect.selection import in_place
from astrocyte.pipelines.reflect.spoken_dates import names_day, with_dates
from astrocyte.pipelines.text import detail_levels

BULLET = "- "


@dataclass(frozen=True, slots=True)
class Form:
    """The form of an answer.

    Attributes:
        max_tokens: Of the answer; the first sentence is cut to it rather than left out.
        by_time: Give the dates of the memories, and tell those behind the first one in the order of their time; else
            the best one first.
        events: The question asks for whatever happened at a time; with `by_time`, the first memory is the earliest.
        is_list: Each sentence is an item of a list.
    """

    max_tokens: int
    by_time: bool = False
    events: bool = False
    is_list: bool = False


@dataclass(frozen=True, slots=True)
class _Part:
    """Sentences of one memory by one speaker; ``newer_by`` is who contradicts them, if anyone does."""

    number: int
    hit: MemoryHit
    speaker: str
    sentences: tuple[Sentence, ...]
    newer_by: str | None = None


@dataclass(slots=True)
class _Text:
    """An answer as it grows; ``is_named`` is True if its last line begins with a speaker or a day."""

    max_tokens: int
    text: str = ""
    citations: list[Citation] = field(default_factory=list)
    sources: dict[str, MemoryHit] = field(default_factory=dict)
    truncated: bool = False
    is_named: bool = False

    def add(self, joint: str, item: str, said: str, hits: Sequence[MemoryHit]) -> bool:
        """Add a part that rests on memories, if it fits; return whether it does."""
        start = f"{self.text}{joint}{item}" if self.text else item
        whole = f"{start}{said}"
        # A token is a byte at the least, so that a short text need not be counted.
        if len(whole.encode()) > self.max_tokens and count_tokens(whole) > self.max_tokens:
            return False
        self._cite(len(start), len(whole), hits)
        self.text = whole
        return True

    def cut(self, said: str, hit: MemoryHit) -> None:
        """Let the answer be the beginning of a part that does not fit; behind other parts it is left out."""
        self.truncated = True
        if not self.text and (said := detail_levels.cut(said, self.max_tokens)):
            self._cite(0, len(said), [hit])
            self.text = said

    def _cite(self, start: int, end: int, hits: Sequence[MemoryHit]) -> None:
        for hit in hits:
            self.citations.append(Citation(start, end, hit.memory_id or ""))
            # Hits without an id are of different memories.
            self.sources.setdefault(hit.memory_id or f"#{len(self.sources)}", hit)


def compose(
    evidence: Evidence,
    chosen: Sequence[Sentence],
    form: Form,
    superseded: Sequence[Superseded] = (),
    questions: Mapping[int, Asked] | None = None,
) -> Draft:
    """Return the answer that sentences give, without a confidence.

    Relative dates of a sentence are followed by the dates that they meant.

    Args:
        evidence: What the sentences are from.
        chosen: The sentences, best first.
        form: The form of the answer.
        superseded: Pairs of contradicting sentences: the newer one is told before the older one.
        questions: Questions to which memories reply, by the numbers of the memories.
    """
    written = _Text(form.max_tokens)
    for part in _parts(evidence, chosen, form, superseded):
        _write(written, part, form, (questions or {}).get(part.number))
    return Draft(
        written.text,
        tuple(written.citations),
        tuple(written.sources.values()),
        remarks(evidence),
        truncated=written.truncated,
    )


def remarks(evidence: Evidence) -> tuple[str, ...]:
    """Remarks on the evidence for readers."""
    said = [f"No memory that was found mentions {name}." for name in evidence.unknown]
    others = [sentence for sentence in evidence.sentences if sentence.owner < 0]
    if evidence.support >= 0 or not others:
        return tuple(said)
    if evidence.person is not None:
        said.append(f"What comes closest is about {person_of(others[0])}, not about {evidence.person}.")
    speaker = evidence.hits[others[0].hit].speaker
    if evidence.speaker is not None and speaker and speaker != evidence.speaker:
        said.append(f"What comes closest was said by {speaker}, not by {evidence.speaker}.")
    return tuple(said)


def _parts(evidence: Evidence, chosen: Sequence[Sentence], form: Form, superseded: Sequence[Superseded]) -> list[_Part]:
    """The parts of an answer in their order."""
    said = list(chosen)
    for pair in superseded:
        said = in_place(said, pair.newer, pair.older)
    groups: dict[tuple[int, str], list[Sentence]] = {}
    for place, sentence in enumerate(said):
        # Each item of a list is a part of its own.
        key = (sentence.hit, f"#{place}" if form.is_list else sentence.speaker or "")
        groups.setdefault(key, []).append(sentence)
    parts = [_part(evidence, _as_told(own, said[0])) for own in groups.values()]
    if form.by_time:
        led = 0 if form.events else 1
        parts[led:] = sorted(parts[led:], key=lambda part: when(part.hit))
    for pair in superseded:
        place = next(place for place, part in enumerate(parts) if any(one is pair.newer for one in part.sentences))
        parts.insert(place + 1, replace(_part(evidence, [pair.older]), newer_by=parts[place].speaker))
    return parts


def _part(evidence: Evidence, sentences: Sequence[Sentence]) -> _Part:
    first = sentences[0]
    hit = evidence.hits[first.hit]
    return _Part(first.hit, hit, (first.speaker or hit.speaker or "").strip(), tuple(sentences))


def _as_told(own: list[Sentence], best: Sentence) -> list[Sentence]:
    """Sentences of a memory as it tells them, but the best of all sentences first."""
    return sorted(own, key=lambda sentence: (sentence is not best, sentence.place))


def _write(written: _Text, part: _Part, form: Form, asked: Asked | None) -> None:
    hit, who = part.hit, _who(part, form)
    told = " ".join(sentence.text for sentence in part.sentences)
    told = with_dates(told, hit.occurred_at, day_is_shown=form.by_time and part.newer_by is None)
    item = BULLET if form.is_list else ""
    # What nobody is named for does not stand on the line of somebody who said something else.
    joint = "\n" if form.is_list or form.by_time or who or asked is not None or written.is_named else " "
    if asked is not None:
        reply = f'{_asked(who, asked.hit.speaker)} "{asked.text}": {told}'
        if written.add(joint, item, reply, [hit, asked.hit]):
            written.is_named = True
            return
    said = f"{who}: {told}" if who else told
    if written.add(joint, item, said, [hit]):
        written.is_named = bool(who)
    else:
        written.cut(said, hit)


def _who(part: _Part, form: Form) -> str:
    """The speaker and, on wish, the day: "Mara, 8 May 2023"; of what no longer holds "Before (2023-05-08)"."""
    hit = part.hit
    if part.newer_by is not None:
        # The newer statement before it has the speaker already, if that is the same.
        speaker = part.speaker if part.newer_by != part.speaker else ""
        return ", ".join(filter(None, (f"Before ({when(hit).astimezone(UTC):%Y-%m-%d})", speaker)))
    day = date_words(to_ms(hit.occurred_at)) if form.by_time and hit.occurred_at is not None else None
    if day and any(names_day(sentence.text) for sentence in part.sentences):
        # Else the day on which it was said would be read as that of which it tells.
        day = f"said on {day}" if part.speaker else f"Said on {day}"
    return ", ".join(filter(None, (part.speaker, day)))


def _asked(who: str, by: str | None) -> str:
    """The opening of a reply: "Mara, asked by Ben"."""
    asked = f"asked by {by.strip()}" if by and by.strip() else "asked"
    return f"{who}, {asked}" if who else f"A{asked[1:]}"
