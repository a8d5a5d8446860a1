"""Settings: every limit and choice, with its default, read from a YAML file, the environment and overrides.

Later wins: defaults, file, environment, overrides. In the environment a key is ``ASTROCYTE_`` and its path with two
underscores between the parts: ``ASTROCYTE_SERVER__PORT=50052``, ``ASTROCYTE_RECALL__FUSION_METHOD=rrf``. Lists and
mappings are JSON there. This module is the only reader of environment and configuration files.
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
from astrocyte.config.limits import CircuitBreakerSettings, EscalationSettings, HomeostasisSettings
from astrocyte.config.multi_bank import BankGroupSettings, MultiBankSettings
from astrocyte.config.observability import HookSettings, ObservabilitySettings
from astrocyte.config.pipeline import PipelineSettings, name_once
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
from astrocyte.config.section import Count, Seconds, Section
from astrocyte.config.source import (
    KeyPath,
    SourceLines,
    check_keys,
    line_of,
    merge,
    read_yaml,
    refuse,
    unknown_variables,
)
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
    "CuratedRecallSettings",
    "CuratedRetainSettings",
    "DedupSettings",
    "DlpSettings",
    "EmbedderSettings",
    "EmbeddingSettings",
    "EngineSettings",
    "EntityExtractionSettings",
    "EscalationSettings",
    "ExtractionProfileSettings",
    "ExtractionSettings",
    "ForgetSettings",
    "HomeostasisSettings",
    "HookSettings",
    "HybridSettings",
    "IdentitySettings",
    "IndexSettings",
    "JwtSettings",
    "LimitSettings",
    "MultiBankSettings",
    "NoisyBankSettings",
    "ObservabilitySettings",
    "OutsideStoreSettings",
    "PiiSettings",
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
    "load_settings",
]

# The ids that the gate takes.
BankId = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._:@-]{0,254}$")]
# Where each kind of content has its joints.
CHUNKING: dict[str, Chunking] = {
    "text": "sentence",
    "conversation": "dialogue",
    "transcript": "dialogue",
    "document": "paragraph",
    "email": "paragraph",
    "event": "sentence",
}


class ServerSettings(Section):
    """Where and how the gRPC server listens."""

    host: str = Field(
        "127.0.0.1", min_length=1, description="Address to bind, or unix:PATH; beyond loopback it needs TLS and keys."
    )
    port: int = Field(50051, ge=0, le=65535, description="0 lets the system choose.")
    tls_cert_file: Path | None = Field(None, description="PEM certificate chain; with it the port speaks TLS only.")
    tls_key_file: Path | None = Field(None, description="PEM private key of the certificate.")
    tls_client_ca_file: Path | None = Field(None, description="PEM roots; with them clients must show a certificate.")
    insecure: bool = Field(False, description="Bind beyond loopback without TLS or keys: on a private network only.")
    reflection: bool = Field(True, description="Answer gRPC reflection, so that tools work without the protos.")
    drain_seconds: Seconds = Field(10.0, description="How long calls may still run after SIGTERM.")
    read_concurrency: Count = Field(256, description="Reads in progress; as many may wait, more are told to retry.")
    # They wait for the disk and not for each other: more of them would take the turns of reads, and write no faster.
    write_concurrency: Count = Field(64, description="Writes in progress; as many may wait, more are told to retry.")
    reflect_concurrency: Count = Field(64, description="Reflects in progress; as many may wait, more are refused.")
    admin_concurrency: Count = Field(32, description="Admin calls in progress; as many may wait, more are refused.")
    stream_concurrency: Count = Field(256, description="Open streams; more are refused with a time to retry after.")
    read_deadline_seconds: Seconds = Field(5.0, description="Imposed on reads and admin calls without a deadline.")
    write_deadline_seconds: Seconds = Field(10.0, description="Imposed on writes without a deadline.")
    reflect_deadline_seconds: Seconds = Field(60.0, description="Imposed on reflects without a deadline.")
    max_connection_age_seconds: Seconds = Field(3_600.0, description="Then clients reconnect, and spread over servers.")
    max_message_bytes: int = Field(1_048_576, ge=1024, description="Largest request; more is MESSAGE_TOO_LARGE.")

    @model_validator(mode="after")
    def _check_tls(self) -> ServerSettings:
        if (self.tls_cert_file is None) != (self.tls_key_file is None):
            raise ValueError("tls_cert_file and tls_key_file go together: set both or neither")
        if self.tls_client_ca_file is not None and self.tls_cert_file is None:
            raise ValueError("tls_client_ca_file needs tls_cert_file and tls_key_file")
        return self


class LimitSettings(Section):
    """What a request may hold. Beyond a limit a call fails with the field's name, and changes nothing."""

    tags: Count = Field(64, description="Tags of a memory or of a filter.")
    tag_chars: Count = Field(128, description="Characters of a tag.")
    metadata_keys: Count = Field(64, description="Keys of a memory's metadata, or of a metadata filter.")
    metadata_key_bytes: Count = Field(128, description="UTF-8 bytes of a metadata key.")
    metadata_value_bytes: Count = Field(1_024, description="UTF-8 bytes of a metadata value, written as text.")
    metadata_bytes: Count = Field(4_096, description="UTF-8 bytes of all keys and values together.")
    external_bytes: Count = Field(16_384, description="UTF-8 bytes of one item of external_context.")
    query_bytes: Count = Field(8_192, description="UTF-8 bytes of a query.")
    max_results: Count = Field(200, description="Hits of one recall.")
    batch_items: Count = Field(256, description="Items of a BatchRetain, queries of a BatchRecall.")
    parts: Count = Field(16, description="Parts of a content that is not all text.")
    part_bytes: Count = Field(
        5_000_000,
        description="Bytes of all parts of an item; over the wire server.max_message_bytes is the lower limit.",
    )
    page_size: Count = Field(1_000, description="Largest page of a list.")
    memory_ids: Count = Field(1_000, description="Memory ids in one filter or selector.")
    explained_ids: Count = Field(20, description="Memory ids in one Explain, each of which is searched for anew.")
    fact_types: Count = Field(32, description="Fact types in one filter.")
    label_chars: Count = Field(64, description="Characters of a fact type, content type or layer.")
    name_chars: Count = Field(256, description="Characters of a session, speaker, source, model or display name.")
    text_chars: Count = Field(4_096, description="Characters of a reason or a bank's description.")
    dimensions: Count = Field(4_096, description="Largest number of dimensions of a vector.")


