"""Settings of identity, access control and grants."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from astrocyte.config.loading.section import Section

PermissionName = Literal["read", "write", "forget", "admin", "*"]
# The characters of bank ids, and the wildcards.
BANK_PATTERN = r"^[A-Za-z0-9._:@*?-]{1,255}$"
PRINCIPAL_CHARS = 256


class IdentitySettings(Section):
    """Identity of callers without credential and context."""

    principal: str | None = Field(
        None,
        min_length=1,
        max_length=PRINCIPAL_CHARS,
        description="Default principal. Without one, access control denies such calls.",
    )


class AccessControlSettings(Section):
    """Access control."""

    enabled: bool = Field(
        False, description="Check permissions on every call. If false, every authenticated caller has all permissions."
    )
    default_policy: Literal["deny", "owner_only", "open"] = Field(
        "owner_only",
        description="Permissions without a grant. deny: none. owner_only: all for the bank's creator. open: read and "
        "write for all.",
    )


class BankGrant(Section):
    """Permissions of a principal on the enclosing bank. In names, * matches any characters and ? matches one."""

    principal: str = Field(
        min_length=1, max_length=PRINCIPAL_CHARS, description="Principal or pattern, such as agent:*."
    )
    permissions: tuple[PermissionName, ...] = Field(
        min_length=1, description="Any of read, write, forget and admin; none implies another. * is all four."
    )
    tenant: str = Field("default", min_length=1, description="Tenant of the bank and the principal.")


class AccessGrant(BankGrant):
    """Permissions of a principal on a bank. In both names, * matches any characters and ? matches one."""

    bank_id: str = Field(pattern=BANK_PATTERN, description="Bank id or pattern, such as user-*.")
