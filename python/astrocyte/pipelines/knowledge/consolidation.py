"""Consolidation by rules: observations from the statements of a bank's memories.

Statements of one subject and predicate share a topic. A statement that agrees with an observation adds its memory to
the evidence; one that contradicts it supersedes it, or is superseded, by the times of the evidence, and both are kept
with their validity. Of an observation whose source changed, all sources are read again. One whose source was forgotten
is deleted, and built again of the sources that are left. Each scope has topics of its own, so that no statement of one
becomes evidence in another.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from astrocyte.model import BANK_SCOPE, Bank, Memory, RevisionCause
from astrocyte.pipelines.knowledge import model_plan
from astrocyte.pipelines.knowledge.claims import Claim
from astrocyte.pipelines.knowledge.model_plan import memories_of, still_said
from astrocyte.pipelines.knowledge.scopes import Scopes
from astrocyte.pipelines.knowledge.statements import TOPIC_BYTES, Statement, statements
from astrocyte.pipelines.query.time_windows import to_ms
from astrocyte.stores.knowledge.consolidation import Action, ConsolidationStore, Revise
from astrocyte.stores.knowledge.items import CLAIM_KEYS, ItemKind, ItemRecord, NewItem

# Addition to the confidence for each source after the first, and the most that rules may have.
PER_SOURCE, MOST_CONFIDENCE = 0.05, 0.95


@dataclass(slots=True)
class _Draft:
    """An observation on its way: the record if there is one, and the times of its sources by memory."""

    record: ItemRecord | None
    item_id: str
    scope: str
    topic: bytes
    body: dict[str, Any]
    claim: Claim
    times: dict[str, int]
    changed: bool = False
    supersedes: bool = False

    @property
    def first(self) -> int:
        """The time of the first source."""
        return min(self.times.values())

    @property
    def last(self) -> int:
        """The time of the last source."""
        return max(self.times.values())


def plan(store: ConsolidationStore, bank: Bank, memory_ids: Sequence[str], most: int, scopes: Scopes) -> list[Action]:
    """The actions after changes of memories.

    Args:
        store: Reads memories and observations.
        bank: Whose they are.
        memory_ids: The memories that changed.
        most: Observations that the bank may have.
        scopes: The scopes that a memory is consolidated in.
    """
    outdated = {record.key: record for record in store.resting_on(bank, memory_ids)}
    while True:
        sources = (source.memory_id for record in outdated.values() for source in record.current.sources)
        found = [
            (memory, scope, topic_of(scope, statement.topic), statement)
            for memory in store.memories(bank, list(dict.fromkeys((*memory_ids, *sources))))
            for statement in statements(memory.content, memory.speaker)
            for scope in scopes(memory)
        ]
        # Where an observation goes, those of its topic that it superseded hold again.
        left = (record.topic for record in outdated.values() if record.topic is not None)
        topics = list(dict.fromkeys((*(topic for _, _, topic, _ in found), *left)))
        known = store.of_topics(bank, topics) if topics else []
        # One whose source changes again behind these changes may be hidden now and come back later.
        more = [record for record in known if record.key not in outdated and record.is_outdated]
        if not more:
            break
        outdated |= {record.key: record for record in more}
    drafts: dict[bytes, list[_Draft]] = {topic: [] for topic in topics}
    for record in known:
        # One that somebody rewrote is no longer the rules', and one that is not shown gets no revision: it is replaced.
        is_ours = all(key in record.current.body for key in CLAIM_KEYS) and not record.lacks_source
        if record.topic is not None and is_ours:
            drafts[record.topic].append(_of_record(record, record.topic, is_outdated=record.key in outdated))
    for memory, scope, topic, statement in found:
        _add(drafts[topic], scope, topic, memory, statement)
    kept = [[draft for draft in group if draft.times] for group in drafts.values()]
    for group in kept:
        _order(group)
    rebuilt = {draft.record.key for group in kept for draft in group if draft.record is not None}
    actions: list[Action] = []
    for record in outdated.values():
        if record.key not in rebuilt:
            # The rules cannot say again what a language model wrote, but find whether its memories still say it.
            is_models = record.topic == model_plan.topic_of(record.scope)
            saying = still_said(record, memories_of(store, bank, record)) if is_models else []
            actions.append(model_plan.rebuilt(record, saying, most))
    for group in kept:
        actions += [_action(draft, most) for draft in group if draft.changed]
    return actions


def topic_of(scope: str, topic: bytes) -> bytes:
    """The topic of a statement in a scope."""
    if scope == BANK_SCOPE:
        return topic
    return hashlib.blake2b(topic + scope.encode(), digest_size=TOPIC_BYTES).digest()


def _of_record(record: ItemRecord, topic: bytes, *, is_outdated: bool) -> _Draft:
    times = {source.memory_id: source.observed_at for source in record.current.sources}
    body = dict(record.current.body)
    claim = Claim.of(body)
    return _Draft(
        record, record.item_id, record.scope, topic, body, claim, {} if is_outdated else times, changed=is_outdated
    )


def _add(group: list[_Draft], scope: str, topic: bytes, memory: Memory, statement: Statement) -> None:
    """Add a memory to the evidence of the observation that says what its statement does, or to a new one."""
    time = to_ms(memory.occurred_at or memory.retained_at)
    draft = next((one for one in group if one.claim.agrees(statement.claim)), None)
    if draft is None:
        new_id = f"obs-{uuid.uuid4().hex}"
        draft = _Draft(None, new_id, scope, topic, _body(statement), statement.claim, {})
        group.append(draft)
    if not draft.times:
        draft.claim = statement.claim
        draft.body |= {"text": statement.text, **statement.claim.encoded()}
    if memory.memory_id not in draft.times:
        draft.times[memory.memory_id] = time
        base = draft.body["base_confidence"]
        draft.body["confidence"] = min(MOST_CONFIDENCE, base + PER_SOURCE * (len(draft.times) - 1))
        draft.changed = True


def _body(statement: Statement) -> dict[str, Any]:
    return {
        "text": statement.text,
        "kind": str(statement.kind),
        "confidence": statement.confidence,
        "valid_from": None,
        "valid_until": None,
        "superseded_by": "",
        "superseders": [],
        "base_confidence": statement.confidence,
        **statement.claim.encoded(),
    }


def _order(group: Sequence[_Draft]) -> None:
    """Give the observations of a topic their validity: of those that contradict each other, the one seen last holds."""
    ranked = sorted(group, key=lambda draft: (draft.last, draft.item_id))
    for place, draft in enumerate(ranked):
        later = [one for one in ranked[place + 1 :] if one.claim.contradicts(draft.claim)]
        # Of each, its first evidence from the last evidence of this one on.
        against = [(one.item_id, min(time for time in one.times.values() if time >= draft.last)) for one in later]
        held: Mapping[str, Any] = {
            "valid_from": draft.first,
            "valid_until": min((time for _, time in against), default=None),
            "superseded_by": later[-1].item_id if later else "",
            "superseders": [list(one) for one in against],
        }
        if any(draft.body[name] != value for name, value in held.items()):
            draft.supersedes = draft.supersedes or held["superseded_by"] != draft.body["superseded_by"]
            draft.body.update(held)
            draft.changed = True


def _action(draft: _Draft, most: int) -> Action:
    sources = tuple(sorted(draft.times))
    if draft.record is not None:
        return Revise(draft.record, draft.body, sources, draft.supersedes)
    item = NewItem(ItemKind.OBSERVATION, draft.item_id, draft.scope, draft.body, most, sources, topic=draft.topic)
    return replace(item, cause=RevisionCause.CONSOLIDATED)
