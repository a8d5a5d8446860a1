"""Changes of the entity graph by callers: links, names, merges, rebuilds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from astrocyte.api.requests import (
    CreateEntityLink,
    DeleteEntityLink,
    MergeEntities,
    RebuildGraph,
    SplitEntity,
    UpdateEntity,
)
from astrocyte.errors import ValidationError
from astrocyte.model import Bank, Caller, EntityLink, GraphEntity, GraphStats, Metadata, NewEntityLink
from astrocyte.pipelines.graph.derivation import slug_name, words_of
from astrocyte.policy.operations import graph_checks as checks
from astrocyte.policy.operations.graph import GraphReading, known_keys
from astrocyte.policy.operations.parts import OperationParts
from astrocyte.policy.privacy.barriers import Barriers
from astrocyte.policy.requests import field_checks
from astrocyte.policy.requests.composed_text import composed_name
from astrocyte.policy.requests.request_keys import key_of
from astrocyte.stores.graph.entity_graph import GraphView


class GraphChanges:
    """Handlers of the calls that change an entity graph.

    Args:
        parts: The parts that the operations share.
        reading: Reads the answers.
    """

    def __init__(self, parts: OperationParts, reading: GraphReading) -> None:
        self._banks = parts.banks
        self._check = parts.check
        self._access = parts.access
        self._limits = parts.settings.limits
        self._barriers = parts.policies.barriers
        self._graph = parts.pipelines.graph
        self._reading = reading

    async def create_entity_link(self, caller: Caller, request: CreateEntityLink) -> list[EntityLink]:
        """Store links."""
        bank_id = request.bank_id
        self._banks.require(caller, "CreateEntityLink", bank_id)
        checks.new_links(request.links, self._limits)
        self._check.request_id(request.request_id)
        bank = await self._ready(caller, "CreateEntityLink", bank_id)
        key = key_of(request.request_id, "create_entity_link", bank_id, request.links)
        links = await self._screened(bank, request.links, quiet=request.validate_only)
        if request.validate_only:
            await self._check_known(bank, [one for link in links for one in (link.entity_a, link.entity_b)])
            return []
        return await self._graph.store.create_links(bank, links, by=self._access.name(caller), request=key)

    async def delete_entity_link(self, caller: Caller, request: DeleteEntityLink) -> str:
        """Delete a link."""
        bank_id, link_id = request.bank_id, request.link_id
        self._banks.require(caller, "DeleteEntityLink", bank_id)
        field_checks.label(link_id, "link_id", checks.LINK_ID_CHARS)
        self._check.request_id(request.request_id)
        bank = self._banks.handle(caller, "DeleteEntityLink", bank_id)
        key = key_of(request.request_id, "delete_entity_link", bank_id, link_id)
        deleted = await self._graph.store.delete_link(bank, link_id, by=self._access.name(caller), request=key)
        self._graph.follower.notify()
        return deleted

    async def update_entity(self, caller: Caller, request: UpdateEntity) -> GraphEntity:
        """Change an entity."""
        bank_id, entity_id = request.bank_id, request.entity_id
        self._banks.require(caller, "UpdateEntity", bank_id)
        self._check_update(request)
        self._check.request_id(request.request_id)
        bank = await self._ready(caller, "UpdateEntity", bank_id)
        fields = (request.name, request.aliases, request.metadata, request.etag)
        key = key_of(request.request_id, "update_entity", bank_id, entity_id, *fields)
        name = None if request.name is None else composed_name(request.name)
        aliases = None if request.aliases is None else [composed_name(one) for one in request.aliases]
        texts = await self._barriers.texts(
            bank_id, "UpdateEntity", [name or "", *(aliases or ())], "name", quiet=request.validate_only
        )
        name, aliases = None if name is None else texts[0], None if aliases is None else list(dict.fromkeys(texts[1:]))
        metadata = await screened_metadata(
            self._barriers, bank_id, "UpdateEntity", request.metadata, "metadata", quiet=request.validate_only
        )
        if request.validate_only:
            return await self._reading.entity(GraphView(bank), entity_id)
        words = {entity_id: words_of(slug_name(entity_id))}
        words |= {one: words_of(one) for one in (name, *(aliases or ())) if one}
        await self._graph.store.update_entity(
            bank,
            entity_id,
            name=name,
            aliases=aliases,
            metadata=metadata,
            words=words,
            expected_etag=request.etag,
            by=self._access.name(caller),
            request=key,
        )
        self._graph.follower.notify()
        return await self._reading.entity(GraphView(bank), entity_id)

    async def merge_entities(self, caller: Caller, request: MergeEntities) -> GraphEntity:
        """Merge entities."""
        bank_id, into = request.bank_id, request.into_id
        self._banks.require(caller, "MergeEntities", bank_id)
        checks.entity_ids(request.entity_ids, "entity_ids", checks.MOST_MERGED)
        checks.entity_id(into, "into_id")
        if into in request.entity_ids:
            raise ValidationError("is one of entity_ids; an entity cannot be merged into itself", field="into_id")
        self._check_reason(request.reason)
        self._check.request_id(request.request_id)
        bank = await self._ready(caller, "MergeEntities", bank_id)
        key = key_of(request.request_id, "merge_entities", bank_id, request.entity_ids, into, request.reason)
        ids = list(dict.fromkeys(request.entity_ids))
        reason = await self._reason(bank_id, "MergeEntities", request.reason, quiet=request.validate_only)
        if request.validate_only:
            await self._check_known(bank, [*ids, into])
        else:
            await self._graph.store.merge(bank, ids, into, reason=reason, by=self._access.name(caller), request=key)
        return await self._reading.entity(GraphView(bank), into)

    async def split_entity(self, caller: Caller, request: SplitEntity) -> GraphEntity:
        """Separate an entity."""
        bank_id, entity_id = request.bank_id, request.entity_id
        self._banks.require(caller, "SplitEntity", bank_id)
        checks.entity_id(entity_id, "entity_id")
        self._check_reason(request.reason)
        self._check.request_id(request.request_id)
        bank = await self._ready(caller, "SplitEntity", bank_id)
        key = key_of(request.request_id, "split_entity", bank_id, entity_id, request.reason)
        reason = await self._reason(bank_id, "SplitEntity", request.reason)
        await self._graph.store.split(bank, entity_id, reason=reason, by=self._access.name(caller), request=key)
        self._graph.follower.notify()
        return await self._reading.entity(GraphView(bank), entity_id)

    async def rebuild_graph(self, caller: Caller, request: RebuildGraph) -> GraphStats:
        """Derive the graph again."""
        self._banks.require(caller, "RebuildGraph", request.bank_id)
        self._check.request_id(request.request_id)
        bank = self._banks.current(caller, "RebuildGraph", request.bank_id)
        self._graph.check_enabled()
        key = key_of(request.request_id, "rebuild_graph", request.bank_id)
        await self._graph.store.start_rebuild(bank, by=self._access.name(caller), request=key)
        self._graph.follower.notify()
        return await self._reading.stats(bank)

    async def _ready(self, caller: Caller, operation: str, bank_id: str) -> Bank:
        """The bank, once its graph knows the entities of memories that were stored before the call."""
        bank = self._banks.handle(caller, operation, bank_id)
        await self._graph.caught_up()
        return bank

    async def _check_known(self, bank: Bank, entity_ids: Sequence[str]) -> None:
        await self._reading.read(GraphView(bank), lambda reader: known_keys(reader, bank, entity_ids))

    async def _screened(self, bank: Bank, links: Sequence[NewEntityLink], *, quiet: bool) -> list[NewEntityLink]:
        """Links as they may be stored."""
        evidence = await self._barriers.texts(
            bank.bank_id, "CreateEntityLink", [composed_name(link.evidence) for link in links], "links", quiet=quiet
        )
        screened = []
        for index, (link, text) in enumerate(zip(links, evidence, strict=True)):
            metadata = await screened_metadata(
                self._barriers, bank.bank_id, "CreateEntityLink", link.metadata, f"links[{index}].metadata", quiet=quiet
            )
            screened.append(replace(link, evidence=text, metadata=metadata or {}))
        return screened

    async def _reason(self, bank_id: str, operation: str, reason: str, *, quiet: bool = False) -> str:
        return (await self._barriers.texts(bank_id, operation, [reason], "reason", quiet=quiet))[0]

    def _check_reason(self, reason: str) -> None:
        if reason:
            self._check.reason(reason)

    def _check_update(self, request: UpdateEntity) -> None:
        checks.entity_id(request.entity_id, "entity_id")
        if request.name is None and request.aliases is None and request.metadata is None:
            raise ValidationError("is empty; change name, aliases, metadata or several", field="update_mask")
        if request.name:
            field_checks.label(request.name, "name", checks.NAME_CHARS)
        if request.aliases is not None:
            field_checks.labels(request.aliases, "aliases", checks.MOST_ALIASES, checks.NAME_CHARS)
        if request.metadata is not None:
            field_checks.metadata(request.metadata, "metadata", self._limits)
        if request.etag is not None:
            field_checks.label(request.etag, "etag", self._limits.name_chars)


async def screened_metadata(
    barriers: Barriers, bank_id: str, operation: str, metadata: Metadata | None, at: str, *, quiet: bool = False
) -> Metadata | None:
    """Metadata of an entity or a link as it may be stored, its texts screened.

    Raises:
        ValidationError: A key is refused, or what is left is too large.
        PiiRejected: Something was found that is refused.
    """
    if not metadata:
        return metadata
    kept = barriers.metadata(bank_id, metadata)
    named = [key for key, value in kept.items() if isinstance(value, str)]
    texts = await barriers.texts(bank_id, operation, [str(kept[key]) for key in named], at, quiet=quiet)
    return {**kept, **dict(zip(named, texts, strict=True))}
