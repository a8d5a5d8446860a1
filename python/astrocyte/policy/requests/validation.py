"""Shapes and limits of requests. The gate runs this first, so that bad input changes nothing."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import fields, replace
from datetime import UTC, datetime
from difflib import get_close_matches

from astrocyte.config import LimitSettings
from astrocyte.config.limits import DEFAULT_ANSWER_BYTES
from astrocyte.errors import ValidationError
from astrocyte.model import (
    ContentType,
    DedupAction,
    DetailLevel,
    Dispositions,
    ExplainQuery,
    ForgetSelector,
    FusionMethod,
    MemoryHit,
    MemoryUpdate,
    RecallQuery,
    ReflectMode,
    ReflectQuery,
    RetainItem,
    TagMatch,
)
from astrocyte.model.memory import MEMORY_LAYERS
from astrocyte.pipelines.query.date_parser import may_name_time
from astrocyte.pipelines.query.phrases import phrases_of
from astrocyte.pipelines.query.prefixes import check_prefixes
from astrocyte.policy.requests import field_checks
from astrocyte.policy.requests.external_hits import check_external_hit, check_external_hits
from astrocyte.policy.requests.field_checks import check_parts
from astrocyte.policy.requests.page_tokens import LARGEST_POSITION
from astrocyte.policy.requests.pages import PageLimit

# Arms whose weight a caller may set.
ARMS = ("semantic", "keyword", "temporal", "entity", "observation", "mental_model")
# Fields that an update may name.
UPDATABLE = frozenset({"content", "tags", "metadata", "source", "occurred_at", "valid_from", "valid_until"})
# Fields that a reflect hands on to its recall.
SHARED_FIELDS = tuple(field for field in fields(RecallQuery) if field.name in {it.name for it in fields(ReflectQuery)})
# A disposition goes from 1 to this.
MOST_LEANING = 5
# Room for a UUID with a prefix of the client's own.
REQUEST_ID_CHARS = 128
# From here on a name is taken for a slip: two letters swapped in "conversation" are .92, "markdown" is near nothing.
SLIP_RATIO = 0.8


class Validator:
    """All checks of requests, under one set of limits.

    Every method raises `ValidationError` whose ``field`` is the path of the wrong value, prefixed by ``at``.

    Args:
        limits: How much of everything.
        content_types: Formats of the server's own, beside those of `ContentType`.
        fusion_method: What a query without one is fused by.
        profiles: Extraction profiles that an item may name.
        answer_bytes: Largest answer of the server; pages stay below it.
    """

    def __init__(
        self,
        limits: LimitSettings,
        *,
        content_types: Iterable[str] = (),
        fusion_method: str = FusionMethod.DBSF,
        profiles: Iterable[str] = (),
        answer_bytes: int = DEFAULT_ANSWER_BYTES,
    ) -> None:
        self._limits = limits
        self._answer_bytes = answer_bytes
        self._content_types = frozenset({*map(str, ContentType), *content_types})
        self._fusion_method = FusionMethod(fusion_method)
        self._profiles = tuple(profiles)

    def item(self, item: RetainItem, content_bytes: int, at: str = "") -> None:
        """One thing to remember, of at most so many bytes."""
        limits = self._limits
        if item.parts == ():
            field_checks.content(item.content, f"{at}content", content_bytes)
        else:
            field_checks.text(item.content, f"{at}content", content_bytes)
            check_parts(item.parts, f"{at}parts", limits)
        self._content_type(item.content_type, f"{at}content_type")
        if item.tags != ():
            field_checks.labels(item.tags, f"{at}tags", limits.tags, limits.tag_chars)
        if item.metadata != {}:
            field_checks.metadata(item.metadata, f"{at}metadata", limits)
        if item.embedding is not None:
            field_checks.embedding(item.embedding, f"{at}embedding", limits.dimensions)
        if item.occurred_at is not None:
            field_checks.instant(item.occurred_at, f"{at}occurred_at")
        self._valid_range(item, at)
        for name in ("source", "session_id", "speaker"):
            value = getattr(item, name)
            if value is not None:
                field_checks.label(value, f"{at}{name}", limits.name_chars)
        if item.fact_type is not None:
            field_checks.label(item.fact_type, f"{at}fact_type", limits.label_chars)
        if item.extraction_profile is not None and item.extraction_profile not in self._profiles:
            raise ValidationError(
                f"there is no profile {ascii(item.extraction_profile)[:64]}; expected one of "
                f"{', '.join(self._profiles)}",
                field=f"{at}extraction_profile",
            )
        _deduplication(item, at)

    def item_count(self, items: Sequence[RetainItem]) -> None:
        """A batch: not empty, and within the limit."""
        if not items:
            raise ValidationError("is empty; send at least one item", field="items")
        field_checks.count(items, "items", self._limits.batch_items)

    def items(self, items: Sequence[RetainItem], content_bytes: int, skipped: Collection[int] = ()) -> None:
        """A batch: not empty, within the limit, every item right but those that are skipped, by their places."""
        self.item_count(items)
        for index, item in enumerate(items):
            if index not in skipped:
                self.item(item, content_bytes, f"items[{index}].")

    def query(self, query: RecallQuery, at: str = "") -> None:
        """One recall."""
        limits = self._limits
        field_checks.text(query.query, f"{at}query", limits.query_bytes)
        if query.embedding is not None:
            field_checks.embedding(query.embedding, f"{at}embedding", limits.dimensions)
        elif not query.query or query.query.isspace():
            raise ValidationError("is empty; send a query or an embedding", field=f"{at}query")
        field_checks.integer(query.max_results, f"{at}max_results", 1, limits.max_results)
        if query.max_tokens is not None:
            field_checks.integer(query.max_tokens, f"{at}max_tokens", 1, LARGEST_POSITION)
        field_checks.integer(query.min_position, f"{at}min_position", 0, LARGEST_POSITION)
        self._filters(query, at)
        self._phrases(query, at)
        self._prefixes(query, at)
        self._times(query, at)
        if query.external_context != ():
            check_external_hits(query.external_context, self._limits, f"{at}external_context")
        self._ranking(query, at)

    @staticmethod
    def history(query: RecallQuery) -> datetime:
        """The instant that a history looks from, in one bank."""
        if query.as_of is None:
            raise ValidationError("is missing; set the instant of the query", field="as_of")
        for path in ("banks", "bank_group", "strategy"):
            if getattr(query, path):
                raise ValidationError("history takes one bank; use recall with as_of for several", field=path)
        return query.as_of

    def external_hit(self, item: MemoryHit, at: str = "") -> None:
        """A hit of another system: as right as a memory would have to be."""
        check_external_hit(item, self._limits, at)

    def explain(self, asked: ExplainQuery) -> None:
        """One explain: its recall is held to what recalls are."""
        self.query(asked.query)
        field_checks.labels(asked.memory_ids, "memory_ids", self._limits.explained_ids, self._limits.name_chars)
        if not asked.memory_ids:
            raise ValidationError("is empty; name at least one memory", field="memory_ids")
        field_checks.integer(asked.position, "position", 0, LARGEST_POSITION)

    def reflect(self, query: ReflectQuery) -> None:
        """One reflect: what it shares with a recall is held to the same."""
        shared = {field.name: getattr(query, field.name) for field in SHARED_FIELDS}
        self.query(RecallQuery(**shared))
        if query.mode is not None:
            field_checks.choice(query.mode, "mode", ReflectMode)
        if query.dispositions is not None:
            for field in fields(Dispositions):
                field_checks.integer(
                    getattr(query.dispositions, field.name), f"dispositions.{field.name}", 1, MOST_LEANING
                )

    def query_count(self, queries: Sequence[RecallQuery]) -> None:
        """A batch: not empty, and within the limit."""
        if not queries:
            raise ValidationError("is empty; send at least one query", field="queries")
        field_checks.count(queries, "queries", self._limits.batch_items)

    def queries(self, queries: Sequence[RecallQuery]) -> None:
        """A batch: not empty, within the limit, every query right."""
        self.query_count(queries)
        for index, query in enumerate(queries):
            self.query(query, f"queries[{index}].")

    def selector(self, selector: ForgetSelector) -> ForgetSelector:
        """One selector of a forget; a ``before_date`` without a zone is read as UTC."""
        limits = self._limits
        field_checks.labels(selector.memory_ids, "memory_ids", limits.memory_ids, limits.name_chars)
        field_checks.labels(selector.tags, "tags", limits.tags, limits.tag_chars)
        if selector.scope not in (None, "", "all"):
            raise ValidationError(f"expected 'all' or nothing, got {ascii(selector.scope)[:64]}", field="scope")
        if not (selector.memory_ids or selector.tags or selector.scope or selector.before_date):
            raise ValidationError(
                "selects nothing; set memory_ids, tags, before_date, or scope='all' for the whole bank",
                field="selector",
            )
        if selector.before_date is not None:
            field_checks.a_datetime(selector.before_date, "before_date")
            if selector.before_date.tzinfo is None:
                return replace(selector, before_date=selector.before_date.replace(tzinfo=UTC))
        return selector

    def update(self, update: MemoryUpdate, content_bytes: int) -> None:
        """New values for named fields, the content of at most so many bytes."""
        limits = self._limits
        field_checks.label(update.memory_id, "memory_id", limits.name_chars)
        if not update.fields:
            raise ValidationError(f"is empty; name any of {', '.join(sorted(UPDATABLE))}", field="fields")
        unknown = sorted(update.fields - UPDATABLE)
        if unknown:
            raise ValidationError(f"{unknown[0]!r} is not one of {', '.join(sorted(UPDATABLE))}", field="fields")
        if "content" in update.fields:
            field_checks.content(update.content, "content", content_bytes)
        field_checks.labels(update.tags, "tags", limits.tags, limits.tag_chars)
        field_checks.metadata(update.metadata, "metadata", limits)
        if update.source is not None:
            field_checks.label(update.source, "source", limits.name_chars)
        if update.occurred_at is not None:
            field_checks.instant(update.occurred_at, "occurred_at")
        self._valid_range(update, "")
        if update.embedding is not None:
            if "content" not in update.fields:
                raise ValidationError("is set without content; send the content that it belongs to", field="embedding")
            field_checks.embedding(update.embedding, "embedding", limits.dimensions)

    def reason(self, reason: str | None) -> None:
        """Why something is forgotten, for the record."""
        if reason:
            field_checks.label(reason, "reason", self._limits.text_chars)

    def bank_texts(self, display_name: str | None, description: str | None) -> None:
        """The words that people see of a bank; both may be empty."""
        if display_name:
            field_checks.label(display_name, "display_name", self._limits.name_chars)
        if description:
            field_checks.text(description, "description", self._limits.text_chars)

    def space(self, model: str | None, dimensions: int | None) -> None:
        """The parts of an embedding space that were given."""
        if model is not None:
            field_checks.label(model, "embedding_model", self._limits.name_chars)
        if dimensions is not None:
            field_checks.integer(dimensions, "dimensions", 1, self._limits.dimensions)

    def request_id(self, value: str | None, path: str = "request_id") -> None:
        """A client's key for a request."""
        if value is not None:
            field_checks.label(value, path, REQUEST_ID_CHARS)

    def page_limit(self, size: int) -> PageLimit:
        """The bounds of a page of ``size`` entries; 0 takes the default."""
        field_checks.integer(size, "page_size", 0, self._limits.page_size)
        return PageLimit.within(size or min(DEFAULT_PAGE, self._limits.page_size), self._answer_bytes)

    def listing(self, tags: Sequence[str], session_id: str | None) -> None:
        """Filters of a list of memories."""
        field_checks.labels(tags, "tags", self._limits.tags, self._limits.tag_chars)
        if session_id is not None:
            field_checks.label(session_id, "session_id", self._limits.name_chars)

    def memory_id(self, memory_id: str) -> None:
        """Any label passes: an id that we never made is simply not found."""
        field_checks.label(memory_id, "memory_id", self._limits.name_chars)

    def _content_type(self, value: object, path: str) -> None:
        """A format; of those that are treated as text any name will do, but for one that was meant to be another."""
        if isinstance(value, str) and value in self._content_types:
            return
        name = field_checks.label(value, path, self._limits.label_chars)
        near = get_close_matches(name.lower(), sorted(self._content_types), 1, SLIP_RATIO)
        if near:
            raise ValidationError(
                f"there is no format {name!a}, did you mean {near[0]!r}? (if the name is intended, "
                "choose a less similar one, or add it to retain.chunking)",
                field=path,
                metadata={"nearest": near[0]},
            )

    def _valid_range(self, item: RetainItem | MemoryUpdate, at: str) -> None:
        if item.valid_from is not None:
            field_checks.instant(item.valid_from, f"{at}valid_from")
        if item.valid_until is not None:
            field_checks.instant(item.valid_until, f"{at}valid_until")
        if item.valid_from is not None and item.valid_until is not None and item.valid_from > item.valid_until:
            raise ValidationError("ends before valid_from", field=f"{at}valid_until")

    def _filters(self, query: RecallQuery, at: str) -> None:
        limits = self._limits
        field_checks.choice(query.tag_match, f"{at}tag_match", TagMatch)
        if query.tags != ():
            field_checks.labels(query.tags, f"{at}tags", limits.tags, limits.tag_chars)
        if not query.tags and query.tag_match is not TagMatch.ANY:
            raise ValidationError(
                f"{str(query.tag_match)!r} has no effect without tags; name some, or leave it out",
                field=f"{at}tag_match",
            )
        if query.fact_types != ():
            field_checks.labels(query.fact_types, f"{at}fact_types", limits.fact_types, limits.label_chars)
        if query.memory_ids != ():
            field_checks.labels(query.memory_ids, f"{at}memory_ids", limits.memory_ids, limits.name_chars)
        if query.metadata != {}:
            field_checks.metadata(query.metadata, f"{at}metadata", limits, reserved=False)
        if query.session_id is not None:
            field_checks.label(query.session_id, f"{at}session_id", limits.name_chars)

    @staticmethod
    def _phrases(query: RecallQuery, at: str) -> None:
        if not isinstance(query.require_phrases, bool):
            raise ValidationError(
                f"expected true or false, got {query.require_phrases!r:.40}", field=f"{at}require_phrases"
            )
        if query.require_phrases:
            try:
                phrases_of(query.query)
            except ValidationError as error:
                raise ValidationError(error.description, field=f"{at}query") from error

    @staticmethod
    def _prefixes(query: RecallQuery, at: str) -> None:
        if not isinstance(query.expand_prefixes, bool):
            raise ValidationError(
                f"expected true or false, got {query.expand_prefixes!r:.40}", field=f"{at}expand_prefixes"
            )
        if query.expand_prefixes:
            try:
                check_prefixes(query)
            except ValidationError as error:
                raise ValidationError(error.description, field=f"{at}query") from error

    def _times(self, query: RecallQuery, at: str) -> None:
        if not isinstance(query.include_archived, bool):
            raise ValidationError(
                f"expected true or false, got {query.include_archived!r:.40}", field=f"{at}include_archived"
            )
        if query.include_archived and query.as_of is not None:
            raise ValidationError(
                "cannot be combined with as_of: what was archived since is in the answer anyway",
                field=f"{at}include_archived",
            )
        if query.as_of is not None:
            field_checks.instant(query.as_of, f"{at}as_of")
        if query.valid_at is not None:
            field_checks.instant(query.valid_at, f"{at}valid_at")
        if query.query_reference_date is not None:
            field_checks.instant(query.query_reference_date, f"{at}query_reference_date")
        if query.time_zone is not None:
            field_checks.time_zone(query.time_zone, f"{at}time_zone")
        if query.time_range is not None:
            field_checks.time_range(query.time_range, f"{at}time_range")
        if query.retained_range is not None:
            field_checks.time_range(query.retained_range, f"{at}retained_range")

    def _ranking(self, query: RecallQuery, at: str) -> None:
        field_checks.choice(query.detail_level, f"{at}detail_level", DetailLevel)
        if query.fusion_method is not None:
            field_checks.choice(query.fusion_method, f"{at}fusion_method", FusionMethod)
        if query.weights != {}:
            self._weights(query, f"{at}weights")
        if query.layer_weights != {}:
            field_checks.mapping(query.layer_weights, f"{at}layer_weights")
            field_checks.count(query.layer_weights, f"{at}layer_weights", self._limits.fact_types)
            known = {*MEMORY_LAYERS, *(getattr(item, "memory_layer", None) for item in query.external_context)}
            for layer in query.layer_weights:
                field_checks.label(layer, f"{at}layer_weights", self._limits.label_chars)
                if layer not in known:
                    raise ValidationError(
                        f"names a layer that does not exist; the layers are {', '.join(MEMORY_LAYERS)}",
                        field=f"{at}layer_weights",
                    )
            field_checks.weights(query.layer_weights, f"{at}layer_weights")
        if query.rank_constant is not None:
            field_checks.number(query.rank_constant, f"{at}rank_constant", 1e-6, 1e6)
            fusion = query.fusion_method or self._fusion_method
            if fusion is not FusionMethod.RRF:
                raise ValidationError(
                    f"has no effect on {str(fusion)!r}; set fusion_method to 'rrf', or leave it out",
                    field=f"{at}rank_constant",
                )
        if query.dedup_threshold is not None:
            field_checks.cosine(query.dedup_threshold, f"{at}dedup_threshold")

    @staticmethod
    def _weights(query: RecallQuery, path: str) -> None:
        """Weights of arms. The temporal arm needs a date to look at, so it cannot be the only one where none is."""
        field_checks.weights(query.weights, path, ARMS)
        others = (query.weights.get(name) for name in ("semantic", "keyword"))
        only_temporal = all(weight == 0 for weight in others) and not query.weights.get("entity")
        if only_temporal and query.time_range is None and not may_name_time(query.query):
            raise ValidationError(
                "enable the temporal arm only, which needs a time range; set time_range, name a date in the query, or "
                "enable another arm",
                field=path,
            )


def _deduplication(item: RetainItem, at: str) -> None:
    if item.dedup_action is not None:
        field_checks.choice(item.dedup_action, f"{at}dedup_action", DedupAction)
    if item.dedup_threshold is not None:
        field_checks.cosine(item.dedup_threshold, f"{at}dedup_threshold")


# Entries of a page when the caller does not say; a screenful that stays far below the message limit.
DEFAULT_PAGE = 100
