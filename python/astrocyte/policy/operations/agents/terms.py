"""The RPCs on canonical terms, and the vocabulary of each tenant."""

from __future__ import annotations

from collections.abc import Sequence

from astrocyte.api.requests import ListTerms, LookupTerm, ProposeTerm, ReviewTerm
from astrocyte.config import AgentMemorySettings, LimitSettings
from astrocyte.errors import AccessDenied, QuotaExceeded, ValidationError
from astrocyte.model import Caller, Term, TermDecision, TermLookup, TermPage, TermStatus
from astrocyte.pipelines.agent_memory.vocabulary import Vocabulary, name_key
from astrocyte.policy.auth.access_control import NO_BANK
from astrocyte.policy.operations.parts import OperationParts
from astrocyte.policy.requests import field_checks
from astrocyte.policy.requests.page_tokens import decode_place, encode_token
from astrocyte.policy.requests.pages import cut_page
from astrocyte.policy.requests.request_keys import key_of
from astrocyte.stores.records import RequestKey
from astrocyte.stores.terms import NewTerm, TermStore

# Of a topic or a term: a phrase, not a text.
MOST_NAME_CHARS = 256
# Of terms that everybody may list.
PUBLIC = frozenset({TermStatus.APPROVED, TermStatus.MERGED})


class Terms:
    """Handlers of the RPCs on terms, and lookups for the memories of agents.

    Args:
        store: The terms.
        parts: Shared by the operations.
    """

    def __init__(self, store: TermStore, parts: OperationParts) -> None:
        self._store = store
        self._access = parts.access
        self._check = parts.check
        self._limits: LimitSettings = parts.settings.limits
        self._settings: AgentMemorySettings = parts.settings.agent_memory
        # By tenant, with the number of the change that it was built after.
        self._vocabularies: dict[str, tuple[int, Vocabulary]] = {}

    def find(self, tenant: str, text: str) -> TermLookup:
        """The canonical term of a text as a whole."""
        return self._vocabulary(tenant).lookup(text)

    def find_in(self, tenant: str, query: str) -> TermLookup:
        """The canonical term of a query: of the whole text, or of a part of it."""
        return self._vocabulary(tenant).lookup_query(query)

    async def queue(self, caller: Caller, name: str, memory_id: str, request: RequestKey | None) -> Term | None:
        """Propose the topic of a memory; None where it has neither letters nor digits."""
        key = name_key(name)
        if not key:
            return None
        new = NewTerm(name, key, (), "", memory_id)
        return await self._store.propose(caller.tenant, new, by=self._access.name(caller), request=request)

    async def lookup_term(self, caller: Caller, request: LookupTerm) -> TermLookup:
        """Look a text up."""
        self._access.require_name(caller, "LookupTerm")
        field_checks.label(request.text, "text", MOST_NAME_CHARS)
        return self.find(caller.tenant, request.text)

    async def propose_term(self, caller: Caller, request: ProposeTerm) -> Term:
        """Queue a term."""
        self._access.require_name(caller, "ProposeTerm")
        name, aliases, definition = request.name, request.aliases, request.definition
        field_checks.label(name, "name", MOST_NAME_CHARS)
        if not name_key(name):
            raise ValidationError("has neither letters nor digits; send a word or a phrase", field="name")
        field_checks.labels(aliases, "aliases", self._limits.tags, MOST_NAME_CHARS)
        if definition:
            field_checks.label(definition, "definition", self._limits.text_chars)
        if request.memory_id is not None:
            field_checks.label(request.memory_id, "memory_id", self._limits.name_chars)
        self._check.request_id(request.request_id)
        new = NewTerm(name, name_key(name), tuple(dict.fromkeys(aliases)), definition, request.memory_id)
        key = key_of(request.request_id, "propose_term", name, aliases, definition, request.memory_id)
        return await self._store.propose(caller.tenant, new, by=self._access.name(caller), request=key)

    async def list_terms(self, caller: Caller, request: ListTerms) -> TermPage:
        """A page of terms."""
        self._access.require_name(caller, "ListTerms")
        status = None if request.status is None else field_checks.named(request.status, "status", TermStatus)
        shown = self._shown(caller, status)
        limit = self._check.page_limit(request.page_size)
        scope = ("terms", caller.tenant, *shown)
        after = decode_place(request.page_token, scope)
        rows = self._store.listed(caller.tenant, statuses=shown, after=after, limit=limit.entries + 1)
        terms, last = cut_page(rows, limit)
        return TermPage(terms, "" if last is None else encode_token(scope, [last]))

    async def review_term(self, caller: Caller, request: ReviewTerm) -> Term:
        """Decide on a proposal."""
        self._access.require_pattern(caller, "ReviewTerm", NO_BANK)
        field_checks.label(request.term_id, "term_id", self._limits.name_chars)
        if request.decision is None:
            raise ValidationError("is missing; send approve, reject or merge", field="decision")
        decision = field_checks.named(request.decision, "decision", TermDecision)
        if (decision is TermDecision.MERGE) is not bool(request.merge_into):
            raise ValidationError("names the approved term of a merge, and of nothing else", field="merge_into")
        if request.merge_into == request.term_id:
            raise ValidationError("is the reviewed term; name another one", field="merge_into")
        self._check.request_id(request.request_id)
        return await self._store.review(
            caller.tenant,
            request.term_id,
            decision,
            request.merge_into,
            by=self._access.name(caller),
            check=self._check_count,
            request=key_of(request.request_id, "review_term", request.term_id, decision, request.merge_into),
        )

    def _vocabulary(self, tenant: str) -> Vocabulary:
        epoch = self._store.epoch(tenant)
        kept = self._vocabularies.get(tenant)
        if kept is None or kept[0] != epoch:
            kept = epoch, Vocabulary(self._store.approved(tenant), self._settings.term_similarity)
            self._vocabularies[tenant] = kept
        return kept[1]

    def _shown(self, caller: Caller, status: TermStatus | None) -> tuple[TermStatus, ...]:
        """The statuses that a list shows: proposals are not for other agents."""
        wanted = tuple(TermStatus) if status is None else (status,)
        if PUBLIC.issuperset(wanted):
            return wanted
        try:
            self._access.require_pattern(caller, "ReviewTerm", NO_BANK)
        except AccessDenied:
            if status is not None:
                raise
            return tuple(one for one in wanted if one in PUBLIC)
        return wanted

    def _check_count(self, approved: Sequence[Term]) -> None:
        limit = self._settings.max_terms
        if len(approved) >= limit:
            raise QuotaExceeded(
                f"the tenant has {len(approved):,} approved terms, the limit is {limit:,} (agent_memory.max_terms)",
                metadata={"limit": str(limit)},
            )
