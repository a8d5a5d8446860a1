"""How questions are answered from memory."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from astrocyte.config.section import Count, Seconds, Section

# A probability.
Share = Annotated[float, Field(ge=0.0, le=1.0)]


class ReflectSettings(Section):
    """How a reflect makes its answer."""

    mode: Literal["auto", "extractive", "llm", "agentic", "custom"] = Field(
        "auto",
        description="Who answers; auto: the language model where there is one, else sentences of the memories; custom: "
        "custom_synthesiser.",
    )
    custom_synthesiser: str | None = Field(
        None,
        min_length=1,
        description="What mode custom asks: an entry point of astrocyte.synthesisers, or package.module:name. It "
        "is there for callers who ask for that mode, too.",
    )
    options: dict[str, Any] = Field(
        default_factory=dict, repr=False, description="Handed to custom_synthesiser, which checks them."
    )
    recall_max_results: Annotated[int, Field(ge=1, le=200)] = Field(
        20, description="Memories that an answer is made of."
    )
    extractive_max_tokens: Count = Field(
        96, description="Tokens of an answer of sentences, where the caller is silent."
    )
    synthesis_max_tokens: Count = Field(2_048, description="Tokens of a model's answer, where the caller is silent.")
    temperature: Share = Field(0.1, description="Of the language model.")
    # Less than clients wait for an answer by themselves, so that a fallback still reaches them.
    deadline_seconds: Seconds = Field(
        25.0, description="How long a language model, all its calls together, or custom_synthesiser may take."
    )

    @model_validator(mode="after")
    def _check_custom(self) -> ReflectSettings:
        if self.mode == "custom" and self.custom_synthesiser is None:
            raise ValueError("mode custom needs custom_synthesiser")
        if self.options and self.custom_synthesiser is None:
            raise ValueError("options have no effect without custom_synthesiser")
        return self


class AgenticReflectSettings(Section):
    """A reflect in which the language model searches by itself. Off by default: it costs several calls a question."""

    enabled: bool = Field(False, description="What mode auto chooses where there is a language model.")
    max_iterations: Annotated[int, Field(ge=1, le=50)] = Field(4, description="Calls of the model that may search.")
    recall_step_max_results: Annotated[int, Field(ge=1, le=200)] = Field(10, description="Memories of one search.")
    max_evidence_pool_size: Annotated[int, Field(ge=1, le=1_000)] = Field(30, description="Memories of all searches.")
    max_total_tokens: Count = Field(60_000, description="Tokens of all calls, in and out; then it has to answer.")


class AdversarialDefenseSettings(Section):
    """What keeps an answer from claiming what memory does not hold."""

    abstention_enabled: bool = Field(True, description="Say that memory holds no answer below the floor.")
    abstention_floor: Share = Field(0.15, description="Confidence; a caller's skepticism of 1 to 5 scales it 0 to 2.")
    abstention_floor_intent_only: bool = Field(
        False, description="Only for questions of no clear kind, and for open ones such as tell me about."
    )
    premise_verification_enabled: bool = Field(
        False, description="Let the language model check first what the question takes for granted."
    )
    premise_verification_min_confidence: Share = Field(
        0.6, description="How sure the model must be that a premise does not hold, for the answer to say so and stop."
    )
