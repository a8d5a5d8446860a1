"""Driver of the conformance test: reads calls as lines of JSON and writes their outcomes.

`--asyncio` drives the asyncio client.
"""

from __future__ import annotations

import asyncio
import base64
import itertools
import json
import re
import sys
from collections.abc import Mapping
from typing import Any

from astrocyte_client import AstrocyteError, AsyncClient, Client, connect, connect_async
from astrocyte_client.connection import UNSET
from astrocyte_client.methods import RPCS

Step = Mapping[str, Any]


def options(step: Step) -> dict[str, Any]:
    """Arguments of `connect`."""
    return dict(step["connection"])


def method_name(step: Step) -> str:
    """Name of the method of a client."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", step["method"]).lower()


def messages(step: Step) -> list[Any]:
    """The requests of a step."""
    kind = RPCS[step["method"]].request
    return [kind.FromString(base64.b64decode(one)) for one in step["requests"]]


def call_options(step: Step) -> dict[str, Any]:
    """Options of one call."""
    return {"deadline": step.get("deadline", UNSET), "headers": step.get("headers")}


def outcome(responses: list[Any]) -> dict[str, Any]:
    """The record of a successful call."""
    return {"responses": [base64.b64encode(one.SerializeToString()).decode() for one in responses]}


def failure(error: AstrocyteError) -> dict[str, Any]:
    """The record of a failed call."""
    return {
        "error": {
            "code": error.code.value[0],
            "kind": type(error).__name__.removesuffix("Error"),
            "reason": error.reason,
            "message": error.message,
            "metadata": error.metadata,
            "field": error.field,
            "retry_after": error.retry_after,
            "request_id": error.request_id,
        }
    }


def run(client: Client, step: Step) -> dict[str, Any]:
    """The outcome of a step by the synchronous client."""
    requests, method = messages(step), getattr(client, method_name(step))
    try:
        if step["kind"] == "unary":
            return outcome([method(requests[0], **call_options(step))])
        responses = method(requests if step["kind"] == "stream" else requests[0], **call_options(step))
        return outcome(list(itertools.islice(responses, step.get("take"))))
    except AstrocyteError as error:
        return failure(error)


async def run_async(client: AsyncClient, step: Step) -> dict[str, Any]:
    """The outcome of a step by the asyncio client."""
    requests, method = messages(step), getattr(client, method_name(step))
    try:
        if step["kind"] == "unary":
            return outcome([await method(requests[0], **call_options(step))])
        found: list[Any] = []
        async for response in method(requests if step["kind"] == "stream" else requests[0], **call_options(step)):
            found.append(response)
            if len(found) == step.get("take"):
                break
        return outcome(found)
    except AstrocyteError as error:
        return failure(error)


def main() -> None:
    """Drive the synchronous client."""
    clients: dict[str, Client] = {}
    for line in sys.stdin:
        step = json.loads(line)
        name = json.dumps(step["connection"])
        if name not in clients:
            clients[name] = connect(**options(step))
        print(json.dumps(run(clients[name], step)), flush=True)


async def main_async() -> None:
    """Drive the asyncio client."""
    clients: dict[str, AsyncClient] = {}
    while line := await asyncio.to_thread(sys.stdin.readline):
        step = json.loads(line)
        name = json.dumps(step["connection"])
        if name not in clients:
            clients[name] = connect_async(**options(step))
        print(json.dumps(await run_async(clients[name], step)), flush=True)
    for client in clients.values():
        await client.close()


if __name__ == "__main__":
    if "--asyncio" in sys.argv:
        asyncio.run(main_async())
    else:
        main()
