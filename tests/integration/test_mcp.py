"""The MCP server as a process: over standard input and output, and over HTTP; on a directory, and beside a server."""

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import StdioServerParameters
from mcp.client import Client
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

from harness.processes import running_mcp_server, running_server

pytestmark = pytest.mark.process

ASTROCYTE = [sys.executable, "-m", "astrocyte"]
KEYS = {"red": "the key of red", "blue": "the key of blue"}


def settings_file(folder: Path, **sections: Any) -> Path:
    """Settings with a key for each tenant."""
    keys = [
        {"name": name, "sha256": hashlib.sha256(key.encode()).hexdigest(), "tenant": name, "principal": "user:ada"}
        for name, key in KEYS.items()
    ]
    file = folder / "astrocyte.yaml"
    file.write_text(json.dumps({"auth": {"api_keys": keys}, **sections}))
    return file


@asynccontextmanager
async def http_client(url: str, key: str | None = None, mode: str = "auto") -> AsyncIterator[Client]:
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=20) as connection,
        Client(streamable_http_client(url, http_client=connection), mode=mode) as client,
    ):
        yield client


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """The command, to its end."""
    return subprocess.run([*ASTROCYTE, *arguments], capture_output=True, text=True, check=False, timeout=30)


def started(arguments: list[str]) -> Any:
    """A transport that starts the command, in the environment of this process."""
    return stdio_client(StdioServerParameters(command=sys.executable, args=arguments, env=dict(os.environ)))


async def texts(client: Client, query: str, **arguments: Any) -> list[str]:
    return [hit["text"] for hit in await hits(client, query, **arguments)]


async def ids(client: Client, query: str, **arguments: Any) -> list[str]:
    return [hit["memory_id"] for hit in await hits(client, query, **arguments)]


async def hits(client: Client, query: str, **arguments: Any) -> list[dict[str, Any]]:
    result = await client.call_tool("memory_recall", {"query": query, **arguments})
    assert not result.is_error, result.content
    found: list[dict[str, Any]] = result.structured_content["hits"]
    return found


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_an_agent_starts_it_on_a_directory(tmp_path: Path, mode: str) -> None:
    arguments = [*ASTROCYTE[1:], "--data-dir", str(tmp_path / "data"), "mcp", "--bank", "family"]
    async with Client(started(arguments), mode=mode) as client:
        names = [tool.name for tool in (await client.list_tools()).tools]
        assert names[:4] == ["memory_retain", "memory_recall", "memory_reflect", "memory_history"]
        assert {"memory_forget", "memory_banks", "agent_memory_recall"}.isdisjoint(names)
        stored = await client.call_tool("memory_retain", {"content": "Mara is allergic to sesame."})
        assert not stored.is_error
        assert await texts(client, "What is Mara allergic to?") == ["Mara is allergic to sesame."]
    # It is in the directory, for the next process.
    found = run("--data-dir", str(tmp_path / "data"), "--json", "recall", "family", "Mara")
    assert json.loads(found.stdout)["hits"][0]["text"] == "Mara is allergic to sesame."


async def test_stdio_acts_for_the_configured_principal(tmp_path: Path) -> None:
    grants = [{"bank_id": "open", "principal": "agent:scout", "permissions": ["read", "write"]}]
    config = settings_file(
        tmp_path,
        access_control={"enabled": True, "default_policy": "deny"},
        access_grants=grants,
        mcp={"principal": "agent:scout"},
    )
    arguments = [*ASTROCYTE[1:], "--config", str(config), "--data-dir", str(tmp_path / "data"), "mcp"]
    async with Client(started(arguments)) as client:
        assert not (await client.call_tool("memory_retain", {"content": "Tea at four.", "bank_id": "open"})).is_error
        denied = await client.call_tool("memory_retain", {"content": "Tea at five.", "bank_id": "closed"})
        assert denied.is_error
        assert denied.content[0].text.startswith("ACCESS_DENIED: ")  # type: ignore[union-attr]


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_tenants_of_a_directory_are_kept_apart_over_http(tmp_path: Path, mode: str) -> None:
    config = settings_file(tmp_path)
    with running_mcp_server(tmp_path, "--config", str(config), "--data-dir", str(tmp_path / "data")) as url:
        await check_isolation(url, mode)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_the_credential_is_passed_on_to_a_server(tmp_path: Path, mode: str) -> None:
    config = settings_file(tmp_path)
    with (
        running_server(tmp_path, "--config", str(config)) as address,
        running_mcp_server(tmp_path, "--server", address) as url,
    ):
        await check_isolation(url, mode)


