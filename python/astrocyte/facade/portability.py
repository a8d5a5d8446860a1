"""The part of the Python API that moves banks: export into a file, and import out of one."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from astrocyte.api import Backend
from astrocyte.api.requests import ExportBank
from astrocyte.facade import archives, keywords
from astrocyte.model import AstrocyteContext, ImportProgress, ImportResult, OnConflict


class Portability:
    """The calls of `Astrocyte` about archives. The files are this process's, also of a server's banks.

    A path must lie in one of ``allowed_roots``, or, without these, of ``ASTROCYTE_PORTABILITY_ROOTS``; links are
    followed first. Without either, ``allow_uncontained`` allows any path.
    """

    _backend: Backend

    async def export_bank(  # noqa: PLR0913 - the parameters of the specification
        self,
        bank_id: str,
        path: str | Path,
        *,
        include_embeddings: bool = False,
        include_entities: bool = True,
        include_versions: bool = True,
        include_grants: bool = False,
        include_graph: bool = False,
        include_observations: bool = False,
        include_mental_models: bool = False,
        include_directives: bool = False,
        include_wiki_pages: bool = False,
        resume: bool = False,
        allowed_roots: Sequence[str | Path] | None = None,
        allow_uncontained: bool = False,
        context: AstrocyteContext | None = None,
        progress_fn: Callable[[int, int], object] | None = None,
    ) -> int:
        """Export a bank into a file, an archive of JSON lines; returns the number of memories.

        Args:
            bank_id: The bank.
            path: The file; it appears, or is replaced, when it is complete.
            include_embeddings: Include the vectors, so that an import into a bank of the same model computes none.
            include_entities: Include the entities of memories.
            include_versions: Include the history of memories.
            include_grants: Include the grants on the bank that were made by call.
            include_graph: Include links, merges, names, aliases and metadata of entities that callers made.
            include_observations: Include the observations.
            include_mental_models: Include the mental models.
            include_directives: Include the directives.
            include_wiki_pages: Include the wiki pages.
            resume: Go on with an interrupted export to this path that had the same parts.
            allowed_roots: Folders in which the path may be.
            allow_uncontained: Allow any path, where no folder is named.
            context: Who calls.
            progress_fn: Called with the memories so far, and those in all.

        Raises:
            ValueError: The path is not allowed.
            BankNotFound: There is no such bank.
        """
        file = archives.contained(path, allowed_roots=allowed_roots, allow_uncontained=allow_uncontained)
        request = ExportBank(
            bank_id,
            include_embeddings=include_embeddings,
            omit_entities=not include_entities,
            omit_versions=not include_versions,
            include_grants=include_grants,
            include_graph=include_graph,
            include_observations=include_observations,
            include_mental_models=include_mental_models,
            include_directives=include_directives,
            include_wiki_pages=include_wiki_pages,
        )
        report = None if progress_fn is None else _counts(progress_fn)
        caller = keywords.caller_of(context)
        done = await archives.export_file(self._backend, caller, request, file, resume=resume, report=report)
        return done.memories

    async def import_bank(  # noqa: PLR0913 - the parameters of the specification
        self,
        bank_id: str,
        path: str | Path,
        *,
        on_conflict: OnConflict | str = OnConflict.SKIP,
        include_grants: bool = False,
        include_graph: bool = False,
        include_observations: bool = False,
        include_mental_models: bool = False,
        include_directives: bool = False,
        include_wiki_pages: bool = False,
        allowed_roots: Sequence[str | Path] | None = None,
        allow_uncontained: bool = False,
        context: AstrocyteContext | None = None,
        progress_fn: Callable[[int, int], object] | None = None,
    ) -> ImportResult:
        """Import an archive into a bank, which is made on first use.

        Nothing is stored before the whole archive has been verified. A repeated import skips what the bank has.

        Args:
            bank_id: The bank.
            path: The file.
            on_conflict: skip, overwrite or error, where the bank has a memory of the archive.
            include_grants: Give the grants of the archive.
            include_graph: Store its links, merges and fields of entities.
            include_observations: Store its observations.
            include_mental_models: Store its mental models.
            include_directives: Store its directives; the caller must be one that may write directives.
            include_wiki_pages: Store its wiki pages.
            allowed_roots: Folders in which the path may be.
            allow_uncontained: Allow any path, where no folder is named.
            context: Who calls.
            progress_fn: Called with the memories so far, and those in all; it may be a coroutine function.

        Raises:
            ValueError: The path is not allowed.
            ValidationError: The archive is truncated, was changed, or has another format.
            AccessDenied: Directives are asked for, and the caller may not write directives.
            AlreadyExists: ``on_conflict`` is error, and the bank has a memory of the archive.
        """
        file = archives.contained(path, allowed_roots=allowed_roots, allow_uncontained=allow_uncontained)
        action = keywords.choice(OnConflict, on_conflict, "on_conflict")
        wanted = {
            "grants": include_grants,
            "graph": include_graph,
            "observations": include_observations,
            "mental_models": include_mental_models,
            "directives": include_directives,
            "wiki_pages": include_wiki_pages,
        }
        return await archives.import_file(
            self._backend,
            keywords.caller_of(context),
            bank_id,
            file,
            on_conflict=action,
            sections=[part for part, is_wanted in wanted.items() if is_wanted],
            report=None if progress_fn is None else _states(progress_fn),
        )


def _counts(tell: Callable[[int, int], object]) -> Callable[[int, int], None]:
    def report(memories: int, total: int) -> None:
        tell(memories, total)

    return report


def _states(tell: Callable[[int, int], object]) -> Callable[[ImportProgress], Any]:
    async def report(state: ImportProgress) -> None:
        if state.total_memories:
            told = tell(state.memories, state.total_memories)
            if inspect.isawaitable(told):
                await told

    return report
