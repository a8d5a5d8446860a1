"""Decisions on drafts: store, store and flag, replace a memory, or leave out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from astrocyte.config import DedupSettings
from astrocyte.core import Bank as CoreBank
from astrocyte.core import Core, Row
from astrocyte.errors import Conflict
from astrocyte.model import Bank, CurationAction, DedupAction, RetainItem
from astrocyte.pipelines.index.rows import ID_PREFIX, id_to_bytes
from astrocyte.pipelines.query.time_windows import optional_ms
from astrocyte.pipelines.retain.drafts import Draft, identity_hash
from astrocyte.pipelines.retain.statement_differences import differs
from astrocyte.stores.protocols import MemoryStore
from astrocyte.stores.records import Insert, NewMemory, Replace, VersionRecord, Write, WriteOutcome


class Near(NamedTuple):
    """A near duplicate that the guard let pass."""

    memory_id: str
    similarity: float


@dataclass(slots=True)
class Decision:
    """The decision on a draft.

    ``write`` is None where it is left out. ``same`` is the memory of the same identity, where one is known: the store
    has the last word on that, so the draft is given to it all the same, unless it has ``new_tags`` for that memory.
    """

    draft: Draft
    write: Write | None
    near: Near | None = None
    same: str | None = None
    new_tags: bool = False


class Decider:
    """Decides on the drafts of one commit, each in view of what the earlier ones leave behind."""

    def __init__(
        self,
        bank: Bank,
        index: CoreBank,
        store: MemoryStore,
        dedup: DedupSettings,
        principal: str,
        most_tags: int,
    ) -> None:
        self._bank = bank
        self._index = index
        self._store = store
        self._dedup = dedup
        self._principal = principal
        self._most_tags = most_tags
        # Memories as the decisions so far leave them, by id, and what these have by content hash.
        self._pending: dict[str, NewMemory] = {}
        self._hashes: dict[bytes, str] = {}
        self._recent: _Recent | None = None
        # Memories that the drafts may repeat, and these as the store has them, read together at the first question.
        self._candidates: tuple[str, ...] = ()
        self._stored: dict[str, VersionRecord] | None = None

    def decide(self, drafts: Sequence[Draft]) -> list[Decision]:
        """One decision for each draft, in their order."""
        if len(drafts) > 1:
            self._recent = _Recent(self._bank.dimensions)
        hashes = self._index.contains_hashes([draft.content_hash for draft in drafts])
        kept = [None if same is None else f"{ID_PREFIX}{same.hex()}" for same in hashes]
        similar = self._similar(drafts)
        chosen = [draft.curation.target_id for draft in drafts if draft.curation is not None]
        near = [one.memory_id for hits in similar for one in hits]
        self._candidates = tuple(dict.fromkeys(one for one in (*kept, *chosen, *near) if one is not None))
        return [self._decision(*one) for one in zip(drafts, kept, similar, strict=True)]

    def _similar(self, drafts: Sequence[Draft]) -> list[list[Near]]:
        """The stored memories nearest to each draft that reach its threshold, nearest first."""
        asked = [(draft, draft.vector) for draft in drafts if draft.vector is not None and self._compared(draft)]
        if not asked:
            return [[] for _ in drafts]
        thresholds = [self._threshold(draft.item) for draft, _ in asked]
        found = self._index.near_duplicates([vector for _, vector in asked], min(thresholds))
        near = {
            id(draft): [Near(f"{ID_PREFIX}{key.hex()}", cosine) for _, key, cosine in hits if cosine >= threshold]
            for (draft, _), hits, threshold in zip(asked, found, thresholds, strict=True)
        }
        return [near.get(id(draft), []) for draft in drafts]

    def _decision(self, draft: Draft, indexed: str | None, stored: list[Near]) -> Decision:
        if draft.left_out:
            return Decision(draft, None)
        same = self._hashes.get(draft.content_hash)
        if same is None and indexed not in self._pending:
            same = indexed
        if same is not None:
            kept, etag = self._kept(same)
            # None where it was forgotten since, or is damaged.
            if kept is not None:
                return self._same(draft, same, kept, etag)
        if draft.curation is not None and draft.target_etag is not None and draft.curation.target_id is not None:
            return self._curated(draft, draft.curation.target_id, draft.target_etag)
        # What an earlier draft replaces is no longer what the index says.
        near = [one for one in stored if one.memory_id not in self._pending]
        if self._recent is not None and self._compared(draft):
            near += self._recent.near(draft, self._threshold(draft.item))
        for one in near:
            kept, etag = self._kept(one.memory_id)
            if kept is not None and not _distinct(kept, draft, fills=self._action(draft) is DedupAction.UPDATE):
                return self._repeated(draft, one, kept, etag)
        return self._insert(draft)

    def _same(self, draft: Draft, same: str, kept: NewMemory, etag: str | None) -> Decision:
        """The memory of the same identity stays as it is, with the draft's tags added to its own.

        Where it would have more tags than a memory may have, it keeps its own, and the caller is warned.
        """
        tags = tuple(dict.fromkeys((*kept.tags, *draft.item.tags)))
        if len(tags) > max(self._most_tags, len(kept.tags)):
            said = f"the memory keeps its tags: it would have {len(tags)}, the limit is {self._most_tags}"
            draft.warnings = tuple(dict.fromkeys((*draft.warnings, said)))
            tags = kept.tags
        if len(tags) == len(kept.tags):
            self._note(same, draft)
            return Decision(draft, Insert(draft.memory(self._principal)), same=same)
        spare = draft.spare if len(draft.chunks) == len(kept.chunks) else None
        self._put(replace(kept, tags=tags, spare=spare), draft)
        return Decision(draft, Replace(self._pending[same], etag), same=same, new_tags=True)

    def _curated(self, draft: Draft, target_id: str, expected: str) -> Decision:
        """The replacement of the memory that a language model chose.

        Raises:
            Conflict: It is no longer what the model saw.
        """
        kept, etag = self._kept(target_id)
        if kept is None or etag != expected:
            raise Conflict(f"memory {target_id!r} changed since it was decided on", metadata={"memory_id": target_id})
        if draft.curation is not None and draft.curation.action is CurationAction.MERGE:
            # What is said of both parts holds for the whole.
            tags = tuple(dict.fromkeys((*kept.tags, *draft.item.tags)))
            metadata = {**kept.metadata, **draft.item.metadata}
            draft = replace(draft, item=replace(draft.item, tags=tags, metadata=metadata))
        return self._replaced(draft, target_id, kept, etag)

    def _kept(self, memory_id: str) -> tuple[NewMemory | None, str | None]:
        """A memory as it will be when this draft's turn comes, and its etag where the store has it so."""
        pending = self._pending.get(memory_id)
        if pending is not None:
            return pending, None
        if self._stored is None:
            found = self._store.current_versions(self._bank, self._candidates)
            self._stored = {record.memory.memory_id: record for record in found}
        version = self._stored.get(memory_id)
        return (None, None) if version is None else (version.memory, version.etag)

    def _repeated(self, draft: Draft, near: Near, kept: NewMemory, etag: str | None) -> Decision:
        """The decision on a near duplicate, by the caller's action."""
        action = self._action(draft)
        if action is DedupAction.WARN:
            return self._insert(draft, near)
        if action is DedupAction.SKIP:
            return Decision(draft, None, near)
        return self._replaced(draft, near.memory_id, kept, etag, near)

    def _replaced(
        self, draft: Draft, memory_id: str, kept: NewMemory, etag: str | None, near: Near | None = None
    ) -> Decision:
        memory = _filled(draft.memory(self._principal, memory_id), kept)
        if self._hashes.get(kept.content_hash) == memory_id:
            del self._hashes[kept.content_hash]
        self._put(memory, draft)
        return Decision(draft, Replace(memory, etag), near)

    def _insert(self, draft: Draft, near: Near | None = None) -> Decision:
        memory = draft.memory(self._principal)
        self._put(memory, draft)
        return Decision(draft, Insert(memory), near)

    def _put(self, memory: NewMemory, draft: Draft) -> None:
        self._pending[memory.memory_id] = memory
        self._hashes[memory.content_hash] = memory.memory_id
        if self._recent is not None:
            self._recent.put(memory.memory_id, draft)

    def _note(self, same: str, draft: Draft) -> None:
        """Let later drafts find a stored memory by this draft's vector, which may not be the memory's own."""
        if self._recent is not None and same not in self._pending:
            self._recent.put(same, draft)

    def _action(self, draft: Draft) -> DedupAction:
        return draft.item.dedup_action or DedupAction(self._dedup.action)

    def _threshold(self, item: RetainItem) -> float:
        wish = item.dedup_threshold
        return self._dedup.similarity_threshold if wish is None else wish

    def _compared(self, draft: Draft) -> bool:
        """True if near duplicates of a draft are sought: by the settings, or because its item asks for it.

        A vector of the caller's is of a model whose cosines are not known here: by the settings alone only exact
        copies are taken then. Nor are near duplicates sought where a language model has decided already.
        """
        item = draft.item
        if draft.curation is not None and draft.curation.applied:
            return False
        asked = item.dedup_action is not None or item.dedup_threshold is not None
        return asked or (self._dedup.enabled and item.embedding is None)


