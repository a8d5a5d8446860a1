"""Exports and imports at the gate: what leaves, what is refused whole, and what policies do with archives."""

import hashlib
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from astrocyte.api.requests import (
    CreateBank,
    ExportBank,
    Forget,
    GetBankStats,
    GetMemory,
    Grant,
    History,
    ListAuditEvents,
    ListBanks,
    ListGrants,
    PlaceHold,
    Recall,
    Retain,
    UndeleteMemory,
    UpdateMemory,
    Watch,
)
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.errors import (
    AccessDenied,
    AlreadyExists,
    AstrocyteError,
    BankNotFound,
    LegalHoldActive,
    LimitReached,
    MemoryNotFound,
    MessageTooLarge,
    QuotaExceeded,
    ValidationError,
)
from astrocyte.model import Caller, ForgetSelector, MemoryUpdate, RecallQuery, RetainItem
from astrocyte.pipelines.portability.archive import cursor_of
from astrocyte.pipelines.portability.line_values import own_id
from astrocyte.policy.gate import Gate
from samples.archiving import ME, archive_of, export, id_of, lines_of, load, memory_line, states

Open = Callable[..., Gate]
SECRET = "mara@example.org"
TEA = memory_line(id_of("tea"), "Mara drinks tea.")


@pytest.fixture
async def opened() -> AsyncIterator[Open]:
    apps: list[App] = []

    def make(**sections: Any) -> Gate:
        apps.append(App(Settings.from_mapping({"vector_store": "in_memory", **sections})))
        return apps[-1].gate

    yield make
    for app in apps:
        await app.close()


async def kept(gate: Gate, text: str, bank: str = "b", **fields: Any) -> str:
    result = await gate.call(ME, Retain(bank, RetainItem(text, **fields)))
    assert result.memory_id is not None
    return result.memory_id


async def texts(gate: Gate, bank: str = "b", query: str = "tea") -> list[str]:
    answer = await gate.call(ME, Recall(RecallQuery(query, bank, max_results=100)))
    return sorted(hit.text for hit in answer.hits)


async def count(gate: Gate, bank: str = "b") -> int:
    return (await gate.call(ME, GetBankStats(bank))).memory_count


async def forget(gate: Gate, *memory_ids: str) -> None:
    await gate.call(ME, Forget("b", ForgetSelector(memory_ids=memory_ids)))


async def banks(gate: Gate) -> list[str]:
    return [bank.bank_id for bank in (await gate.call(ME, ListBanks())).banks]


async def test_the_archive_has_what_was_asked_for(opened: Open) -> None:
    gate = opened()
    first = await kept(gate, "Mara drinks tea.", tags=("drinks",), metadata={"page": 3}, speaker="Ines")
    await gate.call(ME, UpdateMemory("b", MemoryUpdate(first, frozenset({"content"}), content="Mara drinks coffee.")))
    gone = await kept(gate, f"Write to {SECRET[:4]} about the secret oboe.")
    await forget(gate, gone)
    head, *memories, tombstone, foot = lines_of(await export(gate))
    assert (head["_ama_version"], head["bank_id"], head["memory_count"], head["position"]) == (2, "b", 1, 4)
    assert [(line["id"], line["version"], line["text"]) for line in memories] == [
        (first, 1, "Mara drinks tea."),
        (first, 2, "Mara drinks coffee."),
    ]
    assert memories[0]["known_until"] == memories[1]["known_from"]
    assert (memories[0]["tags"], memories[0]["metadata"], memories[0]["speaker"]) == (["drinks"], {"page": 3}, "Ines")
    assert "embedding" not in memories[0]
    assert (tombstone["section"], tombstone["id"]) == ("forgotten", gone)
    assert (foot["memory_count"], foot["lines"]) == (1, 4)
    small = await export(gate, omit_versions=True, omit_forgotten=True, omit_entities=True, include_embeddings=True)
    _, only, _ = lines_of(small)
    assert only["version"] == 2
    assert len(only["embedding"]) > 100
    assert "entities" not in only


