"""Language models behind any endpoint that speaks OpenAI's chat completions: OpenAI, vLLM, Ollama, LiteLLM.

Extra: ``openai`` (httpx).
"""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing
from typing import Any, Literal

import httpx
from pydantic import Field

from astrocyte.config.loading.environment import secret
from astrocyte.model import ContentPart, PartKind
from astrocyte.providers.http.endpoint import Endpoint, EndpointOptions, error_code
from astrocyte.providers.messages import Completion, FinishReason, Message, Prompt, TokenUsage, Tool, ToolCall
from astrocyte.providers.options import read_options
from astrocyte.providers.protocols import LanguageModel

FINISH_REASONS = {
    "stop": FinishReason.STOP,
    "length": FinishReason.LENGTH,
    "tool_calls": FinishReason.TOOL_CALLS,
    "content_filter": FinishReason.REFUSED,
}
AUDIO_FORMATS = {"audio/wav": "wav", "audio/mpeg": "mp3"}
# The event that ends a stream.
DONE = "[DONE]"


class ChatOptions(EndpointOptions):
    """Options of an endpoint that speaks OpenAI's protocol."""

    model: str = Field("gpt-4o-mini", min_length=1, description="Name of the model, as the endpoint knows it.")
    base_url: str = Field("https://api.openai.com/v1", min_length=1, description="Address, without /chat/completions.")
    max_tokens_field: Literal["max_completion_tokens", "max_tokens"] = Field(
        "max_completion_tokens", description="What the endpoint calls the limit of an answer."
    )
    modalities: frozenset[Literal["image", "audio"]] = Field(
        frozenset({"image"}), description="What the model takes in beside text."
    )
    send_temperature: bool = Field(True, description="Some reasoning models refuse a temperature.")


class OpenAIModel:
    """`LanguageModel` over HTTP."""

    def __init__(self, options: ChatOptions, transport: httpx.AsyncBaseTransport | None = None) -> None:
        self._options = options
        self.model_id = options.model
        self.modalities = options.modalities
        key = options.api_key.get_secret_value() if options.api_key else None
        headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        self._endpoint = Endpoint("language model", "/chat/completions", headers, options, transport=transport)

    async def complete(self, prompt: Prompt, *, deadline: float | None = None) -> Completion:
        """The whole answer."""
        answer = await self._endpoint.post(self._body(prompt), deadline)
        try:
            choice = answer["choices"][0]
            message = choice["message"]
            calls = tuple(
                self._call(call["id"], call["function"]["name"], call["function"]["arguments"])
                for call in message.get("tool_calls") or ()
            )
            text = message.get("content") or ""
            if not isinstance(text, str):
                raise self._endpoint.failure("sent a text part of the wrong type")
            reason = self._reason(choice["finish_reason"], refused=bool(message.get("refusal")))
            return Completion(text, reason, calls, _usage(answer.get("usage")))
        except (KeyError, IndexError, TypeError, AttributeError) as error:
            raise self._endpoint.failure(f"sent an invalid answer ({type(error).__name__})") from error

    async def stream(self, prompt: Prompt, *, deadline: float | None = None) -> AsyncIterator[str | Completion]:
        """Pieces of the text, and last of all the whole answer."""
        body = {**self._body(prompt), "stream": True, "stream_options": {"include_usage": True}}
        answer = _Answer()
        async with aclosing(self._endpoint.events(body, deadline)) as events:
            async for data in events:
                if data == DONE:
                    break
                event = self._endpoint.decoded(data)
                if "error" in event:
                    raise self._endpoint.failure(f"closed the stream early ({error_code(data) or 'error'})")
                try:
                    piece = answer.take(event)
                except (KeyError, IndexError, TypeError, AttributeError) as error:
                    raise self._endpoint.failure(f"sent an invalid answer ({type(error).__name__})") from error
                if piece:
                    yield piece
        if answer.reason is None:
            raise self._endpoint.failure("ended the stream before the end of the answer")
        calls = tuple(self._call(*answer.calls[index]) for index in sorted(answer.calls))
        reason = self._reason(answer.reason, refused=answer.refused)
        yield Completion("".join(answer.texts), reason, calls, answer.usage)

    async def close(self) -> None:
        """Close the connections."""
        await self._endpoint.close()

    def _body(self, prompt: Prompt) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": self._options.model,
            "messages": [_message(message) for message in prompt.messages],
            self._options.max_tokens_field: prompt.max_tokens,
        }
        if self._options.send_temperature:
            body["temperature"] = prompt.temperature
        if prompt.tools:
            body["tools"] = [_tool(tool) for tool in prompt.tools]
        if prompt.response_schema is not None:
            schema = {"name": "answer", "schema": dict(prompt.response_schema), "strict": True}
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
        return body

    def _call(self, identity: str, name: str, arguments: str) -> ToolCall:
        # A function without parameters may come with no arguments at all.
        return ToolCall(identity, name, self._endpoint.decoded(arguments or "{}"))

    def _reason(self, name: str, *, refused: bool) -> FinishReason:
        if refused:
            return FinishReason.REFUSED
        if name not in FINISH_REASONS:
            raise self._endpoint.failure("ended with an unknown stop reason")
        return FINISH_REASONS[name]


