"""All settings, and how they are loaded: defaults, a YAML file, the environment and overrides; later sources win."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, PrivateAttr, model_validator
from pydantic import ValidationError as PydanticError
from pydantic_settings import BaseSettings, EnvSettingsSource, PydanticBaseSettingsSource, SettingsConfigDict

from astrocyte.config.access import AccessControlSettings, AccessGrant, IdentitySettings
from astrocyte.config.auth import AuthSettings
from astrocyte.config.banks import BankDefaultSettings, BankSettings, check_shared, complete, spell_out
from astrocyte.config.barriers import BarrierSettings, DlpSettings
from astrocyte.config.derived.agent_memory import AgentMemorySettings
from astrocyte.config.derived.entity_graph import EntityGraphSettings, EntityResolutionSettings, GraphExtractionSettings
from astrocyte.config.derived.knowledge import (
    CoverageSettings,
    DirectiveSettings,
    MentalModelSettings,
    ObservationSettings,
    WikiSettings,
)
from astrocyte.config.derived.lifecycle import LifecycleSettings
from astrocyte.config.engines import EngineName, EngineSettings
from astrocyte.config.extraction import (
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
    EscalationSettings,
    HomeostasisSettings,
    LimitSettings,
)
from astrocyte.config.loading.key_checks import check_keys, refuse, unknown_variables
from astrocyte.config.loading.source import KeyPath, SourceLines, line_of, merge
from astrocyte.config.loading.time_zone import ZoneName
from astrocyte.config.loading.yaml_file import read_yaml
from astrocyte.config.multi_bank import MultiBankSettings
from astrocyte.config.observability import HookSettings, ObservabilitySettings
from astrocyte.config.pipeline import PipelineSettings, check_consolidation, name_once, without_unbuilt
from astrocyte.config.recall import (
    CuratedRecallSettings,
    RecallAuthoritySettings,
    RecallSettings,
    TieredRetrievalSettings,
)
from astrocyte.config.reflect import AdversarialDefenseSettings, AgenticReflectSettings
from astrocyte.config.retain import (
    CuratedRetainSettings,
    RetainSettings,
    SignalQualitySettings,
)
from astrocyte.config.server import ServerSettings
from astrocyte.config.sources.common import SourceName, check_sources
from astrocyte.config.sources.kinds import IngestSource
from astrocyte.config.stages import (
    check_stages,
)
from astrocyte.config.store import ForgetSettings, OutsideStoreSettings, StoreSettings
from astrocyte.config.templates import BankTemplateSettings, TemplateName
from astrocyte.errors import ConfigError

# As validated by the gate.
BankId = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._:@-]{0,254}$")]


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
    graph_extraction: GraphExtractionSettings = GraphExtractionSettings()
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