async def test_content_that_was_forgotten_is_in_no_archive(opened: Open) -> None:
    gate = opened()
    gone, erased = await kept(gate, "The oboe is secret."), await kept(gate, "The violin is secret.")
    await kept(gate, "Mara drinks tea.")
    await forget(gate, gone)
    await gate.call(ME, Forget("b", ForgetSelector(memory_ids=(erased,)), compliance=True))
    archive = await export(gate, include_embeddings=True)
    assert b"secret" not in archive
    assert erased.encode() not in archive


async def test_an_export_shows_the_bank_as_it_was_when_it_began(opened: Open) -> None:
    gate = opened()
    old = await kept(gate, "Mara drinks tea.")
    parts = gate.stream(ME, ExportBank("b"))
    begun = await anext(parts)
    await kept(gate, "Mara drinks coffee.")
    await gate.call(ME, UpdateMemory("b", MemoryUpdate(old, frozenset({"content"}), content="Mara drinks cocoa.")))
    rest = b"".join([part async for part in parts])
    _, only, _ = lines_of(begun + rest)
    assert only["text"] == "Mara drinks tea."
    assert "known_until" not in only


async def test_an_interrupted_export_goes_on_to_the_same_archive(opened: Open) -> None:
    gate = opened()
    for number in range(5):
        memory_id = await kept(gate, f"Mara drinks tea number {number}.")
        change = MemoryUpdate(memory_id, frozenset({"content"}), content=f"Mara drinks coffee number {number}.")
        await gate.call(ME, UpdateMemory("b", change))
    whole = (await export(gate)).splitlines(keepends=True)
    await kept(gate, "This came later.")
    for length in range(len(whole)):
        cursor = cursor_of(whole[:length])
        if cursor is None:
            assert length < 4
            continue
        begun = b"".join(whole[: cursor.lines])
        assert begun + await export(gate, resume_after=cursor) == b"".join(whole)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda data: data[:-1], id="without its last byte"),
        pytest.param(lambda data: data[: len(data) // 2], id="half"),
        pytest.param(lambda data: b"\n".join(data.splitlines()[:-1]) + b"\n", id="without footer"),
        pytest.param(lambda data: b"", id="nothing"),
        pytest.param(lambda data: data.replace(b"tea", b"TEA"), id="another text"),
        pytest.param(lambda data: data.replace(id_of("a").encode(), id_of("c").encode()), id="another id"),
        pytest.param(
            lambda data: b"\n".join([*data.splitlines()[:1], *data.splitlines()[2:]]) + b"\n", id="a line less"
        ),
        pytest.param(lambda data: data + b'{"section":"memories"}\n', id="a line more"),
        pytest.param(lambda data: data + data, id="twice"),
        pytest.param(lambda data: data.replace(b'"_ama_version": 2', b'"_ama_version": 3'), id="newer"),
        pytest.param(lambda data: b"\xff" + data, id="no text"),
        pytest.param(lambda data: b"[" * 100_000, id="nested"),
    ],
)
async def test_what_is_not_whole_stores_nothing(opened: Open, change: Callable[[bytes], bytes]) -> None:
    gate = opened()
    archive = archive_of([memory_line(id_of("a"), "Mara drinks tea."), memory_line(id_of("b"), "Ines drinks tea.")])
    with pytest.raises(ValidationError, match="nothing was stored") as raised:
        await load(gate, change(archive))
    assert raised.value.field == "archive"
    assert await banks(gate) == []
    # The same archive, unchanged, is stored.
    assert (await load(gate, archive)).imported == 2


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (memory_line(id_of("a"), "tea", colour="red"), "colour"),
        (memory_line(id_of("a"), "tea", version=0), "version"),
        (memory_line(id_of("a"), "tea", version=True), "version"),
        (memory_line(id_of("a"), "tea", tags="x"), "tags"),
        (memory_line(id_of("a"), "tea", metadata=[1]), "metadata"),
        (memory_line(id_of("a"), "tea", occurred_at="2025-01-01"), "occurred_at"),
        (memory_line(id_of("a"), "tea", occurred_at="yesterday"), "occurred_at"),
        (memory_line(id_of("a"), "tea", known_until="2025-01-01T00:00:00+00:00"), "has an end"),
        (memory_line(id_of("a"), "tea", embedding_model="m", embedding="AAAA"), "embedding"),
        (memory_line(id_of("a"), "tea", embedding_model="m", embedding="AADAfw=="), "embedding"),
        (memory_line(id_of("a"), "tea", entities=[{"name": ""}]), "entities"),
        ({"section": "wiki", "id": "w"}, "section"),
        (memory_line(id_of("a"), "tea \ud800"), "surrogate"),
        ({"section": "memories", "version": 1, "text": "x", "content_type": "text", "id": 7}, "id"),
    ],
)
async def test_a_forged_line_refuses_the_archive(opened: Open, line: dict[str, Any], problem: str) -> None:
    gate = opened()
    with pytest.raises(ValidationError, match=problem):
        await load(gate, archive_of([TEA, line]))
    assert await banks(gate) == []


