"""The rows of an archive beside its memories, checked and screened as the calls that would make them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from astrocyte.errors import ValidationError
from astrocyte.model import Bank, Entity, NewEntityLink
from astrocyte.pipelines.graph.derivation import slug_name, words_of
from astrocyte.pipelines.knowledge import documents
from astrocyte.pipelines.knowledge.claims import Relation
from astrocyte.pipelines.knowledge.wiki_pages import MOST_TITLES
from astrocyte.pipelines.portability.graph_lines import ArchivedGraphRow
from astrocyte.pipelines.portability.knowledge_lines import texts_of, with_texts
from astrocyte.pipelines.query.time_windows import from_ms
from astrocyte.policy.operations import graph_checks
from astrocyte.policy.operations.graph_changes import screened_metadata
from astrocyte.policy.operations.knowledge.directives import MOST_PRIORITY
from astrocyte.policy.operations.knowledge.items import Items
from astrocyte.policy.operations.knowledge.model_values import ModelChecks, all_sources
from astrocyte.policy.operations.parts import OperationParts
from astrocyte.policy.requests import field_checks
from astrocyte.policy.requests.composed_text import composed_name
from astrocyte.stores.graph.entity_graph import ArchivedEntity, ArchivedLink
from astrocyte.stores.knowledge.items import CLAIM_KEYS, Body, ItemHistory, ItemKind, RevisionRecord

OPERATION = "ImportBank"
# What a statement of the consolidation has, all or nothing: the consolidation reads them together.
STATEMENT = (*CLAIM_KEYS, "base_confidence")
# Of a wiki page as Markdown: twice the largest that the rules write, 24 sentences of 400 characters with speakers.
MOST_PAGE_BYTES = 1 << 17


class KnowledgeRows:
    """Checks items of knowledge; every method raises `ValidationError` with the key of a wrong value.

    Args:
        parts: What the operations share.
    """

    def __init__(self, parts: OperationParts) -> None:
        self._items = Items(parts)
        self._models = ModelChecks(self._items, parts.settings.mental_models.max_bytes)
        settings = parts.settings
        self.most = {
            ItemKind.OBSERVATION: settings.observations.max_per_bank,
            ItemKind.MENTAL_MODEL: settings.mental_models.max_per_bank,
            ItemKind.DIRECTIVE: settings.directives.max_per_bank,
            ItemKind.WIKI_PAGE: settings.wiki.max_pages,
        }
        self._pages = ModelChecks(self._items, MOST_PAGE_BYTES)
        self._kept_pages = settings.wiki.keep_revisions
        self._title_chars = max(settings.limits.name_chars, settings.limits.tag_chars)

    async def screened(self, bank: Bank, item: ItemHistory) -> ItemHistory:
        """An item as the bank takes it.

        Raises:
            PiiRejected: It holds personal data that the bank does not take.
        """
        self._items.item_id(item.item_id, "id")
        scope = self._items.scope(item.scope)
        field_checks.name(item.created_by, "created_by")
        field_checks.integer(item.priority, "priority", -MOST_PRIORITY, MOST_PRIORITY)
        if item.kind is ItemKind.WIKI_PAGE:
            item = self._page_item(item)
        revisions = [await self._revision(bank, item.kind, one) for one in item.revisions]
        # A topic is about the words that were there before.
        kept = revisions[-1].body.get("text") == item.revisions[-1].body.get("text")
        return replace(item, scope=scope, topic=item.topic if kept else None, revisions=tuple(revisions))

    async def _revision(self, bank: Bank, kind: ItemKind, revision: RevisionRecord) -> RevisionRecord:
        field_checks.name(revision.changed_by, "changed_by")
        checked = _CHECKS[kind](self, revision)
        texts = [
            await self._items.screened(bank.bank_id, OPERATION, text, kind, quiet=False)
            for text in texts_of(kind, checked)
        ]
        return replace(revision, body=with_texts(kind, checked, texts))

    def _page_item(self, page: ItemHistory) -> ItemHistory:
        """A page with as many revisions as a compilation keeps."""
        first, last = page.revisions[0].body["kind"], page.revisions[-1]
        if any(one.body["kind"] != first for one in page.revisions) or not page.item_id.startswith(f"{first}:"):
            raise ValidationError("does not begin with the kind of the page and a colon", field="id")
        kept = tuple(one for one in page.revisions if one.revision > last.revision - self._kept_pages)
        return replace(page, revisions=kept)

    def _observation(self, revision: RevisionRecord) -> Body:
        body = revision.body
        if not revision.sources:
            raise ValidationError("is empty; an observation rests on memories", field="sources")
        field_checks.number(body["confidence"], "confidence", 0.0, 1.0)
        began, ended = body["valid_from"], body["valid_until"]
        if began is not None and ended is not None and began > ended:
            raise ValidationError("ends before valid_from", field="valid_until")
        if body["superseded_by"]:
            self._items.item_id(body["superseded_by"], "superseded_by")
        for item_id, _ in body.get("superseders", ()):
            self._items.item_id(item_id, "statement.superseders.id")
        if "words" in body and not all(name in body for name in STATEMENT):
            raise ValidationError(f"expected all of {', '.join(STATEMENT)}", field="statement")
        if "relation" in body and body["relation"] not in set(Relation):
            raise ValidationError(f"expected one of {', '.join(Relation)}", field="statement.relation")
        return with_texts(ItemKind.OBSERVATION, body, [self._items.text(body["text"], "text")])

    def _model(self, revision: RevisionRecord) -> Body:
        sections = _parts(self._models, revision)
        made = {**revision.body, "name": self._models.name(revision.body["name"]), "sections": sections}
        _check_cited(revision, all_sources(made), "model")
        return made

    def _page(self, revision: RevisionRecord) -> Body:
        body = revision.body
        titles = body["titles"]
        field_checks.count(titles, "titles", MOST_TITLES)
        for title in titles:
            field_checks.label(title["text"], "titles.text", self._title_chars)
            if not title["source_ids"]:
                raise ValidationError("is empty; a title is told by memories", field="titles.source_ids")
        made = {
            **body,
            "titles": [{**title, "text": composed_name(title["text"])} for title in titles],
            "sections": _parts(self._pages, revision),
        }
        if not any(section["blocks"] for section in made["sections"]):
            raise ValidationError("has no text", field="parts")
        # A block without citations rests on the sources of the page, so that these are all of them.
        if set(body["source_ids"]) != {source.memory_id for source in revision.sources} or not body["source_ids"]:
            raise ValidationError("is not the list of the ids in sources, or is empty", field="source_ids")
        told = [one for title in titles for one in title["source_ids"]]
        _check_cited(revision, [*all_sources(made), *told], "page")
        return made

    def _directive(self, revision: RevisionRecord) -> Body:
        if revision.sources:
            raise ValidationError("must be empty; a directive rests on no memory", field="sources")
        return {"rule_text": self._items.text(revision.body["rule_text"], "rule_text")}


_CHECKS = {
    ItemKind.OBSERVATION: KnowledgeRows._observation,  # noqa: SLF001 - its own methods
    ItemKind.MENTAL_MODEL: KnowledgeRows._model,  # noqa: SLF001
    ItemKind.DIRECTIVE: KnowledgeRows._directive,  # noqa: SLF001
    ItemKind.WIKI_PAGE: KnowledgeRows._page,  # noqa: SLF001
}


def _parts(checks: ModelChecks, revision: RevisionRecord) -> list[dict[str, Any]]:
    """The sections of a document, checked."""
    sections = tuple(
        checks.section(section, f"parts[{index}]")
        for index, section in enumerate(documents.decode(revision.body["sections"]))
    )
    if documents.with_ids(sections) != sections:
        raise ValidationError("has a section_id twice, or an empty one", field="parts")
    checks.size(sections, "parts")
    return documents.encode(sections)


def _check_cited(revision: RevisionRecord, cited: Iterable[str], noun: str) -> None:
    """Refuse what would outlive an erasure: a memory that a document cites, and its sources lack."""
    unknown = sorted(set(cited) - {source.memory_id for source in revision.sources})
    if unknown:
        raise ValidationError(f"lacks {unknown[0]!a:.80}, which the {noun} cites", field="sources")


class GraphRows:
    """Checks entities and links; every method raises `ValidationError` with the key of a wrong value.

    Args:
        parts: What the operations share.
    """

    def __init__(self, parts: OperationParts) -> None:
        self._limits = parts.settings.limits
        self._barriers = parts.policies.barriers

    async def screened(self, bank: Bank, row: ArchivedGraphRow) -> ArchivedGraphRow:
        """A row as the bank takes it.

        Raises:
            PiiRejected: It holds personal data that the bank does not take.
        """
        own = row.row
        if isinstance(own, ArchivedEntity):
            return replace(row, row=await self._entity(bank, own))
        return replace(row, row=await self._link(bank, own))

    async def _entity(self, bank: Bank, entity: ArchivedEntity) -> ArchivedEntity:
        graph_checks.entity_id(entity.entity_id, "id")
        graph_checks.entity_type(entity.entity_type, "type")
        slug = slug_name(entity.entity_id)
        if Entity(slug, entity.entity_type).id != entity.entity_id:
            raise ValidationError("is not made of the type and a normalised name", field="id")
        if entity.name:
            field_checks.label(entity.name, "name", graph_checks.NAME_CHARS)
        field_checks.labels(entity.aliases, "aliases", graph_checks.MOST_ALIASES, graph_checks.NAME_CHARS)
        field_checks.metadata(entity.metadata, "metadata", self._limits)
        names = [slug, *map(composed_name, (entity.name or "", *entity.aliases))]
        texts = await self._barriers.texts(bank.bank_id, OPERATION, names, "name")
        if texts[0] != slug:
            raise ValidationError("has personal data that the bank does not take", field="id")
        metadata = await screened_metadata(self._barriers, bank.bank_id, OPERATION, entity.metadata, "metadata")
        return replace(
            entity, name=texts[1] or None, aliases=tuple(dict.fromkeys(texts[2:])), metadata=dict(metadata or {})
        )

    async def _link(self, bank: Bank, link: ArchivedLink) -> ArchivedLink:
        given = NewEntityLink(
            link.entity_a,
            link.entity_b,
            link.link_type,
            link.evidence,
            link.confidence,
            link.metadata,
            None if link.valid_from is None else from_ms(link.valid_from),
            None if link.valid_until is None else from_ms(link.valid_until),
        )
        graph_checks.new_link(given, "link", self._limits)
        evidence = composed_name(link.evidence)
        (evidence,) = await self._barriers.texts(bank.bank_id, OPERATION, [evidence], "evidence")
        metadata = await screened_metadata(self._barriers, bank.bank_id, OPERATION, link.metadata, "metadata")
        return replace(link, evidence=evidence, metadata=dict(metadata or {}))


def words_by_name(rows: Sequence[ArchivedEntity | ArchivedLink]) -> dict[str, frozenset[str]]:
    """The words by which the entities among the rows are found, by id and by name."""
    words: dict[str, frozenset[str]] = {}
    for row in rows:
        if isinstance(row, ArchivedEntity):
            words[row.entity_id] = words_of(slug_name(row.entity_id))
            words |= {name: words_of(name) for name in row.names}
    return words
