"""Both vendors against a real HTTP server on loopback that speaks their wire formats, well and badly."""

import asyncio
import json
import time
from collections.abc import Callable
from typing import Any

import pytest

from astrocyte.errors import ConfigError, DeadlineExceeded, ProviderUnavailable
from astrocyte.model import ContentPart, PartKind
from astrocyte.providers.messages import Completion, FinishReason, Message, Prompt, Role, TokenUsage, Tool, ToolCall
from astrocyte.providers.protocols import LanguageModel, modalities
from astrocyte.providers.registry import create_language_model
from doubles.language_models import (
    FakeServer,
    Reply,
    anthropic_answer,
    anthropic_events,
    anthropic_text,
    openai_answer,
    openai_events,
    serve,
)
from external.dripping import HEAD, dripping

VENDORS = ("openai", "anthropic")
ASK = Prompt((Message(Role.SYSTEM, "Be brief."), Message(Role.USER, "Who?")), max_tokens=50, temperature=0.2)
RECALL = Tool("recall", "Search.", {"type": "object", "properties": {"query": {"type": "string"}}})
SCHEMA = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}
CALLED = (ToolCall("c1", "recall", {"query": "tea"}), ToolCall("c2", "recall", {}))
USED = TokenUsage(11, 3)


def model_of(vendor: str, server: FakeServer, **options: Any) -> LanguageModel:
    base = f"{server.url}/v1" if vendor == "openai" else server.url
    given = {"model": "m", "base_url": base, "timeout_seconds": 5, "api_key": "sk-secret"} | options
    model = create_language_model(vendor, given)
    assert model is not None
    return model


async def complete(vendor: str, server: FakeServer, prompt: Prompt = ASK, **options: Any) -> Completion:
    deadline = options.pop("deadline", None)
    model = model_of(vendor, server, **options)
    try:
        return await model.complete(prompt, deadline=None if deadline is None else time.monotonic() + deadline)
    finally:
        await model.close()


async def stream(vendor: str, server: FakeServer, prompt: Prompt = ASK, **options: Any) -> tuple[list[str], Completion]:
    """The pieces, and the whole answer."""
    deadline = options.pop("deadline", None)
    model = model_of(vendor, server, **options)
    pieces: list[str] = []
    try:
        async for piece in model.stream(prompt, deadline=None if deadline is None else time.monotonic() + deadline):
            if isinstance(piece, Completion):
                return pieces, piece
            pieces.append(piece)
    finally:
        await model.close()
    raise AssertionError("no completion")


def good(vendor: str, text: str = "Ann.") -> Reply:
    return Reply(openai_answer(text) if vendor == "openai" else anthropic_answer(anthropic_text(text)))


def good_stream(vendor: str, *, done: bool = True) -> Reply:
    if vendor == "openai":
        deltas = [{"role": "assistant", "content": ""}, {"content": "An"}, {"content": "n."}]
        return Reply(events=openai_events(*deltas, finish="stop" if done else None, done=done))
    deltas = [{"type": "text_delta", "text": "An"}, {"type": "text_delta", "text": "n."}]
    return Reply(events=anthropic_events((anthropic_text(""), deltas), done=done))


@pytest.mark.parametrize("vendor", VENDORS)
async def test_an_answer(vendor: str) -> None:
    with serve(good(vendor)) as server:
        assert await complete(vendor, server) == Completion("Ann.", usage=USED)
    (request,) = server.requests
    assert request["model"] == "m"
    assert request["temperature"] == 0.2
    assert "tools" not in request
    if vendor == "openai":
        assert server.paths == ["/v1/chat/completions"]
        assert request["max_completion_tokens"] == 50
        assert request["messages"] == [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Who?"},
        ]
        assert server.headers[0]["authorization"] == "Bearer sk-secret"
    else:
        assert server.paths == ["/v1/messages"]
        assert request["max_tokens"] == 50
        assert request["system"] == "Be brief."
        assert request["messages"] == [{"role": "user", "content": "Who?"}]
        assert server.headers[0]["x-api-key"] == "sk-secret"
        assert server.headers[0]["anthropic-version"]


