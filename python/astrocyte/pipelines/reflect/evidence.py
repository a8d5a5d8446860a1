"""Evidence: the sentences of recalled memories that bear on a question, their weight, speaker and subject.

A sentence counts by the rank of its memory, by the words and the meaning that it shares with the question, by what it
adds to the question's words, by its date where the question has one, by signs of the type of answer, and by whose it
is: where the question names one of the speakers, what that speaker says of himself and what others tell him of himself
speaks for the answer, and what another says of himself against it.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from operator import mul

from astrocyte.core import split_sentences, vector_values
from astrocyte.model import MemoryHit, TimeRange
from astrocyte.pipelines.graph.names.gazetteers import fold, gazetteers
from astrocyte.pipelines.query.calendar import MONTH_NAMES, WEEKDAY_ABBREVIATIONS, WEEKDAYS
from astrocyte.pipelines.reflect.answer_types import AnswerType, answer_type, signs_of
from astrocyte.pipelines.reflect.transcripts import SpokenTurn, spoken_turns
from astrocyte.pipelines.text.content_words import analysed, content_words

Embed = Callable[[Sequence[str]], list[bytes]]

# Memories that are read sentence by sentence, and sentences of which the meaning is compared: beyond these nothing was
# chosen on development data, and each costs some ten microseconds.
MOST_MEMORIES = 8
# The same for a list, whose items are in several memories; more displace the best items of the development data.
MOST_FOR_LIST = 12
# A memory of more sentences than this is a document; its chunk is what was found.
MOST_SENTENCES = 24
# Weights of what a sentence counts by. Set by hand; docs/quality.md says what half or double of each changes.
RANK, MEANING, WORDS, OWNER, NEWS, DATE, TYPE = 0.5, 0.6, 0.5, 0.25, 0.2, 0.3, 0.45
QUESTION_BACK, CAPTION = 0.5, 0.2
# New words up to which a sentence is worth more.
MOST_NEWS = 6
# A sentence without a word of the question or of the best sentence is aside where the best one has words of the
# question and its own memory has less than this share of the best memory's score. On development data no answer gained
# by such a sentence; in a bank of a dozen memories, of which each is recalled for each question, these are left over.
LEAST_SCORE_SHARE = 0.35
# Who speaks of himself, and who of whom he speaks to.
CONTRACTED = ("", "'m", "'ve", "'d", "'ll", "'re")
FIRST_PERSON = frozenset(
    {
        "my",
        "me",
        "mine",
        "myself",
        "our",
        "ours",
        "us",
        *[f"{who}{ending}" for who in ("i", "we") for ending in CONTRACTED],
    }
)
SECOND_PERSON = frozenset({"your", "yours", "yourself", *[f"you{ending}" for ending in CONTRACTED]})
# A description of an attached picture, as importers write it.
CAPTION_TEXT = re.compile(r"\[(?:image|photo|picture)\b")
CAPTION_START = re.compile(r"\s(?=\[(?:image|photo|picture)\b)")
ENDING_QUESTIONS = frozenset({'?"', "?'", "?)", "?\u201d"})
# In a question with a date these are no names; a memory of that date need not hold them. Others may be called May.
DATE_WORDS = frozenset(map(str.lower, (*MONTH_NAMES[1:], *WEEKDAYS, *WEEKDAY_ABBREVIATIONS)))
# What may stand at the start of a question and is no name.
FIRST_NAME = re.compile(r"[A-Z\u00c0-\u00de]\w+(?=[\u2019' ])")
CAPITAL = re.compile(r"(?<![.!?] )(?<!^)\b[A-Z\u00c0-\u00de][\w\u2019'-]+")


@dataclass(slots=True)
class Sentence:
    """A sentence of a recalled memory.

    ``owner`` is 1 where it speaks of whom the question names, -1 of another. ``fit`` is 1 where it has an answer of the
    type that is asked for, 0 where it has none. ``aside`` is True where it has nothing to do with the question.
    ``speaker`` is who says it in a memory of several turns.
    """

    text: str
    hit: int
    place: int
    words: frozenset[str]
    first_person: bool = False
    second_person: bool = False
    meaning: float = 0.0
    fit: float = 0.0
    owner: float = 0.0
    score: float = 0.0
    aside: bool = False
    speaker: str | None = None


@dataclass(slots=True)
class Evidence:
    """The question against the memories.

    Attributes:
        hits: The memories, best first.
        sentences: Theirs, best first.
        support: Score of the best sentence that speaks of whom the question names, less that of the best one that
            speaks of another; 0 where the question names nobody or several.
        unknown: Names in the question that no memory holds.
        speaker: Whom the question names, where that is one of the speakers.
        person: Whom the question names, where no memory has a speaker.
        links: Sentences without which the others cannot be understood; an answer quotes them.
    """

    hits: tuple[MemoryHit, ...]
    sentences: list[Sentence]
    support: float = 0.0
    unknown: tuple[str, ...] = ()
    speaker: str | None = None
    person: str | None = None
    links: tuple[Sentence, ...] = ()


@dataclass(slots=True)
class _Question:
    text: str
    words: list[str]
    speaker: str | None
    named: frozenset[str]
    person: str | None = None
    weights: dict[str, float] = field(default_factory=dict)
    weight: float = 1.0


def gather(
    question: str,
    hits: Sequence[MemoryHit],
    embed: Embed,
    windows: Sequence[TimeRange] = (),
    most: int = MOST_MEMORIES,
) -> Evidence:
    """Read the memories for the question.

    Args:
        question: What is asked.
        hits: What was recalled for it, best first.
        embed: Texts to unit vectors of little-endian f32, at once.
        windows: Times that the question names.
        most: Memories that are read, and sentences of which the meaning is compared.
    """
    read = tuple(hits[:most])
    if not read:
        return Evidence((), [], unknown=tuple(_names(question, dated=bool(windows))))
    asked = _question(question, read)
    sentences = [sentence for number, hit in enumerate(read) for sentence in _sentences(number, hit)]
    _weigh(asked, sentences)
    ranks = _ranks(read)
    dated = [in_windows(hit, windows) for hit in read]
    kind = answer_type(question)
    fits = signs_of(kind, question)
    for sentence in sentences:
        if kind is not AnswerType.OTHER:
            sentence.fit = fits(sentence.text)
        _score(sentence, asked, read[sentence.hit], ranks[sentence.hit], dated=dated[sentence.hit])
    sentences.sort(key=lambda sentence: -sentence.score)
    compared = sentences[:most]
    texts = [question, *[sentence.text for sentence in compared]]
    vectors = embed(texts)
    ours = vector_values(vectors[0])
    for sentence, vector in zip(compared, vectors[1:], strict=True):
        sentence.meaning = sum(map(mul, ours, vector_values(vector)))
        sentence.score += MEANING * sentence.meaning
    compared.sort(key=lambda sentence: -sentence.score)
    _set_aside(compared, asked, read)
    return Evidence(
        read,
        compared,
        support=_support(compared, asked),
        unknown=_unknown(question, read, dated=bool(windows)),
        speaker=asked.speaker,
        person=asked.person,
    )


def _question(text: str, hits: Sequence[MemoryHit]) -> _Question:
    said = {word.partition("'")[0] for word in analysed(text)[0]}
    speakers = {hit.speaker for hit in hits if hit.speaker}
    # A name of spaces alone is none.
    named = sorted(speaker for speaker in speakers if (words := speaker.lower().split()) and words[0] in said)
    names = frozenset(word for speaker in named for word in content_words(speaker))
    words = [word for word in dict.fromkeys(content_words(text)) if word not in names]
    person = None if speakers else _person(text)
    return _Question(text, words, named[0] if len(named) == 1 else None, names, person)


def _person(question: str) -> str | None:
    """The only name in a question, if people are called so."""
    names = _names(question, dated=False)
    return names[0] if len(names) == 1 and fold(names[0]) in gazetteers().given else None


def _sentences(number: int, hit: MemoryHit) -> list[Sentence]:
    # A memory with a speaker is one turn.
    turns = [SpokenTurn(hit.text)] if hit.speaker else spoken_turns(hit.text)
    texts = [(text, turn.speaker) for turn in turns for text in _texts(turn.text)]
    return [_sentence(text, number, place, speaker) for place, (text, speaker) in enumerate(texts[:MOST_SENTENCES])]


def _texts(said: str) -> list[str]:
    pieces = split_sentences(said, every_stop=True)
    if "[" in said:
        pieces = [part for piece in pieces for part in CAPTION_START.split(piece)]
    return [text for piece in pieces if (text := piece.strip())]


def _sentence(text: str, number: int, place: int, speaker: str | None) -> Sentence:
    words, stems = analysed(text)
    return Sentence(
        text,
        number,
        place,
        frozenset(stems),
        first_person=not FIRST_PERSON.isdisjoint(words),
        second_person=not SECOND_PERSON.isdisjoint(words),
        speaker=speaker,
    )


def _weigh(asked: _Question, sentences: Sequence[Sentence]) -> None:
    """A word counts the more, the fewer of the sentences hold it."""
    counts = Counter(word for sentence in sentences for word in sentence.words)
    asked.weights = {word: math.log(1 + len(sentences) / (1 + counts[word])) for word in asked.words}
    asked.weight = sum(asked.weights.values()) or 1.0


def _ranks(hits: Sequence[MemoryHit]) -> list[float]:
    """Scores from 1 for the best hit to 0 for the last."""
    scores = [_recalled_score(hit) for hit in hits]
    best, last = scores[0], scores[-1]
    return [(score - last) / (best - last) if best > last else 1.0 for score in scores]


def _recalled_score(hit: MemoryHit) -> float:
    """The fused score of a hit, where it has one: it tells neighbouring ranks apart."""
    return hit.score if hit.fused_score is None else hit.fused_score


def _set_aside(sentences: Sequence[Sentence], asked: _Question, hits: Sequence[MemoryHit]) -> None:
    """Mark the sentences that have nothing to do with the question."""
    words, best = asked.weights.keys(), max(map(_recalled_score, hits))
    if not sentences or words.isdisjoint(sentences[0].words) or best <= 0:
        return
    # What tells more of the best sentence ("I sold the Kia", after "I drive a Kia") is not aside.
    near = words | sentences[0].words
    for sentence in sentences[1:]:
        sentence.aside = (
            near.isdisjoint(sentence.words) and _recalled_score(hits[sentence.hit]) < LEAST_SCORE_SHARE * best
        )


def in_windows(hit: MemoryHit, windows: Sequence[TimeRange]) -> bool:
    """True if a memory happened in one of the windows."""
    at = hit.occurred_at
    return at is not None and any(
        (window.start is None or window.start <= at) and (window.end is None or at <= window.end) for window in windows
    )


def _score(sentence: Sentence, asked: _Question, hit: MemoryHit, rank: float, *, dated: bool) -> None:
    """The score of a sentence without its meaning."""
    words, text = sentence.words, sentence.text
    shared = words & asked.weights.keys()
    overlap = sum([asked.weights[word] for word in shared]) / asked.weight
    news = len(words) - len(shared) - len(words & asked.named)
    if asked.speaker:
        sentence.owner = _owner(sentence, sentence.speaker or hit.speaker, asked.speaker)
    elif asked.person:
        sentence.owner = _of_person(sentence, hit, asked.person)
    sentence.score = (
        RANK * rank
        + WORDS * overlap
        + OWNER * sentence.owner
        + NEWS * min(news, MOST_NEWS) / MOST_NEWS
        + DATE * dated
        + TYPE * sentence.fit
        - QUESTION_BACK * (text[-1] == "?" or text[-2:] in ENDING_QUESTIONS)
        - CAPTION * (text[0] == "[" and CAPTION_TEXT.match(text) is not None)
    )


def _owner(sentence: Sentence, speaker: str | None, named: str) -> float:
    """The owner of a sentence: the one whom the question names (1), another (-1), or in between."""
    if speaker is None:
        return 0.0
    if speaker == named:
        return 1.0 if sentence.first_person or not sentence.second_person else -0.5
    if sentence.first_person:
        return -1.0
    if sentence.second_person:
        return 1.0
    return 0.3 if named.lower().split()[0] in sentence.text.lower() else -0.3


def _of_person(sentence: Sentence, hit: MemoryHit, person: str) -> float:
    """The owner of a sentence without a speaker: 1 for the person, -1 for another with whose name it begins."""
    if re.search(rf"\b{re.escape(person)}\b", hit.text, re.IGNORECASE):
        return 1.0
    return -1.0 if person_of(sentence) else 0.0


def person_of(sentence: Sentence) -> str:
    """The name of a person with which a sentence begins; empty for another beginning."""
    first = FIRST_NAME.match(sentence.text)
    return first[0] if first is not None and fold(first[0]) in gazetteers().given else ""


def _support(sentences: Sequence[Sentence], asked: _Question) -> float:
    if asked.speaker is None and asked.person is None:
        return 0.0
    # Without what the owner itself counts.
    scores = [(sentence.owner, sentence.score - OWNER * sentence.owner) for sentence in sentences]
    own = max((score for owner, score in scores if owner > 0), default=0.0)
    other = max((score for owner, score in scores if owner < 0), default=0.0)
    return own - other


def _names(question: str, *, dated: bool) -> list[str]:
    found = (name.removesuffix("'s").removesuffix("\u2019s") for name in CAPITAL.findall(question))
    return [name for name in dict.fromkeys(found) if not (dated and name.lower() in DATE_WORDS)]


def _unknown(question: str, hits: Sequence[MemoryHit], *, dated: bool) -> tuple[str, ...]:
    names = _names(question, dated=dated)
    if not names:
        return ()
    known = " ".join([f"{hit.speaker or ''} {hit.text}" for hit in hits]).lower()
    return tuple(name for name in names if name.lower() not in known)
