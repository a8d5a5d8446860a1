"""Grants and what they give."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from astrocyte.errors import ValidationError
from astrocyte.model import AccessCheck, Grant, KeyInfo, Permission
from astrocyte.services.convert.values import Refused, decode_instant, encode_instant
from astrocyte.v1 import admin_pb2

_TO_WIRE = {
    Permission.READ: admin_pb2.PERMISSION_READ,
    Permission.WRITE: admin_pb2.PERMISSION_WRITE,
    Permission.FORGET: admin_pb2.PERMISSION_FORGET,
    Permission.ADMIN: admin_pb2.PERMISSION_ADMIN,
}
_FROM_WIRE: dict[int, Permission] = {number: permission for permission, number in _TO_WIRE.items()}


def decode_permissions(values: Iterable[int], path: str = "permissions") -> list[Permission]:
    """Permissions by their numbers.

    Raises:
        ValidationError: A number is none of ours.
    """
    return [_decode(value, f"{path}[{index}]") for index, value in enumerate(values)]


def decode_permission(value: int) -> Permission | None:
    """The permission of a request that may leave it out.

    Raises:
        ValidationError: The number is none of ours.
    """
    return None if value == admin_pb2.PERMISSION_UNSPECIFIED else _decode(value, "permission")


def encode_permissions(permissions: Iterable[str]) -> list[admin_pb2.Permission.ValueType]:
    """Permissions in their own order; ``*`` is all four.

    Raises:
        ValueError: A name is none of ours.
    """
    chosen: set[Permission] = set()
    for name in permissions:
        chosen |= set(Permission) if name == "*" else {Permission(name)}
    return [_TO_WIRE[permission] for permission in Permission if permission in chosen]


def decode_grant(message: admin_pb2.AccessGrant) -> Grant:
    """A grant."""
    return Grant(
        bank_id=message.bank_id,
        principal=message.principal,
        permissions=frozenset(decode_permissions(message.permissions)),
        granted_by=message.granted_by,
        granted_at=decode_instant(message.granted_at) if message.HasField("granted_at") else None,
        revoked_by=message.revoked_by if message.HasField("revoked_at") else None,
        revoked_at=decode_instant(message.revoked_at) if message.HasField("revoked_at") else None,
    )


def encode_grant(grant: Grant) -> admin_pb2.AccessGrant:
    """A grant."""
    return admin_pb2.AccessGrant(
        bank_id=grant.bank_id,
        principal=grant.principal,
        permissions=encode_permissions(grant.permissions),
        granted_by=grant.granted_by,
        granted_at=None if grant.granted_at is None else encode_instant(grant.granted_at),
        revoked_by=grant.revoked_by or "",
        revoked_at=None if grant.revoked_at is None else encode_instant(grant.revoked_at),
    )


def decode_access_check(message: admin_pb2.CheckAccessResponse) -> AccessCheck:
    """What somebody may do."""
    return AccessCheck(message.allowed, frozenset(decode_permissions(message.permissions)))


def encode_access_check(check: AccessCheck) -> admin_pb2.CheckAccessResponse:
    """What somebody may do."""
    return admin_pb2.CheckAccessResponse(allowed=check.allowed, permissions=encode_permissions(check.permissions))


def _decode(value: int, path: str) -> Permission:
    permission = _FROM_WIRE.get(value)
    if permission is None:
        raise ValidationError(f"expected a permission, got {value}", field=path)
    return permission


def decode_api_key(message: admin_pb2.ApiKey) -> KeyInfo:
    """An API key, without its secret."""
    return KeyInfo(
        key_id=message.key_id,
        tenant=message.tenant,
        name=message.name,
        principal=message.principal,
        created_by=message.created_by,
        created_at=decode_instant(message.created_at),
        expires_at=_instant(message, "expires_at"),
        last_used_at=_instant(message, "last_used_at"),
        revoked_by=message.revoked_by if message.HasField("revoked_at") else None,
        revoked_at=_instant(message, "revoked_at"),
    )


def encode_api_key(key: KeyInfo) -> admin_pb2.ApiKey:
    """An API key, without its secret."""
    return admin_pb2.ApiKey(
        key_id=key.key_id,
        tenant=key.tenant,
        name=key.name,
        principal=key.principal,
        created_by=key.created_by,
        created_at=encode_instant(key.created_at),
        expires_at=None if key.expires_at is None else encode_instant(key.expires_at),
        last_used_at=None if key.last_used_at is None else encode_instant(key.last_used_at),
        revoked_by=key.revoked_by or "",
        revoked_at=None if key.revoked_at is None else encode_instant(key.revoked_at),
    )


def _instant(message: admin_pb2.ApiKey, name: str) -> datetime | None:
    return decode_instant(getattr(message, name)) if message.HasField(name) else None  # type: ignore[arg-type] # a name


def decode_create_api_key(request: admin_pb2.CreateApiKeyRequest) -> datetime | None:
    """When the key to be made ends.

    Raises:
        ValidationError: The time is none.
    """
    try:
        return decode_instant(request.expires_at) if request.HasField("expires_at") else None
    except Refused as error:
        raise ValidationError(error.description, field="expires_at") from None


def encode_create_api_key(
    name: str, principal: str, expires_at: datetime | None, request_id: str | None
) -> admin_pb2.CreateApiKeyRequest:
    """A key to be made."""
    return admin_pb2.CreateApiKeyRequest(
        name=name, principal=principal, expires_at=encode_instant(expires_at), request_id=request_id or ""
    )