async def test_versions_out_of_order_refuse_the_archive(opened: Open) -> None:
    first, second = "2025-01-01T00:00:00+00:00", "2025-02-01T00:00:00+00:00"
    one = memory_line(id_of("a"), "tea", known_from=first, known_until=second)
    two = memory_line(id_of("a"), "coffee", known_from=second)
    gate = opened()
    for lines in (
        [one, {**two, "version": 1}],
        [{**two, "version": 2, "known_until": second}, {**one, "version": 3}],
        [one, {**two, "version": 2, "known_from": "2025-01-15T00:00:00+00:00"}],
    ):
        with pytest.raises(ValidationError, match=r"not in order|has an end"):
            await load(gate, archive_of(lines))
    assert (await load(gate, archive_of([one, {**two, "version": 2}]))).imported == 1
    past = await gate.call(ME, History(RecallQuery("tea", "b", as_of=_time("2025-01-15T00:00:00+00:00"))))
    assert [hit.text for hit in past.hits] == ["tea"]


def _time(text: str) -> Any:
    from datetime import datetime

    return datetime.fromisoformat(text)


async def test_a_conflict_is_skipped_overwritten_or_refuses_the_archive(opened: Open) -> None:
    gate = opened()
    await load(gate, archive_of([TEA]))
    other = archive_of(
        [memory_line(id_of("tea"), "Mara drinks coffee."), memory_line(id_of("new"), "Ines drinks tea.")]
    )
    with pytest.raises(AlreadyExists, match=id_of("tea")):
        await load(gate, other, on_conflict="error")
    assert await count(gate) == 1
    skipped = await load(gate, other)
    assert (skipped.imported, skipped.skipped) == (1, 1)
    assert await texts(gate) == ["Ines drinks tea.", "Mara drinks tea."]
    overwritten = await load(gate, other, on_conflict="overwrite")
    assert (overwritten.imported, overwritten.overwritten, overwritten.skipped) == (0, 1, 1)
    memory = await gate.call(ME, GetMemory("b", id_of("tea")))
    assert (memory.content, memory.version) == ("Mara drinks coffee.", 2)
    # A second time nothing differs any more.
    assert (await load(gate, other, on_conflict="overwrite")).skipped == 2
    with pytest.raises(ValidationError, match="on_conflict"):
        await load(gate, other, on_conflict="replace")


async def test_content_that_the_bank_has_is_not_doubled(opened: Open) -> None:
    gate = opened()
    await kept(gate, "Mara drinks tea.")
    with pytest.raises(AlreadyExists):
        await load(gate, archive_of([TEA]), on_conflict="error")
    assert (await load(gate, archive_of([TEA]))).skipped == 1
    # Two memories of one archive may have the same content, as they had in its bank.
    twins = [memory_line(id_of("1"), "Ines drinks tea."), memory_line(id_of("2"), "Ines drinks tea.")]
    assert (await load(gate, archive_of(twins))).imported == 2
    assert await count(gate) == 3


async def test_what_the_bank_forgot_stays_forgotten(opened: Open) -> None:
    gate = opened()
    await load(gate, archive_of([TEA]))
    await forget(gate, id_of("tea"))
    for action in ("skip", "overwrite"):
        assert (await load(gate, archive_of([TEA]), on_conflict=action)).skipped == 1
        assert await texts(gate) == []
    with pytest.raises(AlreadyExists):
        await load(gate, archive_of([TEA]), on_conflict="error")
    await gate.call(ME, UndeleteMemory("b", id_of("tea")))
    assert await texts(gate) == ["Mara drinks tea."]


