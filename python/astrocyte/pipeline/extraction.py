"""The functions that show what an extraction profile makes of a content, before it is retained."""

from __future__ import annotations

from astrocyte.pipelines.extraction.preview import (
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
