"""The conventions of calls on knowledge: an etag guards deletions, and validate_only says what a call would do."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from astrocyte.api.requests import (
    CompileBank,
    CreateDirective,
    CreateMentalModel,
    CreateObservation,
    DeleteDirective,
    DeleteMentalModel,
    DeleteObservation,
    GetMentalModel,
    GetObservation,
    InvalidateObservations,
    ListDirectives,
    ListMentalModelRevisions,
    ListMentalModels,
    ListObservations,
    ListPages,
    PlaceHold,
    RefreshMentalModel,
    Retain,
    UndeleteMentalModel,
    UpdateObservation,
)
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.errors import Conflict, LegalHoldActive, MemoryNotFound, NotFound
from astrocyte.model import Caller, RetainItem

ME, BANK = Caller(), "family"


@pytest.fixture
async def app() -> AsyncIterator[App]:
    app = App(Settings.from_mapping({"vector_store": "in_memory"}))
    yield app
    await app.close()


async def kept(app: App, text: str, *tags: str) -> str:
    return (await app.gate.call(ME, Retain(BANK, RetainItem(text, tags=tags)))).memory_id or ""


async def items(app: App) -> dict[type, tuple[str, str]]:
    """Id and etag of a new item of each kind, by the request that deletes it."""
    call = app.gate.call
    source = await kept(app, "Mara plays the oboe.")
    directive = await call(ME, CreateDirective(BANK, "Be brief."))
    observation = await call(ME, CreateObservation(BANK, "Mara is a musician.", [source]))
    model = await call(ME, CreateMentalModel(BANK, "Mara", content="She plays.", source_ids=[source]))
    return {
        DeleteDirective: (directive.directive_id, directive.etag),
        DeleteObservation: (observation.observation_id, observation.etag),
        DeleteMentalModel: (model.model_id, model.etag),
    }


async def count(app: App) -> int:
    """The number of items of all kinds."""
    listings: list[Any] = [ListDirectives(BANK), ListObservations(BANK), ListMentalModels(BANK)]
    return sum([len([*await app.gate.call(ME, one)]) for one in listings])


@pytest.mark.parametrize("request_", [DeleteDirective, DeleteObservation, DeleteMentalModel])
async def test_a_deletion_checks_its_etag_and_only_validates_where_that_is_asked(app: App, request_: Any) -> None:
    item, etag = (await items(app))[request_]
    for validate_only in (True, False):
        with pytest.raises(Conflict) as conflict:
            await app.gate.call(ME, request_(BANK, item, etag="0-0", validate_only=validate_only))
        assert conflict.value.metadata["etag"] == etag
    assert await app.gate.call(ME, request_(BANK, item, "r1", etag, validate_only=True)) is True
    assert await app.gate.call(ME, request_(BANK, "none", validate_only=True)) is False
    assert await count(app) == 3
    assert await app.gate.call(ME, request_(BANK, item, "r1", etag)) is True
    assert await count(app) == 2
    # The repetition of a request gets its answer, although the etag is no longer there.
    assert await app.gate.call(ME, request_(BANK, item, "r1", etag)) is True


async def test_a_validation_of_a_deletion_is_refused_as_the_deletion_is(app: App) -> None:
    made = await items(app)
    await app.gate.call(ME, PlaceHold(BANK, reason="a case"))
    requests: list[Any] = [request(BANK, item, validate_only=True) for request, (item, _) in made.items()]
    (source,) = (await app.gate.call(ME, GetObservation(BANK, made[DeleteObservation][0]))).source_ids
    requests.append(InvalidateObservations(BANK, [source], validate_only=True))
    requests.append(RefreshMentalModel(BANK, made[DeleteMentalModel][0], "She sings.", validate_only=True))
    requests.append(UpdateObservation(BANK, made[DeleteObservation][0], text="No.", validate_only=True))
    for request in requests:
        with pytest.raises(LegalHoldActive):
            await app.gate.call(ME, request)


async def test_an_invalidation_says_how_many_it_would_delete(app: App) -> None:
    first, second = await kept(app, "Mara plays the oboe."), await kept(app, "Anders repairs radios.")
    for source in (first, first, second):
        await app.gate.call(ME, CreateObservation(BANK, "A statement.", [source]))
    assert await app.gate.call(ME, InvalidateObservations(BANK, [first], "r1", validate_only=True)) == 2
    assert len(await app.gate.call(ME, ListObservations(BANK))) == 3
    assert await app.gate.call(ME, InvalidateObservations(BANK, [first], "r1")) == 2
    assert len(await app.gate.call(ME, ListObservations(BANK))) == 1


async def test_a_refresh_shows_the_model_as_it_would_be(app: App) -> None:
    item, etag = (await items(app))[DeleteMentalModel]
    before = await app.gate.call(ME, GetMentalModel(BANK, item))
    shown = await app.gate.call(ME, RefreshMentalModel(BANK, item, "# Now\n\nShe sings.", validate_only=True))
    assert ("She sings." in shown.content, shown.sources, shown.etag) == (True, (), etag)
    assert await app.gate.call(ME, GetMentalModel(BANK, item)) == before
    assert len(await app.gate.call(ME, ListMentalModelRevisions(BANK, item))) == 1
    with pytest.raises(Conflict):
        await app.gate.call(ME, RefreshMentalModel(BANK, item, "Text.", etag="0-0", validate_only=True))
    missing = RefreshMentalModel(BANK, item, "Text.", ["mem_" + "0" * 32], validate_only=True)
    with pytest.raises(MemoryNotFound):
        await app.gate.call(ME, missing)
    done = await app.gate.call(ME, RefreshMentalModel(BANK, item, "# Now\n\nShe sings."))
    assert (done.sections, done.revision) == (shown.sections, 2)


async def test_an_undeletion_shows_what_it_would_restore(app: App) -> None:
    item, _ = (await items(app))[DeleteMentalModel]
    before = await app.gate.call(ME, GetMentalModel(BANK, item))
    await app.gate.call(ME, DeleteMentalModel(BANK, item))
    assert await app.gate.call(ME, UndeleteMentalModel(BANK, item, validate_only=True)) == before
    with pytest.raises(NotFound):
        await app.gate.call(ME, GetMentalModel(BANK, item))
    with pytest.raises(NotFound):
        await app.gate.call(ME, UndeleteMentalModel(BANK, "none", validate_only=True))
    assert await app.gate.call(ME, UndeleteMentalModel(BANK, item)) == before


async def test_a_compilation_says_what_it_would_write(app: App) -> None:
    for text in ("The cat sleeps.", "The cat eats.", "The cat purrs."):
        await kept(app, text, "cat")
    numbers = ("scopes_compiled", "pages_created", "pages_updated", "pages_unchanged", "pages_held", "noise_memories")

    async def both() -> list[int]:
        foreseen = await app.gate.call(ME, CompileBank(BANK, validate_only=True))
        before = [page.revision for page in await app.gate.call(ME, ListPages(BANK))]
        done = await app.gate.call(ME, CompileBank(BANK))
        assert [getattr(foreseen, name) for name in numbers] == [getattr(done, name) for name in numbers]
        assert len(before) == done.pages_updated + done.pages_unchanged + done.pages_held
        return [getattr(done, name) for name in numbers]

    assert await both() == [1, 1, 0, 0, 0, 0]
    assert await both() == [1, 0, 0, 1, 0, 0]
    await kept(app, "The cat hides.", "cat")
    await app.gate.call(ME, PlaceHold(BANK, reason="a case", tags=["cat"]))
    assert await both() == [1, 0, 0, 0, 1, 0]