class RetainSettings(Section):
    """How content becomes memories."""

    chunk_tokens: int = Field(160, ge=16, description="Largest chunk; a memory of up to 1.25 times that stays whole.")
    overlap_tokens: int = Field(32, ge=0, description="Tokens that chunks of the fixed strategy share.")
    chunking: dict[str, Chunking] = Field(
        default_factory=lambda: dict(CHUNKING),
        description="Strategy by content type; a type that is not named takes that of text.",
    )

    @model_validator(mode="after")
    def _check_overlap(self) -> RetainSettings:
        if self.overlap_tokens * 2 > self.chunk_tokens:
            raise ValueError("overlap_tokens may be at most half of chunk_tokens")
        return self


class StoreSettings(Section):
    """How the SQLite store writes."""

    # Forgetting writes some 0.26 KB of log a memory: room to forget a bank of 200,000 on a full disk, in one
    # transaction. Erasing goes in slices and needs less.
    ballast_bytes: int = Field(
        64 << 20, ge=0, description="Disk held back so that forgetting works when it is full; 0 for none."
    )
    # About half a second of work on a good disk, so that waiting longer is answered at once instead.
    waiting_limit: Count = Field(4_096, description="Writes that may wait for the disk; more are told to retry.")
    busy_seconds: Seconds = Field(5.0, description="How long to wait for another process's lock on the database.")
    # Longer than any client retries.
    request_keep_hours: float = Field(
        24.0, gt=0.0, le=876_000.0, description="How long the answer to a request id is kept for its retries."
    )


