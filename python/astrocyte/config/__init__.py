"""Settings and their defaults, read from a YAML file, the environment and overrides.

Later sources win: defaults, file, environment, overrides. An environment variable is ``ASTROCYTE_`` and the path of the
key, joined by two underscores: ``ASTROCYTE_SERVER__PORT=50052``, ``ASTROCYTE_RECALL__FUSION_METHOD=rrf``. Lists and
mappings are JSON. This package is the only reader of environment and settings files.
"""

from __future__ import annotations

from astrocyte.config.access import AccessControlSettings, AccessGrant, BankGrant, IdentitySettings
from astrocyte.config.auth import ApiKey, AuthSettings, CertificateSettings, JwtSettings
from astrocyte.config.banks import BankDefaultSettings, BankSettings
from astrocyte.config.barriers import BarrierSettings, DlpSettings, PiiSettings
from astrocyte.config.derived.agent_memory import AgentMemorySettings
from astrocyte.config.derived.entity_graph import EntityGraphSettings, EntityResolutionSettings, GraphExtractionSettings
from astrocyte.config.derived.knowledge import (
    ConsolidationSettings,
    CoverageSettings,
    DirectiveSettings,
    MentalModelSettings,
    ObservationSettings,
    WikiSettings,
)
from astrocyte.config.derived.lifecycle import PipelineConsolidationSettings
from astrocyte.config.engines import EngineSettings, HybridSettings
from astrocyte.config.extraction import (
    ChunkingSettings,
    EntityExtractionSettings,
    ExtractionProfileSettings,
    ExtractionSettings,
)
from astrocyte.config.index import EmbedderSettings, EmbeddingSettings, IndexSettings, ReindexSettings
from astrocyte.config.interfaces.gateway import GatewaySettings
from astrocyte.config.interfaces.mcp import McpSettings
from astrocyte.config.limits import CircuitBreakerSettings, EscalationSettings, HomeostasisSettings, LimitSettings
from astrocyte.config.multi_bank import BankGroupSettings, MultiBankSettings
from astrocyte.config.observability import HookSettings, ObservabilitySettings
from astrocyte.config.pipeline import PipelineSettings
from astrocyte.config.recall import (
    CuratedRecallSettings,
    RecallAuthoritySettings,
    RecallSettings,
    RecallWeights,
    TieredRetrievalSettings,
)
from astrocyte.config.reflect import AdversarialDefenseSettings, AgenticReflectSettings, ReflectSettings
from astrocyte.config.retain import (
    CuratedRetainSettings,
    DedupSettings,
    NoisyBankSettings,
    RetainSettings,
    ScoringSettings,
    SignalQualitySettings,
)
from astrocyte.config.server import ServerSettings
from astrocyte.config.settings import Settings, load_settings
from astrocyte.config.stages import ArmSettings, PipelineFusionSettings, QueryAnalysisSettings, RetrievalSettings
from astrocyte.config.store import ForgetSettings, OutsideStoreSettings, StoreSettings
from astrocyte.config.templates import BankTemplateSettings, TemplateGrant

__all__ = [
    "AccessControlSettings",
    "AccessGrant",
    "AdversarialDefenseSettings",
    "AgentMemorySettings",
    "AgenticReflectSettings",
    "ApiKey",
    "ArmSettings",
    "AuthSettings",
    "BankDefaultSettings",
    "BankGrant",
    "BankGroupSettings",
    "BankSettings",
    "BankTemplateSettings",
    "BarrierSettings",
    "CertificateSettings",
    "ChunkingSettings",
    "CircuitBreakerSettings",
    "ConsolidationSettings",
    "CoverageSettings",
    "CuratedRecallSettings",
    "CuratedRetainSettings",
    "DedupSettings",
    "DirectiveSettings",
    "DlpSettings",
    "EmbedderSettings",
    "EmbeddingSettings",
    "EngineSettings",
    "EntityExtractionSettings",
    "EntityGraphSettings",
    "EntityResolutionSettings",
    "EscalationSettings",
    "ExtractionProfileSettings",
    "ExtractionSettings",
    "ForgetSettings",
    "GatewaySettings",
    "GraphExtractionSettings",
    "HomeostasisSettings",
    "HookSettings",
    "HybridSettings",
    "IdentitySettings",
    "IndexSettings",
    "JwtSettings",
    "LimitSettings",
    "McpSettings",
    "MentalModelSettings",
    "MultiBankSettings",
    "NoisyBankSettings",
    "ObservabilitySettings",
    "ObservationSettings",
    "OutsideStoreSettings",
    "PiiSettings",
    "PipelineConsolidationSettings",
    "PipelineFusionSettings",
    "PipelineSettings",
    "QueryAnalysisSettings",
    "RecallAuthoritySettings",
    "RecallSettings",
    "RecallWeights",
    "ReflectSettings",
    "ReindexSettings",
    "RetainSettings",
    "RetrievalSettings",
    "ScoringSettings",
    "ServerSettings",
    "Settings",
    "SignalQualitySettings",
    "StoreSettings",
    "TemplateGrant",
    "TieredRetrievalSettings",
    "WikiSettings",
    "load_settings",
]
