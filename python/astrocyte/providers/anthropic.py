"""Language models behind Anthropic's Messages API. Extra: ``anthropic`` (httpx)."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing
from typing import Any, Literal

import httpx
from pydantic import Field

from astrocyte.config.loading.environment import secret
from astrocyte.model import ContentPart
from astrocyte.providers.http.endpoint import Endpoint, EndpointOptions, error_code
from astrocyte.providers.messages import Completion, FinishReason, Message, Prompt, Role, TokenUsage, ToolCall
from astrocyte.providers.options import read_options
from astrocyte.providers.protocols import LanguageModel

API_VERSION = "2023-06-01"
FINISH_REASONS = {
    "end_turn": FinishReason.STOP,
    "stop_sequence": FinishReason.STOP,
    "max_tokens": FinishReason.LENGTH,
    "tool_use": FinishReason.TOOL_CALLS,
    "refusal": FinishReason.REFUSED,
}
# JSON comes as the arguments of a tool that the model has to call: its schema is the schema.
ANSWER_TOOL = "answer"


class AnthropicOptions(EndpointOptions):
    """Options of Anthropic's Messages API."""

    model: str = Field("claude-sonnet-4-5", min_length=1, description="Name of the model.")
    base_url: str = Field("https://api.anthropic.com", min_length=1, description="Address, without /v1/messages.")
    modalities: frozenset[Literal["image"]] = Field(
        frozenset({"image"}), description="What the model takes in beside text."
    )


class AnthropicModel:
    """`LanguageModel` over HTTP."""

    def __init__(self, options: AnthropicOptions, transport: httpx.AsyncBaseTransport | None = None) -> None:
        self._options = options
        self.model_id = options.model
        self.modalities = options.modalities
        key = options.api_key.get_secret_value() if options.api_key else None
        headers = {"anthropic-version": API_VERSION} | ({} if key is None else {"x-api-key": key})
        self._endpoint = Endpoint("language model", "/v1/messages", headers, options, transport=transport)

    async def complete(self, prompt: Prompt, *, deadline: float | None = None) -> Completion:
        """The whole answer."""
        answer = await self._endpoint.post(self._body(prompt), deadline)
        try:
            blocks = list(answer["content"])
            texts = "".join([str(block["text"]) for block in blocks if block["type"] == "text"])
            calls = [
                ToolCall(block["id"], block["name"], dict(block["input"]))
                for block in blocks
                if block["type"] == "tool_use"
            ]
            usage = answer["usage"]
            used = TokenUsage(int(usage["input_tokens"]), int(usage["output_tokens"]))
            return self._completion(prompt, texts, calls, answer["stop_reason"], used)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise self._endpoint.failure(f"sent an invalid answer ({type(error).__name__})") from error

    async def stream(self, prompt: Prompt, *, deadline: float | None = None) -> AsyncIterator[str | Completion]:
        """Pieces of the text, and last of all the whole answer."""
        answer = _Answer()
        # With a schema the text is in the arguments of a tool.
        json_wanted = prompt.response_schema is not None
        async with aclosing(self._endpoint.events({**self._body(prompt), "stream": True}, deadline)) as events:
            async for data in events:
                event = self._endpoint.decoded(data)
                if event.get("type") == "error":
                    raise self._endpoint.failure(f"closed the stream early ({error_code(data) or 'error'})")
                try:
                    text, arguments = answer.take(event)
                except (KeyError, TypeError, AttributeError, ValueError) as error:
                    raise self._endpoint.failure(f"sent an invalid answer ({type(error).__name__})") from error
                if piece := arguments if json_wanted else text:
                    yield piece
        if not answer.ended:
            raise self._endpoint.failure("ended the stream before the end of the answer")
        calls = [
            ToolCall(identity, name, self._endpoint.decoded("".join(parts) or "{}"))
            for identity, name, parts in answer.calls.values()
        ]
        yield self._completion(prompt, "".join(answer.texts), calls, answer.reason, answer.usage)

    async def close(self) -> None:
        """Close the connections."""
        await self._endpoint.close()

    def _body(self, prompt: Prompt) -> dict[str, Any]:
        system = [message.content for message in prompt.messages if message.role is Role.SYSTEM]
        body: dict[str, Any] = {
            "model": self._options.model,
            "max_tokens": prompt.max_tokens,
            "temperature": prompt.temperature,
            "messages": _turns(prompt.messages),
        }
        if system:
            body["system"] = "\n\n".join(system)
        if prompt.tools:
            body["tools"] = [
                {"name": tool.name, "description": tool.description, "input_schema": dict(tool.parameters)}
                for tool in prompt.tools
            ]
        if prompt.response_schema is not None:
            description = "Give the answer in this form."
            schema = dict(prompt.response_schema)
            body["tools"] = [{"name": ANSWER_TOOL, "description": description, "input_schema": schema}]
            body["tool_choice"] = {"type": "tool", "name": ANSWER_TOOL}
        return body

    def _completion(
        self, prompt: Prompt, text: str, calls: list[ToolCall], reason: object, usage: TokenUsage
    ) -> Completion:
        if not isinstance(reason, str) or reason not in FINISH_REASONS:
            raise self._endpoint.failure("ended with an unknown stop reason")
        finish = FINISH_REASONS[reason]
        if prompt.response_schema is None:
            return Completion(text, finish, tuple(calls), usage)
        if len(calls) != 1:
            raise self._endpoint.failure("returned an answer that does not match the schema")
        stopped = FinishReason.STOP if finish is FinishReason.TOOL_CALLS else finish
        return Completion(json.dumps(dict(calls[0].arguments)), stopped, (), usage)


