"""The Python API: the same operations in process and, through `astrocyte.connect`, over the wire.

async with Astrocyte.from_config("astrocyte.yaml") as brain:
    await brain.retain("Mara cannot eat sesame.", bank_id="family")
    result = await brain.recall("what can Mara not eat?", bank_id="family")
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import fields, replace
from datetime import datetime
from difflib import get_close_matches
from enum import StrEnum
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self, TypedDict, TypeVar, Unpack

from astrocyte.config import Settings, load_settings
from astrocyte.core import vector_bytes
from astrocyte.errors import AstrocyteError, CapabilityNotSupported, ValidationError
from astrocyte.model import (
    ACTOR_TYPES,
    DEFAULT_TENANT,
    AccessCheck,
    ActorIdentity,
    AstrocyteContext,
    AuditPage,
    Bank,
    BankGroup,
    BankPage,
    BankStats,
    BankTemplate,
    Caller,
    Change,
    DedupAction,
    DetailLevel,
    Dispositions,
    Embedding,
    ForgetResult,
    ForgetSelector,
    FusionMethod,
    Grant,
    GrantPage,
    HistoryResult,
    Hold,
    HoldPage,
    KeyInfo,
    Memory,
    MemoryHit,
    MemoryPage,
    MemoryUpdate,
    MetadataValue,
    MultiBankStrategy,
    Permission,
    RecallQuery,
    RecallResult,
    ReflectMode,
    ReflectQuery,
    ReflectResult,
    RetainItem,
    RetainResult,
    RetentionAction,
    ServerInfo,
    TagMatch,
    TimeRange,
)
from astrocyte.policy import checks
from astrocyte.policy.backend import Backend
from astrocyte.policy.trail import Verification, verify

# Items of one commit: enough to share its cost, few enough that the first are acknowledged soon.
COMMIT_ITEMS = 256

# `Astrocyte.list` hides the name in the class body.
Texts = list[str]
Keys = list[KeyInfo]
Templates = list[BankTemplate]
Groups = list[BankGroup]
Results = list[RetainResult]
Metadata = dict[str, MetadataValue]
Strategy = Literal["cascade", "parallel", "first_match"] | MultiBankStrategy
E = TypeVar("E", bound=StrEnum)
Answer = TypeVar("Answer", RecallResult, HistoryResult)


class RetainOptions(TypedDict, total=False):
    """What retain takes beyond the specification's parameters."""

    session_id: str | None
    speaker: str | None
    fact_type: str | None
    valid_from: datetime | None
    valid_until: datetime | None
    embedding: Embedding | None
    dedup_action: DedupAction | str | None
    dedup_threshold: float | None


class RecallOptions(TypedDict, total=False):
    """What recall takes beyond the specification's parameters."""

    bank_group: str | None
    tag_match: TagMatch | str
    memory_ids: Texts | None
    metadata: Metadata | None
    session_id: str | None
    retained_range: tuple[datetime | None, datetime | None] | None
    valid_at: datetime | None
    query_reference_date: datetime | None
    include_trace: bool
    weights: dict[str, float] | None
    fusion_method: FusionMethod | str | None
    rank_constant: float | None
    dedup_threshold: float | None
    embedding: Embedding | None
    min_position: int


class ReflectOptions(TypedDict, total=False):
    """What reflect takes beyond the specification's parameters."""

    bank_group: str | None
    mode: ReflectMode | str | None
    tag_match: TagMatch | str
    fact_types: Texts | None
    session_id: str | None
    time_range: tuple[datetime | None, datetime | None] | None
    as_of: datetime | None
    valid_at: datetime | None
    query_reference_date: datetime | None
    embedding: Embedding | None
    min_position: int


class UpdateOptions(TypedDict, total=False):
    """Fields that update can change; those that are given are changed, None clears."""

    content: str
    tags: Texts | None
    metadata: Metadata | None
    source: str | None
    occurred_at: datetime | None
    valid_from: datetime | None
    valid_until: datetime | None


