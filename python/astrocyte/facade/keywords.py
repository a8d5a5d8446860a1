"""From the keywords of the Python API to the values that a backend takes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from datetime import datetime
from difflib import get_close_matches
from enum import StrEnum
from typing import Any, Literal, TypedDict, TypeVar

from astrocyte.errors import AstrocyteError, CapabilityNotSupported, ValidationError
from astrocyte.model import (
    ACTOR_TYPES,
    ALSO_RELEVANT_TO,
    DEFAULT_TENANT,
    SEPARATOR,
    ActorIdentity,
    AstrocyteContext,
    Caller,
    ContentPart,
    DedupAction,
    Dispositions,
    Embedding,
    FusionMethod,
    HistoryResult,
    MetadataValue,
    MultiBankStrategy,
    RecallResult,
    ReflectMode,
    ReflectQuery,
    ReflectResult,
    RetainItem,
    RetainResult,
    RetentionAction,
    TagMatch,
    TimeRange,
)
from astrocyte.model.multi_bank import OPEN_STRATEGY
from astrocyte.policy.requests import field_checks

Texts = list[str]
Metadata = dict[str, MetadataValue]
# What a retain takes: one key, `also_relevant_to`, may have a list.
GivenMetadata = Mapping[str, MetadataValue | Sequence[str]]
Strategy = Literal["cascade", "parallel", "first_match"] | MultiBankStrategy
E = TypeVar("E", bound=StrEnum)
T = TypeVar("T")
Answer = TypeVar("Answer", RecallResult, HistoryResult)


class RetainOptions(TypedDict, total=False):
    """Keywords of retain beyond the parameters of the specification."""

    session_id: str | None
    speaker: str | None
    fact_type: str | None
    valid_from: datetime | None
    valid_until: datetime | None
    embedding: Embedding | None
    dedup_action: DedupAction | str | None
    dedup_threshold: float | None
    parts: Sequence[ContentPart] | None


class RecallOptions(TypedDict, total=False):
    """Keywords of recall beyond the parameters of the specification."""

    bank_group: str | None
    tag_match: TagMatch | str
    memory_ids: Texts | None
    metadata: Metadata | None
    session_id: str | None
    retained_range: tuple[datetime | None, datetime | None] | None
    valid_at: datetime | None
    query_reference_date: datetime | None
    time_zone: str | None
    include_trace: bool
    weights: dict[str, float] | None
    fusion_method: FusionMethod | str | None
    rank_constant: float | None
    dedup_threshold: float | None
    embedding: Embedding | None
    min_position: int
    include_archived: bool
    require_phrases: bool
    expand_prefixes: bool


class ReflectOptions(TypedDict, total=False):
    """Keywords of reflect beyond the parameters of the specification."""

    bank_group: str | None
    mode: ReflectMode | str | None
    tag_match: TagMatch | str
    fact_types: Texts | None
    session_id: str | None
    time_range: tuple[datetime | None, datetime | None] | None
    as_of: datetime | None
    valid_at: datetime | None
    query_reference_date: datetime | None
    time_zone: str | None
    embedding: Embedding | None
    min_position: int


class UpdateOptions(TypedDict, total=False):
    """Fields that update can change; those that are given are changed, None clears."""

    content: str
    tags: Texts | None
    metadata: GivenMetadata | None
    source: str | None
    occurred_at: datetime | None
    valid_from: datetime | None
    valid_until: datetime | None


def refuse_nowhere(bank_id: str | None, banks: Texts | None, bank_group: object) -> None:
    """Refuse a call that says nothing of where to look."""
    if bank_id is None and banks is None and bank_group is None:
        raise ValidationError("is missing; say which bank to search", field="bank_id")
    if banks is not None and not banks:
        raise ValidationError("is empty; name the banks to search", field="banks")


def strategy_of(value: Strategy | None) -> MultiBankStrategy | None:
    """Return the strategy of a word or value; a word leaves the rest to the bank group and the configuration."""
    return replace(OPEN_STRATEGY, mode=value) if isinstance(value, str) else value


def question(  # noqa: PLR0913, PLR0917 - the parameters that reflect and reflect_stream share
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
    refuse_unknown("reflect", options, ReflectOptions)
    refuse_nowhere(bank_id, banks, options.get("bank_group"))
    extra: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    convert(extra, "mode", lambda value: choice(ReflectMode, value, "mode"))
    convert(extra, "tag_match", lambda value: choice(TagMatch, value, "tag_match"))
    convert(extra, "time_range", lambda value: time_range(value, "time_range"))
    convert(extra, "fact_types", lambda value: texts(value, "fact_types"))
    return ReflectQuery(
        query=query,
        bank_id=bank_id or "",
        banks=texts(banks, "banks"),
        strategy=strategy_of(strategy),
        max_tokens=max_tokens,
        tags=texts(tags, "tags"),
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


def caller_of(context: AstrocyteContext | None) -> Caller:
    """The caller that the context names: an in-process call has no credential to verify it."""
    if context is None:
        return Caller()
    if context.actor is not None:
        _check_actor(context.actor, context.principal)
    field_checks.name(context.principal, "context.principal")
    tenant = context.tenant_id or DEFAULT_TENANT
    field_checks.name(tenant, "context.tenant_id")
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
    field_checks.name(principal, f"{field}.id")
    return principal


class Items(tuple[T, ...]):
    """A tuple that also equals a list with the same items, since the API reference says list."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return tuple.__eq__(self, tuple(other) if isinstance(other, list) else other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = tuple.__hash__


