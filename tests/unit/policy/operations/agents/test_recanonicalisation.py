"""Topics of stored memories that are resolved again after a review of terms."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from astrocyte.api.requests import (
    ForgetAgentMemory,
    ListAgentMemories,
    ListAuditEvents,
    ProposeTerm,
    RecallAgentMemory,
    RecanonicaliseAgentMemories,
    Remember,
    ReviewTerm,
)
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.errors import AccessDenied, RequestIdReused, ValidationError
from astrocyte.model import Caller, TermDecision

ATLAS, DRAKE = Caller(principal="agent:atlas"), Caller(principal="agent:drake")
ROOT = Caller(principal="user:root")
BETA = Caller("beta", "agent:atlas")
TUESDAY, TUESDAYS = "Vivek deploys on Tuesdays at noon, always.", "Vivek deploys on Tuesdays, at noon, always!"
LUNCH = "Lunch in the canteen costs six euros."
SETTINGS: dict[str, Any] = {
    "vector_store": "in_memory",
    "access_control": {"enabled": True},
    "access_grants": [{"bank_id": "*", "principal": "user:root", "permissions": ["*"]}],
}


class Clock:
    """A clock that is set."""

    now = 1_800_000_000_000

    def __call__(self) -> int:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def app(clock: Clock) -> AsyncIterator[App]:
    made = App(Settings.from_mapping(SETTINGS), clock=clock)
    yield made
    await made.close()


async def approve(app: App, name: str, *aliases: str, caller: Caller = ROOT) -> None:
    term = await app.gate.call(caller, ProposeTerm(name, aliases))
    await app.gate.call(ROOT, ReviewTerm(term.term_id, TermDecision.APPROVE))


async def merge(app: App, proposed: str | None, into: str) -> None:
    term = await app.gate.call(ROOT, ProposeTerm(into))
    await app.gate.call(ROOT, ReviewTerm(proposed or "", TermDecision.MERGE, term.term_id))


async def test_topics_follow_the_review_of_terms(app: App) -> None:
    same = await app.gate.call(ATLAS, Remember("deploy window", TUESDAY))
    alias = await app.gate.call(DRAKE, Remember("release window", LUNCH))
    await app.gate.call(ROOT, ReviewTerm(same.proposed_term_id or "", TermDecision.APPROVE))
    await merge(app, alias.proposed_term_id, "deploy window")
    found = await app.gate.call(ROOT, RecanonicaliseAgentMemories(dry_run=True))
    assert (found.examined, found.changed, found.merged, found.next_page_token) == (2, 2, 0, "")
    assert not (await app.gate.call(ATLAS, ListAgentMemories())).memories[0].is_canonical
    done = await app.gate.call(ROOT, RecanonicaliseAgentMemories())
    assert (done.examined, done.changed, done.merged) == (2, 2, 0)
    for agent, raw in ((ATLAS, "deploy window"), (DRAKE, "release window")):
        (one,) = (await app.gate.call(agent, ListAgentMemories())).memories
        assert (one.topic, one.topic_raw, one.is_canonical) == ("deploy window", raw, True)
    # The vector and the index have the new topic: the next equal memory updates this one.
    again = await app.gate.call(DRAKE, Remember("deploy window", LUNCH))
    assert (again.was_update, again.memory_id) == (True, alias.memory_id)
    assert (await app.gate.call(ROOT, RecanonicaliseAgentMemories())).changed == 0


@pytest.mark.parametrize("older_is_moved", [True, False])
async def test_memories_that_meet_under_a_topic_are_merged(app: App, clock: Clock, older_is_moved: bool) -> None:
    await approve(app, "deploy window")
    topics = ("shipping hours", "deploy window") if older_is_moved else ("deploy window", "shipping hours")
    older = await app.gate.call(ATLAS, Remember(topics[0], TUESDAY, source={"platform": "drive"}))
    clock.now += 1_000
    younger = await app.gate.call(ATLAS, Remember(topics[1], TUESDAYS, source={"platform": "slack"}))
    clock.now += 1_000
    await merge(app, older.proposed_term_id or younger.proposed_term_id, "deploy window")
    done = await app.gate.call(ROOT, RecanonicaliseAgentMemories())
    assert (done.changed, done.merged) == (1, 1)
    listed = (await app.gate.call(ATLAS, ListAgentMemories(include_forgotten=True))).memories
    kept, gone = listed
    assert (kept.memory_id, gone.memory_id) == (older.memory_id, younger.memory_id)
    assert (kept.content, kept.source, kept.topic, kept.topic_raw) == (
        TUESDAYS,
        {"platform": "slack"},
        "deploy window",
        topics[1],
    )
    # A merge is an update of the decisions table; it is no new mention, which would make the memory young.
    assert (kept.access_count, kept.updated_at, kept.is_canonical) == (1, gone.updated_at, True)
    assert gone.deleted_at is not None
    (event,) = (await app.gate.call(ROOT, ListAuditEvents())).events
    assert event.details == {
        "agent_id": "agent:atlas",
        "memory_id": younger.memory_id,
        "reason": f"merged into {older.memory_id}",
    }
    found = await app.gate.call(ATLAS, RecallAgentMemory("when does Vivek deploy?"))
    assert [hit.memory_id for hit in found.hits] == [older.memory_id]
    assert (await app.gate.call(ATLAS, Remember("deploy window", TUESDAY))).memory_id == older.memory_id


async def test_only_memories_of_one_agent_and_user_are_merged(app: App) -> None:
    await approve(app, "deploy window")
    first = await app.gate.call(ATLAS, Remember("shipping hours", TUESDAY, user_id="u1"))
    await app.gate.call(ATLAS, Remember("deploy window", TUESDAY, user_id="u2"))
    await app.gate.call(DRAKE, Remember("deploy window", TUESDAY, user_id="u1"))
    await merge(app, first.proposed_term_id, "deploy window")
    done = await app.gate.call(ROOT, RecanonicaliseAgentMemories())
    assert (done.changed, done.merged) == (1, 0)


async def test_pages_cover_each_memory_once_and_a_repeated_call_gets_the_first_outcome(app: App) -> None:
    made = [await app.gate.call(ATLAS, Remember(f"topic {number}", f"{LUNCH} {number}")) for number in range(5)]
    await app.gate.call(ATLAS, ForgetAgentMemory(made[1].memory_id))
    for one in made:
        await app.gate.call(ROOT, ReviewTerm(one.proposed_term_id or "", TermDecision.APPROVE))
    first = await app.gate.call(ROOT, RecanonicaliseAgentMemories(page_size=3, request_id="r1"))
    assert (first.examined, first.changed) == (3, 3)
    assert await app.gate.call(ROOT, RecanonicaliseAgentMemories(page_size=3, request_id="r1")) == first
    with pytest.raises(RequestIdReused):
        await app.gate.call(ROOT, RecanonicaliseAgentMemories(page_size=2, request_id="r1"))
    rest = RecanonicaliseAgentMemories(page_size=3, page_token=first.next_page_token)
    second = await app.gate.call(ROOT, rest)
    assert (second.examined, second.changed, second.next_page_token) == (1, 1, "")
    with pytest.raises(ValidationError):
        await app.gate.call(ROOT, RecanonicaliseAgentMemories("agent:atlas", page_token=first.next_page_token))


async def test_it_needs_admin_everywhere_and_stays_in_its_tenant(app: App) -> None:
    with pytest.raises(AccessDenied):
        await app.gate.call(ATLAS, RecanonicaliseAgentMemories())
    await app.gate.call(BETA, Remember("deploy window", TUESDAY))
    await approve(app, "deploy window")
    assert (await app.gate.call(ROOT, RecanonicaliseAgentMemories())).examined == 0
