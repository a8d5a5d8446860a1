"""Settings of the entity graph and of the resolution of names."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from astrocyte.config.loading.section import Cosine, Count, Seconds, Section, Weight
from astrocyte.config.recall import IntentName


class EntityGraphSettings(Section):
    """Entity graph: people, organisations, places and things that memories mention, and links between them.

    It is derived from memories in the background, after the retain. docs/graph.md describes it.
    """

    enabled: bool = Field(True, description="Derive the graph. After a pause, memories of the pause are added.")
    recall_weight: Weight = Field(
        0.0,
        description="Fusion weight of memories around the entities of a query, on the scale of recall.weights; 0 "
        "disables the arm.",
    )
    recall_seconds: Seconds = Field(
        0.25, description="Timeout of the arm in a recall. On timeout, the recall continues without it."
    )
    recall_intents: tuple[IntentName, ...] = Field(
        (), description="Intents of the queries for which the arm runs, such as comparative; empty for all queries."
    )
    read_wait_seconds: Seconds = Field(
        2.0,
        description="Longest wait of a graph call for memories that were stored before it and are not in the graph "
        "yet. After it, the call answers without them.",
    )


class GraphExtractionSettings(Section):
    """Extraction of names, relations and causes for the entity graph.

    Rules read every memory. In mode llm, the language model reads it too, in the background, within a budget of each
    bank. Memories that were stored before the mode was set are read after `astrocyte graph rebuild`.
    """

    mode: Literal["rules", "llm"] = Field("rules", description="rules, or llm: rules, then the language model.")
    calls_per_day: Count = Field(
        1_000, description="Maximum language model calls of a UTC day in each bank. The rest waits for the next day."
    )
    tokens_per_day: Count = Field(
        2_000_000, description="Maximum tokens of a UTC day in each bank; the last call may exceed them."
    )
    deadline_seconds: Seconds = Field(60.0, description="Timeout of one language model call.")
    least_confidence: Cosine = Field(
        0.7, description="Least confidence of a relation, as the language model states it. Others are dropped."
    )


class EntityResolutionSettings(Section):
    """Recognition of several names of one entity, such as a full name and its short form.

    Rules decide first. Where they do not, and llm_provider is set, the language model is asked, in the background.
    """

    enabled: bool = Field(True, description="Link names of one entity. Merges of callers hold in any case.")
    similarity_threshold: Cosine = Field(
        0.8,
        description="Least similarity of the vectors of two names at which the language model compares them. Names "
        "with common words or many common letters are compared in any case.",
    )
    confirmation_threshold: Cosine = Field(
        0.75, description="Least confidence of a rule, or of the language model, at which two names are linked."
    )
    calls_per_hour: Count = Field(60, description="Maximum language model calls of an hour, over all banks.")
    tokens_per_hour: Count = Field(100_000, description="Maximum tokens of an hour; the last call may exceed them.")
    deadline_seconds: Seconds = Field(20.0, description="Timeout of one language model call.")
