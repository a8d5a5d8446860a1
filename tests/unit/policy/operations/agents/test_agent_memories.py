"""Private memory of agents, at the gate."""

import asyncio
from collections.abc import AsyncIterator
from math import exp
from pathlib import Path
from typing import Any

import pytest

from astrocyte.api.requests import (
    ForgetAgentMemory,
    ListAgentMemories,
    ListAgents,
    ListAuditEvents,
    ListTerms,
    ProposeTerm,
    RecallAgentMemory,
    Remember,
    Retain,
    ReviewTerm,
)
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.errors import (
    AccessDenied,
    LimitReached,
    NotFound,
    PiiRejected,
    RequestIdReused,
    StoreError,
    ValidationError,
)
from astrocyte.model import Caller, RetainItem, SourceTag, TermDecision, TermStatus
from astrocyte.pipelines.agent_memory import index
from astrocyte.policy import events
from astrocyte.stores.sqlite.agent_memory import SqliteAgentMemory

ATLAS = Caller(principal="agent:atlas")
DRAKE = Caller(principal="agent:drake")
AUDITOR = Caller(principal="user:auditor")
ROOT = Caller(principal="user:root")
LIKES = "Vivek prefers Terraform for all infrastructure."
LIKES_TOO = "Vivek prefers Terraform for all the infrastructure!"
DISLIKES = "Clicking in web consoles is what annoys Vivek most."
SETTINGS: dict[str, Any] = {
    "vector_store": "in_memory",
    "access_control": {"enabled": True},
    "access_grants": [
        {"bank_id": "*", "principal": "user:root", "permissions": ["*"]},
        {"bank_id": "adr", "principal": "agent:atlas", "permissions": ["read"]},
    ],
    "agent_memory": {"shared_banks": ["adr", "absent"], "auditors": ["user:auditor"]},
}


class Clock:
    """A clock that is set."""

    def __init__(self) -> None:
        self.now = 1_800_000_000_000

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


async def test_the_nearest_memory_of_a_topic_is_updated(app: App) -> None:
    first = await app.gate.call(ATLAS, Remember("vivek", LIKES, source={"platform": "slack"}))
    again = await app.gate.call(ATLAS, Remember("vivek", LIKES_TOO))
    other = await app.gate.call(ATLAS, Remember("vivek", DISLIKES))
    elsewhere = await app.gate.call(ATLAS, Remember("terraform", LIKES))
    assert (first.was_update, again.was_update, other.was_update, elsewhere.was_update) == (False, True, False, False)
    assert again.memory_id == first.memory_id
    page = await app.gate.call(ATLAS, ListAgentMemories())
    assert [one.content for one in page.memories] == [LIKES_TOO, DISLIKES, LIKES]
    assert (page.memories[0].access_count, page.memories[0].source) == (1, {})


async def test_a_memory_about_another_user_is_not_updated(app: App) -> None:
    first = await app.gate.call(ATLAS, Remember("likes", LIKES, user_id="u1"))
    other = await app.gate.call(ATLAS, Remember("likes", LIKES, user_id="u2"))
    anybody = await app.gate.call(ATLAS, Remember("likes", LIKES))
    assert len({first.memory_id, other.memory_id, anybody.memory_id}) == 3
    found = await app.gate.call(ATLAS, RecallAgentMemory(LIKES, user_id="u1"))
    assert {hit.memory_id for hit in found.hits} == {first.memory_id, anybody.memory_id}


async def test_writes_of_one_topic_at_once_make_one_memory(app: App) -> None:
    outcomes = await asyncio.gather(*(app.gate.call(ATLAS, Remember("vivek", LIKES)) for _ in range(8)))
    assert sorted(one.was_update for one in outcomes) == [False, *[True] * 7]
    assert len((await app.gate.call(ATLAS, ListAgentMemories())).memories) == 1


