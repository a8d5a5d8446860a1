"""Steps on grants, keys, operations and the state of the server."""

from __future__ import annotations

from conformance.steps.step import failed, step

COPY = {"bankId": "copy"}
GUEST = {**COPY, "principal": "user:guest"}
ADMINISTRATION_STEPS = (
    step(
        "Grant",
        {**GUEST, "permissions": ["PERMISSION_READ", "PERMISSION_WRITE"]},
        expect={"responses.0.grant.permissions.0": "PERMISSION_READ"},
    ),
    step("Grant", {**GUEST, "permissions": []}, expect=failed("InvalidArgument", field="permissions")),
    step("ListGrants", COPY, expect={"responses.0.grants.1.principal": "user:guest"}),
    step("CheckAccess", {**GUEST, "permission": "PERMISSION_FORGET"}, expect={"error": None}),
    step(
        "Revoke",
        {**GUEST, "permissions": ["PERMISSION_WRITE"]},
        expect={"responses.0.permissions.0": "PERMISSION_WRITE"},
    ),
    step(
        "CreateApiKey",
        {"name": "ci", "principal": "user:ci", "expiresAt": "2099-01-01T00:00:00Z"},
        expect={"responses.0.apiKey.principal": "user:ci"},
        save={"key": "apiKey.keyId"},
    ),
    step("ListApiKeys", {}, expect={"responses.0.apiKeys.0.keyId": "{key}"}),
    step("RevokeApiKey", {"keyId": "{key}"}, expect={"responses.0.apiKey.keyId": "{key}"}),
    step("PlaceHold", {**COPY, "holdId": "case-2", "reason": "a case", "tags": ["work"]}, expect={"error": None}),
    step("ListHolds", COPY, expect={"responses.0.holds.0.tags.0": "work"}),
    step("ReleaseHold", {**COPY, "holdId": "case-2"}, expect={"responses.0.hold.holdId": "case-2"}),
    step(
        "ListAuditEvents",
        {**COPY, "newestFirst": True, "pageSize": 2},
        expect={"responses.0.events.0.event": "hold_released"},
    ),
    step(
        "RunLifecycle",
        {**COPY, "dryRun": True},
        expect={"responses.0.operation.bankId": "copy"},
        save={"lifecycle": "operation.operationId"},
    ),
    step(
        "WaitOperation",
        {**COPY, "operationId": "{lifecycle}", "timeout": "20s"},
        expect={"responses.0.operation.done": True},
    ),
    step("GetOperation", {**COPY, "operationId": "{lifecycle}"}, expect={"responses.0.operation.done": True}),
    step(
        "CancelOperation",
        {**COPY, "operationId": "{lifecycle}"},
        expect={"responses.0.operation.state": "OPERATION_STATE_SUCCEEDED"},
    ),
    step(
        "ListOperations", {**COPY, "newestFirst": True}, expect={"responses.0.operations.0.operationId": "{lifecycle}"}
    ),
    step("StartReindex", {**COPY, "embeddingModel": "none"}, expect={"error.code": 3}),
    step("StreamReflect", {"reflect": {**COPY, "query": "Where does Alice Smith work?"}}, expect={"error": None}),
    step("GetBankStats", COPY, expect={"responses.0.stats.memoryCount": "2"}),
    step("ListBankTemplates", {}, expect={"responses.0.bankTemplates": None}),
    step("ListBankGroups", {}, expect={"responses.0.bankGroups": None}),
    step("ListEngines", {}, expect={"responses.0.engines": None}),
    step("ListSources", {}, expect={"responses.0.sources": None}),
    step("DeleteBank", COPY, expect={"responses.0.deletedCount": "2"}),
)
