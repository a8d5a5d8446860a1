"""Against a real HTTP server on loopback that speaks the wire format, well and badly."""

import asyncio
import gzip
import json
import struct
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from astrocyte.errors import ConfigError, ProviderUnavailable
from astrocyte.providers.openai import OpenAIEmbedder, OpenAIOptions, create
from external.dripping import HEAD, dripping


@dataclass
class Fake:
    """The next answers of the server; after them it answers well."""

    answers: list[Any] = field(default_factory=list)
    requests: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str | None] = field(default_factory=list)
    stop: threading.Event = field(default_factory=threading.Event)
    url: str = ""


def vector_of(text: str) -> list[float]:
    return [float(len(text)), 1.0]


@pytest.fixture
def fake() -> Iterator[Fake]:
    state = Fake()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            assert self.path == "/v1/embeddings"
            state.requests.append(body)
            state.keys.append(self.headers.get("Authorization"))
            answer = state.answers.pop(0) if state.answers else None
            if answer == "hang":
                state.stop.wait(10)
                return
            if isinstance(answer, tuple):
                status, headers, payload = answer
            else:
                data = [
                    {"object": "embedding", "index": index, "embedding": vector_of(text)}
                    for index, text in enumerate(body["input"])
                ]
                # The order of the entries is not promised.
                payload = answer or json.dumps({"object": "list", "data": data[::-1], "model": body["model"]})
                status, headers = 200, {}
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(payload)))
            self.end_headers()
            self.wfile.write(payload.encode())

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    state.url = f"http://127.0.0.1:{server.server_port}/v1"
    yield state
    state.stop.set()
    server.shutdown()
    server.server_close()
    thread.join()


def embedder(fake: Fake, **options: Any) -> OpenAIEmbedder:
    given = {"model": "m", "dimensions": 2, "base_url": fake.url, "retries": 2, "timeout_seconds": 5} | options
    return OpenAIEmbedder(OpenAIOptions(**given))


async def embed(fake: Fake, texts: list[str], **options: Any) -> list[bytes]:
    made = embedder(fake, **options)
    try:
        return await made.embed(texts)
    finally:
        await made.close()


def unit(text: str) -> bytes:
    x, y = vector_of(text)
    norm = (x * x + y * y) ** 0.5
    return struct.pack("<2f", x / norm, y / norm)


async def test_vectors_come_in_order_and_of_length_one(fake: Fake) -> None:
    texts = ["a" * n for n in range(1, 8)]
    assert await embed(fake, texts, batch_size=3, api_key="sk-1") == [unit(text) for text in texts]
    assert sorted(len(request["input"]) for request in fake.requests) == [1, 3, 3]
    assert fake.requests[0]["model"] == "m"
    assert "dimensions" not in fake.requests[0]
    assert set(fake.keys) == {"Bearer sk-1"}


async def test_dimensions_are_asked_for_on_wish(fake: Fake) -> None:
    await embed(fake, ["a"], send_dimensions=True)
    assert fake.requests[0]["dimensions"] == 2
    assert fake.keys == [None]


async def test_no_texts_need_no_request(fake: Fake) -> None:
    assert await embed(fake, []) == []
    assert fake.requests == []


@pytest.mark.parametrize("status", [429, 500, 503])
async def test_trouble_that_passes_is_waited_for(fake: Fake, status: int) -> None:
    fake.answers = [(status, {"Retry-After": "0"}, "later"), (status, {}, "later")]
    assert await embed(fake, ["a"]) == [unit("a")]
    assert len(fake.requests) == 3


async def test_a_date_to_retry_after_is_understood(fake: Fake) -> None:
    fake.answers = [(429, {"Retry-After": formatdate(usegmt=True)}, "")]
    assert await embed(fake, ["a"]) == [unit("a")]


async def test_retry_after_is_waited_for(fake: Fake) -> None:
    fake.answers = [(429, {"Retry-After": "0.3"}, "")]
    started = asyncio.get_running_loop().time()
    await embed(fake, ["a"])
    assert asyncio.get_running_loop().time() - started >= 0.3


async def test_a_wait_that_is_too_long_fails_at_once(fake: Fake) -> None:
    fake.answers = [(429, {"Retry-After": "3600"}, "busy")]
    with pytest.raises(ProviderUnavailable, match="answered 429 and asked to wait 3600 s"):
        await embed(fake, ["a"])
    assert len(fake.requests) == 1


async def test_trouble_that_stays_is_reported(fake: Fake) -> None:
    fake.answers = [(500, {"Retry-After": "0"}, "broken")] * 3
    with pytest.raises(ProviderUnavailable, match=r"answered 500$"):
        await embed(fake, ["a"])
    assert len(fake.requests) == 3


async def test_a_refusal_is_not_repeated(fake: Fake) -> None:
    fake.answers = [(401, {}, '{"error": "bad key"}')]
    with pytest.raises(ProviderUnavailable, match="401") as caught:
        await embed(fake, ["a"], api_key="sk-secret")
    assert len(fake.requests) == 1
    assert "sk-secret" not in str(caught.value)


