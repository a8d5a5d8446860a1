"""Steps on observations, directives, wiki pages, coverage and the doctor."""

from __future__ import annotations

from conformance.steps.step import failed, step

WORK = {"bankId": "people"}
OBSERVED = {**WORK, "text": "Alice Smith is employed.", "evidence": ["{works}"], "confidence": 0.7}
KNOWLEDGE_STEPS = (
    step(
        "CreateObservation",
        {**OBSERVED, "validFrom": "2019-07-12T08:30:00Z"},
        expect={"responses.0.observation.evidence.0.memoryId": "{works}", "responses.0.observation.proofCount": 1},
        save={"observation": "observation.observationId", "observed": "observation.etag"},
    ),
    step("CreateObservation", {**OBSERVED, "evidence": []}, expect=failed("InvalidArgument", field="evidence")),
    step(
        "GetObservation",
        {**WORK, "observationId": "{observation}"},
        expect={"responses.0.observation.confidence": 0.7},
    ),
    step("GetObservation", {**WORK, "observationId": "obs-none"}, expect=failed("NotFound", code=5)),
    step(
        "ListObservations",
        {**WORK, "text": "EMPLOYED"},
        expect={"responses.0.observations.0.observationId": "{observation}"},
    ),
    step(
        "UpdateObservation",
        {**WORK, "observationId": "{observation}", "confidence": 0.0, "etag": "{observed}"},
        expect={"responses.0.observation.revision": 2, "responses.0.observation.confidence": None},
    ),
    step(
        "UpdateObservation",
        {**WORK, "observationId": "{observation}", "confidence": 0.5, "etag": "{observed}"},
        expect=failed("EtagMismatch", code=10),
    ),
    step(
        "ListObservationRevisions",
        {**WORK, "observationId": "{observation}"},
        expect={"responses.0.revisions.1.revision": 1},
    ),
    step("DeleteObservation", {**WORK, "observationId": "{observation}"}, expect={"responses.0.deleted": True}),
    step("DeleteObservation", {**WORK, "observationId": "{observation}"}, expect={"responses.0.deleted": None}),
    step("CreateObservation", OBSERVED, expect={"responses.0.observation.bankId": "people"}),
    step("InvalidateObservations", {**WORK, "sourceIds": ["{works}"]}, expect={"responses.0.invalidated": 1}),
    step(
        "CreateDirective",
        {**WORK, "ruleText": "Answer in one sentence.", "directiveId": "directive:short", "priority": -3},
        expect={"responses.0.directive.directiveId": "directive:short", "responses.0.directive.priority": -3},
    ),
    step("ListDirectives", WORK, expect={"responses.0.directives.0.ruleText": "Answer in one sentence."}),
    step(
        "Recall",
        {**WORK, "query": "Where does Alice work?"},
        expect={"responses.0.directives.0.directiveId": "directive:short", "responses.0.hits.0.memoryId": "{works}"},
    ),
    step("DeleteDirective", {**WORK, "directiveId": "directive:short"}, expect={"responses.0.deleted": True}),
    step("CompileBank", {**WORK, "scope": "work"}, expect={"responses.0.pagesCreated": 1}),
    step(
        "GetPage",
        {**WORK, "pageId": "topic:work"},
        expect={"responses.0.page.kind": "PAGE_KIND_TOPIC", "responses.0.page.sources.0.memoryId": "{works}"},
    ),
    step("GetPage", {**WORK, "pageId": "topic:none"}, expect=failed("NotFound", code=5)),
    step("ListPages", {**WORK, "kind": "PAGE_KIND_TOPIC"}, expect={"responses.0.pages.0.pageId": "topic:work"}),
    step("SearchPages", {**WORK, "query": "Initech"}, expect={"responses.0.hits.0.sourceIds.0": "{works}"}),
    step(
        "ListPageRevisions",
        {**WORK, "pageId": "topic:work"},
        expect={"responses.0.revisions.0.cause": "REVISION_CAUSE_COMPILED"},
    ),
    step("LintPages", WORK, expect={"responses.0.findings.0.problem": "PAGE_PROBLEM_SINGLE_SOURCE"}),
    step(
        "AuditCoverage",
        {**WORK, "questions": ["Where does Alice Smith work?"], "maxTokens": 1_000},
        expect={"responses.0.method": "AUDIT_METHOD_RULES", "responses.0.coverageScore": 1.0},
    ),
    step(
        "DiagnoseBank",
        {**WORK, "checks": ["CHECK_ORPHANED_ROWS", "CHECK_STALE_KNOWLEDGE"]},
        expect={"responses.0.checks.0.check": "CHECK_STALE_KNOWLEDGE", "responses.0.findings": None},
    ),
    step("RepairBank", WORK, expect={"responses.0.bankId": "people"}),
    step(
        "ConsolidateBank",
        WORK,
        expect={"responses.0.operation.bankId": "people"},
        save={"consolidation": "operation.operationId"},
    ),
    step(
        "WaitOperation",
        {**WORK, "operationId": "{consolidation}", "timeout": "20s"},
        expect={"responses.0.operation.done": True, "responses.0.operation.error": None},
    ),
)
