"""Requests to another service are bounded in bytes and in time, and stay what they are."""

import asyncio
import gzip
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from ipaddress import ip_network
from pathlib import Path

import httpx
import pytest

from astrocyte.errors import DeadlineExceeded, ProviderUnavailable
from astrocyte.providers.proxy.egress import Bounds, Egress, Reply
from external.proxied import PUBLIC, Names, Network, reply
from harness.certificates import certificates

MOST = 4_096
HERE = (ip_network("127.0.0.0/8"),)


def egress_to(network: Network, **bounds: object) -> Egress:
    values = {"networks": (), "most_bytes": MOST, "seconds": 30.0, "parallel": 2, **bounds}
    return Egress("source 'a'", Bounds(**values), resolver=Names(), transport=network)  # type: ignore[arg-type]


async def fetched(response: httpx.Response) -> Reply:
    return await egress_to(Network(lambda _: response)).send("GET", "https://tickets.example/", {})


@pytest.mark.parametrize("encoding", ["identity", "gzip"])
async def test_a_body_up_to_the_bound(encoding: str) -> None:
    body = b"a" * MOST
    packed = gzip.compress(body) if encoding == "gzip" else body
    assert await fetched(reply(packed, content_encoding=encoding)) == Reply(200, body)


@pytest.mark.parametrize(
    ("body", "encoding", "message"),
    [
        (b"a" * (MOST + 1), "identity", "more than 4096 bytes"),
        (gzip.compress(b"a" * (MOST + 1), mtime=0), "gzip", "more than 4096 bytes"),
        (gzip.compress(b"\0" * (64 << 20), mtime=0), "gzip", "more than 4096 bytes"),
        (gzip.compress(b"abc", mtime=0)[:-4], "gzip", "cannot be decompressed"),
        (b"no gzip", "gzip", "cannot be decompressed"),
        (b"abc", "br", "encoding that was not asked for"),
        (b"abc", "gzip, gzip", "encoding that was not asked for"),
    ],
)
async def test_a_body_beyond(body: bytes, encoding: str, message: str) -> None:
    with pytest.raises(ProviderUnavailable, match=message):
        await fetched(reply(body, content_encoding=encoding))


async def test_a_service_that_does_not_end_is_given_up() -> None:
    async def dripping() -> AsyncIterator[bytes]:
        while True:
            yield b""
            await asyncio.sleep(0.01)

    network = Network(lambda _: httpx.Response(200, content=dripping()))
    with pytest.raises(DeadlineExceeded, match=r"in 0\.1 s"):
        await egress_to(network, seconds=0.1).send("GET", "https://tickets.example/", {})


async def test_cookies_are_not_kept() -> None:
    network = Network(lambda _: reply({}, set_cookie="caller=ann; Path=/"))
    service = egress_to(network)
    for _ in range(2):
        await service.send("GET", "https://tickets.example/", {})
    assert "cookie" not in network.requests[1].headers
    # The control: a client keeps them, if it may.
    service._client = httpx.AsyncClient(transport=network)
    for _ in range(2):
        await service.send("GET", "https://tickets.example/", {})
    assert "cookie" in network.requests[3].headers


async def test_an_address_that_is_not_there_is_followed_by_the_next() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.host == PUBLIC:
            raise httpx.ConnectError("refused")
        return reply({})

    network = Network(answer)
    service = egress_to(network)
    service._resolve = Names([[PUBLIC, "2606:4700::1"]])
    assert (await service.send("GET", "https://tickets.example/", {})).status == 200
    assert network.dialled == [PUBLIC, "2606:4700::1"]
    service._resolve = Names([[PUBLIC]])
    with pytest.raises(ProviderUnavailable, match="ConnectError"):
        await service.send("GET", "https://tickets.example/", {})


@asynccontextmanager
async def listening(answer: bytes, context: ssl.SSLContext | None = None) -> AsyncIterator[tuple[int, list[bytes]]]:
    """A server of one response; yields its port and the requests."""
    seen: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s" % (len(answer), answer))
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context) as server:
        yield server.sockets[0].getsockname()[1], seen


async def test_a_proxy_of_the_environment_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    async with listening(b"direct") as (port, _), listening(b"proxy") as (proxy, seen):
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{proxy}")
        monkeypatch.delenv("no_proxy", raising=False)
        bounds = Bounds(HERE, MOST, 30.0, 2)
        service = Egress("source 'a'", bounds)
        assert (await service.send("GET", f"http://127.0.0.1:{port}/", {})).body == b"direct"
        assert seen == []
        await service.close()
        # The control: a client that trusts the environment.
        service._client = httpx.AsyncClient()
        assert (await service.send("GET", f"http://127.0.0.1:{port}/", {})).body == b"proxy"
        await service.close()


async def test_the_certificate_is_that_of_the_name(tmp_path: Path) -> None:
    files = certificates(tmp_path)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(files["server.pem"], files["server.key"])
    async with listening(b"{}", context) as (port, seen):
        service = Egress(
            "source 'a'",
            Bounds(HERE, MOST, 30.0, 2),
            roots=files["ca.pem"],
            resolver=Names([["127.0.0.1"]]),
        )
        assert (await service.send("GET", f"https://localhost:{port}/", {})).status == 200
        assert f"Host: localhost:{port}\r\n".encode() in seen[0]
        # The address has a certificate, but not for this name.
        with pytest.raises(ProviderUnavailable, match="ConnectError"):
            await service.send("GET", f"https://tickets.example:{port}/", {})
        await service.close()
