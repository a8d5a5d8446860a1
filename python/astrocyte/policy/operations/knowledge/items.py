"""Steps that the handlers of all kinds of knowledge share: names, scopes, personal data, revisions."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from astrocyte.api import LimitKind
from astrocyte.errors import AccessDenied, NotFound, ValidationError
from astrocyte.model import (
    BANK_SCOPE,
    ENTITY_SCOPE,
    TAG_SCOPE,
    Bank,
    Caller,
    Entity,
    Evidence,
    KnowledgeRevision,
    RetainItem,
    RevisionPage,
)
from astrocyte.pipelines.query.time_windows import from_ms
from astrocyte.policy.limits.rate_limits import Demand
from astrocyte.policy.operations.parts import OperationParts
from astrocyte.policy.requests import field_checks
from astrocyte.policy.requests.composed_text import composed_name
from astrocyte.policy.requests.page_tokens import LARGEST_POSITION, decode_place, encode_token
from astrocyte.policy.requests.pages import cut_page
from astrocyte.stores.knowledge.items import Body, ItemKind, ItemRecord, RevisionRecord, SourceRecord

# Ids stand in URLs and errors.
ITEM_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@-]{0,127}")
# Keys of the bodies of items that hold text of memories or of callers; the others hold ids, numbers and kinds.
TEXT_KEYS = frozenset({"heading", "items", "name", "text"})


class Items:
    """The shared steps.

    Args:
        parts: What the operations share.
    """

    def __init__(self, parts: OperationParts) -> None:
        self.parts = parts
        self.store = parts.knowledge
        self._access = parts.access
        self._check = parts.check
        self._limits = parts.settings.limits

    def bank_id(self, caller: Caller, operation: str, bank_id: str, kind: ItemKind, item_id: str) -> str:
        """The bank of a request, or, where it names none, the one that has the item and that the caller may use.

        Raises:
            ValidationError: There are none or several.
        """
        if bank_id:
            return bank_id
        found = self.banks_with(caller, operation, kind, item_id)
        if len(found) != 1:
            count = "several banks have" if found else "no bank that you may use has"
            raise ValidationError(f"is missing, and {count} {item_id!a:.140}; name the bank", field="bank_id")
        return found[0]

    def banks_with(self, caller: Caller, operation: str, kind: ItemKind, item_id: str) -> list[str]:
        """The banks that have an item, of those that the caller may use."""
        self._access.require_name(caller, operation)
        field_checks.label(item_id, f"{_FIELDS[kind]}_id", self._limits.name_chars)
        return [
            bank.bank_id
            for bank in self.store.banks_with(caller.tenant, kind, item_id)
            if self._may(caller, operation, bank)
        ]

    def _may(self, caller: Caller, operation: str, bank: Bank) -> bool:
        try:
            self._access.require(caller, operation, bank.bank_id, bank)
        except AccessDenied:
            return False
        return True

    async def admit(self, caller: Caller, bank_id: str) -> None:
        """Count a write as a retain, for rates and quotas."""
        await self.parts.policies.limits.admit((Demand(caller.tenant, bank_id, LimitKind.RETAIN),))

    async def admit_recall(self, caller: Caller, bank_id: str) -> None:
        """Count a search as a recall, for rates and quotas."""
        await self.parts.policies.limits.admit((Demand(caller.tenant, bank_id, LimitKind.RECALL),))

    def scope(self, value: object, path: str = "scope") -> str:
        """A scope in the form in which it is stored; "" is the whole bank.

        Raises:
            ValidationError: It is none of the three forms.
        """
        if value in {"", BANK_SCOPE}:
            return BANK_SCOPE
        text = field_checks.label(value, path, self._limits.name_chars)
        if text.startswith(TAG_SCOPE) and len(text) > len(TAG_SCOPE):
            tag = text[len(TAG_SCOPE) :]
            return TAG_SCOPE + composed_name(field_checks.label(tag, path, self._limits.tag_chars))
        if text.startswith(ENTITY_SCOPE) and text[len(ENTITY_SCOPE) :].strip():
            # An id such as person:alice-smith names the entity after its type.
            name = text[len(ENTITY_SCOPE) :].rpartition(":")[2]
            folded = Entity(composed_name(name).replace("-", " ")).folded
            if folded:
                return ENTITY_SCOPE + folded
        raise ValidationError(
            f"expected 'bank', 'tag:' and a tag, or 'entity:' and a name or id, got {text!a:.64}", field=path
        )

    def item_id(self, value: object, path: str) -> str:
        """An id that a caller chose for a new item."""
        if not isinstance(value, str) or not ITEM_ID.fullmatch(value):
            raise ValidationError(
                "expected 1 to 128 characters of [A-Za-z0-9._:@-], the first one a letter or digit, got "
                f"{ascii(value)[: field_checks.SHOWN_CHARS]}",
                field=path,
            )
        return value

    def source_ids(self, values: object, path: str) -> tuple[str, ...]:
        """Ids of memories, without repeats."""
        field_checks.labels(values, path, self._limits.memory_ids, self._limits.name_chars)  # type: ignore[arg-type]
        return tuple(dict.fromkeys(values))  # type: ignore[call-overload]

    def text(self, value: object, path: str) -> str:
        """Text that is not blank, composed."""
        text = composed_name(field_checks.text(value, path, 4 * self._limits.text_chars))
        if not text or text.isspace():
            raise ValidationError("is empty", field=path)
        if len(text) > self._limits.text_chars:
            raise ValidationError(
                f"has {len(text):,} characters, the limit is {self._limits.text_chars:,}",
                field=path,
                metadata={"limit": str(self._limits.text_chars)},
            )
        return text

    async def screened(self, bank_id: str, operation: str, text: str, path: str, *, quiet: bool) -> str:
        """The text as the barriers of the bank let it be stored.

        Raises:
            PiiRejected: Something was found that is refused.
        """
        if not text:
            return text
        item, _ = await self.parts.policies.barriers.item(
            bank_id, operation, RetainItem(content=text), f"{path}.", quiet=quiet
        )
        return item.content

    def shown(self, record: ItemRecord) -> ItemRecord:
        """An item as it may leave: without what a recall of its bank would redact or leave out."""
        return replace(record, current=self.shown_revision(record.bank_id, record.current))

    def shown_revision(self, bank_id: str, revision: RevisionRecord) -> RevisionRecord:
        """A revision as it may leave."""
        texts = list(_texts(revision.body))
        told = self.parts.policies.barriers.told(bank_id, texts)
        if told is texts:
            return revision
        remaining = iter(told)
        return replace(revision, body=_with_texts(revision.body, lambda _: next(remaining)))

    def found(self, bank: Bank, kind: ItemKind, item_id: str, *, hidden: bool = False) -> ItemRecord:
        """The item of an id; with ``hidden`` also one that was deleted and can be undeleted.

        Raises:
            NotFound: The bank has none.
        """
        field_checks.label(item_id, f"{_FIELDS[kind]}_id", self._limits.name_chars)
        record = (self.store.hidden if hidden else self.store.get)(bank, kind, item_id)
        if record is None:
            raise NotFound(
                f"there is no {_NOUNS[kind]} {item_id!r} in bank {bank.bank_id!r}",
                metadata={f"{_FIELDS[kind]}_id": item_id, "bank_id": bank.bank_id},
            )
        return record

    def revision_page(
        self, bank: Bank, kind: ItemKind, item_id: str, text_of: Callable[[Body], str], page: tuple[int, str]
    ) -> RevisionPage:
        """A page of revisions, newest first. ``page`` is its size and token."""
        limit = self._check.page_limit(page[0])
        record = self.found(bank, kind, item_id)
        scope = ("revisions", bank.tenant, bank.key, record.key)
        before = decode_place(page[1], scope) or LARGEST_POSITION
        rows = self.store.revisions(bank, kind, item_id, before=before, limit=limit.entries + 1)
        shown = [self.shown_revision(bank.bank_id, row) for row in rows]
        entries, last = cut_page([(row.revision, revision_of(row, text_of)) for row in shown], limit)
        return RevisionPage(entries, "" if last is None else encode_token(scope, [last]))


# As they are called in errors, and the names of the fields with their ids.
_NOUNS = {
    ItemKind.OBSERVATION: "observation",
    ItemKind.MENTAL_MODEL: "mental model",
    ItemKind.DIRECTIVE: "directive",
    ItemKind.WIKI_PAGE: "wiki page",
}
_FIELDS = {
    ItemKind.OBSERVATION: "observation",
    ItemKind.MENTAL_MODEL: "model",
    ItemKind.DIRECTIVE: "directive",
    ItemKind.WIKI_PAGE: "page",
}


def _texts(value: Any, *, text: bool = False) -> Iterator[str]:  # noqa: ANN401 - JSON
    """The texts of a body, in the order of `_with_texts`."""
    if isinstance(value, Mapping):
        for key, one in value.items():
            yield from _texts(one, text=key in TEXT_KEYS)
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _texts(one, text=text)
    elif text:
        yield value


def _with_texts(value: Any, change: Callable[[str], str], *, text: bool = False) -> Any:  # noqa: ANN401 - JSON
    """A body, or a part of one, with its texts changed; ``text`` says that the part is one of `TEXT_KEYS`."""
    if isinstance(value, str):
        return change(value) if text else value
    if isinstance(value, Mapping):
        return {key: _with_texts(one, change, text=key in TEXT_KEYS) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_with_texts(one, change, text=text) for one in value]
    return value


def revision_of(record: RevisionRecord, text_of: Callable[[Body], str]) -> KnowledgeRevision:
    """A revision as callers see it."""
    return KnowledgeRevision(
        record.revision,
        record.cause,
        text_of(record.body),
        tuple(source.memory_id for source in record.sources if source.current is not None),
        record.changed_by,
        from_ms(record.changed_at),
    )


def evidence_of(sources: tuple[SourceRecord, ...]) -> tuple[Evidence, ...]:
    """The sources that are there."""
    return tuple(
        Evidence(
            one.memory_id, one.version, from_ms(one.observed_at), one.current != one.version, is_archived=one.archived
        )
        for one in sources
        if one.current is not None
    )


def is_stale(sources: tuple[SourceRecord, ...]) -> bool:
    """True if a source has a newer version, or is gone."""
    return any(one.current != one.version for one in sources)
