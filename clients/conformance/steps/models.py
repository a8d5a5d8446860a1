"""Steps on mental models."""

from __future__ import annotations

from conformance.steps.step import failed, step

PEOPLE = {"bankId": "people"}
ALICE = {**PEOPLE, "modelId": "model:alice"}
SECTION = {
    "heading": "Work",
    "level": 2,
    "blocks": [
        {"kind": "BLOCK_KIND_PARAGRAPH", "text": "Alice works at Initech.", "sourceIds": ["{works}"]},
        {"kind": "BLOCK_KIND_BULLET_LIST", "items": ["Monday", "Friday"]},
    ],
}
MODEL_STEPS = (
    step(
        "CreateMentalModel",
        {**ALICE, "name": "Alice", "sections": [SECTION]},
        expect={"responses.0.model.sections.0.sectionId": "work", "responses.0.model.revision": 1},
        save={"model": "model.etag"},
    ),
    step("CreateMentalModel", {**ALICE, "name": "Alice", "content": "x"}, expect=failed("AlreadyExists")),
    step(
        "UpdateMentalModel",
        {
            **ALICE,
            "etag": "{model}",
            "operations": [
                {
                    "op": "replace_block",
                    "sectionId": "work",
                    "blockIndex": 0,
                    "block": {"kind": "BLOCK_KIND_PARAGRAPH", "text": "Alice leads a team."},
                },
                {"op": "remove_section", "sectionId": "none"},
            ],
        },
        expect={"responses.0.appliedOps.0.op": "replace_block", "responses.0.skippedOps.0.index": 1},
    ),
    step("GetMentalModel", ALICE, expect={"responses.0.model.sections.0.blocks.0.text": "Alice leads a team."}),
    step("GetMentalModel", {**PEOPLE, "modelId": "model:none"}, expect=failed("NotFound", code=5)),
    step(
        "RefreshMentalModel",
        {**ALICE, "content": "## Travel\n\nAlice was in Porto.", "sourceIds": ["{met}"]},
        expect={"responses.0.model.sources.0.memoryId": "{met}", "responses.0.model.revision": 3},
    ),
    step(
        "ListMentalModels",
        {**PEOPLE, "scope": "bank"},
        expect={"responses.0.models.0.modelId": "model:alice", "responses.0.nextPageToken": None},
    ),
    step("ListMentalModelRevisions", ALICE, expect={"responses.0.revisions.2.revision": 1}),
    step(
        "GetMentalModelRevision",
        {**ALICE, "revision": 1},
        expect={"responses.0.modelRevision.cause": "REVISION_CAUSE_CREATED"},
    ),
    step(
        "DiffMentalModelRevisions",
        {**ALICE, "fromRevision": 2, "toRevision": 3},
        expect={"responses.0.sectionsAdded.0": "travel", "responses.0.sectionsRemoved.0": "work"},
    ),
    step("DeleteMentalModel", ALICE, expect={"responses.0.deleted": True}),
    step("GetMentalModel", ALICE, expect=failed("NotFound", code=5)),
    step("UndeleteMentalModel", ALICE, expect={"responses.0.model.name": "Alice"}),
)