class Astrocyte:
    """Memory for agents.

    Make one by `from_config` or `from_config_dict`, or `astrocyte.connect` for a server's; close it at the end, or use
    it as an async context manager. Every method checks its arguments first and raises `ValidationError` for a wrong
    one; ``context`` says who calls, and defaults to the local user.

    Args:
        backend: What does the work.
    """

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    @classmethod
    def from_config(cls, path: str | Path) -> Self:
        """Memory in this process, as a YAML file and the environment say.

        Raises:
            ConfigError: A setting is wrong; the message names its line.
            StoreLocked: Another process has the data directory.
        """
        return cls(_open(load_settings(path)))

    @classmethod
    def from_config_dict(cls, config: Mapping[str, Any]) -> Self:
        """Memory in this process, as a dictionary of settings says; the environment is not read.

        Raises:
            ConfigError: A setting is wrong.
            StoreLocked: Another process has the data directory.
        """
        return cls(_open(Settings.from_mapping(config)))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Finish the writes that wait and release everything."""
        await self._backend.close()

    async def retain(  # noqa: PLR0913 - the parameters of the specification
        self,
        content: str,
        bank_id: str,
        *,
        metadata: Metadata | None = None,
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
            tags: Labels to filter on.
            context: Who calls.
            content_type: text, conversation, transcript, document, email or event. A name of your own is kept with the
                memory and treated as text; one that looks like a slip of these is refused.
            extraction_profile: builtin_text or builtin_conversation.
            occurred_at: When it happened, with a time zone.
            source: Where it comes from.
            pii_detected: You know that it holds personal data: the barrier acts on it even where it finds none.
            request_id: The same id with the same request answers what it answered before.
            **options: See `RetainOptions`.
        """
        _known("retain", options, RetainOptions)
        item = _item(
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
        return await self._backend.retain(_caller(context), bank_id, item, request_id=request_id)

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
        caller = _caller(context)
        made = [item if isinstance(item, RetainItem) else _keywords(item, index) for index, item in enumerate(items)]
        results: Results = []
        for start in range(0, len(made), COMMIT_ITEMS):
            stored = await self._backend.retain_many(caller, bank_id, made[start : start + COMMIT_ITEMS])
            results.extend(_rejected(result) if isinstance(result, AstrocyteError) else result for result in stored)
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
        _known("recall", options, RecallOptions)
        _named(bank_id, banks, options.get("bank_group"))
        extra: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
        _convert(extra, "tag_match", lambda value: _choice(TagMatch, value, "tag_match"))
        _convert(extra, "fusion_method", lambda value: _choice(FusionMethod, value, "fusion_method"))
        _convert(extra, "retained_range", lambda value: _range(value, "retained_range"))
        _convert(extra, "memory_ids", lambda value: _texts(value, "memory_ids"))
        asked = RecallQuery(
            query=query,
            bank_id=bank_id or "",
            banks=_texts(banks, "banks"),
            strategy=_strategy(strategy),
            max_results=max_results,
            max_tokens=max_tokens,
            tags=_texts(tags, "tags"),
            fact_types=_texts(fact_types, "fact_types"),
            time_range=_range(time_range, "time_range") if time_range is not None else None,
            include_sources=include_sources,
            layer_weights=layer_weights or {},
            detail_level=_choice(DetailLevel, detail_level or DetailLevel.CHUNK, "detail_level"),
            as_of=as_of,
            external_context=tuple(external_context or ()),
            **extra,
        )
        return _plain(await self._backend.recall(_caller(context), asked))

    async def recall_many(
        self, queries: Sequence[RecallQuery], *, context: AstrocyteContext | None = None
    ) -> list[RecallResult]:
        """Answer many queries, over any banks; each result equals the one of `recall`."""
        return [_plain(result) for result in await self._backend.recall_batch(_caller(context), queries)]

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
            tags=_texts(tags, "tags"),
        )
        return _plain(await self._backend.history(_caller(context), asked))

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
        asked = _question(query, bank_id, banks, strategy, max_tokens, tags, dispositions, options)
        return await self._backend.reflect(_caller(context), replace(asked, include_sources=include_sources))

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
        asked = _question(query, bank_id, banks, strategy, max_tokens, tags, dispositions, options)
        async with aclosing(self._backend.reflect_stream(_caller(context), asked)) as pieces:  # type: ignore[type-var]
            async for piece in pieces:
                yield piece

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
        selector = ForgetSelector(
            memory_ids=_texts(memory_ids, "memory_ids"), tags=_texts(tags, "tags"), scope=scope, before_date=before_date
        )
        return await self._backend.forget(
            _caller(context),
            bank_id,
            selector,
            compliance=compliance,
            reason=reason,
            dry_run=dry_run,
            request_id=request_id,
        )

    async def undelete(
        self, memory_id: str, bank_id: str, *, request_id: str | None = None, context: AstrocyteContext | None = None
    ) -> Memory:
        """Bring a forgotten memory back."""
        return await self._backend.undelete(_caller(context), bank_id, memory_id, request_id=request_id)

    async def get(self, memory_id: str, bank_id: str, *, context: AstrocyteContext | None = None) -> Memory:
        """One memory."""
        return await self._backend.get_memory(_caller(context), bank_id, memory_id)

    async def list(
        self,
        bank_id: str,
        *,
        tags: Texts | None = None,
        session_id: str | None = None,
        page_size: int = 0,
        page_token: str = "",
        context: AstrocyteContext | None = None,
    ) -> MemoryPage:
        """A page of memories in order of arrival; all pages show the bank as the first one did."""
        return await self._backend.list_memories(
            _caller(context),
            bank_id,
            tags=_texts(tags, "tags"),
            session_id=session_id,
            page_size=page_size,
            page_token=page_token,
        )

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
        _known("update", changes, UpdateOptions)
        values: dict[str, Any] = dict(changes)
        _convert(values, "tags", lambda value: _texts(value, "tags"))
        for name, empty in (("tags", ()), ("metadata", {})):
            if name in values and values[name] is None:
                values[name] = empty
        update = MemoryUpdate(memory_id, frozenset(values), embedding=embedding, etag=etag, **values)
        return await self._backend.update_memory(_caller(context), bank_id, update, request_id=request_id)

    def watch(
        self, bank_id: str, *, after: int | None = None, context: AstrocyteContext | None = None
    ) -> AsyncIterator[Change]:
        """The bank's changes after a position (None: from now on), as they come, without end."""
        return self._backend.watch(_caller(context), bank_id, after=after)

    async def create_bank(  # noqa: PLR0913 - what a bank is made of, and the request's key
        self,
        bank_id: str,
        *,
        display_name: str = "",
        description: str = "",
        embedding_model: str | None = None,
        dimensions: int | None = None,
        request_id: str | None = None,
        context: AstrocyteContext | None = None,
    ) -> Bank:
        """Create a bank. One with an embedding model of your own takes your vectors only."""
        return await self._backend.create_bank(
            _caller(context),
            bank_id,
            display_name=display_name,
            description=description,
            embedding_model=embedding_model,
            dimensions=dimensions,
            request_id=request_id,
        )

    async def get_bank(self, bank_id: str, *, context: AstrocyteContext | None = None) -> Bank:
        """One bank."""
        return await self._backend.get_bank(_caller(context), bank_id)

    async def list_banks(
        self, *, prefix: str = "", page_size: int = 0, page_token: str = "", context: AstrocyteContext | None = None
    ) -> BankPage:
        """A page of banks by id."""
        return await self._backend.list_banks(
            _caller(context), prefix=prefix, page_size=page_size, page_token=page_token
        )

    async def update_bank(
        self,
        bank_id: str,
        *,
        display_name: str | None = None,
        description: str | None = None,
        etag: str | None = None,
        request_id: str | None = None,
        context: AstrocyteContext | None = None,
    ) -> Bank:
        """Change what is not None."""
        return await self._backend.update_bank(
            _caller(context),
            bank_id,
            display_name=display_name,
            description=description,
            etag=etag,
            request_id=request_id,
        )

    async def delete_bank(
        self,
        bank_id: str,
        *,
        etag: str | None = None,
        request_id: str | None = None,
        context: AstrocyteContext | None = None,
    ) -> int:
        """Delete a bank and everything in it; returns how many memories it showed."""
        return await self._backend.delete_bank(_caller(context), bank_id, etag=etag, request_id=request_id)

    async def bank_stats(self, bank_id: str, *, context: AstrocyteContext | None = None) -> BankStats:
        """Counts of a bank."""
        return await self._backend.bank_stats(_caller(context), bank_id)

    async def grant_access(
        self,
        bank_id: str,
        principal: str,
        permissions: Sequence[str],
        *,
        request_id: str | None = None,
        context: AstrocyteContext | None = None,
    ) -> Grant:
        """Give a principal permissions on a bank: any of read, write, forget, admin, or ``*`` for all four.

        Both names may be patterns, in which ``*`` stands for any characters and ``?`` for one.
        """
        return await self._backend.grant(
            _caller(context), bank_id, principal, _texts(permissions, "permissions"), request_id=request_id
        )

    async def revoke_access(
        self,
        bank_id: str,
        principal: str,
        permissions: Sequence[str] | None = None,
        *,
        request_id: str | None = None,
        context: AstrocyteContext | None = None,
    ) -> frozenset[Permission]:
        """Take permissions (None: all) of a grant for these two names; returns those that it gave."""
        return await self._backend.revoke(
            _caller(context), bank_id, principal, _texts(permissions, "permissions"), request_id=request_id
        )

    async def list_grants(
        self,
        *,
        bank_id: str = "",
        principal: str = "",
        include_revoked: bool = False,
        page_size: int = 0,
        page_token: str = "",
        context: AstrocyteContext | None = None,
    ) -> GrantPage:
        """A page of grants: those that mean the bank and the principal where they are named, else all."""
        return await self._backend.list_grants(
            _caller(context),
            bank_id=bank_id,
            principal=principal,
            revoked=include_revoked,
            page_size=page_size,
            page_token=page_token,
        )

    async def check_access(
        self,
        bank_id: str,
        *,
        principal: str | None = None,
        permission: str | None = None,
        context: AstrocyteContext | None = None,
    ) -> AccessCheck:
        """What a principal (None: the caller) may do in a bank; ``allowed`` answers for the permission, or for any."""
        return await self._backend.check_access(_caller(context), bank_id, principal=principal, permission=permission)

    async def create_api_key(
        self,
        name: str,
        principal: str,
        *,
        expires_at: datetime | None = None,
        request_id: str | None = None,
        context: AstrocyteContext | None = None,
    ) -> tuple[KeyInfo, str]:
        """Make an API key for a principal; the second part of the answer is the key, which is never shown again."""
        return await self._backend.create_api_key(
            _caller(context), name, principal, expires_at=expires_at, request_id=request_id
        )

    async def list_bank_templates(self, *, context: AstrocyteContext | None = None) -> Templates:
        """The bank templates of the configuration: what holds for all banks whose names have one form."""
        return await self._backend.list_bank_templates(_caller(context))

    async def list_bank_groups(self, *, context: AstrocyteContext | None = None) -> Groups:
        """The bank groups of the configuration: sets of banks that a recall can name."""
        return await self._backend.list_bank_groups(_caller(context))

    async def list_api_keys(self, *, context: AstrocyteContext | None = None) -> Keys:
        """All API keys of the tenant that were made by call, by age."""
        return await self._backend.list_api_keys(_caller(context))

    async def revoke_api_key(
        self, key_id: str, *, request_id: str | None = None, context: AstrocyteContext | None = None
    ) -> KeyInfo:
        """End an API key from the next call on."""
        return await self._backend.revoke_api_key(_caller(context), key_id, request_id=request_id)

    async def place_hold(  # noqa: PLR0913 - the parts of a hold, and the request's key
        self,
        bank_id: str,
        *,
        reason: str,
        memory_ids: Texts | None = None,
        tags: Texts | None = None,
        hold_id: str | None = None,
        request_id: str | None = None,
        context: AstrocyteContext | None = None,
    ) -> Hold:
        """Keep memories from being forgotten, erased or given other content, and their bank from being deleted.

        Args:
            bank_id: Where.
            reason: Why.
            memory_ids: Memories to hold, forgotten ones too.
            tags: Memories that have, or had, any of these tags are held, also those that come later. Without ids and
                tags it is the whole bank.
            hold_id: Its name, such as a case number; one is made where it is None.
            request_id: The same id with the same request answers the same hold.
            context: Who calls; needs admin.
        """
        return await self._backend.place_hold(
            _caller(context),
            bank_id,
            reason=reason,
            memory_ids=_texts(memory_ids, "memory_ids"),
            tags=_texts(tags, "tags"),
            hold_id=hold_id,
            request_id=request_id,
        )

    async def release_hold(
        self, bank_id: str, hold_id: str, *, request_id: str | None = None, context: AstrocyteContext | None = None
    ) -> Hold:
        """End a hold; one that was released before stays as it is."""
        return await self._backend.release_hold(_caller(context), bank_id, hold_id, request_id=request_id)

    async def list_holds(
        self,
        *,
        bank_id: str = "",
        include_released: bool = False,
        page_size: int = 0,
        page_token: str = "",
        context: AstrocyteContext | None = None,
    ) -> HoldPage:
        """A page of the holds that stand, of one bank or all, by age."""
        return await self._backend.list_holds(
            _caller(context), bank_id=bank_id, released=include_released, page_size=page_size, page_token=page_token
        )

    async def list_audit_events(
        self, *, bank_id: str = "", page_size: int = 0, page_token: str = "", context: AstrocyteContext | None = None
    ) -> AuditPage:
        """A page of the trail, of one bank or all, oldest first."""
        return await self._backend.list_audit_events(
            _caller(context), bank_id=bank_id, page_size=page_size, page_token=page_token
        )

    async def verify_audit(
        self, *, noted: tuple[int, bytes] | None = None, context: AstrocyteContext | None = None
    ) -> Verification:
        """Compute every hash of the trail anew and say what the first wrong row is, if any.

        Args:
            noted: Sequence and hash of a row from an earlier check; only with one is it seen that the end was cut off
                by somebody who could write to the database.
            context: Who calls; needs admin in all banks.
        """
        return await verify(self._backend, _caller(context), noted=noted)

    async def server_info(self, *, context: AstrocyteContext | None = None) -> ServerInfo:
        """What runs."""
        return await self._backend.server_info(_caller(context))