@pytest.mark.parametrize("vendor", VENDORS)
async def test_a_streamed_answer(vendor: str) -> None:
    with serve(good_stream(vendor)) as server:
        pieces, completion = await stream(vendor, server)
    assert pieces == ["An", "n."]
    assert completion == Completion("Ann.", usage=USED)
    assert server.requests[0]["stream"] is True


@pytest.mark.parametrize("vendor", VENDORS)
async def test_a_stream_in_odd_pieces_is_put_together(vendor: str) -> None:
    whole = "".join(good_stream(vendor).events or [])
    text = whole.replace("\n\n", "\r\n\r\n") if vendor == "openai" else f": a comment\n\n{whole}"
    with serve(Reply(events=[text[at : at + 7] for at in range(0, len(text), 7)])) as server:
        assert (await stream(vendor, server))[1] == Completion("Ann.", usage=USED)


@pytest.mark.parametrize("vendor", VENDORS)
async def test_tools_are_offered_and_called(vendor: str) -> None:
    calls = [("c1", "recall", '{"query": "tea"}'), ("c2", "recall", "")]
    uses = [{"type": "tool_use", "id": call.id, "name": call.name, "input": dict(call.arguments)} for call in CALLED]
    reply = (
        openai_answer(None, finish="tool_calls", calls=calls)
        if vendor == "openai"
        else anthropic_answer(anthropic_text("Let me see."), *uses, stop="tool_use")
    )
    with serve(Reply(reply)) as server:
        answer = await complete(vendor, server, Prompt(ASK.messages, tools=(RECALL,)))
    assert answer.tool_calls == CALLED
    assert answer.finish_reason is FinishReason.TOOL_CALLS
    (tool,) = server.requests[0]["tools"]
    if vendor == "openai":
        assert tool["function"] == {"name": "recall", "description": "Search.", "parameters": RECALL.parameters}
    else:
        assert tool == {"name": "recall", "description": "Search.", "input_schema": RECALL.parameters}
        assert answer.text == "Let me see."


@pytest.mark.parametrize("vendor", VENDORS)
async def test_tool_calls_come_in_pieces(vendor: str) -> None:
    if vendor == "openai":
        started = {"index": 0, "id": "c1", "function": {"name": "recall", "arguments": ""}}
        deltas: list[dict[str, Any]] = [
            {"tool_calls": [started]},
            {"tool_calls": [{"index": 0, "function": {"arguments": '{"query": '}}]},
            {"tool_calls": [{"index": 1, "id": "c2", "function": {"name": "recall"}}]},
            {"tool_calls": [{"index": 0, "function": {"arguments": '"tea"}'}}]},
        ]
        reply = Reply(events=openai_events(*deltas, finish="tool_calls"))
    else:
        first = {"type": "tool_use", "id": "c1", "name": "recall", "input": {}}
        parts = [{"type": "input_json_delta", "partial_json": part} for part in ("", '{"query": ', '"tea"}')]
        reply = Reply(events=anthropic_events((first, parts), (first | {"id": "c2"}, []), stop="tool_use"))
    with serve(reply) as server:
        pieces, answer = await stream(vendor, server, Prompt(ASK.messages, tools=(RECALL,)))
    assert pieces == []
    assert answer == Completion("", FinishReason.TOOL_CALLS, CALLED, USED)


