"""Wiki pages: what they are made of, what changes of memories do to them, and what bounds them."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from astrocyte.api.requests import (
    CompileBank,
    CreateBank,
    Forget,
    GetPage,
    LintPages,
    ListPageRevisions,
    ListPages,
    PlaceHold,
    Recall,
    ReleaseHold,
    Retain,
    SearchPages,
    UndeleteMemory,
    UpdateMemory,
)
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.errors import CapabilityNotSupported, NotFound, ProviderUnavailable, ValidationError
from astrocyte.model import (
    Caller,
    CompileResult,
    ForgetSelector,
    MemoryUpdate,
    PageKind,
    PageProblem,
    PageWriter,
    RecallQuery,
    RetainItem,
    WikiPage,
)
from doubles.reflecting import Model

ME, BANK = Caller(), "engineering"
NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
async def apps() -> AsyncIterator[list[App]]:
    made: list[App] = []
    yield made
    for app in made:
        await app.close()


def opened(apps: list[App], model: Model | None = None, **sections: Any) -> App:
    values = {"vector_store": "in_memory", "llm_provider": "none" if model is None else "mock", **sections}
    app = App(Settings.from_mapping(values))
    if model is not None:
        app.pipelines.wiki._model = model
    apps.append(app)
    return app


async def kept(app: App, text: str, *tags: str, **fields: Any) -> str:
    item = RetainItem(text, tags=tags, **fields)
    return (await app.gate.call(ME, Retain(BANK, item))).memory_id or ""


async def compiled(app: App, scope: str = "", **fields: Any) -> CompileResult:
    return await app.gate.call(ME, CompileBank(BANK, scope, **fields))


async def pages(app: App) -> dict[str, WikiPage]:
    return {page.page_id: page for page in await app.gate.call(ME, ListPages(BANK))}


async def drop(app: App, *memory_ids: str, compliance: bool = False) -> None:
    await app.gate.call(ME, Forget(BANK, ForgetSelector(memory_ids=memory_ids), compliance, "asked to"))


DEPLOYMENTS = (
    "The deployment runs every Friday.",
    "A deployment failed because of an expired certificate.",
    "Deployments need an approval from the platform team.",
)


async def test_a_page_quotes_the_memories_of_its_topic_and_cites_each(apps: list[App]) -> None:
    app = opened(apps)
    ids = [await kept(app, text, "deployment") for text in DEPLOYMENTS]
    await kept(app, "Lunch is at noon today.")
    done = await compiled(app)
    assert (done.scopes_compiled, done.pages_created, done.noise_memories, done.tokens_used) == (1, 1, 1, 0)
    (page,) = (await pages(app)).values()
    assert (page.page_id, page.kind, page.title, page.scope) == (
        "topic:deployment",
        PageKind.TOPIC,
        "deployment",
        "tag:deployment",
    )
    assert (page.writer, page.revision, set(page.source_ids)) == (PageWriter.RULES, 1, set(ids))
    said = {block.text: block.source_ids for section in page.sections for block in section.blocks}
    assert said == {text: (one,) for text, one in zip(DEPLOYMENTS, ids, strict=True)}
    # Pages are not hits: a recall finds memories.
    hits = (await app.gate.call(ME, Recall(RecallQuery("when does the deployment run?", BANK)))).hits
    assert {hit.memory_id for hit in hits} <= {*ids} | {hit.memory_id for hit in hits if hit.text.startswith("Lunch")}


async def test_a_second_run_changes_nothing_and_a_new_memory_only_its_topics(apps: list[App]) -> None:
    app = opened(apps)
    for text in DEPLOYMENTS:
        await kept(app, text, "deployment")
        await kept(app, f"Before lunch: {text}", "lunch")
    await compiled(app)
    again = await compiled(app)
    assert (again.pages_created, again.pages_updated, again.pages_unchanged) == (0, 0, 2)
    await kept(app, "Deployments are announced in the chat.", "deployment")
    third = await compiled(app)
    assert (third.pages_updated, third.pages_unchanged) == (1, 1)
    found = await pages(app)
    assert (found["topic:deployment"].revision, found["topic:lunch"].revision) == (2, 1)
    assert "announced" in found["topic:deployment"].content


async def test_a_forgotten_memory_leaves_its_page_at_once_and_comes_back(apps: list[App]) -> None:
    app = opened(apps)
    ids = [await kept(app, text, "deployment") for text in DEPLOYMENTS]
    await compiled(app)
    await drop(app, ids[1])
    page = (await pages(app))["topic:deployment"]
    assert "certificate" not in page.content
    assert "Friday" in page.content
    assert (page.is_stale, ids[1] in page.source_ids) == (True, False)
    hits = await app.gate.call(ME, SearchPages(BANK, "expired certificate of a failed deployment"))
    assert all("certificate" not in hit.text for hit in hits)
    revisions = (await app.gate.call(ME, ListPageRevisions(BANK, page.page_id))).revisions
    assert all("certificate" not in one.text for one in revisions)
    await app.gate.call(ME, UndeleteMemory(BANK, ids[1]))
    assert "certificate" in (await pages(app))["topic:deployment"].content
    await drop(app, *ids)
    assert await pages(app) == {}
    with pytest.raises(NotFound):
        await app.gate.call(ME, GetPage(BANK, "topic:deployment"))
    assert (await compiled(app)).pages_deleted == 1
    assert (await compiled(app)).pages_deleted == 0


async def test_without_its_rule_a_page_would_show_a_forgotten_memory(
    apps: list[App], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control of the test above: the rule alone keeps the text away."""
    app = opened(apps)
    ids = [await kept(app, text, "deployment") for text in DEPLOYMENTS]
    await compiled(app)
    await drop(app, ids[1])
    assert "certificate" not in (await pages(app))["topic:deployment"].content
    monkeypatch.setattr("astrocyte.stores.sqlite.tables.knowledge.rows.shown", lambda _, record: record)
    assert "certificate" in (await pages(app))["topic:deployment"].content


