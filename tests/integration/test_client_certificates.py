"""Client certificates: the command line and the Python client at a server that demands one."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from astrocyte import connect
from astrocyte.cli import cli
from astrocyte.errors import AstrocyteError, ConfigError, Unavailable
from harness.certificates import certificates
from harness.processes import running_server

pytestmark = pytest.mark.process

Cli = Callable[..., Result]
# No call of these tests waits for anything.
TIMEOUT = 20.0


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Paths of PEM files by name; those of another root in the folder ``other``."""
    folder = tmp_path_factory.mktemp("certificates")
    found = {name: str(path) for name, path in certificates(folder).items()}
    found |= {f"other/{name}": str(path) for name, path in certificates(folder / "other").items()}
    encrypt = ["openssl", "ec", "-in", found["client.key"], "-aes256", "-passout", "pass:x", "-out", "locked.key"]
    subprocess.run(encrypt, cwd=folder, check=True, capture_output=True)
    (folder / "text.pem").write_text("no certificate")
    return found | {name: str(folder / name) for name in ("locked.key", "text.pem", "missing.pem")}


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory, files: dict[str, str]) -> Iterator[str]:
    """A server in a process of its own that demands a certificate."""
    folder = tmp_path_factory.mktemp("server")
    server = {
        "tls_cert_file": files["server.pem"],
        "tls_key_file": files["server.key"],
        "tls_client_ca_file": files["ca.pem"],
    }
    config = folder / "astrocyte.yaml"
    # JSON is YAML.
    config.write_text(json.dumps({"server": server}))
    with running_server(folder, "--config", str(config)) as address:
        yield address


@pytest.fixture
def astrocyte(address: str) -> Cli:
    return lambda *arguments, **options: CliRunner().invoke(cli, ["--server", address, *arguments], **options)


def options(files: dict[str, str]) -> list[str]:
    return ["--ca", files["ca.pem"], "--cert", files["client.pem"], "--key", files["client.key"]]


def test_the_command_line_shows_its_certificate(astrocyte: Cli, files: dict[str, str]) -> None:
    kept = astrocyte(*options(files), "retain", "line", "Mara cannot eat sesame.")
    assert kept.exit_code == 0, kept.stderr
    found = astrocyte(*options(files), "--json", "recall", "line", "what can Mara not eat?")
    (hit,) = json.loads(found.stdout)["hits"]
    assert hit["text"] == "Mara cannot eat sesame."


def test_the_command_line_takes_the_files_from_the_environment(
    astrocyte: Cli, files: dict[str, str], tmp_path: Path
) -> None:
    environment = {
        "ASTROCYTE_CA_FILE": files["ca.pem"],
        "ASTROCYTE_CERT_FILE": files["client.pem"],
        "ASTROCYTE_KEY_FILE": files["client.key"],
    }
    result = astrocyte("info", env=environment)
    assert result.exit_code == 0, result.stderr
    # They are options of the command line, not settings, so a local command starts all the same.
    local = CliRunner().invoke(cli, ["--data-dir", str(tmp_path / "data"), "info"], env=environment)
    assert local.exit_code == 0, local.stderr


@pytest.mark.parametrize("without", ["certificate", "trust"])
def test_without_a_certificate_or_trust_there_is_no_connection(
    astrocyte: Cli, files: dict[str, str], without: str
) -> None:
    given = ["--ca", files["ca.pem"]] if without == "certificate" else options(files)[2:]
    result = astrocyte(*given, "info")
    assert result.exit_code == 6
    assert result.stderr.count("\n") == 1
    assert "--cert" in result.stderr


def test_a_certificate_of_another_root_is_refused(astrocyte: Cli, files: dict[str, str]) -> None:
    other = ["--ca", files["ca.pem"], "--cert", files["other/client.pem"], "--key", files["other/client.key"]]
    assert astrocyte(*other, "info").exit_code == 6


def test_half_a_pair_is_refused(astrocyte: Cli, files: dict[str, str]) -> None:
    for half, missing in ((["--cert", files["client.pem"]], "key"), (["--key", files["client.key"]], "certificate")):
        result = astrocyte("--ca", files["ca.pem"], *half, "info")
        assert result.exit_code == 2
        assert f"pass the {missing} as well" in result.stderr


def test_files_of_a_connection_without_a_server_are_refused(tmp_path: Path, files: dict[str, str]) -> None:
    for name, file in (("--ca", "ca.pem"), ("--cert", "client.pem"), ("--key", "client.key")):
        result = CliRunner().invoke(cli, ["--data-dir", str(tmp_path), name, files[file], "info"])
        assert result.exit_code == 2
        assert f"{name} is for a connection to a server" in result.stderr


async def test_connect_shows_its_certificate(address: str, files: dict[str, str]) -> None:
    pair = {"certificate": files["client.pem"], "key": Path(files["client.key"])}
    for roots in ({"ca": files["ca.pem"]}, {"tls": Path(files["ca.pem"])}, {"tls": True, "ca": Path(files["ca.pem"])}):
        given: dict[str, Any] = {**roots, **pair}
        async with connect(address, **given, timeout=TIMEOUT) as brain:
            kept = await brain.retain("Tom repairs bicycles.", bank_id="connected")
            assert (await brain.get(str(kept.memory_id), "connected")).principal == "ann"
            await brain.forget("connected", memory_ids=[str(kept.memory_id)])


async def test_connect_without_a_certificate_is_unavailable(address: str, files: dict[str, str]) -> None:
    async with connect(address, ca=files["ca.pem"], timeout=TIMEOUT) as brain:
        with pytest.raises(Unavailable):
            await brain.retain("Nobody says this.", bank_id="connected")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"ca": "missing.pem"}, r"cannot read .*missing\.pem"),
        ({"tls": "missing.pem"}, r"cannot read .*missing\.pem"),
        ({"ca": "text.pem"}, "has no certificates: expected roots"),
        ({"ca": "client.key"}, "has no certificates: expected roots"),
        ({"tls": "ca.pem", "ca": "ca.pem"}, "two files of roots"),
        ({"certificate": "client.pem"}, "pass the key as well"),
        ({"key": "client.key"}, "pass the certificate as well"),
        ({"certificate": "missing.pem", "key": "client.key"}, r"cannot read .*missing\.pem"),
        ({"certificate": "client.pem", "key": "missing.pem"}, r"cannot read .*missing\.pem"),
        ({"certificate": "text.pem", "key": "client.key"}, "not a certificate and its key"),
        ({"certificate": "client.pem", "key": "server.key"}, "not a certificate and its key"),
        ({"certificate": "client.key", "key": "client.pem"}, "not a certificate and its key"),
        ({"certificate": "client.pem", "key": "locked.key"}, "without a password"),
    ],
)
def test_files_that_do_not_fit_are_refused_before_a_call(files: dict[str, str], given: Any, said: str) -> None:
    named: dict[str, Any] = {name: files[file] for name, file in given.items()}
    with pytest.raises(ConfigError, match=said) as caught:
        connect("localhost:1", **named)
    assert isinstance(caught.value, AstrocyteError)
    assert "PRIVATE KEY" not in str(caught.value)
