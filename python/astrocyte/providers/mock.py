"""A scripted language model: for tests, demonstrations and first steps without a key.

Without a script it answers with the first entry that the prompt lists under a number, and cites it.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from astrocyte.providers.messages import Completion, FinishReason, Prompt, Role, TokenUsage, ToolCall
from astrocyte.providers.options import read_options
from astrocyte.providers.protocols import LanguageModel

# The text of an entry such as `[1] (2024-05-08) Ann: green tea`, up to the end of its line.
ENTRY = re.compile(r"^\[(\d+)\](?: \([^)\n]*\))? (.+)$", re.MULTILINE)
NOTHING = "I do not know."


class MockCall(BaseModel):
    """A tool call of the script."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field(min_length=1, description="The tool.")
    arguments: dict[str, Any] = Field(default_factory=dict, description="What it is called with.")


class MockReply(BaseModel):
    """One answer of the script."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    text: str = Field("", description="What the model says.")
    tool_calls: tuple[MockCall, ...] = Field((), description="Tools that it calls.")


class MockOptions(BaseModel):
    """Options of the mock."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    replies: tuple[str | MockReply, ...] = Field((), description="Answers, in order; the last one stays.")
    modalities: frozenset[Literal["image", "audio"]] = Field(
        frozenset({"image", "audio"}), description="What it takes in beside text."
    )


class MockModel:
    """`LanguageModel` by a script; counts words for tokens. ``prompts`` holds what it was asked, oldest first."""

    model_id = "mock"

    def __init__(self, options: MockOptions) -> None:
        self._replies = [MockReply(text=reply) if isinstance(reply, str) else reply for reply in options.replies]
        self.modalities = options.modalities
        self.prompts: list[Prompt] = []

    async def complete(self, prompt: Prompt, *, deadline: float | None = None) -> Completion:
        """The next answer of the script."""
        del deadline
        number = len(self.prompts)
        self.prompts.append(prompt)
        reply = self._replies[min(number, len(self._replies) - 1)] if self._replies else _quote(prompt)
        calls = tuple(
            ToolCall(f"call_{number}_{index}", call.name, call.arguments) for index, call in enumerate(reply.tool_calls)
        )
        words = reply.text.split(" ")
        cut = len(words) > prompt.max_tokens
        text = " ".join(words[: prompt.max_tokens])
        reason = FinishReason.LENGTH if cut else FinishReason.TOOL_CALLS if calls else FinishReason.STOP
        asked = sum(len(message.content.split()) for message in prompt.messages)
        return Completion(text, reason, calls, TokenUsage(asked, len(text.split())))

    async def stream(self, prompt: Prompt, *, deadline: float | None = None) -> AsyncIterator[str | Completion]:
        """The next answer of the script, word by word."""
        completion = await self.complete(prompt, deadline=deadline)
        for piece in re.findall(r"\S+\s*|\s+", completion.text):
            yield piece
        yield completion

    async def close(self) -> None:
        """Nothing to release."""


def _quote(prompt: Prompt) -> MockReply:
    """The first numbered entry of the last user message."""
    asked = [message.content for message in prompt.messages if message.role is Role.USER]
    entry = ENTRY.search(asked[-1]) if asked else None
    return MockReply(text=NOTHING if entry is None else f"{entry[2]} [{entry[1]}]")


def create(options: Mapping[str, Any]) -> LanguageModel:
    """The mock.

    Raises:
        ConfigError: An option is unknown.
    """
    return MockModel(read_options(MockOptions, options, "llm_provider_config"))
