import pytest

from astrocyte.errors import ConfigError
from astrocyte.providers.messages import Completion, FinishReason, Message, Prompt, Role, ToolCall
from astrocyte.providers.registry import create_language_model

ENTRIES = "Entries:\n[1] (2024-05-08) Ann: green tea\n[2] Bob: coffee"


async def ask(options: dict[str, object], *texts: str, max_tokens: int = 100) -> list[Completion]:
    model = create_language_model("mock", options)
    assert model is not None
    prompts = [Prompt((Message(Role.USER, text),), max_tokens=max_tokens) for text in texts]
    return [await model.complete(prompt) for prompt in prompts]


async def test_a_script_is_followed_and_its_last_answer_stays() -> None:
    call = {"tool_calls": [{"name": "recall", "arguments": {"query": "tea"}}]}
    first, second, third = await ask({"replies": [call, "green tea"]}, "a", "b", "c")
    assert first.tool_calls == (ToolCall("call_0_0", "recall", {"query": "tea"}),)
    assert first.finish_reason is FinishReason.TOOL_CALLS
    assert second.text == third.text == "green tea"
    assert second.finish_reason is FinishReason.STOP
    assert second.usage.total == 3


async def test_without_a_script_it_quotes_the_first_entry() -> None:
    (known,) = await ask({}, ENTRIES)
    assert known.text == "Ann: green tea [1]"
    (unknown,) = await ask({}, "no entries")
    assert unknown.text == "I do not know."


async def test_it_keeps_to_the_limit() -> None:
    (cut,) = await ask({"replies": ["one two three"]}, "a", max_tokens=2)
    assert cut.text == "one two"
    assert cut.finish_reason is FinishReason.LENGTH


async def test_it_streams() -> None:
    model = create_language_model("mock", {"replies": ["one two"]})
    assert model is not None
    pieces = [piece async for piece in model.stream(Prompt((Message(Role.USER, "a"),)))]
    assert pieces[:-1] == ["one ", "two"]
    assert isinstance(pieces[-1], Completion)
    await model.close()


def test_a_script_that_is_none() -> None:
    with pytest.raises(ConfigError, match=r"llm_provider_config\.replies"):
        create_language_model("mock", {"replies": [3]})