async def test_an_updated_memory_makes_its_page_stale_until_it_is_compiled(apps: list[App]) -> None:
    app = opened(apps)
    ids = [await kept(app, text, "deployment") for text in DEPLOYMENTS]
    await compiled(app)
    update = MemoryUpdate(ids[0], frozenset({"content"}), content="The deployment runs every Monday.")
    await app.gate.call(ME, UpdateMemory(BANK, update))
    assert (await pages(app))["topic:deployment"].is_stale
    (finding,) = await app.gate.call(ME, LintPages(BANK))
    assert (finding.problem, finding.detail.split(";")[0]) == (
        PageProblem.STALE,
        "1 memories changed, 0 are archived and 0 are gone",
    )
    await compiled(app)
    page = (await pages(app))["topic:deployment"]
    assert (page.is_stale, "Monday" in page.content, "Friday" in page.content) == (False, True, False)


async def test_a_scope_compiles_one_topic_and_is_not_widened(apps: list[App]) -> None:
    app = opened(apps, pipeline={"entity_extraction": {"mode": "rules"}}, entity_graph={"enabled": False})
    await kept(app, "The billing service is slow.", "billing")
    await kept(app, "Billing is discussed without a tag by Ann Lee.")
    named = await kept(app, "The runbook is by Ann Lee.")
    await kept(app, "The invoice is by Ann Leeson.")
    assert (await compiled(app, "billing")).pages_created == 1
    assert (await compiled(app, "tag:billing")).pages_unchanged == 1
    assert (await compiled(app, "entity:Ann Lee")).pages_created == 1
    found = await pages(app)
    assert set(found) == {"topic:billing", "entity:ann-lee"}
    assert len(found["entity:ann-lee"].source_ids) == 2
    assert named in found["entity:ann-lee"].source_ids
    assert (found["entity:ann-lee"].title, found["entity:ann-lee"].scope) == ("Ann Lee", "entity:ann lee")
    assert (await compiled(app, "nobody")).scopes_compiled == 0
    # A whole compilation keeps the pages, small as they are.
    assert (await compiled(app)).pages_deleted == 0


async def test_names_of_the_entity_graph_are_topics(apps: list[App]) -> None:
    app = opened(apps)
    for text in ("Mara Lind moved to Oslo.", "Mara Lind prefers tea.", "Mara Lind met Jonas Berg."):
        await kept(app, text)
    await compiled(app)
    page = (await pages(app))["entity:person:mara-lind"]
    assert (page.title, page.kind, page.scope, len(page.sources)) == ("Mara Lind", PageKind.ENTITY, "bank", 3)


async def test_pages_that_share_memories_link_to_each_other(apps: list[App]) -> None:
    app = opened(apps)
    ids = [await kept(app, text, "deployment", "friday") for text in DEPLOYMENTS]
    await kept(app, "Lunch is at noon on Friday.", "friday")
    await compiled(app)
    page = await app.gate.call(ME, GetPage(BANK, "topic:friday"))
    assert [(one.page_id, one.title, one.shared_count) for one in page.links] == [("topic:deployment", "deployment", 3)]
    await drop(app, ids[0])
    page = await app.gate.call(ME, GetPage(BANK, "topic:friday"))
    assert [one.shared_count for one in page.links] == [2]


