"""Commands for mental models: create, list, show, update, refresh, delete, undelete, revisions, diff."""

from __future__ import annotations

import json
from typing import TextIO

import click
from rich.text import Text

from astrocyte.api.requests import (
    CreateMentalModel,
    DeleteMentalModel,
    DiffMentalModelRevisions,
    GetMentalModel,
    ListMentalModelRevisions,
    ListMentalModels,
    RefreshMentalModel,
    UndeleteMentalModel,
    UpdateMentalModel,
)
from astrocyte.cli.connection import Session, operation
from astrocyte.cli.knowledge.revisions import print_revisions
from astrocyte.cli.output import OUT, grid, print_json, stamp
from astrocyte.facade.knowledge_keywords import operations_of
from astrocyte.model import MentalModel

_MARKDOWN = click.File("r", encoding="utf-8")


@click.group()
def models() -> None:
    """Create, list, show, change and delete mental models: structured summaries of a bank.

    \b
    astrocyte models create family "Mara's preferences" --file mara.md
    astrocyte models show family model:mara-prefs
    astrocyte models refresh family model:mara-prefs
    """


@models.command("create")
@click.argument("bank")
@click.argument("name")
@click.option("--file", "file", type=_MARKDOWN, required=True, help="Markdown file; - reads standard input.")
@click.option("--scope", default="bank", show_default=True, help="bank, tag:TAG or entity:NAME.")
@click.option("--source", "source_ids", multiple=True, help="Memory that it rests on; may be repeated.")
@click.option("--id", "model_id", help="Id.  [default: made of the name]")
@operation
async def create_model(
    session: Session,
    /,
    bank: str,
    name: str,
    file: TextIO,
    scope: str,
    source_ids: tuple[str, ...],
    model_id: str | None,
) -> None:
    """Create the mental model NAME of BANK from Markdown.

    \b
    astrocyte models create family "Mara's preferences" --file mara.md
    """
    request = CreateMentalModel(bank, name, content=file.read(), scope=scope, source_ids=source_ids, model_id=model_id)
    made = await session.backend.call(session.caller, request)
    if session.as_json:
        print_json(made)
    else:
        click.echo(f"Created {made.model_id}.")


@models.command("list")
@click.argument("bank")
@click.option("--scope", default="", help="Only models of this scope.")
@operation
async def list_models(session: Session, /, bank: str, scope: str) -> None:
    """List the mental models of BANK, oldest first.

    \b
    astrocyte models list family
    """
    found: list[MentalModel] = []
    token = ""
    while True:
        page = await session.backend.call(session.caller, ListMentalModels(bank, scope, page_token=token))
        found.extend(page.models)
        token = page.next_page_token
        if not token:
            break
    if session.as_json:
        print_json(found)
        return
    table = grid(("model", "name", "scope", "revision"))
    for one in found:
        revision = f"{one.revision}, {stamp(one.updated_at)}{', stale' if one.is_stale else ''}"
        table.add_row(one.model_id, Text(one.name), one.scope, revision)
    OUT.print(table if found else "There are no mental models.")


@models.command("show")
@click.argument("bank")
@click.argument("model_id")
@operation
async def show_model(session: Session, /, bank: str, model_id: str) -> None:
    """Print the mental model MODEL_ID of BANK as Markdown.

    \b
    astrocyte models show family model:mara-prefs
    """
    found = await session.backend.call(session.caller, GetMentalModel(bank, model_id))
    if session.as_json:
        print_json(found)
    else:
        click.echo(f"# {found.name}\n\n{found.content}")


@models.command("refresh")
@click.argument("bank")
@click.argument("model_id")
@click.option("--file", "file", type=_MARKDOWN, help="Markdown file of the new content.  [default: from the memories]")
@click.option("--source", "source_ids", multiple=True, help="Memory that the file rests on; may be repeated.")
@operation
async def refresh_model(
    session: Session, /, bank: str, model_id: str, file: TextIO | None, source_ids: tuple[str, ...]
) -> None:
    """Rewrite the mental model MODEL_ID of BANK from the memories of its scope, or from a file.

    \b
    astrocyte models refresh family model:mara-prefs
    """
    content = "" if file is None else file.read()
    request = RefreshMentalModel(bank, model_id, content, source_ids)
    found = await session.backend.call(session.caller, request)
    if session.as_json:
        print_json(found)
    else:
        click.echo(f"Revision {found.revision} of {found.model_id}, from {len(found.sources)} memories.")


