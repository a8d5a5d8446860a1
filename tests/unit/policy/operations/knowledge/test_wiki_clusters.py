"""Topics of memories that no tag and no name covers: pages of clusters of their vectors."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from astrocyte.api.requests import CompileBank, Forget, GetPage, ListPages, Retain
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.model import Caller, CompileResult, ForgetSelector, PageKind, RetainItem, WikiPage
from astrocyte.pipelines.knowledge.clusters import page_ids
from byte_scans import files_with

ME, BANK = Caller(), "notes"
BREAD = (
    "the sourdough bread needs a hot oven",
    "bake the sourdough bread in a hot oven",
    "a hot oven makes the sourdough bread crisp",
    "the sourdough bread came out of the oven too early",
)
ROOF = (
    "the roof leaks above the attic stairs",
    "rain leaks through the roof into the attic",
    "the attic roof leaks again after the rain",
)
ALONE = ("the cat prefers the blue cushion", "parking costs four crowns an hour")


@pytest.fixture
async def apps() -> AsyncIterator[list[App]]:
    made: list[App] = []
    yield made
    for app in made:
        await app.close()


def opened(apps: list[App], folder: Path | None = None, **wiki: Any) -> App:
    where = {"vector_store": "in_memory"} if folder is None else {"data_dir": str(folder)}
    near = {"signal_quality": {"dedup": {"enabled": False}}}
    app = App(Settings.from_mapping({**where, **near, "wiki": {"cluster_similarity": 0.6, **wiki}}))
    apps.append(app)
    return app


async def kept(app: App, *texts: str, tags: tuple[str, ...] = ()) -> list[str]:
    return [(await app.gate.call(ME, Retain(BANK, RetainItem(text, tags=tags)))).memory_id or "" for text in texts]


async def compiled(app: App, scope: str = "") -> CompileResult:
    return await app.gate.call(ME, CompileBank(BANK, scope))


async def clusters(app: App) -> dict[str, WikiPage]:
    pages = await app.gate.call(ME, ListPages(BANK, PageKind.CLUSTER))
    return {page.title: page for page in pages}


async def test_memories_without_a_topic_are_clustered_by_their_vectors(apps: list[App]) -> None:
    app = opened(apps)
    texts = [*BREAD, *ROOF, *ALONE]
    random.Random(3).shuffle(texts)
    ids = dict(zip(texts, await kept(app, *texts), strict=True))
    result = await compiled(app)
    assert (result.pages_created, result.noise_memories) == (2, len(ALONE))
    found = await clusters(app)
    assert {frozenset(page.source_ids) for page in found.values()} == {
        frozenset(ids[text] for text in group) for group in (BREAD, ROOF)
    }
    # A title has words that its memories share.
    assert {frozenset(title.casefold().split(", ")) for title in found} == {
        frozenset({"sourdough", "bread", "oven"}),
        frozenset({"roof", "attic", "leaks"}),
    }
    page = await app.gate.call(ME, GetPage(BANK, next(iter(found.values())).page_id))
    assert (page.scope, page.page_id.startswith("cluster:")) == ("bank", True)
    assert all(block.source_ids for section in page.sections for block in section.blocks)
    assert (await compiled(app)).pages_unchanged == 2


async def test_equal_memories_give_equal_clusters(apps: list[App]) -> None:
    outcomes = []
    for _ in range(2):
        app = opened(apps)
        await kept(app, *BREAD, *ROOF, *ALONE)
        await compiled(app)
        outcomes.append({title: page.content for title, page in (await clusters(app)).items()})
    assert outcomes[0] == outcomes[1]


async def test_a_tag_or_a_name_comes_before_a_cluster(apps: list[App]) -> None:
    app = opened(apps)
    await kept(app, *BREAD, tags=("baking",))
    await kept(app, *ROOF)
    await compiled(app)
    kinds = sorted(page.page_id.partition(":")[0] for page in await app.gate.call(ME, ListPages(BANK)))
    assert kinds == ["cluster", "topic"]
    # A scope is one topic, and leaves clusters as they are.
    assert (await compiled(app, "baking")).pages_deleted == 0
    assert len(await clusters(app)) == 1


async def test_a_cluster_that_grows_keeps_its_page_and_one_that_is_too_small_loses_it(apps: list[App]) -> None:
    app = opened(apps)
    ids = await kept(app, *BREAD[1:])
    await compiled(app)
    (before,) = (await clusters(app)).values()
    await kept(app, BREAD[0])
    assert (await compiled(app)).pages_updated == 1
    (after,) = (await clusters(app)).values()
    assert (after.page_id, after.revision, len(after.sources)) == (before.page_id, 2, 4)
    await app.gate.call(ME, Forget(BANK, ForgetSelector(memory_ids=tuple(ids[:2]))))
    assert (await compiled(app)).pages_deleted == 1
    assert await clusters(app) == {}


async def test_the_setting_turns_clusters_off(apps: list[App]) -> None:
    app = opened(apps, cluster_similarity=1.0)
    await kept(app, *BREAD)
    assert ((await compiled(app)).pages_created, await clusters(app)) == (0, {})


async def test_no_byte_of_an_erased_memory_is_left_in_a_cluster(apps: list[App], tmp_path: Path) -> None:
    app = opened(apps, tmp_path / "data")
    secret = "qzxvoltairxzq"
    told = [f"{text} {secret}" for text in BREAD]
    ids = await kept(app, *told)
    await compiled(app)
    (page,) = (await clusters(app)).values()
    assert secret in page.content
    for memory_id in ids:
        await app.gate.call(ME, Forget(BANK, ForgetSelector(memory_ids=(memory_id,)), compliance=True))
    assert await clusters(app) == {}
    assert files_with(tmp_path, secret) == []


def test_a_cluster_takes_the_page_with_which_it_shares_most_and_never_the_page_of_another() -> None:
    first = [(1, "mem_a"), (2, "mem_b"), (3, "mem_c")]
    (name,) = page_ids([first], {})
    pages = {name: {1, 2, 3}}
    # It splits: the larger part keeps the page, and the other one, which begins with the same memory, gets its own.
    larger, smaller = [(2, "mem_b"), (3, "mem_c"), (4, "mem_d")], [(1, "mem_a"), (5, "mem_e")]
    names = page_ids([smaller, larger], pages)
    assert names[1] == name
    assert names[0] not in {name, ""}
    # Two grow together: the page with more of the memories stays.
    merged = page_ids([[*larger, *smaller]], {"cluster:x": {1, 5}, "cluster:y": {2, 3, 4}})
    assert merged == ["cluster:y"]
    assert page_ids([], pages) == []
