"""Commands for reindexing, consolidation and other long-running operations."""

from __future__ import annotations

import click
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from astrocyte.api.requests import (
    CancelOperation,
    ConsolidateBank,
    GetOperation,
    ListOperations,
    RunLifecycle,
    StartReindex,
    WaitOperation,
)
from astrocyte.cli.connection import Session, operation
from astrocyte.cli.output import ERR, OUT, facts, grid, print_json, stamp
from astrocyte.model import Operation, OperationState

# Interval of progress updates.
STEP_SECONDS = 0.5


@click.command()
@click.argument("bank")
@click.option("--model", "embedding_model", help="Target model; `astrocyte info` lists the models of the server.")
@click.option("--rollback", is_flag=True, help="Return to the previous model, whose vectors are kept for a time.")
@click.option("--min-overlap", type=float, help="Minimum share of identical hits; below it the reindex fails.")
@click.option("--sample", type=int, help="Number of memories in the comparison before the cutover.")
@click.option("--wait", is_flag=True, help="Wait for completion and show progress.")
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
    """Reindex BANK with another embedding model without downtime, or roll back.

    Without a server, this process does the work and the command always waits.

    \b
    astrocyte reindex family --model static-minilm-256-v1-128 --wait
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


@click.command()
@click.argument("bank")
@click.option("--dry-run", is_flag=True, help="Show the operation as it would be, and start none.")
@click.option("--wait", is_flag=True, help="Wait for completion and show progress.")
@operation
async def consolidate(session: Session, /, bank: str, dry_run: bool, wait: bool) -> None:
    """Make observations of all memories of BANK.

    Without a server, this process does the work and the command always waits.

    \b
    astrocyte consolidate family --wait
    """
    started = await session.backend.call(session.caller, ConsolidateBank(bank, validate_only=dry_run))
    if not dry_run and (wait or not session.remote):
        started = await _followed(session, started)
    _show(session, started)


@click.group()
def lifecycle() -> None:
    """Archive, expire and forget memories by the settings of their bank.

    \b
    astrocyte lifecycle run family --dry-run --wait
    """


@lifecycle.command("run")
@click.argument("bank")
@click.option("--dry-run", is_flag=True, help="Count the memories that would be changed, and change nothing.")
@click.option("--merge-duplicates", is_flag=True, help="Merge near duplicates too.")
@click.option("--similarity", type=float, help="Least cosine of two duplicates; default: the setting.")
@click.option("--wait", is_flag=True, help="Wait for completion and show progress.")
@operation
async def run_lifecycle(
    session: Session, /, bank: str, dry_run: bool, merge_duplicates: bool, similarity: float | None, wait: bool
) -> None:
    """Run the lifecycle of BANK now.

    Without a server, this process does the work and the command always waits.

    \b
    astrocyte lifecycle run family --dry-run --wait
    """
    started = await session.backend.call(session.caller, RunLifecycle(bank, dry_run, merge_duplicates, similarity))
    if wait or not session.remote:
        started = await _followed(session, started)
    _show(session, started)


@click.group()
def operations() -> None:
    """List, show, await and cancel long-running operations.

    \b
    astrocyte operations list
    astrocyte operations wait family op-0123
    """


@operations.command("list")
@click.option("--bank", default="", help="Only operations on this bank.")
@click.option("--newest-first", is_flag=True, help="List the newest operation first.")
@click.option("--limit", type=click.IntRange(1), help="Operations to list.  [default: all]")
@operation
async def list_operations(session: Session, /, bank: str, newest_first: bool, limit: int | None) -> None:
    """List operations, including finished ones, oldest first.

    \b
    astrocyte operations list --bank family
    """
    found: list[Operation] = []
    token = ""
    while True:
        request = ListOperations(bank_id=bank, page_token=token, newest_first=newest_first)
        page = await session.backend.call(session.caller, request)
        found.extend(page.operations)
        token = page.next_page_token
        if not token or (limit is not None and len(found) >= limit):
            break
    found = found[:limit]
    if session.as_json:
        print_json(found)
        return
    table = grid(("operation", "bank", "state", "from", "to", "done", "started"))
    for one in found:
        done, total = _progress(one)
        table.add_row(
            one.operation_id,
            one.bank_id,
            one.state.value,
            _kind(one),
            "" if one.reindex is None else one.reindex.to_model,
            f"{done} of {total}",
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
    """Wait for the operation OPERATION_ID on BANK to finish.

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
    """Cancel the operation OPERATION_ID on BANK; the bank remains unchanged.

    \b
    astrocyte operations cancel family op-0123
    """
    _show(session, await session.backend.call(session.caller, CancelOperation(bank, operation_id)))