@pytest.mark.parametrize("vendor", VENDORS)
async def test_answers_of_tools_are_handed_back(vendor: str) -> None:
    conversation = (
        Message(Role.USER, "Who?"),
        Message(Role.ASSISTANT, "Let me see.", tool_calls=CALLED),
        Message(Role.TOOL, "tea: Ann", tool_call_id="c1"),
        Message(Role.TOOL, "nothing", tool_call_id="c2"),
    )
    with serve(good(vendor)) as server:
        await complete(vendor, server, Prompt(conversation, tools=(RECALL,)))
    sent = server.requests[0]["messages"]
    if vendor == "openai":
        assert [turn["role"] for turn in sent] == ["user", "assistant", "tool", "tool"]
        assert json.loads(sent[1]["tool_calls"][0]["function"]["arguments"]) == {"query": "tea"}
        assert sent[2] == {"role": "tool", "content": "tea: Ann", "tool_call_id": "c1"}
    else:
        assert [turn["role"] for turn in sent] == ["user", "assistant", "user"]
        assert sent[1]["content"][1] == {"type": "tool_use", "id": "c1", "name": "recall", "input": {"query": "tea"}}
        assert [block["tool_use_id"] for block in sent[2]["content"]] == ["c1", "c2"]


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("vendor", VENDORS)
async def test_an_answer_in_a_given_form(vendor: str, *, streamed: bool) -> None:
    prompt = Prompt(ASK.messages, response_schema=SCHEMA)
    if vendor == "openai":
        text = '{"ok": true}'
        reply = Reply(events=openai_events({"content": text})) if streamed else Reply(openai_answer(text))
    else:
        block: dict[str, Any] = {"type": "tool_use", "id": "t", "name": "answer", "input": {"ok": True}}
        part = {"type": "input_json_delta", "partial_json": '{"ok": true}'}
        events = anthropic_events((block | {"input": {}}, [part]), stop="tool_use")
        reply = Reply(events=events) if streamed else Reply(anthropic_answer(block, stop="tool_use"))
    with serve(reply) as server:
        answer = (await stream(vendor, server, prompt))[1] if streamed else await complete(vendor, server, prompt)
    assert json.loads(answer.text) == {"ok": True}
    assert answer.finish_reason is FinishReason.STOP
    assert answer.tool_calls == ()
    asked = server.requests[0]
    if vendor == "openai":
        assert asked["response_format"]["json_schema"]["schema"] == SCHEMA
    else:
        assert asked["tools"][0]["input_schema"] == SCHEMA
        assert asked["tool_choice"] == {"type": "tool", "name": "answer"}


@pytest.mark.parametrize("vendor", VENDORS)
async def test_why_it_stopped(vendor: str) -> None:
    cut, refused = ("length", "content_filter") if vendor == "openai" else ("max_tokens", "refusal")
    for name, reason in ((cut, FinishReason.LENGTH), (refused, FinishReason.REFUSED)):
        answer = (
            openai_answer("A", finish=name) if vendor == "openai" else anthropic_answer(anthropic_text("A"), stop=name)
        )
        with serve(Reply(answer)) as server:
            assert (await complete(vendor, server)).finish_reason is reason
    if vendor == "openai":
        with serve(Reply(openai_answer(None, refusal="I will not."))) as server:
            assert (await complete(vendor, server)).finish_reason is FinishReason.REFUSED


@pytest.mark.parametrize("call", [complete, stream])
@pytest.mark.parametrize("vendor", VENDORS)
async def test_too_many_requests_are_waited_for(vendor: str, call: Callable[..., Any]) -> None:
    busy = Reply({"error": {"type": "rate_limit_error"}}, 429, {"Retry-After": "0.2"})
    with serve(busy, good(vendor) if call is complete else good_stream(vendor)) as server:
        started = time.monotonic()
        await call(vendor, server)
        assert time.monotonic() - started >= 0.2
    assert len(server.requests) == 2


@pytest.mark.parametrize("status", [500, 503, 529])
@pytest.mark.parametrize("vendor", VENDORS)
async def test_trouble_of_the_server_is_tried_again_and_then_told(vendor: str, status: int) -> None:
    trouble = Reply({"error": {"type": "overloaded_error", "message": "Who?"}}, status, {"Retry-After": "0"})
    with serve(trouble, good(vendor)) as server:
        assert (await complete(vendor, server)).text == "Ann."
    with serve(trouble) as server, pytest.raises(ProviderUnavailable) as caught:
        await complete(vendor, server)
    assert len(server.requests) == 3
    assert caught.value.metadata["status"] == str(status)
    assert "overloaded_error" in caught.value.message