class _Recent:
    """The drafts of one batch, searched for near duplicates among themselves."""

    def __init__(self, dimensions: int) -> None:
        self._bank = Core().bank(dimensions)
        self._rows: dict[str, int] = {}
        self._position = 0

    def near(self, draft: Draft, threshold: float) -> list[Near]:
        """Memories that earlier drafts of the batch became and this one resembles, nearest first."""
        if draft.vector is None or not self._rows:
            return []
        hits = self._bank.near_duplicates([draft.vector], threshold)[0]
        return [Near(f"{ID_PREFIX}{identity.hex()}", similarity) for _, identity, similarity in hits]

    def put(self, memory_id: str, draft: Draft) -> None:
        """Let later drafts find a memory by this draft's vector, and by no earlier one."""
        earlier = self._rows.pop(memory_id, None)
        self._position += 1
        upserts = []
        if draft.vector is not None:
            self._rows[memory_id] = key = self._position
            identity = id_to_bytes(memory_id) or bytes(16)
            upserts.append(Row(key, identity, draft.content_hash, "", draft.vector, tokens=0, known_from=0))
        self._bank.apply(self._position, upserts, (), () if earlier is None else (earlier,))


def check_outcomes(decisions: Sequence[Decision], outcomes: Sequence[WriteOutcome]) -> None:
    """Refuse a commit in which a decision rests on a memory that did not come about as foreseen.

    Raises:
        Conflict: Content was stored, or forgotten, by another write meanwhile.
    """
    relied = {decision.near.memory_id for decision in decisions if decision.near is not None}
    written = iter(outcomes)
    for decision in decisions:
        if decision.write is None:
            continue
        dropped = next(written).duplicate_of is not None
        if isinstance(decision.write, Insert):
            if dropped and decision.same is None and decision.draft.item.tags:
                raise Conflict("another write stored this content meanwhile; retry to add the tags", metadata={})
            memory_id = decision.same or decision.write.memory.memory_id
            if memory_id in relied and dropped != (decision.same is not None):
                raise Conflict(
                    "another write changed the memories that this write was compared with; retry", metadata={}
                )


