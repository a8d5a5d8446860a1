"""Commands for wiki pages: compile, list, show, search, revisions, lint, export."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import click
from rich.text import Text

from astrocyte.api.requests import CompileBank, GetPage, LintPages, ListPageRevisions, ListPages, SearchPages
from astrocyte.cli.connection import Session, operation
from astrocyte.cli.output import OUT, grid, print_json, stamp
from astrocyte.model import PAGE_LINK, KnowledgeRevision, PageFinding, WikiPage

# Characters of a page id that a file name of any system can have.
_NOT_IN_FILE = re.compile(r"[^A-Za-z0-9._@-]")
# The list of the pages in an export.
INDEX = "index.md"


@click.group()
def wiki() -> None:
    """Compile, read, search and examine wiki pages: what a bank knows by entity and tag.

    \b
    astrocyte wiki compile engineering
    astrocyte wiki list engineering
    astrocyte wiki show engineering topic:deployment
    """


@wiki.command("compile")
@click.argument("bank")
@click.option("--scope", default="", help="A tag, tag:TAG or entity:NAME.  [default: all topics]")
@click.option("--dry-run", is_flag=True, help="Count the pages that would change, and change none.")
@operation
async def compile_pages(session: Session, /, bank: str, scope: str, *, dry_run: bool) -> None:
    """Compile the pages of BANK whose memories changed.

    \b
    astrocyte wiki compile engineering --scope deployment
    """
    found = await session.backend.call(session.caller, CompileBank(bank, scope, validate_only=dry_run))
    if session.as_json:
        print_json(found)
        return
    click.echo(
        f"{found.scopes_compiled} topics: {found.pages_created} pages created, {found.pages_updated} updated, "
        f"{found.pages_unchanged} unchanged, {found.pages_deleted} deleted, {found.pages_held} held. "
        f"{found.noise_memories} memories belong to no topic."
    )
    if found.error:
        click.echo(found.error)


@wiki.command("list")
@click.argument("bank")
@click.option("--scope", default="", help="Only pages of this scope.")
@operation
async def list_pages(session: Session, /, bank: str, scope: str) -> None:
    """List the pages of BANK, oldest first.

    \b
    astrocyte wiki list engineering
    """
    found = await _pages(session, bank, scope)
    if session.as_json:
        print_json(found)
        return
    table = grid(("page", "title", "memories", "revision"))
    for one in found:
        revision = f"{one.revision}, {stamp(one.updated_at)}{', stale' if one.is_stale else ''}"
        table.add_row(one.page_id, Text(one.title), str(len(one.sources)), revision)
    OUT.print(table if found else "There are no pages.")


@wiki.command("show")
@click.argument("bank")
@click.argument("page_id")
@operation
async def show_page(session: Session, /, bank: str, page_id: str) -> None:
    """Print the page PAGE_ID of BANK as Markdown, with its links.

    \b
    astrocyte wiki show engineering topic:deployment
    """
    found = await session.backend.call(session.caller, GetPage(bank, page_id))
    if session.as_json:
        print_json(found)
    else:
        click.echo(_markdown(found))


@wiki.command("search")
@click.argument("bank")
@click.argument("query")
@click.option("--max-results", type=click.IntRange(1), default=10, show_default=True, help="Maximum number of pages.")
@operation
async def search_pages(session: Session, /, bank: str, query: str, max_results: int) -> None:
    """Print the pages of BANK that are relevant to QUERY, best first.

    \b
    astrocyte wiki search engineering "why did the deployment fail?"
    """
    found = await session.backend.call(session.caller, SearchPages(bank, query, max_results))
    if session.as_json:
        print_json(found)
        return
    for one in found:
        click.echo(f"{one.relevance:.2f}  {one.page_id}  {one.heading}\n{one.text}\n")
    if not found:
        click.echo("No page is relevant.")


@wiki.command("revisions")
@click.argument("bank")
@click.argument("page_id")
@operation
async def list_revisions(session: Session, /, bank: str, page_id: str) -> None:
    """List the revisions of the page PAGE_ID of BANK, newest first.

    \b
    astrocyte wiki revisions engineering topic:deployment
    """
    found: list[KnowledgeRevision] = []
    token = ""
    while True:
        page = await session.backend.call(session.caller, ListPageRevisions(bank, page_id, page_token=token))
        found.extend(page.revisions)
        token = page.next_page_token
        if not token:
            break
    if session.as_json:
        print_json(found)
        return
    table = grid(("revision", "time", "principal", "memories"))
    for one in found:
        table.add_row(str(one.revision), stamp(one.changed_at), one.changed_by, str(len(one.source_ids)))
    OUT.print(table)


@wiki.command("lint")
@click.argument("bank")
@operation
async def lint_pages(session: Session, /, bank: str) -> None:
    """Print the problems of the pages of BANK: stale pages, dead links, uncited text, single sources.

    \b
    astrocyte wiki lint engineering
    """
    found: list[PageFinding] = []
    examined, token = 0, ""
    while True:
        part = await session.backend.call(session.caller, LintPages(bank, page_token=token))
        found.extend(part.findings)
        examined += part.pages_examined
        token = part.next_page_token
        if not token:
            break
    if session.as_json:
        print_json(found)
        return
    for one in found:
        click.echo(f"{one.page_id}  {one.problem}  {one.detail}")
    click.echo(f"{len(found)} problems in {examined} pages.")


@wiki.command("export")
@click.argument("bank")
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@operation
async def export_pages(session: Session, /, bank: str, folder: Path) -> None:
    """Write the pages of BANK to FOLDER: a Markdown file with front matter for each, and index.md.

    Links lead to the files of the pages. Files of earlier exports stay.

    \b
    astrocyte wiki export engineering ./wiki
    """
    pages = await _pages(session, bank, "")
    written = _file_names([one.page_id for one in pages])
    titles = {one.title.casefold(): written[one.page_id] for one in reversed(pages)}
    ids = {page_id.casefold(): file for page_id, file in written.items()}
    for one in pages:
        page = await session.backend.call(session.caller, GetPage(bank, one.page_id))
        text = _linked(f"# {page.title}\n\n{page.content}", {**titles, **ids})
        see = [f"- [{_escaped(link.title)}]({written[link.page_id]})" for link in page.links if link.page_id in written]
        text = "\n\n".join([text, *(["## See also", "\n".join(see)] if see else [])])
        _write(folder / written[one.page_id], f"{_front_matter(page, written)}\n{text}\n")
    index = "\n".join(f"- [{_escaped(one.title)}]({written[one.page_id]})" for one in pages)
    _write(folder / INDEX, f"# {bank}\n\n{index}\n")
    if session.as_json:
        print_json(written)
    else:
        click.echo(f"Wrote {len(written)} pages to {folder}.")


def _file_names(page_ids: Sequence[str]) -> dict[str, str]:
    """A file name for each page; of pages whose ids look alike in one, the later ones have a number."""
    found: dict[str, str] = {}
    taken = {INDEX}
    for page_id in page_ids:
        stem = _NOT_IN_FILE.sub("-", page_id)
        name = f"{stem}.md"
        number = 2
        # Some file systems take no notice of case.
        while name.casefold() in taken:
            name, number = f"{stem}-{number}.md", number + 1
        taken.add(name.casefold())
        found[page_id] = name
    return found


def _linked(text: str, files: Mapping[str, str]) -> str:
    """A text whose links to pages lead to their files; those that lead to no page stay."""

    def link(match: re.Match[str]) -> str:
        name = match[1].strip()
        file = files.get(name.casefold())
        return match[0] if file is None else f"[{_escaped(match[2] or name)}]({file})"

    return PAGE_LINK.sub(link, text)


def _escaped(title: str) -> str:
    """A title as the text of a link."""
    return title.replace("[", r"\[").replace("]", r"\]")


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


async def _pages(session: Session, bank: str, scope: str) -> list[WikiPage]:
    """All pages, without links."""
    found: list[WikiPage] = []
    token = ""
    while True:
        part = await session.backend.call(session.caller, ListPages(bank, scope=scope, page_token=token))
        found.extend(part.pages)
        token = part.next_page_token
        if not token:
            return found


def _markdown(page: WikiPage) -> str:
    """A page with its title and its links."""
    links = [f"- [[{link.page_id}|{link.title}]]" for link in page.links]
    see = "\n\n## See also\n\n" + "\n".join(links) if links else ""
    return f"# {page.title}\n\n{page.content}{see}"


def _front_matter(page: WikiPage, files: Mapping[str, str]) -> str:
    """The front matter of a page. JSON strings are YAML strings."""
    fields = {
        "id": page.page_id,
        "title": page.title,
        "bank": page.bank_id,
        "kind": str(page.kind),
        "scope": page.scope,
        "writer": str(page.writer),
        "revision": page.revision,
        "updated": page.updated_at.isoformat(),
        "sources": list(page.source_ids),
        "links": [files[link.page_id] for link in page.links if link.page_id in files],
    }
    lines = [f"{name}: {json.dumps(value, ensure_ascii=False)}" for name, value in fields.items()]
    return "\n".join(("---", *lines, "---", ""))
