"""Commands for banks: list, create, show, health, delete."""

from __future__ import annotations

import sys

import click
from rich.text import Text

from astrocyte.api.requests import (
    CreateBank,
    DeleteBank,
    GetBank,
    GetBankStats,
    ListBankGroups,
    ListBanks,
    ListBankTemplates,
)
from astrocyte.cli.connection import Session, operation
from astrocyte.cli.output import OUT, facts, grid, megabytes, print_json, stamp
from astrocyte.model import Bank


@click.group()
def banks() -> None:
    """List, create, show and delete banks. A bank is a set of memories that is searched together.

    \b
    astrocyte banks list
    astrocyte banks create family --name "The family"
    astrocyte banks show family
    """


@banks.command("list")
@click.option("--prefix", default="", help="Only banks whose id has this prefix.")
@operation
async def list_banks(session: Session, /, prefix: str) -> None:
    """List banks, by id.

    \b
    astrocyte banks list --prefix user-
    """
    found: list[Bank] = []
    token = ""
    while True:
        page = await session.backend.call(session.caller, ListBanks(prefix=prefix, page_token=token))
        found.extend(page.banks)
        token = page.next_page_token
        if not token:
            break
    if session.as_json:
        print_json(found)
        return
    table = grid(("bank", "name", "changes", "vectors", "created"), right=("changes",))
    for bank in found:
        vectors = f"{bank.embedding_model}, {bank.dimensions}"
        table.add_row(bank.bank_id, Text(bank.display_name), f"{bank.position}", vectors, stamp(bank.created_at))
    OUT.print(table if found else "There are no banks. The first retain creates one.")


@banks.command("create")
@click.argument("bank")
@click.option("--name", "display_name", default="", help="Display name.")
@click.option("--description", default="", help="Description.")
@click.option("--model", "embedding_model", help="Model of caller-supplied vectors; requires --dimensions.")
@click.option("--dimensions", type=click.IntRange(1), help="Dimensions of that model.")
@operation
async def create_bank(
    session: Session,
    /,
    bank: str,
    display_name: str,
    description: str,
    embedding_model: str | None,
    dimensions: int | None,
) -> None:
    """Create BANK. A retain creates a missing bank; use this to set a name or caller-supplied vectors.

    \b
    astrocyte banks create family --name "The family"
    astrocyte banks create papers --model voyage-4 --dimensions 1024
    """
    made = await session.backend.call(
        session.caller,
        CreateBank(
            bank,
            display_name=display_name,
            description=description,
            embedding_model=embedding_model,
            dimensions=dimensions,
        ),
    )
    if session.as_json:
        print_json(made)
    else:
        click.echo(f"Created {made.bank_id} ({made.embedding_model}, {made.dimensions} dimensions)")


@banks.command("show")
@click.argument("bank")
@operation
async def show_bank(session: Session, /, bank: str) -> None:
    """Show the properties and statistics of BANK.

    \b
    astrocyte banks show family
    """
    found = await session.backend.call(session.caller, GetBank(bank))
    stats = await session.backend.call(session.caller, GetBankStats(bank))
    if session.as_json:
        print_json({"bank": found, "stats": stats})
        return
    index = "not loaded" if stats.indexed_position < 0 else f"{megabytes(stats.index_bytes)} in memory"
    rows: list[tuple[str, object]] = [
        ("bank", found.bank_id),
        ("name", found.display_name or "none"),
        ("description", found.description or "none"),
        ("memories", f"{stats.memory_count:,}"),
        ("chunks", f"{stats.chunk_count:,}"),
        ("tokens", f"{stats.token_count:,}"),
        ("forgotten", f"{stats.forgotten_count:,} (can be undeleted)"),
        ("vectors", f"{found.embedding_model}, {found.dimensions} dimensions"),
        ("index", index),
        ("template", found.template or "none"),
        ("profile", found.profile or "none"),
        ("waiting for engines", f"{stats.waiting_copies:,}"),
        ("position", found.position),
        ("created", stamp(found.created_at)),
    ]
    OUT.print(facts(rows))


@banks.command("health")
@click.argument("bank")
@operation
async def show_health(session: Session, /, bank: str) -> None:
    """Show the health of BANK: score, issues, and rates by day since the server started.

    \b
    astrocyte banks health family
    """
    health = (await session.backend.call(session.caller, GetBankStats(bank))).health
    if session.as_json:
        print_json(health)
        return
    if health is None:
        raise click.ClickException("the server reports no health of banks; it is of an earlier version")
    rates = health.metrics
    rows: list[tuple[str, object]] = [
        ("score", f"{health.score:.2f} ({health.status})"),
        ("recalls with hits", f"{_percent(rates.recall_hit_rate)} of {rates.recall_count:,}"),
        ("confidence of hits", _percent(rates.avg_recall_score)),
        ("duplicates", f"{_percent(rates.dedup_rate)} of {rates.retain_count:,} retained items"),
        ("answered reflects", f"{_percent(rates.reflect_success_rate)} of {rates.reflect_count:,}"),
    ]
    rows.extend((f"{issue.severity}", f"{issue.message}. {issue.recommendation}") for issue in health.issues)
    OUT.print(facts(rows))
    if health.trend:
        table = grid(("day", "retains", "recalls", "with hits", "duplicates"), right=("retains", "recalls"))
        for day in health.trend:
            counts = (f"{day.retain_count:,}", f"{day.recall_count:,}")
            table.add_row(day.date, *counts, _percent(day.recall_hit_rate), _percent(day.dedup_rate))
        OUT.print(table)


def _percent(rate: float | None) -> str:
    return "none" if rate is None else f"{rate:.0%}"


@banks.command("templates")
@operation
async def list_templates(session: Session, /) -> None:
    """List bank templates of the settings. A template applies to all banks whose ids match its pattern.

    \b
    astrocyte banks templates
    """
    found = await session.backend.call(session.caller, ListBankTemplates())
    if session.as_json:
        print_json(found)
        return
    table = grid(("template", "banks", "profile", "auto-create", "access"))
    for template in found:
        access = "; ".join(f"{one.principal}: {', '.join(sorted(one.permissions))}" for one in template.access)
        made = "yes" if template.auto_create else "no"
        table.add_row(template.name, template.name_pattern, template.profile or "none", made, access)
    OUT.print(table if found else "There are no templates.")


@banks.command("groups")
@operation
async def list_groups(session: Session, /) -> None:
    """List bank groups of the settings. A recall can name a group in place of banks.

    \b
    astrocyte banks groups
    """
    found = await session.backend.call(session.caller, ListBankGroups())
    if session.as_json:
        print_json(found)
        return
    table = grid(("group", "banks", "strategy"))
    for group in found:
        table.add_row(group.name, ", ".join(group.banks), str(group.strategy.mode or "default"))
    OUT.print(table if found else "There are no groups.")


@banks.command("delete")
@click.argument("bank")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@operation
async def delete_bank(session: Session, /, bank: str, yes: bool) -> None:
    """Delete BANK and all its memories. This cannot be undone.

    \b
    astrocyte banks delete family
    """
    stats = await session.backend.call(session.caller, GetBankStats(bank))
    if not yes:
        if not sys.stdin.isatty():
            raise click.UsageError("standard input is not a terminal: confirm with --yes")
        click.confirm(f"Permanently delete {bank} and its {stats.memory_count} memories?", abort=True, err=True)
    deleted = await session.backend.call(session.caller, DeleteBank(bank))
    if session.as_json:
        print_json({"bank_id": bank, "deleted_count": deleted})
    else:
        click.echo(f"Deleted {bank} and its {deleted} memories.")
