"""The dashboard and the alert rules ask for what the server tells."""

import json
import re
import shutil
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import yaml
from prometheus_client import generate_latest

from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.policy.metrics import Metrics

ROOT = Path(__file__).resolve().parents[2]
RULES = ROOT / "deploy/prometheus/alerts.yaml"
DASHBOARD = ROOT / "deploy/grafana/dashboard.json"
METRIC = re.compile(r"astrocyte_\w+")
LABEL_SETS = re.compile(r"by \(([^)]*)\)|\{(\w+)[=!]")


def asked() -> list[str]:
    """Every expression of both."""
    rules = yaml.safe_load(RULES.read_text(encoding="utf-8"))
    panels = json.loads(DASHBOARD.read_text(encoding="utf-8"))["panels"]
    return [rule["expr"] for group in rules["groups"] for rule in group["rules"]] + [
        target["expr"] for panel in panels for target in panel["targets"]
    ]


@pytest.fixture
async def told() -> AsyncIterator[str]:
    """Names of all series, as a scrape has them."""
    watched = {"prometheus_enabled": True, "metrics_port": 0}
    app = App(Settings.from_mapping({"vector_store": "in_memory", "observability": watched}))
    assert isinstance(app.telemetry.metrics, Metrics)
    yield generate_latest(app.telemetry.metrics.registry).decode()
    await app.close()


async def test_every_metric_that_they_ask_for_exists(told: str) -> None:
    kinds = dict(re.findall(r"^# TYPE (\w+) (\w+)$", told, re.MULTILINE))
    names = {name for name, kind in kinds.items() if kind != "histogram"}
    names |= {f"{name}_bucket" for name, kind in kinds.items() if kind == "histogram"}
    wanted = {name for expression in asked() for name in METRIC.findall(expression)}
    assert wanted <= names
    # And of what is promised, the dashboard leaves nothing out.
    assert names - wanted == set()


def test_the_labels_that_they_ask_for_are_promised() -> None:
    promised = set(re.findall(r"\w+", "bank_id provider status fallback action operation le"))
    found: set[str] = set()
    for expression in asked():
        for grouped, matched in LABEL_SETS.findall(expression):
            found |= set(re.findall(r"\w+", grouped or matched))
    assert found
    assert found <= promised


@pytest.mark.skipif(shutil.which("promtool") is None, reason="Prometheus is not installed")
def test_prometheus_takes_the_rules() -> None:
    subprocess.run(["promtool", "check", "rules", str(RULES)], check=True)
