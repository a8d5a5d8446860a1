"""Commands for canonical terms."""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Mapping
from pathlib import Path

import click

from astrocyte.api.requests import ListTerms, LookupTerm, ProposeTerm, ReviewTerm
from astrocyte.cli.connection import Session, operation
from astrocyte.cli.output import ERR, OUT, grid, print_json, stamp
from astrocyte.model import Term, TermDecision, TermStatus
from astrocyte.shared_kb.folder import SUFFIXES
from astrocyte.shared_kb.front_matter import FrontMatterError
from astrocyte.shared_kb.glossary import GlossaryEntry, entries_of

# A glossary, not a data set.
MOST_GLOSSARY_BYTES = 8 << 20


@click.group()
def terms() -> None:
    """Look up, propose, review, list and import canonical terms.

    \b
    astrocyte terms propose "deploy window" --alias "release window"
    astrocyte terms list --status proposed
    astrocyte terms review term_0123456789abcdef0123456789abcdef approve
    astrocyte terms lookup "release windows"
    """


@terms.command("lookup")
@click.argument("text")
@operation
async def lookup(session: Session, /, text: str) -> None:
    """Find the canonical term of TEXT: by name, alias, word stems or similar spelling.

    \b
    astrocyte terms lookup "release windows"
    """
    found = await session.backend.call(session.caller, LookupTerm(text))
    if session.as_json:
        print_json(found)
    elif found.term is None:
        click.echo("There is no canonical term.")
    else:
        click.echo(f"{found.term.name} ({found.match}, {found.similarity:.2f})")


@terms.command("propose")
@click.argument("name")
@click.option("--alias", "aliases", multiple=True, help="Other name; may be repeated.")
@click.option("--definition", default="", help="Definition.")
@click.option("--memory-id", help="Agent memory that uses it, as provenance for the review.")
@operation
async def propose(
    session: Session, /, name: str, aliases: tuple[str, ...], definition: str, memory_id: str | None
) -> None:
    """Queue NAME for review.

    \b
    astrocyte terms propose "deploy window" --alias "release window" --definition "Hours in which we deploy"
    """
    term = await session.backend.call(session.caller, ProposeTerm(name, aliases, definition, memory_id))
    if session.as_json:
        print_json(term)
    else:
        click.echo(f"{term.term_id} {term.status}")


@terms.command("review")
@click.argument("term_id")
@click.argument("decision", type=click.Choice([str(one) for one in TermDecision]))
@click.option("--into", "merge_into", help="Approved term of a merge.")
@operation
async def review(session: Session, /, term_id: str, decision: str, merge_into: str | None) -> None:
    """Approve or reject TERM_ID, or merge it into an approved term.

    \b
    astrocyte terms review term_0123456789abcdef0123456789abcdef approve
    astrocyte terms review term_0123456789abcdef0123456789abcdef merge --into term_fedcba9876543210fedcba9876543210
    """
    term = await session.backend.call(session.caller, ReviewTerm(term_id, TermDecision(decision), merge_into))
    if session.as_json:
        print_json(term)
    else:
        click.echo(f"{term.name} is {term.status}.")


@terms.command("list")
@click.option("--status", type=click.Choice([str(one) for one in TermStatus]), help="Only terms of this status.")
@operation
async def list_terms(session: Session, /, status: str | None) -> None:
    """List terms, oldest first.

    \b
    astrocyte terms list --status proposed
    """
    found = await _all_terms(session, None if status is None else TermStatus(status))
    if session.as_json:
        print_json(found)
        return
    table = grid(("term", "name", "aliases", "status", "proposals", "memories", "since"), right=("proposals",))
    for term in found:
        texts = (term.term_id, term.name, ", ".join(term.aliases), str(term.status), str(term.proposals))
        table.add_row(*texts, "\n".join(term.memory_ids), stamp(term.created_at))
    OUT.print(table if found else "There are no terms.")


@terms.command("import")
@click.argument("path", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@operation
async def import_terms(session: Session, /, path: Path) -> None:
    """Propose and approve the terms of PATH: a CSV file, or a glossary in Markdown.

    The columns are term, definition and aliases; several aliases are separated by semicolons. A glossary in Markdown
    has them in tables, or in lists as **term**: definition. Terms that are approved already stay as they are.

    \b
    astrocyte terms import glossary.csv
    astrocyte terms import docs/GLOSSARY.md
    """
    digest, entries = _read(path)
    approved = skipped = 0
    for number, entry in enumerate(entries, start=1):
        # With a request id, an import that was interrupted can be run again.
        request = ProposeTerm(entry.name, entry.aliases, entry.definition, request_id=f"terms-import-{digest}-{number}")
        term = await session.backend.call(session.caller, request)
        if term.status is TermStatus.PROPOSED:
            await session.backend.call(session.caller, ReviewTerm(term.term_id, TermDecision.APPROVE))
            approved += 1
        else:
            skipped += 1
    if session.as_json:
        print_json({"approved": approved, "skipped": skipped})
    else:
        ERR.print(f"{approved} terms approved, {skipped} left as they were", style="dim")


def _read(path: Path) -> tuple[str, tuple[GlossaryEntry, ...]]:
    """The digest and the terms of a glossary."""
    size = path.stat().st_size
    if size > MOST_GLOSSARY_BYTES:
        raise click.BadParameter(f"has {size:,} bytes, the limit is {MOST_GLOSSARY_BYTES:,}", param_hint="PATH")
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise click.BadParameter(f"is not UTF-8, by its byte {error.start:,}", param_hint="PATH") from None
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    if path.suffix.lower() in SUFFIXES:
        return digest, _of_markdown(text)
    rows = csv.DictReader(text.splitlines())
    if "term" not in (rows.fieldnames or ()):
        columns = ", ".join(rows.fieldnames or ()) or "none"
        raise click.BadParameter(f"expected a column term, got {columns}", param_hint="PATH")
    return digest, tuple(map(_of_row, rows))


def _of_markdown(text: str) -> tuple[GlossaryEntry, ...]:
    try:
        entries = entries_of(text)
    except FrontMatterError as error:
        raise click.BadParameter(str(error), param_hint="PATH") from None
    if not entries:
        raise click.BadParameter(
            "has no term: expected a table with the columns term and definition, or a list of **term**: definition",
            param_hint="PATH",
        )
    return entries


def _of_row(row: Mapping[str, str | None]) -> GlossaryEntry:
    aliases = [alias.strip() for alias in (row.get("aliases") or "").split(";") if alias.strip()]
    return GlossaryEntry((row["term"] or "").strip(), (row.get("definition") or "").strip(), tuple(aliases))


async def _all_terms(session: Session, status: TermStatus | None) -> list[Term]:
    found: list[Term] = []
    token = ""
    while True:
        page = await session.backend.call(session.caller, ListTerms(status, page_token=token))
        found.extend(page.terms)
        token = page.next_page_token
        if not token:
            return found