class _Answer:
    """An answer assembled from the events of a stream."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.calls: dict[int, tuple[str, str, str]] = {}
        self.reason: str | None = None
        self.refused = False
        self.usage = TokenUsage()

    def take(self, event: Mapping[str, Any]) -> str:
        """The text of an event; stores the other parts."""
        if event.get("usage"):
            self.usage = _usage(event["usage"])
        # The event with the usage has no choices.
        if not event["choices"]:
            return ""
        choice = event["choices"][0]
        delta = choice["delta"]
        for part in delta.get("tool_calls") or ():
            identity, name, arguments = self.calls.get(part["index"], ("", "", ""))
            function = part.get("function") or {}
            self.calls[part["index"]] = (
                identity or part.get("id") or "",
                name or function.get("name") or "",
                arguments + (function.get("arguments") or ""),
            )
        self.refused = self.refused or bool(delta.get("refusal"))
        self.reason = choice.get("finish_reason") or self.reason
        text: str = delta.get("content") or ""
        self.texts.append(text)
        return text


def _usage(usage: Mapping[str, Any] | None) -> TokenUsage:
    if not usage:
        return TokenUsage()
    return TokenUsage(int(usage.get("prompt_tokens") or 0), int(usage.get("completion_tokens") or 0))


def _message(message: Message) -> dict[str, Any]:
    said: dict[str, Any] = {"role": str(message.role), "content": message.content}
    if message.parts:
        said["content"] = [{"type": "text", "text": message.content}, *map(_part, message.parts)]
    if message.tool_calls:
        said["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": json.dumps(dict(call.arguments))},
            }
            for call in message.tool_calls
        ]
    if message.tool_call_id:
        said["tool_call_id"] = message.tool_call_id
    return said


def _part(part: ContentPart) -> dict[str, Any]:
    encoded = base64.b64encode(part.data).decode()
    if part.kind is PartKind.AUDIO:
        return {"type": "input_audio", "input_audio": {"data": encoded, "format": AUDIO_FORMATS[part.media_type]}}
    return {"type": "image_url", "image_url": {"url": part.url or f"data:{part.media_type};base64,{encoded}"}}


def _tool(tool: Tool) -> dict[str, Any]:
    function = {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)}
    return {"type": "function", "function": function}


def create(options: Mapping[str, Any]) -> LanguageModel:
    """A language model over an endpoint that speaks OpenAI's protocol.

    Raises:
        ConfigError: An option is unknown or out of its range.
    """
    chosen = read_options(ChatOptions, options, "llm_provider_config")
    if chosen.api_key is None:
        chosen = chosen.model_copy(update={"api_key": secret("OPENAI_API_KEY")})
    return OpenAIModel(chosen)
