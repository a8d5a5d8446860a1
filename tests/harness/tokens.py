"""Tokens, right and wrong: signed by hand, so that they can hold what no library would write."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from typing import Any

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

ISSUER = "https://issuer.example"
AUDIENCE = "astrocyte"
NOW = 1_700_000_000

RSA_KEY = rsa.generate_private_key(public_exponent=65_537, key_size=2_048)
OTHER_KEY = rsa.generate_private_key(public_exponent=65_537, key_size=2_048)
EC_KEY = ec.generate_private_key(ec.SECP256R1())
OTHER_EC_KEY = ec.generate_private_key(ec.SECP256R1())
WEAK_KEY = rsa.generate_private_key(public_exponent=65_537, key_size=1_024)  # noqa: S505 - what is refused
PUBLIC_PEM = RSA_KEY.public_key().public_bytes(
    serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
)


def jwks(*kids: str) -> bytes:
    """The issuer's keys: those named, else all."""
    entries = {
        "rsa": RSAAlgorithm.to_jwk(RSA_KEY.public_key(), as_dict=True),
        "other": RSAAlgorithm.to_jwk(OTHER_KEY.public_key(), as_dict=True),
        "ec": ECAlgorithm.to_jwk(EC_KEY.public_key(), as_dict=True),
        "weak": RSAAlgorithm.to_jwk(WEAK_KEY.public_key(), as_dict=True),
        "ps": {**RSAAlgorithm.to_jwk(RSA_KEY.public_key(), as_dict=True), "alg": "PS256"},
        "enc": {**RSAAlgorithm.to_jwk(RSA_KEY.public_key(), as_dict=True), "use": "enc"},
    }
    for entry in entries.values():
        # What PyJWT adds would keep an entry from verifying.
        entry.pop("key_ops", None)
    return json.dumps({"keys": [{**entries[kid], "kid": kid} for kid in kids or entries]}).encode()


def claims(**changes: Any) -> dict[str, Any]:
    """Claims of a good token; a change to ``...`` leaves one out."""
    good = {"iss": ISSUER, "aud": AUDIENCE, "sub": "ann", "exp": NOW + 60, "iat": NOW - 60, **changes}
    return {name: value for name, value in good.items() if value is not ...}


def token(
    payload: dict[str, Any] | bytes | None = None,
    *,
    alg: str = "RS256",
    kid: Any = "rsa",
    header: dict[str, Any] | bytes | None = None,
    signer: Any = None,
) -> str:
    """A token; ``header`` adds to alg and kid, or replaces all of it by bytes."""
    body = payload if isinstance(payload, bytes) else json.dumps(claims() if payload is None else payload).encode()
    if not isinstance(header, bytes):
        fields = {"alg": alg, "typ": "JWT", "kid": kid, **(header or {})}
        header = json.dumps({name: value for name, value in fields.items() if value is not ...}).encode()
    signed = f"{encode(header)}.{encode(body)}"
    return f"{signed}.{encode(_sign(signed.encode(), alg, signer))}"


def encode(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def _sign(signed: bytes, alg: str, signer: Any) -> bytes:
    if alg.startswith("HS"):
        return hmac.digest(signer, signed, hashlib.sha256)
    if alg == "ES256":
        r, s = decode_dss_signature((signer or EC_KEY).sign(signed, ec.ECDSA(hashes.SHA256())))
        return r.to_bytes(32, "big") + s.to_bytes(32, "big")
    if alg == "PS256":
        pss = padding.PSS(padding.MGF1(hashes.SHA256()), 32)
        return bytes((signer or RSA_KEY).sign(signed, pss, hashes.SHA256()))
    kind = hashes.SHA512() if alg == "RS512" else hashes.SHA256()
    return bytes((signer or RSA_KEY).sign(signed, padding.PKCS1v15(), kind))
