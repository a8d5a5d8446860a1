"""Commands for observations: create, list, show, update, revisions, delete, invalidate."""

from __future__ import annotations

import click
from rich.text import Text

from astrocyte.api.requests import (
    CreateObservation,
    DeleteObservation,
    GetObservation,
    InvalidateObservations,
    ListObservationRevisions,
    ListObservations,
    UpdateObservation,
)
from astrocyte.cli.connection import Session, operation
from astrocyte.cli.knowledge.revisions import print_revisions
from astrocyte.cli.output import OUT, facts, grid, print_json, stamp
from astrocyte.model import Observation, Trend


@click.group()
def observations() -> None:
    """Create, list, show, update and delete observations: statements that rest on memories.

    \b
    astrocyte observations list family --trend new
    astrocyte observations show family obs-1
    """


@observations.command("create")
@click.argument("bank")
@click.argument("text")
@click.option("--evidence", "evidence", multiple=True, required=True, help="Memory that it rests on; may be repeated.")
@click.option("--scope", default="bank", show_default=True, help="bank, tag:TAG or entity:NAME.")
@click.option("--confidence", type=click.FloatRange(0, 1), help="Confidence.  [default: 0.9]")
@operation
async def create_observation(
    session: Session, /, bank: str, text: str, evidence: tuple[str, ...], scope: str, confidence: float | None
) -> None:
    """Create the observation TEXT of BANK.

    \b
    astrocyte observations create family "Mara avoids nuts." --evidence mem_1 --evidence mem_2
    """
    made = await session.backend.call(session.caller, CreateObservation(bank, text, evidence, scope, confidence))
    if session.as_json:
        print_json(made)
    else:
        click.echo(f"Created {made.observation_id}, {made.trend}, from {made.proof_count} sources.")


@observations.command("list")
@click.argument("bank")
@click.option("--scope", default="", help="Only observations of this scope.")
@click.option("--trend", type=click.Choice([str(one) for one in Trend]), help="Only observations of this trend.")
@click.option("--text", default="", help="Only observations that contain this text.")
@operation
async def list_observations(session: Session, /, bank: str, scope: str, trend: str | None, text: str) -> None:
    """List the observations of BANK, oldest first.

    \b
    astrocyte observations list family
    astrocyte observations list family --trend weakening
    """
    found: list[Observation] = []
    token = ""
    while True:
        chosen = None if trend is None else Trend(trend)
        page = await session.backend.call(session.caller, ListObservations(bank, scope, chosen, text, page_token=token))
        found.extend(page.observations)
        token = page.next_page_token
        if not token:
            break
    if session.as_json:
        print_json(found)
        return
    table = grid(("observation", "trend", "text"))
    for one in found:
        trend = f"{one.trend}\n{one.proof_count} from {one.scope}"
        table.add_row(one.observation_id, trend, Text(one.text))
    OUT.print(table if found else "There are no observations.")


@observations.command("show")
@click.argument("bank")
@click.argument("observation_id")
@operation
async def show_observation(session: Session, /, bank: str, observation_id: str) -> None:
    """Show the observation OBSERVATION_ID of BANK with its evidence.

    \b
    astrocyte observations show family obs-1
    """
    found = await session.backend.call(session.caller, GetObservation(bank, observation_id))
    if session.as_json:
        print_json(found)
        return
    valid = f"{stamp(found.valid_from) or 'open'} to {stamp(found.valid_until) or 'open'}"
    rows: list[tuple[str, object]] = [
        ("observation", found.observation_id),
        ("text", Text(found.text)),
        ("kind", found.kind),
        ("trend", found.trend),
        ("confidence", f"{found.confidence:.2f}"),
        ("valid", valid),
        ("superseded by", found.superseded_by or "none"),
        ("stale", "yes" if found.is_stale else "no"),
        ("revision", found.revision),
    ]
    rows += [("evidence", f"{one.memory_id}, {stamp(one.observed_at)}") for one in found.evidence]
    OUT.print(facts(rows))


@observations.command("delete")
@click.argument("bank")
@click.argument("observation_id")
@operation
async def delete_observation(session: Session, /, bank: str, observation_id: str) -> None:
    """Delete the observation OBSERVATION_ID of BANK.

    \b
    astrocyte observations delete family obs-1
    """
    deleted = await session.backend.call(session.caller, DeleteObservation(bank, observation_id))
    if session.as_json:
        print_json({"observation_id": observation_id, "deleted": deleted})
    else:
        click.echo("Deleted." if deleted else f"There is no observation {observation_id} in {bank}.")


@observations.command("invalidate")
@click.argument("bank")
@click.argument("source_ids", nargs=-1, required=True)
@operation
async def invalidate_observations(session: Session, /, bank: str, source_ids: tuple[str, ...]) -> None:
    """Delete the observations of BANK that rest on any of the memories SOURCE_IDS.

    \b
    astrocyte observations invalidate family mem_1 mem_2
    """
    count = await session.backend.call(session.caller, InvalidateObservations(bank, source_ids))
    if session.as_json:
        print_json({"bank_id": bank, "invalidated": count})
    else:
        click.echo(f"Deleted {count} observations.")


@observations.command("update")
@click.argument("bank")
@click.argument("observation_id")
@click.option("--text", help="New text.  [default: unchanged]")
@click.option("--evidence", "evidence", multiple=True, help="Memory that it rests on instead; may be repeated.")
@click.option("--confidence", type=click.FloatRange(0, 1), help="New confidence.  [default: unchanged]")
@click.option("--etag", help="Change this revision only.")
@operation
async def update_observation(
    session: Session,
    /,
    bank: str,
    observation_id: str,
    text: str | None,
    evidence: tuple[str, ...],
    confidence: float | None,
    etag: str | None,
) -> None:
    """Make a new revision of the observation OBSERVATION_ID of BANK.

    \b
    astrocyte observations update family obs-1 --text "Mara avoids nuts and sesame."
    """
    request = UpdateObservation(bank, observation_id, text, evidence, confidence, etag)
    made = await session.backend.call(session.caller, request)
    if session.as_json:
        print_json(made)
    else:
        click.echo(f"Revision {made.revision} of {made.observation_id}, from {made.proof_count} sources.")


@observations.command("revisions")
@click.argument("bank")
@click.argument("observation_id")
@operation
async def list_observation_revisions(session: Session, /, bank: str, observation_id: str) -> None:
    """List the revisions of the observation OBSERVATION_ID of BANK, newest first.

    \b
    astrocyte observations revisions family obs-1
    """
    await print_revisions(session, lambda token: ListObservationRevisions(bank, observation_id, page_token=token))