async def test_an_agent_has_its_own_memories_alone(app: App) -> None:
    mine = await app.gate.call(ATLAS, Remember("vivek", LIKES))
    assert (await app.gate.call(DRAKE, RecallAgentMemory(LIKES))).hits == ()
    assert (await app.gate.call(DRAKE, ListAgentMemories())).memories == ()
    with pytest.raises(NotFound):
        await app.gate.call(DRAKE, ForgetAgentMemory(mine.memory_id))
    for request in (
        Remember("vivek", DISLIKES, agent_id="agent:atlas"),
        RecallAgentMemory(LIKES, agent_id="agent:atlas"),
        ForgetAgentMemory(mine.memory_id, agent_id="agent:atlas"),
        ListAgentMemories("agent:atlas"),
    ):
        with pytest.raises(AccessDenied, match="the memory of agent 'agent:atlas'"):
            await app.gate.call(DRAKE, request)
    # The same principal of another tenant is another agent.
    assert (await app.gate.call(Caller("beta", "agent:atlas"), RecallAgentMemory(LIKES))).hits == ()


async def test_an_agent_that_acts_for_a_user_has_its_own_memory(app: App) -> None:
    await app.gate.call(ATLAS, Remember("vivek", LIKES))
    acting = Caller(principal="agent:atlas", on_behalf_of="user:vivek")
    assert len((await app.gate.call(acting, RecallAgentMemory(LIKES))).hits) == 1
    with pytest.raises(AccessDenied):
        await app.gate.call(
            Caller(principal="agent:drake", on_behalf_of="agent:atlas"), ListAgentMemories("agent:atlas")
        )


async def test_an_auditor_reads_and_changes_nothing(app: App) -> None:
    mine = await app.gate.call(ATLAS, Remember("vivek", LIKES))
    page = await app.gate.call(AUDITOR, ListAgentMemories("agent:atlas"))
    assert [one.memory_id for one in page.memories] == [mine.memory_id]
    with pytest.raises(AccessDenied):
        await app.gate.call(AUDITOR, ForgetAgentMemory(mine.memory_id, agent_id="agent:atlas"))
    with pytest.raises(AccessDenied):
        await app.gate.call(AUDITOR, RecallAgentMemory(LIKES, agent_id="agent:atlas"))


async def test_what_is_forgotten_is_neither_found_nor_updated_and_is_audited(app: App) -> None:
    mine = await app.gate.call(ATLAS, Remember("vivek", LIKES))
    gone = await app.gate.call(ATLAS, ForgetAgentMemory(mine.memory_id, reason="asked", request_id="f1"))
    again = await app.gate.call(ATLAS, ForgetAgentMemory(mine.memory_id, reason="asked", request_id="f1"))
    assert gone == again
    assert gone.deleted_at is not None
    assert (await app.gate.call(ATLAS, RecallAgentMemory(LIKES))).hits == ()
    assert (await app.gate.call(ATLAS, ListAgentMemories())).memories == ()
    assert len((await app.gate.call(ATLAS, ListAgentMemories(include_forgotten=True))).memories) == 1
    with pytest.raises(NotFound):
        await app.gate.call(ATLAS, ForgetAgentMemory(mine.memory_id))
    assert not (await app.gate.call(ATLAS, Remember("vivek", LIKES))).was_update
    (event,) = (await app.gate.call(ROOT, ListAuditEvents())).events
    assert (event.event, event.actor) == ("agent_memory_forgotten", "agent:atlas")
    assert event.details == {"agent_id": "agent:atlas", "memory_id": mine.memory_id, "reason": "asked"}


