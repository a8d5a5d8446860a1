"""Commands for directives: create, list, delete."""

from __future__ import annotations

import click
from rich.text import Text

from astrocyte.api.requests import CreateDirective, DeleteDirective, ListDirectives
from astrocyte.cli.connection import Session, operation
from astrocyte.cli.output import OUT, grid, print_json
from astrocyte.model import Directive


@click.group()
def directives() -> None:
    """Create, list and delete directives: rules that recall and reflect return before all memories.

    \b
    astrocyte directives create family "Answer in German."
    astrocyte directives list family
    astrocyte directives delete family directive:1
    """


@directives.command("create")
@click.argument("bank")
@click.argument("rule_text")
@click.option("--scope", default="bank", show_default=True, help="bank, tag:TAG or entity:NAME.")
@click.option("--priority", default=0, show_default=True, help="The highest comes first; -1000 to 1000.")
@click.option("--id", "directive_id", help="Id.  [default: generated]")
@operation
async def create_directive(
    session: Session, /, bank: str, rule_text: str, scope: str, priority: int, directive_id: str | None
) -> None:
    """Create the directive RULE_TEXT of BANK. The setting directives.allowed_principals names who may.

    \b
    astrocyte directives create family "Answer in German." --priority 10
    astrocyte directives create shop "Quote prices with tax." --scope tag:billing
    """
    made = await session.backend.call(session.caller, CreateDirective(bank, rule_text, scope, priority, directive_id))
    if session.as_json:
        print_json(made)
    else:
        click.echo(f"Created {made.directive_id}.")


@directives.command("list")
@click.argument("bank")
@click.option("--scope", default="", help="Only directives of this scope.")
@operation
async def list_directives(session: Session, /, bank: str, scope: str) -> None:
    """List the directives of BANK, the highest priority first.

    \b
    astrocyte directives list family
    """
    found: list[Directive] = []
    token = ""
    while True:
        page = await session.backend.call(session.caller, ListDirectives(bank, scope, page_token=token))
        found.extend(page.directives)
        token = page.next_page_token
        if not token:
            break
    if session.as_json:
        print_json(found)
        return
    table = grid(("directive", "priority", "rule"))
    for one in found:
        table.add_row(one.directive_id, f"{one.priority}\n{one.scope}", Text(one.rule_text))
    OUT.print(table if found else "There are no directives.")


@directives.command("delete")
@click.argument("bank")
@click.argument("directive_id")
@operation
async def delete_directive(session: Session, /, bank: str, directive_id: str) -> None:
    """Delete the directive DIRECTIVE_ID of BANK.

    \b
    astrocyte directives delete family directive:1
    """
    deleted = await session.backend.call(session.caller, DeleteDirective(bank, directive_id))
    if session.as_json:
        print_json({"directive_id": directive_id, "deleted": deleted})
    else:
        click.echo("Deleted." if deleted else f"There is no directive {directive_id} in {bank}.")
