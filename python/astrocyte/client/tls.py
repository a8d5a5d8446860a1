"""TLS of a client: the roots that it trusts, and the certificate that it presents."""

from __future__ import annotations

import ssl
from pathlib import Path

import grpc

from astrocyte.errors import ConfigError

File = Path | str


def channel_credentials(
    *, tls: bool | File = False, ca: File | None = None, certificate: File | None = None, key: File | None = None
) -> grpc.ChannelCredentials | None:
    """Read the PEM files of a client.

    Args:
        tls: True speaks TLS, a path is the same as ``ca``. False speaks it only with ``ca`` or ``certificate``.
        ca: Roots to trust; None trusts those of the system.
        certificate: Certificate chain to present; None presents none.
        key: Private key of the certificate, not encrypted.

    Returns:
        The credentials of a channel; None for plain text.

    Raises:
        ConfigError: A file cannot be read or is not such a PEM file, certificate and key do not belong together, or
            only one of them is given.
    """
    if (certificate is None) != (key is None):
        given, missing = ("certificate", "key") if key is None else ("key", "certificate")
        raise ConfigError(f"a client certificate needs two files: got the {given}, pass the {missing} as well")
    if not isinstance(tls, bool):
        if ca is not None:
            raise ConfigError("there are two files of roots to trust: pass ca, or a path as tls, not both")
        ca = tls
    if not tls and ca is None and certificate is None:
        return None
    roots = None if ca is None else _roots(Path(ca))
    if certificate is None or key is None:
        return grpc.ssl_channel_credentials(roots)
    chain, secret = _pair(Path(certificate), Path(key))
    return grpc.ssl_channel_credentials(roots, secret, chain)


def _roots(file: Path) -> bytes:
    """The roots in a file.

    Raises:
        ConfigError: The file cannot be read, or has no certificate.
    """
    content = _read(file)
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=content.decode())
    except (ssl.SSLError, ValueError) as error:
        raise ConfigError(
            f"{file} has no certificates: expected roots to trust in PEM format", metadata={"file": str(file)}
        ) from error
    return content


def _pair(certificate: Path, key: Path) -> tuple[bytes, bytes]:
    """The contents of a certificate's file and its key's.

    Raises:
        ConfigError: A file cannot be read, or they are not a certificate and its key.
    """
    contents = _read(certificate), _read(key)
    try:
        # Without the password, the library would ask for that of an encrypted key on the terminal.
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_cert_chain(certificate, key, password="")
    except (ssl.SSLError, ValueError) as error:
        raise ConfigError(
            f"{certificate} and {key} are not a certificate and its key: expected PEM files that belong together, the "
            "key without a password",
            metadata={"file": str(certificate), "key_file": str(key)},
        ) from error
    return contents


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise ConfigError(f"cannot read {file}: {error.strerror}", metadata={"file": str(file)}) from error
