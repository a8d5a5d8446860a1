"""The named parts that the gate and its operations are made of."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Protocol

from astrocyte.config import Settings
from astrocyte.core import Core
from astrocyte.model import ServerInfo, SourceInfo
from astrocyte.pipelines.explain.pipeline import ExplainPipeline
from astrocyte.pipelines.forget import ForgetPipeline
from astrocyte.pipelines.graph.pipeline import GraphPipeline
from astrocyte.pipelines.index.embedding_spaces import EmbeddingSpaces
from astrocyte.pipelines.index.registry import IndexRegistry
from astrocyte.pipelines.knowledge.consolidator import Consolidators
from astrocyte.pipelines.knowledge.search import KnowledgeSearch
from astrocyte.pipelines.knowledge.wiki_compiler import WikiCompiler
from astrocyte.pipelines.knowledge.wiki_tier import WikiTier
from astrocyte.pipelines.lifecycle.runner import LifecycleRunner
from astrocyte.pipelines.multi_bank.pipeline import MultiBankPipeline
from astrocyte.pipelines.portability.export import ExportPipeline
from astrocyte.pipelines.portability.importing import ImportPipeline
from astrocyte.pipelines.recall.protocols import Recall
from astrocyte.pipelines.reflect.pipeline import ReflectPipeline
from astrocyte.pipelines.reindex.pipeline import Reindexer
from astrocyte.pipelines.retain.multimodal import Describer
from astrocyte.pipelines.retain.pipeline import RetainPipeline
from astrocyte.pipelines.retain.update import UpdatePipeline
from astrocyte.policy.auth.access_control import Access
from astrocyte.policy.banks.cross_references import Relevance
from astrocyte.policy.banks.lifecycle import Banks
from astrocyte.policy.banks.selection import BankSets
from astrocyte.policy.engines.recall import Hybrid
from astrocyte.policy.engines.result_screening import ResultScreening
from astrocyte.policy.engines.writes import EngineWriting
from astrocyte.policy.policies import Policies
from astrocyte.policy.requests.validation import Validator
from astrocyte.providers.protocols import LanguageModel
from astrocyte.stores.access import AccessStore, KeyStore
from astrocyte.stores.activity import ActivityStore
from astrocyte.stores.agent_memory import AgentMemoryStore
from astrocyte.stores.audit import AuditStore
from astrocyte.stores.holds import HoldStore
from astrocyte.stores.knowledge.consolidation import ConsolidationStore
from astrocyte.stores.knowledge.diagnosis import DiagnosisStore
from astrocyte.stores.knowledge.items import KnowledgeStore
from astrocyte.stores.knowledge.wiki import WikiStore
from astrocyte.stores.operations import OperationStore
from astrocyte.stores.protocols import MemoryStore
from astrocyte.stores.terms import TermStore


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipelines:
    """The pipelines behind the gate."""

    retain: RetainPipeline
    recall: Recall
    reflect: ReflectPipeline
    multi_bank: MultiBankPipeline
    explain: ExplainPipeline
    update: UpdatePipeline
    forget: ForgetPipeline
    describer: Describer
    reindexer: Reindexer
    graph: GraphPipeline
    knowledge: KnowledgeSearch
    pages: KnowledgeSearch
    wiki_tier: WikiTier | None
    language_model: LanguageModel | None
    wiki: WikiCompiler
    consolidator: Consolidators
    lifecycle: LifecycleRunner
    exports: ExportPipeline
    imports: ImportPipeline


class Lifecycle(Protocol):
    """The application around the gate, which lives as long as it."""

    def start_purging(self) -> None:
        """Start the background tasks; a second call does nothing."""

    async def close(self) -> None:
        """Release everything."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GateParts:
    """The parts of a gate, as the composition root builds them."""

    settings: Settings
    clock: Callable[[], int]
    executor: Executor
    info: ServerInfo
    lifecycle: Lifecycle
    store: MemoryStore
    grants: AccessStore
    holds: HoldStore
    audit: AuditStore
    keys: KeyStore
    operations: OperationStore
    terms: TermStore
    agent_memory: AgentMemoryStore
    core: Core
    knowledge: KnowledgeStore
    consolidations: ConsolidationStore
    wiki: WikiStore
    diagnosis: DiagnosisStore
    activity: ActivityStore
    registry: IndexRegistry
    spaces: EmbeddingSpaces
    pipelines: Pipelines
    policies: Policies
    # The ingest sources of a tenant.
    sources: Callable[[str], list[SourceInfo]]
    # Waits until other processes keep nothing of what was erased in a bank; None where there are none.
    confirm: Callable[[int], Awaitable[None]] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationParts:
    """The parts that the gate's operations share.

    Attributes:
        settings: The settings of the whole server.
        store: The truth.
        knowledge: Observations, mental models and directives.
        consolidations: Consolidations of banks.
        wiki: Topics and wiki pages.
        diagnosis: Reads of diagnoses.
        spaces: The embedders.
        pipelines: What does the work.
        policies: What holds for each bank.
        check: Limits and shapes of requests.
        access: What callers may do.
        banks: Handles of banks, found with the name of what is to be done there.
        bank_sets: The banks that a query names.
        relevance: Memories of other banks that are relevant to a bank.
        engine_results: Screens what engines bring.
        hybrid: Recalls of banks with an engine beside them.
        engine_writes: Retains and forgets at engines.
    """

    settings: Settings
    store: MemoryStore
    knowledge: KnowledgeStore
    consolidations: ConsolidationStore
    wiki: WikiStore
    diagnosis: DiagnosisStore
    spaces: EmbeddingSpaces
    pipelines: Pipelines
    policies: Policies
    check: Validator
    access: Access
    banks: Banks
    bank_sets: BankSets
    relevance: Relevance
    engine_results: ResultScreening
    hybrid: Hybrid
    engine_writes: EngineWriting


def operation_parts(parts: GateParts) -> OperationParts:
    """The parts of the operations, made of those of the gate."""
    settings, policies, store = parts.settings, parts.policies, parts.store
    check = Validator(
        settings.limits,
        content_types=settings.retain.chunking,
        fusion_method=settings.recall.fusion_method,
        profiles=policies.profiles.names,
        answer_bytes=settings.server.max_answer_bytes,
    )
    access = Access(settings, store, parts.grants)
    banks = Banks(
        store,
        parts.registry,
        parts.spaces,
        check,
        access,
        policies.overrides,
        parts.lifecycle.start_purging,
        parts.confirm,
    )
    banks.at_deletion(policies.deleted)
    banks.at_deletion(parts.pipelines.recall.forget)
    banks.at_deletion(parts.pipelines.knowledge.drop)
    banks.at_deletion(parts.pipelines.pages.drop)
    engine_results = ResultScreening(store, policies.barriers, check)
    return OperationParts(
        settings=settings,
        store=store,
        knowledge=parts.knowledge,
        consolidations=parts.consolidations,
        wiki=parts.wiki,
        diagnosis=parts.diagnosis,
        spaces=parts.spaces,
        pipelines=parts.pipelines,
        policies=policies,
        check=check,
        access=access,
        banks=banks,
        bank_sets=BankSets(settings.multi_bank),
        relevance=Relevance(store, banks, access),
        engine_results=engine_results,
        hybrid=Hybrid(policies.engines, engine_results, access.name, settings.recall.rank_constant),
        engine_writes=EngineWriting(policies.engines, policies.outbox_relay, store, access.name),
    )
