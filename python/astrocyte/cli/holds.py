"""Commands for legal holds."""

from __future__ import annotations

from datetime import datetime

import click

from astrocyte.api.requests import ListHolds, PlaceHold, ReleaseHold
from astrocyte.cli.connection import Session, operation
from astrocyte.cli.output import OUT, grid, print_json, stamp
from astrocyte.cli.values import MOMENT
from astrocyte.model import Hold


@click.group()
def holds() -> None:
    """Place, list and release legal holds, which block deletion.

    \b
    astrocyte holds place family --reason "Case 4711"
    astrocyte holds list
    astrocyte holds release family case-4711
    """


@holds.command("place")
@click.argument("bank")
@click.option("--reason", required=True, help="Reason.")
@click.option("--id", "hold_id", help="Id of the hold, such as a case number.  [default: generated]")
@click.option("--memory", "memory_ids", multiple=True, help="Hold this memory; may be repeated.")
@click.option("--tag", "tags", multiple=True, help="Hold present and future memories with this tag; may be repeated.")
@click.option(
    "--expires-at",
    type=MOMENT,
    help="Time from which astrocyte doctor reports the hold, such as 2027-01-01T00:00:00Z. It stands until released.",
)
@operation
async def place_hold(
    session: Session,
    /,
    bank: str,
    reason: str,
    hold_id: str | None,
    memory_ids: tuple[str, ...],
    tags: tuple[str, ...],
    expires_at: datetime | None,
) -> None:
    """Place a hold on BANK or on memories of it. Forget, erasure, content updates and deletion are then refused.

    \b
    astrocyte holds place family --reason "Case 4711" --id case-4711
    astrocyte holds place family --reason "Audit 2026" --tag invoices
    """
    placed = await session.backend.call(
        session.caller,
        PlaceHold(bank, reason=reason, memory_ids=memory_ids, tags=tags, hold_id=hold_id, expires_at=expires_at),
    )
    if session.as_json:
        print_json(placed)
    else:
        click.echo(f"{placed.hold_id} holds {_scope(placed)} in {bank}.")


@holds.command("release")
@click.argument("bank")
@click.argument("hold_id")
@operation
async def release_hold(session: Session, /, bank: str, hold_id: str) -> None:
    """Release the hold HOLD_ID on BANK.

    \b
    astrocyte holds release family case-4711
    """
    released = await session.backend.call(session.caller, ReleaseHold(bank, hold_id))
    if session.as_json:
        print_json(released)
    else:
        click.echo(f"Released by {released.released_by}, {stamp(released.released_at)}.")


@holds.command("list")
@click.option("--bank", default="", help="Only holds of this bank.")
@click.option("--released", is_flag=True, help="Include released holds.")
@operation
async def list_holds(session: Session, /, bank: str, released: bool) -> None:
    """List active holds, oldest first.

    \b
    astrocyte holds list
    astrocyte holds list --bank family --released
    """
    found: list[Hold] = []
    token = ""
    while True:
        page = await session.backend.call(
            session.caller, ListHolds(bank_id=bank, include_released=released, page_token=token)
        )
        found.extend(page.holds)
        token = page.next_page_token
        if not token:
            break
    if session.as_json:
        print_json(found)
        return
    table = grid(("hold", "bank", "holds", "reason", "placed", "released"))
    for hold in found:
        placed = f"{hold.placed_by}\n{stamp(hold.placed_at)}"
        ended = f"{hold.released_by}\n{stamp(hold.released_at)}" if hold.released_at else ""
        table.add_row(hold.hold_id, hold.bank_id, _scope(hold), hold.reason, placed, ended)
    OUT.print(table if found else "There are no holds.")


def _scope(hold: Hold) -> str:
    parts = [f"memories {', '.join(hold.memory_ids)}"] if hold.memory_ids else []
    if hold.tags:
        parts.append(f"memories tagged {', '.join(hold.tags)}")
    return " and ".join(parts) or "everything"