def make_embedding(model: str, values: Sequence[float]) -> Embedding:
    """A vector of your own for retain, update and recall.

    Args:
        model: Name of the model that made it; it must be the bank's.
        values: A list or a one-dimensional array; need not be of length 1.

    Raises:
        ValidationError: A value is no number, or too large for 32 bits.
    """
    return Embedding(model, len(values), vector_bytes(values))


def _named(bank_id: str | None, banks: Texts | None, bank_group: object) -> None:
    """Refuse a call that says nothing of where to look."""
    if bank_id is None and banks is None and bank_group is None:
        raise ValidationError("is missing; say which bank to search", field="bank_id")
    if banks is not None and not banks:
        raise ValidationError("is empty; name the banks to search", field="banks")


def _strategy(value: Strategy | None) -> MultiBankStrategy | None:
    return MultiBankStrategy(value) if isinstance(value, str) else value


def _question(  # noqa: PLR0913, PLR0917 - the parameters that reflect and reflect_stream share
    query: str,
    bank_id: str | None,
    banks: Texts | None,
    strategy: Strategy | None,
    max_tokens: int | None,
    tags: Texts | None,
    dispositions: Dispositions | Mapping[str, int] | None,
    options: Mapping[str, Any],
) -> ReflectQuery:
    """A reflect from its keywords."""
    _known("reflect", options, ReflectOptions)
    _named(bank_id, banks, options.get("bank_group"))
    extra: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    _convert(extra, "mode", lambda value: _choice(ReflectMode, value, "mode"))
    _convert(extra, "tag_match", lambda value: _choice(TagMatch, value, "tag_match"))
    _convert(extra, "time_range", lambda value: _range(value, "time_range"))
    _convert(extra, "fact_types", lambda value: _texts(value, "fact_types"))
    return ReflectQuery(
        query=query,
        bank_id=bank_id or "",
        banks=_texts(banks, "banks"),
        strategy=_strategy(strategy),
        max_tokens=max_tokens,
        tags=_texts(tags, "tags"),
        dispositions=_dispositions(dispositions),
        **extra,
    )


