"""Reflect over the wire: through generated stubs, the client, the library and the command line."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import grpc
import pytest
import yaml
from click.testing import CliRunner

from astrocyte import Astrocyte, connect
from astrocyte.api.requests import Reflect
from astrocyte.cli import cli
from astrocyte.errors import (
    BankNotFound,
    DeadlineExceeded,
    ProviderUnavailable,
    ValidationError,
)
from astrocyte.model import Caller, Dispositions, ReflectMode, ReflectQuery, ReflectResult
from astrocyte.v1 import memory_pb2
from doubles.language_models import Reply, openai_answer, openai_events, serve
from harness.serving import Served, reason, serving

CONTENT = "Customer prefers dark-mode UI and weekly email digests."
ASKED = "What are this customer's communication preferences?"
MOCK = {"llm_provider": "mock"}


async def filled(served: Served) -> None:
    await served.memory.Retain(memory_pb2.RetainRequest(bank_id="prefs", content=CONTENT, source="ticket"))


def request(**fields: Any) -> memory_pb2.ReflectRequest:
    return memory_pb2.ReflectRequest(**{"bank_id": "prefs", "query": ASKED, **fields})


async def test_an_answer_over_the_wire() -> None:
    async with serving() as served:
        await filled(served)
        answer = await served.memory.Reflect(request())
        assert answer.answer == CONTENT
        assert answer.mode == memory_pb2.REFLECT_MODE_EXTRACTIVE
        assert 0 < answer.confidence < 1
        assert answer.sources[0].source == "ticket"
        (citation,) = answer.citations
        assert (citation.start, citation.end, citation.memory_id) == (0, len(CONTENT), answer.sources[0].memory_id)
        assert answer.trace.tier_used == 3
        bare = await served.memory.Reflect(request(include_sources=False))
        assert list(bare.sources) == []
        unknown = await served.memory.Reflect(request(query="Who won the match in Lisbon?"))
        assert unknown.abstained
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await served.memory.Reflect(request(mode=memory_pb2.REFLECT_MODE_LLM))
        assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await served.memory.Reflect(request(dispositions=memory_pb2.Dispositions(skepticism=9)))
        assert reason(caught.value) == "INVALID_ARGUMENT"


async def test_an_answer_in_pieces_over_the_wire() -> None:
    async with serving(**MOCK) as served:
        await filled(served)
        stream = served.memory.StreamReflect(memory_pb2.StreamReflectRequest(reflect=request()))
        *pieces, last = [response async for response in stream]
        assert len(pieces) > 3
        assert "".join(piece.text for piece in pieces) == last.result.answer == CONTENT
        assert last.result.mode == memory_pb2.REFLECT_MODE_LLM
        assert last.result.tokens_used > 0
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            async for _ in served.memory.StreamReflect(memory_pb2.StreamReflectRequest()):
                pass
        assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT


async def test_the_client_and_the_library_answer_alike() -> None:
    async with serving(**MOCK) as served:
        await filled(served)
        inside, outside = Astrocyte(served.app.gate), connect(served.address)
        for brain in (inside, outside):
            result = await brain.reflect(ASKED, bank_id="prefs", include_sources=True, dispositions={"empathy": 5})
            assert result.answer == CONTENT
            assert result.mode is ReflectMode.LLM
            assert result.sources is not None
            assert [source.text[:60] for source in result.sources] == [CONTENT]
            assert (await brain.reflect(ASKED, "prefs", include_sources=False)).sources is None
            assert (await brain.reflect(ASKED, "prefs", mode="extractive", max_tokens=3)).truncated
            pieces = [piece async for piece in brain.reflect_stream(ASKED, "prefs")]
            assert isinstance(pieces[-1], ReflectResult)
            assert "".join(map(str, pieces[:-1])) == CONTENT
            with pytest.raises(BankNotFound):
                await brain.reflect(ASKED, "nowhere")
            with pytest.raises(BankNotFound):
                async for _ in brain.reflect_stream(ASKED, "nowhere"):
                    pass
            with pytest.raises(ValidationError, match=r"dispositions\.skepticism"):
                await brain.reflect(ASKED, "prefs", dispositions=Dispositions(skepticism=9))
            with pytest.raises(ValidationError, match="dispositions"):
                await brain.reflect(ASKED, "prefs", dispositions={"patience": 3})
            with pytest.raises(ValidationError, match="mode"):
                await brain.reflect(ASKED, "prefs", mode="wise")
            with pytest.raises(ValidationError, match="bank_id"):
                await brain.reflect(ASKED)
            with pytest.raises(ValidationError, match="banks"):
                await brain.reflect(ASKED, banks=[])
            with pytest.raises(TypeError, match="Did you mean 'session_id'"):
                await brain.reflect(ASKED, "prefs", sesion_id="x")  # type: ignore[call-arg]
        await outside.close()


async def test_several_banks_answer_over_the_wire() -> None:
    group = {"banks": ["prefs", "calvin"], "strategy": "first_match", "cascade_order": ["calvin"]}
    async with serving(multi_bank={"bank_groups": {"mine": group}}) as served:
        await filled(served)
        own = "Calvin is a customer who prefers dark-mode UI at night."
        inside, outside = Astrocyte(served.app.gate), connect(served.address)
        await inside.retain(own, bank_id="calvin")
        for brain in (inside, outside):
            result = await brain.reflect(ASKED, banks=["prefs", "calvin"])
            assert {source.bank_id: source.text for source in result.sources or ()} == {"prefs": CONTENT, "calvin": own}
            assert result.trace is not None
            assert [bank.bank_id for bank in result.trace.banks] == ["prefs", "calvin"]
            first = await brain.reflect(ASKED, banks=["prefs", "calvin"], strategy="first_match")
            assert {source.bank_id for source in first.sources or ()} == {"prefs"}
            pieces = [piece async for piece in brain.reflect_stream(ASKED, bank_group="mine")]
            assert isinstance(pieces[-1], ReflectResult)
            assert {source.bank_id for source in pieces[-1].sources or ()} == {"calvin"}
            with pytest.raises(BankNotFound):
                await brain.reflect(ASKED, banks=["prefs", "nowhere"])
            with pytest.raises(ValidationError, match="strategy"):
                await brain.reflect(ASKED, "prefs", strategy="cascade")
        await outside.close()


def model_at(url: str, **reflect: Any) -> dict[str, Any]:
    return {
        "llm_provider": "openai",
        "llm_provider_config": {"base_url": f"{url}/v1", "model": "m", "retries": 0},
        "pipeline": {"reflect": reflect},
    }


async def test_a_model_behind_http_answers() -> None:
    with serve(
        Reply(openai_answer("Dark mode [1].")), Reply(events=openai_events({"content": "Dark mode [1]."}))
    ) as api:
        async with serving(**model_at(api.url)) as served:
            await filled(served)
            answer = await served.memory.Reflect(request())
            assert answer.answer == "Dark mode."
            assert answer.tokens_used == 14
            stream = served.memory.StreamReflect(memory_pb2.StreamReflectRequest(reflect=request()))
            assert [response async for response in stream][-1].result.answer == "Dark mode."
    assert [sent.get("stream", False) for sent in api.requests] == [False, True]


async def test_a_model_that_hangs_holds_up_nobody() -> None:
    with serve(Reply(hang=True)) as api:
        async with serving(**model_at(api.url, deadline_seconds=1)) as served:
            await filled(served)
            hung = [asyncio.create_task(served.backend.call(*_reflect())) for _ in range(4)]
            found = await served.memory.Recall(memory_pb2.RecallRequest(bank_id="prefs", query=ASKED))
            assert len(found.hits) == 1
            # They wait still: the recall was not behind them.
            assert not all(task.done() for task in hung)
            for task in hung:
                with pytest.raises(DeadlineExceeded):
                    await task


async def test_a_stream_without_a_deadline_gets_the_servers() -> None:
    with serve(Reply(events=[], hang=True)) as api:
        limits = {"reflect_deadline_seconds": 0.2, "reflect_concurrency": 1}
        async with serving(**model_at(api.url, deadline_seconds=20), server=limits) as served:
            await filled(served)
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                async for _ in served.memory.StreamReflect(memory_pb2.StreamReflectRequest(reflect=request())):
                    pass
            assert caught.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
            # Its place is free again.
            extractive = request(mode=memory_pb2.REFLECT_MODE_EXTRACTIVE)
            assert (await served.memory.Reflect(extractive)).answer == CONTENT


async def test_a_model_that_is_down_is_told_or_fallen_back_from() -> None:
    with serve(Reply({"error": {"code": "overloaded"}}, 503)) as api:
        async with serving(**model_at(api.url)) as served:
            await filled(served)
            with pytest.raises(ProviderUnavailable, match="503"):
                await served.backend.call(*_reflect())
        async with serving(**model_at(api.url), fallback_strategy="extractive") as served:
            await filled(served)
            result = await served.backend.call(*_reflect())
            assert result.fallback_used
            assert result.answer == CONTENT


def _reflect() -> Any:
    return Caller(), Reflect(ReflectQuery(ASKED, "prefs"))


def test_the_command_line_answers(tmp_path: Path) -> None:
    settings = tmp_path / "settings.yaml"
    settings.write_text(yaml.safe_dump({"data_dir": str(tmp_path / "data"), **MOCK}))

    def run(*arguments: str) -> str:
        done = CliRunner().invoke(cli, ["--config", str(settings), *arguments])
        assert done.exit_code == 0, done.stderr
        return done.stdout

    run("retain", "prefs", CONTENT)
    shown = run("reflect", "prefs", ASKED)
    assert f"{CONTENT} [1]" in shown
    assert "mode llm" in shown
    assert CONTENT in run("reflect", "prefs", ASKED, "--stream")
    run("retain", "own", "Calvin is a customer who prefers dark-mode UI at night.")
    shown = run("--json", "reflect", "prefs", ASKED, "--also", "own", "--mode", "extractive")
    assert '"bank_id": "own"' in shown
    assert '"bank_id": "prefs"' in shown
    first = ("--strategy", "first_match", "--mode", "extractive")
    assert (
        '"bank_id": "own"'
        not in run("--json", "reflect", "prefs", ASKED, "--also", "own", *first).partition('"trace"')[0]
    )
    assert '"mode": "extractive"' in run("--json", "reflect", "prefs", ASKED, "--mode", "extractive")
    shown = run("reflect", "prefs", "Who won the match in Lisbon?", "--skepticism", "5", "--mode", "extractive")
    assert "Memory does not hold an answer" in shown
    assert "Note: No memory that was found mentions Lisbon." in shown
