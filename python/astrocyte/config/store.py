"""Stores from outside, which propose memories beside the index."""

from __future__ import annotations

from pydantic import Field

from astrocyte.config.section import Seconds, Section, Weight


class OutsideStoreSettings(Section):
    """How `vector_store`, `document_store` and `graph_store` are used where they name a store from outside."""

    vector_weight: Weight = Field(
        0.5, description="Weight of what the vector store proposes, beside those of `recall.weights`."
    )
    document_weight: Weight = Field(0.5, description="Weight of what the document store proposes.")
    graph_weight: Weight = Field(0.5, description="Weight of what the graph store proposes.")
    recall_seconds: Seconds = Field(0.5, description="How long a recall waits for them; it goes on without the late.")
    write_seconds: Seconds = Field(30.0, description="How long one write of theirs may take before it is tried again.")
    erase_seconds: Seconds = Field(
        10.0, description="How long an erasure waits for them to confirm; then it is answered `PROVIDER_UNAVAILABLE`."
    )
    compare_seconds: Seconds = Field(
        60.0, description="How often all banks are compared, to let go of deleted ones. Changes are followed at once."
    )


class ForgetSettings(Section):
    """How forgetting ends."""

    purge_after_days: float = Field(30.0, ge=0.0, le=36_500.0, description="How long a forgotten memory can come back.")
    purge_interval_seconds: Seconds = Field(3_600.0, description="How often what is due is erased.")