@pytest.mark.parametrize("vendor", VENDORS)
async def test_a_refusal_is_told_at_once_and_without_what_was_said(vendor: str) -> None:
    refused = Reply({"error": {"type": "invalid_request_error", "code": None, "message": "cannot parse: Who?"}}, 400)
    with serve(refused) as server, pytest.raises(ProviderUnavailable) as caught:
        await complete(vendor, server)
    assert len(server.requests) == 1
    shown = f"{caught.value} {caught.value.metadata}"
    assert "400 (invalid_request_error)" in shown
    assert "Who?" not in shown
    assert "sk-secret" not in shown


@pytest.mark.parametrize("vendor", VENDORS)
async def test_a_wait_beyond_the_deadline_is_not_begun(vendor: str) -> None:
    busy = Reply({}, 429, {"Retry-After": "9"})
    with serve(busy) as server:
        started = time.monotonic()
        with pytest.raises(DeadlineExceeded):
            await complete(vendor, server, deadline=2)
        with pytest.raises(ProviderUnavailable, match="429"):
            await complete(vendor, server, longest_wait_seconds=1)
        assert time.monotonic() - started < 9
    assert len(server.requests) == 2


@pytest.mark.parametrize(
    "body",
    ["not json", "[]", "{}", '{"choices": []}', '{"choices": [{"message": 3}]}', '{"content": 3}', '{"content": [{}]}'],
)
@pytest.mark.parametrize("vendor", VENDORS)
async def test_garbage_is_no_answer(vendor: str, body: str) -> None:
    with (
        serve(Reply(body)) as server,
        pytest.raises(ProviderUnavailable, match=r"not JSON|not a JSON object|invalid answer"),
    ):
        await complete(vendor, server)


@pytest.mark.parametrize("vendor", VENDORS)
async def test_odd_answers_are_refused(vendor: str) -> None:
    if vendor == "openai":
        odd = [openai_answer("A", finish="tired"), openai_answer(None, calls=[("c", "recall", "{")])]
        odd.append(openai_answer(None, calls=[("c", "recall", "[1]")]) | {"usage": None})
        odd.append(openai_answer(["A"]))  # type: ignore[arg-type]
    else:
        odd = [anthropic_answer(anthropic_text("A"), stop="tired"), anthropic_answer({"type": "tool_use"})]
    for answer in odd:
        with serve(Reply(answer)) as server, pytest.raises(ProviderUnavailable):
            await complete(vendor, server)


async def test_an_answer_that_keeps_to_no_form_is_refused() -> None:
    with serve(good("anthropic")) as server, pytest.raises(ProviderUnavailable, match="schema"):
        await complete("anthropic", server, Prompt(ASK.messages, response_schema=SCHEMA))


@pytest.mark.parametrize(
    "events",
    [
        ["data: not json\n\n"],
        ["data: []\n\n"],
        ["data: {}\n\n"],
        ['data: {"type": "content_block_delta", "choices": 3}\n\n'],
    ],
)
@pytest.mark.parametrize("vendor", VENDORS)
async def test_garbage_in_a_stream_is_no_answer(vendor: str, events: list[str]) -> None:
    with (
        serve(Reply(events=events)) as server,
        pytest.raises(ProviderUnavailable, match=r"not JSON|not a JSON object|invalid answer"),
    ):
        await stream(vendor, server)


