"""Command ``astrocyte export``: writes a bank into a file."""

from __future__ import annotations

from pathlib import Path

import click

from astrocyte.api.requests import ExportBank
from astrocyte.cli.connection import Session, operation
from astrocyte.cli.output import megabytes, print_json, progress_bar
from astrocyte.facade.archives import PARTIAL_SUFFIX, export_file


@click.command("export")
@click.argument("bank")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--embeddings", is_flag=True, help="Include the vectors: an import into the same model computes none.")
@click.option("--no-entities", is_flag=True, help="Leave out entities.")
@click.option("--no-versions", is_flag=True, help="Leave out all versions but the last of each memory.")
@click.option("--no-forgotten", is_flag=True, help="Leave out the ids of forgotten memories.")
@click.option("--grants", is_flag=True, help="Include the grants on the bank that were made by call.")
@click.option("--graph", is_flag=True, help="Include links, merges, names and metadata of entities made by callers.")
@click.option("--observations", is_flag=True, help="Include the observations.")
@click.option("--mental-models", is_flag=True, help="Include the mental models.")
@click.option("--directives", is_flag=True, help="Include the directives.")
@click.option("--wiki-pages", is_flag=True, help="Include the wiki pages.")
@click.option("--resume", is_flag=True, help="Go on with an interrupted export to the same file.")
@click.option("--force", is_flag=True, help="Replace an existing file.")
@operation
async def export_bank(
    session: Session,
    /,
    bank: str,
    file: Path,
    embeddings: bool,
    no_entities: bool,
    no_versions: bool,
    no_forgotten: bool,
    grants: bool,
    graph: bool,
    observations: bool,
    mental_models: bool,
    directives: bool,
    wiki_pages: bool,
    resume: bool,
    force: bool,
) -> None:
    """Export BANK into FILE, an archive of JSON lines with a checksum (docs/export-import.md).

    \b
    astrocyte export family family.ama.jsonl --embeddings
    astrocyte --server localhost:50051 export family family.ama.jsonl
    astrocyte import other family.ama.jsonl

    The archive shows the bank as it was when the export began, with the history of each memory. The content of
    forgotten memories is in no archive. FILE appears when it is complete; until then its name ends with .partial, from
    which --resume goes on after an interruption.
    """
    _check_free(file, force=force)
    request = ExportBank(
        bank,
        include_embeddings=embeddings,
        omit_entities=no_entities,
        omit_versions=no_versions,
        omit_forgotten=no_forgotten,
        include_grants=grants,
        include_graph=graph,
        include_observations=observations,
        include_mental_models=mental_models,
        include_directives=directives,
        include_wiki_pages=wiki_pages,
    )
    with progress_bar() as bar:
        task = bar.add_task(f"Exporting {bank}", total=None)
        try:
            done = await export_file(
                session.backend,
                session.caller,
                request,
                file,
                resume=resume,
                report=lambda memories, total: bar.update(task, completed=memories, total=total or None),
            )
        except OSError as error:
            raise click.ClickException(f"{file}{PARTIAL_SUFFIX} cannot be written: {error.strerror}") from error
    if session.as_json:
        print_json({"file": str(file), "memories": done.memories, "bytes": done.bytes})
    else:
        click.echo(f"{done.memories} memories, {megabytes(done.bytes)}: {file}")


def _check_free(file: Path, *, force: bool) -> None:
    if file.exists() and not force:
        raise click.UsageError(f"{file} exists; choose another name, or pass --force to replace it")
