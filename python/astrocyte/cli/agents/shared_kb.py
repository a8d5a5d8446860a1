"""Commands for shared knowledge: index a folder, search, list."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import click

from astrocyte.api.requests import GetSharedKbIndex, ListSharedKb, SearchSharedKb
from astrocyte.cli.connection import Session, operation
from astrocyte.cli.failures import ExitCode, explain
from astrocyte.cli.output import ERR, OUT, grid, print_json, progress_bar, stamp
from astrocyte.errors import AstrocyteError
from astrocyte.model import KbDocument
from astrocyte.shared_kb import DEFAULT_BANK, FolderIndexer, KbReport
from astrocyte.shared_kb.folder import FolderTooLargeError
from astrocyte.shared_kb.watch import watched

Body = TypeVar("Body", bound=Callable[..., object])
# Enough for a terminal; --json lists all.
SHOWN_FAILURES = 20
SHOWN_CHARS = 160

_BANK = click.option("--bank", default=DEFAULT_BANK, show_default=True, help="Bank of the documents.")


def _filtered(body: Body) -> Body:
    """Add the options that select documents."""
    kind = click.option("--type", "kind", default="", help="Only documents of this type, such as spec or adr.")
    status = click.option("--status", default="", help="Only documents of this status, such as approved.")
    return kind(status(click.option("--name", default="", help="Only documents of this folder.")(body)))


@click.group()
def kb() -> None:
    """Index folders of Markdown as knowledge that all agents share; search and list it.

    \b
    astrocyte kb index docs
    astrocyte kb search "which database do we use?" --type adr
    astrocyte kb list --type spec --status approved
    """


@kb.command("index")
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@_BANK
@click.option("--name", default="", help="Name of the folder in the bank.  [default: that of FOLDER]")
@click.option("--allow-empty", is_flag=True, help="Remove all documents of the folder if it has no file.")
@click.option("--watch", is_flag=True, help="Index again after each change, until interrupted.")
@click.option(
    "--interval",
    type=click.FloatRange(0.1, 3_600),
    default=2.0,
    show_default=True,
    help="Seconds between two looks of --watch.",
)
@operation
async def index(
    session: Session, /, folder: Path, bank: str, name: str, allow_empty: bool, watch: bool, interval: float
) -> None:
    """Make the documents of a bank equal to the Markdown files of FOLDER.

    \b
    astrocyte kb index docs
    astrocyte --server localhost:50051 kb index . --bank engineering --name backend --watch

    Unchanged files are not sent. Files that are gone are forgotten; renamed ones keep their memory. Symbolic links are
    not followed. The format of front matter is in docs/shared-kb.md.
    """
    if watch and allow_empty:
        raise click.UsageError("--watch and --allow-empty exclude each other")
    try:
        indexer = FolderIndexer(session.backend, session.caller, bank, folder, name)
        if not watch:
            report = await _indexed(indexer, allow_empty=allow_empty)
            _print(session, report)
            if report.failures:
                raise click.exceptions.Exit(ExitCode.PARTIAL)
            return
    except FolderTooLargeError as error:
        raise click.UsageError(str(error)) from None
    async for outcome in watched(indexer, interval):
        if isinstance(outcome, KbReport):
            _print(session, outcome)
        elif isinstance(outcome, AstrocyteError):
            click.echo(f"astrocyte: {explain(outcome)}", err=True)
        else:
            click.echo(f"astrocyte: {outcome}", err=True)


async def _indexed(indexer: FolderIndexer, *, allow_empty: bool) -> KbReport:
    with progress_bar() as bar:
        task = bar.add_task(f"Indexing {indexer.name}", total=None)

        def progress(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        return await indexer.run(progress, allow_empty=allow_empty)


def _print(session: Session, report: KbReport) -> None:
    if session.as_json:
        print_json(report)
        return
    for path, problem in list(report.failures.items())[:SHOWN_FAILURES]:
        click.echo(f"{path}: {problem}", err=True)
    if len(report.failures) > SHOWN_FAILURES:
        click.echo(f"and {len(report.failures) - SHOWN_FAILURES} more", err=True)
    names = ("created", "updated", "moved", "removed", "unchanged")
    counts = [f"{getattr(report, name)} {name}" for name in names]
    counts += [f"{len(found)} {name}" for name, found in (("ignored", report.ignored), ("failed", report.failures))]
    click.echo(", ".join(counts))


@kb.command("search")
@click.argument("query")
@_BANK
@_filtered
@click.option("-k", "--max-results", type=click.IntRange(1, 100), default=10, show_default=True, help="Documents.")
@operation
async def search(
    session: Session, /, query: str, bank: str, kind: str, status: str, name: str, max_results: int
) -> None:
    """Find the documents that are relevant to QUERY, each with its best passage.

    \b
    astrocyte kb search "which database do we use?" --type adr --status accepted
    """
    request = SearchSharedKb(bank, query, kind, status, name, max_results)
    found = await session.backend.call(session.caller, request)
    if session.as_json:
        print_json(found)
        return
    table = grid(("score", "document", "status", "path", "text"), right=("score",))
    for hit in found:
        text = " ".join(hit.text.split())
        shown = text if len(text) <= SHOWN_CHARS else f"{text[:SHOWN_CHARS]}…"
        document = hit.document
        table.add_row(f"{hit.score:.2f}", document.document_id or document.title, document.status, document.path, shown)
    OUT.print(table if found.hits else "No document is relevant.")


@kb.command("list")
@_BANK
@_filtered
@click.option("--markdown", is_flag=True, help="Print the index of the documents as Markdown.")
@operation
async def list_documents(session: Session, /, bank: str, kind: str, status: str, name: str, markdown: bool) -> None:
    """List the documents of a bank; --type component lists the components of the topology.

    \b
    astrocyte kb list --type spec --status approved
    astrocyte kb list --type component
    astrocyte kb list --markdown
    """
    if markdown:
        made = await session.backend.call(session.caller, GetSharedKbIndex(bank, kind, status, name))
        if session.as_json:
            print_json(made)
        else:
            click.echo(made.content, nl=False)
        if made.truncated:
            ERR.print(f"The index ends after {made.document_count} documents; name a type or a folder.", style="dim")
        return
    found: list[KbDocument] = []
    token = ""
    while True:
        request = ListSharedKb(bank, kind, status, name, page_token=token)
        page = await session.backend.call(session.caller, request)
        found.extend(page.documents)
        token = page.next_page_token
        if not token:
            break
    if session.as_json:
        print_json(found)
        return
    table = grid(("id", "type", "title", "status", "date", "depends on", "path", "updated"))
    for one in found:
        cells = (one.document_id, one.type, one.title, one.status, one.date, ", ".join(one.depends_on), one.path)
        table.add_row(*cells, stamp(one.updated_at))
    OUT.print(table if found else "There are no documents.")
