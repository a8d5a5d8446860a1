"""The extractive answer of a reflect: chooses sentences, looks up what they need, and composes them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from astrocyte.config import ReflectSettings
from astrocyte.model import Intent, MemoryHit, RecallQuery
from astrocyte.pipelines.reflect import extractive
from astrocyte.pipelines.reflect.contradictions import Statements, Superseded, superseded
from astrocyte.pipelines.reflect.draft import Draft
from astrocyte.pipelines.reflect.evidence import Evidence, Sentence
from astrocyte.pipelines.reflect.list_questions import asks_for_list
from astrocyte.pipelines.reflect.replies import Asked, asked_before, is_reply
from astrocyte.pipelines.reflect.selection import MOST_ITEMS, choose, in_place, most_sentences
from astrocyte.pipelines.reflect.work import Work
from astrocyte.pipelines.text.time_questions import asks_for_time_only

# Words of questions for what held once.
PAST = re.compile(
    r"\b(?:before|previous(?:ly)?|used to|formerly|former|originally|at first|first|earlier)\b", re.IGNORECASE
)
# Literalism where the caller does not say.
NEUTRAL = 3


class ExtractiveAnswer:
    """Answers by quoting sentences.

    Args:
        settings: Bounds of an answer.
        statements: Tells the statements of a sentence.
    """

    def __init__(self, settings: ReflectSettings, statements: Statements) -> None:
        self._settings = settings
        self._statements = statements

    async def answer(self, work: Work, recall: RecallQuery) -> Draft:
        """The answer to a question, of its evidence.

        Args:
            work: The question and its evidence; at least one sentence.
            recall: The recall that found the evidence.
        """
        evidence, dispositions = work.evidence, work.query.dispositions
        is_list = asks_for_list(work.query.query)
        max_tokens = min(work.query.max_tokens or self._settings.extractive_max_tokens, work.allowance.most_tokens)
        most = self._settings.extractive_max_sentences
        if is_list:
            most = MOST_ITEMS
        elif work.query.max_tokens is None:
            # A caller who gives a budget wants an answer of that length.
            most = most_sentences(work.query.query, most)
        chosen = choose(
            evidence.sentences,
            max_tokens=max_tokens,
            most=most,
            literalism=NEUTRAL if dispositions is None else dispositions.literalism,
            items=is_list,
        )
        chosen = _with_links(chosen, evidence.links, most)
        by_time = work.intent is Intent.TEMPORAL
        form = extractive.Form(
            max_tokens,
            by_time=by_time,
            events=by_time and asks_for_time_only(work.query.query),
            # One item is no list.
            is_list=is_list and len(chosen) > 1,
        )
        asked = await _questions(work, chosen, recall)
        chosen = _with_replies(chosen, asked, evidence)
        # Items of a list do not bring others.
        compared = chosen if is_list else evidence.sentences
        old = [] if _asks_for_past(work) else superseded(chosen, compared, evidence.hits, self._statements)
        draft = extractive.compose(evidence, _within(chosen, old, most), form, old, asked)
        return replace(draft, confidence=work.confidence)


def _asks_for_past(work: Work) -> bool:
    """True if a question is not about what holds now: it names a time, or asks for what was before."""
    trace = work.recalled.trace
    return PAST.search(work.query.query) is not None or (trace is not None and bool(trace.time_windows))


def _with_links(chosen: Sequence[Sentence], links: Sequence[Sentence], most: int) -> list[Sentence]:
    """The sentences with those that explain them, behind the best one."""
    missing = [one for one in links if all(one is not other for other in chosen)]
    return [*chosen[:1], *missing, *chosen[1:]][: max(most, 1 + len(missing))] if missing else list(chosen)


async def _questions(work: Work, chosen: Sequence[Sentence], recall: RecallQuery) -> Mapping[int, Asked]:
    """The questions to which chosen memories reply, by the numbers of the memories."""
    evidence = work.evidence
    replies = {one.hit: hit for one in chosen if is_reply(hit := evidence.hits[one.hit])}
    if not replies:
        return {}
    before = work.allowance.turns_before(list(replies.values()))
    if not before:
        return {}
    found = await _found(work, set(before.values()), evidence, recall)
    return {
        number: question
        for number, hit in replies.items()
        if (turn := found.get(before.get(hit.memory_id or "", ""))) is not None
        and (question := asked_before(hit, turn)) is not None
    }


def _with_replies(chosen: Sequence[Sentence], asked: Mapping[int, Asked], evidence: Evidence) -> list[Sentence]:
    """The sentences without the questions that are told with their replies; a reply takes the place of its question."""
    said = list(chosen)
    for number, question in asked.items():
        reply = next(one for one in said if one.hit == number)
        memory_id = question.hit.memory_id
        repeats = [one for one in said if evidence.hits[one.hit].memory_id == memory_id and one.text == question.text]
        if repeats:
            said = in_place(said, reply, repeats[0])
    return said


def _within(chosen: Sequence[Sentence], old: Sequence[Superseded], most: int) -> list[Sentence]:
    """The sentences without the last of those that no longer have room beside contradicting ones."""
    paired = {id(one) for pair in old for one in pair}
    kept = list(chosen)
    added = len(paired) - sum(id(one) in paired for one in chosen)
    for one in reversed(chosen):
        if len(kept) + added <= most:
            break
        if id(one) not in paired and one is not chosen[0]:
            kept.remove(one)
    return kept


async def _found(work: Work, wanted: set[str], evidence: Evidence, recall: RecallQuery) -> dict[str, MemoryHit]:
    """Memories by id: those of the first recall, and the others by a second one, behind the same filters."""
    known = (*work.recalled.hits, *evidence.hits)
    found = {hit.memory_id: hit for hit in known if hit.memory_id is not None and hit.memory_id in wanted}
    missing = tuple(sorted(wanted - found.keys()))
    if missing:
        query = replace(recall, memory_ids=missing, max_results=len(missing), include_trace=False)
        turns = (await work.allowance.recall(query)).hits
        found |= {hit.memory_id: hit for hit in turns if hit.memory_id is not None and hit.memory_id in missing}
    return found
