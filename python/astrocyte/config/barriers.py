"""Settings of barriers: PII, content and metadata rules."""

from __future__ import annotations

from typing import Annotated, Any, Literal, get_args

from pydantic import Field, field_validator, model_validator

from astrocyte.config.loading.section import Count, Seconds, Section

PiiAction = Literal["redact", "reject", "warn"]
# Built-in types, as the core names them.
PiiType = Literal[
    "private_key",
    "jwt",
    "api_key",
    "url_credentials",
    "credential",
    "email",
    "iban",
    "credit_card",
    "crypto_address",
    "mac_address",
    "ip_address",
    "ssn",
    "bank_routing",
    "passport",
    "driving_licence",
    "nino",
    "nhs_number",
    "tax_id_de",
    "nir",
    "dni",
    "nie",
    "codice_fiscale",
    "cpf",
    "cnpj",
    "aadhaar",
    "pan",
    "nric",
    "tfn",
    "medicare",
    "sin",
    "resident_id",
    "date_of_birth",
    "phone",
]
# Types that only a model tells.
MODEL_TYPES = ("person", "address", "location", "organization", "health", "financial", "other_pii")
# Packs of national types; all other types belong to no country.
Country = Literal["US", "GB", "DE", "FR", "ES", "IT", "BR", "IN", "SG", "AU", "CA", "CN"]
COUNTRIES: tuple[Country, ...] = ("US", "GB", "DE", "FR", "ES", "IT", "BR", "IN", "SG", "AU", "CA", "CN")
PiiTarget = Literal["content", "metadata", "tags", "source", "speaker", "query"]
TARGETS: tuple[PiiTarget, ...] = ("content", "metadata", "tags", "source", "speaker", "query")
# The type of what a caller says is there and nothing finds.
RESERVED = "pii"
PiiName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,63}$")]
# Long enough for any sentence in brackets; it stands in every text that had something to hide.
Replacement = Annotated[str, Field(max_length=128)]


class PiiPattern(Section):
    """Custom pattern in the syntax of the Rust crate regex, without look-around and back-references."""

    name: PiiName = Field(description="Type name in lower case; not a built-in type.")
    pattern: str = Field(min_length=1, max_length=4096, description="Pattern; a match has at most 1,024 bytes.")
    replacement: Replacement | None = Field(None, description="Placeholder; default is [NAME_REDACTED].")


class PiiTypeSettings(Section):
    """Overrides for one type."""

    action: Literal["redact", "reject", "warn", "ignore"] | None = Field(
        None, description="Action for this type; ignore disables the type."
    )
    replacement: Replacement | None = Field(None, description="Placeholder; default is [TYPE_REDACTED].")


class PiiSettings(Section):
    """Detection of personal data and secrets."""

    mode: Literal["regex", "ner", "llm", "rules_then_llm", "disabled"] = Field(
        "regex",
        description="regex uses patterns, checksums and context words. ner adds people and places by a local model. "
        "llm uses the language model only. rules_then_llm applies regex, then the language model to the "
        "rest.",
    )
    action: PiiAction = Field(
        "redact", description="redact inserts a placeholder, reject refuses the call, warn adds a warning."
    )
    type_overrides: dict[PiiName, PiiTypeSettings] = Field(
        default_factory=dict, description="Action and placeholder by type: built-in, model or custom."
    )
    countries: tuple[Country, ...] = Field(COUNTRIES, description="Countries whose national types are detected.")
    patterns: tuple[PiiPattern, ...] = Field((), description="Custom patterns; active in every mode except disabled.")
    scan: tuple[PiiTarget, ...] = Field(TARGETS, description="Fields to scan.")
    ner_model: str = Field("en_core_web_sm", min_length=1, description="spaCy pipeline of mode ner: name or directory.")
    model_timeout_seconds: Seconds = Field(
        10.0, description="Timeout of the language model. On timeout, the call fails."
    )
    min_confidence: float = Field(
        0.5, ge=0.0, le=1.0, description="Minimum confidence of a finding; checksums and context words raise it."
    )

    @field_validator("countries", mode="before")
    @classmethod
    def _upper_case(cls, values: Any) -> Any:  # noqa: ANN401 - whatever came
        """Accept country codes in either case, and UK as an alias of GB."""
        if not isinstance(values, (list, tuple)):
            return values
        upper = [value.upper() if isinstance(value, str) else value for value in values]
        return ["GB" if value == "UK" else value for value in upper]

    @model_validator(mode="after")
    def _check_names(self) -> PiiSettings:
        built_in = {*get_args(PiiType), *MODEL_TYPES}
        names = [pattern.name for pattern in self.patterns]
        taken = next((name for name in names if name in {*built_in, RESERVED} or names.count(name) > 1), None)
        if taken is not None:
            raise ValueError(f"patterns: the name {taken!r} is taken; choose another")
        unknown = next((name for name in self.type_overrides if name not in {*built_in, *names}), None)
        if unknown is not None:
            raise ValueError(f"type_overrides: there is no type {unknown!r}, built in or among the patterns")
        return self


class ContentSettings(Section):
    """Content rules, checked first."""

    max_content_length: Count | None = Field(
        None,
        description="Maximum characters of a memory, where homeostasis.retain_max_content_bytes is not strict enough.",
    )
    reject_empty_content: bool = Field(
        True, description="Refuse blank content. If false, it is skipped with a warning."
    )
    reject_binary_content: bool = Field(True, description="Refuse binary data decoded as text.")
    allowed_content_types: tuple[str, ...] | None = Field(
        None, description="Allowed content types, such as text, conversation, document; default is all."
    )


class MetadataSettings(Section):
    """Metadata rules."""

    blocked_keys: tuple[Annotated[str, Field(min_length=1)], ...] = Field(
        ("api_key", "password", "token", "secret"),
        description="Blocked keys, ignoring case: exact, or as suffix after . _ - or a capital letter. Keys with a "
        "text value are also blocked if they contain one.",
    )
    action: Literal["strip", "reject"] = Field(
        "strip", description="strip removes blocked keys and reports them, reject refuses the call."
    )
    max_metadata_size_bytes: Count = Field(4_096, description="Maximum UTF-8 bytes of a memory's metadata as JSON.")


class BarrierSettings(Section):
    """Barriers on input."""

    pii: PiiSettings = PiiSettings()
    validation: ContentSettings = ContentSettings()
    metadata: MetadataSettings = MetadataSettings()


class DlpSettings(Section):
    """Barriers on output, for memories stored before or without input barriers."""

    scan_recall_output: bool = Field(False, description="Scan texts, metadata and sources of hits.")
    scan_reflect_output: bool = Field(False, description="Scan the memories of an answer before synthesis.")
    output_pii_action: PiiAction = Field(
        "warn", description="redact inserts placeholders, reject drops the hit, warn adds a warning."
    )
