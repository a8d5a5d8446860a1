"""The dashboard and the alert rules ask for what the server tells."""

import asyncio
import json
import os
import re
import shutil
import socket
import subprocess
import time
import urllib.request
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
import yaml
from prometheus_client import generate_latest

from astrocyte.api.requests import Recall, Retain
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.model import Caller, RecallQuery, RetainItem
from astrocyte.policy.observability.metrics import Metrics

ROOT = Path(__file__).resolve().parents[2]
RULES = ROOT / "deploy/prometheus/alerts.yaml"
DASHBOARD = ROOT / "deploy/grafana/dashboard.json"
ALERT_TESTS = ROOT / "deploy/prometheus/alerts_test.yaml"
METRIC = re.compile(r"astrocyte_\w+")
# On a machine of CI it is there, or something is wrong.
needs_prometheus = pytest.mark.skipif(
    shutil.which("promtool") is None and "CI" not in os.environ, reason="Prometheus is not installed"
)
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
    promised = set(
        re.findall(
            r"\w+",
            "bank_id bank_key provider status fallback action operation queue engine hook outcome source le agent_id"
            " tier",
        )
    )
    found: set[str] = set()
    for expression in asked():
        for grouped, matched in LABEL_SETS.findall(expression):
            found |= set(re.findall(r"\w+", grouped or matched))
    assert found
    assert found <= promised


@needs_prometheus
def test_prometheus_takes_the_rules() -> None:
    promtool("check", "rules", str(RULES))


@needs_prometheus
def test_the_alerts_say_what_they_should() -> None:
    promtool("test", "rules", str(ALERT_TESTS))


def test_every_alert_is_tested_both_ways() -> None:
    rules = yaml.safe_load(RULES.read_text(encoding="utf-8"))
    alerts = {rule["alert"] for group in rules["groups"] for rule in group["rules"]}
    cases = [
        case
        for test in yaml.safe_load(ALERT_TESTS.read_text(encoding="utf-8"))["tests"]
        for case in test["alert_rule_test"]
    ]
    assert {case["alertname"] for case in cases if case["exp_alerts"]} == alerts
    assert {case["alertname"] for case in cases if not case["exp_alerts"]} == alerts


@pytest.mark.process
@needs_prometheus
def test_a_rule_that_is_wrong_is_noticed(tmp_path: Path) -> None:
    """The control of the tests above."""
    wrong = RULES.read_text(encoding="utf-8").replace("astrocyte_circuit_breaker_state == 1", "absent(up) == 2")
    (tmp_path / RULES.name).write_text(wrong, encoding="utf-8")
    tests = shutil.copy(ALERT_TESTS, tmp_path)
    with pytest.raises(subprocess.CalledProcessError):
        promtool("test", "rules", str(tests))


@needs_prometheus
async def test_prometheus_finds_nothing_wrong_with_the_names(told: str) -> None:
    promtool("check", "metrics", given=told)


@needs_prometheus
async def test_prometheus_scrapes_it_and_answers_what_is_asked(tmp_path: Path) -> None:
    """A real one, on this machine alone, with the rules that ship; every panel of the dashboard is asked for."""
    watched = {"prometheus_enabled": True, "metrics_port": 0}
    app = App(Settings.from_mapping({"vector_store": "in_memory", "observability": watched}))
    assert isinstance(app.telemetry.metrics, Metrics)
    await app.backend.call(Caller(), Retain("family", RetainItem("Mara plays the oboe.")))
    await app.backend.call(Caller(), Recall(RecallQuery("oboe", "family")))
    with prometheus(tmp_path, app.telemetry.metrics.serve()) as ask:
        found = await asyncio.to_thread(ask, 'query?query=astrocyte_recall_total{status="ok"}')
        (result,) = found["result"]
        assert result["metric"]["bank_id"] == "family"
        assert float(result["value"][1]) == 1
        for expression in asked():
            await asyncio.to_thread(ask, f"query?{urlencode({'query': expression})}")
        groups = (await asyncio.to_thread(ask, "rules"))["groups"]
        assert {rule["health"] for group in groups for rule in group["rules"]} <= {"ok", "unknown"}
        assert len(groups) == 1
    await app.close()


def promtool(*arguments: str, given: str | None = None) -> None:
    done = subprocess.run(["promtool", *arguments], input=given, capture_output=True, text=True, check=False)
    if done.returncode:
        raise subprocess.CalledProcessError(done.returncode, done.args, done.stdout, done.stderr)
    # A lint of names is told of without a failure.
    assert done.stderr == ""


@contextmanager
def prometheus(folder: Path, metrics_port: int) -> Iterator[Callable[[str], Any]]:
    """A Prometheus that has scraped once; asks its API, in which a failure raises."""
    with socket.create_server(("127.0.0.1", 0)) as chosen:
        address = f"127.0.0.1:{chosen.getsockname()[1]}"
    configuration = {
        "global": {"scrape_interval": "200ms", "scrape_timeout": "200ms", "evaluation_interval": "200ms"},
        "rule_files": [str(RULES)],
        "scrape_configs": [{"job_name": "astrocyte", "static_configs": [{"targets": [f"127.0.0.1:{metrics_port}"]}]}],
    }
    path = folder / "prometheus.yaml"
    path.write_text(yaml.safe_dump(configuration), encoding="utf-8")
    command = [f"--config.file={path}", f"--storage.tsdb.path={folder / 'data'}", f"--web.listen-address={address}"]

    def ask(what: str) -> Any:
        with urllib.request.urlopen(f"http://{address}/api/v1/{what}") as answer:
            return json.load(answer)["data"]

    def scraped() -> bool:
        try:
            return bool(ask("query?query=astrocyte_recall_total")["result"])
        except OSError:
            return False

    with (folder / "log").open("w") as log:
        running = subprocess.Popen(["prometheus", *command], stdout=log, stderr=log)
        try:
            end = time.monotonic() + 30
            while not scraped():
                assert running.poll() is None, (folder / "log").read_text(encoding="utf-8")
                assert time.monotonic() < end
                time.sleep(0.1)
            yield ask
        finally:
            running.terminate()
            running.wait()