async def check_isolation(url: str, mode: str) -> None:
    async with http_client(url, KEYS["red"], mode) as red, http_client(url, KEYS["blue"], mode) as blue:
        for client, content in ((red, "The kettle is red."), (blue, "The kettle is blue.")):
            stored = await client.call_tool("memory_retain", {"content": content, "bank_id": "b"})
            assert not stored.is_error, stored.content
        secret = await red.call_tool("memory_retain", {"content": "Only red knows.", "bank_id": "red-only"})
        assert await texts(red, "kettle", bank_id="b") == ["The kettle is red."]
        assert await texts(blue, "kettle", bank_id="b") == ["The kettle is blue."]
        assert [one.name for one in (await blue.list_resources()).resources] == ["b"]
        missing = await blue.call_tool("memory_recall", {"query": "kettle", "bank_id": "red-only"})
        assert missing.content[0].text.startswith("BANK_NOT_FOUND: ")  # type: ignore[union-attr]
        memory = f"astrocyte://banks/red-only/memories/{secret.structured_content['memory_id']}"
        assert "Only red knows." in (await red.read_resource(memory)).contents[0].text  # type: ignore[union-attr]
        with pytest.raises(Exception, match="no such resource"):
            await blue.read_resource(memory)
        # Both keys have the same principal: the tenant alone keeps the agents and the observations apart.
        remembered = await red.call_tool("agent_memory_remember", {"topic_raw": "tea", "content": "Red likes tea."})
        evidence = {"bank_id": "b", "text": "Red has a kettle.", "evidence": await ids(red, "kettle", bank_id="b")}
        observed = await red.call_tool("memory_create_observation", evidence)
        assert not remembered.is_error, remembered.content
        assert not observed.is_error, observed.content
        for client, count in ((red, 1), (blue, 0)):
            recalled = await client.call_tool("agent_memory_recall", {"query": "Who likes tea?"})
            assert len(recalled.structured_content["hits"]) == count
            listed = await client.call_tool("memory_list_observations", {"bank_id": "b"})
            assert len(listed.structured_content["observations"]) == count
    async with http_client(f"{url}/b", KEYS["red"], mode) as fixed:
        assert sorted(await texts(fixed, "kettle")) == ["Red has a kettle.", "The kettle is red."]


CALL = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "tools/call",
    "params": {"name": "memory_recall", "arguments": {"query": "kettle", "bank_id": "b"}},
}
HEADERS = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-06-18"}


async def test_what_must_not_pass_over_http(tmp_path: Path) -> None:
    config = settings_file(tmp_path, server={"max_message_bytes": 4_096})
    with running_mcp_server(tmp_path, "--config", str(config), "--data-dir", str(tmp_path / "data")) as url:
        key = {"Authorization": f"Bearer {KEYS['red']}"}
        async with httpx2.AsyncClient(headers=HEADERS, timeout=20) as http:
            for wrong in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": f"Basic {KEYS['red']}"}):
                refused = await http.post(url, json=CALL, headers=wrong)
                assert refused.status_code == 401
                assert refused.headers["WWW-Authenticate"].startswith("Bearer")
                assert refused.json()["error"]["code"] == "UNAUTHENTICATED"
            twice = await http.post(url, json=CALL, headers=[*key.items(), ("Authorization", "Bearer other")])
            assert twice.status_code == 401
            assert (await http.post(url, json=CALL, headers={**key, "Host": "evil.example.com"})).status_code == 421
            assert (await http.post(url, json=CALL, headers={**key, "Origin": "https://evil.com"})).status_code == 403
            large = {**CALL, "params": {**CALL["params"], "arguments": {"query": "x" * 5_000}}}  # type: ignore[dict-item]
            assert (await http.post(url, json=large, headers=key)).status_code == 413
            assert (await http.post(f"{url}/..%2Fb", json=CALL, headers=key)).status_code in {400, 404}
            assert (await http.post(f"{url}/-b", json=CALL, headers=key)).json()["error"]["code"] == "INVALID_ARGUMENT"
            for method in ("GET", "DELETE", "PUT"):
                assert (await http.request(method, url, headers=key)).status_code == 405
            for body in (b"", b"{", b"[]", b"null", b'{"jsonrpc":"2.0","id":1,"method":"x"}', b"\xff" * 100):
                answer = await http.post(url, content=body, headers={**key, "Content-Type": "application/json"})
                assert answer.status_code < 500
            # The server still answers.
            assert (await http.get(url.replace("/mcp", "/healthz"))).status_code == 204
            fine = await http.post(url, json=CALL, headers=key)
            assert fine.status_code == 200
            assert fine.json()["result"]["isError"] is True


async def test_without_credentials_only_loopback_is_served(tmp_path: Path) -> None:
    data = ["--data-dir", str(tmp_path / "data")]
    with running_mcp_server(tmp_path, *data, fixed=("--bank", "family")) as url:
        async with http_client(url) as client:
            await client.call_tool("memory_retain", {"content": "Mara is allergic to sesame."})
            assert await texts(client, "allergic") == ["Mara is allergic to sesame."]
    exposed = run(*data, "mcp", "--http", "--host", "0.0.0.0", "--port", "0")  # noqa: S104 - it is refused
    assert exposed.returncode == 2
    assert "without TLS" in exposed.stderr
    assert "credentials" in exposed.stderr


def test_options_of_the_other_transport_are_refused(tmp_path: Path) -> None:
    done = run("--data-dir", str(tmp_path / "data"), "mcp", "--port", "1")
    assert done.returncode == 2
    assert "--host and --port are for --http" in done.stderr
