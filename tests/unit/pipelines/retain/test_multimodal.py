"""Parts that are no text: described, embedded, or refused with what is missing."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest

from astrocyte.api.requests import BatchRetain, GetMemory, Recall, Retain, StreamRetain
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.core import vector_bytes
from astrocyte.errors import (
    AstrocyteError,
    CapabilityNotSupported,
    DeadlineExceeded,
    PiiRejected,
    ProviderUnavailable,
    ValidationError,
)
from astrocyte.model import Caller, ContentPart, Memory, PartKind, RecallQuery, RetainItem
from astrocyte.pipelines.retain.multimodal import Describer
from astrocyte.policy.gate import Gate
from astrocyte.policy.privacy.barriers import Barriers
from astrocyte.policy.requests import validation
from astrocyte.providers.bounded import BoundedModel
from astrocyte.providers.messages import Completion, FinishReason, Prompt

ME = Caller()
PNG = ContentPart(PartKind.IMAGE, data=b"\x89PNG", media_type="image/png")
WAV = ContentPart(PartKind.AUDIO, data=b"RIFF", media_type="audio/wav")
TEXT = ContentPart(PartKind.TEXT, "and then")


@dataclass
class Seer:
    """Says what it is told to of images, and of recordings if it may."""

    answers: list[Any] = field(default_factory=lambda: ["A pier at dusk."])
    modalities: frozenset[str] = frozenset({"image", "audio"})
    prompts: list[Prompt] = field(default_factory=list)
    model_id: str = "seer"

    async def complete(self, prompt: Prompt, *, deadline: float | None = None) -> Completion:
        assert deadline is not None
        self.prompts.append(prompt)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if answer == "hang":
            import asyncio

            await asyncio.sleep(30)
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, Completion) else Completion(answer)

    async def stream(self, prompt: Prompt, *, deadline: float | None = None) -> AsyncIterator[str | Completion]:
        yield await self.complete(prompt, deadline=deadline)

    async def close(self) -> None:
        pass


class Eye:
    """An embedder whose space holds images too."""

    model_id, dimensions, local = "eye", 2, False

    def __init__(self) -> None:
        self.contents: list[Sequence[ContentPart]] = []

    def embed_now(self, texts: Sequence[str]) -> list[bytes]:
        return [vector_bytes([0.0, 1.0]) for _ in texts]

    async def embed(self, texts: Sequence[str]) -> list[bytes]:
        return self.embed_now(texts)

    async def embed_multimodal(self, contents: Sequence[Sequence[ContentPart]]) -> list[bytes]:
        self.contents += contents
        return [vector_bytes([1.0, 0.0]) for _ in contents]

    async def close(self) -> None:
        pass


@asynccontextmanager
async def opened(model: Seer | None = None, eye: Eye | None = None, **settings: Any) -> AsyncIterator[Gate]:
    with pytest.MonkeyPatch.context() as patch:
        if model is not None:
            patch.setattr("astrocyte.wiring.providers.create_language_model", lambda name, options: BoundedModel(model))
        if eye is not None:
            patch.setattr("astrocyte.wiring.providers.create_embedder", lambda name, options: eye)
        provider = "none" if model is None else "mock"
        app = App(Settings.from_mapping({"vector_store": "in_memory", "llm_provider": provider, **settings}))
    try:
        yield app.gate
    finally:
        await app.close()


async def stored(gate: Gate, item: RetainItem) -> Memory:
    result = await gate.call(ME, Retain("b", item))
    return await gate.call(ME, GetMemory("b", result.memory_id or ""))


async def test_what_is_said_of_parts_is_stored_in_their_order() -> None:
    model = Seer(["A pier at dusk.", "Ann: we should go."])
    async with opened(model) as gate:
        memory = await stored(gate, RetainItem("On Monday", parts=(PNG, TEXT, WAV)))
        assert memory.content == "On Monday\n\nImage: A pier at dusk.\n\nand then\n\nRecording: Ann: we should go."
        assert (await gate.call(ME, Recall(RecallQuery("pier", "b")))).hits[0].memory_id == memory.memory_id
        assert [prompt.messages[1].parts for prompt in model.prompts] == [(PNG,), (WAV,)]
        # Nothing that a caller wrote stands beside the instruction.
        assert "Monday" not in str(model.prompts)


async def test_content_may_be_empty_beside_parts() -> None:
    for reject in (True, False):
        async with opened(Seer(), barriers={"validation": {"reject_empty_content": reject}}) as gate:
            assert (await stored(gate, RetainItem("", parts=(PNG,)))).content == "Image: A pier at dusk."


async def test_text_parts_need_nobody() -> None:
    async with opened() as gate:
        assert (await stored(gate, RetainItem("One", parts=(TEXT,)))).content == "One\n\nand then"


@pytest.mark.parametrize(
    ("model", "part"), [(None, PNG), (Seer(modalities=frozenset({"image"})), WAV), (Seer(modalities=frozenset()), PNG)]
)
async def test_who_cannot_is_told_so(model: Seer | None, part: ContentPart) -> None:
    async with opened(model) as gate:
        for validate_only in (False, True):
            with pytest.raises(CapabilityNotSupported, match=r"parts\[1\].*(image|audio)") as caught:
                await gate.call(ME, Retain("b", RetainItem("x", parts=(TEXT, part)), validate_only=validate_only))
            assert caught.value.metadata["parameter"] == "parts[1]"


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (ProviderUnavailable("away"), ProviderUnavailable),
        ("", ProviderUnavailable),
        (Completion("No.", FinishReason.REFUSED), ProviderUnavailable),
        ("hang", DeadlineExceeded),
    ],
)
async def test_a_model_that_fails_stores_nothing(answer: object, error: type[AstrocyteError]) -> None:
    settings: dict[str, Any] = {"pipeline": {"multimodal": {"deadline_seconds": 0.05}}}
    async with opened(Seer([answer]), **settings) as gate:
        with pytest.raises(error):
            await gate.call(ME, Retain("b", RetainItem("x", parts=(PNG,))))
        results = await gate.call(ME, StreamRetain("c", [RetainItem("good"), RetainItem("x", parts=(PNG,))]))
        assert isinstance(results[1], error)


async def test_a_caption_passes_the_barriers() -> None:
    settings: dict[str, Any] = {"barriers": {"pii": {"mode": "regex", "action": "reject"}}}
    async with opened(Seer(["A card that says ana@example.org"]), **settings) as gate:
        with pytest.raises(PiiRejected):
            await gate.call(ME, Retain("b", RetainItem("x", parts=(PNG,))))


async def test_validation_asks_nobody() -> None:
    model = Seer()
    async with opened(model) as gate:
        result = await gate.call(ME, Retain("b", RetainItem("", parts=(PNG,)), validate_only=True))
        assert (result.stored, result.error, model.prompts) == (False, None, [])


async def test_a_retry_asks_nobody_again() -> None:
    model = Seer()
    async with opened(model) as gate:
        results = [await gate.call(ME, Retain("b", RetainItem("", parts=(PNG,)), request_id="r")) for _ in range(2)]
        assert results[0].memory_id == results[1].memory_id
        assert len(model.prompts) == 1


MULTIMODAL: dict[str, Any] = {"pipeline": {"multimodal": {"mode": "multimodal_embed"}}}


async def test_an_embedder_that_can_makes_the_vector() -> None:
    eye = Eye()
    async with opened(Seer(), eye, **MULTIMODAL) as gate:
        memory = await stored(gate, RetainItem("On Monday", parts=(PNG,)))
        assert memory.content == "On Monday\n\nImage: A pier at dusk."
        assert eye.contents == [(ContentPart(PartKind.TEXT, "On Monday"), PNG)]
        others = [RetainItem(f"Other {number}") for number in range(3)]
        await gate.call(ME, BatchRetain("b", others))
        query = RecallQuery("zzz", "b", embedding=None)
        assert len((await gate.call(ME, Recall(query))).hits) >= 1


async def test_without_a_model_each_part_is_a_memory_of_its_own() -> None:
    eye = Eye()
    async with opened(None, eye, **MULTIMODAL) as gate:
        other = ContentPart(PartKind.IMAGE, data=b"\x89PNG2", media_type="image/png")
        first, second = [await stored(gate, RetainItem("", parts=(part,))) for part in (PNG, other)]
        assert first.memory_id != second.memory_id
        assert first.content.startswith("Image ")


async def test_an_embedder_that_cannot_leaves_it_to_the_model() -> None:
    async with opened(Seer(), **MULTIMODAL) as gate:
        assert (await stored(gate, RetainItem("", parts=(PNG,)))).content == "Image: A pier at dusk."


async def test_parts_by_address_are_taken_where_the_operator_says_so() -> None:
    part = ContentPart(PartKind.IMAGE, url="https://example.org/pier.png")
    async with opened(Seer()) as gate:
        with pytest.raises(CapabilityNotSupported, match="with a URL"):
            await gate.call(ME, Retain("b", RetainItem("", parts=(part,))))
    async with opened(Seer(), pipeline={"multimodal": {"urls": True}}) as gate:
        assert (await stored(gate, RetainItem("", parts=(part,)))).content == "Image: A pier at dusk."


BAD = {
    "not a part": ("x", "parts[0]"),
    "no bytes": (ContentPart(PartKind.IMAGE), "parts[0]"),
    "both": (ContentPart(PartKind.IMAGE, data=b"x", url="https://e.org"), "parts[0]"),
    "another format": (ContentPart(PartKind.IMAGE, data=b"x", media_type="image/svg+xml"), "parts[0].media_type"),
    "another kind's format": (ContentPart(PartKind.AUDIO, data=b"x", media_type="image/png"), "parts[0].media_type"),
    "a file": (ContentPart(PartKind.IMAGE, url="file:///etc/passwd"), "parts[0].url"),
    "a recording by address": (ContentPart(PartKind.AUDIO, url="https://e.org"), "parts[0].url"),
    "empty text": (ContentPart(PartKind.TEXT, " "), "parts[0].text"),
    "text with bytes": (ContentPart(PartKind.TEXT, "x", data=b"x"), "parts[0]"),
    "an image with text": (ContentPart(PartKind.IMAGE, "x", data=b"x", media_type="image/png"), "parts[0].text"),
    "too large": (ContentPart(PartKind.IMAGE, data=bytes(101), media_type="image/png"), "parts"),
}


@pytest.mark.parametrize("name", list(BAD))
async def test_a_wrong_part_is_named(name: str) -> None:
    part, path = BAD[name]
    model = Seer()
    async with opened(model, limits={"part_bytes": 100, "parts": 2}) as gate:
        with pytest.raises(ValidationError) as caught:
            await gate.call(ME, Retain("b", RetainItem("x", parts=(part,))))  # type: ignore[arg-type] # what is tested
        assert caught.value.metadata["field"] == path
        with pytest.raises(ValidationError):
            await gate.call(ME, Retain("b", RetainItem("x", parts=(TEXT,) * 3)))
        assert model.prompts == []


def without_capabilities(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Describer, "_check", lambda *_: None)


def without_barriers(patch: pytest.MonkeyPatch) -> None:
    async def item(_self: Barriers, _bank: str, _operation: str, given: RetainItem, *_: Any, **__: Any) -> Any:
        return given, ()

    patch.setattr(Barriers, "item", item)


def without_part_checks(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(validation, "check_parts", lambda *_: None)


@pytest.mark.parametrize(
    ("switch_off", "held"),
    [
        (without_capabilities, partial(test_who_cannot_is_told_so, None, PNG)),
        (without_capabilities, partial(test_who_cannot_is_told_so, Seer(modalities=frozenset({"image"})), WAV)),
        (without_capabilities, test_parts_by_address_are_taken_where_the_operator_says_so),
        (without_barriers, test_a_caption_passes_the_barriers),
        (without_part_checks, partial(test_a_wrong_part_is_named, "another format")),
        (without_part_checks, partial(test_a_wrong_part_is_named, "too large")),
        (without_part_checks, partial(test_a_wrong_part_is_named, "empty text")),
    ],
)
async def test_without_the_guard_the_test_fails(
    monkeypatch: pytest.MonkeyPatch, switch_off: Callable[[pytest.MonkeyPatch], None], held: Callable[[], Any]
) -> None:
    """The control: each of the tests above, with what it is about taken away."""
    await held()
    switch_off(monkeypatch)
    with pytest.raises(pytest.fail.Exception, match="DID NOT RAISE"):
        await held()
