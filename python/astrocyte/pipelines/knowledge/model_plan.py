"""The actions of a consolidation by a language model: what it proposes, and what becomes of outdated observations.

Two statements that differ in a name, number, date or negation are never merged, and every source of an observation says
all of its text: an update of which the known sources do not say all makes another observation. Of the two the one with
the later evidence holds, or both where the new one only says more.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from astrocyte.core import split_sentences
from astrocyte.model import Bank, Memory, ObservationKind, RevisionCause
from astrocyte.pipelines.knowledge.model_actions import Act, Proposal, bears_out, can_both_hold, covers
from astrocyte.pipelines.knowledge.statements import TOPIC_BYTES
from astrocyte.pipelines.query.time_windows import to_ms
from astrocyte.pipelines.retain.statement_differences import same_words
from astrocyte.stores.knowledge.consolidation import Action, ConsolidationStore, Delete, Revise
from astrocyte.stores.knowledge.items import CLAIM_KEYS, ItemKind, ItemRecord, NewItem


@dataclass(slots=True)
class _Draft:
    """An observation on its way: the record if there is one, its body, and the times of its sources by memory."""

    record: ItemRecord | None
    item_id: str
    body: dict[str, Any]
    times: dict[str, int]
    changed: bool = False
    supersedes: bool = False
    deleted: bool = False


def planned(
    proposals: Sequence[Proposal], memories: Sequence[Memory], records: Sequence[ItemRecord], scope: str, most: int
) -> list[Action]:
    """The actions of proposals.

    Args:
        proposals: In the order of the model.
        memories: Those that were shown.
        records: The observations that were shown.
        scope: Of memories and observations.
        most: Observations that the bank may have.
    """
    drafts = [_of_record(record) for record in records]
    shown = len(drafts)
    for proposal in proposals:
        times = {memories[place].memory_id: _time(memories[place]) for place in proposal.evidence}
        named = drafts[proposal.observation - 1] if 0 < proposal.observation <= shown else None
        if proposal.act is Act.DELETE:
            if named is not None:
                named.deleted = True
        elif named is not None and not named.deleted and covers(named.body["text"], proposal.text):
            _merge(named, proposal, times)
        else:
            _put(drafts, proposal, times, named)
    return [action for draft in drafts if (action := _action(draft, scope, most)) is not None]


def _put(drafts: list[_Draft], proposal: Proposal, times: Mapping[str, int], former: _Draft | None) -> None:
    """Add a statement of its own; ``former`` is the observation that it takes the place of."""
    same = next(
        (one for one in drafts if not one.deleted and same_words(one.body["text"], proposal.text)),
        None,
    )
    if same is None:
        body = {
            "text": proposal.text,
            "kind": str(ObservationKind.STATEMENT),
            "confidence": proposal.confidence,
            "valid_from": min(times.values()),
            "valid_until": None,
            "superseded_by": "",
            "superseders": [],
        }
        same = _Draft(None, f"obs-{uuid.uuid4().hex}", body, dict(times), changed=True)
        drafts.append(same)
    else:
        _merge(same, proposal, times)
    if former is None or former is same or former.deleted or can_both_hold(former.body["text"], proposal.text):
        return
    _supersede(former, same)


def _merge(draft: _Draft, proposal: Proposal, times: Mapping[str, int]) -> None:
    """Add evidence to an observation, with the text of the proposal; without new evidence nothing changes."""
    if times.keys() <= draft.times.keys():
        return
    draft.times = {**times, **draft.times}
    if proposal.text != draft.body["text"]:
        # The rules no longer know the statement.
        for key in CLAIM_KEYS:
            draft.body.pop(key, None)
    draft.body |= {
        "text": proposal.text,
        "confidence": max(proposal.confidence, draft.body["confidence"]),
        "valid_from": min(draft.times.values()),
    }
    draft.changed = True


def _supersede(one: _Draft, other: _Draft) -> None:
    """Of two observations of which only one can hold, let the one with the later evidence hold."""
    earlier, later = sorted((one, other), key=lambda draft: (max(draft.times.values()), draft.item_id))
    last = max(earlier.times.values())
    at = min(time for time in later.times.values() if time >= last)
    earlier.body |= {"valid_until": at, "superseded_by": later.item_id, "superseders": [[later.item_id, at]]}
    earlier.changed = earlier.supersedes = True


def _of_record(record: ItemRecord) -> _Draft:
    times = {source.memory_id: source.observed_at for source in record.current.sources}
    return _Draft(record, record.item_id, dict(record.current.body), times)


def _action(draft: _Draft, scope: str, most: int) -> Action | None:
    sources = tuple(sorted(draft.times))
    if draft.record is not None:
        if draft.deleted:
            return Delete(draft.record)
        return Revise(draft.record, draft.body, sources, draft.supersedes) if draft.changed else None
    if draft.deleted:
        return None
    return _new(draft.item_id, scope, draft.body, sources, most)


def _new(item_id: str, scope: str, body: Mapping[str, Any], sources: tuple[str, ...], most: int) -> NewItem:
    cause, topic = RevisionCause.CONSOLIDATED, topic_of(scope)
    return NewItem(ItemKind.OBSERVATION, item_id, scope, body, most, sources, topic=topic, cause=cause)


def memories_of(store: ConsolidationStore, bank: Bank, record: ItemRecord) -> list[Memory]:
    """The memories that an observation rests on, as they are now; those that left its scope are left out."""
    named = [source.memory_id for source in record.current.sources]
    inside = store.in_scope(bank, record.scope, named)
    return [memory for memory in store.memories(bank, named) if memory.memory_id in inside]


def still_said(record: ItemRecord, memories: Sequence[Memory]) -> list[Memory]:
    """The memories that still say what an outdated observation says, each in one sentence."""
    text = record.current.body["text"]
    return [
        memory
        for memory in memories
        if any(bears_out(sentence, memory.speaker, text) for sentence in split_sentences(memory.content))
    ]


def rebuilt(record: ItemRecord, memories: Sequence[Memory], most: int) -> Action:
    """The action that leaves an outdated observation to the memories that still say it, or deletes it without any."""
    if not memories:
        return Delete(record)
    body = {**record.current.body, "valid_from": min(map(_time, memories))}
    sources = tuple(sorted(memory.memory_id for memory in memories))
    if not record.lacks_source:
        return Revise(record, body, sources)
    # One that is not shown gets no revision.
    new = _new(f"obs-{uuid.uuid4().hex}", record.scope, body, sources, most)
    return Delete(record, replace(new, topic=record.topic))


def topic_of(scope: str) -> bytes:
    """The topic of what a language model observes in a scope."""
    return hashlib.blake2b(b"model\x1f" + scope.encode(), digest_size=TOPIC_BYTES).digest()


def _time(memory: Memory) -> int:
    return to_ms(memory.occurred_at or memory.retained_at)
