"""Steps on the private memory of an agent, canonical terms and shared documents."""

from __future__ import annotations

from conformance.steps.step import failed, step

AGENT_STEPS = (
    step(
        "Remember",
        {
            "topic": "the terraform repo",
            "content": "Vivek wants all infrastructure in Terraform.",
            "source": {"platform": {"stringValue": "slack"}},
        },
        expect={"responses.0.isCanonical": None, "responses.0.wasUpdate": None},
        save={"remembered": "memoryId", "proposed": "proposedTermId"},
    ),
    step("Remember", {"content": "About nothing."}, expect=failed("InvalidArgument", code=3)),
    step("ListTerms", {"status": "TERM_STATUS_PROPOSED"}, expect={"responses.0.terms.0.termId": "{proposed}"}),
    step(
        "ReviewTerm",
        {"termId": "{proposed}", "decision": "TERM_DECISION_REJECT"},
        expect={"responses.0.term.status": "TERM_STATUS_REJECTED"},
    ),
    step(
        "ProposeTerm",
        {"name": "infrastructure repository", "aliases": ["the terraform repo"], "memoryId": "{remembered}"},
        expect={"responses.0.term.aliases.0": "the terraform repo"},
        save={"term": "term.termId"},
    ),
    step(
        "ReviewTerm",
        {"termId": "{term}", "decision": "TERM_DECISION_APPROVE"},
        expect={"responses.0.term.status": "TERM_STATUS_APPROVED"},
    ),
    step(
        "LookupTerm",
        {"text": "The Terraform repo"},
        expect={"responses.0.found": True, "responses.0.match": "TERM_MATCH_ALIAS"},
    ),
    step("RecanonicaliseAgentMemories", {}, expect={"responses.0.changed": 1}),
    step("ListAgentMemories", {}, expect={"responses.0.memories.0.topic": "infrastructure repository"}),
    step(
        "RecallAgentMemory",
        {"query": "infrastructure repository", "maxResults": 3},
        expect={
            "responses.0.hits.0.memoryId": "{remembered}",
            "responses.0.hits.0.sourceTag": "SOURCE_TAG_PRIVATE",
            "responses.0.queryCanonical": "infrastructure repository",
        },
    ),
    step("ListAgents", {}, expect={"responses.0.agents.0.agentId": "user:conformance"}),
    step(
        "ForgetAgentMemory",
        {"memoryId": "{remembered}", "reason": "asked"},
        expect={"responses.0.memory.memoryId": "{remembered}"},
    ),
    step(
        "ForgetAgentMemory",
        {"memoryId": "{remembered}"},
        expect=failed("NotFound", metadata={"agent_id": "user:conformance", "memory_id": "{remembered}"}),
    ),
    step("SearchSharedKb", {"bankId": "people", "query": "Terraform"}, expect={"responses.0.hits": None}),
    step("ListSharedKb", {"bankId": "people"}, expect={"responses.0.documents": None}),
    step("GetSharedKbIndex", {"bankId": "people"}, expect={"responses.0.documentCount": None}),
)
