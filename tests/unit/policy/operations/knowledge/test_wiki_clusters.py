"""Topics of memories that no tag and no name covers: pages of clusters of their vectors."""

from __future__ import annotations

import random
import threading
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from astrocyte.api.requests import CompileBank, Forget, GetPage, ListPages, Retain, StartReindex, WaitOperation
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.model import Caller, CompileResult, ForgetSelector, PageKind, RetainItem, WikiPage
from astrocyte.pipelines.knowledge import clusters as clustering
from astrocyte.pipelines.knowledge.clusters import page_ids
from oracles.byte_scans import files_with
from samples.moving import EMBEDDERS, SMALL

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
    near = {"signal_quality": {"dedup": {"enabled": False}}, "embedders": EMBEDDERS}
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


async def test_the_newest_memories_alone_are_read_and_clustered(
    apps: list[App], monkeypatch: pytest.MonkeyPatch
) -> None:
    app = opened(apps)
    ids = await kept(app, *ROOF, *BREAD)
    bank = app.storage.store.get_bank("default", BANK)
    assert bank is not None
    wiki = app.storage.store.wiki
    rows = wiki.unnamed(bank, (), 5)
    assert [memory_id for _, memory_id, _ in rows] == ids[-5:]
    assert wiki.unnamed(bank, (), 100)[-5:] == rows
    assert [memory_id for _, memory_id, _ in wiki.unnamed(bank, [rows[-1][0]], 2)] == ids[-3:-1]
    monkeypatch.setattr(clustering, "MOST_CLUSTERED", len(BREAD))
    assert ((await compiled(app)).pages_created, (await compiled(app)).noise_memories) == (1, len(ROOF))


async def test_pages_are_chosen_beside_the_event_loop(apps: list[App], monkeypatch: pytest.MonkeyPatch) -> None:
    app = opened(apps)
    await kept(app, *BREAD, *ROOF)
    threads: list[threading.Thread] = []

    def chosen(*given: Any) -> Sequence[str]:
        threads.append(threading.current_thread())
        return page_ids(*given)

    monkeypatch.setattr(clustering, "page_ids", chosen)
    assert (await compiled(app)).pages_created == 2
    assert len(threads) == 1
    assert threads[0] is not threading.main_thread()


async def test_a_bank_on_its_way_to_another_model_keeps_its_clusters(apps: list[App], tmp_path: Path) -> None:
    app = opened(apps, tmp_path)
    ids = await kept(app, *BREAD, *ROOF)
    assert (await compiled(app)).pages_created == 2
    store, compiler = app.storage.store, app.pipelines.wiki
    before = store.get_bank("default", BANK)
    assert before is not None
    pages = await clusters(app)
    started = await app.gate.call(ME, StartReindex(BANK, embedding_model=SMALL))
    await app.gate.call(ME, WaitOperation(BANK, started.operation_id, timeout=30))

    async def as_before() -> CompileResult:
        return await compiler.run(before, "bank", "local", screened)

    # The call read the bank before the cut-over, and the vectors and the index after it.
    assert wiki_counts(await as_before()) == (2, 0, 0)
    assert await clusters(app) == pages
    # All vectors of the former model are gone, too.
    while await store.operations.drop_some(before):
        pass
    assert wiki_counts(await as_before()) == (2, 0, 0)
    # What is forgotten meanwhile leaves its page, and a page without memories goes.
    await app.gate.call(ME, Forget(BANK, ForgetSelector(memory_ids=(ids[0], *ids[len(BREAD) :]))))
    assert wiki_counts(await as_before()) == (0, 1, 1)
    (page,) = (await clusters(app)).values()
    assert set(page.source_ids) == set(ids[1 : len(BREAD)])
    # By the new model the clusters are found anew, on the same pages.
    assert wiki_counts(await compiled(app)) == (1, 0, 0)


async def screened(bank_id: str, texts: Sequence[str]) -> Sequence[str]:
    del bank_id
    return texts


def wiki_counts(result: CompileResult) -> tuple[int, int, int]:
    return result.pages_unchanged, result.pages_updated, result.pages_deleted


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


def test_a_name_is_found_where_those_of_all_memories_are_taken() -> None:
    group = [(1, "mem_a"), (2, "mem_b")]
    first = page_ids([group], {})
    second = page_ids([[(2, "mem_b")]], {})
    (name,) = page_ids([group], {first[0]: {7}, second[0]: {8}})
    assert name not in {*first, *second}
    assert page_ids([group], {first[0]: {7}, second[0]: {8}}) == [name]


def test_each_page_is_read_once_however_many_clusters_there_are() -> None:
    class Keys(frozenset[int]):
        reads = 0

        def __iter__(self) -> Iterator[int]:
            Keys.reads += 1
            return super().__iter__()

    pages = {f"cluster:{number}": Keys({number}) for number in range(50)}
    groups = [[(number, f"mem_{number}")] for number in range(50)]
    assert page_ids(groups, pages) == list(pages)
    assert Keys.reads == len(pages)
