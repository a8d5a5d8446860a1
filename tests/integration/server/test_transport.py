"""The gRPC server below the services, beside clients of gRPC's own: what it passes on, holds back, refuses and ends."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import grpc
import pytest

from astrocyte.core import GrpcServer
from astrocyte.services.transport import Context
from harness.serving import reason, trailer
from harness.transports import (
    ACK,
    DATA,
    END_STREAM,
    GOAWAY,
    HEADERS,
    MAX_ANSWER_BYTES,
    NO_WINDOW,
    OPTIONS,
    PING,
    WINDOW_UPDATE,
    Running,
    echo,
    kind,
    path,
    plain,
    running,
    streaming,
    unary,
    until,
)


async def failure(call: Any) -> grpc.aio.AioRpcError:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call
    return caught.value


async def test_metadata_goes_both_ways() -> None:
    seen: list[Any] = []

    async def call(request: bytes, context: Context) -> bytes:
        seen.extend(item for item in context.invocation_metadata() if item[0].startswith("x-"))
        context.set_trailing_metadata((("x-end", "good"), ("x-end-bin", b"\0\xff")))
        return request

    sent = (("x-name", "a b"), ("x-name", "c"), ("x-raw-bin", b"\0\x01\xfe"))
    async with running({"Call": unary(call)}) as served:
        answer = served.unary("Call")(b"x" * 100_000, metadata=sent)
        assert await answer == b"x" * 100_000
        assert await answer.code() is grpc.StatusCode.OK
        assert set(await answer.trailing_metadata()) >= {("x-end", "good"), ("x-end-bin", b"\0\xff")}
    assert sorted(seen, key=str) == sorted(sent, key=str)


async def test_metadata_that_is_too_large_is_refused() -> None:
    async with running({"Call": unary(echo)}) as served:
        for size, fits in ((15_000, True), (17_000, False), (100_000, False)):
            call = served.unary("Call")(b"on", metadata=(("x-large", "y" * size),))
            if fits:
                assert await call == b"on"
            else:
                assert (await failure(call)).code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert await served.unary("Call")(b"on") == b"on"


async def test_a_failure_has_code_message_and_trailers() -> None:
    async def call(_: bytes, context: Context) -> bytes:
        await context.abort(grpc.StatusCode.ABORTED, "nö:\n 50 %", (("x-end", "bad"), ("x-end-bin", b"\xff")))

    async with running({"Call": unary(call)}) as served:
        error = await failure(served.unary("Call")(b""))
        assert (error.code(), error.details()) == (grpc.StatusCode.ABORTED, "nö:\n 50 %")
        assert (trailer(error, "x-end"), trailer(error, "x-end-bin")) == ("bad", b"\xff")


async def test_a_fault_says_nothing_of_itself() -> None:
    async def call(_: bytes, __: Context) -> bytes:
        raise ValueError("a secret")

    async with running({"Call": unary(call), "Echo": unary(echo)}) as served:
        error = await failure(served.unary("Call")(b""))
        assert (error.code(), error.details()) == (grpc.StatusCode.INTERNAL, "internal error")
        assert (await failure(served.unary("Other")(b""))).code() is grpc.StatusCode.UNIMPLEMENTED
        assert await served.unary("Echo")(b"on") == b"on"


async def test_a_method_of_one_request_takes_one() -> None:
    async with running({"Call": unary(echo)}) as served:
        call: Any = served.channel.stream_unary(path("Call"))
        for requests in ([], [b"a", b"b"]):
            error = await failure(call(iter(requests)))
            assert error.code() is grpc.StatusCode.UNIMPLEMENTED, requests
        assert await call(iter([b"a"])) == b"a"


async def test_a_compressed_request_is_read() -> None:
    async with (
        running({"Call": unary(echo)}) as served,
        grpc.aio.insecure_channel(served.address, compression=grpc.Compression.Gzip) as channel,
    ):
        squeezed: Any = channel.unary_unary(path("Call"))
        assert await squeezed(b"x" * 50_000) == b"x" * 50_000
        # What it becomes counts, not what it was sent as.
        error = await failure(squeezed(b"x" * 1_500_000))
        assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED


async def test_a_message_that_is_too_large_ends_a_stream() -> None:
    ended: list[str] = []

    async def call(requests: AsyncIterator[bytes], _: Context) -> AsyncIterator[bytes]:
        try:
            async for request in requests:
                yield request
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise

    async with running({"Call": streaming(call)}) as served:
        for count in range(1, 31):
            stream = served.streaming("Call")()
            await stream.write(b"small")
            assert await stream.read() == b"small"
            await stream.write(b"x" * 1_000_001)
            error = await failure(stream.read())
            assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
            assert str(error.details()).startswith("Received message larger than max")
            # Not as if the caller had sent all that it had.
            await until(lambda count=count: ended == ["cancelled"] * count)


async def test_a_slow_reader_holds_up_who_writes_to_it() -> None:
    written = 0

    async def call(requests: AsyncIterator[bytes], context: Context) -> None:
        nonlocal written
        async for _ in requests:
            pass
        for number in range(1_500):
            await context.write(bytes([number % 256]) * 65_536)
            written += 1

    async with running({"Call": streaming(call)}) as served:
        messages = aiter(served.streaming("Call")(iter([b""])))
        assert (await anext(messages))[:1] == b"\0"
        # What its caller's windows take, which grow with what comes, and no more.
        before = -1
        while before != written:
            before = written
            await asyncio.sleep(0.2)
        assert written < 1_400
        rest = [message[0] async for message in messages]
        assert rest == [number % 256 for number in range(1, 1_500)]
    assert written == 1_500


async def test_many_small_requests_wait_for_a_slow_handler() -> None:
    go = asyncio.Event()

    async def call(requests: AsyncIterator[bytes], context: Context) -> None:
        context.begin()
        await go.wait()
        count = 0
        async for request in requests:
            assert request == count.to_bytes(2)
            count += 1
        await context.write(count.to_bytes(4))

    async with running({"Call": streaming(call)}) as served:
        stream = served.streaming("Call")()
        # As many as the window of a stream takes, which h2 has to put up with: it would end the connection.
        for number in range(16_000):
            await stream.write(number.to_bytes(2))
        go.set()
        await stream.done_writing()
        assert await stream.read() == (16_000).to_bytes(4)


async def test_a_writer_waits_for_who_does_not_read() -> None:
    go = asyncio.Event()
    sent = 0

    async def call(requests: AsyncIterator[bytes], context: Context) -> None:
        context.begin()
        await go.wait()
        total = 0
        async for request in requests:
            total += len(request)
        await context.write(total.to_bytes(4))

    async def requests() -> AsyncIterator[bytes]:
        nonlocal sent
        for _ in range(200):
            yield bytes(100_000)
            sent += 1

    async with running({"Call": streaming(call)}) as served:
        stream = served.streaming("Call")(requests())
        await asyncio.sleep(0.3)
        assert sent < 100
        go.set()
        assert await stream.read() == (20_000_000).to_bytes(4)


@pytest.mark.parametrize("how", ["deadline", "cancel", "gone"])
async def test_a_handler_hears_that_nobody_waits(how: str) -> None:
    seen: list[str] = []

    async def call(_: bytes, context: Context) -> bytes:
        seen.append("begun")
        left = context.time_remaining()
        assert (left is None) is (how != "deadline")
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise
        return b""

    async with running({"Call": unary(call)}) as served:
        waiting = served.unary("Call")(b"", timeout=0.3 if how == "deadline" else None)
        await until(lambda: seen)
        if how == "cancel":
            waiting.cancel()
        if how == "gone":
            await served.channel.close()
        await until(lambda: seen == ["begun", "cancelled"])
        if how == "deadline":
            assert (await failure(waiting)).code() is grpc.StatusCode.DEADLINE_EXCEEDED
        await until(lambda: served.native.busy()[0] == 0)


async def test_beyond_the_places_of_a_kind_calls_are_told_in_turn() -> None:
    go = asyncio.Event()

    async def call(_: bytes, __: Context) -> bytes:
        await go.wait()
        return b""

    exhausted = grpc.StatusCode.RESOURCE_EXHAUSTED.value[0]
    refusals = [(exhausted, f"told {number}", [("x-turn", str(number))]) for number in range(2)]
    options: dict[str, Any] = {
        "methods": {path("Call"): (True, 0), path("Echo"): (True, None)},
        "kinds": [kind(3, refusals=refusals)],
    }
    async with running({"Call": unary(call), "Echo": unary(echo)}, **options) as served:
        within = [asyncio.ensure_future(served.unary("Call")(b"")) for _ in range(3)]
        await until(lambda: served.native.busy()[0] == 3)
        told = [await failure(served.unary("Call")(b"", metadata=(("x-request-id", "mine"),))) for _ in range(4)]
        assert [error.details() for error in told] == ["told 0", "told 1"] * 2
        assert {error.code() for error in told} == {grpc.StatusCode.RESOURCE_EXHAUSTED}
        assert [trailer(error, "x-turn") for error in told] == ["0", "1"] * 2
        assert {trailer(error, "x-request-id") for error in told} == {"mine"}
        # An id that cannot be shown is none.
        made = await failure(served.unary("Call")(b"", metadata=(("x-request-id", "x" * 200),)))
        assert trailer(made, "x-request-id").startswith("t-r")
        assert await served.unary("Echo")(b"on") == b"on"
        go.set()
        await asyncio.gather(*within)
        assert await served.unary("Call")(b"") == b""


async def test_beyond_all_places_calls_are_refused() -> None:
    go = asyncio.Event()

    async def call(_: bytes, __: Context) -> bytes:
        await go.wait()
        return b""

    async with running({"Call": unary(call)}, max_others=2) as served:
        calls = [asyncio.ensure_future(served.unary("Call")(b"")) for _ in range(2)]
        await until(lambda: served.native.busy()[0] == 2)
        async with grpc.aio.insecure_channel(served.address, options=[("grpc.use_local_subchannel_pool", 1)]) as other:
            call_too_many: Any = other.unary_unary(path("Call"))
            error = await failure(call_too_many(b"", timeout=5))
        assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        go.set()
        await asyncio.gather(*calls)


async def test_what_runs_ends_before_the_server_does() -> None:
    go = asyncio.Event()

    async def call(_: bytes, __: Context) -> bytes:
        await go.wait()
        return b"done"

    async with running({"Call": unary(call)}) as served:
        call_ = asyncio.ensure_future(served.unary("Call")(b""))
        await until(lambda: served.native.busy()[0] == 1)
        stopping = asyncio.create_task(served.transport.stop(10))
        await asyncio.sleep(0.1)
        go.set()
        assert await call_ == b"done"
        await stopping


async def test_what_lasts_longer_than_the_grace_is_cut_off() -> None:
    async def call(_: bytes, __: Context) -> bytes:
        await asyncio.sleep(60)
        return b""

    async with running({"Call": unary(call)}) as served:
        call_ = asyncio.ensure_future(served.unary("Call")(b""))
        await until(lambda: served.native.busy()[0] == 1)
        await served.transport.stop(0.1)
        assert (await failure(call_)).code() is grpc.StatusCode.UNAVAILABLE


async def test_calls_that_a_client_began_before_it_knew_of_the_stop_are_answered() -> None:
    async with running({"Call": unary(echo)}) as served, plain(served.address) as client:
        client.call("Call", b"first")
        await client.frame(DATA)
        served.native.stop()
        _, _, last = await client.frame(GOAWAY)
        assert int.from_bytes(last[:4]) == (1 << 31) - 1
        # The C core answers a ping before it sends the calls that it began earlier, and their windows.
        with suppress(TimeoutError):
            _, _, payload = await asyncio.wait_for(client.frame(PING), 0.2)
            client.send(PING, ACK, 0, payload)
            await asyncio.sleep(0.2)
        client.open(3, path("Call"))
        client.send(WINDOW_UPDATE, 0, 3, (1 << 16).to_bytes(4))
        client.send(DATA, END_STREAM, 3, b"\0" + (4).to_bytes(4) + b"late")
        assert await asyncio.wait_for(client.frame(DATA), 5) == (0, 3, b"\0" + (4).to_bytes(4) + b"late")


@pytest.mark.parametrize("age", [0.1, None])
async def test_an_old_connection_is_told_to_go(age: float | None) -> None:
    async with running({"Call": unary(echo)}, max_connection_age=age) as served:
        async with plain(served.address) as client:
            try:
                async with asyncio.timeout(0.5):
                    await client.frame(GOAWAY)
            except TimeoutError:
                assert age is None
            else:
                assert age is not None
        # Others go to a new one.
        for _ in range(10):
            assert await served.unary("Call")(b"on") == b"on"
            await asyncio.sleep(0.03)


async def test_a_call_keeps_its_place_until_its_handler_is_done() -> None:
    go = asyncio.Event()
    seen: list[str] = []

    async def call(_: bytes, __: Context) -> bytes:
        seen.append("begun")
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            seen.append("cancelled")
            await go.wait()
        return b""

    options: dict[str, Any] = {"methods": {path("Call"): (True, 0), path("Echo"): (True, 0)}, "kinds": [kind(1)]}
    async with running({"Call": unary(call), "Echo": unary(echo)}, **options) as served:
        waiting = served.unary("Call")(b"")
        await until(lambda: seen)
        waiting.cancel()
        await until(lambda: seen == ["begun", "cancelled"])
        # Nobody waits for it, but the loop has it still.
        assert (await failure(served.unary("Echo")(b""))).details() == "full"
        go.set()
        await until(lambda: not served.transport._open)
        assert await served.unary("Echo")(b"on") == b"on"


async def test_a_caller_who_takes_no_answer_keeps_no_place() -> None:
    options: dict[str, Any] = {"methods": {path("Call"): (True, 0)}, "kinds": [kind(1)]}
    async with running({"Call": unary(echo)}, **options) as served:
        async with plain(served.address, NO_WINDOW) as client:
            client.call("Call", b"never taken")
            await client.frame(HEADERS)
            assert await served.unary("Call")(b"on") == b"on"
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(client.frame(DATA), 0.05)
        await until(lambda: served.native.busy()[0] == 0)


async def test_calls_that_are_given_up_at_once_leave_nothing() -> None:
    options: dict[str, Any] = {"methods": {path("Call"): (True, 0)}, "kinds": [kind(50)]}
    async with running({"Call": unary(echo)}, **options) as served:
        for _ in range(10):
            calls = [served.unary("Call")(b"x") for _ in range(50)]
            await asyncio.sleep(0)
            # The loop hears of calls and of their ends in one turn.
            time.sleep(0.002)  # noqa: ASYNC251
            for call in calls:
                call.cancel()
            time.sleep(0.005)  # noqa: ASYNC251
        # What is on its way arrives.
        await asyncio.sleep(0.3)
        await until(lambda: served.native.busy()[0] == 0 and not served.transport._open)
        assert await asyncio.gather(*(served.unary("Call")(b"on") for _ in range(50))) == [b"on"] * 50


async def test_a_stream_that_is_refused_at_once_tells_who_is_writing() -> None:
    async def call(_: AsyncIterator[bytes], context: Context) -> None:
        await context.abort(grpc.StatusCode.UNAUTHENTICATED, "who?")

    answers = []
    async with running({"Call": streaming(call)}) as served:
        for _ in range(50):
            error = await failure(served.streaming("Call")(iter([b"x"])).read())
            answers.append((error.code(), error.details()))
    # The client library now and then gives up by itself when the answer comes while it writes.
    told = [(code, details) for code, details in answers if "Internal error from Core" not in str(details)]
    assert len(told) > len(answers) // 2
    assert set(told) == {(grpc.StatusCode.UNAUTHENTICATED, "who?")}


async def test_an_answer_that_no_client_takes_by_default_is_refused_with_the_number_to_raise() -> None:
    async def call(request: bytes, _: Context) -> bytes:
        return bytes(int(request))

    async def stream(requests: AsyncIterator[bytes], context: Context) -> None:
        async for request in requests:
            await context.write(bytes(int(request)))

    async with running({"Call": unary(call), "Stream": streaming(stream)}) as served:
        assert len(await served.unary("Call")(b"%d" % MAX_ANSWER_BYTES)) == MAX_ANSWER_BYTES
        for answer in (
            served.unary("Call")(b"%d" % (MAX_ANSWER_BYTES + 1)),
            served.streaming("Stream")(iter([b"%d" % (MAX_ANSWER_BYTES + 1)])).read(),
        ):
            error = await failure(answer)
            assert (error.code(), reason(error)) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "MESSAGE_TOO_LARGE")
            assert "server.max_answer_bytes" in str(error.details())


async def test_what_is_not_grpc_is_told_so_in_http() -> None:
    async with running({"Call": unary(echo)}) as served, plain(served.address) as client:
        client.call("Call", headers={"content-type": "text/plain"})
        flags, stream, _ = await client.frame(HEADERS)
        assert (flags & END_STREAM, stream) == (END_STREAM, 1)
        assert served.native.busy()[0] == 0


@pytest.mark.parametrize(
    "media_type", ["application/grpc-web", "application/grpc-web+proto", "application/grpc-web-text"]
)
async def test_grpc_web_is_refused_before_anything_runs(media_type: str) -> None:
    hpack = pytest.importorskip("hpack", reason="an extra that is not installed")
    called = []

    async def note(request: bytes, _: object) -> bytes:
        called.append(request)
        return request

    async with running({"Call": unary(note)}) as served, plain(served.address) as client:
        client.call("Call", b"text", headers={"content-type": media_type})
        flags, stream, block = await client.frame(HEADERS)
        found = dict(hpack.Decoder().decode(block))
        assert (flags & END_STREAM, stream, found[":status"]) == (END_STREAM, 1, "415")
        assert "grpc-status" not in found
        # The next call of the connection's server is answered.
        assert await served.unary("Call")(b"next") == b"next"
        assert called == [b"next"]


async def test_a_client_of_http_1_is_told_what_is_missing() -> None:
    async with running({"Call": unary(echo)}) as served:
        host, port = served.address.split(":")
        for said in (
            b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
            b"POST /a/B HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n",
        ):
            reader, writer = await asyncio.open_connection(host, int(port))
            # However slowly it comes.
            for byte in said:
                writer.write(bytes([byte]))
                await writer.drain()
            answer = await asyncio.wait_for(reader.read(), 10)
            assert answer.startswith(b"HTTP/1.1 400 ")
            assert b"needs HTTP/2" in answer
            writer.close()
        assert served.native.busy()[0] == 0


@pytest.mark.parametrize(("encoding", "flag"), [("gzip", 1), ("deflate", 1), ("identity", 0), (None, 0)])
async def test_an_answer_is_compressed_as_the_request_is(encoding: str | None, flag: int) -> None:
    async with running({"Call": unary(echo)}) as served, plain(served.address) as client:
        headers = {"grpc-accept-encoding": "identity,deflate,gzip"} | ({"grpc-encoding": encoding} if encoding else {})
        client.call("Call", b"tea " * 500, headers=headers)
        _, _, data = await client.frame(DATA)
        assert data[0] == flag
        assert (len(data) < 500) is bool(flag)


async def test_what_is_no_call_disturbs_nobody() -> None:
    async with running({"Call": unary(echo)}) as served:
        host, port = served.address.split(":")
        for said in (
            b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
            b"\0" * 1_000,
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\xff" * 100,
        ):
            reader, writer = await asyncio.open_connection(host, int(port))
            writer.write(said)
            # It is hung up on, however politely.
            async with asyncio.timeout(10):
                with suppress(ConnectionResetError):
                    await reader.read()
            writer.close()
        assert await served.unary("Call")(b"on") == b"on"


@pytest.mark.parametrize("name", ["plain.sock", "a b~ü@.sock"])
async def test_a_unix_socket_of_any_name(tmp_path: Path, name: str) -> None:
    async def call(requests: AsyncIterator[bytes], _: Context) -> AsyncIterator[bytes]:
        async for request in requests:
            yield request

    folder = tmp_path / "deep er"
    folder.mkdir()
    target = f"unix:{folder / name}"
    # Whatever a message says, it is what the authority may not be, as well.
    quoted = (str(folder / name).lstrip("/").replace("/", "%2F") + "%2F").encode() * 1_000
    async with running({"Call": streaming(call), "Echo": unary(echo)}, target) as served:
        for _ in range(3):
            assert await served.unary("Echo")(quoted) == quoted
        assert [message async for message in served.streaming("Call")(iter([quoted, b"", quoted]))] == [
            quoted,
            b"",
            quoted,
        ]
    assert not (folder / name).exists()


async def test_a_socket_that_was_left_behind_is_replaced_and_one_in_use_is_not(tmp_path: Path) -> None:
    file = tmp_path / "left.sock"
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(file))
    target = f"unix:{file}"
    async with running({"Call": unary(echo)}, target) as served:
        assert await served.unary("Call")(b"on") == b"on"
        with pytest.raises(OSError, match="in use"):
            await _serve_at(target)
        assert await served.unary("Call")(b"still") == b"still"


async def _serve_at(target: str) -> Running:
    async with running({"Call": unary(echo)}, target) as served:
        return served


def test_files_that_are_no_certificates_are_named() -> None:
    with pytest.raises(ValueError, match=r"server\.tls_cert_file: there is no certificate"):
        GrpcServer(methods={}, **OPTIONS, certificates=b"x", key=b"y")


@pytest.mark.parametrize("size", [0, 5, 64 << 10, (64 << 10) + 1, 3 << 20])
async def test_answers_of_any_size_are_sent(size: int) -> None:
    answer = bytes(range(256)) * (size // 256) + bytes(size % 256)

    async def call(request: bytes, _: Context) -> bytes:
        await asyncio.sleep(float(request))
        return answer

    async with running({"Call": unary(call)}) as served:
        method = served.unary("Call")
        # The window of a stream is smaller than the largest: the rest of it is sent as the client reads.
        assert [await method(b"0") for _ in range(20)] == [answer] * 20
        assert await asyncio.gather(*(method(b"0.00%d" % (number % 5)) for number in range(20))) == [answer] * 20
        await until(lambda: served.native.busy()[0] == 0)