@pytest.mark.parametrize("vendor", VENDORS)
async def test_a_stream_that_is_cut_short_is_no_answer(vendor: str) -> None:
    with (
        serve(good_stream(vendor, done=False)) as server,
        pytest.raises(ProviderUnavailable, match="ended the stream before"),
    ):
        await stream(vendor, server)
    with serve(good(vendor)) as server, pytest.raises(ProviderUnavailable, match="no event stream"):
        await stream(vendor, server)
    told = Reply(events=['event: error\ndata: {"type": "error", "error": {"type": "overloaded_error"}}\n\n'])
    with (
        serve(told) as server,
        pytest.raises(ProviderUnavailable, match=r"closed the stream early \(overloaded_error\)"),
    ):
        await stream(vendor, server)


@pytest.mark.parametrize("vendor", VENDORS)
async def test_a_body_that_is_cut_short_is_no_answer(vendor: str) -> None:
    answer = good(vendor)
    answer.cut = True
    with serve(answer) as server, pytest.raises(ProviderUnavailable, match="closed the stream early"):
        await complete(vendor, server)


@pytest.mark.parametrize("vendor", VENDORS)
async def test_a_model_that_hangs_is_cut_at_the_deadline(vendor: str) -> None:
    started = time.monotonic()
    with serve(Reply(hang=True)) as server, pytest.raises(DeadlineExceeded):
        await complete(vendor, server, deadline=0.2)
    hanging = good_stream(vendor, done=False)
    hanging.hang = True
    with serve(hanging) as server, pytest.raises(DeadlineExceeded):
        await stream(vendor, server, deadline=0.2)
    assert time.monotonic() - started < 60
    with serve(Reply(hang=True)) as server, pytest.raises(ProviderUnavailable, match="closed the stream early"):
        await complete(vendor, server, timeout_seconds=0.2)


@pytest.mark.parametrize("vendor", VENDORS)
async def test_a_stream_without_end_is_cut(vendor: str) -> None:
    endless = good_stream(vendor, done=False)
    endless.events = (endless.events or [])[:-1] if vendor == "anthropic" else endless.events
    endless.endless = True
    with serve(endless) as server, pytest.raises(ProviderUnavailable, match="more than 1 tokens"):
        await stream(vendor, server, Prompt(ASK.messages, max_tokens=1))


@pytest.mark.parametrize("vendor", VENDORS)
async def test_a_stream_that_is_left_lets_go_of_its_connection(vendor: str) -> None:
    with serve(good_stream(vendor)) as server:
        model = model_of(vendor, server, parallel=1)
        for _ in range(3):
            async for _piece in model.stream(ASK):
                break
        # The only slot is free again.
        assert (await asyncio.wait_for(anext(aiter(model.stream(ASK))), 5)) == "An"
        await model.close()


@pytest.mark.parametrize(("vendor", "variable"), [("openai", "OPENAI_API_KEY"), ("anthropic", "ANTHROPIC_API_KEY")])
async def test_the_key_may_come_from_the_environment(
    vendor: str, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, "sk-environment")
    with serve(good(vendor)) as server:
        await complete(vendor, server, api_key=None)
        await complete(vendor, server)
    named = "authorization" if vendor == "openai" else "x-api-key"
    assert [headers[named].removeprefix("Bearer ") for headers in server.headers] == ["sk-environment", "sk-secret"]


async def test_what_some_endpoints_need() -> None:
    with serve(good("openai")) as server:
        await complete("openai", server, max_tokens_field="max_tokens", send_temperature=False)
    assert server.requests[0]["max_tokens"] == 50
    assert "temperature" not in server.requests[0]


@pytest.mark.parametrize("vendor", VENDORS)
def test_options_that_are_wrong(vendor: str) -> None:
    with pytest.raises(ConfigError, match=r"llm_provider_config\.modle is not an option; did you mean model"):
        create_language_model(vendor, {"modle": "m"})
    with pytest.raises(ConfigError, match=r"llm_provider_config\.retries") as caught:
        create_language_model(vendor, {"retries": -1, "api_key": "sk-secret"})
    assert "sk-secret" not in str(caught.value)


