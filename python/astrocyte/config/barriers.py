"""What may cross into memory: personal data, shapes of content, keys of metadata."""

from __future__ import annotations

from typing import Annotated, Any, Literal, get_args

from pydantic import Field, field_validator, model_validator

from astrocyte.config.section import Count, Seconds, Section

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
    """A pattern of your own, in the syntax of Rust's regex: without look-around and back-references."""

    name: PiiName = Field(description="Its type, in lower case; not one of the built-in types.")
    pattern: str = Field(min_length=1, max_length=4096, description="What to look for, in at most 1,024 bytes of text.")
    replacement: Replacement | None = Field(None, description="What stands in its place; [NAME_REDACTED] by default.")


class PiiTypeSettings(Section):
    """What holds for one type instead of what holds for all."""

    action: Literal["redact", "reject", "warn", "ignore"] | None = Field(
        None, description="Instead of the action for all; ignore leaves the type alone."
    )
    replacement: Replacement | None = Field(None, description="Instead of [TYPE_REDACTED].")


class PiiSettings(Section):
    """Personal data and secrets: found how, and then what."""

    mode: Literal["regex", "ner", "llm", "rules_then_llm", "disabled"] = Field(
        "regex",
        description="regex looks for patterns, checks their digits and reads the words around them; ner adds people "
        "and places by a local model; llm asks the language model alone; rules_then_llm asks it for what regex left.",
    )
    action: PiiAction = Field(
        "redact", description="redact puts a placeholder there, reject refuses the call, warn says so and goes on."
    )
    type_overrides: dict[PiiName, PiiTypeSettings] = Field(
        default_factory=dict, description="Type, built in, a model's or your own, to its action and replacement."
    )
    countries: tuple[Country, ...] = Field(COUNTRIES, description="Whose national types are looked for.")
    patterns: tuple[PiiPattern, ...] = Field(
        (), description="Patterns of your own; looked for in every mode but disabled."
    )
    scan: tuple[PiiTarget, ...] = Field(TARGETS, description="What is looked at.")
    ner_model: str = Field("en_core_web_sm", min_length=1, description="spaCy pipeline of ner: a name, or a folder.")
    model_timeout_seconds: Seconds = Field(10.0, description="How long a language model may take; then nothing passes.")
    min_confidence: float = Field(
        0.5, ge=0.0, le=1.0, description="How sure a finding must be; checksums and words add."
    )

    @field_validator("countries", mode="before")
    @classmethod
    def _upper_case(cls, values: Any) -> Any:  # noqa: ANN401 - whatever came
        """Country codes in either case; the UK by the name that people use."""
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
    """Shapes of content that are refused before anything looks at it."""

    max_content_length: Count = Field(50_000, description="Characters of one memory.")
    reject_empty_content: bool = Field(True, description="Blank content is an error; else it is skipped, and said so.")
    reject_binary_content: bool = Field(True, description="Refuse content that is a file's bytes read as text.")
    allowed_content_types: tuple[str, ...] | None = Field(
        None, description="Formats that are taken, such as text, conversation, document; all by default."
    )


class MetadataSettings(Section):
    """Keys of metadata that have no place in a memory."""

    blocked_keys: tuple[Annotated[str, Field(min_length=1)], ...] = Field(
        ("api_key", "password", "token", "secret"),
        description="Keys that are these, or end with one after . _ - or a capital, in any case; with text as value "
        "also those that have one within.",
    )
    action: Literal["strip", "reject"] = Field(
        "strip", description="strip leaves such keys out and names them in the answer; reject refuses the call."
    )
    max_metadata_size_bytes: Count = Field(4_096, description="UTF-8 bytes of a memory's metadata as JSON.")


class BarrierSettings(Section):
    """What may cross into memory."""

    pii: PiiSettings = PiiSettings()
    validation: ContentSettings = ContentSettings()
    metadata: MetadataSettings = MetadataSettings()


class DlpSettings(Section):
    """What may leave it: memories may be older than the barriers, or came while they were off."""

    scan_recall_output: bool = Field(False, description="Look at the texts, metadata and sources of hits.")
    scan_reflect_output: bool = Field(
        False, description="Look at the memories that an answer is made of, before it is; a model sees them so too."
    )
    output_pii_action: PiiAction = Field(
        "warn", description="redact puts placeholders there, reject leaves the hit out, warn says so."
    )
