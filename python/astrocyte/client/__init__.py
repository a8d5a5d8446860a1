"""The Python API over the wire: `connect` gives the same methods that `Astrocyte` has in process.

brain = connect("localhost:50051")
await brain.retain("Mara cannot eat nuts.", bank_id="family")
await brain.close()
"""

from __future__ import annotations

from astrocyte.astrocyte import Astrocyte
from astrocyte.client.backend import DEFAULT_TIMEOUT_SECONDS, RemoteBackend
from astrocyte.client.errors import translate
from astrocyte.client.tls import File

__all__ = ["RemoteBackend", "connect", "translate"]


def connect(  # noqa: PLR0913 - the options of a connection
    address: str,
    *,
    api_key: str | None = None,
    tls: bool | File = False,
    ca: File | None = None,
    certificate: File | None = None,
    key: File | None = None,
    timeout: float | None = DEFAULT_TIMEOUT_SECONDS,
) -> Astrocyte:
    """Connect to a server. Nothing is sent before the first call; ``await close()`` at the end.

    Args:
        address: ``host:port``, or ``unix:PATH``.
        api_key: Sent with every call; over the network only together with TLS.
        tls: True speaks TLS, a path is the same as ``ca``. False speaks it only with ``ca`` or ``certificate``.
        ca: PEM file of the roots to trust; None trusts those of the system.
        certificate: PEM file of the certificate that a server may demand, with its chain.
        key: PEM file of the certificate's private key, not encrypted.
        timeout: Seconds for each call that is not a stream; None leaves it to the server.

    Raises:
        ConfigError: A file cannot be read or is not such a PEM file, certificate and key do not belong together, or
            only one of them is given.
    """
    backend = RemoteBackend(address, api_key=api_key, tls=tls, ca=ca, certificate=certificate, key=key, timeout=timeout)
    return Astrocyte(backend)
