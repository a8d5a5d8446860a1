"""Who may do what: the identity of callers without one, the policy, and the grants that stand in the configuration."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from astrocyte.config.section import Section

PermissionName = Literal["read", "write", "forget", "admin", "*"]
# What a pattern may hold: the characters of bank ids, and the two that stand for others.
BANK_PATTERN = r"^[A-Za-z0-9._:@*?-]{1,255}$"
PRINCIPAL_CHARS = 256


class IdentitySettings(Section):
    """Who a caller is that brings neither a credential nor a context."""

    principal: str | None = Field(
        None, min_length=1, max_length=PRINCIPAL_CHARS, description="Its principal; with access control none is denied."
    )


class AccessControlSettings(Section):
    """Whether grants decide who may do what, and what holds where no grant does."""

    enabled: bool = Field(False, description="Check every call; without it, whoever gets in may do everything.")
    default_policy: Literal["deny", "owner_only", "open"] = Field(
        "owner_only",
        description="Without a grant: nothing; all for the principal that made the bank; or read and write for all.",
    )


class BankGrant(Section):
    """Permissions of a principal on the bank that it stands under. * stands for any characters and ? for one."""

    principal: str = Field(
        min_length=1, max_length=PRINCIPAL_CHARS, description="A principal or a pattern, such as agent:*."
    )
    permissions: tuple[PermissionName, ...] = Field(
        min_length=1, description="Any of read, write, forget and admin, none of which implies another; * is all four."
    )
    tenant: str = Field("default", min_length=1, description="The tenant whose banks and principals are meant.")


class AccessGrant(BankGrant):
    """Permissions of a principal on a bank. In both names * stands for any characters and ? for one."""

    bank_id: str = Field(pattern=BANK_PATTERN, description="A bank id or a pattern, such as user-*.")
