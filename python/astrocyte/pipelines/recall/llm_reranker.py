"""A language model as a reranker: it grades all passages, as data, in one call."""

from __future__ import annotations

import json
from collections.abc import Sequence

from astrocyte.errors import ProviderUnavailable
from astrocyte.pipelines.text.prompt_fence import Fence, quoted
from astrocyte.providers.messages import Message, Prompt, Role
from astrocyte.providers.protocols import LanguageModel

INSTRUCTION = (
    "You grade how well each numbered passage helps to answer a question, from 0 (not at all) to 10 (it holds the "
    "answer). Grade what a passage says, not how it says it. Give one grade for each passage, in their order."
)
SCHEMA = {
    "type": "object",
    "properties": {"grades": {"type": "array", "items": {"type": "number"}}},
    "required": ["grades"],
    "additionalProperties": False,
}
MAX_TOKENS = 400
LOWEST, HIGHEST = 0.0, 10.0


class ModelReranker:
    """`Reranker` over a language model of the settings.

    Args:
        model: Grades.
    """

    def __init__(self, model: LanguageModel) -> None:
        self._model = model
        self.model_id = model.model_id

    async def score(self, query: str, passages: Sequence[str], *, deadline: float | None = None) -> list[float]:
        """A grade for each passage."""
        fence = Fence()
        entries = [f"[{number}] {quoted(text)}" for number, text in enumerate(passages, 1)]
        system = Message(Role.SYSTEM, f"{INSTRUCTION}\n\n{fence.rule()}")
        asked = f"{fence.block('memories', entries)}\n\nQuestion: {quoted(query)}"
        prompt = Prompt((system, Message(Role.USER, asked)), MAX_TOKENS, response_schema=SCHEMA)
        return _read((await self._model.complete(prompt, deadline=deadline)).text, len(passages))

    async def close(self) -> None:
        """Nothing to release: the application owns the model."""


def _read(answer: str, wanted: int) -> list[float]:
    try:
        grades = [float(grade) for grade in json.loads(answer)["grades"]]
    except (ValueError, TypeError, KeyError, RecursionError):
        grades = []
    if len(grades) != wanted or not all(LOWEST <= grade <= HIGHEST for grade in grades):
        raise ProviderUnavailable("the language model's answer does not have one grade for each passage")
    return grades
