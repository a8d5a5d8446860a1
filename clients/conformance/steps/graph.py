"""Steps on the entity graph."""

from __future__ import annotations

from conformance.steps.step import failed, step

PEOPLE = {"bankId": "people"}
ALICE, BOB, INITECH = "person:alice-smith", "person:bob-miller", "organization:initech"
MENTORS = {"entityA": ALICE, "entityB": BOB, "linkType": "mentors", "evidence": "She says so.", "confidence": 0.5}
GRAPH_STEPS = (
    step(
        "Retain",
        {**PEOPLE, "content": "Alice Smith works at Initech.", "tags": ["work"]},
        expect={"responses.0.stored": True},
        save={"works": "memoryId"},
    ),
    step(
        "Retain",
        {**PEOPLE, "content": "Alice Smith met Bob Miller in Porto.", "tags": ["travel"]},
        expect={"responses.0.stored": True},
        save={"met": "memoryId"},
    ),
    step("SearchEntities", {**PEOPLE, "query": "Alice", "limit": 5}, expect={"responses.0.entities.0.id": ALICE}),
    step("SearchEntities", {**PEOPLE, "query": ""}, expect=failed("InvalidArgument", field="query")),
    step(
        "GetEntity",
        {**PEOPLE, "entityId": ALICE},
        expect={"responses.0.entity.name": "Alice Smith", "responses.0.entity.mentionCount": "2"},
        save={"alice": "entity.etag"},
    ),
    step("GetEntity", {**PEOPLE, "entityId": "person:nobody"}, expect=failed("NotFound", code=5)),
    step(
        "ListEntities",
        {**PEOPLE, "pageSize": 1, "entityType": "PERSON"},
        expect={"responses.0.entities.0.entityType": "PERSON", "responses.0.entities.1": None},
        save={"entities": "nextPageToken"},
    ),
    step(
        "ListEntities",
        {**PEOPLE, "pageSize": 1, "entityType": "PERSON", "pageToken": "{entities}"},
        expect={"responses.0.entities.0.entityType": "PERSON", "responses.0.nextPageToken": None},
    ),
    step(
        "CreateEntityLink",
        {**PEOPLE, "links": [{**MENTORS, "metadata": {"since": {"intValue": "2019"}}}]},
        expect={"responses.0.links.0.origin": "LINK_ORIGIN_CALLER", "responses.0.links.0.confidence": 0.5},
        save={"link": "links.0.linkId"},
    ),
    step(
        "CreateEntityLink",
        {**PEOPLE, "links": [{**MENTORS, "confidence": 1.5}]},
        expect=failed("InvalidArgument", field="links[0].confidence"),
    ),
    step(
        "Neighbors",
        {**PEOPLE, "entityIds": [BOB], "maxDepth": 1, "linkTypes": ["mentors"]},
        expect={"responses.0.entities.1.entity.id": ALICE, "responses.0.entities.1.via.linkId": "{link}"},
    ),
    step(
        "FindPath",
        {**PEOPLE, "sourceId": BOB, "targetId": ALICE, "maxDepth": 3},
        expect={"responses.0.paths.0.entities.0.id": BOB},
    ),
    step(
        "UpdateEntity",
        {**PEOPLE, "entityId": ALICE, "aliases": ["Ally"], "updateMask": "aliases", "etag": "{alice}"},
        expect={"responses.0.entity.aliases.0": "Ally"},
    ),
    step(
        "UpdateEntity",
        {**PEOPLE, "entityId": ALICE, "aliases": ["Al"], "updateMask": "aliases", "etag": "{alice}"},
        expect=failed("EtagMismatch", code=10),
    ),
    step(
        "MergeEntities",
        {**PEOPLE, "entityIds": [BOB], "intoId": ALICE, "reason": "the same"},
        expect={"responses.0.entity.mergedIds.0": BOB},
    ),
    step("SplitEntity", {**PEOPLE, "entityId": BOB, "reason": "not so"}, expect={"responses.0.entity.id": BOB}),
    step("DeleteEntityLink", {**PEOPLE, "linkId": "{link}"}, expect={"responses.0.linkId": "{link}"}),
    step("GetGraphStats", PEOPLE, expect={"error": None}),
    step("ExportGraph", {**PEOPLE, "format": "GRAPH_FORMAT_GRAPHML"}, expect={"error": None}),
    step("RebuildGraph", PEOPLE, expect={"error": None}),
)