def _dispositions(value: Dispositions | Mapping[str, int] | None) -> Dispositions | None:
    if value is None or isinstance(value, Dispositions):
        return value
    names = [field.name for field in fields(Dispositions)]
    try:
        return Dispositions(**value)
    except TypeError:
        raise ValidationError(f"expected a mapping with any of {', '.join(names)}", field="dispositions") from None


def _open(settings: Settings) -> Backend:
    from astrocyte.app import App  # noqa: PLC0415 - who works on a server needs no store

    return App(settings).gate


def _caller(context: AstrocyteContext | None) -> Caller:
    """Who calls, out of the caller's own words: in process there is no credential to ask."""
    if context is None:
        return Caller()
    if context.actor is not None:
        _check_actor(context.actor, context.principal)
    checks.name(context.principal, "context.principal")
    tenant = context.tenant_id or DEFAULT_TENANT
    checks.name(tenant, "context.tenant_id")
    behalf = None if context.on_behalf_of is None else _identity(context.on_behalf_of, "context.on_behalf_of")
    return Caller(tenant, context.principal, behalf)


def _identity(actor: ActorIdentity, field: str) -> str:
    """The principal that an identity names."""
    if actor.type not in ACTOR_TYPES:
        raise ValidationError(
            f"expected one of {', '.join(ACTOR_TYPES)}, got {ascii(actor.type)[:64]}", field=f"{field}.type"
        )
    _refuse_claims(actor, field)
    principal = f"{actor.type}:{actor.id}"
    checks.name(principal, f"{field}.id")
    return principal


