"""The single entry to the pipelines: every request is checked here, in one order, whichever interface it came through.

1. access (`access`): the caller may do this in the bank that it names, before anything tells whether there is one;
2. rates and daily quotas (`limits`);
3. shape and limits (`validation`): bad input changes nothing;
4. the bank: it exists, or a write may create it;
5. the request id: a repeated request gets its first answer;
6. the pipeline.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any, NoReturn, TypeVar

from astrocyte.api import Request, StreamRequest, requests
from astrocyte.errors import CapabilityNotSupported
from astrocyte.model import Caller
from astrocyte.policy.auth.api_keys import Keys
from astrocyte.policy.auth.grants import Granting
from astrocyte.policy.governance.holds_and_audit import Holding
from astrocyte.policy.operations.administration import BankAdministration
from astrocyte.policy.operations.agents.agent_memories import AgentMemories
from astrocyte.policy.operations.agents.recanonicalisation import Recanonicalisation
from astrocyte.policy.operations.agents.shared_kb import SharedKb
from astrocyte.policy.operations.agents.terms import Terms
from astrocyte.policy.operations.explain import Explaining
from astrocyte.policy.operations.graph import GraphReading
from astrocyte.policy.operations.graph_changes import GraphChanges
from astrocyte.policy.operations.knowledge.answers import KnowledgeAnswers
from astrocyte.policy.operations.knowledge.coverage import Coverage
from astrocyte.policy.operations.knowledge.diagnosis import Doctor
from astrocyte.policy.operations.knowledge.directives import Directives
from astrocyte.policy.operations.knowledge.item_explanations import ItemExplanations
from astrocyte.policy.operations.knowledge.mental_models import MentalModels
from astrocyte.policy.operations.knowledge.model_revisions import ModelRevisions
from astrocyte.policy.operations.knowledge.observations import Observations
from astrocyte.policy.operations.knowledge.wiki import WikiPages
from astrocyte.policy.operations.long_running import Operating
from astrocyte.policy.operations.memories import Memories
from astrocyte.policy.operations.parts import GateParts, operation_parts
from astrocyte.policy.operations.portability.archive_import import RelatedCalls
from astrocyte.policy.operations.portability.handlers import Portability
from astrocyte.policy.operations.recall import Recalling
from astrocyte.policy.operations.reflect import Reflecting
from astrocyte.policy.operations.retain import Retaining
from astrocyte.policy.operations.retain_group import GroupRetaining

R = TypeVar("R")

# Calls that decide by what one process has in memory of a database of its own.
ALONE = (
    requests.Remember,
    requests.RecallAgentMemory,
    requests.ForgetAgentMemory,
    requests.ListAgentMemories,
    requests.ListAgents,
    requests.RecanonicaliseAgentMemories,
)


def _nothing() -> None:
    return


async def _refuse(caller: Caller, request: Request[Any]) -> NoReturn:
    del caller, request
    raise CapabilityNotSupported(
        "private memories of agents need one server process; start with server.workers 1",
        metadata={"key": "server.workers"},
    )


class Gate:
    """Implements `astrocyte.api.Backend` in process: a table from the class of a request to its handler."""

    def __init__(self, parts: GateParts) -> None:
        shared = operation_parts(parts)
        self._registry = parts.registry
        # What other processes committed before a call is known before it begins.
        self._refresh = parts.store.refresh if parts.store.shared else _nothing
        self._pipelines = parts.pipelines
        self._policies = parts.policies
        self._lifecycle = parts.lifecycle
        self._check = shared.check
        self._access = shared.access
        self._banks = shared.banks
        self.keys = Keys(parts.keys, shared.access, shared.check, parts.clock)
        self._granting = Granting(parts.grants, shared.access, shared.check)
        self._holding = Holding(
            parts.holds, parts.audit, shared.banks, shared.access, shared.check, parts.settings.limits
        )
        self._operating = Operating(parts.operations, shared)
        self._memories = Memories(shared, parts.executor)
        self._administration = BankAdministration(parts, shared)
        self._retaining = Retaining(shared)
        self._group_retaining = GroupRetaining(shared, self._retaining)
        knowledge = KnowledgeAnswers(shared, parts.clock, parts.executor)
        self._recalling = Recalling(shared, knowledge)
        self._explaining = Explaining(shared, ItemExplanations(shared, parts.clock, parts.executor))
        self._graph = GraphReading(shared, parts.executor)
        self._graph_changes = GraphChanges(shared, self._graph)
        self._terms = Terms(parts.terms, shared)
        self.agent_memories = AgentMemories(parts, shared, self._terms, self._recalling)
        self._recanonicalisation = Recanonicalisation(parts, shared, self._terms, self.agent_memories)
        self._shared_kb = SharedKb(shared, self._recalling, parts.executor)
        self._reflecting = Reflecting(shared, self._recalling.evidence, knowledge)
        self._directives = Directives(shared)
        self._observations = Observations(shared, parts.clock)
        self._models = MentalModels(shared, parts.clock)
        self._revisions = ModelRevisions(shared, self._models, self._recalling.evidence)
        self._coverage = Coverage(shared, parts.activity, self._recalling.evidence, parts.clock)
        self._doctor = Doctor(shared, parts.registry, self._recalling.evidence, parts.clock, parts.executor)
        self._wiki = WikiPages(shared, parts.clock, parts.executor)
        related = RelatedCalls(self._memories.forget, self._granting.grant, self._directives.require_trust)
        portability = Portability(shared, parts.grants, parts.audit, parts.executor, related)
        self._handlers = self._table()
        if parts.store.shared:
            self._handlers.update(dict.fromkeys(ALONE, _refuse))
        self._streams: dict[type[Any], Callable[[Caller, Any], AsyncIterator[Any]]] = {
            requests.StreamReflect: self._reflecting.stream_reflect,
            requests.Watch: self._banks.watch,
            requests.ExportGraph: self._graph.export_graph,
            requests.ExportBank: portability.export_bank,
            requests.ImportBank: portability.import_bank,
        }

    def _table(self) -> dict[type[Any], Callable[[Caller, Any], Coroutine[Any, Any, Any]]]:
        """The handler of each request, by its class."""
        return {
            requests.Retain: self._retaining.retain,
            requests.BatchRetain: self._retaining.batch_retain,
            requests.StreamRetain: self._group_retaining.stream_retain,
            requests.GetMemory: self._memories.get_memory,
            requests.ListMemories: self._memories.list_memories,
            requests.UpdateMemory: self._memories.update_memory,
            requests.Recall: self._recalling.recall,
            requests.BatchRecall: self._recalling.batch_recall,
            requests.History: self._recalling.history,
            requests.Explain: self._explaining.explain,
            requests.Reflect: self._reflecting.reflect,
            requests.Forget: self._memories.forget,
            requests.UndeleteMemory: self._memories.undelete_memory,
            requests.SearchEntities: self._graph.search_entities,
            requests.GetEntity: self._graph.get_entity,
            requests.ListEntities: self._graph.list_entities,
            requests.Neighbors: self._graph.neighbors,
            requests.FindPath: self._graph.find_path,
            requests.GetGraphStats: self._graph.get_graph_stats,
            requests.CreateEntityLink: self._graph_changes.create_entity_link,
            requests.DeleteEntityLink: self._graph_changes.delete_entity_link,
            requests.UpdateEntity: self._graph_changes.update_entity,
            requests.MergeEntities: self._graph_changes.merge_entities,
            requests.SplitEntity: self._graph_changes.split_entity,
            requests.RebuildGraph: self._graph_changes.rebuild_graph,
            requests.CreateBank: self._banks.create_bank,
            requests.GetBank: self._banks.get_bank,
            requests.ListBanks: self._banks.list_banks,
            requests.UpdateBank: self._banks.update_bank,
            requests.DeleteBank: self._administration.delete_bank,
            requests.GetBankStats: self._administration.get_bank_stats,
            requests.RunLifecycle: self._administration.run_lifecycle,
            requests.GetServerInfo: self._administration.get_server_info,
            requests.ListBankTemplates: self._administration.list_bank_templates,
            requests.ListBankGroups: self._administration.list_bank_groups,
            requests.ListEngines: self._administration.list_engines,
            requests.ListSources: self._administration.list_sources,
            requests.Grant: self._granting.grant,
            requests.Revoke: self._granting.revoke,
            requests.ListGrants: self._granting.list_grants,
            requests.CheckAccess: self._granting.check_access,
            requests.CreateApiKey: self.keys.create_api_key,
            requests.ListApiKeys: self.keys.list_api_keys,
            requests.RevokeApiKey: self.keys.revoke_api_key,
            requests.PlaceHold: self._holding.place_hold,
            requests.ReleaseHold: self._holding.release_hold,
            requests.ListHolds: self._holding.list_holds,
            requests.ListAuditEvents: self._holding.list_audit_events,
            requests.StartReindex: self._operating.start_reindex,
            requests.GetOperation: self._operating.get_operation,
            requests.ListOperations: self._operating.list_operations,
            requests.WaitOperation: self._operating.wait_operation,
            requests.CancelOperation: self._operating.cancel_operation,
            requests.Remember: self.agent_memories.remember,
            requests.RecallAgentMemory: self.agent_memories.recall,
            requests.ForgetAgentMemory: self.agent_memories.forget,
            requests.ListAgentMemories: self.agent_memories.list_memories,
            requests.ListAgents: self.agent_memories.list_agents,
            requests.RecanonicaliseAgentMemories: self._recanonicalisation.recanonicalise,
            requests.LookupTerm: self._terms.lookup_term,
            requests.ProposeTerm: self._terms.propose_term,
            requests.ListTerms: self._terms.list_terms,
            requests.ReviewTerm: self._terms.review_term,
            requests.SearchSharedKb: self._shared_kb.search,
            requests.ListSharedKb: self._shared_kb.list,
            requests.GetSharedKbIndex: self._shared_kb.index,
            **self._knowledge_table(),
        }

    def _knowledge_table(self) -> dict[type[Any], Callable[[Caller, Any], Coroutine[Any, Any, Any]]]:
        """The handlers of the requests on knowledge."""
        return {
            requests.CreateDirective: self._directives.create_directive,
            requests.ListDirectives: self._directives.list_directives,
            requests.DeleteDirective: self._directives.delete_directive,
            requests.CreateObservation: self._observations.create_observation,
            requests.GetObservation: self._observations.get_observation,
            requests.ListObservations: self._observations.list_observations,
            requests.UpdateObservation: self._observations.update_observation,
            requests.DeleteObservation: self._observations.delete_observation,
            requests.InvalidateObservations: self._observations.invalidate_observations,
            requests.ConsolidateBank: self._observations.consolidate_bank,
            requests.ListObservationRevisions: self._observations.list_observation_revisions,
            requests.CreateMentalModel: self._models.create_mental_model,
            requests.GetMentalModel: self._models.get_mental_model,
            requests.ListMentalModels: self._models.list_mental_models,
            requests.UpdateMentalModel: self._models.update_mental_model,
            requests.RefreshMentalModel: self._revisions.refresh_mental_model,
            requests.DeleteMentalModel: self._models.delete_mental_model,
            requests.UndeleteMentalModel: self._models.undelete_mental_model,
            requests.ListMentalModelRevisions: self._revisions.list_mental_model_revisions,
            requests.GetMentalModelRevision: self._revisions.get_mental_model_revision,
            requests.DiffMentalModelRevisions: self._revisions.diff_mental_model_revisions,
            requests.AuditCoverage: self._coverage.audit_coverage,
            requests.DiagnoseBank: self._doctor.diagnose_bank,
            requests.RepairBank: self._doctor.repair_bank,
            requests.CompileBank: self._wiki.compile_bank,
            requests.GetPage: self._wiki.get_page,
            requests.ListPages: self._wiki.list_pages,
            requests.SearchPages: self._wiki.search_pages,
            requests.ListPageRevisions: self._wiki.list_page_revisions,
            requests.LintPages: self._wiki.lint_pages,
        }

    def call(self, caller: Caller, request: Request[R]) -> Coroutine[Any, Any, R]:
        """The response to a request.

        Raises:
            TypeError: The class of the request has no handler.
        """
        handler = self._handlers.get(type(request))
        if handler is None:
            raise requests.unknown(request)
        self._refresh()
        return handler(caller, request)

    def stream(self, caller: Caller, request: StreamRequest[R]) -> AsyncIterator[R]:
        """The responses to a request as they come; raises what `call` does."""
        handler = self._streams.get(type(request))
        if handler is None:
            raise requests.unknown(request)
        self._refresh()
        return handler(caller, request)

    async def close(self) -> None:
        """Release all resources of this gate, after the deletions in progress."""
        await self._banks.settle()
        await self._lifecycle.close()
