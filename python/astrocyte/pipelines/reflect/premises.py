"""Premises of a question, checked against memory before it is answered."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

from astrocyte.errors import ProviderUnavailable
from astrocyte.model import MemoryHit
from astrocyte.pipelines.text.prompt_fence import Fence
from astrocyte.providers.messages import Message, Prompt, Role, TokenUsage
from astrocyte.providers.protocols import LanguageModel

# A question takes few things for granted; each costs a recall.
MOST_PREMISES = 3
# Memories that speak for or against one premise.
MOST_MEMORIES = 5
MOST_TOKENS = 400

PREMISES: dict[str, Any] = {
    "type": "object",
    "properties": {"premises": {"type": "array", "items": {"type": "string"}}},
    "required": ["premises"],
    "additionalProperties": False,
}
VERDICT: dict[str, Any] = {
    "type": "object",
    "properties": {"supported": {"type": "boolean"}, "confidence": {"type": "number"}},
    "required": ["supported", "confidence"],
    "additionalProperties": False,
}
LIST = (
    "List what the question takes for granted as a fact, each as one plain statement, the riskiest first. Leave out "
    "what it asks for. An empty list, where it takes nothing for granted."
)
JUDGE = (
    "Do the memories support the statement? Say supported false only if they contradict it, or say it of another "
    "person or thing. Give your confidence from 0 to 1."
)


async def unsupported(
    model: LanguageModel,
    query: str,
    recall: Callable[[str, int], Awaitable[tuple[MemoryHit, ...]]],
    *,
    min_confidence: float,
    deadline: float,
) -> tuple[str | None, TokenUsage]:
    """The first premise that memory speaks against, if there is one, and what finding out cost.

    Raises:
        ProviderUnavailable: The model failed, or did not keep to the form.
        DeadlineExceeded: It did not answer in time.
    """
    asked = (Message(Role.SYSTEM, LIST), Message(Role.USER, f"Question: {query}"))
    found, used = await _ask(model, asked, PREMISES, deadline)
    premises = found.get("premises")
    if not isinstance(premises, list) or not all(isinstance(premise, str) for premise in premises):
        raise ProviderUnavailable("the language model did not list the premises as asked")
    for premise in [premise for premise in premises if premise.strip()][:MOST_PREMISES]:
        hits = await recall(premise, MOST_MEMORIES)
        fence = Fence()
        judged = (
            Message(Role.SYSTEM, f"{JUDGE}\n\n{fence.rule()}"),
            Message(Role.USER, f"{fence.memories(hits)}\n\nStatement: {premise}"),
        )
        verdict, cost = await _ask(model, judged, VERDICT, deadline)
        used += cost
        supported, sure = verdict.get("supported"), verdict.get("confidence")
        if not isinstance(supported, bool) or isinstance(sure, bool) or not isinstance(sure, (int, float)):
            raise ProviderUnavailable("the language model did not judge the premise as asked")
        if not supported and sure >= min_confidence:
            return premise, used
    return None, used


async def _ask(
    model: LanguageModel, messages: tuple[Message, ...], schema: dict[str, Any], deadline: float
) -> tuple[dict[str, Any], TokenUsage]:
    prompt = Prompt(messages, max_tokens=MOST_TOKENS, response_schema=schema)
    completion = await model.complete(prompt, deadline=deadline)
    try:
        value = json.loads(completion.text)
    except (ValueError, RecursionError) as error:
        raise ProviderUnavailable("the language model did not answer in JSON") from error
    if not isinstance(value, dict):
        raise ProviderUnavailable("the language model did not answer with a JSON object")
    return value, completion.usage
