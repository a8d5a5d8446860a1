"""The Python API: the same operations in process and, through `astrocyte.connect`, over the wire.

async with Astrocyte.from_config("astrocyte.yaml") as brain:
    await brain.retain("Mara cannot eat sesame.", bank_id="family")
    result = await brain.recall("what can Mara not eat?", bank_id="family")
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, Unpack

from astrocyte import keywords
from astrocyte.administration import Administration
from astrocyte.agent_memory import AgentMemories
from astrocyte.api import Backend
from astrocyte.api.requests import (
    BatchRecall,
    Explain,
    Forget,
    GetMemory,
    History,
    ListMemories,
    Recall,
    Reflect,
    Retain,
    StreamReflect,
    StreamRetain,
    UndeleteMemory,
    UpdateMemory,
    Watch,
)
from astrocyte.config import HookSettings, Settings, load_settings
from astrocyte.core import vector_bytes
from astrocyte.entity_graph import EntityGraph
from astrocyte.errors import AstrocyteError, CapabilityNotSupported
from astrocyte.keywords import (
    GivenMetadata,
    RecallOptions,
    ReflectOptions,
    RetainOptions,
    Strategy,
    Texts,
    UpdateOptions,
)
from astrocyte.knowledge import Knowledge
from astrocyte.model import (
    AstrocyteContext,
    Change,
    DetailLevel,
    Dispositions,
    Embedding,
    ExplainQuery,
    ExplainResult,
    ForgetResult,
    ForgetSelector,
    FusionMethod,
    HistoryResult,
    Memory,
    MemoryHit,
    MemoryPage,
    MemoryUpdate,
    RecallQuery,
    RecallResult,
    ReflectResult,
    RetainItem,
    RetainResult,
    TagMatch,
)
from astrocyte.policy.engines.registry import Engines
from astrocyte.policy.observability.hooks_middleware import Hookable
from astrocyte.portability import Portability
from astrocyte.providers.engines import EngineProvider
from astrocyte.providers.hybrid import HybridEngineProvider
from astrocyte.shared_kb import SharedKnowledge
from astrocyte.unsupported import Unsupported
from astrocyte.wiki import Wiki

if TYPE_CHECKING:
    # A client of a server has no sources.
    from astrocyte.ingest import IngestTarget, SourceRegistry

# Items of one commit: enough to share its cost, few enough that the first are acknowledged soon.
COMMIT_ITEMS = 256

# `Astrocyte.list` hides the name in the class body.
Results = list[RetainResult]


class Astrocyte(
    Administration, AgentMemories, SharedKnowledge, EntityGraph, Knowledge, Portability, Wiki, Hookable, Unsupported
):
    """Memory for agents.

    Make one by `from_config` or `from_config_dict`, or `astrocyte.connect` for a server's; close it at the end, or use
    it as an async context manager. Every method checks its arguments first and raises `ValidationError` for a wrong
    one; ``context`` says who calls, and defaults to the local user.

    Args:
        backend: What does the work.
        hooks: How hooks are called; None where policies are applied in another process, and what they do is not known.
        engines: The engines of this process; None where another process has them.
        sources: The sources of this process; None where another process has them.
    """

    def __init__(
        self,
        backend: Backend,
        hooks: HookSettings | None = None,
        engines: Engines | None = None,
        sources: SourceRegistry | None = None,
    ) -> None:
        self._backend = backend
        self._hook_settings = hooks
        self._engines = engines
        self._sources = sources

    @classmethod
    def from_config(cls, path: str | Path) -> Self:
        """Memory in this process, as a YAML file and the environment say.

        Raises:
            ConfigError: A setting is wrong; the message names its line.
            StoreLocked: Another process has the data directory.
        """
        return cls._opened(load_settings(path))

    @classmethod
    def from_config_dict(cls, config: Mapping[str, Any]) -> Self:
        """Memory in this process, as a dictionary of settings says; the environment is not read.

        Raises:
            ConfigError: A setting is wrong.
            StoreLocked: Another process has the data directory.
        """
        return cls._opened(Settings.from_mapping(config))

    @classmethod
    def _opened(cls, settings: Settings) -> Self:
        from astrocyte.app import App  # noqa: PLC0415 - a client of a server needs no store

        app = App(settings)
        return cls(app.backend, settings.hooks, app.providers.engines, app.sources)

    async def __aenter__(self) -> Self:
        """Start the configured sources that are read, such as streams and polls; `close` stops them."""
        if self._sources is not None:
            self._sources.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def set_engine_provider(self, engine: HybridEngineProvider | EngineProvider) -> None:
        """Let an engine stand beside the pipeline of this process; a bare one takes its place (docs/engines.md).

        Raises:
            CapabilityNotSupported: The memory is a server's, whose configuration names its engines.
            ConfigError: The engine cannot do what it should, or its name is taken.
        """
        if self._engines is None:
            raise CapabilityNotSupported("engines of a server are set in its configuration; add one under engines")
        self._engines.attach(engine)

    async def start_sources(self) -> None:
        """Read the streams and polls of ``sources``, as ``async with`` does by itself; a second call does nothing.

        Deliveries of webhooks come through `astrocyte.gateway.create_ingest_webhook_app`, or to a server.

        Raises:
            CapabilityNotSupported: The memory is a server's, which runs its sources by itself.
        """
        self.source_registry.start()

    async def stop_sources(self) -> None:
        """Stop reading; what is not acknowledged comes again after the next start. A second call does nothing.

        Raises:
            CapabilityNotSupported: The memory is a server's.
        """
        await self.source_registry.stop()

    @property
    def source_registry(self) -> SourceRegistry:
        """The configured sources of this process.

        Raises:
            CapabilityNotSupported: The memory is a server's.
        """
        if self._sources is None:
            raise CapabilityNotSupported("sources of a server are in its configuration, and run there")
        return self._sources

    def ingest_target(self) -> IngestTarget:
        """The target of sources that a program runs by itself (docs/ingest.md).

        Raises:
            CapabilityNotSupported: The memory is a server's.
        """
        return self.source_registry.target

    async def retain(  # noqa: PLR0913 - the parameters of the specification
        self,
        content: str,
        bank_id: str,
        *,
        metadata: GivenMetadata | None = None,
        tags: Texts | None = None,
        context: AstrocyteContext | None = None,
        content_type: str = "text",
        extraction_profile: str | None = None,
        occurred_at: datetime | None = None,
        source: str | None = None,
        pii_detected: bool = False,
        request_id: str | None = None,
        **options: Unpack[RetainOptions],
    ) -> RetainResult:
        """Store content; it is durable, and found by the next recall, when this returns.

        Args:
            content: What to remember.
            bank_id: Where; the bank is made on first use.
            metadata: Key-value pairs that come back with the memory and can be filtered on. ``speaker`` and
                ``session_id`` among them count as such where the options of these names are not given.
                ``also_relevant_to`` is a list of other banks: recalls on those find the memory too, where their caller
                may read both.
            tags: Labels to filter on.
            context: Who calls.
            content_type: text, conversation, transcript, document, email or event. A name of your own is kept with the
                memory and treated as text; one that looks like a slip of these is refused.
            extraction_profile: One of the settings, or a built-in one such as builtin_conversation.
            occurred_at: When it happened, with a time zone.
            source: Where it comes from.
            pii_detected: You know that it holds personal data: the barrier acts on it even where it finds none.
            request_id: The same id with the same request answers what it answered before.
            **options: See `RetainOptions`.
        """
        keywords.refuse_unknown("retain", options, RetainOptions)
        item = keywords.item_of(
            content=content,
            metadata=metadata,
            tags=tags,
            content_type=content_type,
            extraction_profile=extraction_profile,
            occurred_at=occurred_at,
            source=source,
            pii_detected=pii_detected,
            **options,
        )
        return await self._backend.call(keywords.caller_of(context), Retain(bank_id, item, request_id))

    async def retain_many(
        self,
        items: Sequence[RetainItem | Mapping[str, Any]],
        bank_id: str,
        *,
        context: AstrocyteContext | None = None,
    ) -> Results:
        """Store many items, each for itself; results in order, ``error`` says what was wrong with one.

        Args:
            items: `RetainItem`, or mappings with the keywords of `retain`.
            bank_id: Where.
            context: Who calls.
        """
        caller = keywords.caller_of(context)
        made = [
            item if isinstance(item, RetainItem) else keywords.item_from(item, index)
            for index, item in enumerate(items)
        ]
        results: Results = []
        for start in range(0, len(made), COMMIT_ITEMS):
            stored = await self._backend.call(caller, StreamRetain(bank_id, made[start : start + COMMIT_ITEMS]))
            results.extend(
                keywords.rejected(result) if isinstance(result, AstrocyteError) else result for result in stored
            )
        return results

    async def recall(  # noqa: PLR0913 - the parameters of the specification
        self,
        query: str,
        bank_id: str | None = None,
        *,
        banks: Texts | None = None,
        strategy: Strategy | None = None,
        max_results: int = 10,
        max_tokens: int | None = None,
        tags: Texts | None = None,
        context: AstrocyteContext | None = None,
        external_context: Sequence[MemoryHit] | None = None,
        fact_types: Texts | None = None,
        time_range: tuple[datetime, datetime] | None = None,
        include_sources: bool = False,
        layer_weights: dict[str, float] | None = None,
        detail_level: str | None = None,
        as_of: datetime | None = None,
        **options: Unpack[RecallOptions],
    ) -> RecallResult:
        """Find the memories that matter to a query, best first.

        Args:
            query: A question in natural language.
            bank_id: Where to look.
            banks: Where to look instead, in several banks; see `MultiBankStrategy`. A configured group of banks is
                named by ``bank_group`` in the options.
            strategy: How several banks are asked; None is as configured.
            max_results: Hits wanted.
            max_tokens: Budget of all hits' texts together.
            tags: Only memories with at least one of these labels; see ``tag_match`` in the options.
            context: Who calls.
            external_context: Results of another system to blend in, under the same filter and budget; never stored.
            fact_types: Only these kinds of facts.
            time_range: Only memories that happened (or, where that is not known, were stored) in it; ends included.
            include_sources: Whether hits carry their source and the principal that stored them.
            layer_weights: Factors by memory layer.
            detail_level: titles, chunk (the default) or full.
            as_of: The bank as the service knew it then.
            **options: See `RecallOptions`.

        Raises:
            BankNotFound: There is no such bank.
        """
        keywords.refuse_unknown("recall", options, RecallOptions)
        keywords.refuse_nowhere(bank_id, banks, options.get("bank_group"))
        extra: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
        keywords.convert(extra, "tag_match", lambda value: keywords.choice(TagMatch, value, "tag_match"))
        keywords.convert(extra, "fusion_method", lambda value: keywords.choice(FusionMethod, value, "fusion_method"))
        keywords.convert(extra, "retained_range", lambda value: keywords.time_range(value, "retained_range"))
        keywords.convert(extra, "memory_ids", lambda value: keywords.texts(value, "memory_ids"))
        asked = RecallQuery(
            query=query,
            bank_id=bank_id or "",
            banks=keywords.texts(banks, "banks"),
            strategy=keywords.strategy_of(strategy),
            max_results=max_results,
            max_tokens=max_tokens,
            tags=keywords.texts(tags, "tags"),
            fact_types=keywords.texts(fact_types, "fact_types"),
            time_range=keywords.time_range(time_range, "time_range") if time_range is not None else None,
            include_sources=include_sources,
            layer_weights=layer_weights or {},
            detail_level=keywords.choice(DetailLevel, detail_level or DetailLevel.CHUNK, "detail_level"),
            as_of=as_of,
            external_context=tuple(external_context or ()),
            **extra,
        )
        return keywords.plain(await self._backend.call(keywords.caller_of(context), Recall(asked)))

    async def recall_many(
        self, queries: Sequence[RecallQuery], *, context: AstrocyteContext | None = None
    ) -> list[RecallResult]:
        """Answer many queries, over any banks; each result equals the one of `recall`."""
        results = await self._backend.call(keywords.caller_of(context), BatchRecall(queries))
        return [keywords.plain(result) for result in results]

    async def explain(
        self,
        query: RecallQuery,
        memory_ids: Sequence[str],
        *,
        position: int = 0,
        context: AstrocyteContext | None = None,
    ) -> ExplainResult:
        """Where memories fell out of a recall, or their places in it, and the least change that would return each.

        Args:
            query: The recall, of one bank or several.
            memory_ids: The memories in question.
            position: Position that the trace of a finished recall of one bank names; the result says when the bank
                moved on since.
            context: Who calls.
        """
        asked = ExplainQuery(query, keywords.texts(memory_ids, "memory_ids"), position)
        return await self._backend.call(keywords.caller_of(context), Explain(asked))

    async def history(  # noqa: PLR0913 - the parameters of the specification
        self,
        query: str,
        bank_id: str,
        as_of: datetime,
        *,
        max_results: int = 10,
        max_tokens: int | None = None,
        tags: Texts | None = None,
        context: AstrocyteContext | None = None,
    ) -> HistoryResult:
        """Recall on the bank as it was known at ``as_of``. Forgotten memories are absent at every instant."""
        asked = RecallQuery(
            query=query,
            bank_id=bank_id,
            as_of=as_of,
            max_results=max_results,
            max_tokens=max_tokens,
            tags=keywords.texts(tags, "tags"),
        )
        return keywords.plain(await self._backend.call(keywords.caller_of(context), History(asked)))

    async def reflect(  # noqa: PLR0913 - the parameters of the specification
        self,
        query: str,
        bank_id: str | None = None,
        *,
        banks: Texts | None = None,
        strategy: Strategy | None = None,
        max_tokens: int | None = None,
        tags: Texts | None = None,
        context: AstrocyteContext | None = None,
        include_sources: bool = True,
        dispositions: Dispositions | Mapping[str, int] | None = None,
        **options: Unpack[ReflectOptions],
    ) -> ReflectResult:
        """Answer a question from memory; the answer says what it rests on, and when memory does not hold one.

        Args:
            query: A question in natural language.
            bank_id: Where to look.
            banks: Where to look instead, in several banks; ``bank_group`` in the options names a configured group.
            strategy: How several banks are asked; None is as configured.
            max_tokens: Budget of the answer.
            tags: Only from memories with at least one of these labels; see ``tag_match`` in the options.
            context: Who calls.
            include_sources: Whether the result carries the memories that the answer rests on.
            dispositions: How the answer leans: `Dispositions`, or a mapping with its names.
            **options: See `ReflectOptions`; ``mode`` is extractive, llm or agentic.

        Raises:
            BankNotFound: There is no such bank.
            CapabilityNotSupported: The mode needs a language model.
            ProviderUnavailable: The language model failed, and the settings name nothing to fall back on.
        """
        asked = keywords.question(query, bank_id, banks, strategy, max_tokens, tags, dispositions, options)
        request = Reflect(replace(asked, include_sources=include_sources))
        return keywords.plain_reflect(await self._backend.call(keywords.caller_of(context), request))

    async def reflect_stream(  # noqa: PLR0913 - the parameters of reflect
        self,
        query: str,
        bank_id: str | None = None,
        *,
        banks: Texts | None = None,
        strategy: Strategy | None = None,
        max_tokens: int | None = None,
        tags: Texts | None = None,
        context: AstrocyteContext | None = None,
        dispositions: Dispositions | Mapping[str, int] | None = None,
        **options: Unpack[ReflectOptions],
    ) -> AsyncIterator[str | ReflectResult]:
        """As `reflect`: the pieces of the answer as they come, and last of all the whole result."""
        asked = keywords.question(query, bank_id, banks, strategy, max_tokens, tags, dispositions, options)
        async with aclosing(self._backend.stream(keywords.caller_of(context), StreamReflect(asked))) as pieces:  # type: ignore[type-var]
            async for piece in pieces:
                yield keywords.plain_reflect(piece) if isinstance(piece, ReflectResult) else piece

    async def forget(  # noqa: PLR0913 - the parameters of the specification
        self,
        bank_id: str,
        *,
        memory_ids: Texts | None = None,
        tags: Texts | None = None,
        scope: str | None = None,
        context: AstrocyteContext | None = None,
        compliance: bool = False,
        reason: str | None = None,
        before_date: datetime | None = None,
        dry_run: bool = False,
        request_id: str | None = None,
    ) -> ForgetResult:
        """Forget the memories that all given selectors meet; at least one is needed.

        Args:
            bank_id: Where.
            memory_ids: These; ids that the bank does not hold are passed over.
            tags: Those with at least one of these labels.
            scope: ``all`` for every memory of the bank.
            context: Who calls.
            compliance: Erase for good, with a receipt.
            reason: Kept with the deletion.
            before_date: Those that happened (or were stored) before; without a time zone it is read as UTC.
            dry_run: Count and change nothing.
            request_id: The same id with the same request answers what it answered before.
        """
        if isinstance(before_date, datetime) and before_date.tzinfo is None:
            before_date = before_date.replace(tzinfo=UTC)
        selector = ForgetSelector(
            memory_ids=keywords.texts(memory_ids, "memory_ids"),
            tags=keywords.texts(tags, "tags"),
            scope=scope,
            before_date=before_date,
        )
        request = Forget(bank_id, selector, compliance, reason, dry_run, request_id)
        return await self._backend.call(keywords.caller_of(context), request)

    async def undelete(
        self, memory_id: str, bank_id: str, *, request_id: str | None = None, context: AstrocyteContext | None = None
    ) -> Memory:
        """Bring a forgotten memory back, or restore an archived one."""
        return await self._backend.call(keywords.caller_of(context), UndeleteMemory(bank_id, memory_id, request_id))

    async def get(self, memory_id: str, bank_id: str, *, context: AstrocyteContext | None = None) -> Memory:
        """One memory."""
        return await self._backend.call(keywords.caller_of(context), GetMemory(bank_id, memory_id))

    async def list(  # noqa: PLR0913 - a filter and the bounds of a page
        self,
        bank_id: str,
        *,
        tags: Texts | None = None,
        session_id: str | None = None,
        page_size: int = 0,
        page_token: str = "",
        archived: bool = False,
        context: AstrocyteContext | None = None,
    ) -> MemoryPage:
        """A page of memories in order of arrival; all pages show the bank as the first one did.

        ``archived`` lists the archived memories instead.
        """
        request = ListMemories(bank_id, keywords.texts(tags, "tags"), session_id, page_size, page_token, archived)
        return await self._backend.call(keywords.caller_of(context), request)

    async def update(
        self,
        memory_id: str,
        bank_id: str,
        *,
        embedding: Embedding | None = None,
        etag: str | None = None,
        request_id: str | None = None,
        context: AstrocyteContext | None = None,
        **changes: Unpack[UpdateOptions],
    ) -> Memory:
        """Make a new version of a memory from the fields that are given; see `UpdateOptions`."""
        keywords.refuse_unknown("update", changes, UpdateOptions)
        values: dict[str, Any] = dict(changes)
        keywords.convert(values, "metadata", keywords.joined)
        keywords.convert(values, "tags", lambda value: keywords.texts(value, "tags"))
        for name, empty in (("tags", ()), ("metadata", {})):
            if name in values and values[name] is None:
                values[name] = empty
        update = MemoryUpdate(memory_id, frozenset(values), embedding=embedding, etag=etag, **values)
        return await self._backend.call(keywords.caller_of(context), UpdateMemory(bank_id, update, request_id))

    def watch(
        self, bank_id: str, *, after: int | None = None, context: AstrocyteContext | None = None
    ) -> AsyncIterator[Change]:
        """The bank's changes after a position (None: from now on), as they come, without end."""
        return self._backend.stream(keywords.caller_of(context), Watch(bank_id, after))


def make_embedding(model: str, values: Sequence[float]) -> Embedding:
    """A vector of your own for retain, update and recall.

    Args:
        model: Name of the model that made it; it must be the bank's.
        values: A list or a one-dimensional array; need not be of length 1.

    Raises:
        ValidationError: A value is no number, or too large for 32 bits.
    """
    return Embedding(model, len(values), vector_bytes(values))
