"""Settings and their defaults, read from a YAML file, the environment and overrides.

Later sources win: defaults, file, environment, overrides. An environment variable is ``ASTROCYTE_`` and the path of the
key, joined by two underscores: ``ASTROCYTE_SERVER__PORT=50052``, ``ASTROCYTE_RECALL__FUSION_METHOD=rrf``. Lists and
mappings are JSON. This package is the only reader of environment and settings files.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, PrivateAttr, model_validator
from pydantic import ValidationError as PydanticError
from pydantic_settings import BaseSettings, EnvSettingsSource, PydanticBaseSettingsSource, SettingsConfigDict

from astrocyte.config.access import AccessControlSettings, AccessGrant, BankGrant, IdentitySettings
from astrocyte.config.auth import ApiKey, AuthSettings, CertificateSettings, JwtSettings
from astrocyte.config.banks import BankDefaultSettings, BankSettings, check_shared, complete, spell_out
from astrocyte.config.barriers import BarrierSettings, DlpSettings, PiiSettings
from astrocyte.config.derived.agent_memory import AgentMemorySettings
from astrocyte.config.derived.entity_graph import EntityGraphSettings, EntityResolutionSettings
from astrocyte.config.derived.knowledge import (
    ConsolidationSettings,
    CoverageSettings,
    DirectiveSettings,
    MentalModelSettings,
    ObservationSettings,
    WikiSettings,
)
from astrocyte.config.derived.lifecycle import LifecycleSettings, PipelineConsolidationSettings
from astrocyte.config.engines import EngineName, EngineSettings, HybridSettings
from astrocyte.config.extraction import (
    Chunking,
    ChunkingSettings,
    EntityExtractionSettings,
    ExtractionProfileSettings,
    ExtractionSettings,
    ProfileKey,
    check_embedding_model,
    check_profiles,
)
from astrocyte.config.index import EmbedderName, EmbedderSettings, EmbeddingSettings, IndexSettings, ReindexSettings
from astrocyte.config.interfaces.gateway import GatewaySettings
from astrocyte.config.interfaces.mcp import McpSettings
from astrocyte.config.limits import (
    DEFAULT_ANSWER_BYTES,
    MOST_ANSWER_BYTES,
    CircuitBreakerSettings,
    EscalationSettings,
    HomeostasisSettings,
)
from astrocyte.config.loading.section import Count, Seconds, Section
from astrocyte.config.loading.source import (
    KeyPath,
    SourceLines,
    check_keys,
    line_of,
    merge,
    read_yaml,
    refuse,
    unknown_variables,
)
from astrocyte.config.loading.time_zone import ZoneName
from astrocyte.config.multi_bank import BankGroupSettings, MultiBankSettings
from astrocyte.config.observability import HookSettings, ObservabilitySettings
from astrocyte.config.pipeline import PipelineSettings, check_consolidation, name_once, without_unbuilt
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
    ScoringSettings,
    SignalQualitySettings,
)
from astrocyte.config.sources.common import SourceName, check_sources
from astrocyte.config.sources.kinds import IngestSource
from astrocyte.config.stages import (
    ArmSettings,
    PipelineFusionSettings,
    QueryAnalysisSettings,
    RetrievalSettings,
    check_stages,
)
from astrocyte.config.store import ForgetSettings, OutsideStoreSettings
from astrocyte.config.templates import BankTemplateSettings, TemplateGrant, TemplateName
from astrocyte.errors import ConfigError

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

# As validated by the gate.
BankId = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._:@-]{0,254}$")]
# The natural boundary of each content type.
CHUNKING: dict[str, Chunking] = {
    "text": "sentence",
    "conversation": "dialogue",
    "transcript": "dialogue",
    "document": "paragraph",
    "email": "paragraph",
    "event": "sentence",
}


class ServerSettings(Section):
    """gRPC server."""

    host: str = Field(
        "127.0.0.1",
        min_length=1,
        description="Address to bind, or unix:PATH. Non-loopback addresses need TLS and credentials.",
    )
    port: int = Field(50051, ge=0, le=65535, description="Port; 0 selects a free port.")
    tls_cert_file: Path | None = Field(None, description="PEM certificate chain; enables TLS.")
    tls_key_file: Path | None = Field(None, description="PEM private key of the certificate.")
    tls_client_ca_file: Path | None = Field(None, description="PEM root certificates; requires client certificates.")
    insecure: bool = Field(
        False, description="Allow non-loopback addresses without TLS or credentials. For private networks only."
    )
    reflection: bool = Field(True, description="Enable gRPC reflection.")
    drain_seconds: Seconds = Field(10.0, description="Time for active calls after SIGTERM.")
    read_concurrency: Count = Field(
        256, description="Concurrent reads; as many may wait, further calls are refused with a retry delay."
    )
    # Writes wait for the disk: more of them would delay reads without writing faster.
    write_concurrency: Count = Field(
        64, description="Concurrent writes; as many may wait, further calls are refused with a retry delay."
    )
    reflect_concurrency: Count = Field(
        64, description="Concurrent reflects; as many may wait, further calls are refused."
    )
    admin_concurrency: Count = Field(
        32, description="Concurrent admin calls; as many may wait, further calls are refused."
    )
    stream_concurrency: Count = Field(
        256, description="Open StreamRetain, Watch and WaitOperation calls, of each; further calls are refused."
    )
    archive_concurrency: Count = Field(4, description="Running exports and imports; further calls are refused.")
    read_deadline_seconds: Seconds = Field(5.0, description="Default deadline of reads and admin calls.")
    write_deadline_seconds: Seconds = Field(10.0, description="Default deadline of writes.")
    reflect_deadline_seconds: Seconds = Field(60.0, description="Default deadline of reflects.")
    max_connection_age_seconds: Seconds = Field(
        3_600.0, description="Connection age after which clients must reconnect, for load balancing."
    )
    max_message_bytes: int = Field(
        1_048_576, ge=1024, description="Maximum request size; larger requests fail with MESSAGE_TOO_LARGE."
    )
    max_answer_bytes: int = Field(
        DEFAULT_ANSWER_BYTES,
        ge=1024,
        le=MOST_ANSWER_BYTES,
        description="Maximum answer size. Pages of lists end before it; other answers beyond it fail with "
        "MESSAGE_TOO_LARGE. The default is the limit of gRPC clients, the maximum that of the Python client.",
    )

    @model_validator(mode="after")
    def _check_tls(self) -> ServerSettings:
        if (self.tls_cert_file is None) != (self.tls_key_file is None):
            raise ValueError("set both tls_cert_file and tls_key_file, or neither")
        if self.tls_client_ca_file is not None and self.tls_cert_file is None:
            raise ValueError("tls_client_ca_file needs tls_cert_file and tls_key_file")
        return self


class LimitSettings(Section):
    """Request limits. A call beyond a limit fails with the name of the field and changes nothing."""

    tags: Count = Field(64, description="Tags of a memory or filter.")
    tag_chars: Count = Field(128, description="Characters of a tag.")
    metadata_keys: Count = Field(64, description="Metadata keys of a memory or filter.")
    metadata_key_bytes: Count = Field(128, description="UTF-8 bytes of a metadata key.")
    metadata_value_bytes: Count = Field(1_024, description="UTF-8 bytes of a metadata value as text.")
    metadata_bytes: Count = Field(4_096, description="UTF-8 bytes of all keys and values.")
    external_bytes: Count = Field(16_384, description="UTF-8 bytes of one item of external_context.")
    query_bytes: Count = Field(8_192, description="UTF-8 bytes of a query.")
    max_results: Count = Field(200, description="Hits of one recall.")
    batch_items: Count = Field(256, description="Items of a BatchRetain, queries of a BatchRecall.")
    parts: Count = Field(16, description="Parts of multimodal content.")
    part_bytes: Count = Field(
        5_000_000,
        description="Bytes of all parts of an item. For gRPC, server.max_message_bytes also applies.",
    )
    page_size: Count = Field(1_000, description="Maximum page size of a list.")
    memory_ids: Count = Field(1_000, description="Memory ids in one filter or selector.")
    archive_bytes: Count = Field(
        8_589_934_592,
        description="Bytes of an archive, which is kept in an unnamed file of data_dir during its import.",
    )
    explained_ids: Count = Field(20, description="Memory ids in one Explain.")
    fact_types: Count = Field(32, description="Fact types in one filter.")
    label_chars: Count = Field(64, description="Characters of a fact type, content type or layer.")
    name_chars: Count = Field(256, description="Characters of a session, speaker, source, model or display name.")
    text_chars: Count = Field(4_096, description="Characters of a reason or a bank's description.")
    dimensions: Count = Field(4_096, description="Dimensions of a vector.")


class RetainSettings(Section):
    """Chunking."""

    chunk_tokens: int = Field(
        160, ge=16, description="Maximum tokens of a chunk. A memory of up to 1.25 times that is not split."
    )
    overlap_tokens: int = Field(32, ge=0, description="Overlap of chunks of the fixed strategy, in tokens.")
    chunking: dict[str, Chunking] = Field(
        default_factory=lambda: dict(CHUNKING),
        description="Strategy by content type; unlisted types use that of text.",
    )

    @model_validator(mode="after")
    def _check_overlap(self) -> RetainSettings:
        if self.overlap_tokens * 2 > self.chunk_tokens:
            raise ValueError("overlap_tokens may be at most half of chunk_tokens")
        return self


class StoreSettings(Section):
    """SQLite store."""

    # Enough log for forgetting a large bank in one transaction on a full disk. Erasure works in slices and needs less.
    ballast_bytes: int = Field(
        64 << 20, ge=0, description="Reserved disk space, so that forgetting works on a full disk; 0 for none."
    )
    # About half a second of work on a fast disk; longer queues are refused immediately.
    waiting_limit: Count = Field(
        4_096, description="Maximum number of waiting writes; further writes are refused with a retry delay."
    )
    busy_seconds: Seconds = Field(5.0, description="Timeout of the database lock of another process.")
    # Longer than clients retry.
    request_keep_hours: float = Field(
        24.0, gt=0.0, le=876_000.0, description="Hours for which results of request ids are kept for retries."
    )


class Settings(BaseSettings):
    """All settings. Frozen; created by `load_settings` or `Settings.from_mapping`."""

    model_config = SettingsConfigDict(frozen=True, extra="forbid", env_prefix="ASTROCYTE_", env_nested_delimiter="__")

    provider: str | None = Field(
        None,
        min_length=1,
        description="Memory system that replaces this server's pipeline for banks without an engine of `engines`: an "
        "entry point of `astrocyte.engine_providers`.",
    )
    provider_config: dict[str, Any] = Field(
        default_factory=dict, repr=False, description="Options of the provider, which validates them."
    )
    provider_tier: Literal["storage"] = Field("storage", description="Retrieval by this process (storage).")
    vector_store: str = Field(
        "sqlite",
        min_length=1,
        description="sqlite, or in_memory without persistence. Another entry point, such as postgres (also named "
        "pgvector) or qdrant, is an external vector store; memories are then stored in SQLite.",
    )
    vector_store_config: dict[str, Any] = Field(
        default_factory=dict, repr=False, description="Options of the vector store, which validates them."
    )
    document_store: str = Field(
        "none",
        min_length=1,
        description="External full-text store: none, postgres, elasticsearch, opensearch, or another entry point.",
    )
    document_store_config: dict[str, Any] = Field(
        default_factory=dict, repr=False, description="Options of the document store, which validates them."
    )
    graph_store: str = Field(
        "none",
        min_length=1,
        description="External entity store: none, neo4j, postgres, or another entry point. It has the entities of "
        "the entity graph, with links, names and merges of callers. The mode of `pipeline.entity_extraction` is rules "
        "unless it is set.",
    )
    graph_store_config: dict[str, Any] = Field(
        default_factory=dict, repr=False, description="Options of the graph store, which validates them."
    )
    outside_stores: OutsideStoreSettings = OutsideStoreSettings()
    entity_graph: EntityGraphSettings = EntityGraphSettings()
    entity_resolution: EntityResolutionSettings = EntityResolutionSettings()
    llm_provider: str = Field(
        "none", min_length=1, description="Language model: none, mock, openai, anthropic, or another entry point."
    )
    llm_provider_config: dict[str, Any] = Field(
        default_factory=dict, repr=False, description="Options of the language model's provider, which validates them."
    )
    time_zone: ZoneName = Field(
        "UTC",
        description="Time zone of dates in questions (yesterday, on 8 May): an IANA name such as Europe/Berlin, or an "
        "offset such as +02:00.",
    )
    data_dir: Path = Field(Path("astrocyte-data"), description="Data directory of the SQLite store.")
    read_only: bool = Field(
        False,
        description="Open the SQLite store for reading; writes answer FAILED_PRECONDITION, and nothing is purged.",
    )
    server: ServerSettings = ServerSettings()
    gateway: GatewaySettings = GatewaySettings()
    mcp: McpSettings = McpSettings()
    auth: AuthSettings = AuthSettings()
    identity: IdentitySettings = IdentitySettings()
    access_control: AccessControlSettings = AccessControlSettings()
    access_grants: tuple[AccessGrant, ...] = Field(
        (), description="Configured grants, in addition to those made by call."
    )
    limits: LimitSettings = LimitSettings()
    homeostasis: HomeostasisSettings = HomeostasisSettings()
    barriers: BarrierSettings = BarrierSettings()
    dlp: DlpSettings = DlpSettings()
    signal_quality: SignalQualitySettings = SignalQualitySettings()
    escalation: EscalationSettings = EscalationSettings()
    observability: ObservabilitySettings = ObservabilitySettings()
    hooks: HookSettings = HookSettings()
    bank_defaults: BankDefaultSettings = BankDefaultSettings()
    banks: dict[BankId, BankSettings] = Field(
        default_factory=dict,
        description="Overrides by bank id: keys of the blocks " + ", ".join(BankSettings.model_fields) + ".",
    )
    bank_templates: dict[TemplateName, BankTemplateSettings] = Field(
        default_factory=dict,
        description="Templates by name: name_pattern, profile, auto_create, access.",
    )
    multi_bank: MultiBankSettings = MultiBankSettings()
    engines: dict[EngineName, EngineSettings] = Field(
        default_factory=dict,
        description="Engines by name, each for some banks.",
    )
    sources: dict[SourceName, IngestSource] = Field(
        default_factory=dict,
        description="Sources by id: `type` and the keys of that type; see [ingest](ingest.md), and "
        "[recall from other services](proxy-recall.md) for `proxy`.",
    )
    embedding: EmbeddingSettings = EmbeddingSettings()
    embedders: dict[EmbedderName, EmbedderSettings] = Field(
        default_factory=dict,
        description="Additional embedders by name, for banks with their models.",
    )
    reindex: ReindexSettings = ReindexSettings()
    recall: RecallSettings = RecallSettings()
    curated_recall: CuratedRecallSettings = CuratedRecallSettings()
    recall_authority: RecallAuthoritySettings = RecallAuthoritySettings()
    tiered_retrieval: TieredRetrievalSettings = TieredRetrievalSettings()
    pipeline: PipelineSettings = PipelineSettings()
    fallback_strategy: Literal["error", "local_llm", "extractive", "degrade"] = Field(
        "error",
        description="Result of a reflect whose answer mode fails: error, one call of the language model (local_llm), "
        "an extractive answer, or the memories without an answer (degrade).",
    )
    agentic_reflect: AgenticReflectSettings = AgenticReflectSettings()
    adversarial_defense: AdversarialDefenseSettings = AdversarialDefenseSettings()
    directives: DirectiveSettings = DirectiveSettings()
    observations: ObservationSettings = ObservationSettings()
    mental_models: MentalModelSettings = MentalModelSettings()
    wiki: WikiSettings = WikiSettings()
    coverage: CoverageSettings = CoverageSettings()
    lifecycle: LifecycleSettings = LifecycleSettings()
    retain: RetainSettings = RetainSettings()
    extraction: ExtractionSettings = ExtractionSettings()
    curated_retain: CuratedRetainSettings = CuratedRetainSettings()
    extraction_profiles: dict[ProfileKey, ExtractionProfileSettings] = Field(
        default_factory=dict, description="Extraction profiles by name."
    )
    agent_memory: AgentMemorySettings = AgentMemorySettings()
    forget: ForgetSettings = ForgetSettings()
    store: StoreSettings = StoreSettings()
    index: IndexSettings = IndexSettings()

    # Lines of the file, for errors found when the application is built.
    _lines: SourceLines = PrivateAttr(default_factory=SourceLines)

    def refusal(self, path: KeyPath, problem: str) -> ConfigError:
        """Return a ConfigError about a value of these settings, with its line in the file."""
        return ConfigError(
            f"{self._lines.place(path)}: {problem}",
            metadata={"key": ".".join(path), **line_of(self._lines, path)},
        )

    @model_validator(mode="before")
    @classmethod
    def _complete_banks(cls, values: Any) -> Any:  # noqa: ANN401 - whatever came
        return complete(values) if isinstance(values, Mapping) else values

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Use init values only: `load_settings` merges the sources, for errors with line numbers."""
        del settings_cls, env_settings, dotenv_settings, file_secret_settings
        return (init_settings,)

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any]) -> Settings:
        """Create settings from a mapping, without the environment.

        Raises:
            ConfigError: A key is unknown or a value out of range.
        """
        return _build(dict(values), SourceLines())