async def test_a_held_page_is_left_as_it_is(apps: list[App]) -> None:
    app = opened(apps)
    ids = [await kept(app, text, "deployment") for text in DEPLOYMENTS]
    await compiled(app)
    await app.gate.call(ME, PlaceHold(BANK, "a case", (ids[0],), hold_id="case-1"))
    await kept(app, "Deployments are announced in the chat.", "deployment")
    done = await compiled(app)
    assert (done.pages_held, done.pages_updated, (await pages(app))["topic:deployment"].revision) == (1, 0, 1)
    await app.gate.call(ME, ReleaseHold(BANK, "case-1"))
    assert (await compiled(app)).pages_updated == 1


async def test_a_bank_has_at_most_so_many_pages_and_a_page_so_many_revisions(apps: list[App]) -> None:
    app = opened(apps, wiki={"max_pages": 2, "keep_revisions": 2, "max_memories_per_page": 2, "min_memories": 1})
    for number, tag in enumerate(("large", "large", "middle", "middle", "small")):
        await kept(app, f"Number {number} says something about it.", tag)
    await kept(app, "One more word about large things.", "large")
    await compiled(app)
    found = await pages(app)
    assert set(found) == {"topic:large", "topic:middle"}
    assert len(found["topic:large"].sources) == 2
    for number in range(3):
        await kept(app, f"Another middle word, number {number}.", "middle")
        await compiled(app)
    # A topic that has a page keeps it, though another one grew.
    for number in range(9):
        await kept(app, f"Another small word, number {number}.", "small")
    await compiled(app)
    assert set(await pages(app)) == {"topic:large", "topic:middle"}
    revisions = (await app.gate.call(ME, ListPageRevisions(BANK, "topic:middle"))).revisions
    assert [one.revision for one in revisions] == [4, 3]


async def test_a_repeated_request_gets_its_first_answer(apps: list[App]) -> None:
    app = opened(apps)
    for text in DEPLOYMENTS:
        await kept(app, text, "deployment")
    first = await compiled(app, request_id="r1")
    assert await compiled(app, request_id="r1") == first
    assert first.pages_created == 1


async def test_the_language_model_writes_and_every_part_cites_memories(apps: list[App]) -> None:
    text = "Deployments run on Fridays. [1] Nobody knows why."
    app = opened(apps, model := Model(text), wiki={"writer": "model"})
    days = [NOW + timedelta(days=number) for number in range(3)]
    ids = [await kept(app, told, "deployment", occurred_at=day) for told, day in zip(DEPLOYMENTS, days, strict=True)]
    done = await compiled(app)
    assert (done.pages_created, done.tokens_used, done.error) == (1, 15, "")
    (page,) = (await pages(app)).values()
    assert (page.writer, page.content) == (PageWriter.MODEL, "## Overview\n\nDeployments run on Fridays.")
    assert page.sections[0].blocks[0].source_ids == (ids[0],)
    assert len(model.prompts) == 1
    assert (await compiled(app)).pages_unchanged == 1
    assert len(model.prompts) == 1


@pytest.mark.parametrize("answer", [ProviderUnavailable("down"), "Nothing is cited."])
async def test_rules_write_what_the_language_model_does_not(apps: list[App], answer: Any) -> None:
    app = opened(apps, Model(answer), wiki={"writer": "model"})
    for text in DEPLOYMENTS:
        await kept(app, text, "deployment")
    done = await compiled(app)
    assert done.error.startswith("the language model could not write 1 pages")
    (page,) = (await pages(app)).values()
    assert (page.writer, len(page.sections[0].blocks)) == (PageWriter.RULES, 3)


async def test_a_language_model_that_is_not_there_is_refused(apps: list[App]) -> None:
    app = opened(apps, wiki={"writer": "model"})
    await kept(app, DEPLOYMENTS[0], "deployment")
    with pytest.raises(CapabilityNotSupported, match=r"wiki\.writer"):
        await compiled(app)


async def test_personal_data_leaves_as_the_settings_let_it(apps: list[App]) -> None:
    outgoing = {"scan_recall_output": True, "output_pii_action": "redact"}
    app = opened(apps, dlp=outgoing, barriers={"pii": {"action": "warn"}})
    for name in ("ann", "bob", "cleo"):
        await kept(app, f"Write to {name}@example.com about the deployment, says {name}.", "deployment")
    await compiled(app)
    (page,) = (await pages(app)).values()
    assert "@example.com" not in page.content
    assert "EMAIL" in page.content


