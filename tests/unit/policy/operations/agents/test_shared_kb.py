"""SearchSharedKb, ListSharedKb and GetSharedKbIndex at the gate."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from astrocyte.api.requests import (
    CreateBank,
    Forget,
    GetSharedKbIndex,
    ListSharedKb,
    Retain,
    SearchSharedKb,
    UndeleteMemory,
    UpdateMemory,
)
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.errors import AccessDenied, BankNotFound, PiiRejected, ValidationError
from astrocyte.model import Caller, ForgetSelector, MemoryUpdate, RetainItem
from astrocyte.pipelines.shared_kb import wiki_index
from astrocyte.pipelines.shared_kb.rows import metadata_of
from astrocyte.policy.operations.agents import shared_kb
from astrocyte.shared_kb.documents import rows_of

ME, BANK = Caller(), "kb"
ADR = "---\nstatus: {}\n---\n# Decision {}\n\nWe store {} in PostgreSQL.\n"


@pytest.fixture
async def app() -> AsyncIterator[App]:
    app = App(Settings.from_mapping({"vector_store": "in_memory"}))
    yield app
    await app.close()


async def kept(
    app: App, path: str, text: str, folder: str = "docs", bank: str = BANK, caller: Caller = ME
) -> list[str]:
    """Store the rows of a file; their memory ids."""
    found = []
    for row in rows_of(folder, path, text, "h" * 32):
        item = RetainItem(row.text, "document", metadata=metadata_of(row.document), tags=row.tags, session_id=path)
        found.append((await app.backend.call(caller, Retain(bank, item))).memory_id or "")
    return found


async def paths(app: App, request: Any, caller: Caller = ME) -> list[str]:
    answer = await app.backend.call(caller, request)
    return [getattr(one, "document", one).path for one in answer]


async def test_filters_combine(app: App) -> None:
    await kept(app, "decisions/1.md", ADR.format("accepted", 1, "graphs"))
    await kept(app, "decisions/2.md", ADR.format("proposed", 2, "graphs"))
    await kept(app, "specs/approved/3.md", "# Spec\n\nGraphs shall be in PostgreSQL.")
    await kept(app, "decisions/4.md", ADR.format("accepted", 4, "graphs"), folder="other")
    expected = {
        (): {"decisions/1.md", "decisions/2.md", "specs/approved/3.md", "decisions/4.md"},
        (("type", "adr"),): {"decisions/1.md", "decisions/2.md", "decisions/4.md"},
        (("status", "accepted"),): {"decisions/1.md", "decisions/4.md"},
        (("type", "adr"), ("status", "accepted"), ("folder", "docs")): {"decisions/1.md"},
        (("type", "spec"), ("status", "approved")): {"specs/approved/3.md"},
        (("type", "none"),): set(),
    }
    for given, wanted in expected.items():
        filters: Any = dict(given)
        assert set(await paths(app, ListSharedKb(BANK, **filters))) == wanted
        assert set(await paths(app, SearchSharedKb(BANK, "graphs in PostgreSQL", **filters))) == wanted
        index = await app.backend.call(ME, GetSharedKbIndex(BANK, **filters))
        assert index.document_count == len(wanted)
        assert all(path in index.content for path in wanted)


async def test_a_document_is_one_hit_and_a_component_its_own(app: App) -> None:
    long = "# Storage\n\n" + "PostgreSQL stores the graph of entities.\n\n" * 4_000
    ids = await kept(app, "long.md", long)
    assert len(ids) == 3
    await kept(
        app,
        "ARCHITECTURE.md",
        "# System\n\n| component | depends on |\n|---|---|\n| graph | PostgreSQL |\n| api | graph |\n",
    )
    hits = (await app.backend.call(ME, SearchSharedKb(BANK, "PostgreSQL graph", max_results=10))).hits
    named = [(hit.document.path, hit.document.title) for hit in hits]
    assert len(named) == len(set(named)) == 4
    assert {title for _, title in named} == {"Storage", "System", "graph", "api"}
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    only = await app.backend.call(ME, SearchSharedKb(BANK, "which component uses PostgreSQL", type="component"))
    assert only.hits[0].document.depends_on == ("PostgreSQL",)
    assert len(await app.backend.call(ME, SearchSharedKb(BANK, "PostgreSQL graph", max_results=1))) == 1


async def test_words_and_vectors_find_documents(app: App) -> None:
    await kept(app, "decisions/17-x.md", "# A title\n\nNothing about the query.")
    await kept(app, "decisions/18-x.md", "# Cars\n\nThe automobile has four wheels.")
    assert (await paths(app, SearchSharedKb(BANK, "ADR-17")))[0] == "decisions/17-x.md"
    assert (await paths(app, SearchSharedKb(BANK, "vehicle")))[0] == "decisions/18-x.md"


async def test_other_memories_are_no_documents(app: App) -> None:
    await kept(app, "a.md", "# Graphs\n\nText.")
    await app.backend.call(ME, Retain(BANK, RetainItem("Graphs are stored.")))
    await app.backend.call(ME, Retain(BANK, RetainItem("Graphs with the tag alone.", tags=("shared_kb",))))
    forged = {**metadata_of(rows_of("docs", "b.md", "# Graphs", "h" * 32)[0].document), "kb_rows": "many"}
    await app.backend.call(ME, Retain(BANK, RetainItem("Graphs, forged.", tags=("shared_kb",), metadata=forged)))
    assert await paths(app, SearchSharedKb(BANK, "graphs")) == ["a.md"]
    assert await paths(app, ListSharedKb(BANK, include_rows=True)) == ["a.md"]
    assert (await app.backend.call(ME, GetSharedKbIndex(BANK))).document_count == 1


async def test_what_is_forgotten_is_in_no_answer(app: App) -> None:
    (gone,) = await kept(app, "a.md", "# Graphs\n\nText.")
    await kept(app, "b.md", "# Graphs\n\nOther text.")
    await app.backend.call(ME, Forget(BANK, ForgetSelector(memory_ids=(gone,))))
    assert await paths(app, SearchSharedKb(BANK, "graphs")) == await paths(app, ListSharedKb(BANK)) == ["b.md"]
    assert "a.md" not in (await app.backend.call(ME, GetSharedKbIndex(BANK))).content
    await app.backend.call(ME, UndeleteMemory(BANK, gone))
    assert set(await paths(app, ListSharedKb(BANK))) == {"a.md", "b.md"}


async def test_pages_hold_everything_once_while_it_changes(app: App) -> None:
    ids = [(await kept(app, f"{number}.md", f"# Text {number}"))[0] for number in range(25)]
    found: list[str] = []
    token = ""
    for step in range(30):
        page = await app.backend.call(ME, ListSharedKb(BANK, page_size=4, page_token=token))
        found += [one.path for one in page]
        # A change moves a document to the end, and a new one comes: neither is a part of this list.
        update = MemoryUpdate(ids[step % 25], frozenset({"source"}), source=f"step {step}")
        await app.backend.call(ME, UpdateMemory(BANK, update))
        await kept(app, f"new-{step}.md", f"# New {step}")
        token = page.next_page_token
        if not token:
            break
    assert found == [f"{number}.md" for number in range(25)]


async def test_a_page_examines_a_bounded_number_of_rows(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_kb, "MOST_EXAMINED", 7)
    monkeypatch.setattr(shared_kb, "READ_AT_ONCE", 3)
    for number in range(20):
        await kept(app, f"{number}.md", f"---\ntype: {'rare' if number == 18 else 'usual'}\n---\n# Text {number}")
    sizes, token, found = [], "", []
    while True:
        page = await app.backend.call(ME, ListSharedKb(BANK, type="rare", page_token=token))
        sizes.append(len(page))
        found += [one.path for one in page]
        token = page.next_page_token
        if not token:
            break
    assert (sizes, found) == ([0, 0, 1], ["18.md"])


async def test_a_token_belongs_to_its_list(app: App) -> None:
    for number in range(3):
        await kept(app, f"{number}.md", f"# Text {number}")
    token = (await app.backend.call(ME, ListSharedKb(BANK, page_size=1))).next_page_token
    for other in (ListSharedKb(BANK, type="adr"), ListSharedKb(BANK, include_rows=True), ListSharedKb("other")):
        await app.backend.call(ME, CreateBank("other")) if other.bank_id == "other" else None
        with pytest.raises(ValidationError) as refused:
            await app.backend.call(ME, replace(other, page_size=1, page_token=token))
        assert refused.value.field == "page_token"


@pytest.mark.parametrize(
    ("request_", "field"),
    [
        (SearchSharedKb(BANK, ""), "query"),
        (SearchSharedKb(BANK, "x", max_results=101), "max_results"),
        (SearchSharedKb(BANK, "x", max_results=-1), "max_results"),
        (SearchSharedKb(BANK, "x", type="x" * 257), "type"),
        (SearchSharedKb(BANK, "x", status="a\nb"), "status"),
        (SearchSharedKb(BANK, "x", folder=7), "folder"),  # type: ignore[arg-type]
        (ListSharedKb(BANK, page_size=1_001), "page_size"),
        (ListSharedKb(BANK, page_token="x"), "page_token"),
        (ListSharedKb(BANK, type="\ud800"), "type"),
        (ListSharedKb(BANK, include_rows="yes"), "include_rows"),  # type: ignore[arg-type]
        (GetSharedKbIndex(BANK, folder="x" * 257), "folder"),
        (GetSharedKbIndex("a b"), "bank_id"),
    ],
)
async def test_wrong_fields_are_named(app: App, request_: Any, field: str) -> None:
    await app.backend.call(ME, CreateBank(BANK))
    with pytest.raises(ValidationError) as refused:
        await app.backend.call(ME, request_)
    assert refused.value.field == field


async def test_an_empty_bank_answers_empty_and_a_missing_one_is_told(app: App) -> None:
    requests: tuple[Any, ...] = (SearchSharedKb(BANK, "x"), ListSharedKb(BANK), GetSharedKbIndex(BANK))
    for request in requests:
        with pytest.raises(BankNotFound):
            await app.backend.call(ME, request)
    await app.backend.call(ME, CreateBank(BANK))
    search, listed, index = [await app.backend.call(ME, request) for request in requests]
    assert (search.hits, listed.documents, listed.next_page_token) == ((), (), "")
    assert (index.content, index.document_count, index.truncated) == (wiki_index.HEAD, 0, False)


async def test_a_bank_without_permission_and_another_tenant_see_nothing() -> None:
    grants = [{"bank_id": BANK, "principal": "user:ann", "permissions": ["read", "write"]}]
    access = {"access_control": {"enabled": True, "default_policy": "deny"}, "access_grants": grants}
    app = App(Settings.from_mapping({"vector_store": "in_memory", **access}))
    ann = Caller(principal="user:ann")
    await kept(app, "a.md", "# Graphs", caller=ann)
    assert await paths(app, SearchSharedKb(BANK, "graphs"), ann) == ["a.md"]
    for request in (SearchSharedKb(BANK, "graphs"), ListSharedKb(BANK), GetSharedKbIndex(BANK)):
        for other in (Caller(principal="user:bob"), Caller("acme", "user:ann")):
            with pytest.raises(AccessDenied):
                await app.backend.call(other, request)
    await app.close()


async def test_personal_data_leaves_as_the_bank_says() -> None:
    mail = "ann@example.com"
    leaving = {"dlp": {"scan_recall_output": True, "output_pii_action": "redact"}}
    barriers = {"barriers": {"pii": {"action": "warn"}}}
    app = App(Settings.from_mapping({"vector_store": "in_memory", **barriers, **leaving}))
    text = f"---\nsummary: Ask {mail}\nid: {mail}\n---\n# Graphs of {mail}\n\nText by {mail}."
    await kept(app, f"{mail}.md", text)
    await kept(app, "ARCHITECTURE.md", f"---\ncomponents:\n- name: api\n  depends_on: [{mail}]\n---\n# System\n")
    search = await app.backend.call(ME, SearchSharedKb(BANK, "graphs"))
    listed = await app.backend.call(ME, ListSharedKb(BANK, include_rows=True))
    index = await app.backend.call(ME, GetSharedKbIndex(BANK))
    for answer in (search, listed, index):
        assert mail not in str(answer)
        assert "REDACTED" in str(answer)
    await app.close()


async def test_a_query_with_personal_data_is_refused_where_the_bank_says() -> None:
    pii = {"mode": "regex", "action": "reject"}
    app = App(Settings.from_mapping({"vector_store": "in_memory", "barriers": {"pii": pii}}))
    await kept(app, "a.md", "# Graphs")
    with pytest.raises(PiiRejected):
        await app.backend.call(ME, SearchSharedKb(BANK, "who is ann@example.com?"))
    await app.close()


async def test_without_a_bank_all_shared_banks_that_may_be_read_are_searched() -> None:
    reader, stranger, root = Caller(principal="agent:atlas"), Caller(principal="agent:drake"), Caller(principal="root")
    settings: dict[str, Any] = {
        "vector_store": "in_memory",
        "access_control": {"enabled": True},
        "access_grants": [
            {"bank_id": "*", "principal": "root", "permissions": ["*"]},
            {"bank_id": "adr", "principal": reader.principal, "permissions": ["read"]},
            {"bank_id": "specs", "principal": reader.principal, "permissions": ["read"]},
        ],
        "agent_memory": {"shared_banks": ["specs", "absent", "adr", "secret"]},
        "banks": {"specs": {"homeostasis": {"rate_limits": {"recall_per_minute": 1}}}},
    }
    app = App(Settings.from_mapping(settings))
    for bank in ("adr", "specs", "secret", "other"):
        await kept(app, f"decisions/{bank}.md", ADR.format("accepted", 1, f"graphs of {bank}"), bank=bank, caller=root)
    search = SearchSharedKb("", "graphs in PostgreSQL", type="adr")
    found = await app.backend.call(reader, search)
    assert {(hit.bank_id, hit.document.path) for hit in found} == {
        ("adr", "decisions/adr.md"),
        ("specs", "decisions/specs.md"),
    }
    assert [hit.score for hit in found] == sorted((hit.score for hit in found), reverse=True)
    assert found.warnings == ()
    # A bank that refuses is named, and does not keep the caller from the others.
    again = await app.backend.call(reader, SearchSharedKb("", "graphs in PostgreSQL", max_results=1))
    assert [hit.bank_id for hit in again] == ["adr"]
    assert again.warnings == ("shared bank 'specs' was not searched: LIMIT_REACHED",)
    for caller, request, field in (
        (stranger, search, "bank_id"),
        (reader, SearchSharedKb("", "", max_results=1), "query"),
        (reader, SearchSharedKb("", "graphs", max_results=101), "max_results"),
        (reader, SearchSharedKb("", "graphs", type="a\nb"), "type"),
    ):
        with pytest.raises(ValidationError) as refused:
            await app.backend.call(caller, request)
        assert refused.value.field == field
    await app.close()