async def test_tombstones_forget_where_the_archive_overwrites(opened: Open) -> None:
    gate = opened()
    await load(gate, archive_of([TEA, memory_line(id_of("b"), "Ines drinks tea.")]))
    grave = archive_of([{"section": "forgotten", "id": id_of("tea")}, {"section": "forgotten", "id": id_of("other")}])
    assert (await load(gate, grave)).forgotten == 0
    with pytest.raises(AlreadyExists, match=id_of("tea")):
        await load(gate, grave, on_conflict="error")
    assert await count(gate) == 2
    assert (await load(gate, grave, on_conflict="overwrite")).forgotten == 1
    with pytest.raises(MemoryNotFound):
        await gate.call(ME, GetMemory("b", id_of("tea")))
    assert await texts(gate) == ["Ines drinks tea."]


async def test_a_hold_wins_and_nothing_is_stored(opened: Open) -> None:
    gate = opened()
    await load(gate, archive_of([TEA]))
    await gate.call(ME, PlaceHold("b", reason="a case", memory_ids=(id_of("tea"),)))
    changed = [memory_line(id_of("a"), "Ines drinks tea."), memory_line(id_of("tea"), "Mara drinks coffee.")]
    for lines in (changed, [{"section": "forgotten", "id": id_of("tea")}]):
        with pytest.raises(LegalHoldActive):
            await load(gate, archive_of(lines), on_conflict="overwrite")
    assert await texts(gate) == ["Mara drinks tea."]
    # Another tag is no other content.
    tagged = archive_of([memory_line(id_of("tea"), "Mara drinks tea.", tags=["x"])])
    assert (await load(gate, tagged, on_conflict="overwrite")).overwritten == 1


async def test_personal_data_is_redacted_before_it_is_stored(opened: Open) -> None:
    source = opened(barriers={"pii": {"mode": "disabled"}})
    await kept(source, f"Write to {SECRET} about the tea.", tags=("x",))
    archive = await export(source, include_embeddings=True)
    assert SECRET.encode() in archive
    target = opened(barriers={"pii": {"mode": "regex", "action": "redact"}})
    assert (await load(target, archive)).imported == 1
    (text,) = await texts(target)
    assert SECRET not in text
    assert SECRET.encode() not in await export(target, include_embeddings=True)
    # The vector is of the redacted text.
    assert await _vectors(target) == await _vectors_of_text(opened, text)
    strict = opened(barriers={"pii": {"mode": "regex", "action": "reject"}})
    refused = await load(strict, archive)
    assert (refused.imported, refused.errors) == (0, 1)
    assert SECRET not in json.dumps([one.error for one in refused.failures])


async def test_entities_with_personal_data_are_not_taken(opened: Open) -> None:
    gate = opened(barriers={"pii": {"mode": "regex", "action": "redact"}})
    line = memory_line(id_of("a"), "Mara drinks tea.", entities=[{"name": SECRET, "type": "PERSON"}])
    assert (await load(gate, archive_of([line]))).imported == 1
    assert (await gate.call(ME, GetMemory("b", id_of("a")))).entities == ()


async def _vectors(gate: Gate) -> list[str]:
    return [line["embedding"] for line in lines_of(await export(gate, include_embeddings=True)) if "embedding" in line]


async def _vectors_of_text(opened: Open, text: str) -> list[str]:
    gate = opened()
    await kept(gate, text)
    return await _vectors(gate)


async def test_vectors_of_other_models_and_texts_are_made_anew(opened: Open) -> None:
    source = opened()
    long = " ".join(f"Sentence {number} is about the tea of Mara." for number in range(200))
    await kept(source, "Mara drinks tea.")
    await kept(source, long, content_type="document")
    archive = lines_of(await export(source, include_embeddings=True))
    lines = [line for line in archive if line.get("section") == "memories"]
    assert any("chunks" in line for line in lines)
    right = sorted(line["embedding"] for line in lines)
    for change in (
        {"embedding_model": "another"},
        {"chunks": [{"text": "forged", "embedding": lines[0]["embedding"]}]},
        {"embedding": "AACAPw=="},
    ):
        target = opened()
        await load(target, archive_of([{**line, **change} for line in lines]))
        assert sorted(await _vectors(target)) == right
        assert await texts(target, query="forged") == await texts(source, query="forged")


