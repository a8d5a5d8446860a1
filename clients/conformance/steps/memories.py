"""Steps on banks, memories and holds."""

from __future__ import annotations

from conformance.steps.step import failed, step

# A time before all others, which comes back as it was sent.
SAILED = "2019-07-12T08:30:00Z"
NOBODY = "mem_" + "0" * 32
FAMILY = {"bankId": "family"}
MEMORY_STEPS = (
    step("GetServerInfo", {}, expect={"responses.0.serverInfo.version": "0.1.0"}),
    step("CreateBank", {**FAMILY, "displayName": "Family"}, expect={"responses.0.bank.bankId": "family"}),
    step("CreateBank", FAMILY, expect=failed("AlreadyExists", reason="ALREADY_EXISTS", metadata={"bank_id": "family"})),
    step("GetBank", FAMILY, expect={"responses.0.bank.displayName": "Family"}),
    step("GetBank", {"bankId": "nobody"}, expect=failed("BankNotFound", metadata={"bank_id": "nobody"}, code=5)),
    step(
        "UpdateBank",
        {**FAMILY, "displayName": "Our family", "updateMask": "displayName"},
        expect={"responses.0.bank.displayName": "Our family"},
    ),
    step("ListBanks", {}, expect={"responses.0.banks.0.bankId": "family"}),
    step(
        "Retain",
        {
            **FAMILY,
            "content": "Mara is allergic to sesame, not to nuts.",
            "tags": ["health"],
            "metadata": {"source_page": {"intValue": "7"}, "checked": {"boolValue": True}},
            "occurredAt": SAILED,
        },
        expect={"responses.0.stored": True, "responses.0.retentionAction": "RETENTION_ACTION_CREATED"},
        save={"allergy": "memoryId"},
    ),
    step(
        "Retain",
        {**FAMILY, "content": "Mara is allergic to sesame, not to nuts.", "occurredAt": SAILED},
        expect={"responses.0.deduplicated": True, "responses.0.memoryId": "{allergy}"},
    ),
    step("Retain", FAMILY, expect=failed("InvalidArgument", field="content", code=3)),
    step(
        "Retain",
        {
            **FAMILY,
            "content": "Freya marries Anders on the 21st of June.",
            "requestId": "wedding-1",
            "tags": ["wedding"],
        },
        expect={"responses.0.stored": True},
        save={"wedding": "memoryId"},
    ),
    step(
        "Retain",
        {**FAMILY, "content": "Freya marries Bo.", "requestId": "wedding-1"},
        expect=failed("RequestIdReused", code=10),
    ),
    step("Retain", {**FAMILY, "content": "Only a check.", "validateOnly": True}, expect={"responses.0.memoryId": None}),
    step(
        "BatchRetain",
        {
            **FAMILY,
            "items": [
                {"content": "We sail to Orkney in July.", "speaker": "Callum"},
                {"content": "The cat eats fish."},
            ],
        },
        expect={"responses.0.results.1.stored": True},
        save={"orkney": "results.0.memoryId"},
    ),
    step(
        "StreamRetain",
        {"sequence": 1, **FAMILY, "item": {"content": "Ines lives in Porto."}},
        {"sequence": 2, "item": {}},
        {"sequence": 3, "item": {"content": "Callum lives in Edinburgh.", "tags": ["home"]}},
        expect={"responses.0.result.stored": True, "responses.1.error.code": 3, "responses.2.result.stored": True},
    ),
    step(
        "Recall",
        {**FAMILY, "query": "what is Mara allergic to?", "maxResults": 3},
        expect={"responses.0.hits.0.memoryId": "{allergy}", "responses.0.hits.0.occurredAt": SAILED},
    ),
    step(
        "Recall",
        {**FAMILY, "query": "who marries?", "tags": ["wedding"], "tagMatch": "TAG_MATCH_ALL", "includeTrace": False},
        expect={"responses.0.hits.0.memoryId": "{wedding}", "responses.0.trace": None},
    ),
    step("Recall", {"bankId": "nobody", "query": "anything?"}, expect=failed("BankNotFound", reason="BANK_NOT_FOUND")),
    step(
        "Recall",
        {**FAMILY, "query": "anything?", "maxResults": 1000},
        expect=failed("InvalidArgument", field="max_results"),
    ),
    step(
        "BatchRecall",
        {"queries": [{**FAMILY, "query": "Orkney"}, {**FAMILY, "query": "Porto", "maxResults": 1}]},
        expect={"responses.0.results.0.hits.0.memoryId": "{orkney}"},
    ),
    step("History", {**FAMILY, "query": "allergy", "asOf": "2019-01-01T00:00:00Z"}, expect={"responses.0.hits": None}),
    step(
        "Explain",
        {"recall": {**FAMILY, "query": "Mara", "maxResults": 1}, "memoryIds": ["{allergy}", NOBODY]},
        expect={
            "responses.0.explanations.0.stage": "EXPLAIN_STAGE_RETURNED",
            "responses.0.explanations.1.stage": "EXPLAIN_STAGE_NOT_FOUND",
        },
    ),
    step(
        "GetMemory",
        {**FAMILY, "memoryId": "{allergy}"},
        expect={"responses.0.memory.metadata.checked.boolValue": True, "responses.0.memory.version": 1},
        save={"etag": "memory.etag"},
    ),
    step(
        "GetMemory",
        {**FAMILY, "memoryId": NOBODY},
        expect=failed("MemoryNotFound", metadata={"memory_id": NOBODY, "bank_id": "family"}),
    ),
    step(
        "ListMemories",
        {**FAMILY, "pageSize": 4},
        expect={"responses.0.totalSize": 6, "responses.0.memories.0.memoryId": "{allergy}"},
        save={"page": "nextPageToken"},
    ),
    step("ListMemories", {**FAMILY, "pageSize": 4, "pageToken": "{page}"}, expect={"responses.0.nextPageToken": None}),
    step(
        "UpdateMemory",
        {
            **FAMILY,
            "memoryId": "{allergy}",
            "content": "Mara can eat everything.",
            "updateMask": "content",
            "etag": "{etag}",
        },
        expect={"responses.0.memory.version": 2},
    ),
    step(
        "UpdateMemory",
        {**FAMILY, "memoryId": "{allergy}", "content": "Mara is away.", "updateMask": "content", "etag": "{etag}"},
        expect=failed("EtagMismatch", code=10),
    ),
    step(
        "Reflect",
        {**FAMILY, "query": "Where does Ines live?", "mode": "REFLECT_MODE_EXTRACTIVE"},
        expect={"responses.0.mode": "REFLECT_MODE_EXTRACTIVE", "responses.0.abstained": None},
    ),
    step(
        "Watch",
        {**FAMILY, "afterPosition": 0},
        expect={"responses.0.change.kind": "CHANGE_KIND_CREATED", "responses.1.change.position": "2"},
        options={"take": 2},
    ),
    step("Watch", {**FAMILY, "afterPosition": 999}, expect=failed("InvalidArgument", field="after_position")),
    step(
        "Forget",
        {**FAMILY, "tags": ["home"], "dryRun": True, "reason": "moved"},
        expect={"responses.0.dryRun": True, "responses.0.deletedCount": "1"},
    ),
    step("Forget", {**FAMILY, "memoryIds": ["{wedding}"]}, expect={"responses.0.memoryIds.0": "{wedding}"}),
    step("UndeleteMemory", {**FAMILY, "memoryId": "{wedding}"}, expect={"responses.0.memory.memoryId": "{wedding}"}),
    step("PlaceHold", {**FAMILY, "holdId": "case-1", "reason": "a case"}, expect={"responses.0.hold.holdId": "case-1"}),
    step(
        "Forget",
        {**FAMILY, "scope": "FORGET_SCOPE_ALL"},
        expect=failed("LegalHoldActive", metadata={"bank_id": "family", "hold_ids": "case-1"}),
    ),
    step("ReleaseHold", {**FAMILY, "holdId": "case-1"}, expect={"responses.0.hold.holdId": "case-1"}),
    step(
        "GetOperation",
        {**FAMILY, "operationId": "op-1"},
        expect=failed("NotFound", code=5),
        options={"headers": {"x-request-id": "conformance-1"}},
    ),
    step(
        "Forget",
        {**FAMILY, "memoryIds": ["{orkney}"], "compliance": True},
        expect={"responses.0.deletedCount": "1"},
    ),
    step("DeleteBank", FAMILY, expect={"error": None}),
)
