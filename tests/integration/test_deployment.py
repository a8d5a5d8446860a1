"""The files of deploy/: programs accept them, and a bank stays at its server behind either proxy."""

from __future__ import annotations

import re
import ssl
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from astrocyte.api.requests import ListBanks, Recall, Retain
from astrocyte.client import RemoteBackend
from astrocyte.errors import Unavailable
from astrocyte.model import Caller, RecallQuery, RetainItem
from external.ports import free_port
from external.proxies import DEPLOY, HAPROXY, NGINX, configured, needs, started, stopped
from harness.serving import Served, serving

pytestmark = pytest.mark.process

ME = Caller()
BANKS = [f"bank-{number}" for number in range(24)]


PROXIES = [pytest.param("nginx.conf", marks=NGINX), pytest.param("haproxy.cfg", marks=HAPROXY)]


@pytest.mark.parametrize("proxy", [*PROXIES, pytest.param("nginx-postgres.conf", marks=NGINX)])
def test_the_configurations_of_proxies_are_accepted(proxy: str, tmp_path: Path) -> None:
    # Names that no test can resolve.
    hosts = {f"astrocyte-{number}.internal": "127.0.0.1" for number in (1, 2, 3)}
    command = configured(proxy, tmp_path, hosts)
    done = subprocess.run(
        [*command, "-t" if command[0] == "nginx" else "-c"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "[warn]" not in done.stderr.lower()
    assert "warning" not in done.stderr.lower()


@asynccontextmanager
async def behind(proxy: str, folder: Path) -> AsyncIterator[tuple[list[Served], RemoteBackend, str, Path]]:
    """Two servers behind a proxy; yields them, a client of the proxy, its address over REST, and the roots."""
    ports = {"grpc": free_port(), "http": free_port()}
    async with serving(gateway={"port": 0}) as one, serving(gateway={"port": 0}) as two:
        replaced = {
            "listen 50051": f"listen 127.0.0.1:{ports['grpc']}",
            "bind :50051": f"bind 127.0.0.1:{ports['grpc']}",
            "bind :443": f"bind 127.0.0.1:{ports['http']}",
        }
        for number, served in enumerate((one, two), 1):
            replaced[f"astrocyte-{number}.internal:50051"] = served.address
            replaced[f"astrocyte-{number}.internal:8080"] = str(served.server.http_address).removeprefix("http://")
        command = configured(proxy, folder, replaced)
        process = await started(command, ports["grpc"])
        backend = RemoteBackend(f"localhost:{ports['grpc']}", tls=folder / "ca.pem", timeout=30)
        try:
            yield [one, two], backend, f"https://localhost:{ports['http']}", folder / "ca.pem"
        finally:
            await backend.close()
            await stopped(process)


async def banks_of(served: Served) -> set[str]:
    return {bank.bank_id for bank in (await served.backend.call(ME, ListBanks(page_size=100))).banks}


@pytest.mark.parametrize("proxy", PROXIES)
async def test_a_bank_stays_at_its_server(proxy: str, tmp_path: Path) -> None:
    async with behind(proxy, tmp_path) as (servers, backend, url, roots):
        for bank in BANKS:
            await backend.call(ME, Retain(bank, RetainItem(f"The coffee of {bank}.")))
        there = [await banks_of(served) for served in servers]
        assert there[0] | there[1] == set(BANKS)
        assert there[0] & there[1] == set()
        assert all(there)
        for bank in BANKS:
            result = await backend.call(ME, Recall(RecallQuery("coffee", bank)))
            assert [hit.text for hit in result.hits] == [f"The coffee of {bank}."]
        if proxy == "nginx.conf":
            return
        # REST: by the header, and by the path.
        async with httpx.AsyncClient(verify=ssl.create_default_context(cafile=roots), timeout=30) as client:
            for bank in BANKS[:8]:
                body = {"bank_id": bank, "query": "coffee"}
                found = await client.post(f"{url}/v1/recall", json=body, headers={"x-astrocyte-bank": bank})
                assert [hit["text"] for hit in found.json()["hits"]] == [f"The coffee of {bank}."]
                assert (await client.get(f"{url}/v1/banks/{bank}")).status_code == 200


@pytest.mark.parametrize("proxy", PROXIES)
async def test_the_banks_of_a_server_that_fails_are_asked_of_no_other(proxy: str, tmp_path: Path) -> None:
    async with behind(proxy, tmp_path) as (servers, backend, _, _):
        for bank in BANKS:
            await backend.call(ME, Retain(bank, RetainItem(f"The coffee of {bank}.")))
        lost, kept = await banks_of(servers[0]), await banks_of(servers[1])
        await servers[0].server.stop(0)
        for bank in lost:
            with pytest.raises(Unavailable):
                await backend.call(ME, Retain(bank, RetainItem("Tea.")))
        for bank in kept:
            assert (await backend.call(ME, Recall(RecallQuery("coffee", bank)))).hits
        assert await banks_of(servers[1]) == kept


@needs("systemd-analyze")
def test_the_unit_is_accepted(tmp_path: Path) -> None:
    unit = tmp_path / "astrocyte.service"
    text = (DEPLOY / "systemd" / "astrocyte.service").read_text(encoding="utf-8")
    unit.write_text(text.replace("/opt/astrocyte/bin/astrocyte", "/bin/true"), encoding="utf-8")
    done = subprocess.run(["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_image_and_its_service_write_to_the_data_directory_only() -> None:
    image = (DEPLOY / "docker" / "Dockerfile").read_text(encoding="utf-8")
    *_, last = re.split(r"^FROM ", image, flags=re.MULTILINE)
    assert re.findall(r"^USER (\S+)", last, re.MULTILINE) == ["10001:10001"]
    assert re.findall(r"^VOLUME (\S+)", last, re.MULTILINE) == ["/var/lib/astrocyte"]
    service: dict[str, Any] = yaml.safe_load((DEPLOY / "docker" / "compose.yaml").read_text(encoding="utf-8"))[
        "services"
    ]["astrocyte"]
    assert (service["read_only"], service["user"], service["cap_drop"]) == (True, "10001:10001", ["ALL"])
    assert [volume.partition(":")[2] for volume in service["volumes"]] == ["/var/lib/astrocyte"]
    # Without TLS and keys, on loopback only.
    assert all(port.startswith("127.0.0.1:") for port in service["ports"])
