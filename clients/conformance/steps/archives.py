"""Steps on archives: export of a bank, and import into another."""

from __future__ import annotations

from conformance.steps.step import failed, step

ALL = {"includeGraph": True, "includeMentalModels": True, "includeWikiPages": True}
ARCHIVE_STEPS = (
    step(
        "ExportBank",
        {"bankId": "people", "includeEmbeddings": True, **ALL},
        expect={"error": None},
        save={"archive": "data"},
    ),
    step("ExportBank", {"bankId": "nobody"}, expect=failed("BankNotFound", code=5)),
    step(
        "ImportBank",
        {"bankId": "copy", **ALL, "data": "{archive}"},
        expect={"responses.-1.result.imported": "2", "responses.-1.result.mentalModels": "1"},
    ),
    step(
        "ImportBank",
        {"bankId": "copy", "onConflict": "ON_CONFLICT_SKIP"},
        {"data": "{archive}"},
        expect={"responses.-1.result.imported": None, "responses.-1.result.skipped": "2"},
    ),
    step(
        "ImportBank",
        # The base64 of two lines that are no archive.
        {"bankId": "copy", "data": "eyJfYW1hIjp0cnVlfQp7fQo="},
        expect=failed("InvalidArgument", code=3),
    ),
    step("ListMemories", {"bankId": "copy"}, expect={"responses.0.totalSize": 2}),
)
