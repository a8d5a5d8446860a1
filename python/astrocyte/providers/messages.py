"""Messages to and from a language model, independent of the vendor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from astrocyte.model import ContentPart


class Role(StrEnum):
    """The author of a message: the operator, the caller, the model, or a tool that the model called."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


class FinishReason(StrEnum):
    """The reason why a model stopped: the end of its answer, the token limit, tool calls, or a refusal."""

    STOP = "stop"
    LENGTH = "length"
    TOOL_CALLS = "tool_calls"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A model's call of a tool. The message with the tool's answer repeats ``id``."""

    id: str
    name: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Message:
    """One turn. ``tool_calls`` belongs to the assistant; ``tool_call_id`` says which call a tool's answer is for.

    ``parts`` are images and recordings of the user's, with the text.
    """

    role: Role
    content: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str = ""
    parts: tuple[ContentPart, ...] = ()


@dataclass(frozen=True, slots=True)
class Tool:
    """A function that the model may call. ``parameters`` is a JSON schema of an object."""

    name: str
    description: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class TokenUsage:
    """Tokens as the provider counts them; 0 where it does not say."""

    input_tokens: int = 0
    output_tokens: int = 0

    def __add__(self, other: TokenUsage) -> TokenUsage:
        return TokenUsage(self.input_tokens + other.input_tokens, self.output_tokens + other.output_tokens)

    @property
    def total(self) -> int:
        """Both together."""
        return self.input_tokens + self.output_tokens


@dataclass(frozen=True, slots=True)
class Completion:
    """A whole answer. With a response schema, ``text`` is JSON."""

    text: str
    finish_reason: FinishReason = FinishReason.STOP
    tool_calls: tuple[ToolCall, ...] = ()
    usage: TokenUsage = TokenUsage()


@dataclass(frozen=True, slots=True)
class Prompt:
    """One request to a model.

    Attributes:
        messages: The conversation, oldest first; a system message only at the beginning.
        max_tokens: Most tokens of the answer, at least 1.
        temperature: 0 for the likeliest words, up to 1.
        tools: What the model may call instead of answering.
        response_schema: JSON schema of an object that the text of the answer must be. Not together with ``tools``.
    """

    messages: tuple[Message, ...]
    max_tokens: int = 1_024
    temperature: float = 0.0
    tools: tuple[Tool, ...] = ()
    response_schema: Mapping[str, Any] | None = None
