"""Commands for grants and permissions."""

from __future__ import annotations

import click

from astrocyte.api import requests
from astrocyte.api.requests import CheckAccess, ListGrants, Revoke
from astrocyte.cli.connection import Session, operation
from astrocyte.cli.output import OUT, grid, print_json, stamp
from astrocyte.model import Grant, Permission

_NAMES = [str(permission) for permission in Permission]
_PERMISSIONS = click.Choice([*_NAMES, "*"])


@click.group()
def access() -> None:
    """Manage permissions: read, write, forget, admin, or * for all four.

    \b
    astrocyte access grant user-calvin agent:support-1 read write
    astrocyte access list --bank user-calvin
    astrocyte access check user-calvin --principal agent:support-1

    Banks and principals may be patterns: * matches any characters, ? matches one. Quote patterns in a shell.
    """


@access.command("grant")
@click.argument("bank")
@click.argument("principal")
@click.argument("permissions", nargs=-1, required=True, type=_PERMISSIONS)
@operation
async def grant_access(session: Session, /, bank: str, principal: str, permissions: tuple[str, ...]) -> None:
    """Grant PRINCIPAL permissions on BANK, effective from the next call.

    \b
    astrocyte access grant user-calvin user:calvin "*"
    astrocyte access grant "user-*" "agent:support-*" read write
    """
    granted = await session.backend.call(session.caller, requests.Grant(bank, principal, permissions))
    if session.as_json:
        print_json(granted)
    else:
        click.echo(f"{principal} now has {_words(granted.permissions)} on {bank}.")


@access.command("revoke")
@click.argument("bank")
@click.argument("principal")
@click.argument("permissions", nargs=-1, type=_PERMISSIONS)
@operation
async def revoke_access(session: Session, /, bank: str, principal: str, permissions: tuple[str, ...]) -> None:
    """Revoke permissions of PRINCIPAL on BANK; without PERMISSIONS, all of them.

    \b
    astrocyte access revoke user-calvin agent:support-1
    astrocyte access revoke "user-*" "agent:support-*" write

    Give BANK and PRINCIPAL exactly as in the grant. Other grants, such as those in the settings, remain in effect.
    """
    taken = await session.backend.call(session.caller, Revoke(bank, principal, permissions))
    if session.as_json:
        print_json({"permissions": sorted(taken)})
    else:
        click.echo(f"Revoked {_words(taken)}." if taken else "No such grant; nothing was revoked.")


@access.command("list")
@click.option("--bank", default="", help="Only grants that apply to this bank.")
@click.option("--principal", default="", help="Only grants that apply to this principal.")
@click.option("--revoked", is_flag=True, help="Include revoked grants.")
@operation
async def list_grants(session: Session, /, bank: str, principal: str, revoked: bool) -> None:
    """List grants: those in the settings first, then the others, oldest first.

    \b
    astrocyte access list
    astrocyte access list --principal user:calvin --revoked
    """
    found: list[Grant] = []
    token = ""
    while True:
        page = await session.backend.call(
            session.caller, ListGrants(bank_id=bank, principal=principal, include_revoked=revoked, page_token=token)
        )
        found.extend(page.grants)
        token = page.next_page_token
        if not token:
            break
    if session.as_json:
        print_json(found)
        return
    table = grid(("bank", "principal", "permissions", "granted by", "granted", "revoked by", "revoked"))
    for grant in found:
        by = grant.granted_by or "settings"
        ended = (grant.revoked_by or "", stamp(grant.revoked_at))
        table.add_row(grant.bank_id, grant.principal, _words(grant.permissions), by, stamp(grant.granted_at), *ended)
    OUT.print(table if found else "There are no grants.")


@access.command("check")
@click.argument("bank")
@click.option("--principal", help="Principal to check.  [default: the caller]")
@click.option(
    "--permission", type=click.Choice(_NAMES), help="Check this permission; exit code 4 if it is not granted."
)
@operation
async def check_access(session: Session, /, bank: str, principal: str | None, permission: str | None) -> None:
    """Print the permissions of a principal on BANK. The bank need not exist.

    \b
    astrocyte access check user-calvin --principal agent:support-1
    astrocyte access check user-calvin --principal agent:support-1 --permission write
    """
    check = await session.backend.call(session.caller, CheckAccess(bank, principal=principal, permission=permission))
    if session.as_json:
        print_json({"allowed": check.allowed, "permissions": sorted(check.permissions)})
    else:
        click.echo(_words(check.permissions) or "nothing")
    if permission and not check.allowed:
        raise click.exceptions.Exit(4)


def _words(permissions: frozenset[Permission]) -> str:
    return ", ".join(permission for permission in Permission if permission in permissions)
