"""Commands for the audit log."""

from __future__ import annotations

import click

from astrocyte.api.requests import ListAuditEvents
from astrocyte.cli.connection import Session, operation
from astrocyte.cli.output import OUT, grid, print_json, stamp
from astrocyte.model import AuditEvent
from astrocyte.policy.governance.audit_verification import verify

SHA256_BYTES = 32


@click.group()
def audit() -> None:
    """List and verify the audit log of deletions, erasures, holds and grants.

    \b
    astrocyte audit list
    astrocyte audit verify
    """


@audit.command("list")
@click.option("--bank", default="", help="Only events of this bank.")
@click.option("--newest-first", is_flag=True, help="List the newest event first.")
@click.option("--limit", type=click.IntRange(1), help="Events to list.  [default: all]")
@operation
async def list_events(session: Session, /, bank: str, newest_first: bool, limit: int | None) -> None:
    """List the audit log, oldest event first.

    \b
    astrocyte audit list
    astrocyte audit list --newest-first --limit 20
    astrocyte --json audit list --bank family
    """
    found: list[AuditEvent] = []
    token = ""
    while True:
        request = ListAuditEvents(bank_id=bank, page_token=token, newest_first=newest_first)
        page = await session.backend.call(session.caller, request)
        found.extend(page.events)
        token = page.next_page_token
        if not token or (limit is not None and len(found) >= limit):
            break
    found = found[:limit]
    if session.as_json:
        print_json(found)
        return
    table = grid(("#", "when", "event", "by", "bank key", "details"), right=("#", "bank key"))
    for event in found:
        details = ", ".join(f"{key} {value}" for key, value in sorted(event.details.items()))
        key = str(event.bank_key or "")
        table.add_row(str(event.sequence), stamp(event.occurred_at), str(event.event), event.actor, key, details)
    OUT.print(table if found else "The audit log is empty.")


@audit.command("verify")
@click.option("--noted", metavar="N:HASH", help="Output of an earlier check; detects truncation since then.")
@operation
async def verify_trail(session: Session, /, noted: str | None) -> None:
    """Recompute every hash of the audit log; exit code 4 if the chain is broken.

    \b
    astrocyte audit verify
    astrocyte audit verify --noted "$(cat audit.txt)"

    Prints N:HASH of the last row. Store it where writers of the database have no access: without it, a check cannot
    detect a truncated log.
    """
    found = await verify(session.backend, session.caller, noted=_parse(noted))
    if session.as_json:
        print_json(
            {
                "intact": found.intact,
                "rows": found.rows,
                "head": f"{found.rows}:{found.head_hash.hex()}",
                "broken_at": found.broken_at,
                "problem": found.problem,
            }
        )
    elif found.intact:
        click.echo(f"{found.rows}:{found.head_hash.hex()}")
    else:
        click.echo(f"astrocyte: row {found.broken_at}: {found.problem}", err=True)
    if not found.intact:
        raise click.exceptions.Exit(4)


def _parse(noted: str | None) -> tuple[int, bytes] | None:
    if noted is None:
        return None
    sequence, _, digest = noted.strip().partition(":")
    try:
        parsed = int(sequence), bytes.fromhex(digest)
    except ValueError:
        parsed = (0, b"")
    if parsed[0] < 0 or len(parsed[1]) != SHA256_BYTES:
        raise click.BadParameter("expected N:HASH, the output of audit verify", param_hint="--noted")
    return parsed
