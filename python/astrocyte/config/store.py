"""Settings of external stores and of forgetting."""

from __future__ import annotations

from pydantic import Field

from astrocyte.config.loading.section import Seconds, Section, Weight


class OutsideStoreSettings(Section):
    """External stores named by `vector_store`, `document_store` and `graph_store`."""

    vector_weight: Weight = Field(
        0.5, description="Fusion weight of the vector store's list, on the scale of `recall.weights`."
    )
    document_weight: Weight = Field(0.5, description="Fusion weight of the document store's list.")
    graph_weight: Weight = Field(0.5, description="Fusion weight of the graph store's list.")
    recall_seconds: Seconds = Field(
        0.5, description="Timeout of a recall's query. On timeout, the recall continues without the store."
    )
    write_seconds: Seconds = Field(30.0, description="Timeout of one write, after which it is retried.")
    erase_seconds: Seconds = Field(
        10.0,
        description="Timeout of the confirmation of an erasure. On timeout, the call fails with "
        "`PROVIDER_UNAVAILABLE`.",
    )
    compare_seconds: Seconds = Field(
        60.0,
        description="Interval of the full comparison that removes deleted banks. Changes are replicated immediately.",
    )


class ForgetSettings(Section):
    """Retention of forgotten memories."""

    purge_after_days: float = Field(
        30.0, ge=0.0, le=36_500.0, description="Days for which a forgotten memory can be undeleted."
    )
    purge_interval_seconds: Seconds = Field(3_600.0, description="Interval of the purge.")