class Settings(BaseSettings):
    """Everything that can be set. Frozen; made by `load_settings` or `Settings.from_mapping`."""

    model_config = SettingsConfigDict(frozen=True, extra="forbid", env_prefix="ASTROCYTE_", env_nested_delimiter="__")

    provider: str | None = Field(
        None,
        min_length=1,
        description="Memory system in place of this server's pipeline, for banks that have none of `engines`: an entry "
        "point of `astrocyte.engine_providers`.",
    )
    provider_config: dict[str, Any] = Field(
        default_factory=dict, repr=False, description="Handed to it; it checks them."
    )
    provider_tier: Literal["storage"] = Field("storage", description="Who retrieves: this process (storage).")
    vector_store: str = Field(
        "sqlite",
        min_length=1,
        description="Where memories live: sqlite, or in_memory for no longer than the process. Another entry point, "
        "such as postgres, is a store from outside that proposes memories by their vectors; they live in SQLite then.",
    )
    vector_store_config: dict[str, Any] = Field(
        default_factory=dict, repr=False, description="Handed to the vector store, which checks them."
    )
    document_store: str = Field(
        "none", min_length=1, description="Store that proposes memories by their words: none, postgres, or another."
    )
    document_store_config: dict[str, Any] = Field(
        default_factory=dict, repr=False, description="Handed to the document store, which checks them."
    )
    graph_store: str = Field(
        "none",
        min_length=1,
        description="Store that proposes memories by what they name, which `pipeline.entity_extraction` finds: none, "
        "postgres, or another.",
    )
    graph_store_config: dict[str, Any] = Field(
        default_factory=dict, repr=False, description="Handed to the graph store, which checks them."
    )
    outside_stores: OutsideStoreSettings = OutsideStoreSettings()
    llm_provider: str = Field(
        "none", min_length=1, description="Language model: none, mock, openai, anthropic, or another entry point."
    )
    llm_provider_config: dict[str, Any] = Field(
        default_factory=dict, repr=False, description="Handed to the language model's provider, which checks them."
    )
    data_dir: Path = Field(Path("astrocyte-data"), description="Directory of the SQLite store.")
    server: ServerSettings = ServerSettings()
    auth: AuthSettings = AuthSettings()
    identity: IdentitySettings = IdentitySettings()
    access_control: AccessControlSettings = AccessControlSettings()
    access_grants: tuple[AccessGrant, ...] = Field(
        (), description="Who may do what in which banks, beside the grants made by call."
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
        description="Bank id to what differs there: any of the blocks "
        + ", ".join(BankSettings.model_fields)
        + ", key by key.",
    )
    bank_templates: dict[TemplateName, BankTemplateSettings] = Field(
        default_factory=dict,
        description="Template name to what holds for all banks of a form: name_pattern, profile, auto_create, access.",
    )
    multi_bank: MultiBankSettings = MultiBankSettings()
    engines: dict[EngineName, EngineSettings] = Field(
        default_factory=dict,
        description="Engines by name: memory systems beside the pipeline, each for some of the banks.",
    )
    embedding: EmbeddingSettings = EmbeddingSettings()
    embedders: dict[EmbedderName, EmbedderSettings] = Field(
        default_factory=dict,
        description="Embedders by name, beside `embedding`: for banks that have, or are to have, their models.",
    )
    reindex: ReindexSettings = ReindexSettings()
    recall: RecallSettings = RecallSettings()
    curated_recall: CuratedRecallSettings = CuratedRecallSettings()
    recall_authority: RecallAuthoritySettings = RecallAuthoritySettings()
    tiered_retrieval: TieredRetrievalSettings = TieredRetrievalSettings()
    pipeline: PipelineSettings = PipelineSettings()
    fallback_strategy: Literal["error", "local_llm", "extractive", "degrade"] = Field(
        "error",
        description="When who should answer a reflect cannot: fail, one call of the language model, sentences of the "
        "memories, or the memories as they are.",
    )
    agentic_reflect: AgenticReflectSettings = AgenticReflectSettings()
    adversarial_defense: AdversarialDefenseSettings = AdversarialDefenseSettings()
    retain: RetainSettings = RetainSettings()
    extraction: ExtractionSettings = ExtractionSettings()
    curated_retain: CuratedRetainSettings = CuratedRetainSettings()
    extraction_profiles: dict[ProfileKey, ExtractionProfileSettings] = Field(
        default_factory=dict, description="Profile name to how contents of one kind are taken in."
    )
    forget: ForgetSettings = ForgetSettings()
    store: StoreSettings = StoreSettings()
    index: IndexSettings = IndexSettings()

    # Where the file says what, for errors that show only when the application is built.
    _lines: SourceLines = PrivateAttr(default_factory=SourceLines)

    def refusal(self, path: KeyPath, problem: str) -> ConfigError:
        """The error about a value of these settings that could not be used, with its line where it came from a file."""
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
        """Only what is passed in: `load_settings` merges the sources, so that it can say where a wrong key stands."""
        del settings_cls, env_settings, dotenv_settings, file_secret_settings
        return (init_settings,)

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any]) -> Settings:
        """Settings from a dictionary alone; the environment is not read.

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
    """Settings from a file (None: no file), the environment, and overrides, the later winning.

    Args:
        path: YAML file.
        overrides: Nested like the file; command-line flags come this way.
        environ: Variables to read instead of the process's.

    Raises:
        ConfigError: A key is unknown or a value out of range, in any source.
    """
    variables = os.environ if environ is None else environ
    values, lines = read_yaml(Path(path)) if path is not None else ({}, SourceLines())
    values, lines = spell_out(values, lines)
    check_keys(Settings, values, lines)
    unknown_variables(Settings, variables)
    values = merge(values, spell_out(_from_environment(variables), SourceLines())[0])
    return _build(merge(values, spell_out(overrides or {}, SourceLines())[0]), lines)


def _from_environment(environ: Mapping[str, str]) -> dict[str, Any]:
    """The variables as a nested mapping, by pydantic-settings' rules."""
    source = EnvSettingsSource(Settings)
    source.env_vars = {name.lower(): value for name, value in environ.items()}
    try:
        return source()
    except ValueError as error:
        raise ConfigError(f"environment: {error}; lists and mappings are written as JSON") from error


def _build(values: dict[str, Any], lines: SourceLines) -> Settings:
    values, lines = spell_out(values, lines)
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
    return settings