async def test_a_server_that_hangs_is_given_up(fake: Fake) -> None:
    fake.answers = ["hang"]
    with pytest.raises(ProviderUnavailable, match="did not answer"):
        await embed(fake, ["a"], timeout_seconds=0.2, retries=0)


async def test_a_server_that_is_not_there(fake: Fake) -> None:
    with pytest.raises(ProviderUnavailable, match="did not answer"):
        await embed(fake, ["a"], base_url="http://127.0.0.1:1/v1", retries=0)


@pytest.mark.parametrize(
    ("payload", "message"),
    [
        ("not json", "not JSON"),
        ("[]", "not a JSON object"),
        ('{"data": []}', "0 vectors for 1"),
        ('{"data": [{"index": 0}]}', "invalid vectors"),
        ('{"data": [{"index": 1, "embedding": [1, 2]}]}', "1 vectors for 1"),
        ('{"data": [{"index": 0, "embedding": [1, 2, 3]}]}', "3 dimensions"),
        ('{"data": [{"index": 0, "embedding": [0, 0]}]}', "zero"),
        ('{"data": [{"index": 0, "embedding": [NaN, 1]}]}', "not a number"),
        ('{"data": [{"index": 0, "embedding": ["a", 1]}]}', "invalid vectors"),
        ('{"data": [{"index": 0, "embedding": "AAAA"}]}', "4 dimensions"),
    ],
)
async def test_an_answer_that_is_no_vectors(fake: Fake, payload: str, message: str) -> None:
    fake.answers = [payload]
    with pytest.raises(ProviderUnavailable, match=message):
        await embed(fake, ["a"])


async def test_it_never_runs_on_the_loop(fake: Fake) -> None:
    made = embedder(fake)
    assert not made.local
    with pytest.raises(ProviderUnavailable, match="network"):
        made.embed_now(["a"])
    await made.close()


async def test_one_failing_batch_fails_the_call(fake: Fake) -> None:
    fake.answers = [(400, {}, "no")]
    with pytest.raises(ProviderUnavailable, match="400"):
        await embed(fake, ["a", "b", "c"], batch_size=1, parallel=1)


@pytest.mark.parametrize(
    "options", [{}, {"model": "m"}, {"model": "m", "dimensions": 0}, {"model": "m", "dimensions": 2, "x": 1}]
)
def test_options_that_are_wrong(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=r"embedding\.options"):
        create(options)


ECHOED = '{"error": {"message": "cannot embed: Mara is allergic to kiwi", "code": "mara", "type": "mara"}}'


@pytest.mark.parametrize("status", [400, 401, 429, 500])
async def test_no_error_repeats_what_the_endpoint_says(fake: Fake, status: int) -> None:
    fake.answers = [(status, {"Retry-After": "0"}, ECHOED)] * 3
    with pytest.raises(ProviderUnavailable, match=str(status)) as caught:
        await embed(fake, ["Mara is allergic to kiwi"])
    assert "mara" not in f"{caught.value!r} {caught.value.metadata} {caught.value.__cause__!r}".lower()


async def test_no_error_shows_the_password_of_an_address(fake: Fake) -> None:
    fake.answers = [(400, {}, "no")]
    with pytest.raises(ProviderUnavailable, match=r"127\.0\.0\.1") as caught:
        await embed(fake, ["a"], base_url=fake.url.replace("//", "//ann:sesame@"))
    assert "sesame" not in f"{caught.value} {caught.value.metadata}"


@pytest.mark.parametrize(
    ("begin", "drop", "pause", "problem"),
    [
        (HEAD, b"X-A: b\r\n", 0.02, "did not answer"),
        (HEAD + b"\r\n", b" ", 0.02, "takes longer than"),
        (HEAD + b"\r\n", b" " * 65_536, 0.0, "bytes"),
        (HEAD + b"Content-Encoding: gzip\r\n\r\n" + gzip.compress(b" " * 1_000_000), b"", 0.0, "bytes"),
    ],
)
async def test_an_answer_without_end_is_cut(begin: bytes, drop: bytes, pause: float, problem: str) -> None:
    started = time.monotonic()
    async with dripping(begin, drop, pause) as url:
        made = OpenAIEmbedder(
            OpenAIOptions(model="m", dimensions=2, base_url=url, retries=0, batch_size=1, timeout_seconds=0.5)
        )
        with pytest.raises(ProviderUnavailable, match=problem):
            await made.embed(["a"])
        await made.close()
    assert time.monotonic() - started < 60


async def test_vectors_of_the_largest_size_fit() -> None:
    longest = "-1.2345678901234567e-100"
    entries = [
        f'{{"object": "embedding", "index": {at}, "embedding": [{", ".join([longest] * 64)}]}}' for at in range(8)
    ]
    payload = f'{{"data": [{", ".join(entries)}]}}'.encode()
    async with dripping(HEAD + f"Content-Length: {len(payload)}\r\n\r\n".encode() + payload, b"") as url:
        made = OpenAIEmbedder(OpenAIOptions(model="m", dimensions=64, base_url=url, retries=0, batch_size=8))
        assert len(await made.embed(["a"] * 8)) == 8
        await made.close()
