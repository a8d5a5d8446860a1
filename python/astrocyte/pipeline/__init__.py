"""Names by which programs know the pipeline of this package; it lives in `astrocyte.pipelines`."""

from __future__ import annotations

from astrocyte.pipeline.extraction import (
    PreparedRetainInput,
    extraction_profile_for_source,
    merged_extraction_profiles,
    prepare_retain_input,
)

__all__ = [
    "PreparedRetainInput",
    "extraction_profile_for_source",
    "merged_extraction_profiles",
    "prepare_retain_input",
]
