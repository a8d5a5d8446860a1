"""Choice of the sentences of an answer: relevant, and not the same twice."""

from __future__ import annotations

from collections.abc import Sequence

from astrocyte.core import count_tokens_many
from astrocyte.pipelines.reflect.answer_types import AnswerType, answer_type
from astrocyte.pipelines.reflect.evidence import ENDING_QUESTIONS, Sentence

# Items of a list: the usual token budget holds no more.
MOST_ITEMS = 6
# Sentences of an answer that is a time: on development data more of them add nothing. A number may have to be counted.
MOST_FOR_TIME = 3
TIMES = frozenset({AnswerType.DATE, AnswerType.DURATION, AnswerType.FREQUENCY})
# Words that say something; a greeting has fewer, and is no item.
LEAST_ITEM_WORDS = 2
# How much a sentence loses for the words that it shares with those chosen before: enough to pass over repetitions.
REDUNDANCY = 0.6
# An item with this share of an earlier one's words says the same fact again.
REPEATED = 0.75
# Sentences that count for less than this share of the best one are left out, by literalism: a literal answer says only
# what comes closest to the words of the question, a free one also what is related to it.
LEAST_SHARES = {1: 0.05, 2: 0.2, 3: 0.35, 4: 0.6, 5: 0.85}
# From this literalism on, an answer leaves out what is aside of the question.
LEAST_TO_THE_POINT = 3
# The least share of an item of a list, whatever the literalism: what counts for less is about something else.
LEAST_ITEM_SHARE = 0.5


def choose(
    sentences: Sequence[Sentence], *, max_tokens: int, most: int, literalism: int = 3, items: bool = False
) -> list[Sentence]:
    """Sentences by score, each less what it repeats, while they fit.

    Args:
        sentences: By score, best first.
        max_tokens: Of all together.
        most: Sentences of the answer.
        literalism: 1 to 5; how close to the question a sentence must be.
        items: They are items of a list: none repeats another, and none is a question.
    """
    tokens = count_tokens_many([sentence.text for sentence in sentences])
    share = max(LEAST_SHARES[literalism], LEAST_ITEM_SHARE) if items else LEAST_SHARES[literalism]
    floor = share * sentences[0].score if sentences and sentences[0].score > 0 else float("-inf")
    repeats = [0.0] * len(sentences)
    pool = list(range(len(sentences)))
    if items:
        pool = [number for number in pool if _is_item(sentences[number])] or pool
    elif literalism >= LEAST_TO_THE_POINT:
        pool = [number for number in pool if not sentences[number].aside]
    chosen: list[Sentence] = []
    left = max_tokens
    while pool and len(chosen) < most:
        best = max(pool, key=lambda number: sentences[number].score - REDUNDANCY * repeats[number])
        pool.remove(best)
        sentence = sentences[best]
        if chosen and (sentence.score < floor or tokens[best] > left or (items and repeats[best] >= REPEATED)):
            continue
        chosen.append(sentence)
        left -= tokens[best]
        for number in pool:
            repeats[number] = max(repeats[number], _shared(sentences[number].words, sentence.words))
    return chosen


def most_sentences(question: str, most: int) -> int:
    """The number of sentences of an answer that may have ``most``: fewer if it is a time."""
    return min(most, MOST_FOR_TIME) if answer_type(question) in TIMES else most


def in_place(said: Sequence[Sentence], kept: Sentence, dropped: Sentence) -> list[Sentence]:
    """The sentences with ``kept`` in the place of the first of the two, and without ``dropped``."""
    place = next(place for place, one in enumerate(said) if one is kept or one is dropped)
    others = [one for one in said if one is not kept and one is not dropped]
    return [*others[:place], kept, *others[place:]]


def _is_item(sentence: Sentence) -> bool:
    asks = sentence.text[-1:] == "?" or sentence.text[-2:] in ENDING_QUESTIONS
    return not asks and len(sentence.words) >= LEAST_ITEM_WORDS


def _shared(one: frozenset[str], other: frozenset[str]) -> float:
    """Share of the smaller sentence's words that the two have in common."""
    return len(one & other) / max(1, min(len(one), len(other)))
