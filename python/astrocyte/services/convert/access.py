"""Grants and what they give."""

from __future__ import annotations

from collections.abc import Iterable

from astrocyte.errors import ValidationError
from astrocyte.model import AccessCheck, Grant, Permission
from astrocyte.services.convert.values import decode_instant, encode_instant
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
