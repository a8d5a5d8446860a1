"""The pipeline, as a hybrid engine names it."""

from __future__ import annotations

from astrocyte.providers.hybrid import PipelineOrchestrator

__all__ = ["PipelineOrchestrator"]
