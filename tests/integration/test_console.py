"""The console in Chromium: what it shows, what it asks before it deletes, and whom it calls."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, Route, expect, sync_playwright

from astrocyte.api.requests import (
    CompileBank,
    ConsolidateBank,
    CreateApiKey,
    CreateBank,
    CreateDirective,
    CreateMentalModel,
    CreateObservation,
    Neighbors,
    PlaceHold,
    ProposeTerm,
    Remember,
    Retain,
    RunLifecycle,
    StartReindex,
    UpdateMemory,
    UpdateMentalModel,
    WaitOperation,
)
from astrocyte.model import Caller, DeltaOperation, MemoryUpdate, ModelBlock, RetainItem
from harness.browsing import ARGUMENTS, CHROMIUM, gateway
from harness.doors import api_keys, secret_of
from harness.serving import Served

pytestmark = [
    pytest.mark.process,
    pytest.mark.timeout(180),
    pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed"),
]

ME = Caller("default", "user:me")
READER = Caller("default", "user:reader")
MARKUP = "<img src=x onerror=\"document.title='broken'\"> is what Otto wrote."
TEXTS = ("Mara is allergic to sesame, not to nuts.", "Mara lives in Lisbon.", "The cat is called Otto.", MARKUP)
PEOPLE = (
    "Mara Stone works at Acme Corp.",
    "Otto Berg works at Acme Corp.",
    "Mara Stone is married to Ines Wolf.",
    "Ines Wolf lives in Porto.",
    "Mara Stone met Carla Jones in Lisbon.",
)
NOTES = ("ok", "see above", "later", "milk", "call Ann")
DEPLOYMENTS = (
    "The deployment runs every Friday.",
    "A deployment failed because of an expired certificate.",
    f"Deployments need an approval. {MARKUP}",
)
PAGES = (
    "banks",
    "bank/family",
    "bank/notes",
    "memories/family",
    "memories/notes?archived=true",
    "graph/people",
    "graph/people?entity=person:mara-stone",
    "knowledge/people",
    "model/people/model:mara",
    "wiki/engineering",
    "page/engineering/topic:deployment",
    "recall?bank=family&query=what+is+Mara+allergic+to%3F",
    "agents",
    "operations",
    "audit",
    "access",
    "holds",
)
GRANTS = [
    {"bank_id": "*", "principal": "user:me", "permissions": ["*"]},
    {"bank_id": "family", "principal": "user:reader", "permissions": ["read"]},
]
VIEWS = {
    "light": {"color_scheme": "light", "viewport": {"width": 1280, "height": 900}},
    "dark": {"color_scheme": "dark", "viewport": {"width": 1280, "height": 900}},
    "narrow": {"color_scheme": "light", "viewport": {"width": 360, "height": 740}},
}


async def fill(served: Served) -> None:
    call = served.app.gate.call
    for number, text in enumerate(TEXTS):
        item = RetainItem(text, tags=("health",) if number < 2 else (), metadata={"number": number})
        kept = await call(ME, Retain("family", item))
        if number == 1:
            # A version that is replaced within its first millisecond was current at no instant.
            await asyncio.sleep(0.002)
            moved = MemoryUpdate(str(kept.memory_id), frozenset({"content"}), content="Mara lives in Porto.")
            await call(ME, UpdateMemory("family", moved))
    await fill_people(served)
    await fill_notes(served)
    for text in DEPLOYMENTS:
        await call(ME, Retain("engineering", RetainItem(text, tags=("deployment",))))
    await call(ME, CompileBank("engineering"))
    remembered = await call(ME, Remember("release window", f"We deploy on Tuesdays. {MARKUP}"))
    await call(ME, ProposeTerm("change freeze", ("code freeze",), "No deployments.", remembered.memory_id))
    await call(ME, CreateApiKey("console-test", "user:reader"))
    await call(ME, CreateBank("team-notes", display_name="Team notes"))
    await call(ME, PlaceHold("team-notes", "a case", hold_id="case-1"))


async def fill_notes(served: Served) -> None:
    """A bank with an issue of health, an archived memory, and operations of each kind."""
    call = served.app.gate.call
    for text in NOTES:
        await call(ME, Retain("notes", RetainItem(text, tags=("draft",) if text == "milk" else ())))
    for started in (RunLifecycle("notes"), RunLifecycle("notes", dry_run=True), ConsolidateBank("people")):
        operation = await call(ME, started)
        await call(ME, WaitOperation(started.bank_id, operation.operation_id, timeout=30.0))
    operation = await call(ME, StartReindex("notes", "static-minilm-256-v1-128"))
    await call(ME, WaitOperation("notes", operation.operation_id, timeout=30.0))


async def fill_people(served: Served) -> None:
    """A bank with a graph, observations, a mental model and a directive."""
    call = served.app.gate.call
    ids = [str((await call(ME, Retain("people", RetainItem(text)))).memory_id) for text in PEOPLE]
    await call(ME, CreateObservation("people", "Mara earns her money at Acme Corp.", (ids[0],)))
    await call(ME, CreateObservation("people", MARKUP, (ids[1],)))
    model = CreateMentalModel("people", "Mara", content=f"## Work\n\nAcme Corp.\n\n{MARKUP}", source_ids=(ids[0],))
    model_id = (await call(ME, model)).model_id
    block = ModelBlock(text="She is married to Ines Wolf.", source_ids=(ids[2],))
    await call(ME, UpdateMentalModel("people", model_id, (DeltaOperation("append_block", "work", block=block),)))
    await call(ME, CreateDirective("people", "Answer in German.", priority=10))
    # A graph call waits for the memories that were stored before it.
    await call(ME, Neighbors("people", ("person:mara-stone",)))


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    sections: dict[str, Any] = {
        "auth": {"api_keys": api_keys([ME, READER])},
        "access_control": {"enabled": True},
        "directives": {"allowed_principals": ["user:me"]},
        "entity_graph": {"read_wait_seconds": 30},
        "embedders": {"small": {"provider": "static", "options": {"dimensions": 128}}},
        # Its drafts expire at once.
        "banks": {"notes": {"lifecycle": {"tags": {"draft": {"expire_after_days": 1e-9}}}}},
        "access_grants": GRANTS,
    }
    with gateway(fill, **sections) as url:
        yield url


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    # Milliseconds; a page takes a few hundred of them, and a few seconds beside compilers.
    expect.set_options(timeout=30_000)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield browser
        browser.close()


class Window:
    """A page, with what it asked for and complained about."""

    def __init__(self, browser: Browser, url: str, **options: Any) -> None:
        self.context = browser.new_context(**options)
        self.page: Page = self.context.new_page()
        self.url = url
        self.requests: list[str] = []
        self.complaints: list[str] = []
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on(
            "console",
            lambda line: self.complaints.append(line.text) if "Failed to load" not in line.text else None,
        )

    def log_in(self, caller: Caller = ME) -> Page:
        self.page.goto(f"{self.url}/console")
        self.page.get_by_label("API key or token").fill(secret_of(caller))
        self.page.get_by_role("button", name="Log in").click()
        expect(self.page.get_by_role("heading", name="Banks")).to_be_visible()
        return self.page

    def show(self, name: str) -> Page:
        self.page.goto(f"{self.url}/console#{name}")
        expect(self.page.locator("main:not([aria-busy]) h1")).to_be_visible()
        return self.page

    def check(self) -> None:
        """Nothing was asked of another host, and no policy was broken."""
        assert [one for one in self.requests if not one.startswith((self.url, "data:"))] == []
        assert self.complaints == []


@pytest.fixture
def window(browser: Browser, url: str) -> Iterator[Window]:
    window = Window(browser, url)
    yield window
    window.check()
    window.context.close()


def open_memory(window: Window, text: str) -> Page:
    page = window.show("memories/family")
    page.get_by_role("link", name=text).click()
    expect(page.get_by_role("heading", name="Memory", exact=True)).to_be_visible()
    return page


# -- Looks and access --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("view", sorted(VIEWS))
def test_every_page_is_accessible(browser: Browser, url: str, view: str) -> None:
    """By axe, in each colour scheme and on a narrow screen; pictures go to TEST_SCREENSHOTS."""
    window = Window(browser, url, **VIEWS[view])
    pictures = os.environ.get("TEST_SCREENSHOTS")
    window.page.goto(f"{url}/console")
    expect(window.page.get_by_label("API key or token")).to_be_visible()
    found = {"login": violations(window.page)}
    window.log_in()
    for name in PAGES:
        page = window.show(name)
        if name.startswith("recall"):
            page.get_by_role("button", name="Why is it here?").first.click()
            expect(page.get_by_text("Rank after fusion")).to_be_visible()
        title = re.sub(r"[/?=:]", "-", name) if name.startswith("graph") else name.partition("?")[0].replace("/", "-")
        if pictures:
            page.screenshot(path=Path(pictures) / f"console-{view}-{title}.png", full_page=True)
        found[title] = violations(page)
        width: int = page.evaluate("document.documentElement.scrollWidth")
        assert width <= VIEWS[view]["viewport"]["width"], title  # type: ignore[index]  # of a view
    assert {title: problems for title, problems in found.items() if problems} == {}
    # What axe would find is found.
    window.page.evaluate("document.querySelector('main').append(document.createElement('input'))")
    assert [problem for problem in violations(window.page) if problem.startswith("label:")]
    window.check()
    window.context.close()


def violations(page: Page) -> list[str]:
    told = Axe().run(page).response["violations"]
    return [f"{one['id']}: {node['html'][:120]}" for one in told for node in one["nodes"]]


def test_it_can_be_used_by_keyboard(window: Window) -> None:
    page = window.page
    page.goto(f"{window.url}/console")
    expect(page.get_by_label("API key or token")).to_be_focused()
    page.keyboard.type(secret_of(ME))
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Banks")).to_be_focused()
    page.keyboard.press("Shift+Tab")
    expect(page.get_by_role("button", name="Log out")).to_be_focused()
    page.get_by_role("link", name="Recall").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Recall")).to_be_focused()
    assert page.title() == "Recall – Astrocyte console"
    page.get_by_role("link", name="Skip to content").focus()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()
    expect(page.get_by_role("heading", name="Recall")).to_be_visible()


# -- Login -------------------------------------------------------------------------------------------------------------


def test_a_key_is_asked_for_and_kept_in_the_tab_only(window: Window) -> None:
    page = window.page
    page.goto(f"{window.url}/console")
    page.get_by_label("API key or token").fill("wrong")
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("alert")).to_contain_text("the key is not known to this server")
    window.log_in()
    assert window.context.cookies() == []
    assert page.evaluate("localStorage.length") == 0
    assert [one for one in window.requests if "key of" in one or "Bearer" in one] == []
    page.reload()
    expect(page.get_by_role("heading", name="Banks")).to_be_visible()
    page.get_by_role("button", name="Log out").click()
    expect(page.get_by_label("API key or token")).to_be_visible()
    assert page.evaluate("sessionStorage.length") == 0


def test_no_key_is_asked_for_where_none_is_needed(browser: Browser) -> None:
    with gateway() as url:
        window = Window(browser, url)
        window.page.goto(url)
        expect(window.page.get_by_text("There is no bank that you may read.")).to_be_visible()
        expect(window.page.get_by_role("button", name="Log out")).to_have_count(0)
        window.check()
        window.context.close()


def test_a_key_sees_what_it_may_see(window: Window) -> None:
    page = window.log_in(READER)
    expect(page.get_by_role("link", name="family")).to_be_visible()
    expect(page.get_by_role("link", name="team-notes")).to_have_count(0)
    window.show("holds")
    expect(page.get_by_role("alert")).to_contain_text("lacks admin access")


# -- Pages -------------------------------------------------------------------------------------------------------------


def test_banks_show_their_health(window: Window) -> None:
    page = window.log_in()
    row = page.get_by_role("row").filter(has=page.get_by_role("link", name="family"))
    expect(row.get_by_role("cell").nth(0)).to_contain_text(re.compile(r"(healthy|warning|critical) [01]\.\d\d$"))
    expect(row.get_by_role("cell").nth(1)).to_have_text("current")
    expect(row.get_by_role("cell").nth(2)).to_have_text("4")
    idle = page.get_by_role("row").filter(has=page.get_by_role("link", name="team-notes"))
    expect(idle).to_contain_text("no calls yet")
    notes = page.get_by_role("row").filter(has=page.get_by_role("link", name="notes", exact=True))
    expect(notes.get_by_role("cell").nth(0)).to_contain_text("short content")
    expect(notes.get_by_role("cell").nth(3)).to_have_text("1")
    page.get_by_label("Ids that begin with").fill("team")
    page.get_by_role("button", name="Filter").click()
    expect(page.get_by_role("link", name="team-notes")).to_be_visible()
    expect(page.get_by_role("link", name="family")).to_have_count(0)


def test_the_health_of_a_bank_is_that_of_the_server(window: Window) -> None:
    window.log_in()
    page = window.show("bank/notes")
    headers = {"authorization": f"Bearer {secret_of(ME)}"}
    told = window.context.request.get(f"{window.url}/v1/banks/notes/stats", headers=headers).json()["stats"]["health"]
    expect(page.get_by_text(f"{told['status']} {told['score']:.2f}")).to_be_visible()
    (issue,) = told["issues"]
    issues = page.get_by_role("table", name="Issues")
    expect(issues).to_contain_text(issue["message"])
    expect(issues).to_contain_text(issue["recommendation"])
    # What the page shows is the answer: another one is shown as well.
    worse = {**told, "score": 0.12, "status": "critical", "issues": []}

    def changed(route: Route) -> None:
        answer = route.fetch()
        body = answer.json()
        route.fulfill(response=answer, json={"stats": {**body["stats"], "health": worse}})

    page.route("**/v1/banks/notes/stats", changed)
    page.reload()
    expect(page.get_by_text("critical 0.12")).to_be_visible()
    expect(page.get_by_text("There is no issue.")).to_be_visible()


def test_memories_are_filtered_and_are_text(window: Window) -> None:
    window.log_in()
    page = window.show("memories/family")
    expect(page.get_by_role("link", name=MARKUP)).to_be_visible()
    assert page.locator("main img").count() == 0
    page.get_by_label("Tags").fill("health, other")
    page.get_by_role("button", name="Filter").click()
    expect(page.get_by_text("2 of 2 memories")).to_be_visible()
    page = open_memory(window, MARKUP)
    expect(page.locator("pre.content")).to_have_text(MARKUP)
    assert page.title() == "Memory – Astrocyte console"


def test_an_earlier_version_is_shown(window: Window) -> None:
    window.log_in()
    page = open_memory(window, "Mara lives in Porto.")
    page.get_by_role("button", name="Show version 1").click()
    expect(page.get_by_label("Content then")).to_have_text("Mara lives in Lisbon.")
    page.get_by_label("As of").fill("2020-01-01T00:00:00")
    page.get_by_role("button", name="Show", exact=True).click()
    expect(page.get_by_text("not there yet")).to_be_visible()


def test_the_graph_is_drawn_and_walked_by_keyboard(window: Window) -> None:
    window.log_in()
    page = window.show("graph/people")
    expect(page.get_by_text("7 entities", exact=True)).to_be_visible()
    expect(page.get_by_role("table", name="Entities, by id")).to_contain_text("Ines Wolf")
    page.get_by_label("Name").fill("mara")
    page.get_by_role("button", name="Search").click()
    page.get_by_role("link", name="Mara Stone").click()
    drawing = page.get_by_role("group", name="Entities around Mara Stone")
    expect(drawing.get_by_role("link")).to_have_count(7)
    expect(page.get_by_role("table", name="entities around it")).to_contain_text("Mara Stone is married to Ines Wolf")
    expect(page.get_by_role("table", name="Memories near it")).to_contain_text("Mara Stone works at Acme Corp.")
    # The drawing is inside of its frame.
    inside = """() => { const svg = document.querySelector('svg.graph').getBoundingClientRect();
        const boxes = [...document.querySelectorAll('svg.graph text')].map((one) => one.getBoundingClientRect());
        const across = boxes.every((box) => box.left >= svg.left && box.right <= svg.right);
        return across && boxes.every((box) => box.top >= svg.top && box.bottom <= svg.bottom) }"""
    assert page.evaluate(inside)
    drawing.get_by_role("link", name="Ines Wolf").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("group", name="Entities around Ines Wolf")).to_be_visible()
    page.get_by_role("link", name="1 step").click()
    expect(page.get_by_role("group", name="Entities around Ines Wolf").get_by_role("link")).to_have_count(3)


def test_knowledge_is_shown_as_text_with_its_sources(window: Window) -> None:
    window.log_in()
    page = window.show("knowledge/people")
    expect(page.get_by_role("table", name="Rules for answers")).to_contain_text("Answer in German.")
    expect(page.get_by_role("link", name=MARKUP)).to_be_visible()
    page.get_by_label("Words").fill("money")
    page.get_by_role("button", name="Filter").click()
    expect(page.get_by_role("link", name=MARKUP)).to_have_count(0)
    page.get_by_role("link", name="Mara earns her money at Acme Corp.").click()
    expect(page.get_by_role("heading", name="Observation", exact=True)).to_be_visible()
    assert violations(page) == []
    page.get_by_role("table", name="Memories").get_by_role("link").click()
    expect(page.locator("pre.content")).to_have_text(PEOPLE[0])
    page = window.show("model/people/model:mara")
    content = page.get_by_role("article", name="Content")
    expect(content).to_contain_text(MARKUP)
    expect(content.get_by_role("link", name="memory 1")).to_be_visible()
    page.get_by_role("button", name="Show what revision 2 changed").click()
    expect(page.get_by_label("Difference")).to_contain_text("+She is married to Ines Wolf.")
    assert page.locator("main img").count() == 0


def test_the_wiki_is_shown_as_text_with_its_sources(window: Window) -> None:
    window.log_in()
    page = window.show("bank/engineering")
    page.get_by_role("link", name="Wiki").click()
    expect(page.get_by_role("heading", name="Wiki of engineering")).to_be_visible()
    page.get_by_role("table", name="Pages").get_by_role("link").first.click()
    content = page.get_by_role("article", name="Content")
    expect(content).to_contain_text("The deployment runs every Friday.")
    assert page.locator("main img").count() == 0
    expect(page.get_by_role("table", name="Revisions, newest first")).to_contain_text("user:me")
    expect(page.get_by_role("table", name="Memories").get_by_role("row")).to_have_count(1 + len(DEPLOYMENTS))
    content.get_by_role("link", name="memory 1").first.click()
    expect(page.locator("pre.content")).to_contain_text(re.compile("|".join(re.escape(text) for text in DEPLOYMENTS)))
    window.show("wiki/engineering")
    page.get_by_label("Search in pages").fill("why did it fail?")
    page.get_by_role("button", name="Show").click()
    expect(page.get_by_role("table", name="Sections, best first")).to_contain_text("expired certificate")
    window.show("wiki/family")
    expect(page.get_by_text("There is no page.")).to_be_visible()


def test_archived_memories_are_listed(window: Window) -> None:
    window.log_in()
    page = window.show("memories/notes")
    expect(page.get_by_role("link", name="later")).to_be_visible()
    expect(page.get_by_role("link", name="milk")).to_have_count(0)
    page.get_by_label("Archived").check()
    page.get_by_role("button", name="Filter").click()
    expect(page.get_by_text("1 of 1 archived memories")).to_be_visible()
    page.get_by_role("link", name="milk").click()
    expect(page.get_by_text("expired")).to_be_visible()


def test_operations_show_their_kind_and_counts(window: Window) -> None:
    window.log_in()
    page = window.show("operations")
    rows = page.get_by_role("table", name="Operations").get_by_role("row")
    expect(rows).to_have_count(5)
    expect(rows.filter(has_text="dry run")).to_contain_text("succeeded")
    archived = rows.filter(has=page.get_by_role("cell", name="lifecycle", exact=True))
    expect(archived).to_contain_text("1 archived by age")
    expect(archived).to_contain_text("memories")
    expect(rows.filter(has_text="consolidation")).to_contain_text("changes")
    expect(rows.filter(has_text="reindex")).to_contain_text("versions")
    for kind in ("lifecycle", "consolidation", "reindex"):
        expect(rows.filter(has_text=kind).first.get_by_role("cell").nth(3)).not_to_have_text("–")


def test_memories_of_agents_and_terms_are_listed(window: Window) -> None:
    window.log_in()
    page = window.show("agents")
    expect(page.get_by_role("table", name="Memories of the agent")).to_contain_text("We deploy on Tuesdays.")
    assert page.locator("main img").count() == 0
    expect(page.get_by_role("table", name="Terms")).to_contain_text("code freeze")
    page.get_by_label("Terms").select_option("approved")
    page.get_by_role("button", name="Show").click()
    expect(page.get_by_text("There is no approved term.")).to_be_visible()
    # Nobody sees what another agent remembers, and a part that is refused leaves the other one.
    page.get_by_label("Agent", exact=True).fill("user:reader")
    page.get_by_role("button", name="Show").click()
    expect(page.get_by_role("alert")).to_be_visible()
    expect(page.get_by_text("There is no approved term.")).to_be_visible()


def test_a_recall_as_of_an_instant_and_within_a_range(window: Window) -> None:
    window.log_in()
    page = window.show("recall?bank=family,people&query=where+does+Mara+live%3F&strategy=cascade")
    asked = [one for one in window.requests if one.endswith("/v1/recall")]
    assert asked
    expect(page.get_by_label("Strategy")).to_have_value("cascade")
    page.get_by_label("As of").fill("2020-01-01T00:00:00")
    page.get_by_role("button", name="Recall").click()
    expect(page.get_by_text("Nothing was found.")).to_be_visible()
    page.get_by_label("As of").fill("")
    page.get_by_label("Happened from").fill("2020-01-01T00:00:00")
    page.get_by_label("Happened until").fill("2020-01-02T00:00:00")
    with page.expect_request("**/v1/recall") as sent:
        page.get_by_role("button", name="Recall").click()
    body = sent.value.post_data_json or {}
    assert (body["strategy"], "as_of" in body) == ("cascade", False)
    assert body["time_range"]["start"] < body["time_range"]["end"] < "2020-01-03"
    expect(page.get_by_text("Nothing was found.")).to_be_visible()


def test_an_observation_is_deleted_with_the_switch_and_its_id(window: Window) -> None:
    page = window.log_in()
    page.get_by_role("switch", name="Allow deletion").check()
    window.show("knowledge/people")
    page.get_by_role("link", name=MARKUP).click()
    page.get_by_role("button", name="Delete observation").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Type the id to confirm").fill(dialog.locator("code").inner_text())
    dialog.get_by_role("button", name="Delete observation").click()
    expect(page.get_by_role("heading", name="Knowledge of people")).to_be_visible()
    expect(page.get_by_role("link", name=MARKUP)).to_have_count(0)


def test_a_recall_shows_ranks_timings_and_reasons(window: Window) -> None:
    window.log_in()
    page = window.show("recall")
    page.get_by_label("Bank").fill("family")
    page.get_by_label("Hits").fill("1")
    page.get_by_label("Query").fill("what is Mara allergic to?")
    page.get_by_role("button", name="Recall").click()
    hit = page.get_by_role("article")
    expect(hit).to_have_count(1)
    expect(hit).to_contain_text(TEXTS[0])
    expect(hit).to_contain_text("semantic #1")
    expect(hit).to_contain_text("keyword #1")
    expect(page.get_by_role("table", name="Stages")).to_contain_text("hydrate")
    hit.get_by_role("button", name="Why is it here?").click()
    expect(hit).to_contain_text("Rank after fusion")
    lost = window.context.request.post(
        f"{window.url}/v1/recall",
        data={"bank_id": "family", "query": "where does Mara live?", "max_results": 1},
        headers={"authorization": f"Bearer {secret_of(ME)}"},
    ).json()["hits"][0]["memory_id"]
    page.get_by_label("Memory id").fill(lost)
    page.get_by_role("button", name="Explain").click()
    expect(page.get_by_text("max results", exact=True)).to_be_visible()
    expect(page.get_by_text("max_results=2")).to_be_visible()


def test_an_explanation_tells_of_observations(window: Window) -> None:
    window.log_in()
    page = window.show("recall")
    page.get_by_label("Bank").fill("people")
    page.get_by_label("Query").fill("where does Mara earn her money?")
    page.get_by_role("button", name="Recall").click()
    hit = page.get_by_role("article").filter(has_text="Mara earns her money at Acme Corp.").first
    hit.get_by_role("button", name="Why is it here?").click()
    table = hit.get_by_role("table", name="Observations and mental models")
    expect(table).to_contain_text("returned: hit")
    expect(hit).to_contain_text("observation#")
    assert violations(page) == []


def test_a_recall_names_the_path_by_which_the_graph_led_to_a_hit(window: Window) -> None:
    def with_a_path(route: Route) -> None:
        answer = route.fetch()
        found = answer.json()
        (hit,) = found["hits"]
        path = {"entity_ids": ["person:mara", "org:acme"], "link_types": ["works_at"]}
        found["trace"]["via"] = [{"memory_id": hit["memory_id"], "bank_id": hit["bank_id"], **path}]
        route.fulfill(response=answer, json=found)

    window.log_in()
    page = window.show("recall")
    page.get_by_label("Bank").fill("family")
    page.get_by_label("Hits").fill("1")
    page.get_by_label("Query").fill("what is Mara allergic to?")
    page.get_by_role("button", name="Recall").click()
    expect(page.get_by_role("article")).not_to_contain_text("Graph:")
    page.route("**/v1/recall", with_a_path)
    page.get_by_role("button", name="Recall").click()
    expect(page.get_by_role("article")).to_contain_text("Graph: person:mara – works_at – org:acme")


def test_keys_grants_holds_and_the_audit_trail_are_listed(window: Window) -> None:
    window.log_in()
    page = window.show("access")
    expect(page.get_by_role("table", name="API keys")).to_contain_text("console-test")
    expect(page.get_by_role("table", name="Grants")).to_contain_text("user:reader")
    page = window.show("holds")
    expect(page.get_by_role("table", name="Legal holds")).to_contain_text("case-1")
    page = window.show("audit?bank_id=team-notes")
    expect(page.get_by_role("table", name="Events")).to_contain_text("hold")
    window.show("nothing")
    expect(page.get_by_role("alert")).to_contain_text("There is no such page.")


# -- Deletion ----------------------------------------------------------------------------------------------------------


def test_nothing_is_deleted_without_the_switch_and_the_id(window: Window) -> None:
    window.log_in()
    page = open_memory(window, "The cat is called Otto.")
    button = page.get_by_role("button", name="Forget memory")
    expect(button).to_have_count(0)
    page.get_by_role("switch", name="Allow deletion").check()
    button.click()
    dialog = page.get_by_role("dialog")
    confirm = dialog.get_by_role("button", name="Forget memory")
    expect(confirm).to_be_disabled()
    assert violations(page) == []
    dialog.get_by_label("Type the id to confirm").fill("mem_other")
    expect(confirm).to_be_disabled()
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    assert not [one for one in window.requests if "forget" in one]
    button.click()
    memory_id = dialog.locator("code").inner_text()
    dialog.get_by_label("Type the id to confirm").fill(memory_id)
    dialog.get_by_label("Reason").fill("a test")
    confirm.click()
    expect(page.get_by_role("heading", name="Memories of family")).to_be_visible()
    expect(page.get_by_role("link", name="The cat is called Otto.")).to_have_count(0)
    # A new tab begins with the switch off.
    page.reload()
    expect(page.get_by_role("switch", name="Allow deletion")).not_to_be_checked()


def test_a_deletion_that_is_refused_says_why(window: Window) -> None:
    page = window.log_in()
    page.get_by_role("switch", name="Allow deletion").check()
    window.show("bank/team-notes")
    page.get_by_role("button", name="Delete bank").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Type the id to confirm").fill("team-notes")
    dialog.get_by_role("button", name="Delete bank").click()
    expect(dialog.get_by_role("alert")).to_contain_text("a legal hold on bank 'team-notes'")


# -- Policy ------------------------------------------------------------------------------------------------------------


def test_the_console_runs_nothing_of_a_page(window: Window) -> None:
    """A script that found its way into the page would not run."""
    page = window.log_in()
    policy = window.context.request.get(f"{window.url}/console").headers["content-security-policy"]
    assert "script-src 'self'" in policy
    assert "unsafe" not in policy
    inserted = """() => { const script = document.createElement('script'); try { script.textContent = 'window.ran = 1' }
        catch (error) { return error.name } document.body.append(script); return String(window.ran) }"""
    assert page.evaluate(inserted) in {"undefined", "TypeError"}
    assert any("Content Security Policy" in line or "TrustedScript" in line for line in window.complaints)
    window.complaints.clear()


def test_the_page_of_the_api_shows_every_call_and_asks_no_other_host(window: Window) -> None:
    page = window.page
    page.goto(f"{window.url}/docs")
    expect(page.locator("#operations-MemoryService-Recall")).to_be_visible()
    pictures = os.environ.get("TEST_SCREENSHOTS")
    if pictures:
        page.screenshot(path=Path(pictures) / "docs.png")
    page.locator("#operations-AdminService-GetServerInfo button").first.click()
    page.get_by_role("button", name="Execute").click()
    expect(page.get_by_role("cell", name="401")).to_be_visible()
