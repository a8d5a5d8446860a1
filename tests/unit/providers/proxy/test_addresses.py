"""Ways to make this server send a request where it must not: each is refused, and gets through without the guard."""

import ipaddress
from collections.abc import Sequence
from typing import Any

import httpx
import pytest
from pydantic import ValidationError

from astrocyte.config.sources import proxies
from astrocyte.errors import ProviderUnavailable
from astrocyte.providers.proxy import egress
from astrocyte.providers.proxy.addresses import is_allowed, is_public, resolve
from astrocyte.providers.proxy.egress import Bounds, Egress
from external.proxied import PUBLIC, Names, Network, reply, source

BOUNDS = Bounds((), 65_536, 30.0, 4)

# Hosts that the system reads as addresses.
HOSTS = [
    "127.0.0.1",
    "127.1",
    "127.255.255.254",
    "2130706433",
    "0x7f000001",
    "0x7f.1",
    "0177.1",
    "017700000001",
    "0",
    "0.0.0.0",  # noqa: S104 - an address to refuse
    "localhost",
    "LOCALHOST",
    "10.0.0.1",
    "172.16.0.1",
    "172.31.255.255",
    "192.168.0.1",
    "100.100.100.200",
    "168.63.129.16",
    "169.254.169.254",
    "2852039166",
    "0xa9fea9fe",
    "192.0.0.192",
    "198.18.0.1",
    "203.0.113.7",
    "224.0.0.1",
    "240.0.0.1",
    "255.255.255.255",
    "[::1]",
    "[::]",
    "[::ffff:127.0.0.1]",
    "[::ffff:a9fe:a9fe]",
    "[0:0:0:0:0:ffff:10.0.0.1]",
    "[::127.0.0.1]",
    "[64:ff9b::127.0.0.1]",
    "[64:ff9b::a9fe:a9fe]",
    "[64:ff9b:1::7f00:1]",
    "[2002:7f00:1::]",
    "[2001:0:4136:e378:8000:63bf:80ff:fffe]",
    "[2001:db8::1]",
    "[2606:4700::5efe:7f00:1]",
    "[2606:4700::200:5efe:a00:1]",
    "[fe80::1]",
    "[fec0::1]",
    "[fd00:ec2::254]",
    "[ff02::1]",
    "[3fff::1]",
]
# Answers of a name server that the operator does not control.
ANSWERS: list[Sequence[str]] = [
    ["10.0.0.1"],
    [PUBLIC, "127.0.0.1"],
    ["127.0.0.1", PUBLIC],
    ["::ffff:10.0.0.1"],
    ["2606:4700::1", "fd00::1"],
    ["fe80::1%lo"],
]


def egress_to(network: Network, names: Any = resolve) -> Egress:
    return Egress("source 'a'", BOUNDS, resolver=names, transport=network)


async def refused(network: Network, url: str, names: Any = resolve) -> None:
    with pytest.raises(ProviderUnavailable, match="address"):
        await egress_to(network, names).send("GET", url, {})
    assert network.dialled == []


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("guarded", [True, False], ids=["guard", "control"])
async def test_hosts_that_are_not_public(host: str, guarded: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    network = Network(lambda _: reply({}))
    if guarded:
        await refused(network, f"http://{host}/a")
        return
    monkeypatch.setattr(egress, "is_allowed", lambda *_: True)
    await egress_to(network).send("GET", f"http://{host}/a", {})
    (dialled,) = network.dialled
    assert not is_public(ipaddress.ip_address(dialled))


@pytest.mark.parametrize("answer", ANSWERS, ids=str)
@pytest.mark.parametrize("guarded", [True, False], ids=["guard", "control"])
async def test_answers_of_a_name_server(answer: Sequence[str], guarded: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    network, names = Network(lambda _: reply({})), Names([answer])
    if guarded:
        await refused(network, "http://tickets.example/a", names)
        return
    monkeypatch.setattr(egress, "is_allowed", lambda *_: True)
    await egress_to(network, names).send("GET", "http://tickets.example/a", {})
    assert [ipaddress.ip_address(host) for host in network.dialled] == [ipaddress.ip_address(answer[0])]


async def test_a_name_is_resolved_once_for_the_connection() -> None:
    """Rebinding: the second answer of the name server leads inside."""
    network, names = Network(lambda _: reply({})), Names([[PUBLIC], ["127.0.0.1"]])
    service = egress_to(network, names)
    await service.send("GET", "https://tickets.example:8443/a?b=c", {})
    assert (network.dialled, names.asked) == ([PUBLIC], 1)
    (request,) = network.requests
    # The name is in the header and in the handshake, where the certificate is verified for it.
    assert request.headers["host"] == "tickets.example:8443"
    assert request.extensions["sni_hostname"] == "tickets.example"
    assert (request.url.port, request.url.raw_path) == (8443, b"/a?b=c")
    with pytest.raises(ProviderUnavailable):
        await service.send("GET", "https://tickets.example:8443/a", {})
    assert network.dialled == [PUBLIC]


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("guarded", [True, False], ids=["guard", "control"])
async def test_redirects_are_not_followed(status: int, guarded: bool) -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        there = request.url.path == "/inside"
        return reply({}) if there else reply({}, status, location="http://127.0.0.1/inside")

    network = Network(answer)
    service = egress_to(network, Names())
    service._client.follow_redirects = not guarded
    found = await service.send("GET", "http://tickets.example/a", {})
    assert found.status == (status if guarded else 200)
    assert ("127.0.0.1" in network.dialled) is not guarded


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd",
        "gopher://127.0.0.1:6379/_FLUSHALL",
        "ftp://tickets.example/a",
        "unix:/var/run/docker.sock",
        "//127.0.0.1/a",
        "http://tickets.example@127.0.0.1/a",
        "http://user:secret@tickets.example/a",
        "http://127.0.0.1\\@tickets.example/a",
        "http://tickets.example/a#@127.0.0.1/",
        "http://{query}/a",
        "http://tickets.example:{query}/a",
        "http://{query}.tickets.example/a",
        "http://tickets.example/a\r\nHost: 127.0.0.1",
        "http://ⓛocalhost/a",
        "http://127。0。0。1/a",
        "http://tickets.example:99999/a",
        "http:///a",
        "http://tickets.example/{path}",
    ],
)
@pytest.mark.parametrize("guarded", [True, False], ids=["guard", "control"])
def test_addresses_that_are_none(url: str, guarded: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if guarded:
        with pytest.raises(ValidationError):
            source(url=url)
        return
    monkeypatch.setattr(proxies, "check_url", lambda url, **_: url)
    assert source(url=url).url == url


@pytest.mark.parametrize(
    ("address", "networks", "allowed"),
    [
        ("10.1.2.3", ["10.1.0.0/16"], True),
        ("10.2.2.3", ["10.1.0.0/16"], False),
        ("::ffff:10.1.2.3", ["10.1.0.0/16"], True),
        ("::ffff:10.1.2.3", ["::/0"], False),
        ("fd00::1", ["fd00::/8"], True),
        ("fd00::1", ["10.0.0.0/8"], False),
        (PUBLIC, ["10.0.0.0/8"], True),
        ("2606:4700::1", [], True),
        ("64:ff9b::5db8:d70e", [], True),
        ("1.1.1.1", [], True),
    ],
)
def test_what_is_allowed(address: str, networks: list[str], allowed: bool) -> None:
    made = [ipaddress.ip_network(one) for one in networks]
    assert is_allowed(ipaddress.ip_address(address), made) is allowed