def _plain(result: Answer) -> Answer:
    """``result`` with hits in a tuple, which `dataclasses.asdict`, copies and pickles know."""
    return replace(result, hits=tuple(result.hits))


def _check_actor(actor: ActorIdentity, principal: str) -> None:
    """An actor says in parts who the principal is; one who is somebody else, or claims more, is refused."""
    if principal not in {actor.id, f"{actor.type}:{actor.id}"}:
        raise CapabilityNotSupported(
            f"context.actor {f'{actor.type}:{actor.id}'!r:.64} is not the principal {principal!r:.64}; name the same "
            "identity in both, and whom it acts for in on_behalf_of",
            metadata={"parameter": "context.actor"},
        )
    _refuse_claims(actor, "context.actor")


def _refuse_claims(actor: ActorIdentity, field: str) -> None:
    if actor.claims:
        raise CapabilityNotSupported(
            f"{field}.claims has no effect yet; leave it out", metadata={"parameter": f"{field}.claims"}
        )


def _item(**values: Any) -> RetainItem:  # noqa: ANN401 - keywords of retain, checked by the gate
    """An item from the keywords of retain."""
    given = {name: value for name, value in values.items() if value is not None}
    _convert(given, "tags", lambda value: _texts(value, "tags"))
    _convert(given, "dedup_action", lambda value: _choice(DedupAction, value, "dedup_action"))
    return RetainItem(**given)