async def test_a_deletion_is_recorded_before_it_is_made(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = await app.gate.call(ATLAS, Remember("vivek", LIKES))
    store = app.storage.agent_memory
    forget = store.forget

    async def fail(*_: Any, **__: Any) -> Any:
        raise StoreError("the disk is gone")

    # A crash after the record: the caller has no answer, and the memory is there.
    monkeypatch.setattr(store, "forget", fail)
    with pytest.raises(StoreError):
        await app.gate.call(ATLAS, ForgetAgentMemory(mine.memory_id))
    assert len((await app.gate.call(ROOT, ListAuditEvents())).events) == 1
    assert len((await app.gate.call(ATLAS, RecallAgentMemory(LIKES))).hits) == 1
    monkeypatch.setattr(store, "forget", forget)
    # Without a record, nothing is forgotten.
    monkeypatch.setattr(app.gate.agent_memories, "_audit", type("Broken", (), {"append": staticmethod(fail)}))
    with pytest.raises(StoreError):
        await app.gate.call(ATLAS, ForgetAgentMemory(mine.memory_id))
    assert len((await app.gate.call(ATLAS, RecallAgentMemory(LIKES))).hits) == 1
    monkeypatch.undo()
    await app.gate.call(ATLAS, ForgetAgentMemory(mine.memory_id))
    assert (await app.gate.call(ATLAS, RecallAgentMemory(LIKES))).hits == ()


async def test_two_requests_at_once_record_one_deletion(app: App) -> None:
    mine = await app.gate.call(ATLAS, Remember("vivek", LIKES))
    asked = [app.gate.call(ATLAS, ForgetAgentMemory(mine.memory_id)) for _ in range(4)]
    outcomes = await asyncio.gather(*asked, return_exceptions=True)
    assert sorted(isinstance(one, NotFound) for one in outcomes) == [False, True, True, True]
    assert len((await app.gate.call(ROOT, ListAuditEvents())).events) == 1


async def test_a_deletion_that_an_earlier_version_left_unrecorded_is_recorded(app: App) -> None:
    mine = await app.gate.call(ATLAS, Remember("vivek", LIKES))
    store = app.storage.agent_memory
    await store.forget("default", "agent:atlas", mine.memory_id, by="agent:atlas", reason="")
    assert isinstance(store, SqliteAgentMemory)
    await store._change_each("UPDATE agent_memories SET audited = 0 WHERE memory_key = ?", [(1,)])
    assert (await app.gate.call(ROOT, ListAuditEvents())).events == ()
    await app.gate.agent_memories.audit_deletions()
    await app.gate.agent_memories.audit_deletions()
    assert len((await app.gate.call(ROOT, ListAuditEvents())).events) == 1


async def test_an_update_has_the_canonical_state_of_its_topic(app: App) -> None:
    first = await app.gate.call(ATLAS, Remember("vivek", LIKES))
    assert not first.is_canonical
    await app.gate.call(ROOT, ReviewTerm(first.proposed_term_id or "", TermDecision.APPROVE))
    again = await app.gate.call(ATLAS, Remember("vivek", LIKES_TOO))
    (listed,) = (await app.gate.call(ATLAS, ListAgentMemories())).memories
    assert (again.was_update, again.is_canonical, listed.is_canonical) == (True, True, True)


async def test_agents_are_listed_for_an_auditor_and_each_for_itself(app: App) -> None:
    assert (await app.gate.call(AUDITOR, ListAgents())).agents == ()
    mine = await app.gate.call(ATLAS, Remember("vivek", LIKES))
    await app.gate.call(DRAKE, Remember("vivek", LIKES))
    await app.gate.call(DRAKE, Remember("vivek", DISLIKES))
    await app.gate.call(Caller("beta", "agent:atlas"), Remember("vivek", LIKES))
    await app.gate.call(ATLAS, ForgetAgentMemory(mine.memory_id))
    first = await app.gate.call(AUDITOR, ListAgents(page_size=1))
    second = await app.gate.call(AUDITOR, ListAgents(1, first.next_page_token))
    rows = [(one.agent_id, one.memory_count, one.forgotten_count) for one in (*first.agents, *second.agents)]
    assert rows == [("agent:atlas", 0, 1), ("agent:drake", 2, 0)]
    assert (first.agents[0].updated_at is None, second.agents[0].updated_at is None) == (True, False)
    assert (bool(first.next_page_token), second.next_page_token) == (True, "")
    assert [one.agent_id for one in (await app.gate.call(DRAKE, ListAgents())).agents] == ["agent:drake"]
    assert (await app.gate.call(ROOT, ListAgents())).agents == ()
    with pytest.raises(ValidationError):
        await app.gate.call(DRAKE, ListAgents(1, first.next_page_token))


@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        ({"banks": {"adr": {"homeostasis": {"rate_limits": {"recall_per_minute": 1}}}}}, "LIMIT_REACHED"),
        (
            {
                "barriers": {"pii": {"mode": "regex", "action": "warn"}},
                "banks": {"adr": {"barriers": {"pii": {"mode": "regex", "action": "reject"}}}},
            },
            "PII_REJECTED",
        ),
    ],
)
async def test_a_shared_bank_that_refuses_leaves_private_memory_in_reach(
    clock: Clock, limits: dict[str, Any], reason: str
) -> None:
    app = App(Settings.from_mapping({**SETTINGS, **limits}), clock=clock)
    await app.gate.call(ROOT, Retain("adr", RetainItem("ADR-5: Terraform manages all infrastructure.")))
    mine = await app.gate.call(ATLAS, Remember("vivek", LIKES))
    query = f"{LIKES} Ask vivek@example.com."
    answers = [await app.gate.call(ATLAS, RecallAgentMemory(query)) for _ in range(2)]
    assert [hit.memory_id for hit in answers[1].hits] == [mine.memory_id]
    (told,) = [text for text in answers[1].warnings if "shared bank" in text]
    assert "'adr'" in told
    assert reason in told
    await app.close()


