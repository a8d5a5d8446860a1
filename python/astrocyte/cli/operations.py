"""Commands on long-running operations: moving a bank to another embedding model, and what became of it."""

from __future__ import annotations

import click
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from astrocyte.api.requests import CancelOperation, GetOperation, ListOperations, StartReindex, WaitOperation
from astrocyte.cli.connection import Session, operation
from astrocyte.cli.output import ERR, OUT, facts, grid, print_json, stamp
from astrocyte.model import Operation, OperationState

# How long one call waits, so that the bar moves.
STEP_SECONDS = 0.5


@click.command()
@click.argument("bank")
@click.option("--model", "embedding_model", help="Model to move to; `astrocyte info` lists those of the server.")
@click.option("--rollback", is_flag=True, help="Go back to the model before, whose vectors are kept for a time.")
@click.option("--min-overlap", type=float, help="Share of answers that must stay the same, or the bank does not move.")
@click.option("--sample", type=int, help="Memories that both models are asked about before the move.")
@click.option("--wait", is_flag=True, help="Wait until it is done, and show how far it is.")
@operation
async def reindex(
    session: Session,
    /,
    bank: str,
    embedding_model: str | None,
    rollback: bool,
    min_overlap: float | None,
    sample: int | None,
    wait: bool,
) -> None:
    """Move BANK to another embedding model while it answers, or back to the one before.

    Without a server the work is done by this process, so that it waits in any case.

    \b
    astrocyte reindex family --model static-minilm-256-128 --wait
    astrocyte reindex family --rollback --wait
    """
    started = await session.backend.call(
        session.caller,
        StartReindex(
            bank, embedding_model=embedding_model, rollback=rollback, min_overlap=min_overlap, sample_size=sample
        ),
    )
    if wait or not session.remote:
        started = await _followed(session, started)
    _show(session, started)


@click.group()
def operations() -> None:
    """Long-running operations: list, show, wait for and cancel them.

    \b
    astrocyte operations list
    astrocyte operations wait family op-0123
    """


@operations.command("list")
@click.option("--bank", default="", help="Only operations on this bank.")
@operation
async def list_operations(session: Session, /, bank: str) -> None:
    """List operations, by age; those that are done too.

    \b
    astrocyte operations list --bank family
    """
    found: list[Operation] = []
    token = ""
    while True:
        page = await session.backend.call(session.caller, ListOperations(bank_id=bank, page_token=token))
        found.extend(page.operations)
        token = page.next_page_token
        if not token:
            break
    if session.as_json:
        print_json(found)
        return
    table = grid(("operation", "bank", "state", "from", "to", "done", "started"))
    for one in found:
        plan = one.reindex
        table.add_row(
            one.operation_id,
            one.bank_id,
            one.state.value,
            plan.from_model,
            plan.to_model,
            f"{plan.embedded} of {plan.total}",
            f"{one.created_by}\n{stamp(one.created_at)}",
        )
    OUT.print(table if found else "There are no operations.")


@operations.command("show")
@click.argument("bank")
@click.argument("operation_id")
@operation
async def show_operation(session: Session, /, bank: str, operation_id: str) -> None:
    """Show the operation OPERATION_ID on BANK.

    \b
    astrocyte operations show family op-0123
    """
    _show(session, await session.backend.call(session.caller, GetOperation(bank, operation_id)))


@operations.command("wait")
@click.argument("bank")
@click.argument("operation_id")
@operation
async def wait_operation(session: Session, /, bank: str, operation_id: str) -> None:
    """Wait until the operation OPERATION_ID on BANK is done.

    \b
    astrocyte operations wait family op-0123
    """
    _show(
        session, await _followed(session, await session.backend.call(session.caller, GetOperation(bank, operation_id)))
    )


@operations.command("cancel")
@click.argument("bank")
@click.argument("operation_id")
@operation
async def cancel_operation(session: Session, /, bank: str, operation_id: str) -> None:
    """End the operation OPERATION_ID on BANK; the bank stays as it was.

    \b
    astrocyte operations cancel family op-0123
    """
    _show(session, await session.backend.call(session.caller, CancelOperation(bank, operation_id)))


async def _followed(session: Session, one: Operation) -> Operation:
    """The operation once it is done, with a bar until then."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=ERR, transient=True, disable=session.as_json) as progress:
        bar = progress.add_task(one.reindex.phase.value, total=None)
        while not one.done:
            one = await session.backend.call(
                session.caller, WaitOperation(one.bank_id, one.operation_id, timeout=STEP_SECONDS)
            )
            plan = one.reindex
            progress.update(bar, description=plan.phase.value, total=plan.total or None, completed=plan.embedded)
    return one


def _show(session: Session, one: Operation) -> None:
    if session.as_json:
        print_json(one)
    else:
        plan, compared, outcome = one.reindex, one.reindex.comparison, one.outcome
        rows: list[tuple[str, object]] = [
            ("operation", one.operation_id),
            ("bank", one.bank_id),
            ("state", one.state.value),
            ("from", f"{plan.from_model}, {plan.from_dimensions} dimensions"),
            ("to", f"{plan.to_model}, {plan.to_dimensions} dimensions"),
            ("embedded", f"{plan.embedded} of {plan.total}"),
        ]
        if compared is not None:
            shared = f"{compared.overlap:.3f} of the first ten, by meaning alone {compared.semantic_overlap:.3f}"
            rows.append(("answers share", f"{shared} ({compared.queries} queries)"))
        if one.error is not None:
            rows.append(("error", f"{one.error.reason}: {one.error.message}"))
        if outcome is not None:
            rows.append(("moved at", f"position {outcome.position}"))
            rows.append(("way back until", stamp(outcome.kept_until) or "none is kept"))
        OUT.print(facts(rows))
    if one.state is OperationState.FAILED:
        raise click.exceptions.Exit(1)