def _keywords(item: object, index: int) -> RetainItem:
    """An item of retain_many from a mapping."""
    path = f"items[{index}]"
    if not isinstance(item, Mapping):
        raise ValidationError(f"expected a RetainItem or a mapping of keywords, got {type(item).__name__}", field=path)
    unknown = next((name for name in item if name not in ITEM_FIELDS), None)
    if unknown is not None:
        raise ValidationError(f"{ascii(unknown)[:64]} is not one of {', '.join(sorted(ITEM_FIELDS))}", field=path)
    if "content" not in item:
        raise ValidationError("is missing; there is nothing to remember", field=f"{path}.content")
    return _item(**item)


def _known(method: str, given: Mapping[str, object], options: type) -> None:
    """Refuse a keyword that a method does not have, in the words that Python has for it."""
    for name in given:
        if name not in options.__annotations__:
            near = get_close_matches(name, options.__annotations__, 1)
            hint = f". Did you mean {near[0]!r}?" if near else ""
            raise TypeError(f"Astrocyte.{method}() got an unexpected keyword argument {name!r}{hint}")


def _rejected(error: AstrocyteError) -> RetainResult:
    return RetainResult(stored=False, error=error.message, retention_action=RetentionAction.REJECTED.value)


def _convert(values: dict[str, Any], name: str, convert: Callable[[Any], Any]) -> None:
    """Convert a value in place where it is there and not None."""
    if values.get(name) is not None:
        values[name] = convert(values[name])


def _choice(kind: type[E], value: str, field: str) -> E:
    try:
        return kind(value)
    except ValueError:
        known = ", ".join(kind)
        raise ValidationError(f"expected one of {known}, got {ascii(value)[:64]}", field=field) from None


def _texts(value: Sequence[str] | None, field: str) -> tuple[str, ...]:
    """A tuple of texts; one text alone is a mistake, since it is a sequence of letters too."""
    if value is None:
        return ()
    if isinstance(value, str):
        raise ValidationError("expected a list of texts, got one text", field=field)
    if not isinstance(value, Iterable):
        raise ValidationError(f"expected a list of texts, got {type(value).__name__}", field=field)
    return tuple(value)


def _range(value: tuple[datetime | None, datetime | None], field: str) -> TimeRange:
    try:
        start, end = value
    except (TypeError, ValueError):
        raise ValidationError("expected a pair of datetimes, start and end", field=field) from None
    return TimeRange(start, end)


# What an item of retain_many may name: the keywords of retain that belong to the item.
ITEM_FIELDS = frozenset(field.name for field in fields(RetainItem))