class _Answer:
    """An answer assembled from the events of a stream."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.calls: dict[int, tuple[str, str, list[str]]] = {}
        self.reason: object = None
        self.usage = TokenUsage()
        self.ended = False

    def take(self, event: Mapping[str, Any]) -> tuple[str, str]:
        """The text of an event, and its piece of a tool's arguments; stores the other parts."""
        match event["type"]:
            case "message_start":
                self.usage += TokenUsage(int(event["message"]["usage"]["input_tokens"]))
            case "content_block_start" if event["content_block"]["type"] == "tool_use":
                block = event["content_block"]
                self.calls[event["index"]] = (str(block["id"]), str(block["name"]), [])
            case "content_block_delta" if event["delta"]["type"] == "text_delta":
                text = str(event["delta"]["text"])
                self.texts.append(text)
                return text, ""
            case "content_block_delta" if event["delta"]["type"] == "input_json_delta":
                part = str(event["delta"]["partial_json"])
                self.calls[event["index"]][2].append(part)
                return "", part
            case "message_delta":
                self.reason = event["delta"].get("stop_reason") or self.reason
                self.usage = TokenUsage(self.usage.input_tokens, int(event["usage"]["output_tokens"]))
            case "message_stop":
                self.ended = True
            case _:
                # Pings, thinking, ends of blocks, and kinds that come to be later: nothing in them is the answer.
                pass
        return "", ""


def _turns(messages: tuple[Message, ...]) -> list[dict[str, Any]]:
    """The conversation without the system's part; answers of tools are blocks of one turn of the user."""
    turns: list[dict[str, Any]] = []
    for message in messages:
        match message.role:
            case Role.SYSTEM:
                continue
            case Role.TOOL:
                block = {"type": "tool_result", "tool_use_id": message.tool_call_id, "content": message.content}
                if turns and turns[-1]["role"] == "user" and isinstance(turns[-1]["content"], list):
                    turns[-1]["content"].append(block)
                else:
                    turns.append({"role": "user", "content": [block]})
            case Role.ASSISTANT if message.tool_calls:
                said: list[dict[str, Any]] = [{"type": "text", "text": message.content}] if message.content else []
                said += [
                    {"type": "tool_use", "id": call.id, "name": call.name, "input": dict(call.arguments)}
                    for call in message.tool_calls
                ]
                turns.append({"role": "assistant", "content": said})
            case _ if message.parts:
                blocks = [*map(_image, message.parts), {"type": "text", "text": message.content}]
                turns.append({"role": str(message.role), "content": blocks})
            case _:
                turns.append({"role": str(message.role), "content": message.content})
    return turns


def _image(part: ContentPart) -> dict[str, Any]:
    if part.url:
        return {"type": "image", "source": {"type": "url", "url": part.url}}
    encoded = base64.b64encode(part.data).decode()
    return {"type": "image", "source": {"type": "base64", "media_type": part.media_type, "data": encoded}}


def create(options: Mapping[str, Any]) -> LanguageModel:
    """A language model of Anthropic's.

    Raises:
        ConfigError: An option is unknown or out of its range.
    """
    chosen = read_options(AnthropicOptions, options, "llm_provider_config")
    if chosen.api_key is None:
        chosen = chosen.model_copy(update={"api_key": secret("ANTHROPIC_API_KEY")})
    return AnthropicModel(chosen)
