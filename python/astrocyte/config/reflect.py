"""Settings of reflect."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from astrocyte.config.loading.section import Count, Seconds, Section

# From 0 to 1, inclusive.
Share = Annotated[float, Field(ge=0.0, le=1.0)]


class ReflectSettings(Section):
    """Answers to questions."""

    mode: Literal["auto", "extractive", "llm", "agentic", "custom"] = Field(
        "auto",
        description="Answer mode. auto uses the language model if there is one, else extractive. custom uses "
        "custom_synthesiser.",
    )
    custom_synthesiser: str | None = Field(
        None,
        min_length=1,
        description="Entry point of astrocyte.synthesisers, or package.module:name. Callers can request mode custom "
        "if it is set.",
    )
    options: dict[str, Any] = Field(
        default_factory=dict, repr=False, description="Options of custom_synthesiser, which validates them."
    )
    recall_max_results: Annotated[int, Field(ge=1, le=200)] = Field(20, description="Number of memories for an answer.")
    extractive_max_tokens: Count = Field(96, description="Default token budget of an extractive answer.")
    extractive_max_sentences: Annotated[int, Field(ge=1, le=12)] = Field(
        6,
        description="Maximum number of sentences of an extractive answer that is no list. Answers to questions about "
        "time have at most 3, unless the request has max_tokens.",
    )
    synthesis_max_tokens: Count = Field(2_048, description="Default token budget of a language model's answer.")
    temperature: Share = Field(0.1, description="Temperature of the language model.")
    # Less than the usual timeout of clients, so that a fallback still reaches them.
    deadline_seconds: Seconds = Field(
        25.0, description="Timeout of all calls of the language model, or of custom_synthesiser."
    )

    @model_validator(mode="after")
    def _check_custom(self) -> ReflectSettings:
        if self.mode == "custom" and self.custom_synthesiser is None:
            raise ValueError("mode custom needs custom_synthesiser")
        if self.options and self.custom_synthesiser is None:
            raise ValueError("options have no effect without custom_synthesiser")
        return self


class AgenticReflectSettings(Section):
    """Reflect in which the language model searches. Off by default: a question takes several model calls."""

    enabled: bool = Field(False, description="Mode auto selects agentic if there is a language model.")
    max_iterations: Annotated[int, Field(ge=1, le=50)] = Field(
        4, description="Maximum number of model calls with search."
    )
    recall_step_max_results: Annotated[int, Field(ge=1, le=200)] = Field(10, description="Memories per search.")
    max_evidence_pool_size: Annotated[int, Field(ge=1, le=1_000)] = Field(30, description="Memories of all searches.")
    max_total_tokens: Count = Field(
        60_000, description="Token limit of all calls, input and output, after which the model must answer."
    )


class AdversarialDefenseSettings(Section):
    """Protection against unsupported answers."""

    abstention_enabled: bool = Field(True, description="Abstain below the floor.")
    abstention_floor: Share = Field(0.15, description="Minimum confidence; a skepticism of 1 to 5 scales it by 0 to 2.")
    abstention_floor_intent_only: bool = Field(
        False, description="Apply the floor only to exploratory queries and those of unknown intent."
    )
    premise_verification_enabled: bool = Field(
        False, description="Let the language model verify the premises of the question first."
    )
    premise_verification_min_confidence: Share = Field(
        0.6, description="Confidence of the model in a false premise at which the answer states it and stops."
    )
