"""The part of the Python API on memories: retain, read, change, forget."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Unpack

from astrocyte.api import Backend
from astrocyte.api.requests import (
    Forget,
    GetMemory,
    ListMemories,
    Retain,
    StreamRetain,
    UndeleteMemory,
    UpdateMemory,
    Watch,
)
from astrocyte.errors import AstrocyteError
from astrocyte.facade import keywords
from astrocyte.facade.keywords import (
    GivenMetadata,
    RetainOptions,
    Texts,
    UpdateOptions,
)
from astrocyte.model import (
    AstrocyteContext,
    Change,
    Embedding,
    ForgetResult,
    ForgetSelector,
    Memory,
    MemoryPage,
    MemoryUpdate,
    RetainItem,
    RetainResult,
)

# Items of one commit: enough to share its cost, few enough that the first are acknowledged soon.
COMMIT_ITEMS = 256

# `Memories.list` hides the name in the class body.
Results = list[RetainResult]


class Memories:
    """The calls of `Astrocyte` on memories.

    ``context`` names the caller, the local user by default.
    """

    _backend: Backend

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