@models.command("diff")
@click.argument("bank")
@click.argument("model_id")
@click.argument("from_revision", type=click.IntRange(1))
@click.argument("to_revision", type=click.IntRange(0), default=0)
@operation
async def diff_model(session: Session, /, bank: str, model_id: str, from_revision: int, to_revision: int) -> None:
    """Print the difference of two revisions of MODEL_ID; TO_REVISION 0 is the current one.

    \b
    astrocyte models diff family model:mara-prefs 1
    """
    found = await session.backend.call(
        session.caller, DiffMentalModelRevisions(bank, model_id, from_revision, to_revision)
    )
    if session.as_json:
        print_json(found)
    else:
        click.echo(found.unified_diff or "The revisions are equal.")


@models.command("delete")
@click.argument("bank")
@click.argument("model_id")
@operation
async def delete_model(session: Session, /, bank: str, model_id: str) -> None:
    """Delete the mental model MODEL_ID of BANK. `undelete` restores it for some time.

    \b
    astrocyte models delete family model:mara-prefs
    """
    deleted = await session.backend.call(session.caller, DeleteMentalModel(bank, model_id))
    if session.as_json:
        print_json({"model_id": model_id, "deleted": deleted})
    else:
        click.echo("Deleted." if deleted else f"There is no mental model {model_id} in {bank}.")


@models.command("undelete")
@click.argument("bank")
@click.argument("model_id")
@operation
async def undelete_model(session: Session, /, bank: str, model_id: str) -> None:
    """Restore the deleted mental model MODEL_ID of BANK.

    \b
    astrocyte models undelete family model:mara-prefs
    """
    found = await session.backend.call(session.caller, UndeleteMentalModel(bank, model_id))
    if session.as_json:
        print_json(found)
    else:
        click.echo(f"Restored {found.model_id}, revision {found.revision}.")


@models.command("update")
@click.argument("bank")
@click.argument("model_id")
@click.option(
    "--operations",
    "file",
    type=_MARKDOWN,
    required=True,
    help='JSON file with a list of delta operations; "-" is stdin.',
)
@click.option("--atomic", is_flag=True, help="Apply all of them or none.")
@click.option("--etag", help="Change this revision only.")
@operation
async def update_model(
    session: Session, /, bank: str, model_id: str, file: TextIO, atomic: bool, etag: str | None
) -> None:
    """Apply delta operations to the mental model MODEL_ID of BANK.

    \b
    echo '[{"op": "append_block", "section_id": "food", "content": "No sesame."}]' |
      astrocyte models update family model:mara-prefs --operations -
    """
    try:
        given = json.load(file)
    except ValueError as error:
        raise click.BadParameter(f"is not JSON: {error}", param_hint="--operations") from None
    request = UpdateMentalModel(bank, model_id, operations_of(given), atomic, etag)
    made = await session.backend.call(session.caller, request)
    if session.as_json:
        print_json(made)
        return
    click.echo(f"Revision {made.model.revision} of {model_id}: {len(made.applied_ops)} operations applied.")
    for one in made.skipped_ops:
        click.echo(f"Skipped operations[{one.index}] ({one.op}): {one.reason}", err=True)


@models.command("revisions")
@click.argument("bank")
@click.argument("model_id")
@operation
async def list_model_revisions(session: Session, /, bank: str, model_id: str) -> None:
    """List the revisions of the mental model MODEL_ID of BANK, newest first.

    \b
    astrocyte models revisions family model:mara-prefs
    """
    await print_revisions(session, lambda token: ListMentalModelRevisions(bank, model_id, page_token=token))
