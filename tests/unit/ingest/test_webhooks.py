"""Webhooks at the gate: each delivery becomes one memory, and forged or copied ones become none."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from typing import Any

import pytest

from astrocyte.api.requests import DeleteBank, GetBankStats, ListMemories, ListSources, Recall
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.errors import (
    AccessDenied,
    AlreadyExists,
    AstrocyteError,
    AuthorizationError,
    LimitReached,
    MessageTooLarge,
    NotFound,
    PiiRejected,
    RequestIdReused,
    ValidationError,
)
from astrocyte.ingest import SourceRegistry, handle_webhook_ingest
from astrocyte.model import Caller, RecallQuery
from external.webhooks import PLAIN_AUTH, SECRET, STANDARD_AUTH, Sent, body_of, plain, standard

NOW = 1_800_000_000.0
ROOT = Caller(principal="user:root")
TICKETS: dict[str, Any] = {"type": "webhook", "target_bank": "tickets", "auth": PLAIN_AUTH}
SOURCES: dict[str, Any] = {
    "desk": TICKETS,
    "mail": {**TICKETS, "auth": STANDARD_AUTH},
    "old": {**TICKETS, "auth": {"type": "hmac", "secret": SECRET}},
}


class Desk:
    """An application with sources, and a clock of its own for signatures."""

    def __init__(self, app: App) -> None:
        self.app = app
        self.now = NOW
        self.registry = SourceRegistry(app.settings.sources, app.sources.target, app.sources.board, lambda: self.now)

    async def send(self, source_id: str, sent: Sent) -> str:
        return (await self.registry.receive(source_id, sent.body, sent.headers)).status

    async def contents(self, bank_id: str = "tickets") -> list[str]:
        page = await self.app.gate.call(ROOT, ListMemories(bank_id, page_size=1_000))
        return [memory.content for memory in page.memories]


async def opened(**sections: Any) -> Desk:
    values = {"vector_store": "in_memory", "sources": SOURCES, **sections}
    return Desk(App(Settings.from_mapping(values)))


@pytest.fixture
async def desk() -> AsyncIterator[Desk]:
    made = await opened()
    yield made
    await made.app.close()


async def test_a_delivery_is_stored_and_found_by_the_next_recall(desk: Desk) -> None:
    assert await desk.send("desk", plain(body_of("The printer is on fire."), NOW)) == "accepted"
    found = await desk.app.gate.call(ROOT, Recall(RecallQuery("what burns? the printer?", bank_id="tickets")))
    assert [hit.text for hit in found.hits] == ["The printer is on fire."]
    (info, *_) = await desk.app.gate.call(ROOT, ListSources())
    assert (info.source_id, info.stored, info.healthy) == ("desk", 1, True)
    assert info.last_stored_at is not None


async def test_a_thousand_replays_and_a_thousand_forgeries_are_refused(desk: Desk) -> None:
    rng = random.Random(7)
    accepted: list[tuple[str, Sent]] = []
    for number in range(20):
        body = body_of(f"Ticket {number} is about printer {number}.")
        for source_id, sent in (
            ("desk", plain(body, NOW - number)),
            ("mail", standard(body_of(f"Mail {number} is about boat {number}."), NOW - number, f"msg_{number}")),
            ("old", plain(body_of(f"Note {number} is about tree {number}."))),
        ):
            assert await desk.send(source_id, sent) == "accepted"
            accepted.append((source_id, sent))
    before = await desk.contents()
    assert len(before) == 60
    taken = 0
    for _ in range(1_000):
        desk.now = NOW + rng.uniform(-200, 200)
        taken += await refused(desk, *rng.choice(accepted), AlreadyExists)
    for _ in range(1_000):
        taken += await refused(desk, *forged(rng, *rng.choice(accepted)), AuthorizationError)
    assert taken == 0
    assert await desk.contents() == before
    counts = {one.source_id: one.refused for one in await desk.app.gate.call(ROOT, ListSources())}
    assert sum(counts.values()) == 2_000


async def refused(desk: Desk, source_id: str, sent: Sent, kind: type[AstrocyteError]) -> int:
    """0 where a delivery is refused so, else 1."""
    try:
        await desk.send(source_id, sent)
    except kind:
        return 0
    return 1


def forged(rng: random.Random, source_id: str, sent: Sent) -> tuple[str, Sent]:
    """The delivery with a byte of its body, a header or its time changed, or signed by somebody else."""
    name = rng.choice(sorted(sent.headers))
    value = sent.headers[name]
    place = rng.randrange(len(sent.body))
    flipped = bytes([sent.body[place] ^ (1 << rng.randrange(7))])
    start = rng.randrange(8, len(value)) if len(value) > 8 else rng.randrange(len(value))
    other = "8" if value[start] != "8" else "9"
    changed = Sent(sent.body[:place] + flipped + sent.body[place + 1 :], sent.headers)
    choices = [changed, sent.without(name), sent.with_header(name, value[:start] + other + value[start + 1 :])]
    if source_id == "mail":
        choices.append(standard(sent.body, NOW, f"forged_{rng.random()}", rng.randbytes(24)))
    else:
        choices.append(plain(sent.body, None if source_id == "old" else NOW, f"{rng.random()} is a wrong secret"))
    return source_id, rng.choice(choices)


async def test_without_receipts_replays_would_pass(desk: Desk) -> None:
    """The control of the test above: what refuses a copy is its receipt."""
    sent = plain(body_of("The printer is on fire."), NOW)
    assert await desk.send("desk", sent) == "accepted"
    unguarded = await handle_webhook_ingest(
        "desk",
        desk.registry.webhook("desk"),
        sent.body,
        sent.headers,
        retain=desk.app.sources.target,
        clock=lambda: NOW,
        _guarded=False,
    )
    assert unguarded.status == "accepted"


async def test_a_delivery_that_its_sender_repeats_is_a_duplicate(desk: Desk) -> None:
    body = body_of("The printer is on fire.")
    assert await desk.send("mail", standard(body, NOW)) == "accepted"
    assert await desk.send("mail", standard(body, NOW + 60)) == "duplicate"
    with pytest.raises(AlreadyExists):
        await desk.send("mail", standard(body, NOW + 60))
    with pytest.raises(RequestIdReused):
        await desk.send("mail", standard(body_of("Another text."), NOW + 70))
    assert await desk.contents() == ["The printer is on fire."]


async def test_of_copies_at_once_one_is_accepted(desk: Desk) -> None:
    sent = standard(body_of("The printer is on fire."), NOW)
    outcomes = await asyncio.gather(*(desk.send("mail", sent) for _ in range(50)), return_exceptions=True)
    assert outcomes.count("accepted") == 1
    assert sum(isinstance(one, AlreadyExists) for one in outcomes) == 49
    assert len(await desk.contents()) == 1


async def test_a_receipt_outlives_the_bank(desk: Desk) -> None:
    sent = plain(body_of("The printer is on fire."), NOW)
    await desk.send("desk", sent)
    await desk.app.gate.call(ROOT, DeleteBank("tickets"))
    with pytest.raises(AlreadyExists):
        await desk.send("desk", sent)


async def test_a_retain_whose_receipt_was_not_written_is_answered_when_it_is_repeated(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a crash between the two leaves it."""
    store = desk.app.storage.store.ingest
    body = body_of("The printer is on fire.")

    async def crash(*_: object, **__: object) -> None:
        raise RuntimeError

    with monkeypatch.context() as broken:
        broken.setattr(store, "accept", crash)
        with pytest.raises(RuntimeError):
            await desk.send("mail", standard(body, NOW))
        (info,) = [one for one in desk.registry.board.listed() if one.source_id == "mail"]
        assert (info.healthy, info.detail, info.failed) == (False, "RuntimeError", 1)
    assert await desk.send("mail", standard(body, NOW)) == "accepted"
    stats = await desk.app.gate.call(ROOT, GetBankStats("tickets"))
    assert stats.memory_count == 1
    assert desk.registry.board.healthy


