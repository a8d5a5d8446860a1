"""The blocks of the policy layer load as they are printed, and each value in them is in force."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from astrocyte.api.requests import Recall, Reflect, Retain
from astrocyte.app import App
from astrocyte.config import Settings, load_settings
from astrocyte.config.banks import at
from astrocyte.errors import ConfigError
from astrocyte.model import Caller, RecallQuery, ReflectQuery, RetainItem
from astrocyte.policy.settings.bank_settings import Overrides
from astrocyte.providers.engines import EngineCapabilities
from harness.engines import Shelf

BLOCKS = {
    "token budgets": """
homeostasis:
  recall_max_tokens: 4096
  reflect_max_tokens: 8192
  retain_max_content_bytes: 102400
""",
    "rate limits": """
homeostasis:
  rate_limits:
    retain_per_minute: 60
    recall_per_minute: 120
    reflect_per_minute: 20
    global_per_minute: 300
""",
    "quotas": """
homeostasis:
  quotas:
    retain_per_day: 10000
    reflect_per_day: 500
    storage_bytes_per_bank: null
""",
    "personal data": """
barriers:
  pii:
    mode: regex
    action: redact
    patterns:
      - name: custom_id
        pattern: "CUST-\\\\d{8}"
        replacement: "[REDACTED_CUSTOMER_ID]"
""",
    "validation": """
barriers:
  validation:
    max_content_length: 50000
    reject_empty_content: true
    reject_binary_content: true
    allowed_content_types:
      - text
      - conversation
      - document
""",
    "metadata": """
barriers:
  metadata:
    blocked_keys:
      - api_key
      - password
      - token
      - secret
    max_metadata_size_bytes: 4096
""",
    "dedup": """
signal_quality:
  dedup:
    enabled: true
    similarity_threshold: 0.95
    action: skip
""",
    "scoring": """
signal_quality:
  scoring:
    enabled: false
    min_score: 0.3
    action: reject
""",
    "noisy banks": """
signal_quality:
  noisy_bank:
    enabled: true
    retain_spike_multiplier: 5.0
    min_avg_content_length: 20
    max_dedup_rate: 0.8
    action: warn
""",
    "circuit breaker": """
escalation:
  circuit_breaker:
    failure_threshold: 5
    recovery_timeout_seconds: 30
    half_open_max_calls: 2
""",
    "degraded mode": """
escalation:
  degraded_mode: empty_recall
""",
}
WHOLE = """
provider: mystique
llm_provider: anthropic

homeostasis:
  recall_max_tokens: 4096
  reflect_max_tokens: 8192
  retain_max_content_bytes: 102400
  rate_limits:
    retain_per_minute: 60
    recall_per_minute: 120
    reflect_per_minute: 20

barriers:
  pii:
    mode: regex
    action: redact
  validation:
    max_content_length: 50000
    reject_empty_content: true

signal_quality:
  dedup:
    enabled: true
    similarity_threshold: 0.95
  noisy_bank:
    enabled: true
    action: warn

escalation:
  circuit_breaker:
    failure_threshold: 5
    recovery_timeout_seconds: 30
  degraded_mode: empty_recall

observability:
  otel_enabled: true
  prometheus_enabled: true
  log_level: info

banks:
  sensitive-customer:
    barriers:
      pii:
        mode: llm
        action: reject
    homeostasis:
      retain_per_minute: 10
