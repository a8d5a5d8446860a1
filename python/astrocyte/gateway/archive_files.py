"""Archives as files of the server: `POST /v1/export` and `POST /v1/import`.

The files are in the folders of ``ASTROCYTE_PORTABILITY_ROOTS``; without these the paths refuse every request. A tenant
other than the default one has a folder of its own there, and nobody else gets into it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any
from urllib.parse import quote

from astrocyte.api import Backend
from astrocyte.api.requests import OPTIONAL_PARTS, ExportBank, ListGrants
from astrocyte.config.interfaces.portability import portability_roots
from astrocyte.errors import ValidationError
from astrocyte.facade.archives import contained, export_file, import_file
from astrocyte.gateway.failures import HttpError
from astrocyte.gateway.reading import SHOWN_NAME_CHARS
from astrocyte.gateway.requests import parse
from astrocyte.model import DEFAULT_TENANT, Caller, OnConflict

EXPORT, IMPORT = "/v1/export", "/v1/import"
# Folder of a tenant below each root, before its name.
TENANT_FOLDER = "tenant="
UNPROCESSABLE = 422
# Of a path or an id; the systems that servers run on allow no longer paths.
MOST_CHARS = 4_096
_FLAGS = {
    EXPORT: {
        "include_embeddings": False,
        "include_entities": True,
        "include_versions": True,
        "include_forgotten": True,
        **{f"include_{part}": False for part in OPTIONAL_PARTS},
        "resume": False,
    },
    IMPORT: {f"include_{part}": False for part in OPTIONAL_PARTS},
}
_TEXTS: Mapping[str, tuple[str, ...]] = {EXPORT: ("bank_id", "path"), IMPORT: ("bank_id", "path", "on_conflict")}
_REQUIRED = ("bank_id", "path")

# The result of a request, as a value of JSON.
Work = Callable[[Caller, bytes], Awaitable[Any]]


class ArchiveFiles:
    """Answers requests for files of archives.

    Args:
        backend: Answers exports and imports.
    """

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self.paths: Mapping[str, Work] = {EXPORT: self.export_bank, IMPORT: self.import_bank}

    async def export_bank(self, caller: Caller, body: bytes) -> Any:  # noqa: ANN401 - a value of JSON
        """Export a bank into a file.

        Raises:
            ValidationError: The body is wrong; ``field`` has the key.
            AccessDenied: The caller does not administer all banks, or may not read this one.
            HttpError: The path is not allowed, or the file cannot be written.
        """
        texts, flags = _read(EXPORT, body)
        file = await self._file(caller, texts["path"])
        optional: dict[str, Any] = {f"include_{part}": flags[f"include_{part}"] for part in OPTIONAL_PARTS}
        request = ExportBank(
            texts["bank_id"],
            include_embeddings=flags["include_embeddings"],
            omit_entities=not flags["include_entities"],
            omit_versions=not flags["include_versions"],
            omit_forgotten=not flags["include_forgotten"],
            **optional,
        )
        try:
            done = await export_file(self._backend, caller, request, file, resume=flags["resume"])
        except OSError as error:
            raise _unusable(error) from error
        return {"bank_id": request.bank_id, "path": texts["path"], "memories": done.memories, "bytes": done.bytes}

    async def import_bank(self, caller: Caller, body: bytes) -> Any:  # noqa: ANN401 - a value of JSON
        """Import a file into a bank; raises as `export_bank`."""
        texts, flags = _read(IMPORT, body)
        try:
            action = OnConflict(texts.get("on_conflict", OnConflict.SKIP))
        except ValueError:
            raise ValidationError(f"expected one of {', '.join(OnConflict)}", field="on_conflict") from None
        file = await self._file(caller, texts["path"])
        if not file.is_file():
            raise HttpError(UNPROCESSABLE, "path_not_usable", "there is no such file in the folders for archives")
        sections = [part for part in OPTIONAL_PARTS if flags[f"include_{part}"]]
        try:
            result = await import_file(
                self._backend, caller, texts["bank_id"], file, on_conflict=action, sections=sections
            )
        except OSError as error:
            raise _unusable(error) from error
        return asdict(result)

    async def _file(self, caller: Caller, path: str) -> Path:
        """The file of a path that the caller may name.

        The folders have the archives of all banks of a tenant, so that only those who administer all banks see one.
        """
        await self._backend.call(caller, ListGrants(page_size=1))
        roots = portability_roots()
        own = f"{TENANT_FOLDER}{quote(caller.tenant, safe='')}"
        if caller.tenant != DEFAULT_TENANT:
            roots = [str(Path(root) / own) for root in roots]
        try:
            file = contained(path, allowed_roots=roots or None)
        except (ValueError, OSError) as error:
            raise HttpError(UNPROCESSABLE, "path_not_allowed", str(error)) from None
        if caller.tenant == DEFAULT_TENANT and any(part.startswith(TENANT_FOLDER) for part in file.parts):
            raise HttpError(UNPROCESSABLE, "path_not_allowed", "path: the folder belongs to another tenant")
        return file


def _read(path: str, body: bytes) -> tuple[dict[str, str], dict[str, bool]]:
    """The texts and the flags of a body."""
    values = parse(body)
    if not isinstance(values, dict):
        raise ValidationError("the body must be an object", field="request")
    texts: dict[str, str] = {}
    flags = dict(_FLAGS[path])
    for name, value in values.items():
        if name in flags:
            if not isinstance(value, bool):
                raise ValidationError(f"expected true or false, got {type(value).__name__}", field=name)
            flags[name] = value
        elif name in _TEXTS[path]:
            if not isinstance(value, str) or not 0 < len(value) <= MOST_CHARS:
                raise ValidationError(f"expected a text of 1 to {MOST_CHARS:,} characters", field=name)
            texts[name] = value
        else:
            known = ", ".join((*_TEXTS[path], *flags))
            raise ValidationError(
                f"is no field of this request; it has {known}", field=ascii(name)[1:-1][:SHOWN_NAME_CHARS]
            )
    for name in _REQUIRED:
        if name not in texts:
            raise ValidationError("is missing", field=name)
    return texts, flags


def _unusable(error: OSError) -> HttpError:
    return HttpError(UNPROCESSABLE, "path_not_usable", f"the file cannot be used: {error.strerror}")


def operations() -> dict[str, Any]:
    """The operations of these paths in the OpenAPI document."""
    return {
        EXPORT: {"post": _operation(EXPORT, "ExportFile", "Export a bank into a file of the server")},
        IMPORT: {"post": _operation(IMPORT, "ImportFile", "Import a file of the server into a bank")},
    }


def _operation(path: str, name: str, summary: str) -> dict[str, Any]:
    properties: dict[str, Any] = {text: {"type": "string"} for text in _TEXTS[path]}
    properties |= {flag: {"type": "boolean", "default": default} for flag, default in _FLAGS[path].items()}
    if path == IMPORT:
        properties["on_conflict"]["enum"] = list(OnConflict)
    answer = {"type": "object"}
    schema = {
        "type": "object",
        "required": list(_REQUIRED),
        "properties": properties,
        "additionalProperties": False,
    }
    return {
        "operationId": name,
        "tags": ["AdminService"],
        "summary": summary,
        "description": f"{summary}. Needs admin in all banks. See docs/rest.md for the folders.",
        "parameters": [],
        "requestBody": {"required": True, "content": {"application/json": {"schema": schema}}},
        "responses": {
            "200": {"description": "The counts.", "content": {"application/json": {"schema": answer}}},
            "default": {"$ref": "#/components/responses/Error"},
        },
    }
