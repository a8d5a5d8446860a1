"""Hosts of their own for servers: network namespaces, whose ways to the database and to clients are cut.

Between the machine and a host is a switch in a namespace of its own, so that neither end sees a cut: their links stay
up, and nothing arrives.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

# Link-local addresses, which no route of the machine needs. Hosts have the numbers after that of the machine.
DATABASE, CLIENTS = "169.254.213.1", "169.254.214.1"
DATABASE_SUBNET = "169.254.213.0/24"
# One network at a time: addresses are the same in each.
LOCK = Path(tempfile.gettempdir()) / "astrocyte-network.lock"


def _possible() -> bool:
    """True where namespaces can be made."""
    if os.geteuid() or shutil.which("ip") is None:
        return False
    name = f"astro-try-{os.getpid()}"
    made = subprocess.run(["ip", "netns", "add", name], capture_output=True, check=False).returncode == 0
    if made:
        _ip("netns", "del", name)
    return made


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)


NAMESPACES = pytest.mark.skipif(not _possible(), reason="needs root, iproute2 and network namespaces")


class Switch:
    """A bridge in a namespace of its own, with one cable to the machine.

    Args:
        name: Short, of this switch.
        address: Of the machine on its cable.
    """

    def __init__(self, name: str, address: str) -> None:
        self.address = address
        # Names of links have 15 characters at most.
        self.namespace = f"as{name}{os.getpid()}"

    def make(self) -> None:
        """Make it and its cable."""
        _ip("netns", "add", self.namespace)
        _ip("-n", self.namespace, "link", "add", "bridge", "type", "bridge")
        _ip("link", "add", self.namespace, "type", "veth", "peer", "name", "machine", "netns", self.namespace)
        self.plug("machine")
        for link in ("machine", "bridge"):
            _ip("-n", self.namespace, "link", "set", link, "up")
        _ip("address", "add", f"{self.address}/24", "dev", self.namespace)
        _ip("link", "set", self.namespace, "up")

    def plug(self, port: str) -> None:
        """Pass packets of a port on."""
        _ip("-n", self.namespace, "link", "set", port, "master", "bridge")

    def unplug(self, port: str) -> None:
        """Pass packets of a port on no more: they are lost without a word."""
        _ip("-n", self.namespace, "link", "set", port, "nomaster")

    def remove(self) -> None:
        """Remove it with its cables."""
        subprocess.run(["ip", "link", "del", self.namespace], check=False, capture_output=True)
        subprocess.run(["ip", "netns", "del", self.namespace], check=False, capture_output=True)


class Host:
    """A network namespace with a cable to each switch.

    Args:
        number: From 1.
        database: Leads to the database.
        clients: Leads to clients.
    """

    def __init__(self, number: int, database: Switch, clients: Switch) -> None:
        self.namespace = f"ashost{number}-{os.getpid()}"
        self._database, self._clients = database, clients
        self._port = f"host{number}"
        self._number = number

    @property
    def address(self) -> str:
        """The address at which clients find it."""
        return self._address(self._clients)

    def make(self) -> None:
        """Make it and its cables."""
        _ip("netns", "add", self.namespace)
        _ip("-n", self.namespace, "link", "set", "lo", "up")
        for switch, link in ((self._database, "database"), (self._clients, "clients")):
            ends = ("type", "veth", "peer", "name", link, "netns", self.namespace)
            _ip("-n", switch.namespace, "link", "add", self._port, *ends)
            _ip("-n", switch.namespace, "link", "set", self._port, "up")
            switch.plug(self._port)
            _ip("-n", self.namespace, "address", "add", f"{self._address(switch)}/24", "dev", link)
            _ip("-n", self.namespace, "link", "set", link, "up")

    def silence(self) -> None:
        """Cut the way to the database: packets are lost without a word."""
        self._database.unplug(self._port)

    def refuse(self) -> None:
        """Let the address of the database be one without a listener: connections are reset, and refused."""
        _ip("-n", self.namespace, "address", "add", f"{DATABASE}/32", "dev", "lo")

    def hide(self) -> None:
        """Cut the way to clients: packets are lost without a word."""
        self._clients.unplug(self._port)

    def join(self) -> None:
        """Open both ways, however they were cut."""
        for switch in (self._database, self._clients):
            switch.plug(self._port)
        command = ["ip", "-n", self.namespace, "address", "del", f"{DATABASE}/32", "dev", "lo"]
        # There is none after a silence.
        subprocess.run(command, check=False, capture_output=True)

    def remove(self) -> None:
        """Remove it; cables go with their ends."""
        subprocess.run(["ip", "netns", "del", self.namespace], check=False, capture_output=True)

    def _address(self, switch: Switch) -> str:
        return f"{switch.address.rpartition('.')[0]}.{1 + self._number}"


@contextmanager
def separate_hosts(count: int) -> Iterator[Sequence[Host]]:
    """So many hosts that can be cut off from a database at `DATABASE`."""
    database, clients = Switch("d", DATABASE), Switch("c", CLIENTS)
    hosts = [Host(number, database, clients) for number in range(1, count + 1)]
    parts: list[Switch | Host] = [database, clients, *hosts]
    with LOCK.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            for part in parts:
                part.make()
            yield hosts
        finally:
            for part in reversed(parts):
                part.remove()