async def test_a_shared_bank_that_fails_in_any_way_leaves_private_memory_in_reach(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    await app.gate.call(ROOT, Retain("adr", RetainItem("ADR-5: Terraform manages all infrastructure.")))
    mine = await app.gate.call(ATLAS, Remember("vivek", LIKES))

    async def refuse(*_: Any) -> Any:
        raise AccessDenied("agent:atlas", "adr", "read")

    monkeypatch.setattr(app.gate._recalling, "recall", refuse)
    answer = await app.gate.call(ATLAS, RecallAgentMemory(LIKES))
    assert [hit.memory_id for hit in answer.hits] == [mine.memory_id]
    assert answer.warnings == ("shared bank 'adr' was not searched: ACCESS_DENIED",)


async def test_agents_of_a_tenant_share_the_rates_and_quotas_of_the_server(clock: Clock) -> None:
    limits = {"rate_limits": {"retain_per_minute": 3, "recall_per_minute": 1}, "quotas": {"retain_per_day": 2}}
    app = App(Settings.from_mapping({**SETTINGS, "homeostasis": limits}), clock=clock)
    await app.gate.call(ATLAS, Remember("vivek", LIKES))
    await app.gate.call(DRAKE, Remember("vivek", LIKES))
    with pytest.raises(LimitReached, match="2 a day for retain of agents' memories"):
        await app.gate.call(ATLAS, Remember("vivek", DISLIKES))
    await app.gate.call(ATLAS, RecallAgentMemory(LIKES))
    with pytest.raises(LimitReached, match="1 a minute for recall of agents' memories"):
        await app.gate.call(DRAKE, RecallAgentMemory(LIKES))
    # Another tenant has its own.
    await app.gate.call(Caller("beta", "agent:atlas"), RecallAgentMemory(LIKES))
    await app.close()


async def test_private_and_canonical_memories_are_in_one_list(app: App, clock: Clock) -> None:
    await app.gate.call(ROOT, Retain("adr", RetainItem("ADR-5: Terraform manages all infrastructure.")))
    await app.gate.call(ATLAS, Remember("vivek", LIKES))
    found = await app.gate.call(ATLAS, RecallAgentMemory("Terraform for infrastructure"))
    assert {hit.source_tag for hit in found.hits} == {SourceTag.PRIVATE, SourceTag.CANONICAL}
    assert [hit.score for hit in found.hits] == sorted((hit.score for hit in found.hits), reverse=True)
    assert {hit.recency_score for hit in found.hits} == {1.0}
    # Canonical knowledge does not age.
    clock.now += 400 * 86_400_000
    later = await app.gate.call(ATLAS, RecallAgentMemory("Terraform for infrastructure"))
    assert [hit.source_tag for hit in later.hits] == [SourceTag.CANONICAL, SourceTag.PRIVATE]
    assert [hit.recency_score for hit in later.hits] == [1.0, pytest.approx(exp(-400 / 90))]
    assert all(hit.score == pytest.approx(hit.similarity * hit.recency_score) for hit in later.hits)
    assert later.hits[1].similarity == pytest.approx(
        found.hits[-1].similarity if found.hits[-1].topic else found.hits[0].similarity
    )
    # Without the permission to read the bank, there is none of it.
    assert (await app.gate.call(DRAKE, RecallAgentMemory("Terraform for infrastructure"))).hits == ()


async def test_a_topic_is_resolved_on_write_and_on_recall(app: App) -> None:
    unknown = await app.gate.call(ATLAS, Remember("release window", "Deploys happen on Tuesdays."))
    assert (unknown.topic, unknown.is_canonical) == ("release window", False)
    (term,) = (await app.gate.call(ROOT, ListTerms(TermStatus.PROPOSED))).terms
    assert (term.term_id, term.memory_ids) == (unknown.proposed_term_id, (unknown.memory_id,))
    window = await app.gate.call(ATLAS, ProposeTerm("deploy window"))
    await app.gate.call(ROOT, ReviewTerm(window.term_id, TermDecision.APPROVE))
    await app.gate.call(ROOT, ReviewTerm(term.term_id, TermDecision.MERGE, window.term_id))
    known = await app.gate.call(ATLAS, Remember("Release Windows", "Deploys happen on Wednesdays."))
    assert (known.topic, known.is_canonical, known.proposed_term_id) == ("deploy window", True, None)
    page = await app.gate.call(ATLAS, ListAgentMemories())
    assert [(one.topic, one.topic_raw) for one in page.memories] == [
        ("release window", "release window"),
        ("deploy window", "Release Windows"),
    ]
    article = await app.gate.call(ATLAS, Remember("the release window", "Deploys happen at noon."))
    assert (article.topic, article.is_canonical, article.proposed_term_id) == ("deploy window", True, None)
    for query in ("release window", "the release window", "when is the release window?"):
        found = await app.gate.call(ATLAS, RecallAgentMemory(query))
        assert found.query_canonical == "deploy window"


async def test_a_repeated_request_gets_the_first_answer(app: App) -> None:
    first = await app.gate.call(ATLAS, Remember("vivek", LIKES, request_id="r1"))
    again = await app.gate.call(ATLAS, Remember("vivek", LIKES, request_id="r1"))
    assert again == first
    assert (await app.gate.call(ROOT, ListTerms())).terms[0].proposals == 1
    with pytest.raises(RequestIdReused):
        await app.gate.call(ATLAS, Remember("vivek", DISLIKES, request_id="r1"))


async def test_an_empty_answer_is_told_of(app: App) -> None:
    told: list[tuple[str, Any]] = []

    def listen(event: str, fields: Any) -> None:
        told.append((event, dict(fields)))

    events.subscribe(listen)
    try:
        await app.gate.call(ATLAS, RecallAgentMemory("capital of France"))
        await app.gate.call(ATLAS, RecallAgentMemory("capital of France", expected=True))
    finally:
        events.unsubscribe(listen)
    assert [event for event, _ in told] == [
        "agent_memory_zero_hits",
        "agent_memory_zero_hits",
        "agent_memory_silent",
    ]
    # A query is content: only a canonical term is named.
    assert all("France" not in str(fields) for _, fields in told)


@pytest.mark.parametrize(
    ("request_", "field"),
    [
        (Remember("", LIKES), "topic"),
        (Remember("t" * 257, LIKES), "topic"),
        (Remember("topic", ""), "content"),
        (Remember("topic", "x" * 102_401), "content"),
        (Remember("topic", LIKES, user_id="u" * 257), "user_id"),
        (Remember("topic", LIKES, source={"": "x"}), "source"),
        (Remember("topic", LIKES, request_id="r" * 600), "request_id"),
        (RecallAgentMemory(""), "query"),
        (RecallAgentMemory("x", max_results=101), "max_results"),
        (RecallAgentMemory("x", max_results=-1), "max_results"),
        (RecallAgentMemory("x", user_id=""), "user_id"),
        (ForgetAgentMemory(""), "memory_id"),
        (ForgetAgentMemory("m", reason="r" * 1_000_000), "reason"),
        (ListAgentMemories(page_size=-1), "page_size"),
        (ListAgentMemories(page_token="none"), "page_token"),
    ],
)
async def test_a_wrong_field_is_named_and_nothing_is_changed(app: App, request_: Any, field: str) -> None:
    with pytest.raises(ValidationError) as raised:
        await app.gate.call(ATLAS, request_)
    assert str(raised.value.field).startswith(field)
    assert (await app.gate.call(ATLAS, ListAgentMemories(include_forgotten=True))).memories == ()
    assert (await app.gate.call(ROOT, ListTerms())).terms == ()


async def test_personal_data_is_redacted_or_refused(clock: Clock) -> None:
    for action, stored in (("redact", True), ("reject", False)):
        barriers = {"pii": {"mode": "regex", "action": action}}
        app = App(Settings.from_mapping({**SETTINGS, "barriers": barriers}), clock=clock)
        work = app.gate.call(ATLAS, Remember("mail of Mara", "Write to mara@example.com about it."))
        if stored:
            assert (await work).warnings
            (memory,) = (await app.gate.call(ATLAS, ListAgentMemories())).memories
            assert "mara@example.com" not in memory.content
        else:
            with pytest.raises(PiiRejected):
                await work
            assert (await app.gate.call(ATLAS, ListAgentMemories())).memories == ()
        await app.close()


async def test_memories_are_in_a_database_of_their_own_and_survive_a_restart(tmp_path: Path) -> None:
    settings = {**SETTINGS, "vector_store": "sqlite", "data_dir": str(tmp_path / "data")}
    app = App(Settings.from_mapping(settings))
    mine = await app.gate.call(ATLAS, Remember("vivek", LIKES))
    await app.gate.call(ATLAS, RecallAgentMemory(LIKES))
    await app.close()
    assert LIKES.encode() not in b"".join(path.read_bytes() for path in (tmp_path / "data").glob("astrocyte.db*"))
    again = App(Settings.from_mapping(settings))
    (hit,) = (await again.gate.call(ATLAS, RecallAgentMemory(LIKES))).hits
    assert (hit.memory_id, hit.content, hit.topic) == (mine.memory_id, LIKES, "vivek")
    assert (await again.gate.call(ATLAS, Remember("vivek", LIKES))).was_update
    # Two recalls and an update, which are counted in the background.
    async with asyncio.timeout(20):
        while (await again.gate.call(ATLAS, ListAgentMemories())).memories[0].access_count < 3:  # noqa: ASYNC110 - the database tells nobody
            await asyncio.sleep(0.01)
    await again.close()


async def test_a_caller_that_gives_up_leaves_no_memory_unfound(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    await app.gate.call(ATLAS, Remember("food", "Mara eats no sesame."))
    store = app.storage.agent_memory
    put, stored = store.put, asyncio.Event()

    async def slow(*args: Any, **kwargs: Any) -> Any:
        result = await put(*args, **kwargs)
        stored.set()
        await asyncio.sleep(60)
        return result

    monkeypatch.setattr(store, "put", slow)
    call = asyncio.create_task(app.gate.call(ATLAS, Remember("vivek", LIKES)))
    await stored.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    monkeypatch.setattr(store, "put", put)
    assert LIKES in [hit.content for hit in (await app.gate.call(ATLAS, RecallAgentMemory(LIKES))).hits]


async def test_more_agents_than_are_kept_in_memory_find_their_memories(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index, "MOST_AGENTS", 2)
    agents = [Caller(principal=f"agent:{number}") for number in range(6)]
    for _ in range(2):
        await asyncio.gather(*(app.gate.call(agent, Remember("vivek", LIKES)) for agent in agents))
    for agent in agents:
        assert len((await app.gate.call(agent, ListAgentMemories())).memories) == 1
        assert len((await app.gate.call(agent, RecallAgentMemory(LIKES))).hits) == 1
    assert len(app.gate.agent_memories.indexes._loaded) == 2


async def test_answers_are_held_to_the_policy_about_answers(clock: Clock) -> None:
    settings = {
        **SETTINGS,
        "barriers": {"pii": {"mode": "disabled"}},
        "dlp": {"scan_recall_output": True, "output_pii_action": "redact"},
    }
    app = App(Settings.from_mapping(settings), clock=clock)
    await app.gate.call(ATLAS, Remember("mail of Mara", "Write to mara@example.com about it."))
    found = await app.gate.call(ATLAS, RecallAgentMemory("how do I write to Mara?"))
    assert len(found.hits) == 1
    assert "mara@example.com" not in found.hits[0].content
    assert found.warnings
    await app.close()