async def _followed(session: Session, one: Operation) -> Operation:
    """Wait for the operation with a progress bar and return its final state."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=ERR, transient=True, disable=session.as_json) as progress:
        bar = progress.add_task(_phase(one), total=None)
        while not one.done:
            one = await session.backend.call(
                session.caller, WaitOperation(one.bank_id, one.operation_id, timeout=STEP_SECONDS)
            )
            done, total = _progress(one)
            progress.update(bar, description=_phase(one), total=total or None, completed=done)
    return one


def _kind(one: Operation) -> str:
    if one.reindex is not None:
        return one.reindex.from_model
    return "consolidation" if one.lifecycle is None else "lifecycle"


def _phase(one: Operation) -> str:
    if one.reindex is not None:
        return one.reindex.phase.value
    return "consolidating" if one.lifecycle is None else "archiving"


def _progress(one: Operation) -> tuple[int, int]:
    """Finished and all parts of an operation."""
    if one.reindex is not None:
        return one.reindex.embedded, one.reindex.total
    counted = one.consolidation or one.lifecycle
    return (0, 0) if counted is None else (counted.seen, counted.total)


def _show(session: Session, one: Operation) -> None:
    if session.as_json:
        print_json(one)
    else:
        rows: list[tuple[str, object]] = [
            ("operation", one.operation_id),
            ("bank", one.bank_id),
            ("state", one.state.value),
        ]
        rows += _reindex_rows(one) + _consolidation_rows(one) + _lifecycle_rows(one)
        if one.error is not None:
            rows.append(("error", f"{one.error.reason}: {one.error.message}"))
        if one.outcome is not None:
            rows.append(("cutover at", f"position {one.outcome.position}"))
            rows.append(("rollback until", stamp(one.outcome.kept_until) or "not possible"))
        OUT.print(facts(rows))
    if one.state is OperationState.FAILED:
        raise click.exceptions.Exit(1)


def _reindex_rows(one: Operation) -> list[tuple[str, object]]:
    plan = one.reindex
    if plan is None:
        return []
    rows: list[tuple[str, object]] = [
        ("from", f"{plan.from_model}, {plan.from_dimensions} dimensions"),
        ("to", f"{plan.to_model}, {plan.to_dimensions} dimensions"),
        ("embedded", f"{plan.embedded} of {plan.total}"),
    ]
    compared = plan.comparison
    if compared is not None:
        shared = f"{compared.overlap:.3f} of the top ten, semantic arm alone {compared.semantic_overlap:.3f}"
        rows.append(("overlap", f"{shared} ({compared.queries} queries)"))
    return rows


def _consolidation_rows(one: Operation) -> list[tuple[str, object]]:
    found = one.consolidation
    if found is None:
        return []
    counts = f"{found.created} created, {found.updated} updated, {found.superseded} superseded, {found.deleted} deleted"
    if found.left_out:
        counts += f", {found.left_out} left out by observations.max_per_bank"
    return [("changes", f"{found.seen} of {found.total}"), ("observations", counts)]


def _lifecycle_rows(one: Operation) -> list[tuple[str, object]]:
    found = one.lifecycle
    if found is None:
        return []
    archived = f"{found.unused} unused, {found.expired} expired, {found.merged} merged"
    counts = f"{archived}, {found.deleted} forgotten, {found.held} held"
    rows: list[tuple[str, object]] = [
        ("memories", f"{found.seen} of {found.total}"),
        ("would be changed" if found.dry_run else "changed", counts),
    ]
    if found.entities:
        rows.append(("entities without mentions", found.entities))
    if found.memory_ids:
        rows.append(("first of them", "\n".join(found.memory_ids)))
    if found.pairs:
        lines = [f"{one.merged_id} into {one.kept_id} ({one.similarity:.3f})" for one in found.pairs]
        rows.append(("duplicates", "\n".join(lines)))
    return rows
