"""Steps as calls of a driver, and their outcomes as plain values that can be compared."""

from __future__ import annotations

import base64
import importlib
import json
import pkgutil
import re
from collections.abc import Mapping
from typing import Any

from google.protobuf import json_format
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message_factory import GetMessageClass

from astrocyte_client import v1
from conformance.drivers import Driver

# Every module of the protocol, so that a new service is called without a change here.
MODULES = [
    importlib.import_module(f"{v1.__name__}.{module.name}")
    for module in pkgutil.iter_modules(v1.__path__)
    if module.name.endswith("_pb2")
]
METHODS: Mapping[str, MethodDescriptor] = {
    method.name: method
    for module in MODULES
    for service in module.DESCRIPTOR.services_by_name.values()
    for method in service.methods
}
# Values that differ from run to run, and what stands for them.
VARIABLE_KEYS = {
    "elapsedMs": "<time>",
    "etag": "<etag>",
    "expiresAt": "<time>",
    "hash": "<hash>",
    "headHash": "<hash>",
    "keyId": "<id>",
    "latencyMs": "<time>",
    "pageToken": "<token>",
    # Times in an archive have as many digits as they need.
    "receivedBytes": "<size>",
    "nextPageToken": "<token>",
    "request_id": "<id>",
    "stageTimingsMs": "<time>",
    "strategyTimingsMs": "<time>",
    "retry_after_seconds": "<time>",
    "salt": "<salt>",
    "secret": "<secret>",
    "rootHashAfter": "<hash>",
    "rootHashBefore": "<hash>",
}
# An archive, whose lines are compared.
ARCHIVE_KEY = "data"
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)")
ID = re.compile(r"\b[a-z]+[_-][0-9a-f]{32}\b")
# Scores fall with the age of a memory, by less than this in a run.
SCORE_DIGITS = 4
# In the message of a refused change.
ETAG = re.compile(r"(?<=')[0-9a-f]+-\d+(?=')")
UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
HASH = re.compile(r"[0-9a-f]{64}")
# Times before this year are from requests, and must come back as they were.
THIS_CENTURYS_REQUESTS = "2020"


def request_of(method: str, fields: dict[str, Any]) -> str:
    """A request in base64, from its fields as JSON."""
    message = GetMessageClass(METHODS[method].input_type)()
    json_format.ParseDict(fields, message)
    return base64.b64encode(message.SerializeToString()).decode()


def kind_of(method: str) -> str:
    """Kind of a call, as drivers name it."""
    descriptor = METHODS[method]
    if descriptor.client_streaming:
        return "stream"
    return "server_stream" if descriptor.server_streaming else "unary"


def call(driver: Driver, connection: Mapping[str, Any], method: str, *requests: Any, **options: Any) -> dict[str, Any]:
    """Make a call; returns ``responses`` as JSON, or ``error``."""
    step = {
        "connection": connection,
        "method": method,
        "kind": kind_of(method),
        "requests": [request_of(method, request) for request in requests],
        **options,
    }
    outcome = driver.call(step)
    if "responses" in outcome:
        kind = GetMessageClass(METHODS[method].output_type)
        messages: list[Any] = [kind.FromString(base64.b64decode(raw)) for raw in outcome["responses"]]
        if method == "ExportBank":
            # Cut anywhere.
            whole: Any = kind()
            whole.data = b"".join(message.data for message in messages)
            messages = [whole]
        return {"responses": [json_format.MessageToDict(message) for message in messages]}
    return outcome


class Normaliser:
    """Replaces what differs from run to run; the same id gets the same name."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}

    def value(self, found: Any, key: str = "") -> Any:
        """A value of an outcome, without what differs."""
        if key in VARIABLE_KEYS and found:
            return VARIABLE_KEYS[key]
        if key == ARCHIVE_KEY:
            return [self.value(json.loads(line)) for line in base64.b64decode(found).splitlines()]
        if isinstance(found, dict):
            return {self.text(name): self.value(item, name) for name, item in found.items()}
        if isinstance(found, list):
            return [self.value(item) for item in found]
        if isinstance(found, float):
            return round(found, SCORE_DIGITS)
        return self.text(found) if isinstance(found, str) else found

    def text(self, found: str) -> str:
        """A text, without what differs."""
        named = ID.sub(lambda match: self._names.setdefault(match[0], f"<id {len(self._names)}>"), found)
        named = TIME.sub(lambda match: match[0] if match[0] < THIS_CENTURYS_REQUESTS else "<time>", named)
        return ETAG.sub("<etag>", HASH.sub("<hash>", UUID.sub("<id>", named)))