def load_settings(
    path: Path | str | None = None,
    *,
    overrides: Mapping[str, Any] | None = None,
    environ: Mapping[str, str] | None = None,
) -> Settings:
    """Load settings from a file, the environment and overrides; later sources win.

    Args:
        path: YAML file; None for no file.
        overrides: Values, nested like the file, such as command-line options.
        environ: Variables to read instead of the process's.

    Raises:
        ConfigError: A key is unknown or a value out of range, in any source.
    """
    variables = os.environ if environ is None else environ
    values, lines = read_yaml(Path(path), variables) if path is not None else ({}, SourceLines())
    values, lines = spell_out(without_unbuilt(values, lines), lines)
    check_keys(Settings, values, lines)
    unknown_variables(Settings, variables)
    values = merge(values, spell_out(_from_environment(variables), SourceLines())[0])
    return _build(merge(values, spell_out(overrides or {}, SourceLines())[0]), lines)


def _from_environment(environ: Mapping[str, str]) -> dict[str, Any]:
    """Parse the variables into a nested mapping with pydantic-settings."""
    source = EnvSettingsSource(Settings)
    source.env_vars = {name.lower(): value for name, value in environ.items()}
    try:
        return source()
    except ValueError as error:
        raise ConfigError(f"environment: {error}; lists and mappings are written as JSON") from error


def _build(values: dict[str, Any], lines: SourceLines) -> Settings:
    values, lines = spell_out(without_unbuilt(values, lines), lines)
    check_keys(Settings, values, lines)
    values = name_once(values, lines)
    try:
        settings = Settings(**values)
    except PydanticError as error:
        raise refuse(error, lines) from error
    check_shared(settings, settings.banks, lines)
    settings._lines = lines  # noqa: SLF001 (own class)
    check_profiles(settings)
    check_embedding_model(settings)
    check_stages(settings)
    check_consolidation(settings)
    check_sources(settings)
    return settings