@pytest.mark.parametrize("vendor", VENDORS)
def test_it_needs_no_option(vendor: str) -> None:
    model = create_language_model(vendor, {})
    assert model is not None
    assert model.model_id


PICTURE = ContentPart(PartKind.IMAGE, data=b"\x89PNG", media_type="image/png")
THERE = ContentPart(PartKind.IMAGE, url="https://example.org/a.png")


async def test_openai_is_shown_images_and_played_recordings() -> None:
    with serve(Reply(openai_answer("A pier."))) as server:
        model = create_language_model("openai", {"base_url": server.url, "modalities": ["image", "audio"]})
        assert model is not None
        assert modalities(model) == {"image", "audio"}
        recording = ContentPart(PartKind.AUDIO, data=b"RIFF", media_type="audio/mpeg")
        await model.complete(Prompt((Message(Role.USER, "What?", parts=(PICTURE, THERE, recording)),)))
        await model.close()
    assert server.requests[0]["messages"][0]["content"] == [
        {"type": "text", "text": "What?"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw=="}},
        {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}},
        {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "mp3"}},
    ]


async def test_anthropic_is_shown_images() -> None:
    with serve(Reply(anthropic_answer(anthropic_text("A pier.")))) as server:
        model = create_language_model("anthropic", {"base_url": server.url})
        assert model is not None
        assert modalities(model) == {"image"}
        await model.complete(Prompt((Message(Role.USER, "What?", parts=(PICTURE, THERE)),)))
        await model.close()
    assert server.requests[0]["messages"][0]["content"] == [
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw=="}},
        {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}},
        {"type": "text", "text": "What?"},
    ]


STREAM = HEAD + b"Content-Type: text/event-stream\r\n\r\n"


@pytest.mark.parametrize(
    ("begin", "drop", "pause", "problem"),
    [
        (STREAM, b"data: " + b"x" * 65_536, 0.0, "a line of the response exceeds"),
        (STREAM, b": " + b"x" * 1_000 + b"\n", 0.0, "exceeds"),
        (STREAM, b"\n" * 65_536, 0.0, "lines"),
        (STREAM, b":\n", 0.02, "takes longer than"),
        (HEAD, b"X-A: b\r\n", 0.02, "did not answer"),
    ],
)
@pytest.mark.parametrize("vendor", VENDORS)
async def test_a_stream_that_tells_nothing_is_cut(
    vendor: str, begin: bytes, drop: bytes, pause: float, problem: str
) -> None:
    seconds = 0.5 if pause else 30.0
    async with dripping(begin, drop, pause) as url:
        model = create_language_model(
            vendor, {"model": "m", "base_url": url, "retries": 0, "longest_answer_seconds": seconds}
        )
        assert model is not None
        with pytest.raises(ProviderUnavailable, match=problem):
            async for _ in model.stream(ASK):
                pass
        await model.close()


@pytest.mark.parametrize("vendor", VENDORS)
async def test_a_body_that_drips_is_cut(vendor: str) -> None:
    async with dripping(HEAD + b"\r\n", b" ", 0.02) as url:
        model = create_language_model(vendor, {"model": "m", "base_url": url, "longest_answer_seconds": 0.3})
        assert model is not None
        with pytest.raises(ProviderUnavailable, match="takes longer than"):
            await model.complete(ASK)
        await model.close()


async def test_a_proxy_of_the_environment_holds_for_each_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    with serve(Reply({}, 503), good("openai")) as proxy:
        monkeypatch.setenv("http_proxy", proxy.url)
        monkeypatch.delenv("no_proxy", raising=False)
        monkeypatch.delenv("NO_PROXY", raising=False)
        model = create_language_model("openai", {"model": "m", "base_url": "http://models.example/v1"})
        assert model is not None
        assert (await model.complete(ASK)).text == "Ann."
        await model.close()
    assert proxy.paths == ["http://models.example/v1/chat/completions"] * 2
