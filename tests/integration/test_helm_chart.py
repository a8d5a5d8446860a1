"""The Helm chart of deploy/: what it renders is a server that starts, with no more rights than it needs."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from astrocyte.config import Settings, load_settings
from external.proxies import DEPLOY, needs
from harness.commands import command, said

pytestmark = [pytest.mark.process, needs("go")]

CHART = DEPLOY / "helm" / "astrocyte"
RENDERER = Path(__file__).resolve().parents[1] / "helm"
DSN = {"name": "ASTROCYTE_STORE__DSN", "valueFrom": {"secretKeyRef": {"name": "astrocyte", "key": "dsn"}}}
SHARED = {"store": {"backend": "postgres"}}

Documents = dict[str, dict[str, Any]]


@pytest.fixture(scope="module")
def renderer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    program = tmp_path_factory.mktemp("helm") / "render"
    done = subprocess.run(
        ["go", "build", "-o", str(program), "."], cwd=RENDERER, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return program


def run(renderer: Path, **values: Any) -> subprocess.CompletedProcess[str]:
    command = [str(renderer), str(CHART)]
    return subprocess.run(command, input=yaml.safe_dump(values), capture_output=True, text=True, check=False)


def rendered(renderer: Path, **values: Any) -> Documents:
    """The objects by kind; of several services the one with an address."""
    done = run(renderer, **values)
    assert done.returncode == 0, done.stderr
    found = [one for one in yaml.safe_load_all(done.stdout) if one]
    return {one["kind"]: one for one in found if one.get("spec", {}).get("clusterIP") != "None"}


def pod_of(documents: Documents) -> dict[str, Any]:
    template: dict[str, Any] = documents["StatefulSet"]["spec"]["template"]
    assert template["metadata"]["labels"].items() >= documents["Service"]["spec"]["selector"].items()
    assert documents["StatefulSet"]["spec"]["selector"]["matchLabels"] == documents["Service"]["spec"]["selector"]
    pod: dict[str, Any] = template["spec"]
    return pod


def settings_of(documents: Documents, folder: Path) -> Settings:
    """The settings with which the server starts."""
    path = folder / "astrocyte.yaml"
    path.write_text(documents["ConfigMap"]["data"]["astrocyte.yaml"], encoding="utf-8")
    return load_settings(path)


def test_one_server_has_a_volume_and_no_right_that_it_does_not_need(renderer: Path, tmp_path: Path) -> None:
    documents = rendered(renderer, insecure=True, config={"recall": {"depth": 80}})
    assert set(documents) == {"ConfigMap", "Service", "StatefulSet"}
    assert settings_of(documents, tmp_path).recall.depth == 80
    pod = pod_of(documents)
    (server,) = pod["containers"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["automountServiceAccountToken"] is False
    assert pod["enableServiceLinks"] is False
    assert server["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    (claim,) = documents["StatefulSet"]["spec"]["volumeClaimTemplates"]
    volumes = {claim["metadata"]["name"], *(volume["name"] for volume in pod["volumes"])}
    mounts = {mount["name"]: mount["mountPath"] for mount in server["volumeMounts"]}
    assert mounts == {"config": "/etc/astrocyte", "data": "/var/lib/astrocyte", "tmp": "/tmp"}
    assert set(mounts) == volumes
    assert pod["terminationGracePeriodSeconds"] > Settings().server.drain_seconds
    ports = {port["name"]: port["containerPort"] for port in server["ports"]}
    assert ports == {"grpc": 50051, "http": 8080}
    assert {port["targetPort"] for port in documents["Service"]["spec"]["ports"]} == set(ports)
    assert server["readinessProbe"]["grpc"] == {"port": 50051}


def test_the_command_line_knows_the_arguments(renderer: Path) -> None:
    (server,) = pod_of(rendered(renderer, insecure=True))["containers"]
    options = {argument for argument in server["args"] if argument.startswith("--")}
    assert options == {"--config", "--host", "--http", "--insecure"}
    known = said(command(())("--help")) + said(command(())("serve", "--help"))
    assert all(option in known for option in options)
    (server,) = pod_of(rendered(renderer, insecure=True, httpPort=None))["containers"]
    assert "--http" not in server["args"]
    assert [port["name"] for port in server["ports"]] == ["grpc"]


def test_several_servers_share_a_database(renderer: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    documents = rendered(renderer, insecure=True, replicas=3, config=SHARED, env=[DSN])
    assert documents["PodDisruptionBudget"]["spec"]["maxUnavailable"] == 1
    assert documents["StatefulSet"]["spec"]["replicas"] == 3
    assert "volumeClaimTemplates" not in documents["StatefulSet"]["spec"]
    pod = pod_of(documents)
    assert {"name": "data", "emptyDir": {}} in pod["volumes"]
    assert pod["containers"][0]["env"] == [DSN]
    # The secret is in the environment of the server alone.
    monkeypatch.setenv("ASTROCYTE_STORE__DSN", "postgresql://astrocyte:secret@db/astrocyte")
    dsn = settings_of(documents, tmp_path).store.dsn
    assert dsn is not None
    assert dsn.get_secret_value().endswith("@db/astrocyte")
    assert "secret@" not in str(documents)


def test_a_certificate_is_that_of_the_secret(renderer: Path) -> None:
    documents = rendered(renderer, tls={"secretName": "memory-tls"}, config={"server": {"drain_seconds": 20}})
    server = yaml.safe_load(documents["ConfigMap"]["data"]["astrocyte.yaml"])["server"]
    pod = pod_of(documents)
    (container,) = pod["containers"]
    assert {"name": "tls", "secret": {"secretName": "memory-tls", "defaultMode": 0o440}} in pod["volumes"]
    folder = next(mount["mountPath"] for mount in container["volumeMounts"] if mount["name"] == "tls")
    assert server == {
        "drain_seconds": 20,
        "tls_cert_file": f"{folder}/tls.crt",
        "tls_key_file": f"{folder}/tls.key",
    }
    assert "--insecure" not in container["args"]
    assert container["readinessProbe"]["tcpSocket"] == {"port": "grpc"}


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({}, "tls.secretName is empty"),
        ({"insecure": True, "replicas": 2}, "more than 1 needs config.store.backend: postgres"),
    ],
)
def test_values_that_cannot_serve_are_refused(renderer: Path, values: dict[str, Any], told: str) -> None:
    done = run(renderer, **values)
    assert done.returncode == 1
    assert told in done.stderr


def test_a_changed_configuration_restarts_the_servers(renderer: Path) -> None:
    def checksum(**config: Any) -> str:
        template = rendered(renderer, insecure=True, config=config)["StatefulSet"]["spec"]["template"]
        return str(template["metadata"]["annotations"]["checksum/config"])

    assert checksum() == checksum()
    assert checksum(recall={"depth": 80}) != checksum()
