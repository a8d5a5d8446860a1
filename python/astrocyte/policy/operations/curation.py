"""Curated retain at the gate: who is asked, what is shown, and what of a decision is done.

A model is shown only what the caller may read, after the barriers looked at it, and a memory is forgotten only where
the caller may forget. Whatever goes wrong leaves a plain retain, whose result says why.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from astrocyte.config import CuratedRetainSettings, Settings
from astrocyte.errors import AstrocyteError
from astrocyte.model import (
    Bank,
    Caller,
    Curation,
    CurationAction,
    DetailLevel,
    ForgetSelector,
    MemoryHit,
    Permission,
    RecallQuery,
    RetainItem,
    RetainResult,
)
from astrocyte.pipelines.retain import llm_curation
from astrocyte.pipelines.retain.drafts import Draft
from astrocyte.policy.events import emit
from astrocyte.policy.operations.parts import OperationParts
from astrocyte.policy.settings.bank_settings import Overrides
from astrocyte.providers.protocols import LanguageModel

Placed = tuple[RetainItem, str]
# Contents of a batch that are decided on at once.
PARALLEL = 8
# What is looked for beside a long content: its beginning says what it is about.
QUERY_CHARS = 2_000
# What the memories that a model sees may hold together.
SHOWN_TOKENS = 4_096
REASON = "curated retain"


@dataclass(frozen=True, slots=True)
class Ruling:
    """A ruling on one item: the item as it is to be stored, the decision, and the etag of its memory."""

    item: RetainItem
    decision: Curation
    layer: str | None = None
    etag: str | None = None

    def mark(self, draft: Draft) -> None:
        """Let the draft be stored so."""
        draft.curation = self.decision
        if self.decision.applied:
            draft.layer = self.layer or draft.layer
            draft.target_etag = self.etag


def mark(drafts: Sequence[Draft], rulings: Sequence[Ruling]) -> None:
    """Let drafts be stored as it was decided, where anything was."""
    for draft, ruling in zip(drafts, rulings, strict=bool(rulings)):
        ruling.mark(draft)


class Curating:
    """Asks the language model of the settings.

    Args:
        parts: What the operations share.
    """

    def __init__(self, parts: OperationParts) -> None:
        self._model = parts.policies.curator
        self._recall = parts.pipelines.recall
        self._forget = parts.pipelines.forget
        self._store = parts.store
        self._banks = parts.banks
        self._access = parts.access
        self._overrides = parts.policies.overrides
        self._barriers = parts.policies.barriers
        self._outbox_relay = parts.policies.outbox_relay
        self._places = asyncio.Semaphore(PARALLEL)

    async def judge(self, caller: Caller, bank_id: str, items: Sequence[Placed]) -> list[Ruling]:
        """A ruling on each item; none where the bank does not curate."""
        settings = self._overrides.of[bank_id].curated_retain
        if self._model is None or not settings.enabled:
            return []
        model = self._model
        rulings = await asyncio.gather(*(self._judged(model, settings, caller, bank_id, item) for item, _ in items))
        taken: set[str] = set()
        for place, ruling in enumerate(rulings):
            target = ruling.decision.target_id
            if ruling.decision.applied and ruling.decision.action in llm_curation.TARGETED and target is not None:
                if target in taken:
                    (rulings[place],) = self.plain([items[place]], [ruling], "another item changes that memory")
                taken.add(target)
        return rulings

    @staticmethod
    def plain(items: Sequence[Placed], rulings: Sequence[Ruling], reason: str) -> list[Ruling]:
        """The items as they came, where what was decided cannot be done."""
        return [
            Ruling(item, replace(ruling.decision, applied=False, reason=reason))
            for (item, _), ruling in zip(items, rulings, strict=True)
        ]

    async def finish(
        self, caller: Caller, bank: Bank, rulings: Sequence[Ruling], results: Sequence[RetainResult]
    ) -> list[RetainResult]:
        """Forget what is disproved, after what disproves it is on the disk."""
        return [
            await self._disproved(caller, bank, result)
            if ruling.decision.applied and ruling.decision.action is CurationAction.DELETE
            else result
            for ruling, result in zip(rulings, results, strict=True)
        ]

    async def _judged(
        self, model: LanguageModel, settings: CuratedRetainSettings, caller: Caller, bank_id: str, item: RetainItem
    ) -> Ruling:
        decision = Curation(CurationAction.ADD, applied=False, model=model.model_id)
        try:
            async with self._places:
                deadline = time.monotonic() + settings.deadline_seconds
                hits = await self._neighbours(caller, bank_id, item, settings.context_recall_limit)
                prompt = llm_curation.prompt_of(item, hits, settings.max_tokens)
                answer = await model.complete(prompt, deadline=deadline)
            verdict = llm_curation.read(answer.text, item, hits)
            shown = None if verdict.target is None else hits[verdict.target]
            target = None if shown is None else shown.memory_id
            decision = replace(decision, action=verdict.action, applied=True, target_id=target, reason=verdict.reason)
            return await self._allowed(caller, bank_id, item, decision, verdict, shown)
        except AstrocyteError as error:
            emit("curation_failed", operation="retain", bank_id=bank_id, reason=error.reason)
            return Ruling(item, replace(decision, applied=False, reason=error.message))

    async def _neighbours(self, caller: Caller, bank_id: str, item: RetainItem, most: int) -> list[MemoryHit]:
        """The memories nearest to an item that the caller may read, as the barriers let them be seen."""
        bank = self._banks.known(caller, bank_id)
        if bank is None or not most or Permission.READ not in self._access.permissions(caller, bank_id, bank):
            return []
        query = RecallQuery(
            item.content[:QUERY_CHARS],
            bank_id,
            max_results=most,
            detail_level=DetailLevel.FULL,
            embedding=item.embedding,
            include_trace=False,
        )
        found = await self._recall.run(bank, query, SHOWN_TOKENS)
        return list(self._barriers.shown(bank_id, "Retain", found).hits)

    async def _allowed(
        self,
        caller: Caller,
        bank_id: str,
        item: RetainItem,
        decision: Curation,
        verdict: llm_curation.Verdict,
        shown: MemoryHit | None,
    ) -> Ruling:
        """The decision as far as the caller may have it done, and the bank takes what it makes.

        Raises:
            AstrocyteError: A merged content is not taken.
        """
        bank = self._banks.known(caller, bank_id)
        if decision.action not in llm_curation.TARGETED or bank is None or shown is None:
            return Ruling(item, decision, verdict.layer)
        memory = self._store.memory(bank, shown.memory_id or "")
        problem = None
        if memory is None or memory.version != shown.version:
            problem = "the memory changed meanwhile"
        elif decision.action is CurationAction.DELETE:
            if Permission.FORGET not in self._access.permissions(caller, bank_id, bank):
                problem = "the caller may not forget in this bank"
        elif memory.speaker != (item.speaker or item.metadata.get("speaker")):
            problem = "somebody else said it"
        elif decision.action is CurationAction.MERGE and memory.content != shown.text:
            problem = "the memory could not be shown whole"
        if problem is not None or memory is None:
            return Ruling(item, replace(decision, applied=False, reason=problem or ""))
        if decision.action is CurationAction.DELETE:
            return Ruling(item, decision, verdict.layer)
        if decision.action is CurationAction.MERGE:
            # A caller's vector is that of the content before.
            item = replace(item, content=verdict.content, embedding=None)
            item, _ = await self._barriers.item(bank_id, "Retain", item, "", quiet=True)
        return Ruling(item, decision, verdict.layer, memory.etag)

    async def _disproved(self, caller: Caller, bank: Bank, result: RetainResult) -> RetainResult:
        decision = result.curation
        if decision is None or decision.target_id is None or not result.stored:
            return result
        selector = ForgetSelector(memory_ids=(decision.target_id,))
        principal = self._access.name(caller)
        try:
            copies = self._outbox_relay.order(bank.tenant, bank.bank_id, principal, caller.on_behalf_of, caller.hops)
            await self._forget.forget(bank, selector, reason=REASON, principal=principal, request=None, copies=copies)
        except AstrocyteError as error:
            emit("curation_failed", operation="retain", bank_id=bank.bank_id, reason=error.reason)
            decision = replace(decision, applied=False, reason=error.message)
            return replace(result, curated=False, curation=decision)
        if copies is not None:
            self._outbox_relay.note(copies.engine)
        return result


def check_curation(settings: Settings, overrides: Overrides, model: LanguageModel | None) -> None:
    """Refuse a curated retain where there is no language model.

    Raises:
        ConfigError: Names the key and its line.
    """
    blocks = [settings.curated_retain, *(bank.curated_retain for bank in settings.banks.values())]
    blocks += [bank.curated_retain for bank in overrides.templates.values()]
    if model is None and any(block.enabled for block in blocks):
        raise settings.refusal(("curated_retain", "enabled"), "needs a language model; set llm_provider")
