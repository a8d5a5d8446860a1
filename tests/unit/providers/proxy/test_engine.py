"""A proxy source asks as its settings say, reads what comes, and keeps answers and tokens."""

import asyncio
import base64
import json
import stat
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import httpx
import pytest
from pydantic import ValidationError

from astrocyte.config.sources.proxies import as_engine
from astrocyte.errors import CapabilityNotSupported, FailedPrecondition, ProviderUnavailable
from astrocyte.model import ForgetSelector, MemoryHit, RecallQuery, ReflectQuery
from astrocyte.providers.engines import EngineAnswer, EngineCall
from astrocyte.providers.proxy import rows
from astrocyte.providers.proxy.answers import MOST_BYTES, Answers, Sized
from astrocyte.providers.proxy.engine import ProxyEngine
from astrocyte.providers.proxy.token_file import TokenFile
from external.proxied import Names, Network, reply, source

CALL = EngineCall("notes", principal="user:ann", hops=1)
HITS = {"hits": [{"text": "The coffee is cold.", "score": 0.5}]}


def engine(network: Network, directory: Path | None = None, **settings: Any) -> ProxyEngine:
    return ProxyEngine("tickets", source(**settings), directory, resolver=Names(), transport=network)


async def ask(made: ProxyEngine, text: str = "cold coffee", call: EngineCall = CALL) -> list[str]:
    answer = await made.recall(call, RecallQuery(text, "notes", max_results=3))
    return [hit.text for hit in answer.hits]


def always(body: object = HITS, status: int = 200) -> Callable[[httpx.Request], httpx.Response]:
    return lambda _: reply(body, status)


async def test_a_post_without_a_template() -> None:
    network = Network(always())
    assert await ask(engine(network, headers={"X-Site": "a"})) == ["The coffee is cold."]
    (request,) = network.requests
    assert json.loads(request.content) == {"query": "cold coffee", "bank_id": "notes", "max_results": 3}
    assert request.headers["content-type"] == "application/json"
    assert (request.headers["x-site"], request.headers["x-astrocyte-hops"]) == ("a", "1")
    assert "x-astrocyte-on-behalf-of" not in request.headers


async def test_templates_of_a_body() -> None:
    body = {
        "q": ["bank:__astrocyte.bank_id__ __astrocyte.query__"],
        "size": "__astrocyte.max_results__",
        "deep": {"is": True, "none": None},
    }
    network = Network(always())
    # What a caller asks is a value, whatever it looks like.
    await ask(engine(network, recall_body=body, forward_principal=True), '"}, __astrocyte.bank_id__')
    assert json.loads(network.requests[0].content) == {
        "q": ['bank:notes "}, __astrocyte.bank_id__'],
        "size": 3,
        "deep": {"is": True, "none": None},
    }
    assert network.requests[0].headers["x-astrocyte-on-behalf-of"] == "user:ann"


async def test_placeholders_of_an_address_are_encoded() -> None:
    network = Network(always())
    url = "https://tickets.example/banks/{bank_id}?q={query}&n={max_results}"
    call = EngineCall("a@b")
    await ask(engine(network, url=url, recall_method="GET"), "a&n=9#/../ü {bank_id}", call)
    raw = network.requests[0].url.raw_path
    assert raw == b"/banks/a%40b?q=a%26n%3D9%23%2F..%2F%C3%BC%20%7Bbank_id%7D&n=3"
    assert network.requests[0].method == "GET"


