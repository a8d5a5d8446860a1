"""Fixtures of consolidations by a language model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.pipelines.text import model_calls
from astrocyte.providers.bounded import BoundedModel
from doubles.model_consolidations import Opened
from doubles.observing_models import Observer


@pytest.fixture
def opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Opened:
    monkeypatch.setattr(model_calls, "FIRST_REST_SECONDS", 0.01)

    def make(model: Observer, banks: dict[str, Any] | None = None, **consolidation: Any) -> App:
        monkeypatch.setattr("astrocyte.wiring.providers.create_language_model", lambda *_: BoundedModel(model))
        settings = {
            "data_dir": str(tmp_path),
            "llm_provider": "mock",
            "observations": {"consolidation": {"writer": "model", "delay_seconds": 0, **consolidation}},
            "signal_quality": {"dedup": {"enabled": False}},
            "entity_resolution": {"enabled": False},
            "banks": banks or {},
        }
        return App(Settings.from_mapping(settings))

    return make
