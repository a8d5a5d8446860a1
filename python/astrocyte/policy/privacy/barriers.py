"""Barriers on the way into memory and out of it: shapes of content, personal data, keys of metadata.

1. content (`shapes`): too long, blank, binary, of a format that is not taken;
2. personal data and secrets (`pii`) in content, metadata, tags, source and speaker: redacted, refused or told;
3. metadata (`shapes`): keys that have no place in a memory.

Each bank has its own blocks. What was done is told to the caller in the answer's warnings and to the operator as an
event: types, counts and numbers of keys, never what was found.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

from astrocyte.config import Settings
from astrocyte.config.loading.per_bank import PerBank
from astrocyte.errors import ValidationError
from astrocyte.model import (
    Memory,
    MemoryHit,
    MemoryUpdate,
    Metadata,
    RecallQuery,
    RecallResult,
    RecallTrace,
    ReflectQuery,
    RetainItem,
)
from astrocyte.pipelines.multi_bank.trace import recounted
from astrocyte.pipelines.recall.external_context import brought
from astrocyte.pipelines.text.normalisation import normalise
from astrocyte.policy.events import emit
from astrocyte.policy.privacy import content_rules
from astrocyte.policy.privacy.bank_barriers import (
    LOOKERS,
    BankBarriers,
    bank_barriers,
    emit_verdict,
    examined,
    find_in_query,
    refuse,
    with_declared,
)
from astrocyte.policy.privacy.hit_screening import is_refused, judged
from astrocyte.policy.privacy.pii_policy import Action, PiiPolicy, Verdict, redacted
from astrocyte.policy.privacy.text_fields import Parts, item_parts, update_parts
from astrocyte.policy.settings.bank_settings import Overrides
from astrocyte.providers.protocols import LanguageModel

T = TypeVar("T", RetainItem, MemoryUpdate)

Q = TypeVar("Q", RecallQuery, ReflectQuery)


class Barriers:
    """The barriers of all banks.

    Args:
        settings: The whole's, with those of its banks.
        language_model: Whom the modes that need one ask.
        embedding_models: The server's own; vectors of their spaces can be made anew when a content was redacted.

    Raises:
        ConfigError: A pattern cannot be run in linear time; with its line.
    """

    def __init__(
        self, settings: Settings, embedding_models: Iterable[str], language_model: LanguageModel | None = None
    ) -> None:
        overrides = Overrides(settings)
        self._overrides = overrides
        self._embedding_models = frozenset(embedding_models)
        # No bank has an empty id: that is all the others.
        self._whole = bank_barriers(settings, overrides.of[""], (), language_model)
        self._banks = {
            name: bank_barriers(settings, overrides.of[name], ("banks", name), language_model)
            for name in settings.banks
        }
        self._templates = {
            name: bank_barriers(settings, own, ("bank_templates", name), language_model)
            for name, own in overrides.templates.items()
        }
        every = (self._whole, *self._banks.values(), *self._templates.values())
        self._of = PerBank(self._find)
        # The fields of `BankBarriers` that are set for any bank: callers leave out the steps of the others.
        self.lookers = frozenset(name for name in LOOKERS if any(getattr(bank, name) is not None for bank in every))
        self.skips_empty = any(not bank.settings.barriers.validation.reject_empty_content for bank in every)

    def skips(self, bank_id: str, item: RetainItem) -> bool:
        """True if an item has nothing to store, and the bank's settings do not make that an error."""
        parts: object = getattr(item, "parts", None)
        if parts or self._of[bank_id].settings.barriers.validation.reject_empty_content:
            return False
        # What is no item, or holds no text, is an error all the same.
        content: object = getattr(item, "content", None)
        return isinstance(content, str) and not normalise(content, str(item.content_type))

    async def item(
        self, bank_id: str, operation: str, item: RetainItem, at: str, *, quiet: bool = False
    ) -> tuple[RetainItem, tuple[str, ...]]:
        """An item as it may be stored, and what its caller is to be told. ``at`` is its path in the request.

        ``quiet`` tells the operator nothing: the call changes nothing.

        Raises:
            ValidationError: A shape, or a key of metadata, is refused.
            PiiRejected: Something was found that is refused.
            ProviderUnavailable: The model of the bank's mode could not look.
        """
        bank = self._of[bank_id]
        barriers = bank.settings.barriers
        shape = barriers.validation
        is_long = shape.max_content_length is not None and len(item.content) > shape.max_content_length
        if is_long or shape.allowed_content_types is not None or content_rules.SUSPECT.search(item.content):
            content_rules.check_item(item, shape, at)
        warnings: tuple[str, ...] = ()
        if bank.pii is not None:
            item, warnings = await self._personal(bank_id, bank.pii, operation, item, at, quiet=quiet)
        elif item.pii_detected:
            warnings = ("pii: pii_detected was set and stored as it came, since this bank's barrier is switched off",)
        if not item.metadata:
            return item, warnings
        metadata, stripped = content_rules.strip_metadata(item.metadata, barriers.metadata, f"{at}metadata")
        if stripped:
            item = replace(item, metadata=metadata)
            warnings = (*warnings, f"metadata: left out {', '.join(map(ascii, stripped))}")
            if not quiet:
                emit("metadata_stripped", bank_id=bank_id, operation=operation, count=len(stripped))
        return item, warnings

    async def _personal(
        self, bank_id: str, policy: PiiPolicy, operation: str, item: RetainItem, at: str, *, quiet: bool
    ) -> tuple[RetainItem, tuple[str, ...]]:
        """An item after the bank's policy about personal data, and what its caller is to be told."""
        scan = policy.settings.scan
        bare = not (policy.asks or item.pii_detected or item.metadata or item.tags or item.source or item.speaker)
        # Its content is all that a bare item holds, and mostly nothing is found there.
        if bare and ("content" not in scan or not policy.scanner.find((item.content,))):
            return item, ()
        parts = item_parts(item, (*scan, "content") if item.pii_detected else scan)
        verdict = await examined(policy, parts)
        if item.pii_detected:
            verdict = with_declared(policy, parts, verdict)
        if not quiet:
            emit_verdict(bank_id, operation, verdict)
        refuse(verdict, at.rstrip(".") or "item")
        if verdict.changed:
            item = parts.put(item, verdict)
            item = self._without_vector(item, at) if "content" in parts.changed(verdict) else item
        return item, verdict.warnings()

    async def update(self, bank_id: str, update: MemoryUpdate, *, quiet: bool = False) -> MemoryUpdate:
        """An update as it may be made.

        Its answer is the memory, which shows placeholders but no missing key: so keys of metadata are refused here,
        not left out.

        Raises:
            ValidationError: A shape, or a key of metadata, is refused.
            PiiRejected: Something was found that is refused.
        """
        bank = self._of[bank_id]
        barriers = bank.settings.barriers
        if "content" in update.fields:
            content_rules.check_content(update.content, barriers.validation, "content")
        if bank.pii is not None:
            parts = update_parts(update, bank.pii.settings.scan)
            verdict = await examined(bank.pii, parts)
            if not quiet:
                emit_verdict(bank_id, "UpdateMemory", verdict)
            refuse(verdict, "update")
            if verdict.changed:
                update = parts.put(update, verdict)
                update = self._without_vector(update, "") if "content" in parts.changed(verdict) else update
        _, blocked = content_rules.strip_metadata(update.metadata, barriers.metadata, "metadata")
        if blocked:
            raise ValidationError(f"the key {blocked[0]!a} is blocked; leave it out", field="metadata")
        return update

    async def texts(
        self, bank_id: str, operation: str, texts: Sequence[str], at: str, *, quiet: bool = False
    ) -> Sequence[str]:
        """Texts that belong to no memory, such as evidence of a link, as they may be stored.

        Raises:
            PiiRejected: Something was found that is refused.
            ProviderUnavailable: The model of the bank's mode could not look.
        """
        policy = self._of[bank_id].pii
        if policy is None or not any(texts):
            return texts
        spans = await policy.examine(texts) if policy.asks else policy.find(texts)
        if not spans:
            return texts
        verdict = policy.judge(texts, spans)
        if not quiet:
            emit_verdict(bank_id, operation, verdict)
        refuse(verdict, at)
        return verdict.texts

    def told(self, bank_id: str, texts: Sequence[str]) -> Sequence[str]:
        """Texts of the entity graph as they may leave: without what the bank redacts or refuses in recalls."""
        policy = self._of[bank_id].outgoing
        return texts if policy is None else policy.withheld(texts)

    def types_in(self, bank_id: str, memories: Sequence[Memory]) -> dict[int, set[str]]:
        """The types of personal data that patterns find, by place of the memory; none where the bank does not look.

        The fields are those that a retain is looked at for: content, metadata, tags, source and speaker.
        """
        policy = self._of[bank_id].pii
        if policy is None:
            return {}
        places: list[int] = []
        everything = Parts()
        for place, memory in enumerate(memories):
            parts = item_parts(memory, policy.settings.scan)
            everything.texts.extend(parts.texts)
            everything.parts.extend(parts.parts)
            places += [place] * len(parts.texts)
        found: dict[int, set[str]] = {}
        for span in everything.own(policy.find(everything.texts)):
            found.setdefault(places[span.text], set()).add(span.type)
        return found

    async def query(self, operation: str, query: Q, bank_ids: Sequence[str], at: str = "") -> tuple[Q, tuple[str, ...]]:
        """A query as these banks may be searched for it, and what its caller is to be told.

        It is looked at once for all banks of the same settings, and as it came: what one bank refuses is refused,
        whatever another would make of it, and what any of them redacts is redacted for all.

        Raises:
            PiiRejected: Something was found that is refused.
        """
        if len(bank_ids) == 1:
            policy = self._of[bank_ids[0]].queries
            if policy is None or not (policy.asks or policy.scanner.find((query.query,))):
                return query, ()
        found = [
            one
            for bank_id, bank in self._distinct(bank_ids).items()
            if bank.queries is not None and (one := await find_in_query(bank_id, bank.queries, query.query)) is not None
        ]
        if not found:
            return query, ()
        refusing = [one for one in found if one.verdict.counts.get("reject")]
        for one in refusing or found:
            emit_verdict(one.bank_id, operation, one.verdict)
        for one in refusing:
            refuse(one.verdict, f"{at}query")
        text = redacted(query.query, [each for one in found for each in one.redactions])
        warnings = dict.fromkeys(warning for one in found for warning in one.verdict.warnings())
        return (replace(query, query=text) if text != query.query else query), tuple(warnings)

    async def queries(
        self, operation: str, queries: Sequence[Q], sets: Sequence[Sequence[str]], places: Sequence[int]
    ) -> list[tuple[Q, tuple[str, ...]]]:
        """As `query` of each of a batch, whose banks are the set at its place.

        Queries of one set are looked at together, and those in which the patterns find nothing not again.

        Raises:
            PiiRejected: Something was found that is refused, in the first query that has any.
        """
        suspect = self._suspect(queries, sets, places)
        return [
            await self.query(operation, query, sets[place], f"queries[{index}].") if index in suspect else (query, ())
            for index, (query, place) in enumerate(zip(queries, places, strict=True))
        ]

    def _suspect(self, queries: Sequence[Q], sets: Sequence[Sequence[str]], places: Sequence[int]) -> set[int]:
        """The queries that have to be looked at one by one."""
        alike: dict[int, list[int]] = {}
        for index, place in enumerate(places):
            alike.setdefault(place, []).append(index)
        suspect: set[int] = set()
        for place, own in alike.items():
            texts = [queries[index].query for index in own]
            for bank in self._distinct(sets[place]).values():
                policy = bank.queries
                if policy is None:
                    continue
                # A model may find more, and is told of one query at a time.
                suspect.update(own if policy.asks else [own[span.text] for span in policy.find(texts)])
        return suspect

    def output(
        self, bank_ids: Sequence[str], operation: str, result: RecallResult, warnings: tuple[str, ...] = ()
    ) -> RecallResult:
        """An answer as it may leave, with ``warnings``: hits with personal data are redacted, left out or told of.

        Each hit is judged by the settings of its own bank, out of the ``bank_ids`` that were asked; what the caller
        brought from elsewhere has none, and is judged by those of all.
        """
        if warnings:
            result = replace(result, warnings=(*warnings, *result.warnings))
        if result.trace is not None and result.trace.prefixes:
            result = replace(result, trace=self._without_words(result.trace))
        return self._screened("outgoing", bank_ids, operation, result)

    def evidence(self, bank_ids: Sequence[str], operation: str, result: RecallResult) -> RecallResult:
        """The hits that an answer may be made of: as `output`, where the banks look at that."""
        return self._screened("evidence", bank_ids, operation, result)

    def shown(self, bank_id: str, operation: str, result: RecallResult) -> RecallResult:
        """The hits that an external model may be shown: as `output`, where the bank looks at what leaves."""
        return self._screened("leaving", (bank_id,), operation, result)

    def passages(self, bank_id: str, texts: Sequence[str]) -> list[str]:
        """Texts of memories as a model from outside may read them: without what would be redacted, or refused.

        Nobody is told: what leaves in the end is judged by `output`.
        """
        policy = self._of[bank_id].leaving
        return list(texts) if policy is None else policy.withheld(texts)

    def refuses(self, hit: MemoryHit) -> bool:
        """True if a memory would be left out of answers by its bank's settings."""
        return is_refused(self._of[hit.bank_id or ""].outgoing, hit)

    def refuses_evidence(self, hit: MemoryHit) -> bool:
        """True if a memory would be left out of what answers are made of."""
        return is_refused(self._of[hit.bank_id or ""].evidence, hit)

    def screen_engine_result(self, bank_id: str, operation: str, result: RecallResult) -> RecallResult:
        """Screens the hits of an engine by the patterns, as items that are to be stored."""
        return self._screened("pii", (bank_id,), operation, result)

    def metadata(self, bank_id: str, metadata: Metadata) -> Metadata:
        """Metadata of an engine's hit without the keys that the bank blocks.

        Raises:
            ValidationError: A key is refused, or what is left is too large.
        """
        return content_rules.strip_metadata(metadata, self._of[bank_id].settings.barriers.metadata, "metadata")[0]

    def _screened(self, looker: str, bank_ids: Sequence[str], operation: str, result: RecallResult) -> RecallResult:
        if looker not in self.lookers:
            return result
        policy_of: Callable[[BankBarriers], PiiPolicy | None] = operator.attrgetter(looker)
        distinct = self._distinct(bank_ids)
        every = {bank_id: policy for bank_id, bank in distinct.items() if (policy := policy_of(bank)) is not None}
        if not every or not result.hits:
            return result
        own = {bank_id: policy for bank_id in bank_ids if (policy := policy_of(self._of[bank_id])) is not None}
        hits: list[MemoryHit] = []
        totals: dict[str, dict[Action, Counter[str]]] = {}
        for hit in result.hits:
            source = hit.bank_id or ""
            judges = every if brought(hit) else {source: own[source]} if source in own else {}
            leaving, counted = judged(hit, judges)
            if leaving is not None:
                hits.append(leaving)
            for bank_id, counts in counted:
                total = totals.setdefault(bank_id, {})
                for action, types in counts.items():
                    total.setdefault(action, Counter()).update(types)
        if not totals:
            return result
        warned = list(result.warnings)
        for bank_id, total in totals.items():
            told = Verdict((), frozenset(), total)
            emit_verdict(bank_id, operation, told)
            warned += told.warnings()
        trace = None if result.trace is None else recounted(result.trace, hits)
        return replace(result, hits=tuple(hits), trace=trace, warnings=tuple(warned))

    def _without_words(self, trace: RecallTrace) -> RecallTrace:
        """A trace without the words of prefixes of banks that look at answers.

        A word may be part of what is redacted in a memory, and by itself looks like nothing that is.
        """
        prefixes = tuple(
            one if self._of[one.bank_id].outgoing is None else one._replace(words=()) for one in trace.prefixes
        )
        return replace(trace, prefixes=prefixes)

    def _distinct(self, bank_ids: Sequence[str]) -> dict[str, BankBarriers]:
        """The first bank of each settings: a bank's own, its template's, or the whole's; in the order asked."""
        if not self._banks and not self._templates:
            return dict.fromkeys(bank_ids[:1], self._whole)
        first = {id(self._of[bank_id]): bank_id for bank_id in reversed(bank_ids)}
        return {bank_id: self._of[bank_id] for bank_id in reversed(first.values())}

    def _find(self, bank_id: str) -> BankBarriers:
        own = self._banks.get(bank_id)
        if own is not None:
            return own
        return self._templates.get(self._overrides.template(bank_id), self._whole) if self._templates else self._whole

    def _without_vector(self, whole: T, at: str) -> T:
        """A redacted item or update without its vector, from which the content could be guessed."""
        if whole.embedding is not None and whole.embedding.model not in self._embedding_models:
            raise ValidationError(
                "belongs to content with personal data, which was redacted; send content without personal data and the "
                "vector of that content",
                field=f"{at}embedding",
            )
        return replace(whole, embedding=None)