@pytest.mark.parametrize(
    ("auth", "headers"),
    [
        ({"type": "bearer", "token": "t1"}, {"authorization": "Bearer t1"}),
        ({"type": "api_key", "key": "k1"}, {"x-api-key": "k1"}),
        ({"type": "api_key", "header": "Api-Token", "key": "k1"}, {"api-token": "k1"}),
    ],
)
async def test_fixed_credentials(auth: dict[str, str], headers: dict[str, str]) -> None:
    network = Network(always())
    made = engine(network, auth=auth)
    await ask(made)
    assert headers.items() <= dict(network.requests[0].headers).items()
    network.handler = always({}, 401)
    with pytest.raises(FailedPrecondition):
        await ask(made)
    assert len(network.requests) == 2


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"recall_method": "GET", "url": "https://a.example/{query}", "recall_body": {}}, "no effect with"),
        ({"url": "http://a.example/", "auth": {"type": "bearer", "token": "t"}}, "must not be sent unencrypted"),
        ({"headers": {"Host": "a"}}, "Host is set by the server"),
        ({"headers": {"X-A": "a\r\nHost: b"}}, "visible ASCII"),
        ({"recall_body": {"q": "__astrocyte.principal__"}}, "unknown placeholder"),
        ({"recall_body": {"q": datetime(2026, 1, 1, tzinfo=UTC)}}, "expected JSON, got a datetime"),
        ({"mapping": {"hits": "hits"}}, "should match pattern"),
        ({"mapping": {"text": "$..text"}}, "should match pattern"),
        ({"weight": -1}, "greater than or equal"),
    ],
)
def test_settings_that_are_wrong(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        source(**values)


async def test_other_answers_than_hits() -> None:
    network = Network(always())
    made = engine(network)
    for status, error in ((400, FailedPrecondition), (404, FailedPrecondition), (302, ProviderUnavailable)):
        network.handler = always({}, status)
        with pytest.raises(error, match=str(status)):
            await ask(made)
    bodies: list[object] = [b"no", b"[" * 100_000, b'{"hits": NaN}', {"hits": {}}, {"items": []}, [1]]
    for body in bodies:
        network.handler = always(body)
        with pytest.raises(ProviderUnavailable, match="without a list of hits"):
            await ask(made)
    network.handler = always({}, 500)
    with pytest.raises(ProviderUnavailable, match="answered 500"):
        await ask(made)


async def test_a_principal_that_no_header_can_hold_is_not_forwarded() -> None:
    network = Network(always())
    with pytest.raises(FailedPrecondition, match="printable ASCII"):
        await ask(engine(network, forward_principal=True), call=EngineCall("notes", principal="user:ännchen"))
    assert network.requests == []


async def test_it_is_only_read() -> None:
    made = engine(Network(always()))
    able = made.capabilities()
    assert (able.retain, able.forget, able.reflect, able.time_travel) == (False, False, False, False)
    for call in (
        made.retain(CALL, []),
        made.reflect(CALL, ReflectQuery("a", "notes")),
        made.forget(CALL, ForgetSelector(scope="all"), compliance=False, reason=None),
    ):
        with pytest.raises(CapabilityNotSupported):
            await call


def read(row: object, most: int = 10, **mapping: Any) -> list[MemoryHit]:
    found = rows.hits(source(mapping=mapping).mapping, json.dumps(row).encode(), most)
    assert found is not None
    return found


def test_rows_of_any_form() -> None:
    row = {
        "id": 7,
        "fields": {"title": "Cold coffee", "labels": ["a", 1, "b"], "at": "2026-01-02T03:04:05+01:00"},
        "links": [{"url": "https://tickets.example/7"}],
        "votes": 12,
    }
    (hit,) = read(
        {"data": {"items": [row, {"fields": {"title": " "}}, 3]}},
        hits="$.data.items",
        text="$.fields.title",
        memory_id="$.id",
        score="$.rank",
        tags="$.fields.labels",
        occurred_at="$.fields.at",
        source="$.links[0].url",
        metadata={"votes": "$.votes", "none": "$.none", "list": "$.links"},
    )
    assert hit == MemoryHit(
        "Cold coffee",
        1.0,
        memory_id="7",
        tags=("a", "b"),
        occurred_at=datetime(2026, 1, 2, 2, 4, 5, tzinfo=UTC),
        source="https://tickets.example/7",
        metadata={"votes": 12, "none": None},
    )


def test_fields_of_another_form_are_left_out() -> None:
    odd = {
        "text": "a",
        "score": 10**400,
        "memory_id": True,
        "tags": "a",
        "occurred_at": "yesterday",
        "retained_at": 1e300,
        "metadata": [1],
        "speaker": 3,
    }
    assert read({"hits": [odd]}) == [MemoryHit("a", 1.0, metadata={})]
    seconds = {"text": "a", "score": 0, "retained_at": 1_767_225_600, "metadata": {"a": 1, "b": {}}}
    (hit,) = read([seconds], hits="$")
    assert (hit.score, hit.retained_at, hit.metadata) == (0.0, datetime(2026, 1, 1, tzinfo=UTC), {"a": 1})


def test_hits_without_scores_keep_their_order() -> None:
    found = read({"hits": [{"text": str(number)} for number in range(20)]}, most=5)
    assert [hit.text for hit in found] == ["0", "1", "2", "3", "4"]
    assert [hit.score for hit in found] == sorted((hit.score for hit in found), reverse=True)


async def test_an_answer_is_used_again_for_the_same_caller_and_question() -> None:
    network = Network(always())
    made = engine(network, cache_seconds=3_600)
    for _ in range(2):
        assert await ask(made) == ["The coffee is cold."]
    assert len(network.requests) == 1
    await ask(made, "hot coffee")
    await ask(made, call=EngineCall("notes", principal="user:bob", hops=1))
    await ask(made, call=EngineCall("others", principal="user:ann", hops=1))
    assert len(network.requests) == 4
    # The control: without it, each recall asks.
    plain = engine(network)
    for _ in range(2):
        await ask(plain)
    assert len(network.requests) == 6


async def test_an_answer_that_is_late_is_for_the_next_one() -> None:
    now, asked, go = 0.0, 0, asyncio.Event()
    answers = Answers(60.0, 4, lambda: now)

    async def slow() -> Sized:
        nonlocal asked
        asked += 1
        await go.wait()
        return Sized(EngineAnswer([MemoryHit("a", 1.0)]), 10)

    first = asyncio.create_task(answers.of("key", slow))
    second = asyncio.create_task(answers.of("key", slow))
    await asyncio.sleep(0)
    first.cancel()
    go.set()
    assert [hit.text for hit in (await second).hits] == ["a"]
    await answers.of("key", slow)
    assert asked == 1
    now = 60.0
    await answers.of("key", slow)
    assert asked == 2


async def test_answers_are_bounded_and_failures_are_not_kept() -> None:
    answers, asked = Answers(60.0, 4, lambda: 0.0), 0

    async def large() -> Sized:
        nonlocal asked
        asked += 1
        return Sized(EngineAnswer([]), MOST_BYTES // 2)

    for key in ("a", "b", "c", "a"):
        await answers.of(key, large)
    assert asked == 4
    await answers.of("a", large)
    assert asked == 4

    async def broken() -> Sized:
        raise ProviderUnavailable("no")

    for _ in range(2):
        with pytest.raises(ProviderUnavailable):
            await answers.of("d", broken)
    await answers.close()


class TokenService:
    """A token endpoint with rotating refresh tokens, and a service that wants its access tokens."""

    def __init__(self, directory: Path | None = None) -> None:
        self.refresh = "r0"
        self.access = ""
        self.forms: list[dict[str, list[str]]] = []
        self.basic: list[str] = []
        self.kept: list[str] = []
        self.directory = directory

    def __call__(self, request: httpx.Request) -> httpx.Response:
        if request.headers["host"] == "login.example":
            return self._token(request)
        if self.directory is not None:
            self.kept.append(json.loads((self.directory / "tickets.token").read_text())["token"])
        right = request.headers.get("authorization") == f"Bearer {self.access}"
        return reply(HITS if right else {}, 200 if right else 401)

    def _token(self, request: httpx.Request) -> httpx.Response:
        form = parse_qs(request.content.decode())
        self.forms.append(form)
        self.basic.append(request.headers.get("authorization", ""))
        if form["grant_type"] == ["refresh_token"] and form["refresh_token"] != [self.refresh]:
            return reply({"error": "invalid_grant"}, 400)
        self.access = f"a{len(self.forms)}"
        self.refresh = f"r{len(self.forms)}"
        answer: dict[str, Any] = {"access_token": self.access, "expires_in": 3_600, "token_type": "bearer"}
        return reply({**answer, "refresh_token": self.refresh} if form["grant_type"] == ["refresh_token"] else answer)


CLIENT = {"token_url": "https://login.example/token", "client_id": "me:1", "client_secret": "s e"}
CREDENTIALS = {"type": "oauth2_client_credentials", "scope": "read all", **CLIENT}
REFRESH = {"type": "oauth2_refresh_token", "refresh_token": "r0", **CLIENT}


async def test_client_credentials() -> None:
    service = TokenService()
    made = engine(Network(service), auth=CREDENTIALS)
    assert list(await asyncio.gather(ask(made), ask(made))) == [["The coffee is cold."]] * 2
    assert service.forms == [{"grant_type": ["client_credentials"], "scope": ["read all"]}]
    assert base64.b64decode(service.basic[0].removeprefix("Basic ")) == b"me%3A1:s%20e"
    # A revoked token is replaced once.
    service.access = "other"
    assert await ask(made) == ["The coffee is cold."]
    assert len(service.forms) == 2


async def test_a_client_in_the_body() -> None:
    service = TokenService()
    await ask(engine(Network(service), auth={**CREDENTIALS, "client_authentication": "body"}))
    assert (service.forms[0]["client_id"], service.forms[0]["client_secret"]) == (["me:1"], ["s e"])
    assert service.basic == [""]


async def test_a_replaced_refresh_token_survives_a_restart(tmp_path: Path) -> None:
    directory = tmp_path / "tokens"
    service = TokenService(directory)
    for _ in range(3):
        made = engine(Network(service), directory, auth=REFRESH)
        assert await ask(made) == ["The coffee is cold."]
        await made.close()
    assert [form["refresh_token"] for form in service.forms] == [["r0"], ["r1"], ["r2"]]
    # Each was on disk before the access token that came with it was used.
    assert service.kept == ["r1", "r2", "r3"]
    file = directory / "tickets.token"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    # The control: without a directory, the next process has the first one, which is worth nothing now.
    service.directory = None
    with pytest.raises(ProviderUnavailable, match="gave no access token"):
        await ask(engine(Network(service), None, auth=REFRESH))


async def test_a_caller_who_gives_up_does_not_lose_a_token(tmp_path: Path) -> None:
    directory = tmp_path / "tokens"
    service, reached, go = TokenService(directory), asyncio.Event(), asyncio.Event()

    class Slow(Network):
        async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
            reached.set()
            await go.wait()
            return await super().handle_async_request(request)

    made = engine(Slow(service), directory, auth=REFRESH)
    waiting = asyncio.create_task(ask(made))
    await reached.wait()
    waiting.cancel()
    go.set()
    await made.close()
    assert TokenFile(directory / "tickets.token", "r0").token == "r1"


def test_files_of_tokens(tmp_path: Path) -> None:
    path = tmp_path / "tokens" / "a.token"
    assert TokenFile(path, "r0").token == "r0"
    TokenFile(path, "r0").replace("r1")
    assert TokenFile(path, "r0").token == "r1"
    # Another first token in the settings wins, and is not asked for twice.
    assert TokenFile(path, "new").token == "new"
    # What a crash leaves beside is no obstacle, whoever may read it.
    beside = path.with_suffix(".new")
    beside.write_text("half")
    beside.chmod(0o666)
    TokenFile(path, "new").replace("n1")
    assert TokenFile(path, "new").token == "n1"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.write_text("{")
    assert TokenFile(path, "new").token == "new"


@pytest.mark.parametrize(
    ("url", "sent"),
    [
        ("https://tickets.example/search", b"/search?q=a%26b%20c"),
        ("https://tickets.example/search?n={max_results}", b"/search?n=3&q=a%26b%20c"),
    ],
)
async def test_a_get_without_a_place_for_the_query_sends_it_as_q(url: str, sent: bytes) -> None:
    network = Network(always())
    await ask(engine(network, url=url, recall_method="GET"), "a&b c")
    assert network.requests[0].url.raw_path == sent


async def test_a_list_of_results_is_read_as_hits() -> None:
    assert await ask(engine(Network(always({"results": [{"text": "a"}]})))) == ["a"]
    # A name that is there and is no list is something else.
    assert await ask(engine(Network(always({"hits": 1, "results": [{"text": "a"}]})))) == ["a"]
    assert await ask(engine(Network(always({"hits": [], "results": [{"text": "a"}]})))) == []
    with pytest.raises(ProviderUnavailable):
        await ask(engine(Network(always({"results": [{"text": "a"}]})), mapping={"hits": "$.hits"}))


async def test_a_fixed_principal_is_sent_in_place_of_the_callers() -> None:
    network = Network(always())
    await ask(engine(network, principal="service:astrocyte"))
    assert network.requests[0].headers["x-astrocyte-on-behalf-of"] == "service:astrocyte"


def test_one_bank_is_named_by_target_bank() -> None:
    assert as_engine(source(target_bank="notes")).banks == ("notes",)
    for wrong in (
        {"target_bank": "notes", "banks": ["a"]},
        {"principal": "p", "forward_principal": True},
        {"principal": "ü"},
        {"target_bank": ""},
        {"target_bank": "a*"},
    ):
        with pytest.raises(ValidationError):
            source(**wrong)