async def test_policy_is_that_of_a_retain() -> None:
    limits = {"rate_limits": {"retain_per_minute": 2}}
    sections = {"barriers": {"pii": {"mode": "regex", "action": "reject"}}, "homeostasis": limits}
    desk = await opened(**sections)
    with pytest.raises(PiiRejected):
        await desk.send("old", plain(body_of("Mail me at ann@example.com about the card 4111 1111 1111 1111.")))
    await desk.send("old", plain(body_of("The printer is on fire.")))
    with pytest.raises(LimitReached):
        await desk.send("old", plain(body_of("The boat is on fire.")))
    by_id = {one.source_id: one for one in desk.registry.board.listed()}
    assert (by_id["old"].refused, by_id["old"].failed, by_id["old"].detail) == (1, 1, "LIMIT_REACHED")
    await desk.app.close()


async def test_the_grants_of_the_principal_of_the_source_apply() -> None:
    template = {**TICKETS, "target_bank_template": "user-{principal}", "principal": "svc"}
    del template["target_bank"]
    grants = [
        {"bank_id": "user-a*", "principal": "svc", "permissions": ["write"]},
        {"bank_id": "*", "principal": ROOT.principal, "permissions": ["*"]},
    ]
    desk = await opened(
        sources={"desk": template}, access_control={"enabled": True, "default_policy": "deny"}, access_grants=grants
    )
    assert await desk.send("desk", plain(body_of("Tea.", principal="ann"), NOW)) == "accepted"
    with pytest.raises(AccessDenied):
        await desk.send("desk", plain(body_of("Tea.", principal="bob"), NOW))
    for principal in ("../x", "a b", "ann/../bob", "añ"):
        with pytest.raises((ValidationError, AccessDenied)):
            await desk.send("desk", plain(body_of("Tea.", principal=principal), NOW))
    assert await desk.contents("user-ann") == ["Tea."]
    await desk.app.close()


async def test_a_source_that_is_unknown_and_a_body_that_is_too_large_are_refused(desk: Desk) -> None:
    with pytest.raises(NotFound):
        await desk.send("none", plain(b"{}"))
    with pytest.raises(MessageTooLarge):
        await desk.send("old", plain(b" " * 262_145))
    with pytest.raises(ValidationError, match="body"):
        await desk.send("old", plain(b"no json"))


async def test_sources_of_another_tenant_are_not_listed() -> None:
    desk = await opened(sources={**SOURCES, "theirs": {**TICKETS, "tenant": "other"}})
    listed = [
        [one.source_id for one in await desk.app.gate.call(Caller(tenant, "user:root"), ListSources())]
        for tenant in ("default", "other")
    ]
    assert listed == [["desk", "mail", "old"], ["theirs"]]
    await desk.app.close()
