"""Addresses that requests to other services may be made to.

An address is public if the special-purpose registries of IANA do not reserve it. An IPv6 address that carries an IPv4
address leads there, so both must be public. The lists are here because those of the standard library differ between
versions of Python.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network
Resolve = Callable[[str, int], Awaitable[Sequence[str]]]

_NOT_PUBLIC_4 = tuple(
    map(
        IPv4Network,
        (
            "0.0.0.0/8",  # this host
            "10.0.0.0/8",  # private
            "100.64.0.0/10",  # shared by customers of a provider; metadata of a cloud
            "127.0.0.0/8",  # loopback
            "168.63.129.16/32",  # metadata of a cloud, at an address of the public range
            "169.254.0.0/16",  # link-local; metadata of most clouds
            "172.16.0.0/12",  # private
            "192.0.0.0/24",  # protocol assignments; metadata of a cloud
            "192.0.2.0/24",  # documentation
            "192.88.99.0/24",  # relays of 6to4
            "192.168.0.0/16",  # private
            "198.18.0.0/15",  # benchmarks
            "198.51.100.0/24",  # documentation
            "203.0.113.0/24",  # documentation
            "224.0.0.0/4",  # multicast
            "240.0.0.0/4",  # reserved, and broadcast
        ),
    )
)
# All global unicast addresses; what else there is has a special purpose.
_UNICAST_6 = IPv6Network("2000::/3")
_NOT_PUBLIC_6 = tuple(
    map(
        IPv6Network,
        (
            "2001::/23",  # protocol assignments, Teredo among them
            "2001:db8::/32",  # documentation
            "2002::/16",  # 6to4
            "3fff::/20",  # documentation
        ),
    )
)
# Prefixes behind which the last 32 bits are an IPv4 address: mapped, and translated by NAT64.
_CARRIERS = (IPv6Network("::ffff:0:0/96"), IPv6Network("64:ff9b::/96"))
_LAST_32 = 0xFFFF_FFFF
# Identifiers of interfaces of ISATAP, which tunnels to the IPv4 address behind them.
_ISATAP = (0x0000_5EFE, 0x0200_5EFE)


def is_public(address: Address) -> bool:
    """True if the address is global, whatever it leads through."""
    if isinstance(address, IPv4Address):
        return not any(address in network for network in _NOT_PUBLIC_4)
    if address.scope_id is not None:
        return False
    carried = IPv4Address(int(address) & _LAST_32)
    if any(address in network for network in _CARRIERS):
        return is_public(carried)
    if address not in _UNICAST_6 or any(address in network for network in _NOT_PUBLIC_6):
        return False
    return (int(address) >> 32) & _LAST_32 not in _ISATAP or is_public(carried)


def is_allowed(address: Address, networks: Sequence[Network]) -> bool:
    """True if a request may be made to the address: it is public, or in one of the networks."""
    plain: Address = address
    if isinstance(address, IPv6Address):
        plain = address.ipv4_mapped or address
    return is_public(address) or any(plain in network for network in networks if network.version == plain.version)


async def resolve(host: str, port: int) -> list[str]:
    """All addresses of a host, in the order of the system's preference.

    Raises:
        OSError: There are none.
    """
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


def parsed(text: str) -> Address | None:
    """The address of its text, or None."""
    try:
        return ip_address(text)
    except ValueError:
        return None