async def test_rights_are_needed_and_may_end_during_an_export(opened: Open) -> None:
    ann, root = Caller(principal="user:ann"), Caller(principal="user:root")
    gate = opened(
        access_control={"enabled": True, "default_policy": "deny"},
        access_grants=[{"bank_id": "*", "principal": "user:root", "permissions": ["*"]}],
    )
    await gate.call(root, Retain("b", RetainItem("Mara drinks tea.")))
    archive = await export(gate, caller=root, include_grants=True)
    for request in ("export", "import"):
        with pytest.raises(AccessDenied):
            await (export(gate, caller=ann) if request == "export" else load(gate, archive, "new", ann))
    await gate.call(root, Grant("b", "user:ann", ["read", "admin"]))
    parts = gate.stream(ann, ExportBank("b"))
    await anext(parts)
    from astrocyte.api.requests import Revoke

    await gate.call(root, Revoke("b", "user:ann"))
    with pytest.raises(AccessDenied):
        await anext(parts)
    # Tombstones need what forgetting needs.
    await gate.call(root, Grant("b", "user:ann", ["write", "admin"]))
    memory_id = lines_of(archive)[1]["id"]
    grave = archive_of([{"section": "forgotten", "id": memory_id}])
    with pytest.raises(AccessDenied, match="forget"):
        await load(gate, grave, caller=ann, on_conflict="overwrite")


async def test_grants_move_only_where_both_sides_ask(opened: Open) -> None:
    gate = opened(
        access_control={"enabled": True, "default_policy": "owner_only"},
        access_grants=[{"bank_id": "*", "principal": "user:root", "permissions": ["*"]}],
    )
    root = Caller(principal="user:root")
    await gate.call(root, Retain("b", RetainItem("Mara drinks tea.")))
    await gate.call(root, Grant("b", "user:ann", ["read"]))
    assert b"user:ann" not in await export(gate, caller=root)
    archive = await export(gate, caller=root, include_grants=True)
    assert (await load(gate, archive, "c", root)).grants == 0
    assert (await load(gate, archive, "d", root, include_grants=True)).grants == 1
    grants = {grant.bank_id for grant in (await gate.call(root, ListGrants(principal="user:ann"))).grants}
    assert grants == {"b", "d"}


async def test_each_move_is_in_the_audit_trail_without_content(opened: Open) -> None:
    gate = opened()
    await load(gate, archive_of([TEA]))
    await export(gate)
    events = (await gate.call(ME, ListAuditEvents("b"))).events
    assert [event.event for event in events] == ["import_begun", "import_completed", "bank_exported"]
    assert events[1].details["imported"] == "1"
    assert "tea" not in str(events)