async def test_lint_finds_dead_links_single_sources_and_nothing_else(apps: list[App]) -> None:
    app = opened(apps)
    for text in DEPLOYMENTS:
        await kept(app, text, "deployment")
    await compiled(app)
    assert len(await app.gate.call(ME, LintPages(BANK))) == 0
    await kept(app, "Read [[deployment]] and [[the lost page|another one]] before lunch.", "lunch")
    await compiled(app, "lunch")
    found = [(one.page_id, one.problem, one.detail) for one in await app.gate.call(ME, LintPages(BANK))]
    assert [one[:2] for one in found] == [
        ("topic:lunch", PageProblem.SINGLE_SOURCE),
        ("topic:lunch", PageProblem.DEAD_LINK),
    ]
    assert found[1][2] == "[[the lost page]] in block 0 of section overview"
    first = await app.gate.call(ME, LintPages(BANK, page_size=1))
    second = await app.gate.call(ME, LintPages(BANK, page_size=1, page_token=first.next_page_token))
    assert (len(first), len(second), second.pages_examined) == (0, 2, 1)


async def test_sections_follow_the_time_of_the_memories(apps: list[App]) -> None:
    app = opened(apps)
    for month in range(1, 7):
        for number in range(2):
            text = f"In month {month} the team wrote report {number} about topic{month} and area{number}."
            await kept(app, text, "reports", occurred_at=datetime(2025, month, 1 + number, tzinfo=UTC))
    await compiled(app)
    (page,) = (await pages(app)).values()
    headings = [section.heading for section in page.sections]
    assert headings[0] == "Overview"
    assert headings[1:] == sorted(headings[1:], reverse=True)
    assert sum(len(section.blocks) for section in page.sections) == 12


@pytest.mark.parametrize(
    ("request_", "field"),
    [
        (CompileBank(BANK, "tag:"), "scope"),
        (CompileBank(BANK, "entity: "), "scope"),
        (ListPages(BANK, "other"), "kind"),  # type: ignore[arg-type]
        (ListPages(BANK, page_size=-1), "page_size"),
        (SearchPages(BANK, ""), "query"),
        (SearchPages(BANK, "x", -1), "max_results"),
        (GetPage(BANK, ""), "page_id"),
        (LintPages(BANK, page_size=100_000), "page_size"),
    ],
)
async def test_bad_input_is_refused_with_its_field(apps: list[App], request_: Any, field: str) -> None:
    app = opened(apps)
    await app.gate.call(ME, CreateBank(BANK))
    with pytest.raises(ValidationError) as refusal:
        await app.gate.call(ME, request_)
    assert refusal.value.field == field


async def test_pages_say_only_what_the_memories_of_their_scope_say_whatever_happens(apps: list[App]) -> None:
    """Random steps: at every moment each block of a page of a tag is a sentence of a current memory with the tag."""
    app = opened(apps, wiki={"min_memories": 1})
    chance = random.Random(7)
    memories: dict[str, tuple[str, str]] = {}
    gone: set[str] = set()
    for step in range(400):
        what = chance.random()
        alive = sorted(set(memories) - gone)
        if what < 0.4 or not alive:
            tag = chance.choice(("billing", "hr", "travel"))
            text = f"Statement number {step} says something about matter{chance.randrange(40)}."
            memories[await kept(app, text, tag)] = (tag, text)
        elif what < 0.55:
            one = chance.choice(alive)
            await drop(app, one)
            gone.add(one)
        elif what < 0.65 and gone:
            one = chance.choice(sorted(gone))
            await app.gate.call(ME, UndeleteMemory(BANK, one))
            gone.discard(one)
        elif what < 0.8:
            one, tag = chance.choice(alive), chance.choice(("billing", "hr", "travel"))
            await app.gate.call(ME, UpdateMemory(BANK, MemoryUpdate(one, frozenset({"tags"}), tags=(tag,))))
            memories[one] = (tag, memories[one][1])
        else:
            await compiled(app)
        for page in (await pages(app)).values():
            for block in (block for section in page.sections for block in section.blocks):
                assert block.source_ids
                for source in block.source_ids:
                    assert source not in gone
                    assert memories[source] == (page.title, block.text)


async def test_tags_that_differ_in_a_hyphen_have_a_page_each(apps: list[App]) -> None:
    app = opened(apps)
    for text in DEPLOYMENTS:
        await kept(app, text, "on-call")
        await kept(app, text.replace("eployment", "uty"), "on call")
    assert (await compiled(app)).pages_created == 2
    found = await pages(app)
    assert sorted(page.scope for page in found.values()) == ["tag:on call", "tag:on-call"]
    assert found["topic:on-call"].scope == "tag:on-call"
    assert (await compiled(app)).pages_unchanged == 2