def plain(result: Answer) -> Answer:
    """Return a result with hits in a tuple, which `dataclasses.asdict`, copies and pickles know."""
    return replace(result, hits=Items(result.hits))


def plain_reflect(result: ReflectResult) -> ReflectResult:
    """Return a result whose sources and observations equal lists."""
    sources = None if result.sources is None else Items(result.sources)
    observations = None if result.observations is None else Items(result.observations)
    return replace(result, sources=sources, observations=observations)


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


def item_of(**values: Any) -> RetainItem:  # noqa: ANN401 - keywords of retain, checked by the gate
    """An item from the keywords of retain."""
    given = {name: value for name, value in values.items() if value is not None}
    convert(given, "tags", lambda value: texts(value, "tags"))
    convert(given, "metadata", joined)
    convert(given, "dedup_action", lambda value: choice(DedupAction, value, "dedup_action"))
    convert(given, "parts", tuple)
    return RetainItem(**given)


def joined(metadata: object) -> Any:  # noqa: ANN401 - whatever came, checked by the gate
    """Metadata in which the banks that a memory is also relevant to, where they came as a list, are one text."""
    banks = metadata.get(ALSO_RELEVANT_TO) if isinstance(metadata, Mapping) else None
    if not isinstance(metadata, Mapping) or not isinstance(banks, (list, tuple)):
        return metadata
    return {**metadata, ALSO_RELEVANT_TO: SEPARATOR.join(texts(banks, f"metadata.{ALSO_RELEVANT_TO}"))}


def item_from(item: object, index: int) -> RetainItem:
    """An item of retain_many from a mapping."""
    path = f"items[{index}]"
    if not isinstance(item, Mapping):
        raise ValidationError(f"expected a RetainItem or a mapping of keywords, got {type(item).__name__}", field=path)
    unknown = next((name for name in item if name not in ITEM_FIELDS), None)
    if unknown is not None:
        raise ValidationError(f"{ascii(unknown)[:64]} is not one of {', '.join(sorted(ITEM_FIELDS))}", field=path)
    if "content" not in item:
        raise ValidationError("is missing; send text to store", field=f"{path}.content")
    return item_of(**item)


def refuse_unknown(method: str, given: Mapping[str, object], options: type) -> None:
    """Refuse a keyword that a method does not have, in the words that Python has for it."""
    for name in given:
        if name not in options.__annotations__:
            near = get_close_matches(name, options.__annotations__, 1)
            hint = f". Did you mean {near[0]!r}?" if near else ""
            raise TypeError(f"Astrocyte.{method}() got an unexpected keyword argument {name!r}{hint}")


def rejected(error: AstrocyteError) -> RetainResult:
    """The result of an item that was refused."""
    return RetainResult(stored=False, error=error.message, retention_action=RetentionAction.REJECTED.value)


def convert(values: dict[str, Any], name: str, convert: Callable[[Any], Any]) -> None:
    """Convert a value in place where it is there and not None."""
    if values.get(name) is not None:
        values[name] = convert(values[name])


def choice(kind: type[E], value: str, field: str) -> E:
    """The member of an enumeration that a word names."""
    try:
        return kind(value)
    except ValueError:
        known = ", ".join(kind)
        raise ValidationError(f"expected one of {known}, got {ascii(value)[:64]}", field=field) from None


def texts(value: Sequence[str] | None, field: str) -> tuple[str, ...]:
    """A tuple of texts; one text alone is a mistake, since it is a sequence of letters too."""
    if value is None:
        return ()
    if isinstance(value, str):
        raise ValidationError("expected a list of texts, got one text", field=field)
    if not isinstance(value, Iterable):
        raise ValidationError(f"expected a list of texts, got {type(value).__name__}", field=field)
    return tuple(value)


def time_range(value: tuple[datetime | None, datetime | None], field: str) -> TimeRange:
    """A range from a pair of instants."""
    try:
        start, end = value
    except (TypeError, ValueError):
        raise ValidationError("expected a pair of datetimes, (start, end)", field=field) from None
    return TimeRange(start, end)


# What an item of retain_many may name: the keywords of retain that belong to the item.
ITEM_FIELDS = frozenset(field.name for field in fields(RetainItem))