async def test_an_export_that_cannot_be_recorded_is_refused(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = opened()
    await kept(gate, "Mara drinks tea.")

    async def fails(*_: object, **__: object) -> None:
        raise AstrocyteError("no row")

    monkeypatch.setattr(type(gate._holding._audit), "append", fails)
    parts = gate.stream(ME, ExportBank("b"))
    with pytest.raises(AstrocyteError, match="no row"):
        await anext(parts)
    with pytest.raises(AstrocyteError, match="no row"):
        await load(gate, archive_of([memory_line(id_of("a"), "Ines drinks tea.")]))
    assert await count(gate) == 1


async def test_limits_and_quotas_hold(opened: Open) -> None:
    two = archive_of([TEA, memory_line(id_of("b"), "Ines drinks tea.")])
    gate = opened(homeostasis={"quotas": {"storage_bytes_per_bank": 20}})
    with pytest.raises(QuotaExceeded):
        await load(gate, two)
    assert await banks(gate) == []
    gate = opened(limits={"archive_bytes": 100})
    with pytest.raises(MessageTooLarge, match="archive_bytes"):
        await load(gate, two)
    gate = opened(homeostasis={"retain_max_content_bytes": 16})
    partly = await load(gate, two)
    assert (partly.imported, partly.errors) == (2, 0)
    gate = opened(homeostasis={"retain_max_content_bytes": 15})
    refused = await load(gate, two)
    assert (refused.imported, refused.errors, refused.failures[0].line) == (0, 2, 2)


async def test_a_daily_quota_ends_an_import_which_a_later_one_completes(opened: Open, tmp_path: Any) -> None:
    gate = opened(homeostasis={"quotas": {"retain_per_day": 2, "database": str(tmp_path / "quotas.db")}})
    lines = [memory_line(id_of(number), f"Tea number {number}.") for number in range(3)]
    with pytest.raises(LimitReached):
        await load(gate, archive_of(lines))
    done = await load(opened(), archive_of(lines))
    assert done.imported == 3


async def test_progress_is_told(opened: Open) -> None:
    gate = opened()
    lines = [memory_line(id_of(number), f"Tea number {number}.") for number in range(600)]
    told = await states(gate, archive_of(lines))
    assert [state.total_memories for state in told] == [600] * len(told)
    assert [state.memories for state in told] == [0, 256, 512, 600, 600]
    assert [state.result is None for state in told] == [True, True, True, True, False]


async def test_followers_see_every_version(opened: Open) -> None:
    source, gate = opened(), opened()
    memory_id = await kept(source, "Mara drinks tea.")
    change = MemoryUpdate(memory_id, frozenset({"content"}), content="Mara drinks coffee.")
    await source.call(ME, UpdateMemory("b", change))
    await gate.call(ME, CreateBank("b"))
    await load(gate, await export(source))
    seen = []
    async for one in gate.stream(ME, Watch("b", 0)):
        seen.append((one.position, str(one.kind), one.memory_id))
        if len(seen) == 2:
            break
    assert seen == [(1, "created", memory_id), (2, "updated", memory_id)]


async def test_a_missing_bank_is_not_exported(opened: Open) -> None:
    with pytest.raises(BankNotFound):
        await export(opened())


async def test_archives_of_version_1_are_read(opened: Open) -> None:
    gate = opened()
    head = {"_ama_version": 1, "bank_id": "b", "exported_at": "2025-05-01T00:00:00Z", "provider": "pgvector"}
    lines = [
        {**head, "memory_count": 4},
        {
            "id": "3f1c",
            "text": "Mara drinks tea.",
            "fact_type": "experience",
            "tags": ["drinks"],
            "metadata": {"page": 3},
            "occurred_at": "2025-04-30T10:00:00+00:00",
            "created_at": "2025-04-30T11:00:00+00:00",
            "bank_id": "b",
            "embedding": [0.1, 0.2],
        },
        {"id": "77aa", "text": "Ines drinks tea.", "source": "chat", "entities": [{"name": "Ines"}]},
        {"id": "88bb"},
        {"id": "99cc", "text": "x", "occurred_at": "2025-04-30"},
    ]
    data = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
    with pytest.raises(ValidationError, match="incomplete"):
        await load(gate, b"".join(data.splitlines(keepends=True)[:-1]))
    assert await banks(gate) == []
    result = await load(gate, data)
    assert (result.imported, result.errors) == (2, 2)
    assert [failure.line for failure in result.failures] == [4, 5]
    memory = await gate.call(ME, GetMemory("b", own_id("3f1c")))
    assert (memory.fact_type, memory.tags, memory.metadata) == ("experience", ("drinks",), {"page": 3, "id": "3f1c"})
    assert (memory.source, memory.retained_at) == ("import:ama:pgvector", _time("2025-04-30T11:00:00+00:00"))
    assert (await gate.call(ME, GetMemory("b", own_id("77aa")))).source == "chat"
    assert (await load(gate, data)).skipped == 2


def test_the_footer_is_the_chained_digest_of_the_lines() -> None:
    *lines, foot = archive_of([TEA]).splitlines(keepends=True)
    digest = bytes(32)
    for line in lines:
        digest = hashlib.sha256(digest + line).digest()
    assert json.loads(foot) == {"_ama_footer": 2, "lines": 2, "memory_count": 1, "sha256": digest.hex()}