def _distinct(kept: NewMemory, draft: Draft, *, fills: bool) -> bool:
    """True if likeness deceives: another speaker, session or instant, or words that may say something else.

    Where the draft takes the memory's place and so ``fills`` what it leaves open, a session or an instant that only the
    draft has is no difference.
    """
    occurred_at = optional_ms(draft.item.occurred_at)
    pairs = ((kept.session_id or None, draft.session_id or None), (kept.occurred_at, occurred_at))
    return (
        (kept.speaker or None) != draft.speaker
        or any(given is not None and given != own and not (fills and own is None) for own, given in pairs)
        or differs(kept.content, draft.content)
    )


def _filled(memory: NewMemory, kept: NewMemory) -> NewMemory:
    """The new version with what the item leaves open taken from the kept one."""
    session_id = memory.session_id or kept.session_id
    speaker = memory.speaker or kept.speaker
    occurred_at = kept.occurred_at if memory.occurred_at is None else memory.occurred_at
    return replace(
        memory,
        content_hash=identity_hash(memory.content, speaker, session_id, occurred_at),
        tags=memory.tags or kept.tags,
        metadata=memory.metadata or kept.metadata,
        source=memory.source or kept.source,
        session_id=session_id,
        speaker=speaker,
        occurred_at=occurred_at,
        valid_from=kept.valid_from if memory.valid_from is None else memory.valid_from,
        valid_until=kept.valid_until if memory.valid_until is None else memory.valid_until,
    )
