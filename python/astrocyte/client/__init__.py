"""The Python API over the wire: `connect` gives the same methods that `Astrocyte` has in process.

brain = connect("localhost:50051")
await brain.retain("Mara cannot eat nuts.", bank_id="family")
await brain.close()
"""

from __future__ import annotations

from pathlib import Path

from astrocyte.astrocyte import Astrocyte
from astrocyte.client.backend import DEFAULT_TIMEOUT_SECONDS, RemoteBackend
from astrocyte.client.errors import translate

__all__ = ["RemoteBackend", "connect", "translate"]


def connect(
    address: str,
    *,
    api_key: str | None = None,
    tls: bool | Path | str = False,
    timeout: float | None = DEFAULT_TIMEOUT_SECONDS,
) -> Astrocyte:
    """Connect to a server. Nothing is sent before the first call; ``await close()`` at the end.

    Args:
        address: ``host:port``, or ``unix:PATH``.
        api_key: Sent with every call; over the network only together with TLS.
        tls: True trusts the system's roots, a path names a file of PEM roots, False speaks plain text.
        timeout: Seconds for each call that is not a stream; None leaves it to the server.

    Raises:
        ConfigError: The file of roots cannot be read.
    """
    return Astrocyte(RemoteBackend(address, api_key=api_key, tls=tls, timeout=timeout))