"""


def loaded(text: str, folder: Path) -> Settings:
    path = folder / "astrocyte.yaml"
    path.write_text(text, encoding="utf-8")
    return load_settings(path, environ={})


def leaves(values: Any, path: tuple[str, ...] = ()) -> list[tuple[tuple[str, ...], Any]]:
    """Every value that is no mapping, with its path."""
    if not isinstance(values, dict):
        return [(path, values)]
    return [leaf for key, value in values.items() for leaf in leaves(value, (*path, key))]


def said(text: str, folder: Path, *, but: tuple[str, ...] = ()) -> Settings:
    """The settings of a text, each of whose values is found where it was said."""
    settings = loaded(text, folder)
    found = settings.model_dump(mode="json", exclude_defaults=False)
    for path, value in leaves(yaml.safe_load(text)):
        if path != but:
            known: Any = at(found, path)
            if isinstance(value, list) and value and isinstance(value[0], dict):
                assert [{key: one[key] for key in given} for one, given in zip(known, value, strict=True)] == value
            else:
                assert known == value, path
    return settings


@pytest.mark.parametrize("text", list(BLOCKS.values()), ids=list(BLOCKS))
def test_a_block_loads_as_printed(text: str, tmp_path: Path) -> None:
    said(text, tmp_path)


@pytest.mark.parametrize("text", list(BLOCKS.values()), ids=list(BLOCKS))
def test_a_block_may_be_a_banks_own(text: str, tmp_path: Path) -> None:
    shared = ("global_per_minute", "circuit_breaker")
    own = {
        name: {key: one for key, one in block.items() if key not in shared}
        for name, block in yaml.safe_load(text).items()
    }
    for block in own.values():
        block.get("rate_limits", {}).pop("global_per_minute", None)
    said(yaml.safe_dump({"banks": {"family": own}}), tmp_path)


def test_the_whole_loads_as_printed(tmp_path: Path) -> None:
    settings = said(WHOLE, tmp_path, but=("banks", "sensitive-customer", "homeostasis", "retain_per_minute"))
    overrides = Overrides(settings)
    strict, other = overrides.of["sensitive-customer"], overrides.of["another"]
    # The short form, and what the bank does not say itself.
    assert (strict.homeostasis.rate_limits.retain_per_minute, other.homeostasis.rate_limits.retain_per_minute) == (
        10,
        60,
    )
    assert (strict.homeostasis.rate_limits.recall_per_minute, strict.homeostasis.recall_max_tokens) == (120, 4096)
    assert (strict.barriers.pii.mode, strict.barriers.pii.action) == ("llm", "reject")
    assert strict.barriers.validation.max_content_length == 50_000
    assert (other.barriers.pii.mode, other.barriers.pii.action) == ("regex", "redact")


def test_a_memory_provider_that_is_not_installed_is_a_wrong_setting(tmp_path: Path) -> None:
    settings = loaded("provider: mystique\nvector_store: in_memory\n", tmp_path)
    with pytest.raises(ConfigError, match=r"^provider: there is no provider 'mystique'"):
        App(settings)
    with pytest.raises(ConfigError, match="provider_config: has no effect without provider"):
        App(loaded("provider_config: {a: 1}\nvector_store: in_memory\n", tmp_path))


@pytest.mark.parametrize("reflects", [True, False])
async def test_a_memory_provider_takes_the_place_of_the_pipeline(
    monkeypatch: pytest.MonkeyPatch, *, reflects: bool
) -> None:
    shelf = Shelf(EngineCapabilities(reflect=reflects))
    given: list[Any] = []

    def create(*named: Any) -> Shelf:
        given.append(named)
        return shelf

    monkeypatch.setattr("astrocyte.wiring.providers.create_engine", create)
    app = App(Settings.from_mapping({"provider": "mystique", "provider_config": {"a": 1}, "vector_store": "in_memory"}))
    me = Caller()
    await app.gate.call(me, Retain("family", RetainItem("Mara plays the oboe.")))
    found = await app.gate.call(me, Recall(RecallQuery("who plays the oboe", "family")))
    answer = await app.gate.call(me, Reflect(ReflectQuery("who plays the oboe?", "family")))
    await app.close()
    assert given == [("provider", "mystique", {"a": 1})]
    assert shelf.texts == ["Mara plays the oboe."]
    assert [hit.text for hit in found.hits] == ["Mara plays the oboe."]
    assert answer.answer.startswith("The shelf says") is reflects
    assert ("reflect" in [name for name, _ in shelf.calls]) is reflects
