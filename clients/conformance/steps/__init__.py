"""The steps that each client takes against a server of its own: every RPC of the protocol at least once."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from conformance.steps.administration import ADMINISTRATION_STEPS
from conformance.steps.agents import AGENT_STEPS
from conformance.steps.archives import ARCHIVE_STEPS
from conformance.steps.graph import GRAPH_STEPS
from conformance.steps.knowledge import KNOWLEDGE_STEPS
from conformance.steps.memories import MEMORY_STEPS
from conformance.steps.models import MODEL_STEPS
from conformance.steps.step import Step

API_KEY = "the key of the conformance test"
PRINCIPAL = "user:conformance"
# Settings of the server: the caller may do everything, names are found in memories, and everybody may write directives.
SETTINGS: Mapping[str, Any] = {
    "auth": {
        "api_keys": [
            {"name": "conformance", "sha256": hashlib.sha256(API_KEY.encode()).hexdigest(), "principal": PRINCIPAL}
        ]
    },
    "access_control": {"enabled": True},
    "access_grants": [
        {"bank_id": "*", "principal": PRINCIPAL, "permissions": ["read", "write", "forget", "admin"]},
    ],
    "pipeline": {"entity_extraction": {"mode": "rules"}},
    "directives": {"allowed_principals": ["*"]},
}
STEPS: tuple[Step, ...] = (
    *MEMORY_STEPS,
    *GRAPH_STEPS,
    *KNOWLEDGE_STEPS,
    *MODEL_STEPS,
    *AGENT_STEPS,
    *ARCHIVE_STEPS,
    *ADMINISTRATION_STEPS,
)
