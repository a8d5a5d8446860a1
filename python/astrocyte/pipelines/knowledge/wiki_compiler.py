"""Compiling the pages of a bank: topics, what has changed, the pages' text, and one transaction for some pages each.

A page whose topic has the memories it was compiled from is left as it is. A process that is killed leaves whole pages;
the next compilation goes on with the others.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import TypeVar

from astrocyte.config import WikiSettings
from astrocyte.core import failpoint
from astrocyte.errors import CapabilityNotSupported, DeadlineExceeded, PiiRejected, ProviderUnavailable
from astrocyte.model import (
    BANK_SCOPE,
    Bank,
    CompileResult,
    MemoryHit,
    ModelBlock,
    ModelSection,
    PageWriter,
    ReflectQuery,
)
from astrocyte.pipelines.knowledge import documents, wiki_pages
from astrocyte.pipelines.knowledge.clusters import ClusterSearch
from astrocyte.pipelines.knowledge.refresh import cited_parts
from astrocyte.pipelines.reflect import llm_answer
from astrocyte.pipelines.reflect.prompts import Variant
from astrocyte.pipelines.text.model_calls import Withheld
from astrocyte.providers.protocols import LanguageModel
from astrocyte.stores.knowledge.wiki import Member, Outcome, PageDraft, PageState, Topic, WikiStore

# Pages of one transaction: some ten milliseconds' worth.
PAGES_AT_ONCE = 16
# Pages that a language model writes at once.
MODEL_PAGES_AT_ONCE = 4
# Times that pages are composed again whose memories changed meanwhile.
MOST_TRIES = 3
# Of the text of a page, and how freely it is told: it states what memories state.
PAGE_TOKENS, TEMPERATURE = 700, 0.0

# The name of the page is stored text, so it stands behind the fence.
PAGE_QUESTION = "What is known about the subject? Write a page of an encyclopedia."

T = TypeVar("T")
# Texts as they may be stored.
Screen = Callable[[str, Sequence[str]], Awaitable[Sequence[str]]]


@dataclass(slots=True)
class _Work:
    """A compilation on its way."""

    bank: Bank
    by: str
    writer: PageWriter
    screen: Screen
    counts: dict[Outcome, int] = field(default_factory=lambda: dict.fromkeys(Outcome, 0))
    tokens: int = 0
    failed: int = 0


@dataclass(frozen=True, slots=True)
class _Plan:
    """The pages to write and those to delete."""

    changed: list[tuple[Topic, PageState | None]]
    leaving: list[PageState]
    unchanged: int
    topics: int
    noise: int


class WikiCompiler:
    """Compiles pages.

    Args:
        store: Topics and pages.
        model: The language model, if there is one.
        settings: Bounds, and who writes.
        executor: Reads and composes.
        withheld: Removes what must not leave from texts for a model.
        clusters: Finds topics of memories that have no other.
    """

    def __init__(
        self,
        store: WikiStore,
        model: LanguageModel | None,
        settings: WikiSettings,
        executor: Executor,
        withheld: Withheld,
        clusters: ClusterSearch,
    ) -> None:
        self._store = store
        self._clusters = clusters
        self._model = model
        self._settings = settings
        self._executor = executor
        self._withheld = withheld

    async def run(
        self, bank: Bank, scope: str, by: str, screen: Screen, *, validate_only: bool = False
    ) -> CompileResult:
        """Compile the pages of a scope.

        Args:
            bank: Whose memories.
            scope: ``bank`` for all topics; a tag or entity for one, which may have a single memory.
            by: Principal.
            screen: Judges what a language model wrote.
            validate_only: Count the pages that would be written and deleted, and write none.

        Raises:
            CapabilityNotSupported: `wiki.writer` is ``model``, and there is no language model.
        """
        writer = PageWriter(self._settings.writer)
        if writer is PageWriter.MODEL and self._model is None:
            raise CapabilityNotSupported(
                "wiki.writer is 'model', and there is no language model; set llm_provider, or wiki.writer: rules",
                metadata={"parameter": "wiki.writer"},
            )
        start = time.perf_counter()
        work = _Work(bank, by, writer, screen)
        plan = await self._planned(bank, scope, writer)
        if validate_only:
            return await self._beside(lambda: self._foreseen(bank, plan, start))
        for first in range(0, len(plan.leaving), PAGES_AT_ONCE):
            part = plan.leaving[first : first + PAGES_AT_ONCE]
            self._count(work, await self._store.remove(bank, part, by=by))
        at_once = PAGES_AT_ONCE if writer is PageWriter.RULES else MODEL_PAGES_AT_ONCE
        for first in range(0, len(plan.changed), at_once):
            await self._write(work, plan.changed[first : first + at_once])
        counts = work.counts
        return CompileResult(
            bank_id=bank.bank_id,
            scopes_compiled=plan.topics,
            pages_created=counts[Outcome.CREATED],
            pages_updated=counts[Outcome.UPDATED],
            pages_unchanged=plan.unchanged,
            pages_deleted=counts[Outcome.DELETED],
            pages_held=counts[Outcome.HELD],
            noise_memories=plan.noise,
            tokens_used=work.tokens,
            elapsed_ms=(time.perf_counter() - start) * 1e3,
            error=f"the language model could not write {work.failed} pages; rules wrote them" if work.failed else "",
        )

    async def _planned(self, bank: Bank, scope: str, writer: PageWriter) -> _Plan:
        least = self._settings.min_memories

        def read() -> tuple[list[Topic], int, set[int]]:
            topics, count = self._store.topics(bank, scope)
            return topics, count, {key for topic in topics if len(topic.row_keys) >= least for key in topic.row_keys}

        topics, count, named = await self._beside(read)
        if scope == BANK_SCOPE:
            topics = [*topics, *await self._clusters.topics(bank, named)]
        return await self._beside(lambda: self._plan(bank, scope, writer, topics, count))

    def _foreseen(self, bank: Bank, plan: _Plan, start: float) -> CompileResult:
        """The result of a plan that is not carried out."""
        known = [state for _, state in plan.changed if state is not None]
        held = self._store.held(bank, [*known, *plan.leaving])
        return CompileResult(
            bank_id=bank.bank_id,
            scopes_compiled=plan.topics,
            pages_created=len(plan.changed) - len(known),
            pages_updated=sum(state.page_id not in held for state in known),
            pages_unchanged=plan.unchanged,
            pages_deleted=sum(state.page_id not in held for state in plan.leaving),
            pages_held=len(held),
            noise_memories=plan.noise,
            tokens_used=0,
            elapsed_ms=(time.perf_counter() - start) * 1e3,
        )

    def _plan(self, bank: Bank, scope: str, writer: PageWriter, topics: Sequence[Topic], count: int) -> _Plan:
        states = {state.page_id: state for state in self._store.states(bank)}
        least = self._settings.min_memories if scope == BANK_SCOPE else 1
        ranked: list[tuple[bool, int, str, Topic]] = []
        taken: set[str] = set()
        for topic in topics:
            name = wiki_pages.page_id(topic)
            # A topic that has a page keeps it as long as it has a memory.
            if (len(topic.row_keys) >= least or name in states) and name not in taken:
                taken.add(name)
                ranked.append((name not in states, -len(topic.row_keys), name, topic))
        ranked.sort(key=lambda entry: entry[:3])
        chosen = ranked[: self._settings.max_pages]
        changed: list[tuple[Topic, PageState | None]] = []
        for _, _, name, topic in chosen:
            state = states.get(name)
            if state is None or state.fingerprint != self._fingerprint(topic, writer):
                changed.append((topic, state))
        kept = {name for _, _, name, _ in chosen}
        leaving = [state for name, state in states.items() if name not in kept and (scope in {BANK_SCOPE, state.scope})]
        covered: set[int] = set()
        for _, _, _, topic in chosen:
            covered.update(topic.row_keys)
        return _Plan(changed, leaving, len(chosen) - len(changed), len(chosen), count - len(covered))

    def _fingerprint(self, topic: Topic, writer: PageWriter) -> str:
        return wiki_pages.fingerprint(topic, self._chosen(topic), writer)

    def _chosen(self, topic: Topic) -> Sequence[int]:
        """The newest memories of a topic, as many as a page rests on."""
        return topic.row_keys[-self._settings.max_memories_per_page :]

    async def _write(self, work: _Work, part: Sequence[tuple[Topic, PageState | None]]) -> None:
        """Compose and write some pages; those whose memories changed meanwhile again."""
        left = list(part)
        for _ in range(MOST_TRIES):
            drafts = await self._drafts(work, left)
            failpoint("wiki.composed")
            outcomes = await self._store.write(
                work.bank,
                drafts,
                by=work.by,
                most=self._settings.max_pages,
                keep_revisions=self._settings.keep_revisions,
            )
            failpoint("wiki.written")
            self._count(work, outcomes)
            outdated = {draft.page_id for draft, done in zip(drafts, outcomes, strict=True) if done is Outcome.OUTDATED}
            if not outdated:
                return
            states = await self._beside(lambda: {one.page_id: one for one in self._store.states(work.bank)})
            ids = {wiki_pages.page_id(topic): topic for topic, _ in left}
            left = [(ids[name], states.get(name)) for name in ids if name in outdated]

    async def _drafts(self, work: _Work, part: Sequence[tuple[Topic, PageState | None]]) -> list[PageDraft]:
        def read() -> list[tuple[list[Member], list[ModelSection]]]:
            found = []
            for topic, _ in part:
                members = self._store.members(work.bank, topic, self._chosen(topic))
                found.append((members, wiki_pages.sections_of(members)))
            return found

        composed = await self._beside(read)
        written = [(sections, PageWriter.RULES) for _, sections in composed]
        if work.writer is PageWriter.MODEL:
            asked = [
                self._by_model(work, topic, members, sections)
                for (topic, _), (members, sections) in zip(part, composed, strict=True)
            ]
            written = list(await asyncio.gather(*asked))
        drafts: list[PageDraft] = []
        for (topic, state), (members, _), (sections, writer) in zip(part, composed, written, strict=True):
            if not sections:
                # Memories that say nothing make no page, and end the one that there was.
                self._count(work, [] if state is None else await self._store.remove(work.bank, [state], by=work.by))
                continue
            # By the memories that were read, so that one which came or went meanwhile is seen by the next compilation.
            told = wiki_pages.fingerprint(topic, sorted(member.row_key for member in members), work.writer)
            body = wiki_pages.body_of(topic, members, sections, told, writer)
            sources = tuple(member.memory.memory_id for member in members)
            drafts.append(PageDraft(wiki_pages.page_id(topic), topic.scope, body, sources, state))
        return drafts

    async def _by_model(
        self, work: _Work, topic: Topic, members: Sequence[Member], sections: list[ModelSection]
    ) -> tuple[list[ModelSection], PageWriter]:
        """The page in the words of the model, each part with its memories; the page of the rules where that fails."""
        if not members or not sections or self._model is None:
            return sections, PageWriter.RULES
        bank_id = work.bank.bank_id
        told = self._withheld(
            bank_id, [text or "" for one in members for text in (one.memory.content, one.memory.speaker)]
        )
        hits = tuple(
            MemoryHit(
                text,
                1.0,
                member.memory.memory_id,
                bank_id,
                occurred_at=member.memory.occurred_at,
                retained_at=member.memory.retained_at,
                speaker=speaker or None,
            )
            for member, text, speaker in zip(members, told[::2], told[1::2], strict=True)
        )
        name = wiki_pages.title_of({"titles": wiki_pages.titles(topic, members)}, topic.name)
        (name,) = self._withheld(bank_id, [name])
        query = ReflectQuery(PAGE_QUESTION, bank_id)
        task = llm_answer.Task(
            query=query,
            hits=hits,
            variant=Variant.SYNTHESIS,
            max_tokens=PAGE_TOKENS,
            temperature=TEMPERATURE,
            deadline=time.monotonic() + self._settings.model_seconds,
            confidence=1.0,
            subject=name,
        )
        try:
            draft = await llm_answer.answer(self._model, task)
            work.tokens += draft.tokens_used
            blocks = [] if draft.abstained else cited_parts(draft.text, draft.citations)
            screened = await work.screen(bank_id, [block.text for block in blocks])
        except (ProviderUnavailable, DeadlineExceeded, PiiRejected):
            blocks, screened = [], ()
        if not blocks:
            work.failed += 1
            return sections, PageWriter.RULES
        made = tuple(
            ModelBlock(text=text, source_ids=block.source_ids) for block, text in zip(blocks, screened, strict=True)
        )
        return [ModelSection("", documents.OVERVIEW, made)], PageWriter.MODEL

    def _count(self, work: _Work, outcomes: Sequence[Outcome]) -> None:
        for outcome in outcomes:
            work.counts[outcome] += 1

    async def _beside(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._executor, work)
